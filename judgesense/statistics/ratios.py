"""The ratio and the difference of two rates, each over clusters of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.intervals import Interval, booleans, wilson_cluster


@dataclass(frozen=True)
class RateRatio:
    """Two rates, ``rate / other`` with its interval, and the interval of ``rate - other``.

    ``high`` is None where the ratio has no upper bound, because the other rate may be zero. All
    ends are None if a rate has a single cluster.
    """

    rate: float
    rate_low: float | None
    rate_high: float | None
    other: float
    ratio: float
    low: float | None
    high: float | None
    difference_low: float | None
    difference_high: float | None


def rate_ratio(
    hits: Any,
    clusters: Any,
    other_hits: Any,
    other_clusters: Any,
    confidence_level: float = 0.95,
) -> RateRatio:
    """Compare two rates by their clustered Wilson intervals (`intervals.wilson_cluster`).

    The limits recover the variances from the two intervals: MOVER (Zou & Donner 2008 for the
    difference, Donner & Zou 2012 for the ratio). The two rates are taken as independent; rates of
    the same items are usually positively correlated, which makes the limits wider than needed.

    Args:
        hits: shape (n,), true where the first event happened, n > 0.
        clusters: one id per row, or None.
        other_hits: shape (m,), true where the second event happened, m > 0.
        other_clusters: one id per row, or None.
        confidence_level: within (0, 1).

    Returns:
        The comparison; half an event stands in for a second rate of zero.

    Raises:
        ValueError: empty or non-boolean rows, clusters of another length, level outside (0, 1).

    >>> found = rate_ratio([1, 1, 1, 0] * 20, None, [0, 0, 0, 1] * 20, None)
    >>> found.ratio, round(found.low, 2), round(found.high, 2)
    (3.0, 2.03, 4.55)
    """
    one, two = booleans(hits, "hits"), booleans(other_hits, "other_hits")
    p, q = float(one.mean()), float(two.mean())
    first = wilson_cluster(one, clusters, confidence_level)
    second = wilson_cluster(two, other_clusters, confidence_level)
    ratio = p / (q if q > 0 else 0.5 / len(two))
    if first.low is None or second.low is None:
        return RateRatio(p, first.low, first.high, q, ratio, None, None, None, None)
    low, high = _difference(p, first, q, second, 1.0)
    return RateRatio(
        rate=p,
        rate_low=first.low,
        rate_high=first.high,
        other=q,
        ratio=ratio,
        low=_root(p, first, q, second, lower=True),
        high=_root(p, first, q, second, lower=False),
        difference_low=low,
        difference_high=high,
    )


def _difference(
    p: float, first: Interval, q: float, second: Interval, factor: float
) -> tuple[float, float]:
    """MOVER's limits of p - factor * q."""
    assert first.low is not None
    assert first.high is not None
    assert second.low is not None
    assert second.high is not None
    middle = p - factor * q
    down = np.hypot(p - first.low, factor * (second.high - q))
    up = np.hypot(first.high - p, factor * (q - second.low))
    return float(middle - down), float(middle + up)


def _root(p: float, first: Interval, q: float, second: Interval, *, lower: bool) -> float | None:
    """The factor at which a limit of p - factor * q is zero; None if there is none."""
    from scipy.optimize import brentq

    def limit(factor: float) -> float:
        return _difference(p, first, q, second, factor)[0 if lower else 1]

    if limit(0.0) <= 0:
        return 0.0
    if not lower and second.low == 0:
        return None
    far = 1.0
    while limit(far) > 0:
        far *= 2
        if far > 1e12:
            return None
    return float(brentq(limit, 0.0, far))
