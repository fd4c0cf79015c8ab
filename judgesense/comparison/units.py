"""Verdicts by output and wording: the arrays that decisions about systems are computed from.

Also which outputs people should label next: the doubtful ones more often, all with known chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.comparison.verdict_table import VerdictTable, numbers_of
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Floats, Words, row_means

PARTS = 6
"""Strata of a system, at most."""

_SURE = 0.25
"""What an output counts at least, beside 1 for a doubtful one: sure verdicts are wrong too."""

_LEAST = 2
"""Labels that each stratum should have in the end, so that its spread shows."""

ALL = "all"
"""The name of the one system where a table names none."""


@dataclass(frozen=True)
class Units:
    """The judged outputs of one or more systems, n in all.

    A unit is an output, ``(item, system)``. In a comparison it is a pair of outputs, whose
    ``system`` names both systems in alphabetical order (``x|y``); values are then in favour of the
    first. ``predictions`` are verdicts as numbers, shape (n, T) with a column per wording, means
    over orders and repeats, NaN without a verdict. ``margin`` is the mean margin, NaN without any.
    ``gold`` is a known label as a number, NaN without. ``flipped`` says where the file names the
    pair the other way round. ``rows`` is each unit's first row of the table.
    """

    items: npt.NDArray[Any]
    system: Codes
    systems: tuple[str, ...]
    cluster: Codes
    predictions: Floats
    wordings: tuple[str, ...]
    margin: Floats
    gold: Floats
    flipped: Bools
    rows: Codes
    comparative: bool

    def __len__(self) -> int:
        return len(self.items)

    @property
    def means(self) -> Floats:
        """Mean verdict over wordings, shape (n,); NaN without any."""
        return row_means(self.predictions)

    def of(self, system: int) -> Bools:
        """The mask of a system's units."""
        mask: Bools = self.system == system
        return mask


def units_of(table: VerdictTable, positive: str | None = None) -> Units:
    """The outputs of a table of verdicts.

    Raises JudgeSenseError if rows name different numbers of systems (none, one or two).
    """
    named = table.column("system_id")
    kinds = [0 if name is None else 1 + name.count("|") for name in named]
    if len(set(kinds)) > 1 or max(kinds) > 2:
        row = next(n for n, kind in enumerate(kinds) if kind != kinds[0] or kind > 2)
        raise JudgeSenseError(
            f"{table.source}, row {row + 1}, system_id: {named[row] or 'is empty'}; name no "
            "system, one, or two (A|B), alike in every row"
        )
    values = table.values(positive)
    gold = numbers_of(table.column("gold"), table, positive)
    flipped = np.zeros(len(table), dtype=np.bool_)
    if table.comparative:
        pairs = [name.split("|") for name in named]
        flipped = np.array([one > two for one, two in pairs])
        named = np.array(["|".join(sorted(pair)) for pair in pairs], dtype=object)
        values, gold = (np.where(flipped, 1 - each, each) for each in (values, gold))
    elif not any(kinds):
        named = np.full(len(table), ALL, dtype=object)
    systems, system = np.unique(named.astype(str), return_inverse=True)
    items, item = np.unique(table.column("item_id").astype(str), return_inverse=True)
    keys = item * len(systems) + system
    _, first, unit = np.unique(keys, return_index=True, return_inverse=True)
    # In the file's order.
    ranked = np.argsort(first, kind="stable")
    unit = np.argsort(ranked)[unit]
    rows = first[ranked]
    wordings, wording = np.unique(
        np.array([name or "" for name in table.column("wording")], dtype=str), return_inverse=True
    )
    shape = (len(rows), len(wordings))
    margins = np.array(table.table["margin"].to_pylist(), dtype=np.float64)
    _, cluster = np.unique(table.column("cluster_id").astype(str)[rows], return_inverse=True)
    return Units(
        items=items[item[rows]].astype(object),
        system=system[rows],
        systems=tuple(systems.tolist()),
        cluster=cluster,
        predictions=_mean_of(values, unit * shape[1] + wording, shape[0] * shape[1]).reshape(shape),
        wordings=tuple(wordings.tolist()),
        margin=_mean_of(margins, unit, len(rows)),
        gold=_mean_of(gold, unit, len(rows)),
        flipped=flipped[rows],
        rows=rows,
        comparative=table.comparative,
    )


def _mean_of(values: Floats, cells: Codes, size: int) -> Floats:
    known = ~np.isnan(values)
    count = np.bincount(cells[known], minlength=size)
    sums = np.bincount(cells[known], values[known], minlength=size)
    means: Floats = np.divide(sums, count, out=np.full(size, np.nan), where=count > 0)
    return means


def strata_of(units: Units) -> Words:
    """The stratum of each output, shape (n,): the system's number and the part of its outputs.

    Labels are picked from strata of outputs on which a judge is alike wrong. They depend on the
    verdicts alone, so that they can be computed again when the labels are back.
    Outputs are ordered from surely bad to surely good and cut into parts of about equal size where
    the order changes: by mean verdict over wordings, then by how sure the judge is (the margin,
    negative below the middle of the scale). Doubtful outputs so have strata of their own.
    """
    found = np.empty(len(units), dtype=object)
    means = units.means
    known = means[~np.isnan(means)]
    middle = (known.max() + known.min()) / 2 if len(known) else 0.0
    sure = np.where(np.isnan(units.margin), 0.0, units.margin)
    sure = np.where(means < middle, -sure, sure)
    for code in range(len(units.systems)):
        own = np.flatnonzero(units.of(code))
        # Outputs without a verdict come first.
        first = np.where(np.isnan(means[own]), -np.inf, means[own])
        keys = np.column_stack([np.round(first, 9), np.round(sure[own], 9)])
        _, rank = np.unique(keys, axis=0, return_inverse=True)
        for row, part in zip(own, _cut(rank.ravel(), PARTS), strict=True):
            found[row] = f"{code}/{part}"
    return found


def _cut(ranks: Codes, parts: int) -> Codes:
    """Codes of up to ``parts`` groups of about equal size, equal ranks together."""
    counts = np.bincount(ranks)
    # A rank belongs to the part in which the middle of its run lies.
    middle = (np.cumsum(counts) - counts / 2) / len(ranks)
    group = np.minimum((middle * parts).astype(np.intp), parts - 1)
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(group[ranks], dtype=np.intp)


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
