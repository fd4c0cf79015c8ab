"""What a foreign log has on each item."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.columns import ColumnMap, read_columns
from judgesense.importers.rows import texts_of
from judgesense.log.folder import ITEMS_FILE, ITEMS_OF_TASKS

LONGEST_TEXT = 4000
"""Longer cells of columns that no figure needs are cut."""


class ItemColumns:
    """Writes ``items.parquet``: what a file has on each item in the columns that neither the column
    map nor ``read`` names."""

    def __init__(self, folder: Path, columns: ColumnMap, read: Collection[str]) -> None:
        self._path, self._columns = folder / ITEMS_FILE, columns
        self._read = {*read} | read_columns(columns)
        self._seen: set[tuple[str, str | None]] = set()
        self._writer: pq.ParquetWriter | None = None

    def kept(self, rows: Rows) -> Rows:
        """The rows, after their items' texts are written. Raises OSError."""
        names = [name for name in rows.columns if name not in self._read]
        ids = texts_of(self._columns.column(rows, "item_id")) if names else None
        tasks = texts_of(self._columns.column(rows, "task")) if names else None
        found = []
        for at, item in enumerate(ids or ()):
            task = tasks[at] if tasks else None
            if item is not None and (item, task) not in self._seen:
                self._seen.add((item, task))
                cells = ((name, text_of(rows.columns[name][at])) for name in names)
                found += [(item, name, text, task) for name, text in cells if text]
        if found:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, ITEMS_OF_TASKS, compression="zstd")
            columns = list(map(list, zip(*found, strict=True)))
            self._writer.write_table(pa.table(columns, schema=ITEMS_OF_TASKS))
        return rows

    def close(self) -> None:
        """Finish the file. Raises OSError."""
        if self._writer is not None:
            self._writer.close()


def text_of(value: Any) -> str:
    """A cell of a column that no figure needs; "" for a blank one."""
    if value is ABSENT or value is None:
        return ""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).replace("\0", "").strip()[:LONGEST_TEXT]
