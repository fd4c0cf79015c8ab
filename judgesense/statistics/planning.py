"""How many items or labels settle a question, and the smallest difference that a sample shows.

A question is settled if the interval of an estimate excludes a threshold. Plans are for a
probability, and say how uncertain they are, because estimate, intra-cluster correlation and spread
over wordings come from a sample themselves.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats

PROBABILITY = 0.8
"""Probability with which a plan settles its question."""

MOST_CLUSTERS = 200_000
"""A plan that needs more is no plan."""

_WORDINGS_MARGIN = 0.05
"""Planned on top where wordings vary: runs with a low share also show a wide spread, which the
plan's average spread misses (`benchmarks/conclusions`)."""

_DRAWS = 100
_LABEL_DRAWS = 400
_RANGE = (0.1, 0.9)
_SCANNED = 300


class Needed(NamedTuple):
    """How many clusters (items, labels) settle a question with the wanted probability.

    `low` and `high` are the 10% and 90% quantiles of that number over what estimate, correlation
    and spread may truly be. None: no number up to 200,000 (or to all units) suffices.
    """

    clusters: int | None
    low: int | None
    high: int | None


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


def _least_clusters(
    designs: ShareDesign, wanted: float, most: int, threshold: float, level: float
) -> Floats:
    """The number of clusters from which each design has the wanted chance, shape (d,); or inf."""
    columns = np.array(np.broadcast_arrays(*astuple(designs)))
    every = ShareDesign(*columns)

    def short(rows: Codes, clusters: Floats) -> Bools:
        some = ShareDesign(*columns[:, rows])
        return share_chances(some, clusters, threshold=threshold, confidence_level=level) < wanted

    # Bisection of all designs side by side.
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


