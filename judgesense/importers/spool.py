"""Rows of an import on their way to disk: a log may be larger than memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Self

import pyarrow as pa

from judgesense.decisions import SCHEMA

_ROWS, _CHARACTERS = 1 << 15, 1 << 26
"""A table ends after this many rows, or this many characters of text."""

_IN_MEMORY = 1 << 26
"""In bytes; more goes to a temporary file."""

SPOOLED = pa.schema([*SCHEMA, ("gold_flips", pa.bool_()), ("place", pa.string())])


class Spool:
    """Rows (`judgesense.importers.rows.row_of`), added one by one and read back in tables.

    They lie compressed in memory, and in a temporary file once they take more than 64 MB.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._stream = pa.PythonFile(self._file, mode="w")
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_stream(self._stream, SPOOLED, options=options)
        self._rows: list[dict[str, Any]] = []
        self._characters = self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._written + len(self._rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        self._rows.append(row)
        self._characters += len(row["raw_text"] or "")
        if len(self._rows) >= _ROWS or self._characters >= _CHARACTERS:
            self._writer.write_batch(self._batch())
            self._written += len(self._rows)
            self._rows, self._characters = [], 0

    def _batch(self) -> pa.RecordBatch:
        columns = [
            pa.array([row[field.name] for row in self._rows], field.type) for field in SPOOLED
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SPOOLED)

    def tables(self) -> Iterator[pa.Table]:
        """All rows, some at a time, in the order in which they came."""
        end = self._file.tell()
        self._file.seek(0)
        try:
            left = self._written
            for batch in pa.ipc.open_stream(pa.PythonFile(self._file, mode="r")) if left else ():
                yield pa.Table.from_batches([batch])
                left -= len(batch)
                if not left:
                    break
        finally:
            self._file.seek(end)
        if self._rows:
            yield pa.Table.from_batches([self._batch()])

    def values(self, number: int, names: Sequence[str]) -> tuple[Any, ...]:
        """The values of one row, counted from 0, in these columns."""
        if number >= self._written:
            return tuple(self._rows[number - self._written][name] for name in names)
        for table in self.tables():
            if number < len(table):
                (row,) = table.select(list(names)).slice(number, 1).to_pylist()
                return tuple(row[name] for name in names)
            number -= len(table)
        raise IndexError(number)
