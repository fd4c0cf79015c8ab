"""The view of a decision log that every measurement starts from: :func:`view`.

It holds the `Answers` of each judge, task and scoring. Two baselines, an oracle and a judge that
always takes the first option, have answers too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers
from judgesense.log.pairs import Pairs, pairs_of, planned_pairs
from judgesense.log.rows import Log, TaskWords, read_rows
from judgesense.statistics.arrays import Codes
from judgesense.text import short_names

ORACLE, ALWAYS_FIRST = "oracle", "always-first"
BASELINES = (ORACLE, ALWAYS_FIRST)
"""The judges of baseline cells: one that is always right, one that never reads."""

_NOT_JUDGED = -1


@dataclass(frozen=True)
class View:
    """A decision log lined up with its pairs; see :func:`view`.

    ``answers`` are the judges', then the baselines'.
    """

    log: Log
    answers: tuple[Answers, ...]

    @property
    def names(self) -> dict[str, str]:
        """The short name of each judge (see :func:`judgesense.text.short_names`)."""
        return short_names(self.log.judges)

    @property
    def judged(self) -> list[Answers]:
        """The answers of the judges, without the baselines."""
        return [answers for answers in self.answers if answers.row_a is not None]


def view(
    log: pa.Table, pairs: pa.Table | None = None, record: Mapping[str, Any] | None = None
) -> View:
    """Line up a decision log with its pairs, with the answers of each judge, task and scoring.

    Args:
        log: a decision log with the columns of `judgesense.log.schema.SCHEMA`, n rows.
        pairs: the run's planned pairs (``pairs.parquet``). None forms all pairs of equivalent
            templates within item and order, as for an import.
        record: the run's ``run.json``; its ``tasks`` give labels and which tasks are comparative.
            Without it, both are inferred from the log.

    Raises:
        JudgeSenseError: the log has no rows, a pair's label map is invalid, or a variant class is
            unknown.

    >>> import pyarrow as pa
    >>> from judgesense.log.schema import SCHEMA
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "item_id": "i", "status": "ok"}
    >>> rows = [{**row, "template_id": t, "decision": d} for t, d in [("1", "YES"), ("2", "NO")]]
    >>> (answers,) = view(pa.Table.from_pylist(rows, schema=SCHEMA)).judged
    >>> answers.as_rows().label.tolist(), answers.agreement("mapped").flip_rate
    (['YES', 'NO'], 1.0)
    """
    rows, tasks, ids = read_rows(log, pairs, record or {})
    pairs_of_task = {
        name: pairs_of(rows, code) if pairs is None else planned_pairs(rows, pairs, ids, name)
        for code, name in enumerate(rows.tasks)
    }
    group = (rows.task * len(rows.judges) + rows.judge) * len(rows.scorings) + rows.scoring
    order = np.argsort(group, kind="stable")
    answers = []
    for judge_rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        task = tasks[rows.tasks[rows.task[judge_rows[0]]]]
        answers.append(answers_of(rows, task, pairs_of_task[task.name], judge_rows))
    for task in tasks.values():
        answers += _baselines(rows, task, pairs_of_task[task.name])
    return View(rows, tuple(answers))


def answers_of(log: Log, task: TaskWords, pairs: Pairs, rows: Codes) -> Answers:
    """The answers at some rows of a log, which are one judge's on one task under one scoring."""
    # The first answer to a prompt and item need not be repeat 0.
    repeats, prompt = log.repeat[rows], _prompt_key(log, rows)
    _, prompt_code = np.unique(prompt, return_inverse=True)
    first_repeat = np.full(int(prompt_code.max()) + 1, repeats.max())
    np.minimum.at(first_repeat, prompt_code, repeats)
    is_first = repeats == first_repeat[prompt_code]
    first, later = rows[is_first], rows[~is_first & log.equivalent[rows]]
    equivalent, others = first[log.equivalent[first]], first[~log.equivalent[first]]
    row_of = np.full(log.n_stimuli + 1, _NOT_JUDGED)
    with_stimulus = equivalent[log.stimulus[equivalent] >= 0][::-1]
    row_of[log.stimulus[with_stimulus]] = with_stimulus
    # A prompt that is equivalent with another scoring only has pairs, but none in this scoring.
    unpaired = np.setdiff1d(log.stimulus[others], log.stimulus[with_stimulus])
    if len(unpaired := unpaired[unpaired >= 0]):
        pairs = pairs.only(~(np.isin(pairs.first, unpaired) | np.isin(pairs.second, unpaired)))
    row_a, row_b = row_of[pairs.first], row_of[pairs.second]
    raw = [np.where(row >= 0, log.raw[row], _NOT_JUDGED) for row in (row_a, row_b)]
    if pairs.planned:
        mapped = [pairs.forward[pairs.map_a, raw[0]], pairs.forward[pairs.map_b, raw[1]]]
    else:
        mapped = [log.decision[row_a], log.decision[row_b]]
    return Answers(
        log=log,
        pairs=pairs,
        judge=log.judges[log.judge[rows[0]]],
        task=task,
        scoring=log.scorings[log.scoring[rows[0]]],
        raw_a=raw[0],
        raw_b=raw[1],
        mapped_a=np.where(row_a >= 0, mapped[0], _NOT_JUDGED),
        mapped_b=np.where(row_b >= 0, mapped[1], _NOT_JUDGED),
        rows=equivalent,
        decision=log.decision[equivalent],
        row_a=row_a,
        row_b=row_b,
        reruns=_reruns(log, equivalent, later),
        others=others if len(others) else None,
    )


