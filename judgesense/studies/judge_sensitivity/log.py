"""A finished run as cases: one judge on one task under one scoring, with its report's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgesense.decisions.view import Stream, view
from judgesense.reporting.report import measure
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import main_cells

TASKS = ("coherence", "factuality", "preference", "relevance")
"""The paper's tasks; the one on which judges differ most comes first (section 5.1, finding 1)."""

SCORING = {"generate": 0, "options": 1}


@dataclass(frozen=True)
class JudgedCase:
    """One judge on one task under one scoring.

    ``number`` is the judge's index in the run's record, the same in every run of a study.
    ``cells`` are the report's ``raw`` and ``mapped`` cells over all option orders.
    """

    judge: str
    number: int
    cells: dict[str, dict[str, Any]]
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
    def key(self) -> tuple[int, str, str]:
        """Judge, task and scoring; equal for the same case of another run."""
        return self.number, self.task, self.scoring

    @property
    def ids(self) -> dict[str, str]:
        """The first columns of a table: judge, scoring and task."""
        return {"judge": self.judge, "scoring": self.scoring, "task": self.task}

    @cached_property
    def verdicts(self) -> dict[tuple[str, str, str, int], str]:
        """The mapped decision at every item, template, order and repeat."""
        said = self.stream.answers(repeats=True)
        keys = zip(said.item, said.template, said.order, said.repeat.tolist(), strict=True)
        return dict(zip(keys, said.label.tolist(), strict=True))

    @cached_property
    def first_verdicts(self) -> dict[tuple[str, str, str], str]:
        """The first mapped decision at every item, template and order."""
        said = self.stream.answers()
        keys = zip(said.item, said.template, said.order, strict=True)
        return dict(zip(keys, said.label.tolist(), strict=True))


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

    def matched(self, case: JudgedCase) -> JudgedCase | None:
        """The case of this run with the same judge, task and scoring."""
        return next((own for own in self.cases if own.key == case.key), None)

    def groups(self) -> Iterator[tuple[str, str, list[JudgedCase]]]:
        """The judges' cases by task and scoring."""
        keys = dict.fromkeys((case.task, case.scoring) for case in self.cases)
        for task, scoring in sorted(keys, key=lambda key: (task_place(key[0]), SCORING[key[1]])):
            own = [case for case in self.cases if (case.task, case.scoring) == (task, scoring)]
            yield task, scoring, own


def read_judged(run_dir: Path) -> Judged:
    """Read a run and measure it.

    Raises JudgeSenseError if the folder holds no decision log, saying how to get one.
    """
    run = read_run(run_dir)
    report = measure(run.log, run.pairs, run=run.record)
    seen = view(run.log, run.pairs, run.record)
    cells = main_cells(report)
    names = seen.names
    listed = [entry["name"] for entry in run.record.get("judges", []) if isinstance(entry, dict)]
    asked = [name for name in listed if name in names] or seen.log.judges
    run_id = str(run.record.get("run_id") or "-")
    cases = [
        JudgedCase(
            names[stream.judge],
            asked.index(stream.judge),
            cells[run_id, stream.judge, stream.task.name, stream.scoring],
            stream,
        )
        for stream in seen.judged
    ]
    ids: dict[str, list[str]] = {}
    if run.pairs is not None and "pair_id" in run.pairs.column_names:
        columns = run.pairs["task"].to_pylist(), run.pairs["pair_id"].to_pylist()
        for task, pair in zip(*columns, strict=True):
            ids.setdefault(task, []).append(pair)
    return Judged(report, run.record, tuple(ranked(cases)), ids)


def ranked(cases: list[JudgedCase]) -> list[JudgedCase]:
    """Cases by scoring, then by the judge's coherence JSS, the highest first (as in Table 1)."""
    leading = min((case.task for case in cases), key=task_place, default="")
    first_jss = {
        (case.number, case.scoring): -case.cells["raw"]["jss"]
        for case in cases
        if case.task == leading and case.cells["raw"]["jss"] is not None
    }
    return sorted(
        cases,
        key=lambda case: (
            SCORING[case.scoring],
            first_jss.get((case.number, case.scoring), 1.0),
            case.number,
            task_place(case.task),
        ),
    )


def task_place(task: str) -> tuple[int, str]:
    """A sort key that puts the paper's tasks first, in its order."""
    return (TASKS.index(task) if task in TASKS else len(TASKS)), task
