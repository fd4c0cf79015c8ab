"""The paper's tables and their details: flips, exclusions, unreadable answers, orders.

Published figures have rows of their own: those of the second version first, then those of the
first, which its authors withdrew. What no source states is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense import published
from judgesense.measure.cost import costs
from judgesense.published import PublishedFigure
from judgesense.reporting.study_result import Record
from judgesense.studies.common.study import published as published_figures
from judgesense.studies.common.study import table
from judgesense.studies.judge_sensitivity.runs import TASKS, JudgedCase, JudgedRun, task_place
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED

PAPER = "judge-sensitivity"

HERE, SECOND, FIRST = "here", "published v2", "published v1 (withdrawn)"
"""Where a row was measured."""


@dataclass(frozen=True)
class Sensitivity:
    """The measurements of the study: of its own run, or of an existing ``log``."""

    main: JudgedRun
    log: Path | None = None

    @property
    def with_published(self) -> bool:
        """Whether to show published figures: beside a log, only if it is of the published pairs."""
        comparable = self.log is None or self.main.published_wordings
        return comparable and any(case.task in TASKS for case in self.main.cases)


def v1_figures(task: str, labels: str = "raw") -> list[PublishedFigure]:
    """The figures of the first version's nine judges on a task, the highest JSS first."""
    nine = published.paper_judges()
    figures = [f for f in published.figures() if (f.task, f.labels) == (task, labels)]
    return sorted((f for f in figures if f.judge in nine), key=lambda f: -f.jss)


def v2_figures(task: str) -> list[PublishedFigure]:
    """The figures of the second version on a task, the highest JSS first."""
    return sorted((f for f in published.v2_figures() if f.task == task), key=lambda f: -f.jss)


def published_note(study: Sensitivity, v2: bool = True) -> str:
    """The note on the published rows; ``v2`` if the table has rows of the second version."""
    if not study.with_published:
        return ""
    second_note = (
        f" `{SECOND}` rows: 25 judges, up to 250 items per task, {published.WORDINGS}, mapped "
        "decisions."
    )
    basis = (
        "measured on the same pairs"
        if study.main.published_wordings
        else f"{published.WORDINGS}: compare their size, not their values"
    )
    return (second_note if v2 else "") + (
        f" `{FIRST}` rows: the authors withdrew this version in August 2026 and advise against "
        f"using it; {basis}. They count each pair once in each of three runs, and their intervals "
        "treat these rows as independent."
    )


def judged_here(case: JudgedCase) -> dict[str, str]:
    """The first fields of a row on a judge of the run."""
    return {"judge": case.judge, "measured": HERE, "scoring": case.scoring, "task": case.task}


def stated_there(figure: PublishedFigure) -> dict[str, str]:
    """The first fields of a row on a published figure."""
    measured = FIRST if figure.version == published.V1 else SECOND
    first = {"judge": figure.judge, "measured": measured}
    return {**first, "scoring": "generate", "task": figure.task}


def difference(value: float | None, other: float | None) -> float | None:
    """One figure less another; None if either is undefined."""
    return None if value is None or other is None else value - other


@table(
    "table_1",
    "Table 1: main results",
    lambda study: (
        "Raw decisions, as in the paper; table 3 maps them. Pairs are those decided on both sides. "
        "Intervals are 95% Wilson intervals on the effective sample, clustered by item and "
        "conditional on these wordings. κ is undefined if every decision is one label."
        + published_note(study)
    ),
)
def main_results(study: Sensitivity) -> Iterator[Record]:
    """Raw JSS per judge and task, the judge with the highest coherence JSS first."""
    shared = ("jss", "flip_rate", "kappa", "ci_low", "ci_high", "n_pairs", "n_items")
    for case in study.main.cases:
        figures = {key: getattr(case.raw, key) for key in shared}
        yield {**judged_here(case), **figures, "undecided": case.raw.undecided_share}
    for of_task in (v2_figures, v1_figures) if study.with_published else ():
        by_task = {task: {f.judge: f for f in of_task(task)} for task in study.main.tasks}
        for leader in of_task("coherence"):
            for figure in (f[leader.judge] for f in by_task.values() if leader.judge in f):
                undecided = None if figure.n_rows is None else 1 - figure.n_pairs / figure.n_rows
                figures = {key: getattr(figure, key) for key in shared}
                yield {**stated_there(figure), **figures, "undecided": undecided}


@table(
    "table_2",
    "Table 2: pairwise tasks",
    lambda study: (
        "One label: every decision is the same, so JSS is uninformative. First position: the share "
        "of verdicts for the option shown first, over both orders if both were asked. Position "
        "consistency: the share of prompts whose verdict chooses the same option in both orders."
        + published_note(study)
        + (" v1 saw one order only, v2 both." if study.with_published else "")
    ),
)
def pairwise_results(study: Sensitivity) -> Iterator[Record]:
    """The comparative tasks, where a judge that always says A is consistent too."""
    cases = [case for case in study.main.cases if case.comparative]
    for case in cases:
        yield {
            **judged_here(case),
            "jss": case.mapped.jss,
            "kappa": case.mapped.kappa,
            "first_position": case.mapped.first_position_rate,
            "position_consistency": case.mapped.position_consistency,
            "one_label": len({*case.rows.raw} - set(UNDECIDED)) == 1,
            "n_pairs": case.mapped.n_pairs,
        }
    tasks = sorted({case.task for case in cases}, key=task_place) if study.with_published else ()
    for figure in (f for task in tasks for f in (*v2_figures(task), *v1_figures(task))):
        always = figure.version == published.V1 and figure.jss == 1.0 and figure.kappa is None
        yield {
            **stated_there(figure),
            "jss": figure.jss,
            "kappa": figure.kappa,
            "first_position": 1.0 if always else figure.first_position,
            "position_consistency": None,
            "one_label": always,
            "n_pairs": figure.n_pairs,
        }


