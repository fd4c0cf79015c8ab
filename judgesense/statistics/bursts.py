"""Do errors come in bursts along an order, such as that of time?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats

NOT_INDEPENDENT = 0.01
"""A p value below which errors are said to come in bursts."""

FEWEST = 30
"""Items that the test needs."""

_LONGEST_WINDOW = 30
_DRAWS, _MANY = 999, 20_000


def bursts_p(values: Any, groups: Any = None) -> float | None:
    """The p value of values being independent along their order.

    A permutation test of the sum of squares of all windows of about sqrt(n) values in a row.
    Values are permuted within ``groups``, shape (n,), such as their labels: a file that is sorted
    by label, of which one is harder, has no bursts.

    Returns:
        The p value; None with fewer than `FEWEST` values, or where none differs in its group.

    >>> bursts_p([1] * 40 + [0] * 10 + [1] * 50) < 0.01, bursts_p([1, 1, 1, 1, 0] * 20) < 0.01
    (True, False)
    """
    x = np.asarray(values, np.float64)
    if len(x) < FEWEST:
        return None
    codes = np.zeros(len(x), np.intp)
    if groups is not None:
        codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    rest = x - (np.bincount(codes, x) / np.bincount(codes))[codes]
    if not np.abs(rest).max() > 1e-9:
        return None
    window = min(_LONGEST_WINDOW, math.isqrt(len(x)))
    observed, rng = _windows(rest, window), np.random.default_rng(0)
    draws = _DRAWS if len(x) <= _MANY else _DRAWS // 5
    places = np.argsort(codes, kind="stable")
    above, drawn = 0, np.empty_like(rest)
    for _ in range(draws):
        drawn[places] = rest[np.lexsort((rng.random(len(x)), codes))]
        above += _windows(drawn, window) >= observed - 1e-9
    return (1 + above) / (1 + draws)


def blocks(n: int) -> Codes:
    """The block of each of n values in a row, shape (n,): about sqrt(n) / 2 blocks, from 6 to 20.

    Blocks have to be longer than bursts; few of them make an interval wide, but not too short.
    """
    return np.arange(n) * min(20, max(6, math.isqrt(n) // 2)) // max(n, 1)


def _windows(rest: Floats, size: int) -> float:
    sums = np.cumsum(np.append(0.0, rest))
    return float(((sums[size:] - sums[:-size]) ** 2).sum())
