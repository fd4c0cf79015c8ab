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
    of_task = {
        name: pairs_of(rows, code) if pairs is None else planned_pairs(rows, pairs, ids, name)
        for code, name in enumerate(rows.tasks)
    }
    key = (rows.task * len(rows.judges) + rows.judge) * len(rows.scorings) + rows.scoring
    order = np.argsort(key, kind="stable")
    every = []
    for part in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        task = tasks[rows.tasks[rows.task[part[0]]]]
        every.append(answers_of(rows, task, of_task[task.name], part))
    for task in tasks.values():
        every += _baselines(rows, task, of_task[task.name])
    return View(rows, tuple(every))


def answers_of(log: Log, task: TaskWords, pairs: Pairs, rows: Codes) -> Answers:
    """The answers at some rows of a log, which are one judge's on one task under one scoring."""
    # The first answer to a prompt and item need not be repeat 0.
    repeats, prompt = log.repeat[rows], _prompt(log, rows)
    _, at = np.unique(prompt, return_inverse=True)
    least = np.full(int(at.max()) + 1, repeats.max())
    np.minimum.at(least, at, repeats)
    is_first = repeats == least[at]
    first, later = rows[is_first], rows[~is_first & log.equivalent[rows]]
    once, others = first[log.equivalent[first]], first[~log.equivalent[first]]
    row_of = np.full(log.n_stimuli + 1, _NOT_JUDGED)
    paired = once[log.stimulus[once] >= 0][::-1]
    row_of[log.stimulus[paired]] = paired
    # A prompt that is equivalent with another scoring only has pairs, but none in this scoring.
    apart = np.setdiff1d(log.stimulus[others], log.stimulus[paired]) if len(others) else others
    if len(apart := apart[apart >= 0]):
        pairs = pairs.only(~(np.isin(pairs.first, apart) | np.isin(pairs.second, apart)))
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
        rows=once,
        decision=log.decision[once],
        row_a=row_a,
        row_b=row_b,
        reruns=_reruns(log, once, later),
        others=others if len(others) else None,
    )


def _prompt(log: Log, rows: Codes) -> Codes:
    """One number for each prompt and item."""
    key = (log.stimulus[rows] * len(log.items) + log.item[rows]) * len(log.templates)
    key = (key + log.template[rows]) * len(log.orders) + log.order[rows]
    return key * len(log.variants) + log.variant[rows]


def _reruns(log: Log, once: Codes, later: Codes) -> tuple[Codes, Codes] | None:
    """The first and each later answer to the same prompt and item, as rows of the log."""
    if not len(later):
        return None
    ranked = once[np.argsort(_prompt(log, once), kind="stable")]
    place = np.searchsorted(_prompt(log, ranked), _prompt(log, later))
    paired = log.stimulus[later] >= 0
    return ranked[place][paired], later[paired]


def _baselines(log: Log, task: TaskWords, pairs: Pairs) -> Iterator[Answers]:
    """A judge that is always right, and one that always takes the first option.

    Both answer through the inverse label maps, so raw figures show the effect of the wordings
    alone.
    """
    if not len(pairs):
        return
    rows = np.flatnonzero((log.task == log.tasks.index(task.name)) & log.equivalent)
    rows = rows[log.stimulus[rows] >= 0]
    _, index = np.unique(log.stimulus[rows] * len(log.items) + log.item[rows], return_index=True)
    rows = rows[np.sort(index)]
    meant = np.full(log.n_stimuli + 1, _NOT_JUDGED)
    meant[log.stimulus[rows][::-1]] = log.gold[rows][::-1]
    answers = {ORACLE: (meant, log.gold[rows])}
    if task.comparative and task.labels and task.labels[0] in log.labels:
        first = int(np.flatnonzero(log.labels == task.labels[0])[0])
        answers[ALWAYS_FIRST] = (np.full(log.n_stimuli + 1, first), np.full(len(rows), first))
    for judge, (meant, decision) in answers.items():
        if not (decision >= 0).any():
            continue
        mapped = meant[pairs.first], meant[pairs.second]
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
