"""LLMBar's ``judgments.csv``: pairwise preferences of six judges under up to 15 strategies.

A row holds a judge's winner in both orders, in the numbering of the outputs as stored: 1 is the
first in the order AB and the second in BA. Source: the LLMBar repository, its ``result.json``
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.importers.files import Record, read_table

DEFAULTS: Mapping[str, str] = {}
LABELS = ("A", "B")
NOTES = (
    "An empty winner (an answer that LLMBar could not read) is UNCLEAR.",
    "The Rating strategies rate each output alone, so they have no option order: each is "
    "imported once, as AB, and equal or missing ratings are UNCLEAR, where LLMBar counts the "
    "output shown second as the winner.",
    "Strategies (prompt) are the templates; they are not pure paraphrases.",
)
_COLUMNS = (
    "dataset", "item", "judge", "prompt", "label", "winner_noswap", "winner_swap", "score_1",
    "score_2",
)  # fmt: skip


def read(source: Path, *, encoding: str = "utf-8") -> Iterator[Record]:
    """Two records a row (orders AB and BA), or one for a strategy that rates outputs alone.

    Raises JudgeSenseError for a missing column, or a label or winner that is not 1 or 2.
    """
    for record in read_table(source, encoding):
        row = record.values
        if missing := [name for name in _COLUMNS if name not in row]:
            raise JudgeSenseError(
                f"{record.place}: LLMBar's table has the columns {', '.join(_COLUMNS)}; "
                f"missing here: {', '.join(missing)}"
            )
        common = {
            "judge": row["judge"],
            "task": "preference",
            "item_id": f"{row['dataset']}/{row['item']}",
            "template_id": row["prompt"],
            "system_id": row["dataset"],
        }
        gold = _shown(row["label"], "AB", "label", record)
        if row["prompt"].startswith("Rating"):
            tie = not row["score_1"] or row["score_1"] == row["score_2"]
            winner = "" if tie or not row["score_2"] else row["winner_noswap"]
            decision = _shown(winner, "AB", "winner_noswap", record)
            yield Record(
                {**common, "order": "AB", "gold": gold, **_decided(decision)}, record.place
            )
            continue
        for order, column in (("AB", "winner_noswap"), ("BA", "winner_swap")):
            decision = _shown(row[column], order, column, record)
            shown = _shown(row["label"], order, "label", record)
            yield Record(
                {**common, "order": order, "gold": shown, **_decided(decision)}, record.place
            )


def _shown(number: str, order: str, column: str, record: Record) -> str | None:
    """Output 1 or 2 as the option that it was shown as."""
    if number == "" and column != "label":
        return None
    if number not in ("1", "2"):
        raise JudgeSenseError(f"{record.place}, {column}: {number!r} is neither 1 nor 2")
    return "AB"[(number == "2") != (order == "BA")]


def _decided(decision: str | None) -> dict[str, str]:
    return {"status": "unclear"} if decision is None else {"raw_decision": decision}
