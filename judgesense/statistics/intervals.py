"""Confidence intervals that treat the item, not the row, as the sample.

Rows of one item (pairs of templates, repeats) are not independent, so every function takes
`clusters` and treats them as the sample. `clusters=None` makes every row a cluster of its own: the
row-wise interval of the literature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes

UNEQUAL = 0.8
"""Clusters are of unequal size if they count as fewer than this share of their number (Kish)."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    `low` and `high` are None with a single cluster, which shows no spread between clusters.
    `effective_n` is the number of independent rows that carry the same information, None for
    bootstraps.
    """

    low: float | None
    high: float | None
    effective_n: float | None = None

    def within(self, lowest: float, highest: float) -> Interval:
        """The interval, cut off at the range of what it estimates."""
        low = None if self.low is None else max(lowest, self.low)
        high = None if self.high is None else min(highest, self.high)
        return replace(self, low=low, high=high)

    def fields(self, name: str) -> dict[str, Any]:
        """The ends as the fields of a result."""
        return {f"{name}_ci_low": self.low, f"{name}_ci_high": self.high}


def wilson_cluster(agree: Any, clusters: Any = None, confidence_level: float = 0.95) -> Interval:
    """Wilson's interval for a share, on the effective sample size; `agree` is true where it counts.

    n_eff = n / (1 + (m - 1) * ICC), with m = sum(m_i^2) / n the size-weighted mean cluster size
    (Kish 1965), the intra-cluster correlation of `_icc`, and Student's t at (clusters - 1) instead
    of the normal quantile (Korn & Graubard 1998). With clusters of unequal size n_eff is at most
    that of the jackknife over clusters, and these count as Kish's effective number. Wilson's form
    (1927) keeps the ends within [0, 1] and gives a perfect score a width. Near 0 and 1 it is too
    short on the side of the boundary (Brown, Cai & DasGupta 2001, section 4.1.1); `outer_ends`
    moves that end out.

    >>> ends = wilson_cluster([1, 1, 1, 0, 1, 1], ["q1", "q1", "q2", "q2", "q3", "q3"])
    >>> round(ends.low, 3), round(ends.high, 3)
    (0.127, 0.999)
    """
    codes, k = cluster_codes(clusters, len(agree))
    sizes = np.bincount(codes, minlength=k)
    return wilson_from_sums(np.bincount(codes, agree, minlength=k), sizes, confidence_level)


def share_fields(name: str, hits: Any, clusters: Any = None) -> dict[str, Any]:
    """A share and the ends of its `wilson_cluster` as fields of a result; None without rows."""
    if not len(hits):
        return {name: None, **Interval(None, None).fields(name)}
    return {name: float(np.mean(hits)), **wilson_cluster(hits, clusters).fields(name)}


def wilson_from_sums(successes: Any, sizes: Any, confidence_level: float = 0.95) -> Interval:
    """`wilson_cluster` from each cluster's number of successes and of rows, shape (k,) each."""
    from scipy.special import stdtrit

    successes, sizes = np.asarray(successes, dtype=float), np.asarray(sizes, dtype=float)
    k = len(sizes)
    if k < 2:
        return Interval(None, None)
    if (successes == np.rint(successes)).all():
        # Rows that were repeated g times tell nothing new.
        copies = np.gcd.reduce(np.concatenate([successes, sizes]).astype(np.int64))
        successes, sizes = successes / copies, sizes / copies
    n = float(sizes.sum())
    m = float((sizes**2).sum() / n)
    icc = _icc(successes, sizes) if m > 1 else 0.0
    n_eff, degrees = n / (1 + (m - 1) * icc), k - 1.0
    share = float(successes.sum()) / n
    if 0 < share < 1 and (worth := n / m) < UNEQUAL * k:
        # Large clusters may be harder, which no correlation shows, and few of them decide.
        residuals = (successes - share * sizes) * n / (n - sizes)
        squares = max(float((residuals**2).sum()), share * (1 - share) * n)
        n_eff = min(n_eff, share * (1 - share) * n**2 / squares)
        degrees = max(1.0, worth - 1)
    t = float(stdtrit(degrees, (1 + confidence_level) / 2))
    low, high = outer_ends(share, n_eff, t, confidence_level, bunched=m > 1)
    return Interval(low, high, n_eff)