def items_for_share(
    design: ShareDesign,
    *,
    threshold: float,
    confidence_level: float = 0.95,
    seen: int | None = None,
) -> Needed:
    """How many clusters settle with probability 0.8 on which side of a threshold a share lies.

    Args:
        design: the share and how it varies, assumed or estimated.
        threshold: within (0, 1).
        confidence_level: of the two-sided interval; 0.9 for a one-sided bound at 95%.
        seen: number of clusters that the design was estimated from; the range then follows from a
            Jeffreys posterior of the share, Fisher's variance of the intra-cluster correlation
            and a chi-square for the spread over wordings. None for assumed figures: no range.

    >>> items_for_share(ShareDesign(0.9), threshold=0.8)
    Needed(clusters=100, low=None, high=None)
    >>> items_for_share(ShareDesign(0.9), threshold=0.8, seen=60).low
    48
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold!r}: pass a number between 0 and 1")
    wanted = PROBABILITY + (_WORDINGS_MARGIN if design.varies else 0)

    share, icc = np.array([design.share]), np.array([design.icc])
    spread = np.array([design.wording_variance])
    if seen is not None:
        rng = np.random.default_rng(0)
        n = float(design.precision(seen))
        shares = rng.beta(n * design.share + 0.5, n * (1 - design.share) + 0.5, _DRAWS)
        iccs = np.full(_DRAWS, design.icc)
        if design.pairs > 1:
            error = (1 - design.icc) * (1 + (design.pairs - 1) * design.icc)
            error *= math.sqrt(2 / (seen * design.pairs * (design.pairs - 1)))
            iccs = np.clip(rng.normal(design.icc, error, _DRAWS), 0, 1)
        freedom = max(1, design.wordings - 1)
        spreads = design.wording_variance * rng.chisquare(freedom, _DRAWS) / freedom
        share, icc = np.append(share, shares), np.append(icc, iccs)
        spread = np.append(spread, spreads)
    designs = replace(design, share=share, icc=icc, wording_variance=spread)
    numbers = _least_clusters(designs, wanted, MOST_CLUSTERS, threshold, confidence_level)
    return _needed(numbers[0], numbers[1:] if seen else None)


def items_for_estimate(
    estimate: float,
    error: float,
    seen: int,
    *,
    threshold: float = 0.0,
    confidence_level: float = 0.95,
) -> int | None:
    """How many clusters settle with probability 0.8 on which side of a threshold an estimate lies.

    The standard error shrinks with the root of the number of clusters; the interval is
    estimate +- t * error.

    Args:
        estimate: the figure (kappa, a difference).
        error: its standard error with `seen` clusters, positive.
        seen: number of clusters behind the error, at least 2.
        threshold: what the interval must exclude.

    Returns:
        The number; None if it is above 200,000.

    >>> items_for_estimate(0.05, 0.05, 100)
    787
    """

    def settled(k: int) -> bool:
        reach = float(_reach(k, confidence_level))
        return abs(estimate - threshold) >= reach * error * math.sqrt(seen / k)

    high = 2
    while not settled(high):
        high *= 2
        if high > MOST_CLUSTERS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def labels_needed(
    estimate: float,
    error: float,
    label_error: float,
    n_labels: int,
    n_units: int,
    *,
    confidence_level: float = 0.95,
) -> Needed:
    """How many labels in all decide, with probability 0.8, whether the truth lies above 0.

    The range follows from the errors of the estimate and of its error, as in `items_for_estimate`;
    a number is None where not even labels on every unit suffice.

    Args:
        estimate: of `prediction_powered.combined`.
        error: its standard error.
        label_error: the part of it that labels shrink, with the root of their number; the rest
            shrinks with more units only.
        n_labels: labels so far, at least 2.
        n_units: units, labelled or not.

    >>> labels_needed(0.1, 0.06, 0.055, 20, 420)
    Needed(clusters=90, low=20, high=None)
    """

    def needed(gap: Floats, own: Floats, rest: float) -> Floats:
        """Labels at which (t + z) * error is the root of the gap; infinite beyond the units."""
        more = np.full(len(gap), float(n_labels))
        for _ in range(20):
            room = gap / _reach(more, confidence_level) ** 2 - rest
            wanted = np.maximum(2.0, n_labels * own / np.where(room > 0, room, np.inf))
            more = np.minimum(np.where(room > 0, wanted, np.inf), 1e9)
        return np.where(more <= n_units, np.ceil(more), np.inf)

    own, rest = label_error**2, max(0.0, error**2 - label_error**2)
    best = needed(np.array([estimate**2]), np.array([own]), rest)[0]
    rng = np.random.default_rng(0)
    gaps = estimate + error * rng.standard_normal(_LABEL_DRAWS)
    df = max(1, n_labels - 1)
    return _needed(best, needed(gaps**2, own * df / rng.chisquare(df, _LABEL_DRAWS), rest))


def smallest_difference(error: float, seen: int, *, confidence_level: float = 0.95) -> float:
    """The smallest true difference that this sample would have shown with probability 0.8.

    (t + z) * error: t of the two-sided interval at (seen - 1), z of the probability (Cohen 1988).

    Args:
        error: standard error of the difference, not negative.
        seen: number of clusters, at least 2.

    >>> round(smallest_difference(0.05, 100), 3)
    0.141
    """
    return float(_reach(seen, confidence_level)) * error


def error_of(ci_low: float, ci_high: float, clusters: int, confidence_level: float = 0.95) -> float:
    """The standard error behind an interval: half its width over t.

    >>> round(error_of(0.4, 0.6, 100), 3)
    0.05
    """
    from scipy.special import stdtrit

    t = float(stdtrit(max(1, clusters - 1), (1 + confidence_level) / 2))
    return (ci_high - ci_low) / (2 * t)


def _reach(k: int | Floats, level: float) -> Floats:
    """Standard errors from the threshold at which a question is settled: t + z."""
    from scipy.special import ndtri, stdtrit

    reach: Floats = stdtrit(np.maximum(1.0, k - 1), (1 + level) / 2) + ndtri(PROBABILITY)
    return reach


def _needed(best: float, drawn: Floats | None = None) -> Needed:
    """A number and its range, None for infinity. The middle of the draws reaches to the number."""
    numbers = [best]
    if drawn is not None:
        low, high = np.quantile(drawn, _RANGE, method="nearest")
        numbers += [min(low, best), max(high, best)]
    whole = [int(number) if math.isfinite(number) else None for number in numbers]
    return Needed(*whole, *[None] * (3 - len(whole)))
