"""How rates compare: the ratio of two, and one among several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.intervals import residual_correlation, wilson_cluster


@dataclass(frozen=True)
class RateRatio:
    """Two rates, ``rate / other`` with its interval, and the lower end of ``rate - other``.

    ``high`` is None where the ratio has no upper bound, because the other rate may be zero. All
    ends are None if a rate has a single cluster.
    """

    rate: float
    other: float
    ratio: float
    low: float | None = None
    high: float | None = None
    difference_low: float | None = None


def higher_than_others(first: Any, others: Any, draws: int = 4_999) -> float | None:
    """The one-sided p value of a sum as high as that of ``first``, if it is one of the others.

    A permutation test: in each draw, every row's value is one of its own, at random. ``first``,
    shape (k,), has a value per cluster, such as the share of verdicts that turn; ``others``, shape
    (k, m), values to compare with, NaN where there is none. None where no row has one.

    >>> higher_than_others([1] * 12 + [0] * 20, [[0, 0]] * 32) < 0.001
    True
    """
    table = np.column_stack([first, others]).astype(float)
    table = table[np.isfinite(table).sum(axis=1) > 1]
    if not len(table):
        return None
    is_defined = np.isfinite(table)
    table = np.take_along_axis(table, np.argsort(~is_defined, axis=1, kind="stable"), axis=1)
    count, rows, rng = is_defined.sum(axis=1), np.arange(len(table)), np.random.default_rng(0)
    observed, higher = float(table[:, 0].sum()) - 1e-9, 1
    for _ in range(0, draws, step := max(1, 2_000_000 // len(table))):
        at = (rng.random((min(step, draws), len(table))) * count).astype(np.int64)
        higher += int((table[rows, at].sum(axis=1) >= observed).sum())
    return higher / (1 + draws)


def rate_ratio(
    hits: Any,
    clusters: Any,
    other_hits: Any,
    other_clusters: Any,
    confidence_level: float = 0.95,
) -> RateRatio:
    """Compare two rates by their clustered Wilson intervals (`intervals.wilson_cluster`).

    The limits recover the variances from the two intervals: MOVER (Zou & Donner 2008 for the
    difference, Donner & Zou 2012 for the ratio), with the correlation of the clusters' residuals.
    Half an event stands in for a second rate of zero.

    Args:
        hits, other_hits: true where an event happened, not empty.
        clusters, other_clusters: one whole number from 0 on per row, or None for both; the same
            number is the same cluster.
        confidence_level: of the intervals.

    >>> result = rate_ratio([1, 1, 1, 0] * 20, None, [0, 0, 0, 1] * 20, None)
    >>> result.ratio, round(result.low, 2), round(result.high, 2)
    (3.0, 2.03, 4.55)
    """
    events, other_events = np.asarray(hits, bool), np.asarray(other_hits, bool)
    p, q = float(events.mean()), float(other_events.mean())
    first = wilson_cluster(events, clusters, confidence_level)
    second = wilson_cluster(other_events, other_clusters, confidence_level)
    ratio = p / (q if q > 0 else 0.5 / len(other_events))
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return RateRatio(p, q, ratio)
    r = 0.0
    if clusters is not None:
        k = int(max(np.max(clusters), np.max(other_clusters))) + 1
        r = residual_correlation(
            np.bincount(clusters, events - p, minlength=k),
            np.bincount(other_clusters, other_events - q, minlength=k),
        )
    low, high = p - first.low, first.high - p
    other_low, other_high = q - second.low, second.high - q

    def half(reach: float, other_reach: float) -> float:
        return float(np.sqrt(max(0.0, reach**2 - 2 * r * reach * other_reach + other_reach**2)))

    def lower(factor: float) -> float:
        return p - factor * q - half(low, factor * other_high)

    def upper(factor: float) -> float:
        return p - factor * q + half(high, factor * other_low)

    return RateRatio(
        rate=p,
        other=q,
        ratio=ratio,
        low=_root(lower),
        high=None if second.low == 0 and upper(0.0) > 0 else _root(upper),
        difference_low=lower(1.0),
    )


def _root(limit: Callable[[float], float]) -> float | None:
    """The factor at which a limit of the first rate less factor times the other is 0, or None."""
    from scipy.optimize import brentq

    upper = 1.0
    while limit(upper) > 0:
        upper *= 2
        if upper > 1e12:
            return None
    return float(brentq(limit, 0.0, upper)) if limit(0.0) > 0 else 0.0
