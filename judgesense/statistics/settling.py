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

from judgesense.statistics.arrays import Floats
from judgesense.statistics.labels import check_level, check_seed
from judgesense.statistics.planning import smallest
from judgesense.statistics.share_design import ShareDesign, least_clusters, share_chance

__all__ = [
    "MOST_CLUSTERS", "PROBABILITY", "Needed", "ShareDesign", "error_of", "items_for_estimate",
    "items_for_share", "share_chance", "smallest_difference",
]  # fmt: skip


PROBABILITY = 0.8
"""Probability with which a plan settles its question."""

MOST_CLUSTERS = 200_000
"""A plan that needs more is no plan."""

_WORDINGS_MARGIN = 0.05
"""Planned on top where wordings vary: runs with a low share also show a wide spread, which the
plan's average spread misses (`benchmarks/conclusions`)."""

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
    level = check_level(confidence_level)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold!r}: pass a number between 0 and 1")
    wanted = min(probability + (_WORDINGS_MARGIN if design.varies else 0), (1 + probability) / 2)

    def least(designs: list[ShareDesign]) -> Floats:
        return least_clusters(designs, wanted, MOST_CLUSTERS, threshold, level)

    if seen is None:
        return Needed(_whole(least([design])[0]), None, None)
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
        replace(design, share=float(p), icc=float(icc), wording_variance=float(extra))
        for p, icc, extra in zip(shares, iccs, spreads, strict=True)
    ]
    numbers = least([design, *drawn])
    found = _whole(numbers[0])
    return Needed(found, *_range(numbers[1:], found))


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
    each = [needed(float(v), float(e)) for v, e in zip(values, errors, strict=True)]
    drawn = np.array([math.inf if number is None else number for number in each])
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


def _range(drawn: Floats, found: int | None) -> tuple[int | None, int | None]:
    """The middle of the draws, as far as the number found: it can lie outside with few clusters."""
    low, high = np.quantile(drawn, _RANGE, method="nearest")
    centre = math.inf if found is None else float(found)
    return _whole(min(low, centre)), _whole(max(high, centre))


def _whole(clusters: float) -> int | None:
    return int(clusters) if math.isfinite(clusters) else None


def _check_error(error: Any, seen: Any) -> None:
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 <= error < math.inf:
        raise ValueError(f"error is {error!r}: pass a number of at least 0")
    if isinstance(seen, bool) or not isinstance(seen, (int, np.integer)) or seen < 2:
        raise ValueError(f"seen is {seen!r}: pass a number of clusters, at least 2")
