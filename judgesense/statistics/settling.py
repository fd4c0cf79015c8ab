"""How many items and wordings settle a question, and the smallest difference that a sample shows.

A question is settled if the interval of an estimate excludes a threshold. `items_needed` of
`planning` finds where it would do so if the next run gave the same estimate, which happens in about
half of all runs. The functions here plan for a probability, and say how uncertain the plan is,
because estimate, intra-cluster correlation and spread over wordings come from a sample themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.statistics.labels import check_level, check_seed
from judgesense.statistics.planning import smallest

PROBABILITY = 0.8
"""Probability with which a plan settles its question."""

MOST_CLUSTERS = 200_000
"""A plan that needs more is no plan."""

_WORDINGS_MARGIN = 0.05
"""Planned on top where wordings vary: runs with a low share also show a wide spread, which the
plan's average spread misses (`benchmarks/conclusions`)."""

_SCANNED = 300
_DRAWS = 100
_RANGE = (0.1, 0.9)


@dataclass(frozen=True)
class Needed:
    """How many clusters (items) settle a question with the wanted probability.

    `low` and `high` are the 10% and 90% quantiles of that number over what estimate, correlation
    and spread may truly be. None: no number up to 200,000 suffices.
    """

    clusters: int | None
    low: int | None
    high: int | None

    def scaled(self, factor: float, least: int = 2) -> Needed:
        """These numbers times a factor (items per cluster), rounded up, and at least ``least``.

        >>> Needed(10, 5, None).scaled(2.5)
        Needed(clusters=25, low=13, high=None)
        """
        numbers = (
            None if each is None else max(least, math.ceil(each * factor))
            for each in (self.clusters, self.low, self.high)
        )
        return Needed(*numbers)


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

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("share", self.share, 0.0, 1.0),
            ("pairs", self.pairs, 1.0, math.inf),
            ("icc", self.icc, 0.0, 1.0),
            ("items", self.items, 1.0, math.inf),
            ("wordings", self.wordings, 1.0, math.inf),
            ("wording_variance", self.wording_variance, 0.0, math.inf),
            ("cell_variance", self.cell_variance, 0.0, math.inf),
        ):
            if isinstance(value, bool) or not low <= value <= high or value == math.inf:
                raise ValueError(f"{name} is {value!r}: pass a number from {low:g} to {high:g}")

    @property
    def is_binomial(self) -> bool:
        """Whether every pair is independent of all others."""
        return self.pairs == 1 and not self.varies

    @property
    def varies(self) -> bool:
        """Whether wordings are a sample, too."""
        return self.wordings > 1 and self.wording_variance + self.cell_variance > 0

    def precision(self, clusters: int) -> float:
        """Effective sample size with this many clusters.

        >>> ShareDesign(0.9, pairs=10, icc=0.5).precision(11)
        20.0
        """
        spread = max(self.share * (1 - self.share), 1e-9)
        over_items = spread * (1 + (self.pairs - 1) * self.icc) / (self.pairs * clusters)
        return spread / (over_items + self.wording_variance / self.wordings)

    def printed(self, clusters: int, share: float) -> tuple[float, float]:
        """Effective sample size and degrees of freedom of the interval at an observed share.

        They are those of `intervals.wilson_cluster`, or of `crossed.two_way_interval` if wordings
        vary, on average.
        """
        spread = max(share * (1 - share), 1e-9)
        icc = self.printed_icc(clusters, share)
        over_items = spread * (1 + (self.pairs - 1) * icc) / (self.pairs * clusters)
        over_wordings = (self.wording_variance + self.cell_variance / clusters) / self.wordings
        df = float(clusters - 1)
        if over_wordings > 0:
            total = over_items + over_wordings
            df = total**2 / (over_wordings**2 / (self.wordings - 1) + over_items**2 / df)
        return spread / (over_items + over_wordings), df

    def printed_icc(self, clusters: int, share: float) -> float:
        """The intra-cluster correlation that `wilson_cluster` will estimate, on average.

        It adds an all-agreeing and an all-disagreeing pseudo-cluster, which raises the estimate if
        few clusters hold the rarer outcome: see `intervals.wilson_cluster`.

        >>> round(ShareDesign(0.9, pairs=10, icc=0.1).printed_icc(10, 0.9), 2)
        0.17
        """
        if self.pairs <= 1:
            return 0.0
        k, m = clusters, self.pairs
        spread = share * (1 - share) * (1 + (m - 1) * self.icc) / m
        rare = min(share, 1 - share)
        spread_over = max(1.0, k * rare**2 / (rare**2 + spread)) if rare > 0 else 1.0
        weight = 2 * (0.02 + 0.5 / spread_over**2)
        grand = (k * share + weight / 2) / (k + weight)
        pseudo = weight / 2 * ((1 - grand) ** 2 + grand**2)
        between = m * (k * spread + k * (share - grand) ** 2 + pseudo) / (k + weight - 1)
        within = k * (share * (1 - share) - spread) * m / ((k + weight) * (m - 1))
        total = between + (m - 1) * within
        return min(1.0, max(0.0, (between - within) / total)) if total > 0 else self.icc


