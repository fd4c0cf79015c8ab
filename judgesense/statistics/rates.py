"""How rates and verdicts move: the ratio of two rates, and the shift by an intervention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.intervals import Interval, mean_t_cluster, wilson_cluster
from judgesense.statistics.result import ResultMapping


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
) -> RateRatio:
    """Compare two rates by their clustered Wilson intervals (`intervals.wilson_cluster`).

    The limits recover the variances from the two intervals: MOVER (Zou & Donner 2008 for the
    difference, Donner & Zou 2012 for the ratio). The two rates are taken as independent; rates of
    the same items are usually positively correlated, which makes the limits wider than needed.

    Args:
        hits: shape (n,), true where the first event happened, n > 0.
        other_hits: shape (m,), true where the second event happened, m > 0.
        other_clusters: one id per row, or None.

    Returns:
        The comparison; half an event stands in for a second rate of zero.

    >>> found = rate_ratio([1, 1, 1, 0] * 20, None, [0, 0, 0, 1] * 20, None)
    >>> found.ratio, round(found.low, 2), round(found.high, 2)
    (3.0, 2.03, 4.55)
    """
    one, two = np.asarray(hits, bool), np.asarray(other_hits, bool)
    p, q = float(one.mean()), float(two.mean())
    first = wilson_cluster(one, clusters)
    second = wilson_cluster(two, other_clusters)
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
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return -np.inf, np.inf
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


@dataclass(frozen=True, eq=False)
class Shift(ResultMapping):
    """How verdicts moved from a base to a changed prompt.

    ``shift_rate`` is the share of verdicts that changed, with its interval. ``net_shift`` is for
    each label its share afterwards minus its share before; the values sum to 0. ``score_shift`` is
    the mean change on a scale, in levels, None for nominal labels. Ends of intervals are None with
    a single cluster.
    """

    shift_rate: float | None
    ci_low: float | None
    ci_high: float | None
    net_shift: dict[str, float]
    score_shift: float | None
    score_shift_ci_low: float | None
    score_shift_ci_high: float | None
    n_pairs: int


def shift(
    base: Sequence[str],
    changed: Sequence[str],
    labels: Sequence[str],
    clusters: Any = None,
    *,
    ordinal: bool = False,
) -> Shift:
    """Compare verdicts before and after an intervention.

    The rate has Wilson's clustered interval (`intervals.wilson_cluster`), the mean change of the
    level a t interval over clusters (`intervals.mean_t_cluster`).

    Args:
        base: shape (n,), the verdicts on the base prompts, each one of ``labels``.
        changed: shape (n,), the verdicts on the changed prompts of the same items.
        labels: the task's labels, in order if ``ordinal``.
        ordinal: whether the labels are a scale.

    Returns:
        The shift; every figure is None, and `net_shift` empty, without rows.

    >>> found = shift(["NO", "NO", "YES", "NO"], ["YES", "NO", "YES", "YES"], ["YES", "NO"])
    >>> found.shift_rate, found.net_shift
    (0.5, {'YES': 0.5, 'NO': -0.5})
    """
    place = {label: code for code, label in enumerate(labels)}
    if not len(base):
        return Shift(None, None, None, {}, None, None, None, 0)
    one, two = (np.array([place[label] for label in verdicts]) for verdicts in (base, changed))
    moved = wilson_cluster(one != two, clusters)
    before, after = (np.bincount(codes, minlength=len(labels)) / len(one) for codes in (one, two))
    mean = low = high = None
    if ordinal:
        change = (two - one).astype(float)
        ends = mean_t_cluster(change, clusters)
        mean, low, high = float(change.mean()), ends.low, ends.high
    return Shift(
        shift_rate=float((one != two).mean()),
        ci_low=moved.low,
        ci_high=moved.high,
        net_shift={label: float(gain) for label, gain in zip(labels, after - before, strict=True)},
        score_shift=mean,
        score_shift_ci_low=low,
        score_shift_ci_high=high,
        n_pairs=len(one),
    )
