"""Cells: every figure of one judge, task, scoring, option order and kind of label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.answers import Answers, agreement, distinct
from judgesense.log.pairs import Pairs
from judgesense.log.rows import Log
from judgesense.measure.agreement import position, repeated, right_among_decided, wording_interval
from judgesense.measure.assessment import Cell
from judgesense.statistics.agreement import soft_jss
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.intervals import share_fields
from judgesense.statistics.result import signature
from judgesense.tasks import NO_ORDER, signature_hash
from judgesense.version import __version__

POOLED = "both"
"""The order of a cell over both option orders."""

NO_PAIRS = "there are no template pairs to compare"
NO_PAIR_JUDGED = "no pair was judged on both sides"

KAPPA_UNDEFINED = ": kappa is undefined"
"""How `judgesense.statistics.agreement.jss_of_codes` ends its reason if all decisions are alike."""


@dataclass(frozen=True)
class CellPart:
    """A judge's answers in one option order, or in both: masks of its pairs and of its rows."""

    answers: Answers
    order: str
    of_pairs: Bools
    of_rows: Bools
    log: Log
    pairs: Pairs

    @cached_property
    def used(self) -> Bools:
        """The pairs of this part with both prompts judged."""
        return self.of_pairs & self.answers.known

    @cached_property
    def n_planned(self) -> int:
        """How many pairs the run meant to judge; without a plan, those it judged."""
        return int((self.of_pairs if self.pairs.planned else self.used).sum())

    @property
    def hash(self) -> str:
        """The hash of the planned pairs, or without a plan of the judged pairs; without any, of the
        prompts, or of the items where a file has no prompts."""
        if (pairs := self.of_pairs if self.pairs.planned else self.used).any():
            return self.pairs.hash_of(pairs)
        log, rows = self.log, self.answers.rows[self.of_rows]
        ids = pc.unique(log.table["prompt_id"].take(pa.array(rows)).drop_null()).to_pylist()
        ids = [*filter(None, ids)] or [log.items[code] for code in np.unique(log.item[rows])]
        return signature_hash(zip(ids, ids, strict=True))


def parts(answers: Answers) -> list[CellPart]:
    """A judge's answers by option order; the last one is the whole, over both orders if judged."""
    log, pairs = answers.log, answers.pairs
    # An order in which only one wording was asked has no pairs, but shows position bias.
    counts = np.bincount(log.order[answers.rows], minlength=len(log.orders))
    counts += np.bincount(pairs.order[answers.known], minlength=len(log.orders))
    orders = [log.orders[code] for code in np.flatnonzero(counts)]
    orders.sort(key=lambda order: (order == NO_ORDER, order))
    single = []
    for order in orders:
        code = log.orders.index(order)
        masks = (pairs.order == code, log.order[answers.rows] == code)
        single.append(CellPart(answers, order, *masks, log, pairs))
    if len(single) == 1:
        return single
    every = (np.ones(len(pairs), bool), np.ones(len(answers.rows), bool))
    return [*single, CellPart(answers, POOLED if orders else NO_ORDER, *every, log, pairs)]


def cells_of(every: list[CellPart]) -> tuple[Cell, ...]:
    """A judge's cells: raw and mapped in each of its `parts`."""
    cells = []
    for part in every:
        bare = _of_prompts(part)
        raw = _with_pairs(bare, part, "raw")
        mapped = raw if part.answers.same_labels else _with_pairs(bare, part, "mapped")
        both = (raw, replace(mapped, labels="mapped"))
        cells += [_signed(cell, part, both) for cell in both]
    return tuple(cells)


def _of_prompts(part: CellPart) -> Cell:
    """A cell with the figures of single prompts: accuracy, position and the noise floor."""
    log, answers = part.log, part.answers
    graded, right = right_among_decided(answers)
    graded &= part.of_rows
    clusters = log.cluster[answers.rows[graded]]
    noise = None if answers.reruns is None else _noise(part, *answers.reruns)
    cell = Cell(
        order=part.order,
        labels="raw",
        jss=None,
        noise_floor=noise,
        **share_fields("accuracy", right[graded], clusters),
    )
    if not answers.task.comparative:
        return cell
    if part.order == POOLED and (choices := position(answers)).n:
        # Over the prompts that were judged in both orders.
        return replace(
            cell,
            first_position_rate=choices.first_position_rate,
            position_consistency=choices.same_choice,
            position_ci_low=choices.same_choice_ci_low,
            position_ci_high=choices.same_choice_ci_high,
        )
    # A tie, or an answer outside the label map, is on no side: as in `position_bias`.
    decision = answers.decision[part.of_rows]
    words = log.labels[decision[~log.undecided[decision]]]
    chosen = words[np.isin(words, answers.task.labels[:2])]
    first = float((chosen == answers.task.labels[0]).mean()) if len(chosen) else None
    return replace(cell, first_position_rate=first)


def _noise(part: CellPart, first: Codes, later: Codes) -> float | None:
    """Flip rate of the same prompt between the first and later repeats."""
    log = part.log
    if part.order not in (POOLED, NO_ORDER) and part.order in log.orders:
        of_order = log.order[first] == log.orders.index(part.order)
        first, later = first[of_order], later[of_order]
    if not len(first):
        return None
    return agreement(log, log.raw[first], log.raw[later], log.cluster[first]).flip_rate


def _with_pairs(cell: Cell, part: CellPart, labels: str) -> Cell:
    """The cell with the figures of pairs of wordings, by raw or by mapped decisions."""
    answers, pairs = part.answers, part.pairs
    one, two = answers.sides(labels)
    if part.used.any():
        figures = answers.agreement(labels, part.of_pairs, kappa_interval=True)
        others = ("n_items", "signature")
        cell = replace(cell, **{k: v for k, v in figures.items() if k not in others})
    else:
        cell = replace(cell, degenerate=NO_PAIR_JUDGED if part.n_planned else NO_PAIRS)
    decided = part.of_pairs & answers.decided(labels)
    random = wording_interval(answers, one == two, decided)
    # JSS of the same prompt asked again, and what rewording does beyond that.
    again = repeated(answers, labels, decided)
    return replace(
        cell,
        ci_low_random=random.low,
        ci_high_random=random.high,
        jss_repeat=again.jss_repeat,
        delta_jss=again.delta,
        delta_ci_low=again.ci_low,
        delta_ci_high=again.ci_high,
        n_items=distinct(pairs.item[decided]),
        n_clusters=distinct(pairs.cluster[decided]),
        coverage=cell.n_pairs / part.n_planned if part.n_planned else None,
    )


def _signed(cell: Cell, part: CellPart, both: Sequence[Cell]) -> Cell:
    """The cell with its soft JSS, its signature, and why its figures are meaningless."""
    answers, labels = part.answers, cell.labels
    sides = answers.probabilities(labels, part.used) if answers.scoring == "options" else None
    degenerate = cell.degenerate
    for other in both:
        if degenerate is None and other.degenerate is not None:
            # This kind of label may well have a kappa.
            reason = other.degenerate.removesuffix(KAPPA_UNDEFINED)
            degenerate = reason.replace("every decision", f"every {other.labels} decision")
    return replace(
        cell,
        soft_jss=None if sides is None else soft_jss(*sides[:2]),
        degenerate=degenerate,
        signature=signature(
            task=answers.task.name.replace("|", "/").replace("\n", " "),
            n=cell.n_pairs,
            items=cell.n_items,
            labels=labels,
            scoring=answers.scoring,
            undecided="excluded",
            templates="fixed",
            ci="wilson-cluster",
            data=part.hash,
            v=__version__,
        ),
    )
