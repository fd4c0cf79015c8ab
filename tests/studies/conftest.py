"""What several files of tests on studies share."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest


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
