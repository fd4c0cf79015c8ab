"""The table of what each sentence needs names sentences that are said."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
with (ROOT / "docs/metrics/conditions.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["sentence"][:40])
def test_a_sentence_with_a_condition_is_said(row: dict[str, str]) -> None:
    assert row["said only if"]
    assert row["its words"] in (ROOT / "judgesense" / row["said in"]).read_text("utf-8")
