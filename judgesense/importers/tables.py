"""CSV, TSV, JSONL and Parquet tables with one decision a row and any column names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from judgesense.importers.files import Record, read_table

DEFAULTS: Mapping[str, str] = {}
"""A table's own names are the decision log's unless the column map says otherwise."""


def read(source: Path, *, encoding: str = "utf-8") -> Iterator[Record]:
    """The rows of a table file; see :func:`judgesense.importers.files.read_table`."""
    return read_table(source, encoding)