def outer_ends(
    share: float, n: float, quantile: float, confidence_level: float = 0.95, *, bunched: bool = True
) -> tuple[float, float]:
    """Wilson's ends, with the one at the nearer boundary moved out where he is too short.

    `n` is the effective sample size, `quantile` that of Wilson's interval, two-sided; `bunched`
    says whether hits and misses come in clusters. That end is then at least Clopper & Pearson's;
    otherwise that of their one-sided interval at the same level, which corrects Wilson's for up to
    about ten misses and is within his for more.
    """
    from scipy.special import betaincinv

    low, high = wilson(share, n, quantile)
    tail = (1 - confidence_level) / (2 if bunched else 1)
    hits, misses = share * n, (1 - share) * n
    if 0.5 <= share < 1:
        high = max(high, float(betaincinv(hits + 1, misses, 1 - tail)))
    if 0 < share <= 0.5:
        low = min(low, float(betaincinv(hits, misses + 1, tail)))
    return low, high


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval (1927) for a share of n trials and a two-sided quantile.

    >>> [round(end, 3) for end in wilson(0.5, 100, 1.96)]
    [0.404, 0.596]
    """
    z2 = quantile**2 / n
    centre = (share + z2 / 2) / (1 + z2)
    half = quantile / (1 + z2) * np.sqrt(share * (1 - share) / n + z2 / (4 * n))
    # At a share of 0 or 1 one end is exactly that share, whatever the rounding.
    low = 0.0 if share <= 0 else max(0.0, float(centre - half))
    high = 1.0 if share >= 1 else min(1.0, float(centre + half))
    return min(low, share), max(high, share)


def difference_interval(
    first: tuple[float, Interval], second: tuple[float, Interval], correlation: float
) -> Interval:
    """Interval of second - first from both estimates with their intervals: square and add.

    Newcombe's method 10 (1998, Statistics in Medicine 17, 2635-2650) for any two estimates; the
    general form is Zou & Donner's (2008). `correlation` is that of the two estimates, in [-1, 1].
    """
    (p1, ends1), (p2, ends2) = first, second
    if ends1.low is None or ends1.high is None or ends2.low is None or ends2.high is None:
        return Interval(None, None)
    down1, up1, down2, up2 = p1 - ends1.low, ends1.high - p1, p2 - ends2.low, ends2.high - p2
    low = np.sqrt(max(0.0, down2**2 - 2 * correlation * down2 * up1 + up1**2))
    high = np.sqrt(max(0.0, up2**2 - 2 * correlation * up2 * down1 + down1**2))
    return Interval(p2 - p1 - float(low), p2 - p1 + float(high)).within(-1.0, 1.0)


def residual_correlation(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float:
    """Correlation of two figures of the same clusters; 0 where a figure has no residuals.

    `x` and `y`, shape (k,), are what each cluster adds to a figure beyond the mean.
    """
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float(x @ y) / size if size > 0 else 0.0


def _icc(successes: Floats, sizes: Floats) -> float:
    """ANOVA intra-cluster correlation with an all-agreeing and an all-disagreeing pseudo-cluster.

    They keep a perfect score from implying ICC = 0. Each weighs 0.02 + 0.5 / c^2 clusters, with c
    the number of clusters that the rarer outcome is spread over (its inverse Simpson index): the
    more clusters tell of the correlation, the less it is shrunk. `benchmarks/conclusions` has what
    other weights cost in coverage or width.
    """
    rare = successes if successes.sum() <= sizes.sum() / 2 else sizes - successes
    squares = float((rare**2).sum())
    spread_over = max(1.0, float(rare.sum()) ** 2 / squares) if squares > 0 else 1.0
    mean_size = float(sizes.mean())
    x = np.append(successes, [mean_size, 0.0])
    m = np.append(sizes, [mean_size, mean_size])
    w = np.ones(len(m))
    w[-2:] = 0.02 + 0.5 / spread_over**2
    n = float((w * m).sum())
    grand = float((w * x).sum()) / n
    share = x / m
    k = float(w.sum())
    between = float((w * m * (share - grand) ** 2).sum()) / (k - 1)
    within = float((w * m * share * (1 - share)).sum()) / max(n - k, 1e-12)
    size = (n - float((w * m**2).sum()) / n) / (k - 1)
    total = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / total)) if total > 0 else 0.0


def mean_t_cluster(values: Any, clusters: Any = None, confidence_level: float = 0.95) -> Interval:
    """Interval for a mean: cluster-robust standard error, Student's t at (clusters - 1).

    The mean is a ratio of cluster sums to cluster sizes; its variance is linearised and multiplied
    by k / (k - 1) (Cochran 1977, section 9A). The interval is not clipped to any range.

    >>> ends = mean_t_cluster([1.0, 2.0, 3.0])
    >>> round(ends.low, 3), round(ends.high, 3)
    (-0.484, 4.484)
    """
    from scipy.special import stdtrit

    x = np.asarray(values, np.float64)
    codes, k = cluster_codes(clusters, len(x))
    if k < 2:
        return Interval(None, None)
    mean = float(x.mean())
    residual = np.bincount(codes, x - mean, minlength=k)
    error = float(np.sqrt(k / (k - 1) * (residual**2).sum())) / len(x)
    half = float(stdtrit(k - 1, (1 + confidence_level) / 2)) * error
    return Interval(mean - half, mean + half)
