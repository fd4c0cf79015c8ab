"""CSV, TSV, JSON lines and Parquet tables with one decision per row, under any column names."""

from __future__ import annotations

from judgesense.files.tables import SUFFIXES, read_table, read_table_rows
from judgesense.importers.protocol import Importer

IMPORTER = Importer(
    name="table",
    summary="CSV, TSV, JSON lines or Parquet, one decision per row",
    patterns=tuple(f"*{suffix}" for suffix in SUFFIXES),
    read=lambda path, options: read_table(path, options.encoding),
    read_rows=lambda path, options: read_table_rows(path, options.encoding),
)
