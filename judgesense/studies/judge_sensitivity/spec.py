"""What judge-sensitivity shows: the paper's tables and figures, findings and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.measure.thresholds import STEADY_JSS
from judgesense.reporting.study_result import Table
from judgesense.studies.common.figures import Heatmap, Points
from judgesense.studies.common.study import Figure, Study, Tables
from judgesense.studies.judge_sensitivity import flip_tables, tables
from judgesense.studies.judge_sensitivity.runs import JudgedCase
from judgesense.studies.judge_sensitivity.tables import FIRST, HERE, PAPER, SECOND, Sensitivity
from judgesense.text import interval, join, number, percent


def findings(study: Sensitivity, results: Tables) -> Iterator[str]:
    """Threshold, kappa, position, polarity and spread, as in the paper, and what a swap flips."""
    ranges: dict[str, list[tuple[float, str]]] = {}
    for task, scoring, cases in study.main.groups():
        for text in _of_group(cases):
            yield f"{task}, {scoring} scoring: {text}"
        values = [jss for _, jss in _values(cases, "jss")]
        if len(values) > 1:
            ranges.setdefault(scoring, []).append((max(values) - min(values), task))
    for scoring, gaps in ranges.items():
        if len(gaps) > 1:
            (most, where), (least, elsewhere) = max(gaps), min(gaps)
            yield (
                f"{scoring} scoring: judges differ most on {where} (highest minus lowest mapped "
                f"JSS: {number(most)}) and least on {elsewhere} ({number(least)})"
            )
    if "orders" in results:
        pairs = _defined_pairs(results["orders"], "flips_reworded", "flips_swapped")
        n_more = sum(swapped > reworded for reworded, swapped in pairs)
        yield (
            f"in {n_more} of {len(pairs)} cases, swapping the options flips more verdicts than "
            "rewording does"
        )

    if "across_judges" in results:
        pairs = _defined_pairs(results["across_judges"], "jss", "jss_itself")
        n_less = sum(jss < jss_itself for jss, jss_itself in pairs)
        yield (
            f"in {n_less} of {len(pairs)} cases, two judges agree on the same prompts less often "
            "than the less steady of the two agrees with itself under rewording"
        )


def _defined_pairs(table: Table, first: str, second: str) -> list[tuple[Any, Any]]:
    """The pairs of two columns in which both are defined."""
    return [
        (row[first], row[second]) for row in table.rows if None not in (row[first], row[second])
    ]


def _values(
    cases: Sequence[JudgedCase], key: str, labels: str = "mapped"
) -> list[tuple[str, float]]:
    """The judges with a defined figure, and the figure."""
    cells = ((case.judge, case.raw if labels == "raw" else case.mapped) for case in cases)
    values = ((judge, getattr(cell, key)) for judge, cell in cells)
    return [(judge, value) for judge, value in values if value is not None]


def _of_group(cases: Sequence[JudgedCase]) -> Iterator[str]:
    """The findings on the judges of one task and scoring."""
    defined = [case for case in cases if case.mapped.jss is not None]
    under = [case for case in defined if (case.mapped.jss or 0.0) < STEADY_JSS]
    if not defined:
        yield "no judge decided both sides of a pair"
    elif under:
        sure = sum(high < STEADY_JSS for _, high in _values(under, "ci_high"))
        names = [
            f"{case.judge} ({number(cell.jss)} {interval(cell.ci_low, cell.ci_high, 2)})"
            for case, cell in ((case, case.mapped) for case in under)
        ]
        yield (
            f"{len(under)} of {len(defined)} judges with a JSS fall below {STEADY_JSS}: "
            f"{join(names)}. Intervals that lie entirely below it: {sure or 'none'}"
        )
    else:
        yield f"none of the {len(defined)} judges with a JSS falls below {STEADY_JSS}"
    if constant := [case.judge for case in defined if case.mapped.degenerate]:
        yield f"JSS is uninformative where every decision is the same: {join(constant)}"
    kappas = _values(cases, "kappa", "raw")
    if below := [f"{judge} ({number(kappa)})" for judge, kappa in kappas if kappa < 0]:
        yield f"κ is negative for {join(below)} (raw decisions)"
    rates = _values([case for case in cases if case.comparative], "first_position_rate")
    if biased := [f"{judge} ({percent(r)})" for judge, r in rates if not 0.1 < r < 0.9]:
        yield (
            "more than nine in ten verdicts choose one position. Share for the option shown first: "
            f"{join(biased)}. A high JSS does not show that these judges read the options"
        )
    for case in cases:
        answers, mixed = case.answers, case.answers.with_inverted
        raw, mapped = answers.agreement("raw", mixed), answers.agreement("mapped", mixed)
        if answers.inverted and mapped.n_pairs:
            yield (
                f"on pairs with the inverted wording, {case.judge} has a raw JSS of "
                f"{number(raw.jss)} and a mapped JSS of {number(mapped.jss)}; on the other pairs, "
                f"its mapped JSS is {number(answers.agreement('mapped', ~mixed).jss)}"
            )
    shares = {case.judge: case.mapped.undecided_share or 0.0 for case in cases}
    if unclear := [f"{judge} ({percent(share)})" for judge, share in shares.items() if share > 0.1]:
        yield (
            f"more than a tenth of the pairs are undecided for {join(unclear)}; JSS covers only "
            "the other pairs"
        )


def _judge(row: Mapping[str, Any]) -> str:
    """A judge here with its scoring, or a published one with its version."""
    versions = {SECOND: "v2", FIRST: "v1, withdrawn"}
    if row["measured"] == HERE:
        return f"{row['judge']} · {row['scoring']}"
    return f"{row['judge']} ({versions[row['measured']]})"


FIGURES = (
    Figure(
        "fig_1",
        "Figure 1: raw JSS by judge on the first task, with 95% intervals",
        # On the first task, which is coherence in the paper.
        lambda study, results: (
            row for row in results["table_1"].rows if row["task"] == study.main.tasks[0]
        ),
        Points(
            group=lambda row: (
                f"{row['scoring']} scoring" if row["measured"] == HERE else row["measured"]
            ),
            name="judge",
            values={"": ("jss", "ci_low", "ci_high")},
            xlabel="JSS (raw)",
            threshold=STEADY_JSS,
        ),
    ),
    Figure(
        "fig_2",
        "Figure 2: raw JSS by judge and task. Hatched: every verdict was one label, or JSS is "
        "undefined",
        "table_1",
        Heatmap(
            row=_judge,
            column="task",
            value="jss",
            label="JSS (raw)",
            hatched=lambda row: row["jss"] is None or (row["jss"] == 1 and row["kappa"] is None),
        ),
    ),
    Figure(
        "fig_3",
        "Figure 3: effect of the inverted wording on JSS, raw (hollow) and corrected",
        "table_3",
        Points(
            group="measured",
            name=_judge,
            values={"": ("jss", None, None)},
            hollow="jss_raw",
            xlabel="JSS",
            threshold=STEADY_JSS,
        ),
    ),
    Figure(
        "orders",
        "Flips when wording and option order both change: the part that rewording adds to a swap "
        "(wording) and the part that a swap adds to rewording (position), with 95% intervals",
        "orders",
        Points(
            group=lambda row: f"{row['task']}, {row['scoring']} scoring",
            name="judge",
            values={
                name: (name, f"{name}_ci_low", f"{name}_ci_high")
                for name in ("wording", "position")
            },
            xlabel="share of verdicts that flip",
            limits=(-0.1, 0.5),
        ),
    ),
)


def limits(study: Sensitivity, results: Tables) -> Iterator[str]:
    """What the figures do not show, and the questions that are not answered."""
    yield (
        "intervals treat the items as a sample but the wordings as fixed, so they do not cover "
        "other wordings"
    )
    items = {case.task: case.raw.n_items for case in study.main.cases}
    if small := [f"{task} ({n})" for task, n in items.items() if n < 30]:
        yield f"fewer than 30 decided items: {', '.join(small)}"
    if note := tables.published_note(study):
        yield note.strip()
    if study.log is not None and not study.main.published_wordings:
        yield (
            "the wordings are the templates of the log; if these are prompting strategies "
            "(reasoning first, rating each option alone) and not paraphrases, JSS is agreement "
            "between strategies, not sensitivity to wording alone"
        )


SPEC = Study(
    PAPER,
    "How much judges depend on the wording: JudgeSense",
    (
        tables.main_results,
        tables.pairwise_results,
        flip_tables.polarity_results,
        flip_tables.template_pair_results,
        flip_tables.flip_results,
        tables.exclusion_results,
        tables.failure_results,
        flip_tables.orders,
        flip_tables.across_judges,
        tables.cost_results,
    ),
    FIGURES,
    (findings,),
    (limits,),
)
