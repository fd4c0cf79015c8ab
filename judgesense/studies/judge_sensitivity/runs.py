"""A finished run as cases: one judge on one task under one scoring, with its report's cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgesense.decisions.rows import Answers
from judgesense.decisions.view import Stream, view
from judgesense.reporting import published
from judgesense.reporting.measure import measure
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import main_cells

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
    raw: dict[str, Any]
    mapped: dict[str, Any]
    stream: Stream

    @property
    def task(self) -> str:
        """The task's name."""
        return self.stream.task.name

    @property
    def scoring(self) -> str:
        """``generate`` or ``options``."""
        return self.stream.scoring

    @property
    def ids(self) -> dict[str, str]:
        """The first columns of a table: judge, scoring and task."""
        return {"judge": self.judge, "scoring": self.scoring, "task": self.task}

    @property
    def comparative(self) -> bool:
        """Whether the task compares two options, which may be asked in both orders."""
        return self.stream.task.comparative

    @cached_property
    def answers(self) -> Answers:
        """The first answer to every prompt."""
        return self.stream.answers()


@dataclass(frozen=True)
class Judged:
    """A run: its report, its record and its cases, in the paper's order of tasks.

    ``pair_ids`` are each task's planned pairs; empty for an import.
    """

    report: dict[str, Any]
    record: dict[str, Any]
    cases: tuple[JudgedCase, ...]
    pair_ids: dict[str, list[str]]

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
        used = {name for case in self.cases for side in case.stream.templates for name in side}
        return bool(used) and all(map(published.is_published_wording, used))

    def groups(self) -> Iterator[tuple[str, str, list[JudgedCase]]]:
        """The judges' cases by task and scoring."""
        for task in self.tasks:
            for scoring in SCORINGS:
                cases = [
                    case for case in self.cases if (case.task, case.scoring) == (task, scoring)
                ]
                if cases:
                    yield task, scoring, cases


def read_judged(run_dir: Path) -> Judged:
    """Read a run and measure it.

    Raises JudgeSenseError if the folder holds no decision log, saying how to get one.
    """
    run = read_run(run_dir)
    report = measure(run.log, run.pairs, run=run.record)
    seen = view(run.log, run.pairs, run.record)
    cells, names = main_cells(report), seen.names
    described = [entry["name"] for entry in run.record.get("judges", []) if isinstance(entry, dict)]
    judges = [name for name in described if name in names] or seen.log.judges
    run_id = str(run.record.get("run_id") or "-")
    cases = []
    for stream in seen.judged:
        cell = cells[run_id, stream.judge, stream.task.name, stream.scoring]
        number = judges.index(stream.judge)
        cases.append(JudgedCase(names[stream.judge], number, cell["raw"], cell["mapped"], stream))
    ids: dict[str, list[str]] = {}
    if run.pairs is not None and "pair_id" in run.pairs.column_names:
        columns = run.pairs["task"].to_pylist(), run.pairs["pair_id"].to_pylist()
        for task, pair in zip(*columns, strict=True):
            ids.setdefault(task, []).append(pair)
    return Judged(report, run.record, tuple(ranked(cases)), ids)


def ranked(cases: Sequence[JudgedCase]) -> list[JudgedCase]:
    """Cases by scoring, then by the judge's coherence JSS, the highest first (as in Table 1)."""
    leading = min((case.task for case in cases), key=task_place, default="")
    first_jss = {
        (case.number, case.scoring): -case.raw["jss"]
        for case in cases
        if case.task == leading and case.raw["jss"] is not None
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
