"""Whether a judge's errors come in bursts along the dates or the rows of a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.files.tables import Rows
from judgesense.importers.column_names import header_key
from judgesense.importers.columns import ColumnMap
from judgesense.importers.rows import texts_of
from judgesense.importers.values import number_in
from judgesense.statistics.bursts import FEWEST, NOT_INDEPENDENT, blocks, bursts_p
from judgesense.tasks import ERROR

_WHEN = re.compile(r"(.+_)?(date|day|time|timestamp|datetime|ts)|(created|judged|started)(_at)?")
_EPOCH = 1e8
"""Lesser numbers are durations, not seconds since 1970."""
_FEWEST_WRONG = 5


class Times:
    """When each item of a file was judged, as far as a column says."""

    def __init__(self, columns: ColumnMap, read: Collection[str] = ()) -> None:
        self._columns, self._read = columns, {*read}
        self._when: dict[str, dict[str, float]] = {}
        self._items: dict[str, int] = {}

    def record(self, rows: Rows) -> Rows:
        """The rows, after the times of their items are noted."""
        names = [n for n in rows.columns if n not in self._read and _WHEN.fullmatch(header_key(n))]
        ids = texts_of(self._columns.column(rows, "item_id")) or ()
        cells = {name: texts_of(rows.columns[name]) or () for name in names}
        for at, item in enumerate(ids):
            if item is not None and item not in self._items:
                self._items[item] = len(self._items)
                for name in names:
                    if (when := _seconds(cells[name][at])) is not None:
                        self._when.setdefault(name, {})[item] = when
        return rows

    def bursts(self, log: pa.Table) -> dict[str, Any] | None:
        """Of errors that come in bursts: ``by``, the column of the dates, None for the rows; and
        with dates the ``blocks``, item by item, that count as one. None without bursts."""
        by = next((name for name, of in self._when.items() if len(of) == len(self._items)), None)
        place = self._items if by is None else self._when[by]
        items = sorted(self._items, key=place.__getitem__)
        rows = log.filter(pa.compute.is_valid(log["gold"])).to_pylist()
        judges = {(row["judge"], row["task"]) for row in rows}
        for judge in judges:
            hits: dict[str, list[bool]] = {}
            gold: dict[str, str] = {}
            for row in rows:
                if (row["judge"], row["task"]) == judge and row["decision"] != ERROR:
                    hits.setdefault(row["item_id"], []).append(row["decision"] == row["gold"])
                    gold[row["item_id"]] = row["gold"]
            known = [item for item in items if item in hits]
            right = np.array([np.mean(hits[item]) for item in known])
            if len(right) < FEWEST or (right < 1).sum() < _FEWEST_WRONG:
                continue
            p_value = bursts_p(right, [gold[item] for item in known])
            if p_value is not None and p_value < NOT_INDEPENDENT / len(judges):
                of = dict(zip(items, blocks(len(items)).tolist(), strict=True))
                return {"by": by, "blocks": {} if by is None else of}
        return None


def _seconds(cell: str | None) -> float | None:
    """A date, a time or a number of seconds since 1970; None for another text."""
    if (number := number_in(cell or "")) is not None:
        return number if number > _EPOCH else None
    try:
        when = datetime.fromisoformat(cell or "")
    except ValueError:
        return None
    return (when.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()


def notes_of(bursts: Mapping[str, Any]) -> list[str]:
    """What bursts of errors do to the figures.

    Rows may be in another order than that in which they were judged, so that bursts along them
    only take the rate of a comparison with a baseline away.
    """
    n = len({*bursts["blocks"].values()})
    if not n:
        return []
    return [
        f"The judge's errors come in bursts along {bursts['by']!r}: intervals count {n} blocks of "
        "items in a row as one item each."
    ]
