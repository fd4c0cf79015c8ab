"""Verdicts in Inspect's scores, and the figures that JudgeSense computes from them.

A scorer keeps the verdicts behind a score in its metadata, under `KEY`: a list of rows of the
decision log. The metrics put the rows of all samples together.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from judgesense.files.tables import Record, in_rows
from judgesense.importers.build import build_parts
from judgesense.importers.columns import ColumnMap

KEY = "judgesense"
"""Where a score's metadata has its verdicts."""


def figures(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The trust card of each judge and task among the rows.

    >>> figures([])
    []
    """
    return _figures(json.dumps(list(rows), sort_keys=True))


@lru_cache(maxsize=8)
def _figures(text: str) -> list[Mapping[str, Any]]:
    """Several metrics of one scorer ask about the same rows."""
    from judgesense.reporting.measure import measure

    rows: list[dict[str, Any]] = json.loads(text)
    if not rows:
        return []
    labels = {each["task"]: tuple(each["labels"]) for each in rows}
    # A prompt of several samples (in a dataset of pairs) was asked again each time.
    repeats: Counter[tuple[str, ...]] = Counter()
    records = []
    for n, each in enumerate(rows, 1):
        prompt = tuple(each[name] for name in ("judge", "task", "item_id", "template_id", "order"))
        values = {**each, "labels": labels[each["task"]], "repeat": repeats[prompt]}
        records.append(Record(values, f"verdict {n}"))
        repeats[prompt] += 1
    parts: list[pa.Table] = []
    built = build_parts(in_rows(records), ColumnMap({}, {}), None, None, parts.append)
    run = {"run_id": "inspect", "tasks": built.tasks}
    report = measure(pa.concat_tables(parts), None, run=run)
    cards: list[Mapping[str, Any]] = report["trust"]
    return cards
