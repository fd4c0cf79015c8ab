"""How likely a sample is to show on which side of a threshold a share (JSS, same choice) lies.

:mod:`judgesense.statistics.planning` plans with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats

_SCANNED = 300

_COLUMNS = ("share", "pairs", "icc", "wordings", "wording_variance", "cell_variance")


@dataclass(frozen=True)
class ShareDesign:
    """What decides how exactly a share (JSS, same choice in both orders) is known.

    Attributes:
        share: the share, in [0, 1].
        pairs: pairs per cluster.
        icc: intra-cluster correlation, in [0, 1].
        items: items per cluster, at least 1.
        wordings: number of wordings; 1 where they do not matter.
        wording_variance: variance of the share over wordings, per wording: the variance that a
            sample of `wordings` adds to the mean is this divided by `wordings`. 0 for a claim about
            these wordings only.
        cell_variance: variance of the share over wordings within one cluster, per wording. The
            interval counts it as spread over wordings; it shrinks with the number of clusters.
    """

    share: float
    pairs: float = 1.0
    icc: float = 0.0
    items: float = 1.0
    wordings: int = 1
    wording_variance: float = 0.0
    cell_variance: float = 0.0

    @property
    def varies(self) -> bool:
        """Whether wordings are a sample, too."""
        return self.wordings > 1 and self.wording_variance + self.cell_variance > 0

    def precision(self, clusters: int) -> float:
        """Effective sample size with this many clusters.

        >>> ShareDesign(0.9, pairs=10, icc=0.5).precision(11)
        20.0
        """
        return float(_precision(_Many.of([self]), np.array([clusters], np.float64))[0])

    def printed_icc(self, clusters: int, share: float) -> float:
        """The intra-cluster correlation that `wilson_cluster` will estimate, on average.

        It adds an all-agreeing and an all-disagreeing pseudo-cluster, which raises the estimate if
        few clusters hold the rarer outcome: see `intervals.wilson_cluster`.

        >>> round(ShareDesign(0.9, pairs=10, icc=0.1).printed_icc(10, 0.9), 2)
        0.17
        """
        return float(
            _printed_icc(_Many.of([self]), np.array([clusters], np.float64), np.array([share]))[0]
        )


@dataclass(frozen=True)
class _Many:
    """Designs as arrays of shape (d,), so that thousands cost little more than one."""

    share: Floats
    pairs: Floats
    icc: Floats
    wordings: Floats
    wording_variance: Floats
    cell_variance: Floats

    @classmethod
    def of(cls, designs: Sequence[ShareDesign]) -> _Many:
        return cls(
            *(np.array([getattr(d, name) for d in designs], dtype=np.float64) for name in _COLUMNS)
        )

    @property
    def binomial(self) -> Bools:
        varies = (self.wordings > 1) & (self.wording_variance + self.cell_variance > 0)
        alone: Bools = (self.pairs == 1) & ~varies
        return alone

    def take(self, rows: Any) -> _Many:
        return _Many(*(getattr(self, name)[rows] for name in _COLUMNS))


def _precision(designs: _Many, clusters: Floats) -> Floats:
    pairs = designs.pairs
    spread = np.maximum(designs.share * (1 - designs.share), 1e-9)
    over_items = spread * (1 + (pairs - 1) * designs.icc) / (pairs * clusters)
    found: Floats = spread / (over_items + designs.wording_variance / designs.wordings)
    return found


def _printed(designs: _Many, clusters: Floats, share: Floats) -> tuple[Floats, Floats]:
    pairs, others = designs.pairs, np.maximum(designs.wordings - 1, 1)
    spread = np.maximum(share * (1 - share), 1e-9)
    icc = _printed_icc(designs, clusters, share)
    over_items = spread * (1 + (pairs - 1) * icc) / (pairs * clusters)
    over_wordings = (designs.wording_variance + designs.cell_variance / clusters) / designs.wordings
    total = over_items + over_wordings
    df = total**2 / (over_wordings**2 / others + over_items**2 / (clusters - 1))
    return spread / total, np.where(over_wordings > 0, df, clusters - 1)


def _printed_icc(designs: _Many, clusters: Floats, share: Floats) -> Floats:
    k, m = clusters, designs.pairs
    if (m <= 1).all():
        return np.zeros(len(share))
    spread = share * (1 - share) * (1 + (m - 1) * designs.icc) / m
    rare = np.minimum(share, 1 - share)
    spread_over = np.maximum(1.0, k * rare**2 / np.where(rare > 0, rare**2 + spread, 1.0))
    weight = 2 * (0.02 + 0.5 / spread_over**2)
    grand = (k * share + weight / 2) / (k + weight)
    pseudo = weight / 2 * ((1 - grand) ** 2 + grand**2)
    between = m * (k * spread + k * (share - grand) ** 2 + pseudo) / (k + weight - 1)
    within = k * (share * (1 - share) - spread) * m / ((k + weight) * np.where(m > 1, m - 1, 1.0))
    total = between + (m - 1) * within
    known = total > 0
    icc = np.clip((between - within) / np.where(known, total, 1.0), 0.0, 1.0)
    return np.where(m > 1, np.where(known, icc, designs.icc), 0.0)


def share_chances(
    designs: Sequence[ShareDesign],
    clusters: int,
    *,
    threshold: float,
    confidence_level: float = 0.95,
) -> Floats:
    """Probability that the interval of a share excludes the threshold, for several designs.

    Wilson's interval on n effective rows lies above p0 if the share observed is above
    p0 + t * sqrt(p0 (1 - p0) / n), and below it by symmetry. The share observed is taken as
    binomial on the design's effective rows: exact with one pair per cluster, otherwise by its beta
    tail at half a row beyond the limit.

    Args:
        designs: the true share and how it varies, of each design, d in all.
        clusters: number of clusters, at least 2.
        threshold: p0, within (0, 1).
        confidence_level: of the two-sided interval, within (0, 1).

    Returns:
        Probabilities, shape (d,).

    >>> designs = [ShareDesign(0.9), ShareDesign(0.9, pairs=3, icc=0.2)]
    >>> share_chances(designs, 100, threshold=0.8).round(2).tolist()
    [0.8, 0.98]
    """
    many = _Many.of(designs)
    return _chances(many, np.full(len(many.share), float(clusters)), threshold, confidence_level)


def least_clusters(
    designs: Sequence[ShareDesign], wanted: float, most: int, threshold: float, level: float
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

    >>> least_clusters([ShareDesign(0.9), ShareDesign(0.8)], 0.8, 200_000, 0.8, 0.95).tolist()
    [100.0, inf]
    """
    many = _Many.of(designs)

    def short(rows: Codes, clusters: Floats) -> Bools:
        chances = _chances(many.take(rows), clusters, threshold, level)
        found: Bools = chances < wanted
        return found

    # Bisection, as in `planning.smallest`, of all designs side by side.
    high = np.full(len(many.share), 2.0)
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
    for row in np.flatnonzero(many.binomial & (high < _SCANNED)).tolist():
        # Whole hits make the probability a sawtooth, which bisection does not follow.
        scanned = np.arange(2.0, high[row] + 1)
        high[row] = scanned[np.argmin(short(np.full(len(scanned), row), scanned))]
    return high


