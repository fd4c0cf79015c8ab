"""Checks of a caller's input, at the public doors: labels as codes, rows of numbers, clusters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes, Floats

Labels = Sequence[str] | Sequence[int] | Sequence[str | int] | npt.NDArray[Any]

OPTIONS = ("A", "B")
"""The labels of a comparative task."""

UNDECIDED = ("UNCLEAR", "REFUSED", "ERROR")
"""Labels without a decision: the answer cannot be read, the judge refused, the request failed."""

_NUMBER = (float, int, np.floating, np.integer)

_LARGEST = 1e150
"""The squares of larger numbers overflow."""


def is_ordered(values: Any) -> bool:
    """Whether values are rows: several, and in an order.

    >>> is_ordered(["A", "B"]), is_ordered("AB"), is_ordered({"A", "B"}), is_ordered(np.array("A"))
    (True, False, False, False)
    """
    single = isinstance(values, (str, bytes, bytearray, type, Set, Mapping))
    if single or getattr(values, "ndim", 1) == 0:
        return False
    return hasattr(values, "__len__") and hasattr(values, "__iter__")


def check_number(
    value: Any, name: str, least: float, most: float = math.inf, *, whole: bool = False
) -> Any:
    """Return a number from `least` to `most`, or raise ValueError."""
    is_number = isinstance(value, (int, np.integer) if whole else _NUMBER)
    if not is_number or isinstance(value, bool) or not least <= value <= most or value == math.inf:
        limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        kind = "whole number" if whole else "number"
        raise ValueError(f"{name} is {value!r}: pass a {kind} {limits}")
    return int(value) if whole else float(value)


def check_level(confidence_level: float) -> float:
    """Return the confidence level, or raise ValueError unless it lies strictly within (0, 1)."""
    level: float = check_number(confidence_level, "confidence_level", 0, 1)
    if level in (0, 1):
        raise ValueError(f"confidence_level is {level}: pass a number between 0 and 1")
    return level


def check_labels(labels: Collection[Any], name: str) -> frozenset[str]:
    """Return the texts of a set of labels, or raise ValueError unless it is a collection of them.

    A single string is refused: `"A" in "UNCLEAR"` is true and would silently drop decisions.
    """
    is_collection = is_ordered(labels) or isinstance(labels, Set)
    if not is_collection:
        raise ValueError(f"{name} is {labels!r}: pass a list of strings")
    return frozenset(label_text(label, f"a label of {name}") for label in labels)


def numbers(values: Any, name: str, ndim: int = 1) -> Floats:
    """Return finite numbers as a float array of `ndim` dimensions (1, or 2 for a table).

    `values` are numbers, or rows of numbers of equal length, also in an array or a data frame.

    Raises:
        ValueError: not numbers, ragged, of another shape, empty, or not finite; names the place.

    >>> numbers([[1, 2], [3, 4]], "predictions", 2).shape
    (2, 2)
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()  # iterating a data frame yields its column names
    if not is_ordered(values):
        raise ValueError(f"{name} is a {type(values).__name__}: pass a list of numbers")
    rows = values if isinstance(values, np.ndarray) else list(values)
    lengths = [len(row) if is_ordered(row) else 0 for row in rows] if ndim == 2 else []
    if len(set(lengths)) > 1:
        row = next(row for row, length in enumerate(lengths) if length != lengths[0])
        raise ValueError(
            f"{name}[{row}] has {lengths[row]} numbers and {name}[0] has {lengths[0]}: pass rows "
            "of equal length"
        )
    cells = np.asarray(rows)
    if cells.dtype.kind not in "fiub":
        cells = np.asarray(rows, dtype=object)
        for place, cell in np.ndenumerate(cells):
            if isinstance(cell, bool) or not isinstance(cell, _NUMBER):
                raise ValueError(f"{_at(name, place)} is {cell!r}, not a number: pass numbers")
    if cells.size == 0:
        raise ValueError(f"{name} is empty: pass at least one row of at least one number")
    if cells.ndim != ndim:
        raise ValueError(f"{name} has {cells.ndim} dimensions: pass an array with {ndim}")
    for place in np.argwhere(~(np.abs(cells) < _LARGEST))[:1].tolist():
        value = cells[tuple(place)]
        raise ValueError(
            f"{_at(name, place)} is {value}: pass finite numbers, or leave out the row"
        )
    return cells.astype(np.float64)


def _at(name: str, place: Sequence[int]) -> str:
    return name + "".join(f"[{axis}]" for axis in place)


