"""The first screen of a report: may you use the judge, for what, and with which change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgesense.log.view import BASELINES
from judgesense.measure.assessment import NextStep, ReportContents, task_rank
from judgesense.measure.card import TRUST
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.case import Case
from judgesense.reporting.title import MOST_SHOWN, title
from judgesense.text import middle_cut, short_names

MOST_WORDINGS = 8
"""More wordings than that are shown below the first screen only."""


@dataclass(frozen=True)
class Matrix:
    """Judges by tasks, None in places that were not judged."""

    tasks: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Case | None, ...]], ...]


@dataclass(frozen=True)
class Remedies:
    """The remedies that pass, and the names of those that were measured.

    ``needed`` says whether a judge fails, or is not known well enough, without one.
    """

    passing: tuple[Case, ...]
    more: int
    names: tuple[str, ...]
    needed: bool


@dataclass(frozen=True)
class WordingToUse:
    """The wording to use for a judge on a task; ``equal`` ones cannot be told from it."""

    judge: str
    task: str
    template: str
    text: str | None
    is_best: bool
    equal: int


@dataclass(frozen=True)
class Screen:
    """What the first screen shows.

    Of a judge and task that were scored in two ways, the better one is in ``rows`` and the other
    in ``others``. ``first`` is the judge that comes closest to being usable: its next step is the
    report's.
    """

    title: str
    unfinished: bool
    rows: tuple[Case, ...]
    others: tuple[Case, ...]
    matrix: Matrix | None
    remedies: Remedies
    wordings: tuple[WordingToUse, ...]
    n_wordings: int
    first: Case | None
    one_judge: bool

    @property
    def next_step(self) -> NextStep | None:
        """The report's next step."""
        return None if self.first is None else self.first.entry.next_step


def first_screen(report: ReportContents) -> Screen:
    """What the first screen of a report shows."""
    entries = [entry for entry in report.assessments if entry.judge not in BASELINES]
    names = short_names({entry.judge for entry in entries})
    cases = [Case(entry, middle_cut(names[entry.judge])) for entry in entries]
    cases.sort(key=lambda case: (task_rank(case.task), case.rank, case.name, case.subject))
    best: dict[tuple[str, ...], Case] = {}
    for case in sorted(cases, key=lambda case: case.rank):
        best.setdefault(case.subject[:3], case)
    first = [case for case in cases if best[case.subject[:3]] is case]
    others = [case for case in cases if best[case.subject[:3]] is not case]
    counts = [case.entry.card.checks["steady"].details.get("n_wordings") or 0 for case in first]
    usable = {"use": 0, "care": 1}
    unfinished = any("asked" in run and not run.get("finished") for run in report.runs)
    return Screen(
        title=title(first, unfinished),
        unfinished=unfinished,
        rows=tuple(first),
        others=tuple(others),
        matrix=_matrix(first) if len(names) > 1 or len(report.runs) > 1 else None,
        remedies=_remedies(first),
        wordings=tuple(_wordings(first))[:MOST_WORDINGS],
        n_wordings=max(counts, default=0),
        first=min(
            first, key=lambda case: (usable.get(case.usable or "", 2), case.rank), default=None
        ),
        one_judge=len(names) == 1,
    )


def _matrix(cases: Sequence[Case]) -> Matrix | None:
    """Judges by tasks; None for one judge."""
    places = {(case.entry.run_id, case.name, case.task): case for case in cases}
    judges = list(dict.fromkeys((run, judge) for run, judge, _ in places))
    tasks = tuple(dict.fromkeys(task for _, _, task in places))
    if len(judges) < 2:
        return None
    lines = (
        (judge, tuple(places.get((run, judge, task)) for task in tasks)) for run, judge in judges
    )
    return Matrix(tasks, tuple(lines))


def _remedies(cases: Sequence[Case]) -> Remedies:
    """The remedies that pass, and those that were measured."""
    names = {row.remedy for case in cases for row in case.entry.remedies if row.n_items}
    passing = [case for case in cases if case.remedy]
    return Remedies(
        passing=tuple(passing[:MOST_SHOWN]),
        more=max(0, len(passing) - MOST_SHOWN),
        names=tuple(sorted(names - {AS_ASKED})),
        needed=any(case.trust in ("avoid", "unknown") for case in cases),
    )


def _wordings(cases: Sequence[Case]) -> Iterator[WordingToUse]:
    """The wording to use for each case that has one; cases without one are left out."""
    # What can be used comes first: its wording is the one that stays in sight.
    for case in sorted(cases, key=lambda case: TRUST.index(case.usable or case.trust)):
        advised, wordings = case.entry.recommendation, case.entry.wordings
        if advised.template is None and case.trust == "avoid":
            continue
        best = [row for row in wordings if row.template in advised.best_set]
        best.sort(key=lambda row: (-(row.accuracy or 0), -(row.agreement or 0)))
        best = [row for row in wordings if row.template == advised.template] or best
        if best and advised.best_set:
            yield WordingToUse(
                judge=case.name,
                task=case.task,
                template=best[0].template,
                text=best[0].text,
                is_best=advised.template is not None,
                equal=len(advised.best_set),
            )
