"""``judgesense view``: every run under a folder on one page."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.reporting.overview import write_overview

HOSTILE = "<img src=x onerror=alert(1)>"


def check(folder: Path, name: str, wrong: int) -> None:
    file = folder / name / "tone.csv"
    file.parent.mkdir(parents=True)
    with file.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["item_id", "reply", "judge_tone", "label"])
        for n in range(40):
            verdict = ("PASS", "FAIL")[n % 2 ^ (n < wrong)]
            table.writerow([n, f"{HOSTILE} {n}", verdict, ("PASS", "FAIL")[n % 2]])
    judgesense.check(file, out=folder / name / "out", note=str)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    check(root, "a", 10)
    check(root, f"b{HOSTILE[:4]}", 4)
    (root / "broken").mkdir()
    (root / "broken" / "report.json").write_text("{")
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    return root


def test_each_judge_and_task_has_its_runs_and_their_pages(runs: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    assert write_overview(runs, tmp_path / "site", notes.append) == (2, 1)
    assert "broken" in notes[0]
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert page.count('class="series"') == 1  # one judge on one task, twice
    assert {"75%", "90%"} <= set(re.findall(r">(\d+%)", page))
    links = re.findall(r'href="(reports/[^"]+)"', page)
    assert len(links) == 2
    (change,) = re.findall(r'href="(changes/[^"]+)"', page)
    of_change = re.findall(r'data-of="([^ "]+) ([^"]+)"', page)
    assert {*of_change[0]} == {*links}
    changed = (tmp_path / "site" / change).read_text("utf-8")
    assert re.findall(r"changed \((\d+)\)", changed) == ["6"]
    assert all((tmp_path / "site" / link).is_file() for link in links)
    assert "<img" not in page
    assert page.count("<script") == 1


def test_what_has_no_reports_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="no report under it"):
        write_overview(tmp_path / "elsewhere", tmp_path / "site")
    with pytest.raises(JudgeSenseError, match="no folder"):
        write_overview(tmp_path / "nowhere", tmp_path / "site")
    done = CliRunner().invoke(app, ["view", str(runs), "--out", str(tmp_path / "site")])
    assert done.exit_code == 0
    assert done.stdout.startswith("2 runs: ")