@table(
    "exclusion",
    "Effect of leaving out pairs",
    lambda study: (
        "Raw decisions. Every other table covers the validated pairs only. Tasks with every pair "
        "validated are left out. Published: section 3.3, 125 pairs against 119. The published "
        "pairs carry no verdict; the six left out are those answered NO in "
        "published/factuality_paraphrase.jsonl." + published_note(study, v2=False)
    ),
    jss="JSS, all",
    kappa="κ, all",
    n_pairs="pairs, all",
    jss_validated="JSS, validated",
    kappa_validated="κ, validated",
    n_pairs_validated="pairs, validated",
)
def exclusion_results(study: Sensitivity) -> Iterator[Record]:
    """JSS and kappa on all pairs and on those validated as equivalent (section 3.3)."""
    factuality = False
    for case in study.main.cases:
        all_pairs = study.main.every.get((case.answers.judge, case.task, case.scoring))
        if all_pairs is not None and len(all_pairs.pairs) > len(case.answers.pairs):
            factuality |= case.task == "factuality"
            whole, valid = all_pairs.agreement("raw"), case.answers.agreement("raw")
            yield {
                **judged_here(case),
                "jss": whole.jss,
                "jss_validated": valid.jss,
                "gain": difference(valid.jss, whole.jss),
                "kappa": whole.kappa,
                "kappa_validated": valid.kappa,
                "n_pairs": whole.n_pairs,
                "n_pairs_validated": valid.n_pairs,
            }
    if factuality and study.with_published:
        paper = published_figures(PAPER)
        before, jss, kappa_before, kappa = (
            paper[f"factuality_{name}_{when}_exclusion"].value
            for name in ("jss", "kappa")
            for when in ("before", "after")
        )
        yield {
            "judge": "all nine, about",
            "measured": FIRST,
            "scoring": "generate",
            "task": "factuality",
            "jss": before,
            "jss_validated": jss,
            "gain": jss - before,
            "kappa": kappa_before,
            "kappa_validated": kappa,
            "n_pairs": None,
            "n_pairs_validated": None,
        }


@table(
    "cost",
    "Calls, tokens and cost",
    "From the log. US dollars are undefined without a price (`--set price=INPUT,OUTPUT`). v1 "
    "(withdrawn): the bill in section 4.4, for three runs of every pair.",
    cost_usd="US dollars",
)
def cost_results(study: Sensitivity) -> Iterator[Record]:
    """What each judge's answers cost, beside the paper's bill (section 4.4)."""
    columns = ("n_prompts", "input_tokens", "output_tokens", "cost_usd")
    rows = costs(study.main.log, study.main.report.runs)
    if all(row.input_tokens is None and row.cost_usd is None for row in rows):
        return
    for row in rows:
        figures = {name: getattr(row, name) for name in columns}
        yield {"judge": row.judge, "measured": HERE, **figures}
    v1_rows: dict[str, Any] = {}
    for key, figure in published_figures(PAPER).items() if study.with_published else ():
        column, _, judge = key.partition("/")
        if column in columns:
            nothing = {"judge": judge, "measured": FIRST, **dict.fromkeys(columns)}
            value = figure.value if column == "cost_usd" else int(figure.value)
            v1_rows.setdefault(judge, nothing)[column] = value
    yield from v1_rows.values()


@table(
    "parse_failures",
    "Unreadable answers",
    lambda study: (
        "Shares of prompts, with generated text only: option scoring always gives a decision."
        + (
            " v1: section 5.2, which also states no refusals and under 1% unclear answers for "
            "gemini-2.5-flash. Its 6.4% for qwen are time-outs."
            if study.with_published
            else ""
        )
        + published_note(study)
    ),
)
def failure_results(study: Sensitivity) -> Iterator[Record]:
    """The shares of single answers that were unclear, refused, failed or cut."""
    columns = ("unclear", "refused", "failed", "cut", "n_prompts")
    for case in study.main.cases:
        if case.scoring == "generate":
            rows = case.rows
            shares = [float(np.mean(rows.raw == word)) for word in (UNCLEAR, REFUSED, ERROR)]
            cut = sum(map(bool, rows.column("truncated").to_pylist())) / len(rows.raw)
            values = dict(zip(columns, (*shares, cut, len(rows.raw)), strict=True))
            yield {"judge": case.judge, "measured": HERE, "task": case.task, **values}
    if study.with_published:
        nothing = dict.fromkeys(columns)
        for figure in (f for task in study.main.tasks for f in v2_figures(task)):
            figures = {**nothing, "unclear": figure.unclear, "refused": figure.refused}
            yield {"judge": figure.judge, "measured": SECOND, "task": figure.task, **figures}
        for key, stated_share in published_figures(PAPER).items():
            kind, _, judge = key.partition("/")
            if kind == "unclear":
                row = {"judge": judge, "measured": FIRST, "task": "all four"}
                yield {**row, **nothing, "unclear": stated_share.value}
