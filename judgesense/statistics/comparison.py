"""Comparing two judges or two remedies on the same rows; families of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import (
    Interval,
    difference_interval,
    residual_correlation,
    wilson_from_sums,
)
from judgesense.statistics.resampling import resampled_sums

_FEWEST_BOOTSTRAPPED = 20
"""Clusters from which the bootstrap-t holds its level better than sign flips."""


@dataclass(frozen=True)
class PairedDifference:
    """Difference between two judges' shares on the same pairs, second minus first.

    Interval and p-value are None with a single item, every figure without pairs.
    """

    difference: float | None
    first: float | None
    second: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    n_pairs: int
    n_items: int


def paired_test(
    first: Any,
    second: Any,
    clusters: Any = None,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Test whether two judges agree with themselves (or are right) equally often.

    `first` and `second` are true where a judge's two decisions are equal, shape (n,). The two
    judges' results are swapped within whole clusters (sign flips; all of them if they number at
    most `n_resamples`, otherwise drawn). The statistic is the cluster-robust t of the difference,
    so that clusters of unequal size or spread keep the level (wild cluster bootstrap, Cameron,
    Gelbach & Miller 2008; with one row per cluster, McNemar's exact test). Flips assume a symmetric
    difference per cluster, which clusters of several rows need not have: from 20 of those on, the
    p-value is the symmetric bootstrap-t's over clusters (Hall 1988). The interval is Newcombe's for
    paired shares (1998, method 10) on the clustered Wilson ends. A drawn p-value is never 0: (1 +
    hits) / (1 + B).

    >>> result = paired_test([1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0])
    >>> round(result.difference, 3), result.p_value
    (0.5, 0.25)
    """
    a, b = np.asarray(first, bool), np.asarray(second, bool)
    if not len(a):
        return PairedDifference(None, None, None, None, None, None, 0, 0)
    codes, k = cluster_codes(clusters, len(a))
    sizes = np.bincount(codes, minlength=k).astype(np.float64)
    hits = np.stack([np.bincount(codes, a, minlength=k), np.bincount(codes, b, minlength=k)])
    gaps = hits[1] - hits[0]
    interval, p_value = Interval(None, None), None
    if k > 1:
        shares = hits.sum(axis=1) / sizes.sum()
        interval = difference_interval(
            (float(shares[0]), wilson_from_sums(hits[0], sizes)),
            (float(shares[1]), wilson_from_sums(hits[1], sizes)),
            residual_correlation(*(hits - shares[:, None] * sizes)),
        )
        # A difference that is the same in every cluster has no spread to resample.
        flipped = k < _FEWEST_BOOTSTRAPPED or sizes.max() == 1 or np.ptp(gaps / sizes) < 1e-9
        p_value = (_sign_flip_p if flipped else _bootstrap_t_p)(gaps, sizes, n_resamples, seed)
    return PairedDifference(
        difference=float(gaps.sum()) / len(a),
        first=float(a.mean()),
        second=float(b.mean()),
        ci_low=interval.low,
        ci_high=interval.high,
        p_value=p_value,
        n_pairs=len(a),
        n_items=k,
    )


def _squared_t(total: Floats, cross: Floats, gaps: Floats, sizes: Floats) -> Floats:
    """Squared cluster-robust t of the difference, up to a factor: total^2 / sum of residuals^2.

    ``total`` is the sum of the clusters' gaps and ``cross`` the sum of gap times size; both vary
    over the flips, while the sums of gap^2 and size^2 do not.
    """
    square = float((gaps**2).sum())
    mean = total / sizes.sum()
    residual = square - 2 * mean * cross + mean**2 * float((sizes**2).sum())
    t = np.full(np.shape(total), np.inf)
    np.divide(total**2, residual, out=t, where=residual > 1e-9 * square)
    return t


