"""Are the columns of a table exchangeable within clusters? Permutation tests, corrected for many.

Every test permutes whole columns within each cluster, which is exact if the columns (wordings) are
exchangeable, and studentises its statistics, so that it also holds in large samples if columns
have the same mean but other variances or correlations.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgesense.statistics.arrays import Floats

_MANY_CLUSTERS = 1_000
"""Above this many informative clusters signs are flipped instead: the same limit, much faster."""

_AT_ONCE = 4_000_000
_EPSILON = 1e-9


def lower_than_rest(sums: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Adjusted p-values of "this column's mean is no lower than the others'" (max-T, one-sided).

    Single-step max-T over the columns (Westfall & Young 1993, section 2.3).

    Args:
        sums: sums per cluster and column, shape (clusters, columns >= 2).
        rng: source of the permutations.
        n_resamples: number of permutations B.

    Returns:
        p-values, shape (columns,), at least 1 / (B + 1).

    >>> rng = np.random.default_rng(0)
    >>> lower_than_rest(np.array([[1.0, 1.0, 0.0]] * 20), rng, 999).tolist()
    [1.0, 1.0, 0.001]
    """
    centred = _informative(sums)
    observed, _ = _statistics(centred.sum(axis=0), centred.T @ centred)
    hits = np.zeros(sums.shape[1])
    for total, products in _drawn(centred, rng, n_resamples):
        least = _statistics(total, products)[0].min(axis=1)
        hits += (least[:, None] <= observed[None] + _EPSILON).sum(axis=0)
    p_values: Floats = (1 + hits) / (1 + n_resamples)
    return p_values


def gaps_between(sums: Floats, rng: np.random.Generator, n_resamples: int) -> tuple[float, Floats]:
    """Test that all columns have the same mean, and each that no other has a higher one.

    The first test takes the largest studentised gap of any two columns (T_R of Hansen, Lunde &
    Nason 2011, section 3.1.2), the second, for each column, the largest gap of another column above
    it (one-sided multiple comparisons with the best, Hsu 1984).

    Args:
        sums: sums per cluster and column, shape (clusters, columns >= 2).
        rng: source of the permutations.
        n_resamples: number of permutations B.

    Returns:
        The p-value of the first test, and those of the second, shape (columns,).

    >>> rng = np.random.default_rng(0)
    >>> p_any, p_behind = gaps_between(np.array([[1.0, 1.0, 0.0]] * 20), rng, 999)
    >>> p_any, p_behind.tolist()[2]
    (0.0005, 0.001)
    """
    centred = _informative(sums)
    rest, gaps = _statistics(centred.sum(axis=0), centred.T @ centred)
    behind = gaps.max(axis=0)
    largest = max(behind.max(), np.abs(rest).max())
    any_hits, hits = 0.0, np.zeros(sums.shape[1])
    for total, products in _drawn(centred, rng, n_resamples):
        rest, gaps = _statistics(total, products)
        drawn = gaps.max(axis=1)
        hits += (drawn >= behind - _EPSILON).sum(axis=0)
        top = np.maximum(drawn.max(axis=1), np.abs(rest).max(axis=1))
        # Mid-p: with few items many permutations tie with the data.
        any_hits += float((top > largest + _EPSILON).sum() + (top >= largest - _EPSILON).sum()) / 2
    p_behind: Floats = (1 + hits) / (1 + n_resamples)
    return (0.5 + any_hits) / (1 + n_resamples), p_behind


def _informative(sums: Floats) -> Floats:
    """The clusters in which columns differ, less their means; the others change no statistic."""
    kept = sums[np.ptp(sums, axis=1) > _EPSILON]
    centred: Floats = kept - kept.mean(axis=1, keepdims=True)
    return centred


def _drawn(
    centred: Floats, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[Floats, Floats]]:
    """Sums and sums of products of the columns of permuted tables, some tables at a time."""
    k, columns = centred.shape
    step = max(1, _AT_ONCE // max(1, centred.size))
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        if k > _MANY_CLUSTERS:
            # A cluster's sign changes its part in the sums, and none in the sums of products.
            signs = 2.0 * rng.integers(2, size=(size, k)) - 1.0
            yield signs @ centred, (centred.T @ centred)[None]
        else:
            tables = rng.permuted(np.broadcast_to(centred, (size, k, columns)), axis=2)
            yield tables.sum(axis=1), np.swapaxes(tables, 1, 2) @ tables


def _statistics(total: Floats, products: Floats) -> tuple[Floats, Floats]:
    """Each column against the mean of all, and how far each lies above each other one.

    Both are sum / sqrt(sum of squares) of the clusters' gaps, which grows with Student's t.

    Args:
        total: sums of the columns, shape (..., columns).
        products: sums of products of every two columns, shape (..., columns, columns).
    """
    own = np.diagonal(products, axis1=-2, axis2=-1)
    squares = own[..., :, None] + own[..., None, :] - 2 * products
    return _ratio(total, own), _ratio(total[..., :, None] - total[..., None, :], squares)


def _ratio(total: Floats, squares: Floats) -> Floats:
    """sum / sqrt(sum of squares); finite if all gaps are equal."""
    known = squares > _EPSILON
    return np.where(known, total / np.sqrt(np.where(known, squares, 1.0)), 0.0)
