"""Read Parquet from elsewhere: whatever is wrong is one error that names file and column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.atomic import require_regular

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
    return JudgeSenseError(f"{path} cannot be read as Parquet ({_one_line(error)}){hint}")


def in_schema(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """The columns of a schema, in its order and types; the table has them all.

    Whole numbers and the like become text where text belongs; times and nested values do not.
    Raises JudgeSenseError naming ``where`` and the column of another type.

    >>> in_schema(pa.table({"id": [1]}), pa.schema([("id", pa.string())]), "t.parquet")["id"][0]
    <pyarrow.StringScalar: '1'>
    """
    columns = []
    for field in schema:
        column = table[field.name]
        try:
            if field.type == pa.string() and not _is_text(column.type):
                raise pa.ArrowInvalid("write the column as text")
            columns.append(column.cast(field.type))
        except UNREADABLE as error:
            wanted = "text" if field.type == pa.string() else field.type
            raise JudgeSenseError(
                f"{where}, {field.name}: the column has another type: expected {wanted}, found "
                f"{column.type} ({_one_line(error)})"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_null(kind)
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file, from its footer alone. Raises JudgeSenseError."""
    try:
        require_regular(path)
        return list(pq.read_schema(path).names)
    except UNREADABLE as error:
        raise unreadable(path, error) from error


def sound(rows: Rows, where: str) -> Rows:
    """The rows, if each column has a name of its own, its text is UTF-8 and its time zone exists.

    Arrow checks none of these when it reads; later, half of its functions fail on such columns and
    the others do not notice. Raises JudgeSenseError naming ``where`` and the column.
    """
    names = rows.schema.names
    if doubled := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise JudgeSenseError(f"{where}: the column {doubled[0]!r} is there twice; keep one")
    for name, column in zip(names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise JudgeSenseError(f"{where}, {name}: a damaged column ({error})") from error
        for zone in _time_zones(column.type):
            try:
                pa.lib.string_to_tzinfo(zone)
            except (KeyError, ValueError) as error:  # Python's error for an unknown zone is either
                raise JudgeSenseError(
                    f"{where}, {name}: unknown time zone {zone!r}; write the column as text"
                ) from error
    return rows


def _time_zones(kind: pa.DataType) -> Iterator[str]:
    """The time zones in a type, however deep they lie."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        yield kind.tz
    elif pa.types.is_nested(kind):
        for number in range(kind.num_fields):
            yield from _time_zones(kind.field(number).type)
