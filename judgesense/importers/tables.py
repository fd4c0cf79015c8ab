"""CSV, TSV, JSON lines and Parquet tables under any column names.

A row holds one decision, or one of each judge in a column of its own.
"""

from __future__ import annotations

from judgesense.files.tables import SUFFIXES, read_table_rows
from judgesense.importers.importer import Importer

IMPORTER = Importer(
    name="table",
    summary="CSV, TSV, JSON lines or Parquet; a decision per row, or a column per judge",
    patterns=tuple(f"*{suffix}" for suffix in SUFFIXES),
    read=lambda path, options: read_table_rows(path, options.encoding),
    by_column=True,
)
