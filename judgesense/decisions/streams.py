"""The view of a decision log that every measurement starts from: :func:`view`.

It holds a stream per judge, task and scoring: the judge's decisions lined up with the pairs. Two
baselines, an oracle and a judge that always takes the first option, have streams too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.frames import Log, Pairs, TaskWords, read_frames
from judgesense.decisions.repeats import first_answers, repeated_answers
from judgesense.decisions.shares import without_content_free
from judgesense.decisions.stream import Stream
from judgesense.statistics.arrays import Codes
from judgesense.text import short_names

ORACLE, ALWAYS_FIRST = "oracle", "always-first"
BASELINES = (ORACLE, ALWAYS_FIRST)
"""The judges of baseline cells: one that is always right, one that never reads."""

NOT_JUDGED = -1


@dataclass(frozen=True)
class View:
    """A decision log lined up with its pairs; see :func:`view`.

    ``streams`` are the judges', then the baselines'.
    """

    log: Log
    streams: tuple[Stream, ...]

    @property
    def names(self) -> dict[str, str]:
        """The short name of each judge (see :func:`judgesense.text.short_names`)."""
        return short_names(self.log.judges)

    @property
    def judged(self) -> list[Stream]:
        """The streams of the judges, without the baselines."""
        return [stream for stream in self.streams if stream.row_a is not None]


def view(
    log: pa.Table, pairs: pa.Table | None = None, record: Mapping[str, Any] | None = None
) -> View:
    """Line up a decision log with its pairs, one stream per judge, task and scoring.

    Args:
        log: a decision log with the columns of `judgesense.decisions.SCHEMA`, n rows.
        pairs: the run's planned pairs (``pairs.parquet``). None forms all pairs of equivalent
            templates within item and order, as for an import.
        record: the run's ``run.json``; its ``tasks`` give labels and which tasks are comparative.
            Without it, both are inferred from the log.

    Raises:
        JudgeSenseError: the log has no rows, a pair's label map is invalid, or a variant class is
            unknown.

    >>> import pyarrow as pa
    >>> from judgesense.decisions import SCHEMA
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "item_id": "i", "status": "ok"}
    >>> said = [{**row, "template_id": t, "decision": d} for t, d in [("1", "YES"), ("2", "NO")]]
    >>> (stream,) = view(pa.Table.from_pylist(said, schema=SCHEMA)).judged
    >>> stream.answers().label.tolist(), stream.agreement("mapped").flip_rate
    (['YES', 'NO'], 1.0)
    """
    log, told = without_content_free(log)
    frame, tasks, of_task = read_frames(log, pairs, record or {})
    streams = (
        replace(s, content_free=told.get((s.judge, s.task.name, s.scoring), {}))
        for s in _streams(frame, tasks, of_task)
    )
    return View(frame, tuple(streams))


def _streams(
    log: Log, tasks: Mapping[str, TaskWords], pairs: Mapping[str, Pairs]
) -> Iterator[Stream]:
    """Every judge, task and scoring of the log, then the baselines of each task."""
    key = (log.task * len(log.judges) + log.judge) * len(log.scorings) + log.scoring
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order])) + 1
    for rows in np.split(order, bounds):
        head = rows[0]
        task = tasks[log.tasks[log.task[head]]]
        yield _stream(log, task, pairs[task.name], rows)
    for task in tasks.values():
        yield from _baselines(log, task, pairs[task.name])


def _stream(log: Log, task: TaskWords, pairs: Pairs, rows: Codes) -> Stream:
    is_first = first_answers(log, rows)
    first, later = rows[is_first], rows[~is_first]
    once, others = first[log.equivalent[first]], first[~log.equivalent[first]]
    row_of = np.full(log.n_stimuli + 1, NOT_JUDGED)
    seen = once[log.stimulus[once] >= 0][::-1]
    row_of[log.stimulus[seen]] = seen
    # A prompt that is equivalent with another scoring only has pairs, but none of this stream's.
    apart = np.setdiff1d(log.stimulus[others], [-1, *log.stimulus[seen]])
    if len(apart):
        pairs = pairs.only(~(np.isin(pairs.first, apart) | np.isin(pairs.second, apart)))
    row_a, row_b = row_of[pairs.first], row_of[pairs.second]
    raw_a = np.where(row_a >= 0, log.raw[row_a], NOT_JUDGED)
    raw_b = np.where(row_b >= 0, log.raw[row_b], NOT_JUDGED)
    if pairs.planned:
        mapped_a = np.where(row_a >= 0, pairs.forward[pairs.map_a, raw_a], NOT_JUDGED)
        mapped_b = np.where(row_b >= 0, pairs.forward[pairs.map_b, raw_b], NOT_JUDGED)
    else:
        mapped_a = np.where(row_a >= 0, log.decision[row_a], NOT_JUDGED)
        mapped_b = np.where(row_b >= 0, log.decision[row_b], NOT_JUDGED)
    return Stream(
        log=log,
        pairs=pairs,
        judge=log.judges[log.judge[rows[0]]],
        task=task,
        scoring=log.scorings[log.scoring[rows[0]]],
        raw_a=raw_a,
        raw_b=raw_b,
        mapped_a=mapped_a,
        mapped_b=mapped_b,
        rows=once,
        decision=log.decision[once],
        row_a=row_a,
        row_b=row_b,
        reruns=repeated_answers(log, once, later[log.equivalent[later]]),
        others=others if len(others) else None,
    )


def _baselines(log: Log, task: TaskWords, pairs: Pairs) -> Iterator[Stream]:
    """A judge that is always right, and one that always takes the first option.

    Both answer through the inverse label maps, so raw figures show the effect of the wordings
    alone.
    """
    of_task = (log.task == log.tasks.index(task.name)) & log.equivalent
    rows = np.flatnonzero(of_task & (log.stimulus >= 0))
    _, index = np.unique(log.stimulus[rows] * len(log.items) + log.item[rows], return_index=True)
    rows = rows[np.sort(index)]
    meant = np.full(log.n_stimuli + 1, NOT_JUDGED)
    meant[log.stimulus[rows][::-1]] = log.gold[rows][::-1]
    if (log.gold[rows] >= 0).any() and len(pairs):
        yield _baseline(log, ORACLE, task, pairs, meant, rows, log.gold[rows])
    if task.comparative and len(pairs) and task.labels and task.labels[0] in log.labels:
        first = int(np.flatnonzero(log.labels == task.labels[0])[0])
        meant = np.full(log.n_stimuli + 1, first)
        yield _baseline(log, ALWAYS_FIRST, task, pairs, meant, rows, np.full(len(rows), first))


def _baseline(
    log: Log,
    judge: str,
    task: TaskWords,
    pairs: Pairs,
    meant: Codes,
    rows: Codes,
    decision: Codes,
) -> Stream:
    mapped_a, mapped_b = meant[pairs.first], meant[pairs.second]
    raw_a = np.where(mapped_a >= 0, pairs.inverse[pairs.map_a, mapped_a], NOT_JUDGED)
    raw_b = np.where(mapped_b >= 0, pairs.inverse[pairs.map_b, mapped_b], NOT_JUDGED)
    return Stream(
        log=log,
        pairs=pairs,
        judge=judge,
        task=task,
        scoring="-",
        raw_a=raw_a,
        raw_b=raw_b,
        mapped_a=np.where(raw_a >= 0, mapped_a, NOT_JUDGED),
        mapped_b=np.where(raw_b >= 0, mapped_b, NOT_JUDGED),
        rows=rows[decision >= 0],
        decision=decision[decision >= 0],
    )
