"""Verdicts by output and wording: the arrays that decisions about systems are computed from.

Also which outputs people should label next: the doubtful ones more often, all with known chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Floats, Words, row_means

PARTS = 6
"""Strata of a system, at most."""

_LEAST_UNCERTAINTY = 0.25
"""What an output counts at least, beside 1 for a doubtful one: sure verdicts are wrong too."""

_FEWEST_LABELS = 2
"""Labels that each stratum should have in the end, so that its spread shows."""

ALL = "all"
"""The name of the one system where the source names none."""


@dataclass(frozen=True)
class Outputs:
    """The judged outputs of one or more systems, n in all.

    In a comparison, an output is a pair of outputs, whose ``system`` names both systems in
    alphabetical order (``x|y``); values are then in favour of the first. ``predictions`` are
    verdicts as numbers, shape (n, T) with a column per wording, means over orders and repeats, NaN
    without a verdict. ``margin`` is the mean margin, NaN without any. ``gold`` is a known label as
    a number, NaN without. ``flipped`` says where the source names the pair the other way round.
    ``rows`` is each output's first row among the verdicts.
    """

    items: Words
    system: Codes
    systems: tuple[str, ...]
    cluster: Codes
    predictions: Floats
    wordings: tuple[str, ...]
    margin: Floats
    gold: Floats
    flipped: Bools
    rows: Codes
    is_comparison: bool

    def __len__(self) -> int:
        return len(self.items)

    @property
    def means(self) -> Floats:
        """Mean verdict over wordings, shape (n,); NaN without any."""
        return row_means(self.predictions)

    def of(self, system: int) -> Bools:
        """The mask of a system's outputs."""
        mask: Bools = self.system == system
        return mask


def outputs_of(verdicts: Verdicts, positive: str | None = None) -> Outputs:
    """The outputs that were judged.

    Raises JudgeSenseError if rows name different numbers of systems (none, one or two).
    """
    n_systems = np.array([1 + name.count("|") if name else 0 for name in verdicts.system])
    if (n_systems != n_systems[0]).any() or n_systems[0] > 2:
        row = int(np.argmax((n_systems != n_systems[0]) | (n_systems > 2)))
        raise JudgeSenseError(
            f"{verdicts.source}, row {row + 1}, system_id: {verdicts.system[row] or 'is empty'}; "
            "name no system, one, or two (A|B), alike in every row"
        )
    values = verdicts.values(positive)
    gold = verdicts.numbers_of(verdicts.gold, positive)
    flipped, names = np.zeros(len(verdicts), dtype=np.bool_), verdicts.system
    if verdicts.is_comparison:
        pairs = [name.split("|") for name in names]
        flipped = np.array([one > two for one, two in pairs])
        names = np.array(["|".join(sorted(pair)) for pair in pairs], dtype=object)
        values, gold = (np.where(flipped, 1 - side, side) for side in (values, gold))
    elif not n_systems[0]:
        names = np.full(len(verdicts), ALL, dtype=object)
    systems, system = np.unique(names.astype(str), return_inverse=True)
    items, item = np.unique(verdicts.item.astype(str), return_inverse=True)
    _, first, output = np.unique(
        item * len(systems) + system, return_index=True, return_inverse=True
    )
    # In the source's order.
    ranked = np.argsort(first, kind="stable")
    output, rows = np.argsort(ranked)[output], first[ranked]
    wordings, wording = np.unique(verdicts.wording.astype(str), return_inverse=True)
    shape = (len(rows), len(wordings))
    cells = output * shape[1] + wording
    return Outputs(
        items=items[item[rows]].astype(object),
        system=system[rows],
        systems=tuple(systems.tolist()),
        cluster=np.unique(verdicts.cluster.astype(str)[rows], return_inverse=True)[1],
        predictions=_mean_of(values, cells, shape[0] * shape[1]).reshape(shape),
        wordings=tuple(wordings.tolist()),
        margin=_mean_of(verdicts.margin, output, len(rows)),
        gold=_mean_of(gold, output, len(rows)),
        flipped=flipped[rows],
        rows=rows,
        is_comparison=verdicts.is_comparison,
    )


def _mean_of(values: Floats, cells: Codes, size: int) -> Floats:
    has_value = ~np.isnan(values)
    count = np.bincount(cells[has_value], minlength=size)
    sums = np.bincount(cells[has_value], values[has_value], minlength=size)
    means: Floats = np.divide(sums, count, out=np.full(size, np.nan), where=count > 0)
    return means


