"""A sequential test that you may look at every week."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats

YEAR = 52
"""Looks over which the weights of the starts are equal."""

TARGET = 0.05
"""The mean excess that the tuned bet expects."""

_TUNED = 0.7
"""Share of the capital on the tuned bet; the rest is on the constant bets."""

_FIRST_SQUARE, _FIRST_WEIGHT = 0.25, 20
"""The mean square of numbers before any was seen, and how many numbers that counts for."""

_BETS = np.arange(1, 21) / 21
"""Constant bets that are averaged. More of them find no more, and take longer."""


def start_weight(start: int) -> float:
    """The share of the error that the test from one look on may spend; all of them add up to 1.

    The first 52 starts share 0.7, the next 52 0.1, then 0.05, and so on: 0.6 / (year (year + 1)).
    """
    year = start // YEAR + 1
    return (0.7 if year == 1 else 0.6 / (year * (year + 1))) / YEAR


@dataclass(frozen=True)
class Watch:
    """What a sequential test says at its looks, which are counted from 0.

    ``log_evidence`` is the log of the evidence after each look, as high as it ever was, shape
    (looks,); an alarm is due from ``log_limit`` on. ``alarm`` is the first look with an alarm, None
    without one. ``since`` is the strongest start at the alarm, or else at the last look, and
    ``low`` the lower bound of the mean excess from there up to the last look.
    """

    log_evidence: Floats
    log_limit: float
    alarm: int | None
    since: int
    low: float


def watch(
    excesses: Sequence[Any],
    ids: Sequence[Sequence[Hashable]] | None = None,
    *,
    error: float = 0.05,
) -> Watch:
    """Test at every look whether the mean excess lies above 0 since some earlier look.

    From each look on, a gambler bets that the mean excess lies above 0: a part of the capital on
    constant bets (dKelly, as in `lower_bound`; z in [-1, 1] stands for (1 + z) / 2
    against 1/2), the rest on the bet that grows fastest if the mean is `TARGET`, `TARGET` / E[z²]
    with E[z²] from earlier looks (Waudby-Smith & Ramdas 2024, section B.2). If no id comes twice,
    the wealths of all starts, each times its `start_weight`, add up to one gambler's, who starts
    with 1; an alarm is due once that reaches 1 / error (Ville 1939). The look at which an id comes
    again begins a new block of starts, for which only ids count that are new since then: the same
    item again tells nothing new of items like it. Of several blocks the strongest counts. The
    weights of all starts add up to 1, so that the union over blocks keeps all of them below
    ``error`` together, however many looks there are. Which ids are looked at must not depend on
    the numbers seen.

    Args:
        excesses: for each look, numbers in [-1, 1], such as moved minus reworded verdicts.
        ids: for each look, what each number is of; None if every number is of another item, or if
            only these items matter.
        error: the chance of an alarm at any look if the mean excess is at most 0.

    >>> rng = np.random.default_rng(0)
    >>> looks = [rng.choice([-1, 0, 1], 200, p=[0.1, 0.75, 0.15]) for _ in range(10)]
    >>> watch(looks[:1]).alarm, watch(looks).alarm
    (None, 4)
    """
    from scipy.special import logsumexp

    z = [np.asarray(excess, np.float64) for excess in excesses]
    before = _seen_before(z, ids)
    starts = _blocks(before)
    t = len(z)
    evidence = np.full((t, t), -np.inf)
    peak = np.full(t, -np.inf)
    for first, end in zip(starts, [*starts[1:], t], strict=True):
        fresh = [look[last < first] for look, last in zip(z[first:], before[first:], strict=True)]
        wealth = log_evidence(growth(fresh), end - first)
        weights = np.log([start_weight(start) for start in range(first, end)])
        evidence[first:end, first:] = wealth + weights[:, None]
        peak[first:] = np.maximum(peak[first:], logsumexp(evidence[first:end, first:], axis=0))
    peak = np.maximum.accumulate(peak)
    log_limit = float(-np.log(error))
    over = np.flatnonzero(peak >= log_limit)
    alarm = int(over[0]) if len(over) else None
    since = int(evidence[:, t - 1 if alarm is None else alarm].argmax())
    fresh = [look[last < since] for look, last in zip(z[since:], before[since:], strict=True)]
    values, evidence_limit = np.concatenate(fresh), 1 / (error * start_weight(since))
    low = 2 * lower_bound((1 + values) / 2, evidence_limit) - 1 if len(values) else -1.0
    return Watch(peak, log_limit, alarm, since, low)


def growth(z: Sequence[Floats]) -> Floats:
    """Log growth of each constant bet and of the tuned bet, shape (looks, bets + 1).

    The tuned bet is fixed before its look, so that independent numbers only need means of at most 0
    on average at each look.
    """
    squares, weight = _FIRST_SQUARE * _FIRST_WEIGHT, float(_FIRST_WEIGHT)
    growths = []
    for look in z:
        tuned = min(TARGET * weight / squares, float(_BETS[-1]))
        bets_growth = np.log1p(np.multiply.outer(look, _BETS)).sum(axis=0)
        growths.append(np.append(bets_growth, np.log1p(tuned * look).sum()))
        squares, weight = squares + float(look @ look), weight + len(look)
    return np.stack(growths)


def log_evidence(growths: Floats, starts: int) -> Floats:
    """Log wealth of each start after each look, -inf before it; shape (starts, looks).

    ``growths`` has shape (looks, bets), the tuned bet last.
    """
    from scipy.special import logsumexp

    looks, bets = growths.shape
    shares = np.append(np.full(bets - 1, (1 - _TUNED) / (bets - 1)), _TUNED)
    sums = np.cumsum(growths, axis=0)
    past = np.concatenate([np.zeros((1, bets)), sums])[:starts]
    wealth = logsumexp(sums[None] - past[:, None] + np.log(shares), axis=-1)
    return np.where(np.arange(looks) >= np.arange(starts)[:, None], wealth, -np.inf)


def _blocks(before: Sequence[Codes]) -> list[int]:
    """The looks at which a block of starts begins: the first, then each that has an id again."""
    starts = [0]
    for look, last in enumerate(before):
        if (last >= starts[-1]).any():
            starts.append(look)
    return starts


def _seen_before(z: Sequence[Floats], ids: Sequence[Sequence[Hashable]] | None) -> list[Codes]:
    """For each number, the last look before its own that had its id; -1 for none."""
    if ids is None:
        return [np.full(len(look), -1) for look in z]
    last: dict[Hashable, int] = {}
    lasts: list[Codes] = []
    for look, look_ids in enumerate(ids):
        lasts.append(np.array([last.get(name, -1) for name in look_ids], dtype=np.int64))
        last.update(dict.fromkeys(look_ids, look))
    return lasts


def lower_bound(values: Floats, evidence: float) -> float:
    """The smallest mean in [0, 1] that a betting test on values in [0, 1] does not rule out.

    A gambler splits 1 among constant bets that the mean lies above a number, the fractions
    j / (n + 1) of the largest bet that cannot ruin him (diversified Kelly betting; Waudby-Smith &
    Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86, section B.4).
    If it does not, his wealth ever exceeds 1 / alpha with probability alpha at most (Ville 1939).
    The wealth is monotone in the number, so that the bound is a root, found to 1e-10.

    Args:
        values: shape (n,), numbers in [0, 1]; their order does not matter.
        evidence: the wealth that rules a mean out; 1 / alpha for a bound that holds with
            probability 1 - alpha at every look at once.
    """
    from scipy.optimize import brentq
    from scipy.special import logsumexp

    # Equal values have equal gains.
    distinct, counts = np.unique(values, return_counts=True)

    def excess(mean: float) -> float:
        odds = np.where(distinct > 0, distinct / mean, 0.0)
        gains = (np.log1p(_BETS[:, None] * (odds - 1)) * counts).sum(axis=1)
        return float(logsumexp(gains) - np.log(len(gains)) - np.log(evidence))

    tiny = 1e-12
    if excess(tiny) <= 0:
        return 0.0
    return 1.0 if excess(1.0) > 0 else float(brentq(excess, tiny, 1.0, xtol=1e-10))
