"""From a decision log and its pairs to the assessments of its judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers, distinct
from judgesense.log.pairs import MOST_COMPARED
from judgesense.log.schema import conform
from judgesense.log.view import view
from judgesense.measure.advice import advise
from judgesense.measure.assessment import (
    Assessment,
    JudgeCells,
    Outlook,
    RemedyFigures,
    ReportContents,
    Subject,
)
from judgesense.measure.ceiling import with_distance
from judgesense.measure.cells import CellPart, cells_of, parts
from judgesense.measure.checks import trust_card
from judgesense.measure.details import (
    ROW,
    Flip,
    diagnostics,
    examples,
    flips,
    repeated_figures,
    template_figures,
    template_pairs,
)
from judgesense.measure.disagreements import (
    Disagreement,
    Listed,
    where_wrong,
    with_texts,
)
from judgesense.measure.next import next_step
from judgesense.measure.notices import damage
from judgesense.measure.people import gold_of, people
from judgesense.measure.planning import gate_outlook, plan
from judgesense.measure.resistant import attacks, resistant
from judgesense.measure.texts import PromptTexts, WordingTexts, shortest_prompts, wording_texts
from judgesense.measure.thresholds import FEW_CLUSTERS, Thresholds
from judgesense.measure.variants import variants
from judgesense.measure.wins import model_wins
from judgesense.measure.wordings import Wordings, recommendation, wordings
from judgesense.measure.words import ItemWords, item_texts
from judgesense.statistics.alternative_annotator import EPSILON
from judgesense.text import join

ReadTexts = Callable[[list[int]], list[str | None]]
"""Reads the judge's texts at some rows of a log."""

_PAIR_COLUMNS = (
    "task",
    "item_id",
    "cluster_id",
    "order",
    "template_a",
    "template_b",
    "prompt_id_a",
    "prompt_id_b",
    "label_map_a",
    "label_map_b",
)


UNFINISHED = (
    "This run is not finished. The figures cover the prompts judged so far. Rerun the "
    "same command to finish it."
)


@dataclass(frozen=True)
class Material:
    """What is known of a run besides its decisions.

    ``texts`` has the judges' texts at rows of the log, ``lengths`` the characters of each item's
    shortest prompt, ``words`` those of a task's items. ``family`` is the number of choices of a
    wording in the report, for which each is corrected.
    """

    record: Mapping[str, Any]
    limits: Thresholds
    prompts: PromptTexts
    texts: Mapping[int, str | None]
    wordings: WordingTexts
    lengths: Mapping[str, int]
    people: pa.Table | None
    items: pa.Table | None
    folder: str | Path | None
    family: int
    words: Callable[[str], ItemWords]


def measure(
    log: pa.Table,
    pairs: pa.Table | None,
    *,
    run: Mapping[str, Any],
    prompts: pa.Table | None = None,
    thresholds: Mapping[str, object] | None = None,
    texts: ReadTexts | None = None,
    folder: str | Path | None = None,
    people: pa.Table | None = None,
    items: pa.Table | None = None,
    disagreements: list[Disagreement] | None = None,
) -> ReportContents:
    """Every figure of a run, and what follows from it.

    Args:
        log: a decision log (`judgesense.log.schema.SCHEMA`), n rows.
        pairs: the run's pairs; None takes all pairs of templates within item and order.
        run: the run's record (``run.json``): ``run_id`` and ``tasks`` (name -> labels,
            comparative) and ``thresholds`` are used if present.
        prompts: ``prompt_id`` and ``text`` of the user messages, shown in the flipped examples;
            with ``task`` and ``template_id``, they also show the texts of wordings.
        thresholds: of the trust card's checks, by name
            (`judgesense.measure.thresholds.Thresholds`); those left out are the
            run's, or the defaults.
        texts: reads the judge's text at some rows of the log, for the flipped examples; by default
            they are the log's ``raw_text``.
        folder: the run's folder, for the commands of next steps.
        people: people's labels (`judgesense.log.folder.PEOPLE_SCHEMA`), where gold is the
            majority of several; ``epsilon`` of the run is that of the alternative annotator test.
        items: other columns of an imported file (`judgesense.log.folder.ITEM_SCHEMA`).
        disagreements: a list to which the rows of ``disagreements.csv`` are added, and those on
            which nothing is wrong.

    Raises:
        JudgeSenseError: an empty log, a missing column, an impossible label map, or an unknown
            threshold.
    """
    log = conform(log, "the decision log")
    numbered = log.append_column(ROW, pa.array(np.arange(log.num_rows)))
    columns = _PAIR_COLUMNS if pairs is None else pairs.column_names
    if missing := [name for name in _PAIR_COLUMNS if name not in columns]:
        raise JudgeSenseError(f"the pairs lack the columns {join(missing)}")
    read = texts or (lambda rows: log["raw_text"].take(pa.array(rows, pa.int64())).to_pylist())
    logged = view(numbered, pairs, run).answers
    whole = [parts(answers) for answers in logged]
    flipped = [flips(every[-1]) if every[0].answers.row_a is not None else [] for every in whole]
    rows = [row for some in flipped for flip in some for row in flip.rows]
    material = Material(
        record=run,
        limits=Thresholds().updated(run.get("thresholds")).updated(thresholds),
        prompts=PromptTexts(prompts),
        texts=dict(zip(rows, read(rows), strict=True)),
        wordings=wording_texts(run, prompts),
        lengths=shortest_prompts(prompts),
        people=people,
        items=items,
        folder=folder,
        family=max(1, sum(map(_compares_wordings, logged))),
        # Every judge of a task is compared over the same words.
        words=cache(lambda task: ItemWords.of(item_texts(items, prompts, task))),
    )
    without_texts: list[Listed] | None = None if disagreements is None else []
    measured = []
    for every, some in zip(whole, flipped, strict=True):
        measured.append(_measured(every, some, material, without_texts))
    if disagreements is not None and without_texts:
        disagreements += with_texts(without_texts, read, prompts, people)
    notes = [str(note) for note in run.get("notes") or []]
    notes += sorted({note for answers in logged if (note := _of_many(answers))})
    if "asked" in run and not run.get("finished"):
        notes.insert(0, UNFINISHED)
    return ReportContents(
        measured=tuple(measured),
        findings=advise(measured, [run]),
        runs=(dict(run),),
        notes=tuple(notes),
    )