def _sign_flip_p(gaps: Floats, sizes: Floats, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of the robust t if each cluster's gap had the sign of a fair coin."""
    rows = np.column_stack([gaps, sizes])[gaps != 0]
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    k = len(rows)
    if k == 0:
        return 1.0
    weights = np.column_stack([kinds[:, 0], kinds.prod(axis=1)])
    exact = k < 60 and 2**k <= n_resamples
    if exact:
        signs = 1 - 2 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
        draws = signs @ np.repeat(weights, counts, axis=0)
    else:
        # Among clusters with one gap and size, the number of plus signs is binomial.
        rng = np.random.default_rng(seed)
        plus = rng.binomial(counts, 0.5, size=(n_resamples, len(counts)))
        draws = (2 * plus - counts) @ weights
    total, cross = (counts @ weights)[:, None]
    observed = _squared_t(total, cross, gaps, sizes)
    # Flips that tie with what was seen count, whatever the rounding.
    extreme = _squared_t(draws[:, 0], draws[:, 1], gaps, sizes) >= observed * (1 - 1e-9)
    return float(extreme.mean()) if exact else (1 + int(extreme.sum())) / (1 + n_resamples)


def _bootstrap_t_p(gaps: Floats, sizes: Floats, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of the robust t by resampling clusters around the difference seen."""
    stats = np.column_stack([gaps, sizes, gaps**2, gaps * sizes, sizes**2])

    def mean_and_spread(sums: Floats) -> tuple[Floats, Floats]:
        gap, size, squares, cross, sizes2 = sums.T
        mean = gap / size
        return mean, np.sqrt(np.maximum(squares - 2 * mean * cross + mean**2 * sizes2, 0)) / size

    mean, spread = mean_and_spread(stats.sum(axis=0)[None])
    means, spreads = mean_and_spread(resampled_sums(stats, n_resamples, seed))
    extreme = np.abs(means - mean) * spread >= np.abs(mean) * spreads * (1 - 1e-9)
    return (1 + int(extreme.sum())) / (1 + n_resamples)


def holm(p_values: Sequence[float | None], n_tests: int | None = None) -> list[float | None]:
    """Holm's step-down adjustment (1979), which controls the family-wise error rate.

    None (no test) stays None and is not counted. ``n_tests`` is the number of tests, of which those
    left out have larger p-values.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    ordered_p = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest, n_tests = 0.0, n_tests or len(ordered_p)
    for rank, (p, place) in enumerate(ordered_p):
        highest = max(highest, min(1.0, p * (n_tests - rank)))
        adjusted[place] = highest
    return adjusted


@dataclass(frozen=True)
class Gain:
    """What a remedy gains on the same items: ``after - before`` with its interval.

    The ends are None with a single cluster. ``n`` counts rows.
    """

    before: float
    after: float
    gain: float
    ci_low: float | None
    ci_high: float | None
    n: int


def paired_gain(
    before: npt.ArrayLike, after: npt.ArrayLike, clusters: Any = None, level: float = 0.95
) -> Gain:
    """The mean difference of two scores of the same items, shape (n,), with an interval over
    clusters.

    Student's t with a cluster-robust error, after adding one cluster that gains and one that loses
    the largest difference seen (1 if none was), in the manner of Bonett & Price (2012) for paired
    proportions: a difference of zero everywhere still has a width.

    >>> result = paired_gain([0, 0, 1, 1], [1, 1, 1, 1])
    >>> result.gain, round(result.ci_low, 2)
    (0.5, -0.52)
    """
    from scipy.special import stdtrit

    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    gap = y - x
    gain = float(gap.mean())
    codes, k = cluster_codes(clusters, len(gap))
    if k < 2:
        return Gain(float(x.mean()), float(y.mean()), gain, None, None, len(gap))
    sizes = np.bincount(codes, minlength=k).astype(np.float64)
    sums = np.bincount(codes, gap, minlength=k)
    largest = float(np.abs(gap).max()) or 1.0
    size = float(sizes.mean())
    sums, sizes = np.append(sums, [largest * size, -largest * size]), np.append(sizes, [size, size])
    centre = float(sums.sum() / sizes.sum())
    residual = sums - centre * sizes
    error = np.sqrt((k + 2) / (k + 1) * float((residual**2).sum())) / sizes.sum()
    half = float(stdtrit(k + 1, (1 + level) / 2)) * float(error)
    low, high = min(centre - half, gain), max(centre + half, gain)
    return Gain(float(x.mean()), float(y.mean()), gain, max(-1.0, low), min(1.0, high), len(gap))
