"""Rows of an import on their way to disk: a log may be larger than memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.importers.bulk import KEY, SPOOLED, Block

_ROWS, _CHARACTERS = 1 << 15, 1 << 26
"""A table ends after this many rows, or about this many bytes of text."""

_IN_MEMORY = 1 << 26
"""In bytes; more goes to a temporary file."""


class Spool:
    """Rows of an import, added in blocks and read back in tables.

    They lie compressed in memory, and in a temporary file once they take more than 64 MB.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._stream = pa.PythonFile(self._file, mode="w")
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_stream(self._stream, SPOOLED, options=options)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._characters = self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._written + self._rows

    def add(self, block: Block) -> None:
        """Keep the rows of a block."""
        batch = block.batch()
        while batch.num_rows:
            part = batch.slice(0, _ROWS - self._rows)
            batch = batch.slice(part.num_rows)
            self._waiting.append(part)
            self._rows += part.num_rows
            self._characters += pc.sum(pc.binary_length(part["raw_text"])).as_py() or 0
            if self._rows >= _ROWS or self._characters >= _CHARACTERS:
                self._writer.write_table(self._table(), max_chunksize=_ROWS)
                self._written += self._rows
                self._waiting, self._rows, self._characters = [], 0, 0

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._waiting, SPOOLED).combine_chunks()

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
            yield self._table()

    def place_of(self, key: tuple[Any, ...]) -> str | None:
        """The place of the first row with this `KEY`; None if there is none."""
        for table in self.tables():
            columns = [table[name].to_pylist() for name in (*KEY, "place")]
            for *own, place in zip(*columns, strict=True):
                if tuple(own) == key:
                    return str(place)
        return None
