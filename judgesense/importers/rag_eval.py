"""RAG-Eval-LLM-Judge's wide tables: relevance ratings 0-3 of documents, a column a judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.importers.files import Record, read_table

DEFAULTS: Mapping[str, str] = {}
LABELS = ("0", "1", "2", "3")
TEMPLATE = "the-one-prompt"
"""The template id of the one wording that every judge was given."""
NOTES = (
    "A blank cell is an ERROR: the source records that the judge gave no score, not why.",
    "There is one prompt only, so there are no template pairs and no JSS.",
)
_KEYS = ("dataset", "query_id", "doc_id", "human")


def read(source: Path, *, encoding: str = "utf-8") -> Iterator[Record]:
    """One record for each row and judge column; the human rating is gold, the query the cluster.

    Raises JudgeSenseError for a missing column, no judge column, or a rating outside 0-3.
    """
    for record in read_table(source, encoding):
        row = record.values
        if missing := [name for name in _KEYS if name not in row]:
            raise JudgeSenseError(
                f"{record.place}: these tables have the columns {', '.join(_KEYS)} and one a "
                f"judge; missing here: {', '.join(missing)}"
            )
        judges = [name for name in row if name not in _KEYS]
        if not judges:
            raise JudgeSenseError(f"{record.place}: no column with a judge's ratings")
        for column in ("human", *judges):
            if row[column] not in (*LABELS, "") or (column == "human" and row[column] == ""):
                raise JudgeSenseError(
                    f"{record.place}, {column}: {row[column]!r} is no rating of 0-3"
                )
        for judge in judges:
            yield Record(
                {
                    "judge": judge,
                    "task": "relevance_rating",
                    "item_id": f"{row['dataset']}/{row['query_id']}/{row['doc_id']}",
                    "cluster_id": f"{row['dataset']}/{row['query_id']}",
                    "template_id": TEMPLATE,
                    "gold": row["human"],
                    "raw_decision": row[judge],
                    "error": None if row[judge] else "no score in the source",
                },
                record.place,
            )
