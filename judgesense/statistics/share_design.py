"""How likely a sample is to show on which side of a threshold a share (JSS, same choice) lies.

:mod:`judgesense.statistics.planning` plans with it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats

_SCANNED = 300


@dataclass(frozen=True)
class ShareDesign:
    """What decides how exactly a share (JSS, same choice in both orders) is known.

    Attributes are numbers, or arrays of shape (d,) for several designs at once.

    Attributes:
        share: the share, in [0, 1].
        pairs: pairs per cluster.
        icc: intra-cluster correlation, in [0, 1].
        wordings: number of wordings; 1 where they do not matter.
        wording_variance: variance of the share over wordings, per wording: the variance that a
            sample of `wordings` adds to the mean is this divided by `wordings`. 0 for a claim about
            these wordings only.
        cell_variance: variance of the share over wordings within one cluster, per wording. The
            interval counts it as spread over wordings; it shrinks with the number of clusters.
    """

    share: Any
    pairs: Any = 1.0
    icc: Any = 0.0
    wordings: Any = 1
    wording_variance: Any = 0.0
    cell_variance: Any = 0.0

    @property
    def varies(self) -> Any:
        """Whether wordings are a sample, too."""
        return (self.wordings > 1) & (self.wording_variance + self.cell_variance > 0)

    def precision(self, clusters: Any) -> Any:
        """Effective sample size with this many clusters.

        >>> float(ShareDesign(0.9, pairs=10, icc=0.5).precision(11))
        20.0
        """
        spread = np.maximum(self.share * (1 - self.share), 1e-9)
        over_items = spread * (1 + (self.pairs - 1) * self.icc) / (self.pairs * clusters)
        return spread / (over_items + self.wording_variance / self.wordings)

    def printed(self, clusters: Any, share: Any) -> tuple[Any, Any]:
        """Effective sample size and degrees of freedom of the interval at an observed share.

        They are those of `intervals.wilson_cluster`, or of `crossed.two_way_interval` if wordings
        vary, on average.
        """
        spread = np.maximum(share * (1 - share), 1e-9)
        icc = self.printed_icc(clusters, share)
        over_items = spread * (1 + (self.pairs - 1) * icc) / (self.pairs * clusters)
        over_wordings = (self.wording_variance + self.cell_variance / clusters) / self.wordings
        total = over_items + over_wordings
        others = np.maximum(self.wordings - 1, 1)
        df = total**2 / (over_wordings**2 / others + over_items**2 / (clusters - 1))
        return spread / total, np.where(over_wordings > 0, df, clusters - 1)

    def printed_icc(self, clusters: Any, share: Any) -> Any:
        """The intra-cluster correlation that `wilson_cluster` will estimate, on average.

        It adds an all-agreeing and an all-disagreeing pseudo-cluster, which raises the estimate if
        few clusters hold the rarer outcome: see `intervals.wilson_cluster`.

        >>> round(float(ShareDesign(0.9, pairs=10, icc=0.1).printed_icc(10, 0.9)), 2)
        0.17
        """
        k, m = clusters, self.pairs
        spread = share * (1 - share) * (1 + (m - 1) * self.icc) / m
        rare = np.minimum(share, 1 - share)
        spread_over = np.maximum(1.0, k * rare**2 / np.where(rare > 0, rare**2 + spread, 1.0))
        weight = 2 * (0.02 + 0.5 / spread_over**2)
        grand = (k * share + weight / 2) / (k + weight)
        pseudo = weight / 2 * ((1 - grand) ** 2 + grand**2)
        between = m * (k * spread + k * (share - grand) ** 2 + pseudo) / (k + weight - 1)
        others = np.where(m > 1, m - 1, 1.0)
        within = k * (share * (1 - share) - spread) * m / ((k + weight) * others)
        total = between + (m - 1) * within
        icc = np.clip((between - within) / np.where(total > 0, total, 1.0), 0.0, 1.0)
        return np.where(m > 1, np.where(total > 0, icc, self.icc), 0.0)


def share_chances(
    designs: ShareDesign, clusters: Any, *, threshold: float, confidence_level: float = 0.95
) -> Floats:
    """Probability that the interval of a share excludes the threshold, for several designs.

    Wilson's interval on n effective rows lies above p0 if the share observed is above
    p0 + t * sqrt(p0 (1 - p0) / n), and below it by symmetry. The share observed is taken as
    binomial on the design's effective rows: exact with one pair per cluster, otherwise by its beta
    tail at half a row beyond the limit.

    Args:
        designs: the true share and how it varies, of d designs.
        clusters: number of clusters, at least 2, or one for each design.
        threshold: p0, within (0, 1).

    Returns:
        Probabilities, shape (d,).

    >>> designs = ShareDesign(0.9, pairs=np.array([1, 3]), icc=np.array([0, 0.2]))
    >>> share_chances(designs, 100, threshold=0.8).round(2).tolist()
    [0.8, 0.98]
    """
    from scipy.special import betainc, stdtrit

    n = designs.precision(clusters)
    binomial = np.logical_and(designs.pairs == 1, np.logical_not(designs.varies))
    chance = np.zeros(np.shape(n))
    for share, p0 in ((designs.share, threshold), (1 - designs.share, 1 - threshold)):
        limit = (p0 + np.maximum(p0, designs.share)) / 2
        for _ in range(4):
            # The interval is judged by what a run at this limit would print.
            rows, df = designs.printed(clusters, np.minimum(limit, 0.999))
            t = stdtrit(df, (1 + confidence_level) / 2)
            limit = p0 + t * np.sqrt(p0 * (1 - p0) / rows)
        hits = n * limit
        hits = np.where(binomial, np.floor(hits + 1e-9) + 1, hits + 0.5)
        inside = hits <= n
        tail = betainc(np.where(inside, hits, 1.0), np.where(inside, n - hits + 1, 1.0), share)
        beyond = np.where(~binomial & (hits <= n + 0.5), share**n, 0.0)
        chance += np.where(inside, tail, beyond)
    return np.minimum(1.0, chance)


def least_clusters(
    designs: ShareDesign, wanted: float, most: int, threshold: float, level: float
) -> Floats:
    """The number of clusters from which each design has the wanted chance, shape (d,).

    Args:
        designs: what to search for, all at once.
        wanted: the chance (`share_chances`), in [0, 1].
        most: a larger number is no answer.
        threshold: within (0, 1).
        level: of the two-sided interval, within (0, 1).

    Returns:
        Whole numbers as floats; inf where none up to ``most`` suffices.

    >>> least_clusters(ShareDesign(np.array([0.9, 0.8])), 0.8, 200_000, 0.8, 0.95).tolist()
    [100.0, inf]
    """
    columns = np.array(np.broadcast_arrays(*astuple(designs)))
    every = ShareDesign(*columns)

    def short(rows: Codes, clusters: Floats) -> Bools:
        some = ShareDesign(*columns[:, rows])
        chances = share_chances(some, clusters, threshold=threshold, confidence_level=level)
        found: Bools = chances < wanted
        return found

    # Bisection, as in `planning.smallest`, of all designs side by side.
    high = np.full(columns.shape[1], 2.0)
    left = np.arange(len(high))
    while len(left := left[short(left, high[left])]):
        high[left] *= 2
        left = left[high[left] <= most]
    low = high // 2
    high[high > most] = np.inf
    left = np.flatnonzero(np.isfinite(high))
    while len(left := left[high[left] - low[left] > 1]):
        middle = (low[left] + high[left]) // 2
        is_short = short(left, middle)
        low[left[is_short]], high[left[~is_short]] = middle[is_short], middle[~is_short]
    binomial = (every.pairs == 1) & ~every.varies
    for row in np.flatnonzero(binomial & (high < _SCANNED)).tolist():
        # Whole hits make the probability a sawtooth, which bisection does not follow.
        scanned = np.arange(2.0, high[row] + 1)
        high[row] = scanned[np.argmin(short(np.full(len(scanned), row), scanned))]
    return high