def _of_many(answers: Answers) -> str | None:
    """That only some pairs of many wordings are compared."""
    pairs, wordings = answers.pairs, distinct(answers.log.template[answers.rows])
    if wordings <= MOST_COMPARED:
        return None
    compared = len(np.unique(pairs.template_a * len(answers.log.templates) + pairs.template_b))
    return (
        f"{answers.task.name}: of the {wordings * (wordings - 1) // 2:,} pairs of {wordings} "
        f"wordings, {compared:,} are compared, drawn at random"
    )


def _compares_wordings(answers: Answers) -> bool:
    """Whether a judge was asked under several wordings, and gold labels tell which is right."""
    several = answers.row_a is not None and distinct(answers.log.template[answers.rows]) > 1
    return bool(several and (answers.log.gold[answers.rows] >= 0).any())


def _measured(
    every: list[CellPart],
    flipped: list[Flip],
    material: Material,
    disagreements: list[Listed] | None,
) -> JudgeCells:
    """The assessment of a judge, or the cells of a baseline, from the parts of its answers."""
    answers, record = every[0].answers, material.record
    run_id = str(record.get("run_id") or "-")
    subject = Subject(run_id, answers.judge, answers.task.name, answers.scoring)
    cells = cells_of(every)
    if answers.row_a is None:
        return JudgeCells(*subject, cells)
    whole, limits, labels = every[-1], material.limits, material.people
    table = Wordings.of(answers, material.family)
    # Wordings whose label map is wrong tell of the wording, not of the judge.
    mislabelled = table.mislabelled
    attack_rows = attacks(answers, mislabelled, record.get("attacks") or {}, material.prompts)
    noticed, damage_rows = damage(answers, record.get("damage") or {}, limits, material.prompts)
    card = trust_card(
        answers,
        thresholds=limits,
        mislabelled=mislabelled,
        gold=gold_of(answers, labels),
        attacked=resistant(attack_rows, limits.resistant),
        noticed=noticed,
        people=labels,
    )
    remedy_rows: tuple[RemedyFigures, ...] = ()
    # Of fewer items no remedied verdicts can pass the `steady` check.
    if distinct(answers.log.cluster[answers.rows]) >= FEW_CLUSTERS:
        from judgesense.measure.remedies import cheapest_that_passes, remedies

        remedy_rows = remedies(answers, card, limits, mislabelled)
        best = cheapest_that_passes(remedy_rows)
        card = replace(card, remedy=best.remedy if best else None)
    agreements = template_pairs(whole)
    assessment = Assessment(
        *subject,
        cells=cells,
        card=card,
        wordings=wordings(table, material.wordings.get(answers.task.name)),
        recommendation=recommendation(table, card),
        remedies=remedy_rows,
        people=with_distance(
            people(answers, labels, mislabelled, float(record.get("epsilon", EPSILON))),
            answers,
            labels,
            mislabelled,
        ),
        where_wrong=where_wrong(
            answers,
            mislabelled,
            material.items,
            material.lengths,
            disagreements,
            run_id,
            labels,
            material.words,
        ),
        variants=variants(answers, mislabelled, material.wordings.get(answers.task.name) or {}),
        attacks=attack_rows,
        damage=damage_rows,
        wins=model_wins(answers, mislabelled),
        template_pairs=agreements,
        templates=template_figures(whole, agreements),
        examples=examples(flipped, material.texts, material.prompts),
        diagnostics=diagnostics(whole, cells[-1]),
        outlook=Outlook(
            settles=plan(card.checks, limits.confidence) if card.trust != "avoid" else None,
            gate=gate_outlook(card.checks["steady"], limits.confidence),
        ),
        repeated=tuple(repeated_figures(answers, record)),
    )
    return replace(assessment, next_step=next_step(assessment, record, material.folder))
