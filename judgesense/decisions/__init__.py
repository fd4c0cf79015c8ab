"""The decision log: its schema (`log`) and `streams.view`, the start of every measurement."""

from judgesense.decisions.log import (
    PARTS,
    SCHEMA,
    SCORINGS,
    STATUSES,
    conform,
    encode_part,
    part_files,
    read_log,
    read_part,
    require_parts,
    write_part,
)

__all__ = [
    "PARTS",
    "SCHEMA",
    "SCORINGS",
    "STATUSES",
    "conform",
    "encode_part",
    "part_files",
    "read_log",
    "read_part",
    "require_parts",
    "write_part",
]