def _chances(designs: _Many, clusters: Floats, threshold: float, level: float) -> Floats:
    """`share_chances` of each design at its own number of clusters, shape (d,)."""
    from scipy.special import betainc

    n, binomial = _precision(designs, clusters), designs.binomial
    chance = np.zeros(len(clusters))
    for share, limit in ((designs.share, threshold), (1 - designs.share, 1 - threshold)):
        hits = n * _limits(designs, clusters, limit, level)
        hits = np.where(binomial, np.floor(hits + 1e-9) + 1, hits + 0.5)
        inside = hits <= n
        tail = betainc(np.where(inside, hits, 1.0), np.where(inside, n - hits + 1, 1.0), share)
        beyond = np.where(~binomial & (hits <= n + 0.5), share**n, 0.0)
        chance += np.where(inside, tail, beyond)
    return np.minimum(1.0, chance)


def _limits(designs: _Many, clusters: Floats, threshold: float, level: float) -> Floats:
    """The share observed from which the interval lies above the threshold."""
    from scipy.special import stdtrit

    limit = (threshold + np.maximum(threshold, designs.share)) / 2
    for _ in range(4):
        # The interval is judged by what a run at this limit would print.
        n, df = _printed(designs, clusters, np.minimum(limit, 0.999))
        t = stdtrit(df, (1 + level) / 2)
        limit = threshold + t * np.sqrt(threshold * (1 - threshold) / n)
    return limit
