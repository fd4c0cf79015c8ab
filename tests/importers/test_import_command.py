"""``judgesense import`` as a person types it, and what report and compare make of the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgesense.cli import app


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def log(path: Path, judge: str, flips: int) -> Path:
    """40 items under two wordings; the judge changes its mind on the first ``flips``."""
    lines = ["model,id,prompt,verdict,right"]
    for item in range(40):
        right = ("YES", "NO")[item % 2]
        other = ("NO", "YES")[item % 2]
        lines.append(f"{judge},{item},plain,{right},{right}")
        lines.append(f"{judge},{item},polite,{other if item < flips else right},{right}")
    path.write_text("\n".join(lines), "utf-8")
    return path


COLUMNS = "judge=model,item_id=id,template_id=prompt,raw_decision=verdict,gold=right,task=:claims"


def test_an_imported_log_reports_its_jss(tmp_path: Path) -> None:
    source = log(tmp_path / "log.csv", "m", 8)
    output = invoke(
        "import", str(source), "-f", "table", "-o", str(tmp_path / "m"), "--columns", COLUMNS
    )
    assert "claims (YES, NO): 80 decisions (80 ok)" in output
    assert f"judgesense report {tmp_path / 'm'}" in output
    invoke("report", str(tmp_path / "m"))
    report = json.loads((tmp_path / "m/report.json").read_text("utf-8"))
    cells = [cell for cell in report["cells"] if cell["judge"] == "m"]
    assert cells
    for cell in cells:
        assert cell["jss"] == pytest.approx(32 / 40)
        assert (cell["n_pairs"], cell["n_items"]) == (40, 40)
        assert cell["accuracy"] == pytest.approx(72 / 80)
