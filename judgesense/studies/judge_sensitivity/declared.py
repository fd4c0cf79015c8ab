"""What judge-sensitivity shows: the paper's tables and figures, findings and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judgesense.studies.common.figures import Bars, Heatmap, Points
from judgesense.studies.common.study import Figure, Record, Study, Tables
from judgesense.studies.judge_sensitivity import findings, tables
from judgesense.studies.judge_sensitivity.tables import FIRST, HERE, PAPER, SECOND, Sensitivity
from judgesense.trust.thresholds import STEADY_JSS


def _judge(row: Mapping[str, Any]) -> str:
    """A judge here with its scoring, or a published one with its version."""
    versions = {SECOND: "v2", FIRST: "v1, withdrawn"}
    if row["measured"] == HERE:
        return f"{row['judge']} · {row['scoring']}"
    return f"{row['judge']} ({versions[row['measured']]})"


def _leading_task(study: Sensitivity, made: Tables) -> Iterator[Record]:
    """Table 1 on the first task, which is coherence in the paper."""
    return (row for row in made["table_1"].rows if row["task"] == study.main.tasks[0])


FIGURES = (
    Figure(
        "fig_1",
        "Figure 1: raw JSS by judge on the first task, with 95% intervals",
        _leading_task,
        Points(
            group=lambda row: (
                f"{row['scoring']} scoring" if row["measured"] == HERE else row["measured"]
            ),
            name="judge", values={"": ("jss", "ci_low", "ci_high")}, xlabel="JSS (raw)",
            threshold=STEADY_JSS,
        ),
    ),
    Figure(
        "fig_2",
        "Figure 2: raw JSS by judge and task. Hatched: every verdict was one label, or JSS is "
        "undefined",
        "table_1",
        Heatmap(
            row=_judge, column="task", value="jss", label="JSS (raw)",
            hatched=lambda row: row["jss"] is None or (row["jss"] == 1 and row["kappa"] is None),
        ),
    ),
    Figure(
        "fig_3",
        "Figure 3: effect of the inverted wording on JSS, raw and corrected",
        "table_3",
        Bars(
            name=_judge, series={"raw": "jss_raw", "corrected": "jss"}, xlabel="JSS",
            threshold=STEADY_JSS,
        ),
    ),
    Figure(
        "orders",
        "Flips when wording and option order both change: the part that rewording adds to a swap "
        "(wording) and the part that a swap adds to rewording (position), with 95% intervals",
        "orders",
        Points(
            group=lambda row: f"{row['task']}, {row['scoring']} scoring", name="judge",
            values={
                name: (name, f"{name}_ci_low", f"{name}_ci_high")
                for name in ("wording", "position")
            },
            xlabel="share of verdicts that flip", limits=(-0.1, 0.5),
        ),
    ),
)  # fmt: skip


def limits(study: Sensitivity, made: Tables) -> Iterator[str]:
    """What the figures do not show, and the questions that are not answered."""
    yield (
        "intervals treat the items as a sample and the wordings as fixed; they do not cover other "
        "wordings"
    )
    items = {case.task: case.raw["n_items"] for case in study.main.cases}
    if small := [f"{task} ({n})" for task, n in items.items() if n < 30]:
        yield f"few decided items: {', '.join(small)}"
    if note := tables.published_note(study):
        yield note.strip()
    if study.log is not None and not study.main.published_wordings:
        yield (
            "the wordings are the templates of the log; if these are prompting strategies "
            "(reasoning first, rating each option alone) and not paraphrases, JSS is agreement "
            "between strategies, not sensitivity to wording alone"
        )


DECLARED = Study(
    PAPER,
    "How much judges depend on the wording: JudgeSense",
    (
        tables.main_results,
        tables.pairwise_results,
        tables.polarity_results,
        tables.flip_results,
        tables.exclusion_results,
        tables.failure_results,
        tables.orders,
        tables.cost_results,
    ),
    FIGURES,
    (findings.findings,),
    (limits,),
)
