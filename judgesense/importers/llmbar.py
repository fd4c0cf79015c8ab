"""LLMBar's ``judgments.csv``: pairwise preferences of six judges under up to 15 strategies.

A row holds a judge's winner in both orders, numbered as the outputs are stored: output 1 is shown
first in the order AB and second in BA. Source: the ``result.json`` files of the LLMBar repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_table
from judgesense.importers.protocol import Importer, ReadOptions


class Row(Shape):
    """A row of the table; a blank winner or score is empty text."""

    dataset: str
    item: str
    judge: str
    prompt: str
    label: str
    winner_noswap: str
    winner_swap: str
    score_1: str
    score_2: str


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Two records per row (orders AB and BA), or one for a strategy that rates outputs alone.

    Raises JudgeSenseError for a missing column, or a label or winner that is not 1 or 2.
    """
    for record in read_table(path, options.encoding):
        row = record.values
        fit(Row, row, record.place, "a row of LLMBar's table")
        shown = (("AB", "winner_noswap"), ("BA", "winner_swap"))
        rated = row["prompt"].startswith("Rating")
        unrated = not row["score_2"] or row["score_1"] in ("", row["score_2"])
        for order, column in shown[:1] if rated else shown:
            winner = None if rated and unrated else _option(row[column], order, column, record)
            yield Record(
                {
                    "judge": row["judge"],
                    "task": "preference",
                    "item_id": f"{row['dataset']}/{row['item']}",
                    "template_id": row["prompt"],
                    "system_id": row["dataset"],
                    "order": order,
                    "gold": _option(row["label"], order, "label", record),
                    **({"status": "unclear"} if winner is None else {"raw_decision": winner}),
                },
                record.place,
            )


def _option(number: str, order: str, column: str, record: Record) -> str | None:
    """Output 1 or 2 as the option that the judge saw; None for an empty winner."""
    if number == "" and column != "label":
        return None
    if number not in ("1", "2"):
        raise JudgeSenseError(f"{record.place}, {column}: {number!r} is neither 1 nor 2")
    return "AB"[(number == "2") != (order == "BA")]


IMPORTER = Importer(
    name="llmbar",
    summary="LLMBar's judgments.csv",
    patterns=("judgments.csv",),
    read=read,
    labels=("A", "B"),
    notes=(
        "An empty winner is an answer that LLMBar could not read; it is imported as UNCLEAR.",
        "The Rating strategies rate each output alone and have no option order, so each is "
        "imported once, as AB. Equal or missing ratings are UNCLEAR; LLMBar counts the output "
        "shown second as their winner.",
        "The templates are LLMBar's strategies (prompt), which are not pure paraphrases.",
    ),
)
