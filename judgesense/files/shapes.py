"""Declared shapes of foreign data: what does not fit is named, with file, row and field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgesense.errors import JudgeSenseError

_OBJECT = re.compile(r"a valid dictionary(?: or instance of \w+)?")
"""What pydantic calls an object; no user has seen the name of the class."""


class Shape(BaseModel):
    """An object of a foreign file: the fields that are read. Others are allowed and ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OwnShape(Shape):
    """An object of a file that JudgeSense wrote: its numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)


Count = Annotated[int, Field(ge=0, lt=2**31)]
"""A number of times, from 0, that fits a column of 32 bits."""

S = TypeVar("S", bound=Shape)


def fit(shape: type[S], values: Any, place: str, what: str) -> S:
    """``values`` as an object of a shape; ``what`` names what was expected, such as "a sample".

    Raises JudgeSenseError, with ``place``, the path of the first field that does not fit, what was
    expected there and what was found.

    >>> class Row(Shape):
    ...     score: float
    >>> fit(Row, {"score": 0.5, "note": "x"}, "log.json, row 1", "a row").score
    0.5
    >>> fit(Row, {"score": "high"}, "log.json, row 1", "a row")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: log.json, row 1, score: not a row: input should be a valid \
number, unable to parse string as a number; found 'high'
    """
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = _path(values, first["loc"], first["type"] == "missing")
        where = f"{place}, {field.lstrip('.')}" if field else place
        if first["type"] == "missing":
            raise JudgeSenseError(f"{where}: not {what}: this field is missing") from error
        expected = _OBJECT.sub("an object", first["msg"][:1].lower() + first["msg"][1:])
        raise JudgeSenseError(
            f"{where}: not {what}: {expected}; found {_short(first['input'])}"
        ) from error


def _path(values: Any, loc: Sequence[int | str], missing: bool) -> str:
    """Where a field is, as ``a.b[0]``, without the names that pydantic gives to alternatives."""
    path = ""
    for number, at in enumerate(loc, 1):
        if isinstance(at, int) and isinstance(values, list):
            path, values = f"{path}[{at}]", values[at] if at < len(values) else None
        elif isinstance(values, Mapping) and (at in values or (missing and number == len(loc))):
            path, values = f"{path}.{at}", values.get(at)
    return path


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
