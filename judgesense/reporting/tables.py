"""The main table of every output format, trust first, and the advice on each of its judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from judgesense.log.view import BASELINES, ORACLE
from judgesense.measure.assessment import (
    Assessment,
    JudgeCells,
    NextStep,
    ReportContents,
    Subject,
    task_rank,
)
from judgesense.measure.thresholds import STEADY_JSS
from judgesense.text import interval, number, percent, sentence, short_names

COLUMNS = {
    "trust": "trust",
    "judge": "judge",
    "task": "task",
    "scoring": "scoring",
    "jss": "JSS",
    "interval": "95% interval",
    "kappa": "κ",
    "right": "right",
    "fair": "fair",
    "readable": "readable",
    "sample": "items",
}
"""Column of the main table -> heading."""

TEXT_COLUMNS = ("trust", "judge", "task", "scoring")

GLOSSES = {
    "jss": "JSS: share of verdicts that stay the same after rewording.",
    "kappa": "κ: agreement with people beyond chance (1 is perfect), quadratic-weighted on scales.",
    "right": "Right: share of verdicts that match people's (gold) labels.",
    "fair": "Fair: share of items with the same choice in both option orders.",
    "readable": "Readable: share of answers with a verdict.",
}
LEGEND = " ".join(GLOSSES.values())
BASELINE_NOTE = (
    "The oracle baseline is always right. The always-first baseline always takes the first option. "
    "Their scores depend only on the wordings and the data."
)

BASELINE = "baseline"


@dataclass(frozen=True)
class Row:
    """One row of the main table: the text of each column, and what it is about.

    ``jss`` with its interval is that of the card's check `steady`, or of a baseline's cell.
    """

    texts: Mapping[str, str]
    entry: JudgeCells
    jss: float | None
    ci_low: float | None
    ci_high: float | None

    @property
    def subject(self) -> Subject:
        """Run, judge, task and scoring."""
        return self.entry.subject

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge, but the score of a perfect or a blind one."""
        return not isinstance(self.entry, Assessment)

    @property
    def tone(self) -> str:
        """The value of ``trust`` that gives the row its colour, or ``baseline``."""
        return self.texts["trust"]


def steady_threshold(report: ReportContents) -> float:
    """The JSS above which the report calls a judge steady."""
    for entry in report.assessments:
        return entry.card.checks["steady"].threshold
    return STEADY_JSS


def rows(report: ReportContents) -> list[Row]:
    """The rows of the main table by task (coherence first), judges before baselines."""
    names = short_names({entry.judge for entry in report.measured})
    ranked = sorted(
        report.measured,
        key=lambda entry: (
            task_rank(entry.task),
            entry.judge in BASELINES,
            entry.judge != ORACLE,
            entry.judge,
            entry.scoring,
            entry.run_id,
        ),
    )
    return [_row(entry, names[entry.judge]) for entry in ranked]


def _row(entry: JudgeCells, name: str) -> Row:
    cell = entry.mapped
    trust, ends, n, kappa, readable = (
        BASELINE,
        (cell.ci_low, cell.ci_high),
        cell.n_items,
        None,
        None,
    )
    jss, right, fair = cell.jss, cell.accuracy, cell.position_consistency
    if isinstance(entry, Assessment):
        trust, checks = entry.card.trust, entry.card.checks
        steady, n = checks["steady"], checks["readable"].n_items
        jss, ends = steady.estimate, (steady.ci_low, steady.ci_high)
        kappa, right = checks["right"].estimate, checks["right"].details.get("accuracy")
        fair, readable = checks["fair"].estimate, checks["readable"].estimate
    texts = {
        "trust": trust,
        "judge": name,
        "task": entry.task,
        "scoring": entry.scoring,
        "jss": number(jss),
        "interval": interval(*ends, digits=2),
        "kappa": number(kappa, 2),
        "right": percent(right),
        "fair": percent(fair),
        "readable": percent(readable),
        "sample": str(n),
    }
    return Row(texts, entry, jss, *ends)


@dataclass(frozen=True)
class Advice:
    """The findings on a judge, task and scoring, and its next step."""

    subject: Subject
    judge: str
    """The short name."""
    tone: str
    texts: Sequence[str]
    next_step: NextStep | None

    @property
    def heading(self) -> str:
        """The judge and the task."""
        return f"{self.judge} on {self.subject.task}"


def advice(report: ReportContents) -> list[Advice]:
    """The findings on each judge, task and scoring, in their order."""
    names = short_names({finding.judge for finding in report.findings} | set(BASELINES))
    steps = {entry.subject: entry.next_step for entry in report.assessments}
    advices = []
    for subject, group in groupby(report.findings, key=lambda finding: finding.subject):
        findings = list(group)
        texts = [sentence(finding.text) for finding in findings]
        name, step = names[subject.judge], steps.get(subject)
        advices.append(Advice(subject, name, findings[0].kind, texts, step))
    return advices