def share_chance(
    design: ShareDesign, clusters: int, *, threshold: float, confidence_level: float = 0.95
) -> float:
    """Probability that the interval of a share excludes the threshold.

    Wilson's interval on n effective rows lies above p0 if the share observed is above
    p0 + t * sqrt(p0 (1 - p0) / n), and below it by symmetry. The share observed is taken as
    binomial on the design's effective rows: exact with one pair per cluster, otherwise by its beta
    tail at half a row beyond the limit.

    Args:
        design: the true share and how it varies.
        clusters: number of clusters, at least 2.
        threshold: p0, within (0, 1).
        confidence_level: of the two-sided interval, within (0, 1).

    Returns:
        The probability, in [0, 1].

    Raises:
        ValueError: a threshold or level outside (0, 1).

    >>> round(share_chance(ShareDesign(0.9), 150, threshold=0.8), 2)
    0.93
    """
    from scipy.special import betainc

    level = check_level(confidence_level)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold!r}: pass a number between 0 and 1")
    n = design.precision(clusters)
    chance = 0.0
    for share, limit in ((design.share, threshold), (1 - design.share, 1 - threshold)):
        hits = n * _limit(design, clusters, limit, level)
        hits = math.floor(hits + 1e-9) + 1 if design.is_binomial else hits + 0.5
        if hits <= n:
            chance += float(betainc(hits, n - hits + 1, share))
        elif hits <= n + 0.5 and not design.is_binomial:
            chance += share**n
    return min(1.0, chance)


def _limit(design: ShareDesign, clusters: int, threshold: float, level: float) -> float:
    """The share observed from which the interval lies above the threshold."""
    from scipy.special import stdtrit

    limit = (threshold + max(threshold, design.share)) / 2
    for _ in range(4):
        # The interval is judged by what a run at this limit would print.
        n, df = design.printed(clusters, min(limit, 0.999))
        t = float(stdtrit(df, (1 + level) / 2))
        limit = threshold + t * math.sqrt(threshold * (1 - threshold) / n)
    return limit


def items_for_share(
    design: ShareDesign,
    *,
    threshold: float,
    confidence_level: float = 0.95,
    probability: float = PROBABILITY,
    seen: int | None = None,
    seed: int = 0,
) -> Needed:
    """How many clusters settle on which side of a threshold a share lies.

    Args:
        design: the share and how it varies, assumed or estimated.
        threshold: within (0, 1).
        confidence_level: of the two-sided interval; 0.9 for a one-sided bound at 95%.
        probability: with which the plan settles the question.
        seen: number of clusters that the design was estimated from; the range then follows from a
            Jeffreys posterior of the share, Fisher's variance of the intra-cluster correlation
            and a chi-square for the spread over wordings. None for assumed figures: no range.
        seed: of the draws behind the range.

    Returns:
        The number and its range.

    Raises:
        ValueError: an argument out of its range.

    >>> items_for_share(ShareDesign(0.9), threshold=0.8)
    Needed(clusters=100, low=None, high=None)
    >>> items_for_share(ShareDesign(0.9), threshold=0.8, seen=60).low
    48
    """
    check_level(probability)

    wanted = min(probability + (_WORDINGS_MARGIN if design.varies else 0), (1 + probability) / 2)

    def settled(one: ShareDesign, k: int) -> bool:
        chance = share_chance(one, k, threshold=threshold, confidence_level=confidence_level)
        return chance >= wanted

    def needed(one: ShareDesign) -> int | None:
        number = smallest(lambda k: settled(one, k), MOST_CLUSTERS)
        if number is not None and one.is_binomial and number < _SCANNED:
            # Whole hits make the probability a sawtooth, which bisection does not follow.
            number = next(k for k in range(2, _SCANNED + 1) if settled(one, k))
        return number

    found = needed(design)
    if seen is None:
        return Needed(found, None, None)
    rng = np.random.default_rng(check_seed(seed))
    n = design.precision(seen)
    shares = rng.beta(n * design.share + 0.5, n * (1 - design.share) + 0.5, _DRAWS)
    iccs = np.full(_DRAWS, design.icc)
    if design.pairs > 1:
        spread = (1 - design.icc) * (1 + (design.pairs - 1) * design.icc)
        spread *= math.sqrt(2 / (seen * design.pairs * (design.pairs - 1)))
        iccs = np.clip(rng.normal(design.icc, spread, _DRAWS), 0, 1)
    freedom = max(1, design.wordings - 1)
    spreads = design.wording_variance * rng.chisquare(freedom, _DRAWS) / freedom
    drawn = [
        needed(replace(design, share=float(p), icc=float(icc), wording_variance=float(extra)))
        for p, icc, extra in zip(shares, iccs, spreads, strict=True)
    ]
    return Needed(found, *_range(drawn, found))


