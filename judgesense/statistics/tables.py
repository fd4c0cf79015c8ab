"""Tables of scores as arrays: the one place that checks rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def is_ordered(values: Any) -> bool:
    """Whether values are rows: countable, in an order, and not a single string.

    >>> is_ordered(["A", "B"]), is_ordered("AB"), is_ordered({"A", "B"})
    (True, False, False)
    """
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Set, Mapping))


def number_table(values: Any, name: str, row_is: str, column_is: str) -> Floats:
    """Return rows of finite numbers as a float array.

    Args:
        values: rows of equal length, nested sequences or a two-dimensional array.
        name: the argument's name, for messages.
        row_is: the kind of row ("item"), for messages.
        column_is: the kind of column ("paraphrase"), for messages.

    Returns:
        Shape (rows, columns), at least (1, 1).

    Raises:
        ValueError: not a table, empty, ragged, or a cell that is not a finite number; names the
            place.

    >>> number_table([[1, 2], [3, 4]], "predictions", "item", "paraphrase").shape
    (2, 2)
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()  # iterating a data frame yields its column names
    if not is_ordered(values):
        raise ValueError(
            f"{name} is a {type(values).__name__}: pass one row of numbers for each {row_is}"
        )
    if len(values) == 0:
        raise ValueError(f"{name} is empty: pass one row of numbers for each {row_is}")
    if not (isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "fiu"):
        _check_rows(list(values), name, row_is, column_is)
    try:
        table: Floats = np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} holds an integer too large for a float: pass scores") from None
    if table.shape[1] == 0:
        raise ValueError(f"{name}[0] is empty: pass one number for each {column_is}")
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = (int(axis) for axis in np.argwhere(bad)[0])
        raise ValueError(
            f"{name}[{row}][{column}] ({row_is} {row}, {column_is} {column}) is "
            f"{table[row, column]}: pass a finite number, or leave out the whole {row_is}"
        )
    return table


def _check_rows(rows: list[Any], name: str, row_is: str, column_is: str) -> None:
    width: int | None = None
    for index, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise ValueError(
                f"{name}[{index}] is {row!r}: pass a list with one number for each {column_is}"
            )
        if width is None:
            width = len(row)
        elif len(row) != width:
            raise ValueError(
                f"{name}[{index}] has {len(row)} numbers and {name}[0] has {width}: every {row_is} "
                f"needs one number for each {column_is}, in the same order"
            )
        kinds = set(map(type, row))
        if kinds <= {float, int}:
            continue
        for column, cell in enumerate(row):
            if not _is_number(cell):
                raise ValueError(
                    f"{name}[{index}][{column}] ({row_is} {index}, {column_is} {column}) is "
                    f"{cell!r}, not a number: pass a finite number, or leave out the whole {row_is}"
                )


def _is_number(value: Any) -> bool:
    numeric = isinstance(value, (float, int, np.floating, np.integer))
    return numeric and not isinstance(value, (bool, np.bool_))


def is_finite(value: Any) -> bool:
    """Whether a value is a number (booleans excluded) and finite as a float.

    >>> is_finite(2), is_finite(True), is_finite(float("nan"))
    (True, False, False)
    """
    try:
        return _is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def positive_number(value: Any, name: str, example: str) -> float:
    """Return a finite number >= 0, or raise ValueError.

    >>> positive_number(1, "z", "1.0")
    1.0
    """
    if not is_finite(value) or value < 0:
        raise ValueError(
            f"{name} is {value!r}: pass a finite number of at least 0, such as {example}"
        )
    return float(value)
