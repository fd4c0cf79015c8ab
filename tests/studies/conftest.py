"""What several files of tests on studies share."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.reporting.study_result import Result

GOLDEN = Path(__file__).parent / "golden"


def same(value: Any, known: Any) -> bool:
    if isinstance(value, float) and isinstance(known, int | float):
        return math.isclose(value, known, rel_tol=1e-9, abs_tol=1e-12)
    return bool(value == known)


@pytest.fixture
def golden() -> Callable[[Result, str], None]:
    """Compare all tables of a result with ``golden/NAME.json``.

    JUDGESENSE_WRITE_GOLDEN=1 writes the file instead: look at its difference before you commit it.
    """

    def compare(result: Result, name: str) -> None:
        found = {
            table.name: {
                "columns": list(table.columns),
                "rows": [list(row.values()) for row in table.rows],
            }
            for table in result.tables
        }
        path = GOLDEN / f"{name}.json"
        if os.environ.get("JUDGESENSE_WRITE_GOLDEN"):
            rows = json.dumps(found, ensure_ascii=False, allow_nan=False)
            path.write_text(rows.replace("], [", "],\n[").replace('"rows"', '\n"rows"') + "\n")
        expected = json.loads(path.read_text("utf-8"))
        assert list(found) == list(expected)
        for table, known in expected.items():
            assert found[table]["columns"] == known["columns"], table
            assert len(found[table]["rows"]) == len(known["rows"]), table
            for row, values in zip(found[table]["rows"], known["rows"], strict=True):
                assert all(map(same, row, values)), (table, row, values)

    return compare


@pytest.fixture
def essays(tmp_path: Path) -> Path:
    path = tmp_path / "essays.csv"
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink)
        writer.writerow(["item_id", "assignment", "essay", "content", "organisation", "language"])
        for number in range(18):
            grade = 1 + number % 6
            essay = f"Essay {number}, of grade {grade}, says that cats are better than dogs."
            mean = min(6, grade + 0.4) if number % 3 == 0 else grade
            writer.writerow([f"e{number}", "Cats or dogs?", essay, mean, grade, grade])
    return path