def items_for_estimate(
    estimate: float,
    error: float,
    seen: int,
    *,
    threshold: float = 0.0,
    confidence_level: float = 0.95,
    probability: float = PROBABILITY,
    seed: int = 0,
    assumed: bool = False,
) -> Needed:
    """How many clusters settle on which side of a threshold an estimate (kappa, difference) lies.

    The standard error shrinks with the root of the number of clusters; the interval is
    estimate +- t * error.

    Args:
        estimate: the figure.
        error: its standard error with `seen` clusters, positive.
        seen: number of clusters behind the error, at least 2.
        threshold: what the interval must exclude.
        confidence_level: of the two-sided interval.
        probability: with which the plan settles the question.
        seed: of the draws behind the range.
        assumed: True if estimate and error are assumed: no range.

    Returns:
        The number and its range.

    Raises:
        ValueError: an argument out of its range.

    >>> items_for_estimate(0.05, 0.05, 100, assumed=True)
    Needed(clusters=787, low=None, high=None)
    """
    _check_error(error, seen)
    check_level(confidence_level)
    check_level(probability)

    def needed(value: float, own: float) -> int | None:
        def settled(k: int) -> bool:
            reach = _quantiles_sum(k, confidence_level, probability)
            return abs(value - threshold) >= reach * own * math.sqrt(seen / k)

        return smallest(settled, MOST_CLUSTERS)

    found = needed(estimate, error)
    if assumed:
        return Needed(found, None, None)
    rng = np.random.default_rng(check_seed(seed))
    errors = error * np.sqrt((seen - 1) / rng.chisquare(seen - 1, _DRAWS))
    values = estimate + errors * rng.standard_normal(_DRAWS)
    drawn = [needed(float(v), float(e)) for v, e in zip(values, errors, strict=True)]
    return Needed(found, *_range(drawn, found))


def smallest_difference(
    error: float,
    seen: int,
    *,
    confidence_level: float = 0.95,
    probability: float = PROBABILITY,
) -> float:
    """The smallest true difference that this sample would have shown with the wanted probability.

    (t + z) * error: t of the two-sided interval at (seen - 1), z of the probability (Cohen 1988).

    Args:
        error: standard error of the difference, not negative.
        seen: number of clusters, at least 2.
        confidence_level: of the two-sided interval.
        probability: within (0, 1).

    Returns:
        The difference, in the units of the error.

    Raises:
        ValueError: an argument out of its range.

    >>> round(smallest_difference(0.05, 100), 3)
    0.141
    """
    _check_error(error, seen)
    return _quantiles_sum(seen, check_level(confidence_level), check_level(probability)) * error


def error_of(ci_low: float, ci_high: float, clusters: int, confidence_level: float = 0.95) -> float:
    """The standard error behind an interval: half its width over t.

    >>> round(error_of(0.4, 0.6, 100), 3)
    0.05
    """
    from scipy.special import stdtrit

    t = float(stdtrit(max(1, clusters - 1), (1 + check_level(confidence_level)) / 2))
    return (ci_high - ci_low) / (2 * t)


def _quantiles_sum(k: int, level: float, probability: float) -> float:
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(k - 1, (1 + level) / 2)) + float(ndtri(probability))


def _range(drawn: list[int | None], found: int | None) -> tuple[int | None, int | None]:
    """The middle of the draws, as far as the number found: it can lie outside with few clusters."""
    values = np.array([math.inf if each is None else each for each in (*drawn, found)])
    low, high = np.quantile(values[:-1], _RANGE, method="nearest")
    low, high = min(low, values[-1]), max(high, values[-1])
    return tuple(None if math.isinf(end) else int(end) for end in (low, high))  # type: ignore[return-value]


def _check_error(error: Any, seen: Any) -> None:
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 <= error < math.inf:
        raise ValueError(f"error is {error!r}: pass a number of at least 0")
    if isinstance(seen, bool) or not isinstance(seen, (int, np.integer)) or seen < 2:
        raise ValueError(f"seen is {seen!r}: pass a number of clusters, at least 2")
