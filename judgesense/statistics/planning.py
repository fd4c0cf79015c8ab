"""How many items or labels settle a question, and the smallest difference that a sample shows.

A question is settled if the interval of an estimate excludes a threshold. Plans are for a
probability, and say how uncertain they are, because estimate, intra-cluster correlation and spread
over wordings come from a sample themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.share_design import ShareDesign, least_clusters

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


@dataclass(frozen=True)
class Needed:
    """How many clusters (items, labels) settle a question with the wanted probability.

    `low` and `high` are the 10% and 90% quantiles of that number over what estimate, correlation
    and spread may truly be. None: no number up to 200,000 (or to all units) suffices.
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


def items_for_share(
    design: ShareDesign,
    *,
    threshold: float,
    confidence_level: float = 0.95,
    seen: int | None = None,
    seed: int = 0,
) -> Needed:
    """How many clusters settle with probability 0.8 on which side of a threshold a share lies.

    Args:
        design: the share and how it varies, assumed or estimated.
        threshold: within (0, 1).
        confidence_level: of the two-sided interval; 0.9 for a one-sided bound at 95%.
        seen: number of clusters that the design was estimated from; the range then follows from a
            Jeffreys posterior of the share, Fisher's variance of the intra-cluster correlation
            and a chi-square for the spread over wordings. None for assumed figures: no range.
        seed: of the draws behind the range.

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
        rng = np.random.default_rng(seed)
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
    numbers = least_clusters(designs, wanted, MOST_CLUSTERS, threshold, confidence_level)
    return _needed(numbers[0], numbers[1:] if seen else None)


def items_for_estimate(
    estimate: float,
    error: float,
    seen: int,
    *,
    threshold: float = 0.0,
    confidence_level: float = 0.95,
    seed: int = 0,
    assumed: bool = False,
) -> Needed:
    """How many clusters settle with probability 0.8 on which side of a threshold an estimate lies.

    The standard error shrinks with the root of the number of clusters; the interval is
    estimate +- t * error.

    Args:
        estimate: the figure (kappa, a difference).
        error: its standard error with `seen` clusters, positive.
        seen: number of clusters behind the error, at least 2.
        threshold: what the interval must exclude.
        seed: of the draws behind the range.
        assumed: True if estimate and error are assumed: no range.

    >>> items_for_estimate(0.05, 0.05, 100, assumed=True)
    Needed(clusters=787, low=None, high=None)
    """

    def needed(value: float, own: float) -> float:
        def settled(k: int) -> bool:
            reach = float(_reach(k, confidence_level))
            return abs(value - threshold) >= reach * own * math.sqrt(seen / k)

        return smallest(settled, MOST_CLUSTERS)

    best = needed(estimate, error)
    if assumed:
        return _needed(best)
    rng = np.random.default_rng(seed)
    errors = error * np.sqrt((seen - 1) / rng.chisquare(seen - 1, _DRAWS))
    values = estimate + errors * rng.standard_normal(_DRAWS)
    drawn = np.array([needed(float(v), float(e)) for v, e in zip(values, errors, strict=True)])
    return _needed(best, drawn)


def labels_needed(
    estimate: float,
    error: float,
    label_error: float,
    n_labels: int,
    n_units: int,
    *,
    confidence_level: float = 0.95,
    seed: int = 0,
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
    rng = np.random.default_rng(seed)
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


def smallest(holds: Callable[[int], bool], most: int) -> float:
    """Smallest k >= 2 for which `holds(k)`, found by bisection; once true, it must stay true.

    Infinite if it lies above ``most``, as far as doubling tells.

    >>> smallest(lambda k: k * k >= 50, 100), smallest(lambda k: False, 100)
    (8, inf)
    """
    high = 2
    while not holds(high):
        high *= 2
        if high > most:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _reach(k: int | Floats, level: float) -> Floats:
    """Standard errors from the threshold at which a question is settled: t + z."""
    from scipy.special import ndtri, stdtrit

    reach: Floats = stdtrit(np.maximum(1.0, k - 1), (1 + level) / 2) + ndtri(PROBABILITY)
    return reach


def _needed(best: float, drawn: Floats | None = None) -> Needed:
    """A number and its range, None for infinity. The middle of the draws reaches to the number."""
    if drawn is None:
        return Needed(_whole(best), None, None)
    low, high = np.quantile(drawn, _RANGE, method="nearest")
    return Needed(_whole(best), _whole(min(low, best)), _whole(max(high, best)))


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None
