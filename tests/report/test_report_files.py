from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from reports import report_of
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.reporting.documents import render_latex, render_markdown
from judgesense.reporting.html import render_html
from judgesense.reporting.report import write_report
from judgesense.reporting.terminal import render_terminal

HOSTILE = '<script>alert("1")</script>|`$x$`\\end{table}&_%'


@pytest.fixture
def run_dir(make, tmp_path: Path) -> Path:
    benchmark = make.benchmark(
        make.YESNO, [make.PLAIN, make.PLAIN, make.INVERTED], ["YES", "NO"] * 8
    )
    rng = np.random.default_rng(1)
    log = make.log(benchmark, lambda prompt: str(rng.choice(["YES", "NO", "UNCLEAR"])))
    return make.folder(tmp_path / "run", benchmark, log)


@pytest.fixture
def hostile(make):
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 3, ["YES", "NO"] * 8)
    rng = np.random.default_rng(1)
    log = make.log(benchmark, lambda prompt: str(rng.choice(["YES", "NO"])), judge=HOSTILE)
    run = {**make.run(benchmark, HOSTILE), "dataset": {"name": HOSTILE}, "notes": [HOSTILE]}
    text = benchmark.prompts.set_column(
        1, "text", [[f"{HOSTILE} {t}" for t in benchmark.prompts["text"].to_pylist()]]
    )
    return report_of(log, benchmark.pairs, run=run, prompts=text)


def test_a_run_gets_its_report_and_page(run_dir: Path) -> None:
    report = write_report(run_dir)
    assert json.loads((run_dir / "report.json").read_text()) == report
    assert not [path.name for path in run_dir.rglob("*.tmp")]
    before = {p: p.read_bytes() for p in run_dir.glob("report.*")}
    write_report(run_dir)
    assert {p: p.read_bytes() for p in run_dir.glob("report.*")} == before


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.scripts = 0
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.scripts += tag == "script"
        self.links += [value for name, value in attrs if name in ("src", "href", "onclick")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_hostile_names_and_texts_as_text_and_loads_nothing(hostile) -> None:
    page = Page()
    html = render_html(hostile.contents)
    page.feed(html)
    assert page.scripts == 1
    script = html[html.rindex("<script>") + 8 : html.rindex("</script>")]
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}';" in html
    assert HOSTILE not in script
    assert {link[0] for link in page.links} == {"#"}
    assert hostile["examples"]
    assert page.text.count(HOSTILE) > 5


def test_markdown_and_latex_escape_hostile_names(hostile) -> None:
    markdown = render_markdown(hostile.contents)
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {5, 6, 12}
    assert "<script>" not in markdown
    lines = render_latex(hostile.contents).splitlines()
    latex = "\n".join(line for line in lines if not line.startswith("%"))
    body = [line for line in latex.splitlines() if line.endswith(r"\\") and " & " in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {10}
    assert latex.count(r"\end{table") == 1
    assert not re.search(r"(?<!\\)\$x", latex)


def test_plain_output_is_neither_wrapped_nor_cut(make) -> None:
    long_name = "org/" + "a-very-long-judge-name-" * 12
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 8)
    log = make.log(benchmark, make.oracle, judge=long_name)
    lines = str(render_terminal(report_of(log, benchmark.pairs, run={}).contents)).splitlines()
    header, row = lines[0], lines[2]
    assert row.split()[1] == long_name
    assert len(row) > 250
    assert row.index("generate") == header.index("scoring")
    assert "\x1b" not in "\n".join(lines)
    columns = re.split(r"\s{2,}", header)
    assert columns[:6] == ["trust", "judge", "task", "scoring", "JSS", "95% interval"]


def test_the_command_prints_every_format_and_then_writes_nothing(run_dir: Path) -> None:
    starts = {"md": "# JudgeSense", "html": "<!DOCTYPE html>", "tex": "% ", "json": "{"}
    for name, start in starts.items():
        result = CliRunner().invoke(app, ["report", str(run_dir), "--format", name])
        assert result.exit_code == 0, result.output
        assert result.output.startswith(start)
        assert result.output.rstrip().endswith(("}", "</html>", "|", "\\end{table*}"))
    assert not (run_dir / "report.json").exists()


def test_several_runs_are_one_table_with_each_baseline_once(run_dir: Path, make) -> None:
    benchmark = make.benchmark(
        make.YESNO, [make.PLAIN, make.PLAIN, make.INVERTED], ["YES", "NO"] * 8
    )
    other = make.folder(
        run_dir.parent / "other", benchmark, make.log(benchmark, make.oracle, "b@2")
    )
    whole = judgesense.report(run_dir, other)
    judges = [(c["run_id"], c["judge"]) for c in whole["cells"] if c["labels"] == "mapped"]
    assert judges == [("run", "rule@0001"), ("run", "oracle"), ("other", "b@2")]
    result = CliRunner().invoke(app, ["report", str(run_dir), str(other), "--verbose"])
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.output.splitlines()[2:5]] == ["b", "rule", "oracle"]


def test_bad_folders_get_a_clear_error(tmp_path: Path, run_dir: Path) -> None:
    with pytest.raises(JudgeSenseError, match="no folder"):
        judgesense.report(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(JudgeSenseError, match="neither decisions nor"):
        judgesense.report(tmp_path / "empty")
    with pytest.raises(JudgeSenseError, match="no run given"):
        judgesense.report()
    part = next((run_dir / "decisions").iterdir())
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(JudgeSenseError, match=r"part-0\.parquet cannot be read"):
        judgesense.report(run_dir)


def test_damaged_records_are_named(run_dir: Path) -> None:
    (run_dir / "pairs.parquet").write_bytes(b"none")
    with pytest.raises(JudgeSenseError, match=r"pairs\.parquet cannot be read"):
        judgesense.report(run_dir)
    (run_dir / "run.json").write_text("{")
    with pytest.raises(JudgeSenseError, match=r"run\.json is damaged"):
        judgesense.report(run_dir)


def test_the_report_of_a_newer_version_is_not_overwritten(run_dir: Path) -> None:
    newer = json.dumps({"schema": 99, "cells": []})
    (run_dir / "report.json").write_text(newer)
    with pytest.raises(JudgeSenseError, match="schema 99, written by a newer JudgeSense"):
        judgesense.report(run_dir)
    assert (run_dir / "report.json").read_text() == newer


def test_the_report_of_an_earlier_version_is_measured_anew(run_dir: Path, tmp_path: Path) -> None:
    older = json.dumps({"schema": 1, "cells": []})
    (run_dir / "report.json").write_text(older)
    assert judgesense.report(run_dir).schema == 2
    assert json.loads((run_dir / "report.json").read_text())["schema"] == 2
    (tmp_path / "report.json").write_text(older)
    with pytest.raises(JudgeSenseError, match="schema 1, written by an earlier JudgeSense"):
        judgesense.report(tmp_path)


def test_a_folder_with_nothing_but_a_report_can_be_printed(run_dir: Path, tmp_path: Path) -> None:
    report = write_report(run_dir)
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "report.json").write_bytes((run_dir / "report.json").read_bytes())
    result = CliRunner().invoke(app, ["report", str(alone), "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.output.rstrip("\n") == render_terminal(report.contents)
    (alone / "report.json").write_text("[]")
    with pytest.raises(JudgeSenseError, match="not a JudgeSense report"):
        judgesense.report(alone)
