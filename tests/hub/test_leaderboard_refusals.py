"""Reports and uploads by others: shown inert, or refused with the reason."""

from __future__ import annotations

import json
import stat
import zipfile

import pytest
from rule_run import make_run

from hub_scripts.leaderboard.pages.judge import judge_page, key_of
from hub_scripts.leaderboard.pages.table import table
from hub_scripts.leaderboard.reports import report_of
from hub_scripts.leaderboard.sources import DEMO, open_results
from hub_scripts.leaderboard.unpack import unpack
from hub_scripts.report_shape import check_lists, read_report
from judgesense.errors import JudgeSenseError

MARK = '"MARK"'


@pytest.fixture
def report():
    return json.loads(DEMO.read_text("utf-8"))


def put(report, cell, value):
    report["cells"][0][cell] = value
    return report


@pytest.mark.parametrize("literal", ["1" + "0" * 400, "-7", "1.5"])
def test_an_impossible_kappa_is_refused_too(report, literal, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(put(report, "kappa", "MARK")).replace(MARK, literal), "utf-8")
    with pytest.raises(JudgeSenseError, match="kappa has the invalid value"):
        read_report(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("gain_ci_low", [1, "x"]), ("gain_ci_high", "x"), ("accuracy_before", 10**400)],
)
def test_a_remedy_with_an_impossible_figure_is_refused(report, key, value):
    case = dict.fromkeys(("run_id", "judge", "task", "scoring", "remedy"), "x")
    report["remedies"] = [case | {"prompts_per_item": 2, "accuracy": 0.5, key: value}]
    with pytest.raises(JudgeSenseError, match=rf"remedies\[0\]\.{key} has the invalid value"):
        check_lists(report, "report.json", ["remedies"])


def test_a_whole_number_too_large_to_be_finite_is_no_figure(report, tmp_path):
    with pytest.raises(JudgeSenseError, match=r"kappa has the invalid value 1000000"):
        check_lists(put(report, "kappa", 10**400), "report.json", ["cells"])


@pytest.mark.parametrize(
    ("literal", "told"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e400", "1e400"),
        ("9" * 5000, "cannot be read"),
        ("1" + "0" * 300, "jss has"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('"0.9"', "jss has the invalid value '0.9'"),
        ("1.5", "jss has the invalid value 1.5"),
        ("{}", "jss has the invalid value {}"),
    ],
)
def test_a_report_with_an_impossible_figure_is_refused(report, literal, told, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(put(report, "jss", "MARK")).replace(MARK, literal), "utf-8")
    with pytest.raises(JudgeSenseError, match=told):
        read_report(path)


def drop(key):
    def edit(report):
        del report["cells"][0][key]

    return edit


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (drop("kappa"), "lacks 'kappa'"),
        (drop("signature"), "lacks 'signature'"),
        (lambda r: r["cells"].pop(0), "has no raw cell"),
        (lambda r: put(r, "n_pairs", -1), "n_pairs .* -1"),
        (lambda r: r["trust"][0].update(trust="excellent"), "trust .* 'excellent'"),
        (lambda r: r["trust"][0]["checks"].pop("fair"), r"trust\[0\].checks has"),
        (lambda r: r["trust"].clear(), "has no trust card"),
        (lambda r: r.update(schema=1), "written by an earlier JudgeSense"),
        (lambda r: put(r, "judge", "j" * 30_000), "judge .* 'jjj"),
        (lambda r: put(r, "judge", ["a"]), "judge has"),
        (lambda r: r["cells"].append(7), "not an object"),
        (lambda r: r.update(templates={}), "templates is not a list"),
        (lambda r: r.update(notes=[""] * 60_000), "60,000 entries"),
        (lambda r: r["examples"][0].update(a={}), r"examples\[0\].a has"),
        (lambda r: r["template_pairs"][0].update(judge="nobody"), "belongs to no cell"),
        (lambda r: r["findings"][0].update(kind="<b>"), "kind is '<b>'"),
        (lambda r: r.update(schema=99), "upgrade judgesense"),
        (lambda r: r.update(cells=None), "no report of JudgeSense"),
    ],
)
def test_a_report_of_a_wrong_shape_is_refused(report, edit, told, tmp_path):
    edit(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), "utf-8")
    with pytest.raises(JudgeSenseError, match=told):
        read_report(path)


