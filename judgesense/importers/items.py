"""Which item a row of a foreign log judges, how often it was judged before, and what it shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.columns import NAMES, TARGETS, ColumnMap
from judgesense.importers.rows import texts_of
from judgesense.run_folder.folder import ITEM_SCHEMA, ITEMS_FILE

LONGEST_TEXT = 4000
"""Longer cells of columns that no figure needs are cut."""


class Items:
    """Tells a repeated judgement from a judgement of another answer to the same question.

    >>> items = Items()
    >>> items.name("q1", "Paris"), items.name("q1", "Rome"), items.name("q1", "Paris")
    ('q1', 'q1/2', 'q1')
    >>> items.repeat("judge", "q1"), items.repeat("judge", "q1"), items.repeat("judge", "q1/2")
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[object, str]] = {}
        self._judged: Counter[tuple[object, ...]] = Counter()

    def name(self, question: str, judged: object) -> str:
        """The item's name: the question for its first answer, ``question/2`` for its second."""
        texts = self._texts.setdefault(question, {})
        number = len(texts) + 1
        return texts.setdefault(judged, question if number == 1 else f"{question}/{number}")

    def repeat(self, *key: object) -> int:
        """How often this was judged before."""
        self._judged[key] += 1
        return self._judged[key] - 1


class ItemColumns:
    """Writes ``items.parquet``: what a file has on each item in the columns that neither the column
    map nor ``read`` names."""

    def __init__(self, folder: Path, columns: ColumnMap, read: Collection[str]) -> None:
        self._path, self._columns = folder / ITEMS_FILE, columns
        sources = {
            part
            for target in TARGETS
            for source in [columns.given.get(target, columns.default.get(target, target))]
            for part in (NAMES.findall(source) or source.split(","))
        }
        # The id of a prompt is read, not its text; what people see of an item is in it.
        self._read = {*read, *sources} - {"prompt", columns.given.get("prompt")}
        self._seen: set[str] = set()
        self._writer: pq.ParquetWriter | None = None

    def kept(self, rows: Rows) -> Rows:
        """The rows, after their items' texts are written. Raises OSError."""
        names = [name for name in rows.columns if name not in self._read]
        ids = texts_of(self._columns.column(rows, "item_id")) if names else None
        found: dict[str, list[str]] = {name: [] for name in ITEM_SCHEMA.names}
        for at, item in enumerate(ids or ()):
            if item is None or item in self._seen:
                continue
            self._seen.add(item)
            for name in names:
                if text := _text(rows.columns[name][at]):
                    for values, cell in zip(found.values(), (item, name, text), strict=True):
                        values.append(cell)
        if found["item_id"]:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, ITEM_SCHEMA, compression="zstd")
            self._writer.write_table(pa.table(found, schema=ITEM_SCHEMA))
        return rows

    def close(self) -> None:
        """Finish the file. Raises OSError."""
        if self._writer is not None:
            self._writer.close()


def _text(value: Any) -> str:
    if value is ABSENT or value is None:
        return ""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).strip()[:LONGEST_TEXT]