def _prompt_key(log: Log, rows: Codes) -> Codes:
    """One number for each prompt and item."""
    key = (log.stimulus[rows] * len(log.items) + log.item[rows]) * len(log.templates)
    key = (key + log.template[rows]) * len(log.orders) + log.order[rows]
    return key * len(log.variants) + log.variant[rows]


def _reruns(log: Log, first: Codes, later: Codes) -> tuple[Codes, Codes] | None:
    """The first and each later answer to the same prompt and item, as rows of the log."""
    if not len(later):
        return None
    sorted_first = first[np.argsort(_prompt_key(log, first), kind="stable")]
    positions = np.searchsorted(_prompt_key(log, sorted_first), _prompt_key(log, later))
    has_stimulus = log.stimulus[later] >= 0
    return sorted_first[positions][has_stimulus], later[has_stimulus]


def _baselines(log: Log, task: TaskWords, pairs: Pairs) -> Iterator[Answers]:
    """A judge that is always right, and one that always takes the first option.

    Both answer through the inverse label maps, so raw figures show the effect of the wordings
    alone.
    """
    if not len(pairs):
        return
    rows = np.flatnonzero((log.task == log.tasks.index(task.name)) & log.equivalent)
    rows = rows[log.stimulus[rows] >= 0]
    stimulus_item = log.stimulus[rows] * len(log.items) + log.item[rows]
    _, first_rows = np.unique(stimulus_item, return_index=True)
    rows = rows[np.sort(first_rows)]
    label_of_stimulus = np.full(log.n_stimuli + 1, _NOT_JUDGED)
    label_of_stimulus[log.stimulus[rows][::-1]] = log.gold[rows][::-1]
    answers = {ORACLE: (label_of_stimulus, log.gold[rows])}
    if task.comparative and task.labels and task.labels[0] in log.labels:
        first = int(np.flatnonzero(log.labels == task.labels[0])[0])
        answers[ALWAYS_FIRST] = (np.full(log.n_stimuli + 1, first), np.full(len(rows), first))
    for judge, (label_of_stimulus, decision) in answers.items():
        if not (decision >= 0).any():
            continue
        mapped = label_of_stimulus[pairs.first], label_of_stimulus[pairs.second]
        raw = [
            np.where(labels >= 0, pairs.inverse[maps, labels], _NOT_JUDGED)
            for maps, labels in zip((pairs.map_a, pairs.map_b), mapped, strict=True)
        ]
        yield Answers(
            log=log,
            pairs=pairs,
            judge=judge,
            task=task,
            scoring="-",
            raw_a=raw[0],
            raw_b=raw[1],
            mapped_a=np.where(raw[0] >= 0, mapped[0], _NOT_JUDGED),
            mapped_b=np.where(raw[1] >= 0, mapped[1], _NOT_JUDGED),
            rows=rows[decision >= 0],
            decision=decision[decision >= 0],
        )
