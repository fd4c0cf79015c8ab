"""The figures behind a judge's cells: template pairs, single wordings, flipped examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers, agreement, distinct
from judgesense.log.pairs import mapped_shares
from judgesense.log.rows import Log
from judgesense.measure.agreement import right_among_decided
from judgesense.measure.assessment import Cell
from judgesense.measure.cells import CellPart
from judgesense.measure.figures import (
    Diagnostics,
    Example,
    ExampleSide,
    RepeatFigures,
    TemplateFigures,
    TemplatePair,
)
from judgesense.measure.texts import PromptTexts, cut
from judgesense.statistics.agreement import sampled_jss

EXAMPLES_A_STREAM = 3
ROW = "log_row"
"""The column that numbers a log's rows before any is left out; not one of a log's own."""


def template_pairs(part: CellPart) -> tuple[TemplatePair, ...]:
    """JSS of every pair of templates; ``template_a`` comes first in the alphabet."""
    log, pairs = part.log, part.pairs
    rows = np.flatnonzero(part.used)
    if not len(rows):
        return ()
    by_name = np.argsort(np.array(log.templates))
    rank = np.argsort(by_name)
    one, two = rank[pairs.template_a[rows]], rank[pairs.template_b[rows]]
    key = np.minimum(one, two) * len(rank) + np.maximum(one, two)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    result = []
    for kind in ("raw", "mapped"):
        first, second = part.answers.sides(kind)
        for group in np.split(order, starts[1:]):
            of_pair = rows[group]
            low, high = divmod(int(key[group[0]]), len(rank))
            figures = agreement(log, first[of_pair], second[of_pair], pairs.cluster[of_pair])
            result.append(
                TemplatePair(
                    order=part.order,
                    labels=kind,
                    template_a=log.templates[by_name[low]],
                    template_b=log.templates[by_name[high]],
                    jss=figures.jss,
                    ci_low=figures.ci_low,
                    ci_high=figures.ci_high,
                    n_pairs=figures.n_pairs,
                )
            )
    return tuple(result)


def template_figures(part: CellPart, table: Sequence[TemplatePair]) -> tuple[TemplateFigures, ...]:
    """Each template by itself: its agreement with the others in ``table``, and with gold."""
    log, answers = part.log, part.answers
    graded, hits = right_among_decided(answers)
    template = log.template[answers.rows]
    size = len(log.templates)
    n_prompts = np.bincount(template, minlength=size)
    right = np.bincount(template[hits], minlength=size)
    total = np.bincount(template[graded], minlength=size)
    agreed = dict.fromkeys(log.templates, 0.0)
    weights = dict.fromkeys(log.templates, 0)
    for row in table:
        sides = (row.template_a, row.template_b)
        if row.labels == "mapped" and row.jss is not None and sides[0] != sides[1]:
            for name in sides:
                agreed[name] += row.jss * row.n_pairs
                weights[name] += row.n_pairs
    figures = []
    for code in np.flatnonzero(n_prompts):
        name = log.templates[code]
        figures.append(
            TemplateFigures(
                order=part.order,
                template=name,
                agreement=agreed[name] / weights[name] if weights[name] else None,
                accuracy=float(right[code] / total[code]) if total[code] else None,
                inverted=name in answers.inverted,
                n_prompts=int(n_prompts[code]),
            )
        )
    return tuple(sorted(figures, key=lambda row: row.template))


def diagnostics(part: CellPart, cell: Cell) -> Diagnostics:
    """What advice needs beside the cells; ``cell`` is the one of this part."""
    log, answers = part.log, part.answers
    gold = log.gold[answers.rows]
    counts = np.bincount(gold[gold >= 0], minlength=len(log.labels))
    top = int(counts.argmax())
    rows = pa.array(answers.rows)
    mass = log.table["option_mass"].take(rows).drop_null().to_numpy()
    cut = log.table["truncated"].take(rows).to_numpy(zero_copy_only=False)
    accuracy_ci = (cell.accuracy_ci_low, cell.accuracy_ci_high)
    orders = np.flatnonzero(np.bincount(log.order[answers.rows]))
    return Diagnostics(
        order=part.order,
        n_prompts=len(answers.rows),
        n_cut_off=int((log.undecided[answers.decision] & (cut == True)).sum()),  # noqa: E712
        n_planned=part.n_planned,
        n_judged=int(part.used.sum()),
        gold_label=str(log.labels[top]) if counts[top] else None,
        gold_share=float(counts[top] / counts.sum()) if counts[top] else None,
        n_items=distinct(log.item[answers.rows]),
        accuracy_ci=accuracy_ci if cell.accuracy is not None else None,
        option_mass=float(np.median(mass)) if len(mass) else None,
        orders=tuple(log.orders[code] for code in orders),
        comparative=answers.task.comparative,
        n_labels=len(answers.task.labels),
    )


@dataclass(frozen=True)
class Flip:
    """A flipped example whose texts are still missing, and the rows of the log with its answers."""

    example: Example
    rows: tuple[int, int]


def flips(part: CellPart) -> list[Flip]:
    """Pairs with a flipped mapped verdict: the surest ones, at most one per item."""
    log, pairs, answers = part.log, part.pairs, part.answers
    assert answers.row_a is not None
    assert answers.row_b is not None
    flipped = part.of_pairs & answers.decided() & (answers.mapped_a != answers.mapped_b)
    index = np.flatnonzero(flipped)
    margins = []
    for rows in (answers.row_a, answers.row_b):
        margin = log.table["margin"].take(pa.array(rows[index])).to_numpy().astype(np.float64)
        margins.append(np.nan_to_num(margin, nan=0.0))
    index = index[np.argsort(-np.minimum(*margins), kind="stable")]
    _, at = np.unique(pairs.item[index], return_index=True)
    surest = []
    for pair in index[np.sort(at)[:EXAMPLES_A_STREAM]]:
        row_a, row_b = int(answers.row_a[pair]), int(answers.row_b[pair])
        gold = log.gold[row_a]
        example = Example(
            order=log.orders[pairs.order[pair]],
            item_id=log.items[log.item[row_a]],
            gold=str(log.labels[gold]) if gold >= 0 else None,
            a=_side(log, row_a, pairs.template_a[pair], answers.mapped_a[pair]),
            b=_side(log, row_b, pairs.template_b[pair], answers.mapped_b[pair]),
        )
        numbers = log.table[ROW]
        surest.append(Flip(example, (numbers[row_a].as_py(), numbers[row_b].as_py())))
    return surest


def _side(log: Log, row: int, template: int, decision: int) -> ExampleSide:
    record = log.table.select(["prompt_id", "margin"]).slice(row, 1).to_pylist()[0]
    return ExampleSide(
        template=log.templates[template],
        prompt_id=record["prompt_id"],
        text=None,
        answer=None,
        raw=str(log.labels[log.raw[row]]),
        decision=str(log.labels[decision]),
        margin=record["margin"],
    )


def examples(
    flipped: Sequence[Flip], read: Mapping[int, str | None], prompts: PromptTexts
) -> tuple[Example, ...]:
    """The examples with their texts; ``read`` has those of the judge by row of the log."""
    complete = []
    for flip in flipped:
        sides = (flip.example.a, flip.example.b)
        texts = prompts.of([side.prompt_id for side in sides])
        a, b = (
            replace(side, text=text, answer=cut(read[row]))
            for side, text, row in zip(sides, texts, flip.rows, strict=True)
        )
        complete.append(replace(flip.example, a=a, b=b))
    return tuple(complete)


def repeated_figures(answers: Answers, run: Mapping[str, Any]) -> Iterator[RepeatFigures]:
    """JSS over every draw of its prompts, raw and mapped; nothing without repeats."""
    log, pairs = answers.log, answers.pairs
    if answers.reruns is None or not len(pairs):
        return
    rows = np.concatenate([answers.rows, answers.reruns[1]])
    rows = rows[log.stimulus[rows] >= 0]
    # A prompt that several items share is logged for each, but drawn once per repeat.
    draw = log.stimulus[rows] * (int(log.repeat.max()) + 1) + log.repeat[rows]
    _, once = np.unique(draw, return_index=True)
    rows = rows[once]
    draws = np.bincount(log.stimulus[rows])
    n_draws = int(draws.max())
    if answers.variants and draws[draws > 0].min() < n_draws:
        return  # Only the base wording was asked again: see jss_repeat.
    undecided = log.undecided[log.raw[rows]]
    rows = rows[~undecided]
    counts = np.zeros((log.n_stimuli, len(log.labels)))
    np.add.at(counts, (log.stimulus[rows], log.raw[rows]), 1)
    first, second = counts[pairs.first], counts[pairs.second]
    labels = np.arange(len(log.labels))
    temperature = None
    for entry in run.get("judges") or []:
        if entry.get("name") == answers.judge:
            temperature = entry.get("describe", {}).get("decoding", {}).get("temperature")
    for kind in ("raw", "mapped"):
        if kind == "mapped":
            first = mapped_shares(first, labels, pairs.map_a, pairs, len(labels))
            second = mapped_shares(second, labels, pairs.map_b, pairs, len(labels))
        yield RepeatFigures(
            labels=kind,
            **sampled_jss(first, second, pairs.cluster),
            n_draws=n_draws,
            n_undecided=int(undecided.sum()),
            temperature=temperature,
        )
