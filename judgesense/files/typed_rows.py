"""Rows of a table file as objects of a declared shape, and the types of their cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, FiniteFloat

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import S, validate
from judgesense.files.tables import Record, read_table


def number_of(text: str | None) -> float | None:
    """A cell or label as a finite number; None if it is not one.

    >>> number_of("4"), number_of("3.5"), number_of("YES")
    (4.0, 3.5, None)
    """
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def as_id(value: Any) -> Any:
    """Ids and labels as text: 4 and 4.0 are "4", true is "true"; nested values stay as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else value


def _empty_as_none(value: Any) -> Any:
    """An empty cell of a CSV file is no value; NaN is none either."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if isinstance(value, str) and not value.strip() else value


def _as_label(value: Any) -> Any:
    text = as_id(value)
    if not isinstance(text, str):
        return text
    number = number_of(text)
    # Spreadsheets write the label 4 as 4.0.
    return str(int(number)) if number is not None and number.is_integer() else text.strip()


Id = Annotated[str, BeforeValidator(as_id), BeforeValidator(_empty_as_none)]
SomeId = Annotated[str | None, BeforeValidator(as_id), BeforeValidator(_empty_as_none)]
SomeLabel = Annotated[str | None, BeforeValidator(_as_label), BeforeValidator(_empty_as_none)]
SomeNumber = Annotated[FiniteFloat | None, BeforeValidator(_empty_as_none)]


def typed_rows(
    path: Path, shape: type[S], columns: Mapping[str, str], flag: str
) -> Iterator[tuple[S, Record]]:
    """The rows of a table file as objects of a shape, each with its record.

    ``columns`` are the file's names of some of the shape's columns, which the option ``flag`` sets;
    columns without a default must be there. Raises JudgeSenseError for no such field or column, or
    a cell that does not fit; file, row and column are named.
    """
    fields = shape.model_fields
    if unknown := sorted(columns.keys() - fields.keys()):
        raise JudgeSenseError(
            f"{flag}: {unknown[0]!r} is not a column; choose from {', '.join(fields)}"
        )
    required = [name for name, field in fields.items() if field.is_required() or name in columns]
    for record in read_table(path):
        values = record.values
        if absent := [name for name in required if columns.get(name, name) not in values]:
            raise JudgeSenseError(
                f"{record.place}: no column "
                f"{' and '.join(repr(columns.get(name, name)) for name in absent)}; its columns: "
                f"{', '.join(map(str, values))}. Name yours with {flag} {absent[0]}=YOURS"
            )
        renamed = {name: values[column] for name, column in columns.items()}
        yield validate(shape, {**values, **renamed}, record.place, "a row of the table"), record
