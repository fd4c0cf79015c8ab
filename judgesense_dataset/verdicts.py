"""Verdicts on whether the two prompts of a pair ask for the same judgement, read from files.

A verdict file is JSONL, CSV or Parquet with ``pair_id`` and one verdict column, of YES and NO:
``manual_label`` or ``verdict`` (a person's) or ``validation_decision`` (a model's).
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense_dataset.items import read_rows

COLUMNS = ("manual_label", "validation_decision", "verdict")
MODELS = ("validation_decision",)
"""The columns that hold a model's verdicts; the others hold a person's."""


def verdict_column(row: dict[str, Any]) -> str | None:
    """The verdict column of a row; None if the row holds no verdict."""
    if "pair_id" not in row:
        return None
    return next((name for name in COLUMNS if name in row), None)


def is_by_model(path: Path) -> bool:
    """Whether a verdict file holds a model's verdicts, not a person's."""
    return any(verdict_column(row) in MODELS for _, row in islice(read_rows(path), 1))


def read_verdicts(path: Path) -> dict[str, bool | None]:
    """Pair id -> equivalent or not, as the file says; None where it says neither (null, empty).

    Raises JudgeSenseError naming file, row and column: no such columns, a verdict other than YES
    or NO, or two different verdicts on one pair.
    """
    verdicts: dict[str, bool | None] = {}
    for number, row in read_rows(path):
        column = verdict_column(row)
        if column is None:
            raise JudgeSenseError(
                f"{path}, row {number}: a verdict needs the column pair_id and one of "
                f"{', '.join(COLUMNS)}; the row has {', '.join(row)}"
            )
        said = row[column]
        label = said.strip().upper() if isinstance(said, str) else said
        if label not in ("YES", "NO", "", None):
            raise JudgeSenseError(
                f"{path}, row {number}, column {column}: must be YES or NO, got {said!r}"
            )
        verdict = {"YES": True, "NO": False}.get(label)
        pair_id = str(row["pair_id"])
        if verdicts.get(pair_id, verdict) is not verdict:
            raise JudgeSenseError(
                f"{path}, row {number}: pair {pair_id!r} has two different verdicts in this file; "
                "keep one, or put each person's verdicts in a file of its own"
            )
        verdicts[pair_id] = verdict
    if not verdicts:
        raise JudgeSenseError(f"{path}: holds no verdict")
    return verdicts
