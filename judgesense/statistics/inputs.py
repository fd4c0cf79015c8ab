"""Checks of a caller's input, at the public doors: labels as codes, rows of numbers, clusters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes, Floats

Labels = Sequence[str] | npt.NDArray[Any]

OPTIONS = ("A", "B")
"""The labels of a comparative task."""

UNDECIDED = ("UNCLEAR", "REFUSED", "ERROR")
"""Labels without a decision: the answer cannot be read, the judge refused, the request failed."""


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
    if not isinstance(values, np.ndarray):
        values = list(values)
        lengths = [len(row) if is_ordered(row) else 0 for row in values]
        if ndim == 2 and len(set(lengths)) > 1:
            row = next(row for row, length in enumerate(lengths) if length != lengths[0])
            raise ValueError(
                f"{name}[{row}] has {lengths[row]} numbers and {name}[0] has {lengths[0]}: pass "
                "rows of equal length"
            )
    cells = np.asarray(values)
    if cells.dtype.kind not in "fiub":
        for place, cell in np.ndenumerate(np.asarray(values, dtype=object)):
            if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, _NUMBER):
                raise ValueError(f"{name}{_at(place)} is {cell!r}, not a number: pass numbers")
    try:
        array: Floats = cells.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} has a number that is too large") from error
    if array.size == 0:
        raise ValueError(f"{name} is empty: pass at least one row of at least one number")
    if array.ndim != ndim:
        raise ValueError(f"{name} has {array.ndim} dimensions: pass {ndim}")
    bad = ~(np.abs(array) < _LARGEST)
    if bad.any():
        place = tuple(int(axis) for axis in np.argwhere(bad)[0])
        raise ValueError(
            f"{name}{_at(place)} is {array[place]}: pass finite numbers, or leave out the row"
        )
    return array


_NUMBER = (float, int, np.floating, np.integer)

_LARGEST = 1e150
"""The squares of larger numbers overflow."""


def _at(place: tuple[int, ...]) -> str:
    return "".join(f"[{axis}]" for axis in place)


def positive_number(value: Any, name: str, example: str) -> float:
    """Return a finite number >= 0, or raise ValueError.

    >>> positive_number(1, "z", "1.0")
    1.0
    """
    known = isinstance(value, _NUMBER) and not isinstance(value, bool)
    if not (known and 0 <= value < math.inf):
        raise ValueError(
            f"{name} is {value!r}: pass a finite number of at least 0, such as {example}"
        )
    return float(value)


def encode(values: Labels, name: str, table: dict[str, int] | None = None) -> Codes:
    """Encode a stream of string labels as integers.

    Args:
        values: one string per row, a sequence or a one-dimensional numpy array.
        name: the argument's name, for messages.
        table: label -> code, extended in place (so that two streams share their codes).

    Returns:
        Codes, shape (n,).

    Raises:
        ValueError: not a sequence, or a row that is not a string (None, NaN, a number); names the
            row.

    >>> encode(["NO", "YES", "NO"], "decisions").tolist()
    [0, 1, 0]
    """
    table = {} if table is None else table
    if not is_ordered(values):
        raise ValueError(
            f"{name} is a {type(values).__name__}: pass a list or an array with one label per row"
        )
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(f"{name} has {values.ndim} dimensions: pass one label per row")
    rows = values.tolist() if isinstance(values, np.ndarray) else values
    if not set(map(type, rows)) <= {str}:
        for row, value in enumerate(rows):
            if not isinstance(value, str):
                raise ValueError(
                    f"{name}[{row}] is {value!r} ({type(value).__name__}), not a string: pass a "
                    "label such as 'YES', '4' or 'A', and 'UNCLEAR' if the answer cannot be read"
                )
    for label in sorted(set(rows).difference(table)):
        table[label] = len(table)
    return np.fromiter(map(table.__getitem__, rows), np.intp, len(rows))


def encode_pair(
    one: Labels, two: Labels, names: tuple[str, str] = ("references", "predictions")
) -> tuple[Codes, Codes, list[str]]:
    """Encode two streams of equal length with one table of labels; `names` are for messages.

    Returns:
        The codes of both, shape (n,) each, and the labels by code.

    Raises:
        ValueError: as `encode`; also unequal lengths and empty input.

    >>> first, second, labels = encode_pair(["A", "B"], ["B", "B"])
    >>> second.tolist(), labels
    ([1, 1], ['A', 'B'])
    """
    table: dict[str, int] = {}
    first = encode(one, names[0], table)
    second = encode(two, names[1], table)
    if len(first) != len(second):
        raise ValueError(
            f"{names[0]} has {len(first)} rows and {names[1]} has {len(second)}: "
            "pass one decision under each prompt for every pair"
        )
    if not len(first):
        raise ValueError(f"{names[0]} and {names[1]} are empty: pass at least one pair")
    return first, second, list(table)


def check_level(confidence_level: float) -> float:
    """Return the confidence level, or raise ValueError unless it lies strictly within (0, 1).

    >>> check_level(0.95)
    0.95
    """
    if not isinstance(confidence_level, (int, float, np.floating)) or not 0 < confidence_level < 1:
        raise ValueError(
            f"confidence_level is {confidence_level!r}: pass a number between 0 and 1, such as 0.95"
        )
    return float(confidence_level)


def check_resamples(n_resamples: int) -> int:
    """Return the number of resamples, or raise ValueError unless it is an integer of at least 1.

    >>> check_resamples(100)
    100
    """
    if not isinstance(n_resamples, (int, np.integer)) or n_resamples < 1:
        raise ValueError(f"n_resamples is {n_resamples!r}: pass an integer of at least 1")
    return int(n_resamples)


def check_seed(seed: int) -> int:
    """Return the seed, or raise ValueError unless it is an integer of at least 0.

    >>> check_seed(7)
    7
    """
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed is {seed!r}: pass an integer of at least 0")
    return int(seed)


def check_labels(labels: Collection[str], name: str) -> frozenset[str]:
    """Return a set of labels, or raise ValueError unless it is a collection of strings.

    A single string is refused: `"A" in "UNCLEAR"` is true and would silently drop decisions.

    >>> sorted(check_labels(["TIE", "C"], "ties"))
    ['C', 'TIE']
    """
    if not is_several(labels):
        raise ValueError(f"{name} is {labels!r}: pass a list of strings")
    for label in labels:
        if not isinstance(label, str):
            raise ValueError(f"{name} holds {label!r}: pass labels as strings")
    return frozenset(labels)


def cluster_codes(clusters: Any, n: int) -> tuple[Codes, int]:
    """Encode which rows belong together: the one owner of cluster identity.

    Args:
        clusters: one id per row, strings or integers; None makes every row a cluster of its own.
        n: number of rows.

    Returns:
        Codes 0..k-1, shape (n,), and the number of clusters k.

    Raises:
        ValueError: a length other than n, or an id that is neither a string nor an integer.

    >>> codes, k = cluster_codes(["q1", "q1", "q2"], 3)
    >>> codes.tolist(), k
    ([0, 0, 1], 2)
    """
    if clusters is None:
        return np.arange(n, dtype=np.intp), n
    if not is_ordered(clusters):
        raise ValueError(
            f"the clusters (item_ids) are a {type(clusters).__name__}: pass one id per row"
        )
    if len(clusters) != n:
        raise ValueError(
            f"the clusters (item_ids) have {len(clusters)} rows and the decisions {n}: "
            "pass one id per row"
        )
    if isinstance(clusters, np.ndarray) and clusters.dtype.kind in "iu" and clusters.ndim == 1:
        lowest, highest = (int(clusters.min()), int(clusters.max())) if n else (0, 0)
        if highest - lowest <= 4 * n:
            # Ids close to row numbers need no sorting.
            offsets = (clusters - lowest).astype(np.intp, copy=False)
            place = np.cumsum(np.bincount(offsets) > 0) - 1
            return place[offsets], int(place[-1]) + 1 if n else 0
        distinct, inverse = np.unique(clusters, return_inverse=True)
        return inverse.astype(np.intp, copy=False), len(distinct)
    ids = clusters.tolist() if isinstance(clusters, np.ndarray) else list(clusters)
    if not set(map(type, ids)) <= {str, int}:
        for row, value in enumerate(ids):
            if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
                raise ValueError(
                    f"the cluster (item id) of row {row} is {value!r}: pass a string or an integer"
                )
    table = {value: code for code, value in enumerate(dict.fromkeys(ids))}
    codes = np.fromiter(map(table.__getitem__, ids), dtype=np.intp, count=n)
    return codes, len(table)
