"""A finished run as decisions lined up with its pairs: what every table of the study reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.frames import Codes, Log, Pairs, read_frames
from judgesense.decisions.streams import Stream, agreement, streams
from judgesense.errors import JudgeSenseError
from judgesense.report_file import main_cells
from judgesense.reporting.build import measure
from judgesense.run_folder import read_record, read_run
from judgesense.statistics.agreement import Agreement
from judgesense.tasks import ERROR
from judgesense.text import short_names

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[Any]
Cells = dict[str, dict[str, Any]]
Verdicts = Mapping[tuple[str, str, str, int], str]

TASKS = ("coherence", "factuality", "preference", "relevance")
"""The paper's tasks, the one that tells judges apart first (section 5.1, finding 1)."""

NOTHING = Agreement(
    jss=None, flip_rate=None, kappa=None, ci_low=None, ci_high=None, kappa_ci_low=None,
    kappa_ci_high=None, jss_low=0.0, jss_high=1.0, n_pairs=0, n_items=0, n_unclear=0,
    n_refused=0, n_error=0, degenerate="no pair was judged on both sides",
)  # fmt: skip
"""The agreement of no pairs at all."""

SCORING = {"generate": 0, "options": 1}


@dataclass(frozen=True)
class Prompts:
    """Single judgements, one a row: words, shape (n,) each. ``label`` is the mapped decision,
    ``raw`` what was answered; ``gold`` is "" where there is none."""

    item: Words
    cluster: Codes
    template: Words
    order: Words
    repeat: Codes
    raw: Words
    label: Words
    gold: Words


@dataclass(frozen=True)
class Case:
    """One judge on one task under one scoring.

    ``number`` is the judge's place among the judges asked: the same judge has the same one in
    every run of a study. ``cells`` are the report's raw and mapped cells over all option orders,
    ``inverted`` the templates that ask the other way round, ``items`` the item of every pair.
    """

    judge: str
    number: int
    task: str
    scoring: str
    comparative: bool
    labels: tuple[str, ...]
    cells: Cells
    inverted: frozenset[str]
    items: Words
    log: Log
    pairs: Pairs
    stream: Stream

    @property
    def key(self) -> tuple[int, str, str]:
        """Judge, task and scoring: what a case of another run is matched by."""
        return self.number, self.task, self.scoring

    @cached_property
    def templates(self) -> tuple[Words, Words]:
        """The templates of both sides of every pair."""
        names = np.array(self.log.templates, dtype=object)
        return names[self.pairs.template_a], names[self.pairs.template_b]

    @cached_property
    def with_inverted(self) -> Mask:
        """The pairs of which one wording asks the other way round."""
        one, two = (np.isin(side, list(self.inverted)) for side in self.templates)
        mixed: Mask = one != two
        return mixed

    @cached_property
    def orders(self) -> Words:
        """The option order of every pair."""
        return np.array(self.log.orders, dtype=object)[self.pairs.order]

    def sides(self, labels: str) -> tuple[Words, Words]:
        """Both decisions of every pair, raw or mapped; ERROR where a prompt was not judged."""
        # The code -1 (not judged) takes the last entry.
        words = np.append(self.log.labels, ERROR)
        one, two = self.stream.sides(labels)
        return words[one], words[two]

    def agreement(self, labels: str, keep: Mask | None = None) -> Agreement:
        """JSS and what belongs to it on some of the judged pairs."""
        used = self.stream.known if keep is None else self.stream.known & keep
        if not used.any():
            return NOTHING
        one, two = (side[used] for side in self.stream.sides(labels))
        return agreement(self.log, one, two, self.pairs.cluster[used])

    def prompts(self, repeats: bool = False) -> Prompts:
        """The case's judgements, by default the first of every prompt."""
        log, rows = self.log, self.stream.rows
        if repeats:
            head = rows[0]
            same = (log.judge == log.judge[head]) & (log.task == log.task[head])
            rows = np.flatnonzero(same & (log.scoring == log.scoring[head]))
        words = np.append(log.labels, "")
        return Prompts(
            item=np.array(log.items, dtype=object)[log.item[rows]],
            cluster=log.cluster[rows],
            template=np.array(log.templates, dtype=object)[log.template[rows]],
            order=np.array(log.orders, dtype=object)[log.order[rows]],
            repeat=log.repeat[rows],
            raw=words[log.raw[rows]],
            label=words[log.decision[rows]],
            gold=words[log.gold[rows]],
        )

    @cached_property
    def verdicts(self) -> Verdicts:
        """What was decided, mapped, at every item, template, order and repeat."""
        rows = self.prompts(repeats=True)
        keys = zip(rows.item, rows.template, rows.order, rows.repeat.tolist(), strict=True)
        return dict(zip(keys, rows.label.tolist(), strict=True))

    @cached_property
    def places(self) -> list[tuple[str, str, str, str]]:
        """Item, both templates and option order of every pair."""
        return list(zip(self.items, *self.templates, self.orders, strict=True))

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the decision log at the first judgement of every prompt."""
        return self.log.table[name].take(pa.array(self.stream.rows))


@dataclass(frozen=True)
class Judged:
    """A run: its report, its record and its cases, in the paper's order of tasks."""

    report: dict[str, Any]
    record: dict[str, Any]
    cases: tuple[Case, ...]
    pair_ids: dict[str, list[str]]

    @property
    def judges(self) -> list[str]:
        """The judges' short names, the most consistent first (see `ranked`)."""
        return list(dict.fromkeys(case.judge for case in self.cases))

    def matched(self, case: Case) -> Case | None:
        """The case of this run with the same judge, task and scoring."""
        return next((own for own in self.cases if own.key == case.key), None)

    def groups(self) -> Iterator[tuple[str, str, list[Case]]]:
        """The judges' cases by task and scoring."""
        keys = dict.fromkeys((case.task, case.scoring) for case in self.cases)
        for task, scoring in sorted(keys, key=lambda key: (task_place(key[0]), SCORING[key[1]])):
            own = [case for case in self.cases if (case.task, case.scoring) == (task, scoring)]
            yield task, scoring, own


