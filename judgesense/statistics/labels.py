"""Label streams as integer codes: the one place that checks and encodes a caller's input."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes
from judgesense.statistics.tables import is_ordered, is_several

Labels = Sequence[str] | npt.NDArray[Any]

_CHUNK = 1 << 16


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
    rows = _as_rows(values, name)
    codes = np.empty(len(rows), dtype=np.intp)
    # In chunks, so that a million numpy strings do not become Python objects all at once.
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        chunk = part.tolist() if isinstance(part, np.ndarray) else part
        try:
            part_codes = np.fromiter(map(table.__getitem__, chunk), np.intp, len(chunk))
        except (KeyError, TypeError):
            _learn(table, chunk, name, start)
            part_codes = np.fromiter(map(table.__getitem__, chunk), np.intp, len(chunk))
        codes[start : start + len(chunk)] = part_codes
    return codes


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
    if (
        isinstance(confidence_level, bool)
        or not isinstance(confidence_level, (int, float, np.floating))
        or not 0 < confidence_level < 1
    ):
        raise ValueError(
            f"confidence_level is {confidence_level!r}: pass a number between 0 and 1, such as 0.95"
        )
    return float(confidence_level)


def check_resamples(n_resamples: int) -> int:
    """Return the number of resamples, or raise ValueError unless it is an integer of at least 1.

    >>> check_resamples(100)
    100
    """
    if (
        isinstance(n_resamples, bool)
        or not isinstance(n_resamples, (int, np.integer))
        or n_resamples < 1
    ):
        raise ValueError(f"n_resamples is {n_resamples!r}: pass an integer of at least 1")
    return int(n_resamples)


def check_seed(seed: int) -> int:
    """Return the seed, or raise ValueError unless it is an integer of at least 0.

    >>> check_seed(7)
    7
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
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


def _as_rows(values: Labels, name: str) -> Any:
    """Something with len and slices: a list, a tuple or a one-dimensional array."""
    if not is_ordered(values):
        raise ValueError(
            f"{name} is a {type(values).__name__}: pass a list or an array with one label per row"
        )
    if isinstance(values, (list, tuple)):
        return values
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions: pass one label per row")
    return array


def _learn(table: dict[str, int], chunk: Sequence[Any], name: str, start: int) -> None:
    """Add the chunk's new labels to the table; ValueError names a row that is not a label."""
    for row, value in enumerate(chunk, start):
        if not isinstance(value, str):
            raise ValueError(
                f"{name}[{row}] is {value!r} ({type(value).__name__}), not a string: pass a label "
                "such as 'YES', '4' or 'A', and 'UNCLEAR' if the answer cannot be read"
            )
    for label in sorted(set(chunk).difference(table)):
        table[label] = len(table)
