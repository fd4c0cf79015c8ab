"""Ranks of scores and of intervals, and their correlation: the one rule for ties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.comparison import holm

_TIE = 1e-12
"""Scores closer than this share of their size are equal: sums of the same numbers in another order
differ by less."""


def competition_ranks(scores: Any) -> Codes:
    """Rank scores from the best, 1, down; equal scores share the best of their ranks (1, 2, 2, 4).

    This is the one rule for ties in the project. Scores are equal if they differ by at most 1e-12
    of their size, so that rounding does not break a tie. Ranks run along the last axis of the
    scores, which are finite; higher is better.

    >>> competition_ranks([0.9, 0.4, 0.1 + 0.3, 0.7]).tolist()
    [1, 3, 3, 2]
    """
    values = np.asarray(scores, dtype=np.float64)
    order = np.argsort(-values, axis=-1, kind="stable")
    falling = np.take_along_axis(values, order, axis=-1)
    high, low = falling[..., :-1], falling[..., 1:]
    with np.errstate(over="ignore"):
        drops = high - low > _TIE * np.maximum(np.maximum(np.abs(high), np.abs(low)), _TIE)
    place = np.zeros(values.shape, dtype=np.intp)
    place[..., 1:] = np.where(drops, np.arange(1, values.shape[-1]), 0)
    ranks = np.empty(values.shape, dtype=np.intp)
    np.put_along_axis(ranks, order, np.maximum.accumulate(place, axis=-1) + 1, axis=-1)
    return ranks


def ranks_of(above: Bools, names: Sequence[str]) -> tuple[Codes, Codes]:
    """The best and the worst rank that each of N figures can have, shape (N,) each.

    The best is 1 plus the number of other names shown to lie above, the worst the number of names
    less those shown to lie below. No rank rests on a difference that the data cannot show. This is
    not transitive: if only the first is shown to lie above the third, the ranks are 1, 1, 2.

    Args:
        above: whether the row's figure is shown to lie above the column's, shape (N, N).
        names: whose figures these are; several of one name count once, never against themselves.
    """

    def others(is_above: Bools) -> Codes:
        of_each = zip(names, is_above, strict=True)
        counts = [
            len({names[at] for at in np.flatnonzero(row).tolist()} - {name})
            for name, row in of_each
        ]
        return np.asarray(counts, dtype=np.intp)

    first = 1 + others(above.T)
    return first, np.maximum(first, len(set(names)) - others(above))


def paired_above(shares: Any, influences: Any) -> Bools:
    """Whether the row's share is shown to be larger than the column's, on the same items.

    Paired t tests over clusters of items, corrected by Holm's method over all pairs of shares. Two
    clusters are added to each test, one for either side with the largest difference seen, in the
    manner of Bonett & Price (2012), so that few clusters that differ show little.

    Args:
        shares: shape (N,).
        influences: what each of K clusters adds to the share, shape (N, K), rows summing to 0.
    """
    from scipy.special import stdtr

    m, u = np.asarray(shares, np.float64), np.asarray(influences, np.float64)
    n, k = u.shape
    rows, columns = np.triu_indices(n, 1)
    gaps, p_values = m[rows] - m[columns], []
    for i, j, gap in zip(rows, columns, np.abs(gaps).tolist(), strict=True):
        differences = u[i] - u[j]
        largest = np.abs(differences).max() + gap / k
        error = math.sqrt((k + 2) / (k + 1) * (float(differences @ differences) + 2 * largest**2))
        t = 0.0 if gap <= _TIE or k < 2 else gap / error
        p_values.append(2 * float(stdtr(k + 1, -t)))
    is_shown = np.array([p is not None and p < 0.05 for p in holm(p_values)], dtype=bool)
    above = np.zeros((n, n), dtype=bool)
    above[rows[is_shown & (gaps > 0)], columns[is_shown & (gaps > 0)]] = True
    above[columns[is_shown & (gaps < 0)], rows[is_shown & (gaps < 0)]] = True
    return above


def leaders(scores: Any) -> Bools:
    """Which scores are the best along the last axis; all that tie for the best lead together."""
    first: Bools = competition_ranks(scores) == 1
    return first


def chosen(scores: Any) -> Codes:
    """The index of the best score along the last axis; the lowest index among those that tie."""
    index: Codes = leaders(scores).argmax(axis=-1)
    return index


def spearman_matrix(rows: Floats) -> Floats:
    """Spearman's rho of every two rows, shape (R, R); ties share ranks, constant rows give NaN.

    >>> spearman_matrix(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    from scipy.stats import rankdata

    ranks: Floats = rankdata(competition_ranks(rows), axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    return _as_cosines(ranks @ ranks.T)


def kendall_matrix(rows: Floats) -> Floats:
    """Kendall's tau-b of every two rows, shape (R, R); constant rows give NaN."""
    concordance = np.zeros((len(rows), len(rows)))
    ranks = competition_ranks(rows)
    for column in range(rows.shape[1] - 1):
        signs = np.sign(ranks[:, column : column + 1] - ranks[:, column + 1 :]).astype(np.float64)
        concordance += signs @ signs.T
    return _as_cosines(concordance)


def _as_cosines(products: Floats) -> Floats:
    """Inner products as cosines; NaN where a row has length 0."""
    squares = np.diag(products)
    # One root of the product, not a product of roots: equal rows then give 1.0 to the last digit.
    scale = np.sqrt(np.outer(squares, squares))
    result = np.full(products.shape, np.nan)
    np.divide(products, scale, out=result, where=scale > 0)
    clipped: Floats = np.clip(result, -1.0, 1.0)
    return clipped
