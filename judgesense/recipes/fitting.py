"""What a remedy is, and how it is fitted to a log's answers and applied to them.

Every remedy is a set of rules (:mod:`judgesense.recipes.rules`). What a rule learns (offsets, the
best wording) is learned on some clusters and applied to the others, so no figure is about items
that the rule was fitted to. :mod:`judgesense.measure.remedies` measures what a remedy gains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED, AnswerArray
from judgesense.log.schema import EQUIVALENT
from judgesense.recipes.rules import OTHER_WORDINGS, Decided, Read, Rule
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import (
    UNDECIDED,
    batch_offsets,
    calibrated,
    majority,
)
from judgesense.statistics.selection import folds_of
from judgesense.tasks import is_scale

AS_ASKED = "as asked"
"""The name of the remedy that changes nothing."""

MOST_PANELS = 10
"""Panels of the same size whose verdicts are averaged for a panel's accuracy."""


@dataclass(frozen=True)
class Remedy:
    """A change of asking or reading, or a combination.

    ``panel`` is the number of wordings behind a verdict; ``chosen`` takes the wording that was best
    on other items.

    >>> Remedy(calibrated=True, panel=3).name
    'calibrated, panel of 3'
    """

    calibrated: bool = False
    expected: bool = False
    panel: int = 1
    chosen: bool = False
    both: bool = False

    @property
    def name(self) -> str:
        """The remedy in words, as ``--remedy`` takes it."""
        parts = [
            "calibrated" if self.calibrated else "",
            "expected score" if self.expected else "",
            f"panel of {self.panel}" if self.panel > 1 else "",
            "another wording" if self.chosen else "",
            "both orders" if self.both else "",
        ]
        return ", ".join(part for part in parts if part) or AS_ASKED

    @property
    def prompts(self) -> int:
        """Prompts behind one verdict."""
        return self.panel * (2 if self.both else 1)


def candidates(array: AnswerArray) -> list[Remedy]:
    """The remedies that the log can measure, by the prompts that they cost.

    Combinations are included where both parts can add something: averaging both orders already
    removes a prior that is the same in both, so a two-way choice is not calibrated as well.
    """
    wordings = len(array.of(EQUIVALENT))
    scale = is_scale(array.labels) and len(array.labels) > 2 and array.has_probabilities
    orders = [False, True] if array.both_orders else [False]
    found = []
    for panel in _panel_sizes(wordings, array.has_probabilities):
        for both in orders:
            plain = Remedy(panel=panel, both=both)
            found.append(plain)
            prior = array.has_probabilities and not (both and len(array.labels) == 2)
            found += [replace(plain, expected=True)] * scale
            if prior:
                calibrated = replace(plain, calibrated=True)
                found += [calibrated, *[replace(calibrated, expected=True)] * scale]
    if wordings > 1:
        found += [Remedy(chosen=True, both=both) for both in orders]
    found.remove(Remedy())
    return sorted(found, key=lambda remedy: remedy.prompts)


def _panel_sizes(wordings: int, probabilities: bool) -> list[int]:
    """1, and the sizes of panels worth a look: at most half of the wordings (two disjoint panels
    show how steady a panel is), or 3. Two votes that differ decide nothing."""
    sizes = (2, 3, 5) if probabilities else (3, 5)
    return [1, *(k for k in sizes if k <= wordings / 2 or (k == 3 and wordings >= 3))]


def remedy_named(name: str, array: AnswerArray) -> Remedy:
    """The remedy of that name among those the log can measure, or as asked.

    Raises JudgeSenseError that lists the names.
    """
    known = {remedy.name: remedy for remedy in [Remedy(), *candidates(array)]}
    if name not in known:
        raise JudgeSenseError(f"unknown remedy {name!r}: choose one of {'; '.join(known)}")
    return known[name]


def panels(array: AnswerArray, remedy: Remedy) -> list[tuple[int, ...]]:
    """The panels of wordings of a remedy: first disjoint ones, then others up to MOST_PANELS.

    Each is a tuple of indices of the array's wordings.
    """
    pool = array.of(EQUIVALENT)
    k = remedy.panel
    if k == 1:
        return [(n,) for n in pool]
    disjoint = [tuple(pool[at : at + k]) for at in range(0, len(pool) - k + 1, k)]
    others = [each for each in combinations(pool, k) if each not in disjoint]
    rng = np.random.default_rng(0)
    rng.shuffle(others)
    return disjoint + others[: max(0, MOST_PANELS - len(disjoint))]


def offsets_of(array: AnswerArray) -> Floats:
    """The judge's prior for each label under each wording, in nats, shape (wordings, labels)."""
    n_labels = len(array.labels)
    told = (array.logprobs[:, n].reshape(-1, n_labels) for n in range(len(array.wordings)))
    return np.stack([batch_offsets(answers) for answers in told])