def strata_of(outputs: Outputs) -> Words:
    """The stratum of each output, shape (n,): the system's number and the part of its outputs.

    Labels are picked from strata of outputs on which a judge is alike wrong. They depend on the
    verdicts alone, so that they can be computed again when the labels are back.
    Outputs are ordered from surely bad to surely good and cut into parts of about equal size where
    the order changes: by mean verdict over wordings, then by how sure the judge is (the margin,
    negative below the middle of the scale). Doubtful outputs so have strata of their own.
    """
    strata = np.empty(len(outputs), dtype=object)
    means = outputs.means
    decided = means[~np.isnan(means)]
    middle = (decided.max() + decided.min()) / 2 if len(decided) else 0.0
    margin = np.where(np.isnan(outputs.margin), 0.0, outputs.margin)
    certainty = np.where(means < middle, -margin, margin)
    for code in range(len(outputs.systems)):
        rows = np.flatnonzero(outputs.of(code))
        # Outputs without a verdict come first.
        first = np.where(np.isnan(means[rows]), -np.inf, means[rows])
        keys = np.column_stack([np.round(first, 9), np.round(certainty[rows], 9)])
        _, rank = np.unique(keys, axis=0, return_inverse=True)
        for row, part in zip(rows, _cut(rank.ravel(), PARTS), strict=True):
            strata[row] = f"{code}/{part}"
    return strata


def _cut(ranks: Codes, parts: int) -> Codes:
    """Codes of up to ``parts`` groups of about equal size, equal ranks together."""
    counts = np.bincount(ranks)
    # A rank belongs to the part in which the middle of its run lies.
    middle = (np.cumsum(counts) - counts / 2) / len(ranks)
    group = np.minimum((middle * parts).astype(np.intp), parts - 1)
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(group[ranks], dtype=np.intp)


def pick(
    outputs: Outputs, labels: Floats, systems: Sequence[int], n: int, seed: int = 0
) -> tuple[Codes, Words, Floats, int]:
    """The n outputs of some systems, by their codes, to label next.

    ``labels`` are those so far, shape (len(outputs),), NaN without one. Returns the picked outputs;
    the stratum of each, its weight (outputs of its stratum per label, once these labels are in),
    and the number of strata. Raises JudgeSenseError if every output of the systems has a label.
    """
    rows = np.flatnonzero(np.isin(outputs.system, list(systems)))
    has_label = ~np.isnan(labels[rows])
    if has_label.all():
        names = ", ".join(outputs.systems[code] for code in systems)
        raise JudgeSenseError(f"every output of {names} has a label already")
    names_of_strata, strata = np.unique(strata_of(outputs)[rows].astype(str), return_inverse=True)
    h = len(names_of_strata)
    sizes, before = np.bincount(strata, minlength=h), np.bincount(strata[has_label], minlength=h)
    # A small system's mean needs as many labels as a large one's.
    share = 1 / np.bincount(outputs.system[rows])[outputs.system[rows]]
    doubt = np.maximum(_LEAST_UNCERTAINTY, uncertainty(outputs)[rows])
    wanted = np.bincount(strata, share * doubt, minlength=h)
    total = before.copy()
    for _ in range(min(n, int((~has_label).sum()))):
        priority = np.where(total < _FEWEST_LABELS, np.inf, wanted / (total + 1))
        total[np.argmax(np.where(total < sizes, priority, -1.0))] += 1
    rng = np.random.default_rng(seed)
    picked = np.concatenate(
        [
            rng.choice(np.flatnonzero((strata == code) & ~has_label), int(more), replace=False)
            for code, more in enumerate(total - before)
        ]
    ).astype(np.intp)
    picked = rng.permutation(picked)  # The order must not show the strata.
    at = strata[picked]
    return rows[picked], names_of_strata[at], (sizes / np.maximum(total, 1))[at], h


def uncertainty(outputs: Outputs) -> Floats:
    """How unsure the judge is of each output, shape (n,), from 0 to 1.

    The larger of two signs: how far wordings differ (1: half of them at either end of the scale),
    and the probability of another label, doubled, by the margin. 1 without a verdict.
    """
    verdicts = outputs.predictions
    decided = ~np.isnan(outputs.means)
    reach = np.ptp(verdicts[~np.isnan(verdicts)]) / 2 if decided.any() else 1.0
    spread = np.zeros(len(verdicts))
    spread[decided] = np.nanstd(verdicts[decided], axis=1) / (reach or 1.0)
    by_margin = np.where(np.isnan(outputs.margin), 0.0, 1 - outputs.margin)
    return np.where(decided, np.clip(np.maximum(spread, by_margin), 0.0, 1.0), 1.0)
