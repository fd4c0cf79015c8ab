"""What is published of a run, and what is refused, without a Hub."""

from __future__ import annotations

import json

import pytest
from rule_run import make_run

from hub_scripts.hub import Publication, diff
from hub_scripts.results import results_publication
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from judgesense.measure.report_file import load_report


@pytest.fixture
def run_dir(tmp_path):
    return make_run(tmp_path / "run")


def change(run_dir, edit):
    path = run_dir / "report.json"
    report = json.loads(path.read_text("utf-8"))
    edit(report)
    path.write_text(json.dumps(report), "utf-8")


def test_a_run_is_published_under_its_id_and_its_judges(run_dir, tmp_path):
    first = results_publication(run_dir, "org/results")
    other = results_publication(make_run(tmp_path / "other", "rule@0002"), "org/results")
    assert first.tag.startswith("by-rule-")
    assert first.tag != other.tag
    assert set(first.files) == {
        "README.md",
        *(
            f"{first.tag}/{name}"
            for name in (
                "README.md",
                "report.json",
                "run.json",
                "pairs.parquet",
                "decisions/part-00-000.parquet",
            )
        ),
    }


def put(key, value):
    return lambda report: report["cells"][0].update({key: value})


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (put("jss", 0.99), r"cells\[0\].jss is 0.99, but recomputed it is 0.8333"),
        (put("signature", "JSS|task:factuality|items:125"), r"cells\[0\].signature is 'JSS"),
        (put("jss", float("nan")), r"cells\[0\].jss is nan"),
        (put("jss", float("inf")), r"cells\[0\].jss is inf"),
        (put("jss", "0.9"), r"cells\[0\].jss is '0.9'"),
        (put("jss", True), r"cells\[0\].jss is True"),
        (put("kappa", 10**400), r"cells\[0\].kappa is 1000"),
        (put("judge", {"a": 1}), r"cells\[0\].judge is dict of 1"),
        (lambda report: report["cells"][0].pop("kappa"), r"cells\[0\] is dict of"),
        (lambda report: report["cells"].pop(), "cells is list of"),
        (lambda report: report.update(trust={}), "trust is dict of 0"),
        (lambda report: report["trust"][0].update(trust="use"), r"trust\[0\].trust is 'use'"),
        (lambda report: report["examples"][0]["a"].update(text=["x"]), r"a.text is list of 1"),
        (lambda report: report.update(mine=1), "mine is 1, but recomputed it is None"),
        (lambda report: report.update(notes=[7]), "an entry of notes is not text"),
        (lambda report: report.update(schema=99), "Upgrade judgesense"),
        (lambda report: report.update(schema=1), "written by an earlier JudgeSense"),
        (lambda report: report.update(cells=None), "is not a JudgeSense report"),
    ],
)
def test_a_report_that_does_not_follow_from_its_decisions_is_refused(run_dir, edit, reason):
    change(run_dir, edit)
    with pytest.raises(JudgeSenseError, match=reason):
        results_publication(run_dir, "org/results")


def test_the_texts_of_flipped_prompts_need_no_decisions(run_dir):
    change(run_dir, lambda report: report["examples"][0]["a"].update(text="Is it?"))
    results_publication(run_dir, "org/results")


def test_what_a_run_lacks_is_named(run_dir):
    (run_dir / "report.json").unlink()
    with pytest.raises(JudgeSenseError, match="write it with: judgesense report"):
        results_publication(run_dir, "org/results")
    for part in (run_dir / "decisions").iterdir():
        part.unlink()
    with pytest.raises(JudgeSenseError, match="holds no decision log"):
        results_publication(run_dir, "org/results")


def test_local_paths_are_published_as_names_and_the_figures_stay_checkable(tmp_path):
    record = {
        "asked": {
            "judges": [{"judge": "/home/ann/models/mine", "model": "C:\\Users\\ann\\mine"}],
            "data": {"dataset": "/home/ann/data/pairs", "sha256": "ab"},
        },
        "judges": [
            {
                "name": "rule@0001",
                "describe": {
                    "origin": "~/models/mine",
                    "endpoint": "https://host.example/v1/chat",
                    "system_prompt": "/no_think /home/ann is quoted here",
                },
            }
        ],
        "notes": ["could not read /home/ann/data/pairs/x.parquet, and/or https://host/a/b"],
    }
    error = "FileNotFoundError: '/home/ann/models/mine/head.bin'"
    run_dir = make_run(tmp_path / "run", record=record, error=error)
    publication = results_publication(run_dir, "org/results")
    out = tmp_path / "published"
    for path, content in publication.files.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    published = out / publication.tag
    told = json.loads((published / "run.json").read_text("utf-8"))
    assert told["asked"]["judges"] == [{"judge": "mine", "model": "mine"}]
    assert told["asked"]["data"] == {"dataset": "pairs", "sha256": "ab"}
    assert told["judges"][0]["describe"] == {
        "origin": "mine",
        "endpoint": "https://host.example/v1/chat",
        "system_prompt": "/no_think /home/ann is quoted here",
    }
    assert told["notes"] == ["could not read x.parquet, and/or https://host/a/b"]
    errors = read_log(published)["error"].drop_null().to_pylist()
    assert set(errors) == {"FileNotFoundError: 'head.bin'"}
    for path in published.rglob("*"):
        if path.is_file():
            text = path.read_bytes().replace(b"/no_think /home/ann is quoted here", b"")
            assert b"/home/ann" not in text, path
    before, after = (
        [(c.jss, c.signature) for entry in load_report(folder).measured for c in entry.cells]
        for folder in (run_dir, published)
    )
    assert before == after
    # What was published passes the same checks, and would be published as it is.
    again = results_publication(published, "org/results")
    assert again.tag == publication.tag
    assert diff(again, {}).added == diff(publication, {}).added
    for path, content in again.files.items():
        kept = content if isinstance(content, bytes) else content.read_bytes()
        assert kept == (out / path).read_bytes(), path


def test_only_left_overs_of_a_publication_are_removed():
    publication = Publication(
        "org/name",
        "dataset",
        {"README.md": b"new", "a.txt": b"hello\n", "card.md": b"ours"},
        "message",
        "v1",
        owned=lambda path: path.endswith(".parquet"),
        only_if_absent=frozenset({"card.md"}),
    )
    # The blob hash of "hello\n" as git states it.
    same = "ce013625030ba8dba906f756967f9e9ca394464a"
    remote = {"README.md": "0", "a.txt": same, "card.md": "0", "old.parquet": "0", "notes.md": "0"}
    changes = diff(publication, remote)
    assert (changes.added, changes.changed, changes.removed) == (
        [],
        ["README.md"],
        ["old.parquet"],
    )
    assert changes.unchanged == 2