def rule_of(
    array: AnswerArray, remedy: Remedy, panel: Sequence[int], orders: tuple[str, ...]
) -> Rule:
    """The rule of a remedy for a panel of wordings, without offsets."""
    read: Read = "expected score" if remedy.expected else "most probable"
    names = tuple(array.wordings[n].name for n in panel)
    return Rule(
        remedy.name, names, orders, array.labels, read if array.has_probabilities else "vote"
    )


def decide(
    array: AnswerArray, remedy: Remedy, panel: Sequence[int], orders: tuple[str, ...]
) -> Decided:
    """A remedy's verdicts on the items of a array, whose priors are out already if it calibrates
    (`crossfitted`); NOT_ASKED where a prompt was not asked."""
    places = [array.orders.index(order) for order in orders]
    told = array.logprobs[:, list(panel)][:, :, places]
    asked = array.verdicts[:, list(panel)][:, :, places] != NOT_ASKED
    decided = rule_of(array, remedy, panel, orders).decide(told)
    missing = ~asked.reshape(len(array), -1).all(axis=1)
    return replace(decided, codes=np.where(missing, NOT_ASKED, decided.codes))


def crossfitted(array: AnswerArray, folds: Codes) -> AnswerArray:
    """The array with each wording's prior taken out, as the other folds show it."""
    told = array.logprobs.copy()
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        offsets = offsets_of(array.take(outside))
        told[inside] = calibrated(told[inside], offsets[:, None, :])
    return replace(array, logprobs=told)


def verdicts_by_wording(array: AnswerArray, remedy: Remedy, orders: tuple[str, ...]) -> Codes:
    """The verdicts of each equivalent wording by itself, shape (n, wordings)."""
    return np.stack([decide(array, remedy, (n,), orders).codes for n in array.of(EQUIVALENT)], 1)


def best_of(array: AnswerArray, codes: Codes) -> int:
    """The wording whose verdicts (`verdicts_by_wording`) are right most often, or without gold
    labels agree most with the others' majority."""
    pool = array.of(EQUIVALENT)
    if not (array.gold >= 0).any():
        votes_of = [np.delete(codes, at, axis=1) for at in range(len(pool))]
        aims = np.stack(
            [majority(np.maximum(v, UNDECIDED), len(array.labels)) for v in votes_of], 1
        )
    else:
        aims = np.repeat(array.gold[:, None], len(pool), axis=1)
    counted = (aims >= 0) & (codes != NOT_ASKED)
    hits = ((codes == aims) & counted).sum(axis=0)
    return pool[int(np.argmax(hits / np.maximum(counted.sum(axis=0), 1)))]


def order_groups(array: AnswerArray, remedy: Remedy) -> list[tuple[str, ...]]:
    """The option orders behind each verdict: all together, or each by itself."""
    return [array.orders] if remedy.both else [(order,) for order in array.orders]


def to_write(array: AnswerArray, remedy: Remedy, flags: Mapping[str, str]) -> tuple[Rule, Decided]:
    """The rule of a remedy for a file, and its verdicts on items that it was not fitted to.

    The rule is fitted to all items of the array; ``flags`` are those of its wordings. It asks the
    first wordings that no check of the wordings objects to, or the best one where that is the
    remedy: others are not chosen by their accuracy, so the accuracy that the file states is not
    selected.
    """
    orders = order_groups(array, remedy)[0]
    if remedy.chosen:
        panel = [best_of(array, verdicts_by_wording(array, remedy, orders))]
    else:
        # Variants of a wording come last: they change less than another wording does.
        pool = sorted(array.of(EQUIVALENT), key=lambda n: array.wordings[n].variant is not None)
        good = [n for n in pool if flags.get(array.wordings[n].name, "fine") == "fine"]
        panel = (good if len(good) >= remedy.panel else pool)[: remedy.panel]
    rule = rule_of(array, remedy, panel, orders)
    if not remedy.calibrated:
        return rule, decide(array, remedy, panel, orders)
    rows = offsets_of(array)
    # In a run each wording is asked as it is: a single one needs the offsets of all.
    fitted = panel if len(panel) > 1 else [*panel, *(n for n in range(len(rows)) if n not in panel)]
    learned = {array.wordings[n].name: rows[n] for n in fitted}
    if len(panel) == 1:
        learned[OTHER_WORDINGS] = rows[array.of(EQUIVALENT)].mean(axis=0)
    offsets = {
        name: dict(zip(array.labels, row.tolist(), strict=True)) for name, row in learned.items()
    }
    own = crossfitted(array, folds_of(array.clusters))
    return replace(rule, offsets=offsets), decide(own, remedy, panel, orders)
