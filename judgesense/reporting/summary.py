"""The first screen of a report: may you use the judge, for what, and with which change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgesense.log.view import BASELINES
from judgesense.measure.assessment import Assessment, NextStep, ReportContents, Subject, task_rank
from judgesense.measure.card import TRUST, Trust, TrustCard, clause
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.title import MOST_SHOWN, Case, reasons, title
from judgesense.text import brackets, middle_cut, percent, short_names

MOST_WORDINGS = 8
"""More wordings than that are shown below the first screen only."""


@dataclass(frozen=True)
class Bar:
    """A figure with its interval and its reference line, in percent of the bar.

    ``text`` is the figure, or why there is none (``value`` is None then). ``tone`` is the state of
    the check.
    """

    name: str
    text: str
    why: str
    value: float | None = None
    low: float = 0.0
    width: float = 0.0
    line: float | None = None
    interval: str = ""
    tone: str = ""


@dataclass(frozen=True)
class ScreenRow:
    """A row of the table; ``after`` is the trust value with the remedy."""

    subject: Subject
    judge: str
    task: str
    scoring: str
    trust: Trust
    text: str
    why: str
    remedy: str | None
    after: Trust | None
    bars: tuple[Bar, Bar, Bar]
    readable: str
    n_items: int


def _row(case: Case) -> ScreenRow:
    entry, card, first = case.entry, case.entry.card, case.entry.mapped.first_position_rate
    right, readable = card.checks["right"].details, card.checks["readable"]
    constant = right.get("constant_accuracy")
    taken = "" if first is None else f"; takes the first option {percent(first)} of the time"
    return ScreenRow(
        subject=entry.subject,
        judge=case.name,
        task=entry.task,
        scoring=entry.scoring,
        trust=card.trust,
        text=card.text,
        why=next(reasons(card), "passes every check that applies"),
        remedy=None if case.remedy is None else case.remedy.remedy,
        after=None if case.remedy is None else case.remedy.trust,
        bars=(
            _check_bar("same verdict after rewording", card, "steady"),
            _bar(
                "right",
                card,
                "right",
                right.get("accuracy"),
                (right.get("accuracy_ci_low"), right.get("accuracy_ci_high")),
                constant,
                f"; a constant answer is right on {percent(constant)}",
            ),
            _check_bar("same choice in both orders", card, "fair", taken),
        ),
        readable=percent(readable.estimate),
        n_items=readable.n_items,
    )


def _check_bar(name: str, card: TrustCard, key: str, more: str = "") -> Bar:
    """The estimate of a check, and its threshold."""
    check = card.checks[key]
    ends = (check.ci_low, check.ci_high)
    more = f"; needs {percent(check.threshold)}{more}"
    return _bar(name, card, key, check.estimate, ends, check.threshold, more)


def _bar(
    name: str,
    card: TrustCard,
    key: str,
    value: float | None,
    ends: tuple[float | None, float | None],
    line: float | None,
    more: str,
) -> Bar:
    """A figure of a check from 0 to 1, with its reference line; without it, why it is missing."""
    check = card.checks[key]
    if value is None:
        text = "does not apply" if not check.applies else "not measured"
        return Bar(name, text, clause(key, "unmeasured", None))
    low, high = (value if end is None else end for end in ends)
    return Bar(
        name=name,
        text=percent(value),
        why=f"{check.n_items} items{more}",
        value=100 * value,
        low=100 * low,
        width=100 * (high - low),
        line=None if line is None else 100 * line,
        interval=brackets(*ends, percent),
        tone=check.state,
    )


@dataclass(frozen=True)
class Chip:
    """A trust value in the matrix; ``remedy`` is what changes it."""

    trust: Trust
    text: str
    remedy: str | None


@dataclass(frozen=True)
class Matrix:
    """Judges by tasks, a chip in each place that was judged."""

    tasks: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Chip | None, ...]], ...]


@dataclass(frozen=True)
class PassingRemedy:
    """A remedy that passes for a judge on a task."""

    judge: str
    task: str
    text: str


@dataclass(frozen=True)
class Remedies:
    """The remedies that pass, and the names of those that were measured.

    ``needed`` says whether a judge fails, or is not known well enough, without one.
    """

    passing: tuple[PassingRemedy, ...]
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
    rows: tuple[ScreenRow, ...]
    others: tuple[ScreenRow, ...]
    matrix: Matrix | None
    remedies: Remedies
    wordings: tuple[WordingToUse, ...]
    n_wordings: int
    first: Assessment | None
    one_judge: bool

    @property
    def next_step(self) -> NextStep | None:
        """The report's next step."""
        return None if self.first is None else self.first.next_step


def first_screen(report: ReportContents) -> Screen:
    """What the first screen of a report shows."""
    entries = [entry for entry in report.assessments if entry.judge not in BASELINES]
    names = short_names({entry.judge for entry in entries})
    cases = [Case(entry, middle_cut(names[entry.judge])) for entry in entries]
    cases.sort(key=lambda case: (task_rank(case.task), case.rank, case.name, case.entry.subject))
    best: dict[tuple[str, ...], Case] = {}
    for case in sorted(cases, key=lambda case: case.rank):
        best.setdefault(case.entry.subject[:3], case)
    first = [case for case in cases if best[case.entry.subject[:3]] is case]
    others = [case for case in cases if best[case.entry.subject[:3]] is not case]
    counts = [case.entry.card.checks["steady"].details.get("n_wordings") or 0 for case in first]
    usable = {"use": 0, "care": 1}
    closest = min(
        first, key=lambda case: (usable.get(case.usable or "", 2), case.rank), default=None
    )
    unfinished = any("asked" in run and not run.get("finished") for run in report.runs)
    return Screen(
        title=title(first, unfinished),
        unfinished=unfinished,
        rows=tuple(map(_row, first)),
        others=tuple(map(_row, others)),
        matrix=_matrix(first) if len(names) > 1 or len(report.runs) > 1 else None,
        remedies=_remedies(first),
        wordings=tuple(_wordings(first))[:MOST_WORDINGS],
        n_wordings=max(counts, default=0),
        first=None if closest is None else closest.entry,
        one_judge=len(names) == 1,
    )


def _matrix(cases: Sequence[Case]) -> Matrix | None:
    """Judges by tasks; None for one judge."""
    chips = {}
    for case in cases:
        remedy = case.remedy
        change = None if remedy is None else f"{remedy.trust} with {remedy.remedy}"
        chip = Chip(case.trust, case.entry.card.text, change)
        chips[case.entry.run_id, case.name, case.task] = chip
    judges = list(dict.fromkeys((run, judge) for run, judge, _ in chips))
    tasks = tuple(dict.fromkeys(task for _, _, task in chips))
    if len(judges) < 2:
        return None
    lines = (
        (judge, tuple(chips.get((run, judge, task)) for task in tasks)) for run, judge in judges
    )
    return Matrix(tasks, tuple(lines))


def _remedies(cases: Sequence[Case]) -> Remedies:
    """The remedies that pass, and those that were measured."""
    passing, names = [], set[str]()
    for case in cases:
        names |= {row.remedy for row in case.entry.remedies if row.n_items}
        if case.remedy:
            passing.append(PassingRemedy(case.name, case.task, case.remedy.text))
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
