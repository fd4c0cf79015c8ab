"""A sequential test that you may look at every week, whenever the judge was updated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.confidence_sequence import N_BETS, lower_bound
from judgesense.statistics.labels import check_level
from judgesense.statistics.tables import numbers

Floats = npt.NDArray[np.float64]

YEAR = 52
"""Looks over which the weights of the starts are equal."""


def start_weight(start: int) -> float:
    """The share of the error that the test from one look on may spend; all of them add up to 1.

    The first 52 starts share a half, the next 52 a sixth, then a twelfth, and so on.

    >>> round(1 / start_weight(0)), round(1 / start_weight(52))
    (104, 312)
    """
    year = start // YEAR + 1
    return 1 / (YEAR * year * (year + 1))


@dataclass(frozen=True)
class Watch:
    """What a sequential test says at its looks, which are counted from 0.

    ``log_evidence`` is the log of the strongest start's evidence after each look, as high as it
    ever was, shape (looks,); an alarm is due from ``log_limit`` on. ``alarm`` is the first look
    with an alarm, None without one. ``since`` is the strongest start at the alarm, or else at the
    last look, and ``low`` the lower bound of the mean excess from there up to the last look.
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

    From each look on, a gambler bets that the mean excess lies above 0 (dKelly bets,
    `confidence_sequence.log_wealth`; z in [-1, 1] stands for (1 + z) / 2 against 1/2). An alarm is
    due once his wealth reaches 1 / (error * `start_weight`); the union over starts keeps all of
    them below ``error`` together, however many looks there are. From each start on, an id counts
    once, at its first look: the same item again tells nothing new of items like it.

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
    (None, 8)
    """
    check_level(1 - error)
    if not len(excesses):
        raise ValueError("excesses is empty: pass at least one look")
    z = [numbers(each, f"excesses[{look}]") for look, each in enumerate(excesses)]
    for look, each in enumerate(z):
        if (np.abs(each) > 1).any():
            raise ValueError(f"excesses[{look}] has a number outside [-1, 1]: pass differences")
    before = _seen_before(z, ids)
    bets = np.arange(1, n_bets + 1) / (n_bets + 1)
    t = len(z)
    # Growth of each bet at each look, for each start: an id counts from starts after its last look.
    growth = np.zeros((t, t, n_bets))
    for look, (each, last) in enumerate(zip(z, before, strict=True)):
        gains = np.log1p(np.multiply.outer(bets, each))
        by_start = [np.bincount(last + 1, row, minlength=look + 1)[: look + 1] for row in gains]
        growth[: look + 1, look] = np.cumsum(by_start, axis=1).T
    wealth = _log_mean(np.cumsum(growth, axis=1))
    weights = np.log([start_weight(start) for start in range(t)])
    evidence = wealth + weights[:, None]
    evidence[np.tril_indices(t, -1)] = -np.inf
    best = np.maximum.accumulate(evidence.max(axis=0))
    log_limit = float(-np.log(error))
    over = np.flatnonzero(best >= log_limit)
    alarm = int(over[0]) if len(over) else None
    since = int(evidence[:, t - 1 if alarm is None else alarm].argmax())
    return Watch(best, log_limit, alarm, since, _low(z[since:], before[since:], since, error))


def _log_mean(logs: Floats) -> Floats:
    from scipy.special import logsumexp

    found: Floats = logsumexp(logs, axis=-1) - np.log(logs.shape[-1])
    return found


def _seen_before(
    z: Sequence[Floats], ids: Sequence[Sequence[Hashable]] | None
) -> list[npt.NDArray[np.int64]]:
    """For each number, the last look before its own that had its id; -1 for none."""
    if ids is None:
        return [np.full(len(each), -1) for each in z]
    if len(ids) != len(z):
        raise ValueError(f"ids are of {len(ids)} looks and excesses of {len(z)}: pass one each")
    last: dict[Hashable, int] = {}
    found = []
    for look, (each, own) in enumerate(zip(z, ids, strict=True)):
        if len(own) != len(each) or len(set(own)) != len(own):
            raise ValueError(
                f"ids[{look}] has {len(own)} ids, {len(set(own))} of them distinct, and "
                f"{len(each)} numbers: pass one number for each id"
            )
        found.append(np.array([last.get(name, -1) for name in own], dtype=np.int64))
        last.update(dict.fromkeys(own, look))
    return found


def _low(
    z: Sequence[Floats], before: Sequence[npt.NDArray[np.int64]], start: int, error: float
) -> float:
    kept = [each[last < start] for each, last in zip(z, before, strict=True)]
    values = np.concatenate(kept)
    if not len(values):
        return -1.0
    return 2 * lower_bound((1 + values) / 2, 1 / (error * start_weight(start))) - 1
