"""A sequential test that you may look at every week, whenever the judge was updated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.confidence_sequence import N_BETS, lower_bound
from judgesense.statistics.labels import check_level
from judgesense.statistics.tables import numbers

YEAR = 52
"""Looks over which the weights of the starts are equal."""

TARGET = 0.05
"""The mean excess that the tuned bet expects."""

_TUNED = 0.7
"""Share of the capital on the tuned bet; the rest is on the constant bets."""

_FIRST_SQUARE, _FIRST_WEIGHT = 0.25, 20
"""The mean square of numbers before any was seen, and how many numbers that counts for."""


def start_weight(start: int) -> float:
    """The share of the error that the test from one look on may spend; all of them add up to 1.

    The first 52 starts share 0.7, the next 52 0.1, then 0.05, and so on: 0.6 / (year (year + 1)).

    >>> round(start_weight(0) * 52, 3), round(start_weight(52) * 52, 3)
    (0.7, 0.1)
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
    n_bets: int = N_BETS,
) -> Watch:
    """Test at every look whether the mean excess lies above 0 since some earlier look.

    From each look on, a gambler bets that the mean excess lies above 0: a part of the capital on
    constant bets (dKelly, `confidence_sequence.log_wealth`; z in [-1, 1] stands for (1 + z) / 2
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
        n_bets: number of bets.

    Returns:
        The evidence after each look.

    Raises:
        ValueError: no looks, numbers outside [-1, 1], or ids that do not fit.

    >>> rng = np.random.default_rng(0)
    >>> looks = [rng.choice([-1, 0, 1], 200, p=[0.1, 0.75, 0.15]) for _ in range(10)]
    >>> watch(looks[:1]).alarm, watch(looks).alarm
    (None, 4)
    """
    check_level(1 - error)
    if not len(excesses):
        raise ValueError("excesses is empty: pass at least one look")
    z = [numbers(each, f"excesses[{look}]") for look, each in enumerate(excesses)]
    for look, each in enumerate(z):
        if (np.abs(each) > 1).any():
            raise ValueError(f"excesses[{look}] has a number outside [-1, 1]: pass differences")
    before = _seen_before(z, ids)
    starts = _blocks(before)
    t = len(z)
    evidence = np.full((t, t), -np.inf)
    best = np.full(t, -np.inf)
    for first, end in zip(starts, [*starts[1:], t], strict=True):
        kept = [each[last < first] for each, last in zip(z[first:], before[first:], strict=True)]
        wealth = log_evidence(growth(kept, n_bets=n_bets), end - first)
        evidence[first:end, first:] = wealth + _log_weights(first, end)[:, None]
        best[first:] = np.maximum(best[first:], log_sum(evidence[first:end, first:], axis=0))
    best = np.maximum.accumulate(best)
    log_limit = float(-np.log(error))
    over = np.flatnonzero(best >= log_limit)
    alarm = int(over[0]) if len(over) else None
    since = int(evidence[:, t - 1 if alarm is None else alarm].argmax())
    return Watch(best, log_limit, alarm, since, _low(z[since:], before[since:], since, error))


def growth(
    z: Sequence[Floats], counts: Sequence[Any] | None = None, n_bets: int = N_BETS
) -> Floats:
    """Log growth of each constant bet and of the tuned bet, shape (..., looks, bets + 1).

    ``counts`` say how often each number of a look occurs, shape (..., n) each; once by default. The
    tuned bet is fixed before its look, so that independent numbers only need means of at most 0 on
    average at each look.
    """
    bets = np.arange(1, n_bets + 1) / (n_bets + 1)
    squares: Any = _FIRST_SQUARE * _FIRST_WEIGHT
    seen: Any = _FIRST_WEIGHT
    found = []
    for look, each in enumerate(z):
        times = np.ones(len(each)) if counts is None else np.asarray(counts[look], float)
        tuned = np.minimum(TARGET * seen / squares, bets[-1])
        own = (np.log1p(np.multiply.outer(tuned, each)) * times).sum(axis=-1)
        fixed = times @ np.log1p(np.multiply.outer(each, bets))
        found.append(np.concatenate([fixed, own[..., None]], axis=-1))
        squares, seen = squares + times @ each**2, seen + times.sum(axis=-1)
    return np.stack(found, axis=-2)


def log_evidence(growths: Floats, starts: int) -> Floats:
    """Log wealth of each start after each look, -inf before it; shape (..., starts, looks).

    ``growths`` has shape (..., looks, bets), the tuned bet last.
    """
    looks, bets = growths.shape[-2:]
    shares = np.append(np.full(bets - 1, (1 - _TUNED) / (bets - 1)), _TUNED)
    sums = np.cumsum(growths, axis=-2)
    past = np.concatenate([np.zeros_like(sums[..., :1, :]), sums], axis=-2)[..., :starts, :]
    wealth = log_sum(sums[..., None, :, :] - past[..., :, None, :] + np.log(shares), axis=-1)
    return np.where(np.arange(looks) >= np.arange(starts)[:, None], wealth, -np.inf)


def log_sum(logs: Floats, axis: int) -> Floats:
    """Log of the sum of exponentials."""
    from scipy.special import logsumexp

    found: Floats = logsumexp(logs, axis=axis)
    return found


def _log_weights(first: int, end: int) -> Floats:
    return np.log([start_weight(start) for start in range(first, end)])


def _blocks(before: Sequence[Codes]) -> list[int]:
    """The looks at which a block of starts begins: the first, then each that has an id again."""
    found = [0]
    for look, last in enumerate(before):
        if (last >= found[-1]).any():
            found.append(look)
    return found


def _seen_before(z: Sequence[Floats], ids: Sequence[Sequence[Hashable]] | None) -> list[Codes]:
    """For each number, the last look before its own that had its id; -1 for none."""
    if ids is None:
        return [np.full(len(each), -1) for each in z]
    if len(ids) != len(z):
        raise ValueError(f"ids are of {len(ids)} looks and excesses of {len(z)}: pass one each")
    last: dict[Hashable, int] = {}
    found: list[Codes] = []
    for look, (each, own) in enumerate(zip(z, ids, strict=True)):
        if len(own) != len(each) or len(set(own)) != len(own):
            raise ValueError(
                f"ids[{look}] has {len(own)} ids, {len(set(own))} of them distinct, and "
                f"{len(each)} numbers: pass one number for each id"
            )
        found.append(np.array([last.get(name, -1) for name in own], dtype=np.int64))
        last.update(dict.fromkeys(own, look))
    return found


def _low(z: Sequence[Floats], before: Sequence[Codes], start: int, error: float) -> float:
    kept = [each[last < start] for each, last in zip(z, before, strict=True)]
    values = np.concatenate(kept)
    if not len(values):
        return -1.0
    return 2 * lower_bound((1 + values) / 2, 1 / (error * start_weight(start))) - 1
