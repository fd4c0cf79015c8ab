"""Bounds that hold at every look at once: confidence sequences for the mean of bounded values.

You may look after every batch and stop whenever you like: the chance that any bound ever misses
the mean is at most 1 - confidence. Source: Waudby-Smith & Ramdas 2024, "Estimating means of bounded
random variables by betting" (JRSS B 86, 1-27), diversified Kelly betting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.labels import check_level
from judgesense.statistics.tables import numbers

N_BETS = 20
"""Bets that are averaged. More of them find no more, and take longer."""


class ConfidenceSequence(NamedTuple):
    """The bounds of the mean after each look, shape (looks,) each."""

    low: Floats
    high: Floats


def log_wealth(values: Any, mean: float, *, n_bets: int = N_BETS) -> Floats:
    """Log of the wealth of a gambler who bets that the mean lies above a number.

    He splits 1 among constant bets, the fractions j / (n_bets + 1) of the largest bet 1 / mean that
    cannot ruin him (Waudby-Smith & Ramdas 2024, section B.4). If the mean is at most ``mean``, the
    wealth exceeds 1 / alpha at any time with probability alpha at most (Ville 1939). Each value may
    have a mean of its own, given those before, if none lies above ``mean``. Since the bets do not
    change, independent values only need means that are at most ``mean`` on average at each look.

    Args:
        values: shape (n,), numbers in [0, 1].
        mean: the mean to bet against, in [0, 1].
        n_bets: number of bets, at least 1.

    Returns:
        Log of the wealth after each value, shape (n,).

    Raises:
        ValueError: values or a mean outside [0, 1], or no bets.

    >>> log_wealth([1, 1, 1, 0, 1, 1], 0.5).round(2).tolist()
    [0.41, 0.84, 1.31, 0.29, 0.68, 1.09]
    """
    x = _unit(values)
    if not 0 <= mean <= 1:
        raise ValueError(f"mean is {mean!r}: pass a number between 0 and 1")
    return _average(np.cumsum(_gains(x, mean, _fractions(n_bets)), axis=1))


def betting_sequence(
    values: Any,
    *,
    confidence_level: float = 0.95,
    looks: Sequence[int] | None = None,
    n_bets: int = N_BETS,
) -> ConfidenceSequence:
    """Confidence sequence for the mean of independent values in [0, 1].

    A mean is ruled out once half of the capital, bet on either side, has grown to 1 / alpha (hedged
    capital). The wealth is monotone in the mean, so that the bounds are roots, found to 1e-10,
    rather than points of a grid.

    Args:
        values: shape (n,), in the order in which they were seen.
        confidence_level: that all bounds hold at once, within (0, 1).
        looks: numbers of values after which to look, in ascending order; None after each.
        n_bets: number of bets a side, at least 1.

    Returns:
        The bounds at each look.

    Raises:
        ValueError: values outside [0, 1], a look that is not among them, or a bad level.

    >>> found = betting_sequence([1, 0, 1, 1] * 25, looks=[20, 100])
    >>> found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.418, 0.601], [0.956, 0.875])
    """
    x, level = _unit(values), check_level(confidence_level)
    ends = np.arange(1, len(x) + 1) if looks is None else np.asarray(looks)
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or (np.diff(ends) <= 0).any():
        raise ValueError("looks are not ascending integers: pass numbers of values")
    if len(ends) and not 1 <= ends[0] <= ends[-1] <= len(x):
        raise ValueError(f"looks go from {ends[0]} to {ends[-1]} of {len(x)} values: pass these")
    target = float(np.log(2 / (1 - level)))
    bets = _fractions(n_bets)
    low = np.array([_bound(x[:end], target, bets) for end in ends], float)
    high = np.array([1 - _bound(1 - x[:end], target, bets) for end in ends], float)
    return ConfidenceSequence(low, high)


def lower_bound(values: Any, evidence: float, *, n_bets: int = N_BETS) -> float:
    """The smallest mean in [0, 1] that a wealth of ``evidence`` does not rule out.

    Args:
        values: shape (n,), numbers in [0, 1]; their order does not matter.
        evidence: the wealth that rules a mean out, above 1; 1 / alpha for a bound that holds
            with probability 1 - alpha at every look at once.
        n_bets: number of bets, at least 1.

    Returns:
        The bound.

    Raises:
        ValueError: values outside [0, 1], or evidence of at most 1.

    >>> round(lower_bound([1, 0, 1, 1] * 25, 20), 3)
    0.613
    """
    if not evidence > 1:
        raise ValueError(f"evidence is {evidence!r}: pass a number above 1")
    return _bound(_unit(values), float(np.log(evidence)), _fractions(n_bets))


def _bound(x: Floats, target: float, bets: Floats) -> float:
    from scipy.optimize import brentq

    # Equal values have equal gains.
    distinct, counts = np.unique(x, return_counts=True)

    def excess(mean: float) -> float:
        gains = (_gains(distinct, mean, bets) * counts).sum(axis=1, keepdims=True)
        return float(_average(gains)[0]) - target

    tiny = 1e-12
    if excess(tiny) <= 0:
        return 0.0
    if excess(1.0) > 0:
        return 1.0
    return float(brentq(excess, tiny, 1.0, xtol=1e-10))


def _gains(x: Floats, mean: float, bets: Floats) -> Floats:
    """Log growth of each bet at each value: log(1 - c + c x / mean), shape (bets, n)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(x > 0, x / mean, 0.0)
    found: Floats = np.log1p(bets[:, None] * (odds - 1))
    return found


def _average(gains: Floats) -> Floats:
    """Log of the mean wealth over bets."""
    from scipy.special import logsumexp

    found: Floats = logsumexp(gains, axis=0) - np.log(len(gains))
    return found


def _fractions(n_bets: int) -> Floats:
    if isinstance(n_bets, bool) or not isinstance(n_bets, (int, np.integer)) or n_bets < 1:
        raise ValueError(f"n_bets is {n_bets!r}: pass an integer of at least 1")
    return np.arange(1, n_bets + 1) / (n_bets + 1)


def _unit(values: Any) -> Floats:
    x = numbers(values, "values")
    bad = np.flatnonzero((x < 0) | (x > 1))
    if len(bad):
        raise ValueError(f"values[{bad[0]}] is {x[bad[0]]}: pass numbers between 0 and 1")
    return x
