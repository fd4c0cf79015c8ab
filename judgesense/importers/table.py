"""Tables of your own: CSV, TSV, JSON lines or Parquet, read by a column map."""

from judgesense.files.tables import SUFFIXES, read_table_rows
from judgesense.importers import Importer

IMPORTER = Importer(
    summary="CSV, TSV, JSON lines or Parquet; one decision per row, or one column per judge",
    patterns=tuple(f"*{suffix}" for suffix in SUFFIXES),
    read=lambda path, *_: read_table_rows(path),
)
