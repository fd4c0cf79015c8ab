"""Read Parquet from elsewhere: whatever is wrong is one error that names file and column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files import require_regular

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)
"""What Arrow raises for a damaged file. A name in the footer that is not UTF-8, or a time that
Python cannot hold, is a ValueError or an OverflowError."""

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def read_parquet(path: Path, columns: Sequence[str] | None = None, hint: str = "") -> pa.Table:
    """The table in a Parquet file, or those of some columns that it has, checked by :func:`sound`.

    ``hint`` ends the error of a file that cannot be read. Raises JudgeSenseError.
    """
    try:
        require_regular(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns=None if columns is None else list(columns))
    except UNREADABLE as error:
        raise unreadable(path, error, hint) from error
    return sound(table, str(path))


def unreadable(path: Path, error: Exception, hint: str = "") -> JudgeSenseError:
    """The error of a file that cannot be read; ``hint`` ends it."""
    return JudgeSenseError(f"{path} cannot be read as Parquet ({error}){hint}")


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file, from its footer alone. Raises JudgeSenseError."""
    try:
        require_regular(path)
        return list(pq.read_schema(path).names)
    except UNREADABLE as error:
        raise unreadable(path, error) from error


def sound(rows: Rows, where: str) -> Rows:
    """The rows, if each column has a name of its own and its text is UTF-8.

    Arrow checks neither when it reads; later, half of its functions fail on such columns and the
    others do not notice. Raises JudgeSenseError naming ``where`` and the column.
    """
    names = rows.schema.names
    if doubled := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise JudgeSenseError(f"{where}: the column {doubled[0]!r} is there twice; keep one")
    for name, column in zip(names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise JudgeSenseError(f"{where}, {name}: a damaged column ({error})") from error
    return rows
