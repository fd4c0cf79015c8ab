"""RAG-Eval-LLM-Judge's wide tables: relevance ratings 0-3 of documents, one column per judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record, read_table
from judgesense.importers.protocol import Importer, ReadOptions

LABELS = ("0", "1", "2", "3")
TEMPLATE = "the-one-prompt"
"""The template id of the one wording that every judge saw."""
_KEYS = ("dataset", "query_id", "doc_id", "human")


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per row and judge; the human rating is gold, and the query is the cluster.

    Raises JudgeSenseError for a missing column, no judge column, or a rating outside 0-3.
    """
    for record in read_table(path, options.encoding):
        row = record.values
        judges = [name for name in row if name not in _KEYS]
        if not judges:
            raise JudgeSenseError(f"{record.place}: no column of a judge's ratings")
        for column in ("human", *judges):
            if row[column] not in (*LABELS, "") or (column == "human" and row[column] == ""):
                raise JudgeSenseError(
                    f"{record.place}, {column}: {row[column]!r} is not a rating from 0 to 3"
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


IMPORTER = Importer(
    name="rag-eval",
    summary="RAG-Eval-LLM-Judge's wide CSV tables",
    patterns=("*_wide.csv",),
    read=read,
    labels=LABELS,
    notes=(
        "A blank cell is imported as ERROR: the source does not say why the judge gave no score.",
        "The source has a single prompt, so it has no pairs of templates and no JSS.",
    ),
)