def test_a_report_that_cannot_be_shown_is_left_out_and_named(report, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(report), "utf-8")
        put(report, "jss", 7)
    board = open_results(str(tmp_path)).board()
    assert set(board.runs) == {"good"}
    assert board.refused == (("bad", "report.json: cells[0].jss has the invalid value 7"),)
    assert "1 run is left out" in table(board, "coherence")


def test_a_report_of_an_earlier_schema_is_measured_anew_if_its_decisions_are_there(tmp_path):
    with_log = make_run(tmp_path / "with-log")
    older = json.dumps({"schema": 1, "cells": []})
    (with_log / "report.json").write_text(older, "utf-8")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "report.json").write_text(older, "utf-8")
    board = open_results(str(tmp_path)).board()
    assert set(board.runs) == {"with-log"}
    assert {e.trust["trust"] for e in board.entries if e.run == "with-log" and e.trust}
    ((key, why),) = board.refused
    assert key == "bare"
    assert "schema 1, written by an earlier JudgeSense" in why
    assert report_of(board.runs["with-log"])["schema"] == 2
    assert json.loads((with_log / "report.json").read_text("utf-8"))["schema"] == 1


HOSTILE = '"><script>alert(1)</script>\u202e' + "x" * 10_000


def test_a_report_of_hostile_texts_is_shown_as_text(report, tmp_path):
    text = json.dumps(report)
    judges = {c["judge"] for c in report["cells"]} - {"oracle", "always-first"}
    old = judges.pop()
    text = text.replace(json.dumps(old), json.dumps(HOSTILE))
    text = text.replace(json.dumps("factuality-1"), json.dumps(HOSTILE + "1"))
    made = json.loads(text)
    for example in made["examples"]:
        for side in "ab":
            example[side].update(text=HOSTILE, answer=HOSTILE, raw=HOSTILE)
    (tmp_path / "report.json").write_text(json.dumps(made), "utf-8")
    board = open_results(str(tmp_path)).board()
    shown = judge_page(board, key_of(tmp_path.name, HOSTILE))
    shown += table(board, "factuality")
    assert "Verdicts that flipped" in shown
    assert "<script" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "x" * 5000 not in shown


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([("../report.json", "{}")], "leads out of the zip"),
        ([("run/report.json", "{}"), ("run/../../x", "")], "leads out of the zip"),
        ([("/etc/report.json", "{}")], "leads out of the zip"),
        ([("run\\..\\report.json", "{}")], "leads out of the zip"),
        ([(link("run/report.json"), "/etc/passwd")], "a link"),
        ([("a/report.json", "{}"), ("b/report.json", "{}")], "2 runs"),
        ([("run/notes.txt", "hello")], "no report.json"),
        ([("run/report.json", "0" * 3_000_000)], "times its size"),
        pytest.param(
            [(f"run/{n}", "") for n in range(2001)], "2,001 entries", marks=pytest.mark.slow
        ),
    ],
)
def test_a_zip_that_is_not_a_runs_is_refused(entries, told, tmp_path):
    path = zipped(tmp_path / "up.zip", entries)
    with pytest.raises(JudgeSenseError, match=told):
        unpack([path], tmp_path / "into")
    assert not list(tmp_path.glob("into/**/*.json"))


def test_a_damaged_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "up.zip", [("run/report.json", "abc" * 1000)])
    data = bytearray(path.read_bytes())
    data[60:80] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(JudgeSenseError, match="damaged"):
        unpack([path], tmp_path / "into")


def test_a_zip_gives_the_runs_files_and_leaves_the_rest(tmp_path):
    names = ("report.json", "run.json", "decisions/part-00-000.parquet", "figures/a.png", "x.py")
    path = zipped(tmp_path / "up.zip", [(f"my-run/{name}", "{}") for name in names])
    folder, found = unpack([path], tmp_path / "into")
    assert folder.name == "my-run"
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == [
        "decisions/part-00-000.parquet",
        "report.json",
        "run.json",
    ]
    assert found.startswith("3 of 5 files")


def test_single_files_go_to_their_places(tmp_path):
    for name in ("report.json", "part-00-000.parquet", "notes.txt"):
        (tmp_path / name).write_text("{}", "utf-8")
    folder, found = unpack(sorted(tmp_path.iterdir()), tmp_path / "into")
    assert (folder / "decisions" / "part-00-000.parquet").is_file()
    assert found.startswith("2 of 3 files")
    with pytest.raises(JudgeSenseError, match=r"no report\.json"):
        unpack([tmp_path / "notes.txt"], tmp_path / "again")
