"""A finished run as cases: one judge on one task under one scoring, with its report's cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense import published
from judgesense.log.answers import Answers
from judgesense.log.folder import read_run
from judgesense.log.rows import AnswerRows
from judgesense.log.view import view
from judgesense.measure.assess import measure
from judgesense.measure.assessment import Cell, ReportContents, Subject

TASKS = ("coherence", "factuality", "preference", "relevance")
"""The paper's tasks; the one on which judges differ most comes first (section 5.1, finding 1)."""

SCORINGS = ("generate", "options")


@dataclass(frozen=True)
class JudgedCase:
    """One judge on one task under one scoring.

    ``number`` is the judge's index in the run's record, the same in every run of a study. ``raw``
    and ``mapped`` are the report's cells over all option orders.
    """

    judge: str
    number: int
    raw: Cell
    mapped: Cell
    answers: Answers

    @property
    def task(self) -> str:
        """The task's name."""
        return self.answers.task.name

    @property
    def scoring(self) -> str:
        """``generate`` or ``options``."""
        return self.answers.scoring

    @property
    def comparative(self) -> bool:
        """Whether the task compares two options, which may be asked in both orders."""
        return self.answers.task.comparative

    @cached_property
    def rows(self) -> AnswerRows:
        """The first answer to every prompt."""
        return self.answers.as_rows()


@dataclass(frozen=True)
class JudgedRun:
    """A run: its report, its record, its log and its cases, in the paper's order of tasks.

    The cases cover the valid pairs. ``every`` has the answers on all pairs, by judge, task and
    scoring; empty if no pair is left out.
    """

    report: ReportContents
    record: dict[str, Any]
    log: pa.Table
    cases: tuple[JudgedCase, ...]
    every: dict[tuple[str, str, str], Answers]

    @property
    def judges(self) -> list[str]:
        """The judges' short names, the most consistent first (see `ranked`)."""
        return list(dict.fromkeys(case.judge for case in self.cases))

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the paper's order."""
        return sorted({case.task for case in self.cases}, key=task_place)

    @property
    def published_wordings(self) -> bool:
        """Whether the run judged the wordings of the published (v1) pairs."""
        names = {name for case in self.cases for side in case.answers.templates for name in side}
        return bool(names) and all(map(published.is_published_wording, names))

    def groups(self) -> Iterator[tuple[str, str, list[JudgedCase]]]:
        """The judges' cases by task and scoring."""
        for task in self.tasks:
            for scoring in SCORINGS:
                cases = [
                    case for case in self.cases if (case.task, case.scoring) == (task, scoring)
                ]
                if cases:
                    yield task, scoring, cases


def read_judged(run_dir: Path, invalid: Collection[str] = ()) -> JudgedRun:
    """Read a run and measure it without the pairs ``invalid``, nor the six that the paper excludes
    from the published pairs (section 3.3).

    Raises JudgeSenseError if the folder holds no decision log, saying how to get one.
    """
    run = read_run(run_dir)
    pairs, all_answers = run.pairs, {}
    if pairs is not None:
        if all(map(published.is_published_wording, pc.unique(pairs["template_a"]).to_pylist())):
            invalid = {*invalid, *published.published_data()["excluded_pairs"]}
        out = pc.is_in(pairs["pair_id"], value_set=pa.array(sorted(invalid), pa.string()))
        if pc.any(out).as_py():
            pairs = pairs.filter(pc.invert(out))
            all_answers = {
                (answers.judge, answers.task.name, answers.scoring): answers
                for answers in view(run.log, run.pairs, run.record).judged
            }
    report = measure(run.log, pairs, run=run.record)
    run_view = view(run.log, pairs, run.record)
    entries, names = {entry.subject: entry for entry in report.measured}, run_view.names
    recorded = [judge["name"] for judge in run.record.get("judges", []) if isinstance(judge, dict)]
    judges = [name for name in recorded if name in names] or run_view.log.judges
    run_id = str(run.record.get("run_id") or "-")
    cases = []
    for answers in run_view.judged:
        entry = entries[Subject(run_id, answers.judge, answers.task.name, answers.scoring)]
        number = judges.index(answers.judge)
        cases.append(JudgedCase(names[answers.judge], number, entry.raw, entry.mapped, answers))
    return JudgedRun(report, run.record, run.log, tuple(ranked(cases)), all_answers)


def ranked(cases: Sequence[JudgedCase]) -> list[JudgedCase]:
    """Cases by scoring, then by the judge's coherence JSS, the highest first (as in Table 1)."""
    leading = min((case.task for case in cases), key=task_place, default="")
    first_jss = {
        (case.number, case.scoring): -case.raw.jss
        for case in cases
        if case.task == leading and case.raw.jss is not None
    }
    return sorted(
        cases,
        key=lambda case: (
            SCORINGS.index(case.scoring),
            first_jss.get((case.number, case.scoring), 1.0),
            case.number,
            task_place(case.task),
        ),
    )


def task_place(task: str) -> tuple[int, str]:
    """A sort key that puts the paper's tasks first, in its order."""
    return (TASKS.index(task) if task in TASKS else len(TASKS)), task
