"""What two results share: the pairing that every comparison of two results starts from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from judgesense.statistics.arrays import Codes

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def first_rows(keys: Iterable[K], rows: Iterable[int]) -> dict[K, int]:
    """The first row of each key.

    >>> first_rows("aba", [4, 5, 6])
    {'a': 4, 'b': 5}
    """
    return {key: found[0] for key, found in grouped(keys, rows).items()}


def shared_rows(one: Mapping[K, int], two: Mapping[K, int]) -> tuple[Codes, Codes]:
    """The rows of the keys that both results have, shape (n,) each, in the order of the first.

    >>> shared_rows({"a": 4, "b": 5}, {"c": 0, "b": 1})
    (array([5]), array([1]))
    """
    rows = [(row, two[key]) for key, row in one.items() if key in two]
    first, second = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return first, second


def grouped(keys: Iterable[K], values: Iterable[V]) -> dict[K, list[V]]:
    """The values by key, both in order of appearance.

    >>> grouped("aba", [1, 2, 3])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return groups


def most_frequent(verdicts: Iterable[str]) -> str:
    """The most frequent verdict; the first by name of several.

    >>> most_frequent(["YES", "NO"])
    'NO'
    """
    return Counter(sorted(verdicts)).most_common(1)[0][0]
