"""Verdicts on whether the two prompts of a pair ask for the same judgement, read from files.

A verdict file is JSONL, CSV or Parquet with ``pair_id`` and one verdict column of YES and NO:
``manual_label`` or ``verdict`` (a person's), or ``validation_decision`` (a model's).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense_dataset.items import read_rows
from judgesense_dataset.templates import DATA

COLUMNS = ("manual_label", "validation_decision", "verdict")
MODELS = ("validation_decision",)
"""The columns that hold a model's verdicts; the others hold a person's."""

RECORDED = DATA / "verdicts.jsonl"
"""The verdicts on the embedded benchmark's pairs, recorded with SmolLM2-135M-Instruct as the judge:
``judgesense dataset validate embedded --judge smollm2-135m --out DIR`` and a copy of
``DIR/verdicts.jsonl``."""


def verdict_column(row: Mapping[str, Any]) -> str | None:
    """The verdict column of a row; None if the row holds no verdict."""
    if "pair_id" not in row:
        return None
    return next((name for name in COLUMNS if name in row), None)


def is_by_model(path: Path) -> bool:
    """Whether a verdict file holds a model's verdicts and not a person's."""
    return any(verdict_column(row) in MODELS for _, row in islice(read_rows(path), 1))


def read_verdicts(path: Path) -> dict[str, bool | None]:
    """Pair id -> equivalent or not; None where the file says neither (null or empty).

    Raises JudgeSenseError naming file, row and column for missing columns, a verdict other than
    YES or NO, or two different verdicts on one pair.
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
                "keep one, or use one file per person"
            )
        verdicts[pair_id] = verdict
    if not verdicts:
        raise JudgeSenseError(f"{path}: holds no verdict")
    return verdicts


def verdict_columns(
    valid: bool | None, score: float | None, validation: Mapping[str, Any]
) -> dict[str, Any]:
    """A consensus and the single verdicts as the columns of a dataset's row."""
    return {
        "valid": valid,
        "semantic_equivalence_score": score,
        "validation": json.dumps(validation, ensure_ascii=False),
    }


def load_verdicts(path: Path = RECORDED) -> dict[str, dict[str, Any]]:
    """Verdict columns by pair id, from a file that ``judgesense dataset validate`` wrote.

    By default the recorded verdicts on the embedded benchmark.
    """
    return {
        str(row["pair_id"]): verdict_columns(
            row["valid"], row["semantic_equivalence_score"], row["validation"]
        )
        for _, row in read_rows(path)
    }