def read_judged(run_dir: Path) -> Judged:
    """Read a run and measure it anew.

    Raises JudgeSenseError for a folder that holds no decisions, with what it should be.
    """
    run = read_run(run_dir)
    log, planned, record = run.log, run.pairs, run.record
    report = measure(log, planned, run=record)
    frame, tasks, of_task = read_frames(log, planned, record)
    cells = main_cells(report)
    names = short_names(set(frame.judges))
    listed = [entry["name"] for entry in record.get("judges", []) if isinstance(entry, dict)]
    asked = [name for name in listed if name in names] or frame.judges
    inverted = {task: inverted_templates(frame, pairs) for task, pairs in of_task.items()}
    items = {task: _items(frame, own, planned, task) for task, own in of_task.items()}
    run_id = str(record.get("run_id") or "-")
    cases = [
        Case(
            judge=names[stream.judge],
            number=asked.index(stream.judge),
            task=stream.task.name,
            scoring=stream.scoring,
            comparative=stream.task.comparative,
            labels=stream.task.labels,
            cells=cells[run_id, stream.judge, stream.task.name, stream.scoring],
            inverted=inverted[stream.task.name],
            items=items[stream.task.name],
            log=frame,
            pairs=of_task[stream.task.name],
            stream=stream,
        )
        for stream in streams(frame, tasks, of_task)
        if stream.row_a is not None
    ]
    ids: dict[str, list[str]] = {}
    if planned is not None and "pair_id" in planned.column_names:
        columns = planned["task"].to_pylist(), planned["pair_id"].to_pylist()
        for task, pair in zip(*columns, strict=True):
            ids.setdefault(task, []).append(pair)
    return Judged(report, record, tuple(ranked(cases)), ids)


def ranked(cases: list[Case]) -> list[Case]:
    """Cases by scoring, then by the judge's coherence JSS, the highest first (as in Table 1)."""
    tasks = sorted({case.task for case in cases}, key=task_place)

    def first_jss(case: Case) -> float:
        leading = (
            own.cells["raw"]["jss"]
            for own in cases
            if (own.number, own.scoring, own.task) == (case.number, case.scoring, tasks[0])
        )
        return next((-value for value in leading if value is not None), 1.0)

    return sorted(
        cases,
        key=lambda case: (
            SCORING[case.scoring],
            first_jss(case),
            case.number,
            task_place(case.task),
        ),
    )


def _items(log: Log, pairs: Pairs, planned: pa.Table | None, task: str) -> Words:
    """The item of every pair of a task."""
    if planned is None:
        return np.array(log.items, dtype=object)[pairs.item]
    own = planned.filter(pc.equal(planned["task"], task))
    return np.array(own["item_id"].to_pylist(), dtype=object)


def inverted_templates(log: Log, pairs: Pairs) -> frozenset[str]:
    """The templates whose label map differs from that of most templates of the task."""
    maps: dict[int, tuple[int, ...]] = {}
    for templates, codes in ((pairs.template_a, pairs.map_a), (pairs.template_b, pairs.map_b)):
        _, places = np.unique(templates, return_index=True)
        for place in places:
            maps[int(templates[place])] = tuple(pairs.forward[codes[place]].tolist())
    if not maps:
        return frozenset()
    usual = Counter(maps[code] for code in sorted(maps)).most_common(1)[0][0]
    return frozenset(log.templates[code] for code, own in maps.items() if own != usual)


def task_place(task: str) -> tuple[int, str]:
    """The paper's tasks first, in its order."""
    return (TASKS.index(task) if task in TASKS else len(TASKS)), task


def require_log(run_dir: Path) -> None:
    """Refuse, before any judging, a folder that is no run or import.

    Raises JudgeSenseError naming the folder and what to do.
    """
    if not run_dir.is_dir():
        raise JudgeSenseError(f"--log {run_dir}: there is no such folder")
    if not any((run_dir / "decisions").glob("part-*.parquet")):
        hint = next(iter(sorted(run_dir.glob("*.csv"))), None)
        raise JudgeSenseError(
            f"--log {run_dir}: holds no decision log (decisions/part-*.parquet); give the --out "
            "folder of `judgesense run` or `judgesense import`"
            + (f", as in: judgesense import {hint} --format FORMAT --out DIR" if hint else "")
        )
    read_record(run_dir)
