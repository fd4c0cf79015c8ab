"""How soon a monitor finds an update: a plan, before the update comes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.labels import check_level
from judgesense.statistics.monitoring import TARGET, growth, log_evidence, log_sum, start_weight

LOOKS = 8
"""Looks within which an update is to be found."""

POWER = 0.8
"""The chance of finding it that is enough."""

MOST_WORDINGS = 10
"""Wordings beyond this are not proposed."""

_HISTORIES = 500
_SEED = 5


@dataclass(frozen=True)
class MonitorPlan:
    """What a monitor finds, and what would make it find enough.

    ``chance`` is that of an alarm within ``looks`` looks at ``items`` items each, if an update
    moves ``beyond`` of the verdicts more than rewording does. ``items_needed`` and
    ``wordings_needed`` make it 0.8, each with the other as it is; None if it is that already, or
    if no number up to 100 times the items, or `MOST_WORDINGS` wordings, does.
    """

    items: int
    looks: int
    beyond: float
    chance: float
    items_needed: int | None
    wordings_needed: int | None

    def scaled(self, factor: float) -> MonitorPlan:
        """The plan with its numbers of items times a factor: items per cluster."""
        needed = None if self.items_needed is None else math.ceil(self.items_needed * factor)
        return replace(self, items=round(self.items * factor), items_needed=needed)


def plan_monitor(
    items: int,
    reworded: float,
    wordings: float,
    *,
    beyond: float = TARGET,
    looks: int = LOOKS,
    error: float = 0.05,
) -> MonitorPlan:
    """Plan looks at other items each, whose verdicts are compared with a baseline's.

    Args:
        items: items a look, at least 1.
        reworded: the share of verdicts that rewording moves in the baseline, in [0, 1).
        wordings: wordings of an item in the baseline, 2 or more; infinite for a share that is
            allowed in place of rewording.
        beyond: the share of verdicts that the update moves beyond that.
        looks: looks after the update.
        error: the chance of a false alarm, within (0, 1).

    Returns:
        The chance, and what would make it 0.8.

    Raises:
        ValueError: numbers out of range.

    >>> plan = plan_monitor(160, 0.2, 2)
    >>> plan.chance < 0.8, 160 < plan.items_needed < 220, plan.wordings_needed
    (True, True, 3)
    """
    chance = detection_chance(items, reworded, wordings, beyond=beyond, looks=looks, error=error)

    def enough(n: int, k: float) -> bool:
        found = detection_chance(n, reworded, k, beyond=beyond, looks=looks, error=error)
        return found >= POWER

    items_needed = wordings_needed = None
    if chance < POWER:
        steps = [round(items * 1.1**k) for k in range(1, 49)]
        low, high = 0, len(steps)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(steps[middle], wordings) else (middle + 1, high)
        items_needed = steps[low] if low < len(steps) else None
        more = range(int(wordings) + 1, MOST_WORDINGS + 1) if np.isfinite(wordings) else ()
        wordings_needed = next((k for k in more if enough(items, k)), None)
    return MonitorPlan(items, looks, beyond, chance, items_needed, wordings_needed)


@lru_cache(maxsize=256)
def detection_chance(
    items: int,
    reworded: float,
    wordings: float,
    *,
    beyond: float = TARGET,
    looks: int = LOOKS,
    error: float = 0.05,
) -> float:
    """The chance that `judgesense.statistics.monitoring.watch` finds an update, by simulation.

    An item's verdict moves under another wording with a probability of its own: a beta distribution
    with mean ``reworded`` whose parameters add up to 1, so that most items are near 0. The update
    moves it as often, and of those that do not move as many more as make ``beyond`` of all. The
    update comes before the first look. Arguments as in `plan_monitor`.

    >>> detection_chance(200, 0.02, 2)
    1.0
    """
    check_level(1 - error)
    if items < 1 or looks < 1 or not 0 <= reworded < 1 or not 0 < beyond <= 1 - reworded:
        raise ValueError(
            f"items {items}, looks {looks}, reworded {reworded}, beyond {beyond}: pass at least 1 "
            "item and look, and shares that add up to at most 1"
        )
    if not wordings >= 2:
        raise ValueError(f"wordings is {wordings}: pass at least 2")
    values, shares = _excesses(reworded, wordings, beyond)
    rng = np.random.default_rng(_SEED)
    counts = rng.multinomial(items, shares, (_HISTORIES, looks))
    # Equal numbers have equal gains.
    gains = growth([values] * looks, list(counts.swapaxes(0, 1)))
    weights = np.log([start_weight(start) for start in range(looks)])
    evidence = log_sum(log_evidence(gains, looks) + weights[:, None], axis=-2)
    return float((evidence >= -np.log(error)).any(axis=-1).mean())


def _excesses(reworded: float, wordings: float, beyond: float) -> tuple[Floats, Floats]:
    """The numbers that an item's moved minus reworded verdicts can be, and their probabilities."""
    if np.isinf(wordings) or reworded == 0:
        moved = reworded + beyond
        return np.array([-reworded, 1 - reworded]), np.array([1 - moved, moved])
    from scipy.stats import betabinom

    # Of all other wordings, and the update's verdict as one more of them.
    others = max(round(wordings) - 1, 1)
    first, second = reworded, 1 - reworded
    k = np.arange(others + 1)
    both = betabinom.pmf(k, others, first, second)
    # Given k of the others, the item's own probability has the mean (first + k) / (1 + others).
    moves = (first + k) / (1 + others)
    moves = moves + (1 - moves) * beyond / (1 - reworded)
    values = np.concatenate([-k / others, 1 - k / others])
    return values, np.concatenate([both * (1 - moves), both * moves])
