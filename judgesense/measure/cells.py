"""Cells: every figure of one judge, task, scoring, option order and kind of label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from judgesense.log.answers import Answers, agreement, distinct
from judgesense.log.pairs import Pairs
from judgesense.log.rows import Log
from judgesense.measure.checks import position
from judgesense.measure.report_file import CELL_KEYS, KAPPA_UNDEFINED
from judgesense.measure.rewording import repeated
from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.agreement import jss_of_codes, soft_jss
from judgesense.statistics.arrays import Bools
from judgesense.statistics.crossed import two_way_interval
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.result import signature
from judgesense.tasks import NO_ORDER
from judgesense.version import __version__

POOLED = "both"
"""The order of a cell over both option orders."""

NO_PAIRS = "there are no template pairs to compare"
NOT_JUDGED = "no pair was judged on both sides"


@dataclass(frozen=True)
class CellPart:
    """A stream's part in one option order, or in both: masks of its pairs and of its rows."""

    stream: Answers
    run_id: str
    order: str
    of_pairs: Bools
    of_rows: Bools
    log: Log
    pairs: Pairs

    @property
    def names(self) -> dict[str, Any]:
        """What identifies an entry on this part in the lists of a report."""
        stream = self.stream
        return {
            "run_id": self.run_id,
            "judge": stream.judge,
            "task": stream.task.name,
            "scoring": stream.scoring,
            "order": self.order,
        }

    @cached_property
    def used(self) -> Bools:
        """The pairs of this part with both prompts judged."""
        return self.of_pairs & self.stream.known

    @cached_property
    def n_planned(self) -> int:
        """How many pairs the run meant to judge; without a plan, those it judged."""
        return int((self.of_pairs if self.pairs.planned else self.used).sum())

    @property
    def hash(self) -> str:
        """The hash of the planned pairs; without a plan, of the judged pairs."""
        return self.pairs.hash_of(self.of_pairs if self.pairs.planned else self.used)


def parts(stream: Answers, run_id: str) -> list[CellPart]:
    """A stream's parts by option order; the last one is the whole, over both orders if judged."""
    log, pairs = stream.log, stream.pairs
    # An order in which only one wording was asked has no pairs, but shows position bias.
    counts = np.bincount(log.order[stream.rows], minlength=len(log.orders))
    counts += np.bincount(pairs.order[stream.known], minlength=len(log.orders))
    seen = [log.orders[code] for code in np.flatnonzero(counts)]
    seen.sort(key=lambda order: (order == NO_ORDER, order))
    single = []
    for order in seen:
        code = log.orders.index(order)
        own = (pairs.order == code, log.order[stream.rows] == code)
        single.append(CellPart(stream, run_id, order, *own, log, pairs))
    if len(single) == 1:
        return single
    every = (np.ones(len(pairs), bool), np.ones(len(stream.rows), bool))
    return [*single, CellPart(stream, run_id, POOLED if seen else NO_ORDER, *every, log, pairs)]


def stream_cells(every: list[CellPart]) -> Iterator[dict[str, Any]]:
    """A stream's cells: raw and mapped in each of its `parts`."""
    stream = every[0].stream
    for part in every:
        of_prompts = _prompt_figures(part)
        both = {"raw": _agreement(part, "raw")}
        both["mapped"] = dict(both["raw"]) if stream.same_labels else _agreement(part, "mapped")
        degenerate = _degenerate(both)
        for kind, figures in both.items():
            sides = stream.probabilities(kind, part.used) if stream.scoring == "options" else None
            cell = {
                **part.names,
                "labels": kind,
                **figures,
                **of_prompts,
                "soft_jss": None if sides is None else soft_jss(*sides[:2]),
                "degenerate": figures["degenerate"] or degenerate,
                "signature": signature(
                    task=stream.task.name.replace("|", "/").replace("\n", " "),
                    n=figures["n_pairs"],
                    items=figures["n_items"],
                    labels=kind,
                    scoring=stream.scoring,
                    undecided="excluded",
                    templates="fixed",
                    ci="wilson-cluster",
                    data=part.hash,
                    v=__version__,
                ),
            }
            yield {key: cell[key] for key in CELL_KEYS}


