"""Verdicts on whether the two prompts of a pair ask for the same judgement, read from files.

A verdict file is JSONL, CSV or Parquet with ``pair_id`` and one verdict column of YES and NO:
``manual_label`` or ``verdict`` (a person's), or ``validation_decision`` (a model's).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense_dataset.templates import DATA

COLUMNS = ("manual_label", "validation_decision", "verdict")

RECORDED = DATA / "verdicts.jsonl"
"""The verdicts on the embedded benchmark's pairs, recorded with SmolLM2-135M-Instruct as the judge:
``judgesense dataset validate embedded --judge smollm2-135m --out DIR`` and a copy of
``DIR/verdicts.jsonl``."""


@dataclass(frozen=True, slots=True)
class VerdictFile:
    """The verdicts in a file by pair id (None where it has neither YES nor NO), and their origin.

    ``raters`` are the names in the column ``reviewer``, if the file has it.
    """

    verdicts: Mapping[str, bool | None]
    by_model: bool
    raters: frozenset[str]


def verdict_column(row: Mapping[str, Any]) -> str | None:
    """The verdict column of a row; None if the row holds no verdict."""
    return next((name for name in COLUMNS if name in row), None) if "pair_id" in row else None


def read_verdicts(path: Path) -> VerdictFile:
    """Read a verdict file.

    Raises JudgeSenseError naming file, row and column for missing columns, a verdict other than
    YES or NO, or two different verdicts on one pair.
    """
    verdicts: dict[str, bool | None] = {}
    raters: set[str] = set()
    columns: set[str] = set()
    for record in read_table(path):
        row, column = record.values, verdict_column(record.values)
        if column is None:
            raise JudgeSenseError(
                f"{record.place}: a verdict needs the column pair_id and one of "
                f"{', '.join(COLUMNS)}; the row has {', '.join(row)}"
            )
        answer = "" if row[column] is None else str(row[column]).strip().upper()
        if answer not in ("YES", "NO", ""):
            raise JudgeSenseError(
                f"{record.place}, column {column}: must be YES or NO, got {row[column]!r}"
            )
        verdict = {"YES": True, "NO": False}.get(answer)
        pair_id = str(row["pair_id"])
        if verdicts.setdefault(pair_id, verdict) is not verdict:
            raise JudgeSenseError(
                f"{record.place}: pair {pair_id!r} has two different verdicts in this file; "
                "keep one, or use one file per person"
            )
        columns.add(column)
        if row.get("reviewer"):
            raters.add(str(row["reviewer"]))
    return VerdictFile(verdicts, "validation_decision" in columns, frozenset(raters))


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
    rows = (record.values for record in read_table(path))
    return {
        str(row["pair_id"]): verdict_columns(
            row["valid"], row["semantic_equivalence_score"], row["validation"]
        )
        for row in rows
    }
