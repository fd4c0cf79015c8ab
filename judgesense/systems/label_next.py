"""Which outputs people should label next: the doubtful ones more often, all with known chances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.systems.units import Units, strata_of

_SURE = 0.25
"""What an output counts at least, beside 1 for a doubtful one: sure verdicts are wrong too."""

_LEAST = 2
"""Labels that each stratum should have in the end, so that its spread shows."""


def pick(
    units: Units, labels: Floats, systems: Sequence[int], n: int, seed: int = 0
) -> tuple[Codes, Words, Floats, int]:
    """The n units of some systems, by their codes, to label next.

    ``labels`` are those so far, shape (len(units),), NaN without one. Returns the picked units; the
    stratum of each, its weight (units of its stratum per label, once these labels are in), and the
    number of strata. Raises JudgeSenseError if every output of the systems has a label.
    """
    own = np.flatnonzero(np.isin(units.system, list(systems)))
    given = ~np.isnan(labels[own])
    if given.all():
        every = ", ".join(units.systems[code] for code in systems)
        raise JudgeSenseError(f"every output of {every} has a label already")
    names, strata = np.unique(strata_of(units)[own].astype(str), return_inverse=True)
    h = len(names)
    sizes, taken = np.bincount(strata, minlength=h), np.bincount(strata[given], minlength=h)
    # A small system's mean needs as many labels as a large one's.
    share = 1 / np.bincount(units.system[own])[units.system[own]]
    wanted = np.bincount(strata, share * np.maximum(_SURE, doubts(units)[own]), minlength=h)
    total = taken.copy()
    for _ in range(min(n, int((~given).sum()))):
        room = total < sizes
        short = np.where(total < _LEAST, np.inf, wanted / (total + 1))
        total[np.argmax(np.where(room, short, -1.0))] += 1
    rng = np.random.default_rng(seed)
    picked = np.concatenate(
        [
            rng.choice(np.flatnonzero((strata == code) & ~given), int(more), replace=False)
            for code, more in enumerate(total - taken)
        ]
    ).astype(np.intp)
    picked = rng.permutation(picked)  # The order must not show the strata.
    at = strata[picked]
    return own[picked], names[at], (sizes / np.maximum(total, 1))[at], h


def doubts(units: Units) -> Floats:
    """How doubtful the judge is of each output, shape (n,), from 0 to 1.

    The larger of two signs: how far wordings differ (1: half of them at either end of the scale),
    and the probability of another label, doubled, by the margin. 1 without a verdict.
    """
    verdicts = units.predictions
    known = ~np.isnan(units.means)
    reach = np.ptp(verdicts[~np.isnan(verdicts)]) / 2 if known.any() else 1.0
    spread = np.zeros(len(verdicts))
    spread[known] = np.nanstd(verdicts[known], axis=1) / (reach or 1.0)
    by_margin = np.where(np.isnan(units.margin), 0.0, 1 - units.margin)
    return np.where(known, np.clip(np.maximum(spread, by_margin), 0.0, 1.0), 1.0)