def _agreement(part: CellPart, kind: str) -> dict[str, Any]:
    figures: dict[str, Any] = dict.fromkeys(
        (
            "jss",
            "ci_low",
            "ci_high",
            "flip_rate",
            "kappa",
            "kappa_ci_low",
            "kappa_ci_high",
            "jss_low",
            "jss_high",
        )
    )
    figures.update(n_pairs=0, n_unclear=0, n_refused=0, n_error=0)
    figures["degenerate"] = NOT_JUDGED if part.n_planned else NO_PAIRS
    if part.used.any():
        one, two = part.stream.sides(kind)
        used, labels = part.used, part.log.labels.tolist()
        found = jss_of_codes(one[used], two[used], labels, part.pairs.cluster[used])
        figures = {key: found[key] for key in figures}
    decided = part.of_pairs & part.stream.decided(kind)
    random = Interval(None, None)
    if decided.any():
        one, two = part.stream.sides(kind)
        templates = part.pairs.template_a[decided], part.pairs.template_b[decided]
        same = one[decided] == two[decided]
        random = two_way_interval(
            same, part.pairs.cluster[decided], *templates, prior=WORDING_PRIOR
        )
    figures |= {"ci_low_random": random.low, "ci_high_random": random.high}
    # JSS of the same prompt asked again, and what rewording does beyond that.
    again = repeated(part.stream, kind, decided)
    figures |= {"jss_repeat": again.jss_repeat, "delta_jss": again.delta}
    figures |= {"delta_ci_low": again.ci_low, "delta_ci_high": again.ci_high}
    figures["n_items"] = distinct(part.pairs.item[decided])
    figures["n_clusters"] = distinct(part.pairs.cluster[decided])
    figures["coverage"] = figures["n_pairs"] / part.n_planned if part.n_planned else None
    return figures


def _degenerate(both: dict[str, dict[str, Any]]) -> str | None:
    """Why both figures are meaningless: all raw or all mapped decisions are the same label."""
    for kind, figures in both.items():
        if figures["degenerate"] is not None:
            # The other kind of label may well have a kappa.
            text: str = figures["degenerate"].removesuffix(KAPPA_UNDEFINED)
            return text.replace("every decision", f"every {kind} decision")
    return None


def _prompt_figures(part: CellPart) -> dict[str, float | None]:
    """Figures of single prompts rather than pairs: accuracy, position and the noise floor."""
    log, stream = part.log, part.stream
    rows, decision = stream.rows[part.of_rows], stream.decision[part.of_rows]
    decided = (decision >= 0) & ~log.undecided[decision]
    graded = decided & (log.gold[rows] >= 0)
    hits = decision[graded] == log.gold[rows][graded]
    result: dict[str, float | None] = dict.fromkeys(
        (
            "accuracy",
            "accuracy_ci_low",
            "accuracy_ci_high",
            "first_position_rate",
            "position_consistency",
            "position_ci_low",
            "position_ci_high",
        )
    )
    result["noise_floor"] = _noise(part) if stream.reruns is not None else None
    if len(hits):
        ends = wilson_cluster(hits, log.cluster[rows[graded]])
        result["accuracy"] = float(hits.mean())
        result |= {"accuracy_ci_low": ends.low, "accuracy_ci_high": ends.high}
    if stream.task.comparative:
        # A tie, or an answer outside the label map, is on no side: as in `position_bias`.
        words = log.labels[decision[decided]]
        chosen = words[np.isin(words, stream.task.labels[:2])]
        if len(chosen):
            result["first_position_rate"] = float((chosen == stream.task.labels[0]).mean())
        if part.order == POOLED and (found := position(stream)).n:
            # Over the prompts that were judged in both orders.
            result |= {
                "first_position_rate": found.first_position_rate,
                "position_consistency": found.same_choice,
                "position_ci_low": found.same_choice_ci_low,
                "position_ci_high": found.same_choice_ci_high,
            }
    return result


def _noise(part: CellPart) -> float | None:
    """Flip rate of the same prompt between the first and later repeats."""
    log = part.log
    assert part.stream.reruns is not None
    first, later = part.stream.reruns
    if part.order not in (POOLED, NO_ORDER) and part.order in log.orders:
        kept = log.order[first] == log.orders.index(part.order)
        first, later = first[kept], later[kept]
    if not len(first):
        return None
    return agreement(log, log.raw[first], log.raw[later], log.cluster[first]).flip_rate