def encode(values: Labels, name: str, table: dict[str, int] | None = None) -> Codes:
    """Encode a stream of labels as integers, shape (n,).

    Args:
        values: one label per row, a sequence or a one-dimensional array, tensor or column; a
            string, a whole number (4 and 4.0 are the label '4'), or a boolean ('True').
        name: the argument's name, for messages.
        table: label -> code, extended in place (so that two streams share their codes).

    Raises:
        ValueError: not a sequence, or a row that is no label (None, NaN, 4.5); names the row.

    >>> encode(["NO", "YES", "NO"], "decisions").tolist(), encode([4, "4", 5.0], "scores").tolist()
    ([0, 1, 0], [0, 0, 1])
    """
    table = {} if table is None else table
    if not is_ordered(values) or getattr(values, "ndim", 1) != 1:
        raise ValueError(
            f"{name} is a {type(values).__name__}: pass a list or an array with one label per row"
        )
    rows = label_texts(values, name)
    for label in sorted(set(rows).difference(table)):
        table[label] = len(table)
    return np.fromiter(map(table.__getitem__, rows), np.intp, len(rows))


def label_text(value: Any, place: str) -> str:
    """The text of a label. Raises ValueError, naming its place, for anything else.

    >>> label_text("A", ""), label_text(3.0, ""), label_text(np.bool_(True), "")
    ('A', '3', 'True')
    """
    if isinstance(value, str):
        return str(value)
    # A scalar of numpy or torch, as a Python object.
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
    if isinstance(plain, (bool, int)):
        return str(plain)
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    raise ValueError(
        f"{place} is {value!r} ({type(value).__name__}), not a string, a whole number or a "
        "boolean: pass a label such as 'YES', 4 or 'A', and 'UNCLEAR' if the answer cannot be read"
    )


def label_texts(values: Any, name: str) -> Sequence[str]:
    """The texts of labels, one per row. Raises ValueError as `label_text`, naming the row."""
    rows = _plain(values)
    if set(map(type, rows)) <= {str}:
        return rows
    return [label_text(value, f"{name}[{row}]") for row, value in enumerate(rows)]


def _plain(values: Any) -> Sequence[Any]:
    """The values of an array, tensor or column as Python objects; other sequences as they are."""
    plain: Sequence[Any] = values.tolist() if hasattr(values, "tolist") else values
    return plain


def encode_pair(references: Labels, predictions: Labels) -> tuple[Codes, Codes, list[str]]:
    """The codes of two streams of equal length, shape (n,) each, and the labels by code.

    Raises:
        ValueError: as `encode`; also unequal lengths and empty input.

    >>> first, second, labels = encode_pair(["A", "B"], ["B", "B"])
    >>> second.tolist(), labels
    ([1, 1], ['A', 'B'])
    """
    table: dict[str, int] = {}
    first = encode(references, "references", table)
    second = encode(predictions, "predictions", table)
    if len(first) != len(second):
        raise ValueError(
            f"references has {len(first)} rows and predictions has {len(second)}: "
            "pass one decision under each prompt for every pair"
        )
    if not len(first):
        raise ValueError("references and predictions are empty: pass at least one pair")
    return first, second, list(table)


def cluster_codes(clusters: Any, n: int) -> tuple[Codes, int]:
    """Encode which rows belong together: codes 0..k-1, shape (n,), and their number k.

    `clusters` has one id per row, strings or integers; None makes every row a cluster of its own.

    Raises:
        ValueError: a length other than n, or an id that is neither a string nor an integer.

    >>> codes, k = cluster_codes(["q1", "q1", "q2"], 3)
    >>> codes.tolist(), k
    ([0, 0, 1], 2)
    """
    if clusters is None:
        return np.arange(n, dtype=np.intp), n
    if not is_ordered(clusters) or len(clusters) != n:
        raise ValueError(f"the clusters (item_ids) are not {n} ids: pass a list with one per row")
    if isinstance(clusters, np.ndarray) and clusters.dtype.kind in "iu" and clusters.ndim == 1:
        lowest, highest = (int(clusters.min()), int(clusters.max())) if n else (0, 0)
        if highest - lowest <= 4 * n:
            # Ids close to row numbers need no sorting.
            offsets = (clusters - lowest).astype(np.intp, copy=False)
            is_used = np.bincount(offsets) > 0
            if is_used.all():
                return offsets, len(is_used)
            place = np.cumsum(is_used) - 1
            return place[offsets], int(place[-1]) + 1
        distinct, inverse = np.unique(clusters, return_inverse=True)
        return inverse.astype(np.intp, copy=False), len(distinct)
    ids = list(_plain(clusters))
    if not set(map(type, ids)) <= {str, int}:
        for row, value in enumerate(ids):
            if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
                raise ValueError(
                    f"the cluster (item id) of row {row} is {value!r}: pass a string or an integer"
                )
    table = {value: code for code, value in enumerate(dict.fromkeys(ids))}
    codes = np.fromiter(map(table.__getitem__, ids), dtype=np.intp, count=n)
    return codes, len(table)
