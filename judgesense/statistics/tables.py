"""Numbers as arrays: the one place that checks rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats


def is_several(values: Any) -> bool:
    """Whether values can be counted and gone through: not a single value, text or a class.

    >>> is_several(["A"]), is_several({"A"}), is_several("A"), is_several(np.array("A"))
    (True, True, False, False)
    """
    if isinstance(values, (str, bytes, bytearray, type)) or getattr(values, "ndim", 1) == 0:
        return False
    return hasattr(values, "__len__") and hasattr(values, "__iter__")


def is_ordered(values: Any) -> bool:
    """Whether values are rows: several, and in an order.

    >>> is_ordered(["A", "B"]), is_ordered("AB"), is_ordered({"A", "B"})
    (True, False, False)
    """
    return is_several(values) and not isinstance(values, (Set, Mapping))


def numbers(values: Any, name: str, ndim: int = 1) -> Floats:
    """Return finite numbers as a float array of `ndim` dimensions (1, or 2 for a table).

    Args:
        values: numbers, or rows of numbers of equal length; an array or a data frame will do.
        name: the argument's name, for messages.
        ndim: the number of dimensions.

    Raises:
        ValueError: not numbers, ragged, of another shape, empty, or not finite; names the place.

    >>> numbers([[1, 2], [3, 4]], "predictions", 2).shape
    (2, 2)
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()  # iterating a data frame yields its column names
    if not (is_ordered(values) or isinstance(values, Iterator)):
        raise ValueError(f"{name} is a {type(values).__name__}: pass a list of numbers")
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "fiub"):
        values = list(values)
        _check_cells(values, name, ndim)
    try:
        array: Floats = np.asarray(values, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} cannot be read as numbers ({error}): pass numbers") from None
    if array.size == 0:
        raise ValueError(f"{name} is empty: pass at least one row of at least one number")
    if array.ndim != ndim:
        raise ValueError(f"{name} has {array.ndim} dimensions: pass {ndim}")
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(axis) for axis in np.argwhere(bad)[0])
        at = "][".join(map(str, place))
        raise ValueError(
            f"{name}[{at}] is {array[place]}: pass finite numbers, or leave out the row"
        )
    return array


def _check_cells(values: Sequence[Any], name: str, ndim: int) -> None:
    """Raise ValueError at the first cell that is not a number, and at the first ragged row."""
    kinds = set(map(type, values))
    if ndim == 1 and (kinds <= {float, int} or kinds <= {bool, np.bool_}):
        return
    for row, value in enumerate(values):
        place = f"{name}[{row}]"
        if ndim == 1 and not _is_number(value):
            raise ValueError(f"{place} is {value!r}, not a number: pass finite numbers")
        if ndim > 1:
            if not is_ordered(value):
                raise ValueError(f"{place} is {value!r}: pass a list of numbers")
            if len(value) != len(values[0]):
                raise ValueError(
                    f"{place} has {len(value)} numbers and {name}[0] has {len(values[0])}: pass "
                    "rows of equal length"
                )
            _check_cells(value, place, ndim - 1)


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
