"""The declaration of paraphrase robustness: its tables, figures, findings and limits."""

from __future__ import annotations

from collections.abc import Iterator

from judgesense.reporting.result import Record
from judgesense.reporting.run_tables import cost_table
from judgesense.studies.common.figures import Heatmap, Scatter
from judgesense.studies.common.study import Figure, Study, Tables
from judgesense.studies.paraphrase_robustness import tables as t
from judgesense.studies.paraphrase_robustness.strategies import CONSTANT, SINGLE
from judgesense.studies.paraphrase_robustness.tables import NAME, Measured
from judgesense.text import join


def findings(s: Measured, tables: Tables) -> Iterator[str]:
    """What the tables show."""
    above = sum((row["ci_low"] or 0.0) > row["constant_accuracy"] for row in s.rows)
    yield (
        f"in {above} of {len(s.rows)} configurations the judge is right more often, with its whole "
        "interval, than always giving the most frequent score"
    )
    if insensitive := [row["judge"] for row in tables["judges"].rows if row["finding"]]:
        yield (
            f"{join(insensitive)}: insensitive, not robust: most scores stay the same under every "
            "paraphrase and are right no more often than a constant score"
        )


def limits(s: Measured, tables: Tables) -> Iterator[str]:
    """What the figures do not show."""
    plan = s.grid.plan
    yield (
        f"{plan.limit} texts per task: a largest difference of {plan.paraphrases} accuracies is "
        "biased upwards; compare the gap with the gap by chance"
    )
    yield (
        "texts are drawn equally from bands of the human score, so low scores are more frequent "
        "here than in the sets"
    )
    if plan.scoring == "generate":
        yield "rewording is not compared with the same prompt: that needs --scoring options"
    for name in plan.attributes:
        cells = s.grid.of(name)
        if left_out := {cell.judge: cell.left_out for cell in cells if cell.left_out}:
            kept = max((one.n for one in s.outcomes if one.name == name), default=0)
            by_judge = ", ".join(f"{judge} {n}" for judge, n in left_out.items())
            yield (
                f"{name}: strategies are compared on {kept} of "
                f"{len(cells[0].items) + cells[0].left_out} texts, those that every judge decided "
                f"under every paraphrase (undecided: {by_judge})"
            )


def _gains(s: Measured, made: Tables) -> Iterator[Record]:
    """The gain of each strategy on each attribute, exact and then within the tolerance."""
    rows = made["mitigations"].rows if "mitigations" in made else ()
    single = {row["attribute"]: row["accuracy"] for row in rows if row["strategy"] == SINGLE}
    yield from (row for row in rows if row["strategy"] != SINGLE)
    for row in rows:
        if row["strategy"] != CONSTANT:
            gain = row["near"] - single[row["attribute"]]
            yield {**row, "strategy": f"{row['strategy']}, within τ", "gain": gain}


STUDY = Study(
    NAME,
    "Paraphrase robustness of scores",
    tables=[
        t.kinds, t.tasks, t.attributes, t.judges, t.anova, t.contrasts, t.correlations, t.tolerance,
        t.control, t.strategies, t.best_strategies, t.mitigations, t.configurations, t.stated,
        lambda s: cost_table(s.grid.report, s.run.log),
    ],
    figures=[
        Figure(
            "accuracy_gap",
            "Accuracy against the gap between paraphrases and against the scores' coefficient of "
            "variation, sensitivity; each point is a judge on an attribute (the paper's Figure 2).",
            lambda s, made: (
                {**row, "figure": figure, "spread": row[figure]}
                for figure in ("gap", "sensitivity")
                for row in made["configurations"].rows
            ),
            Scatter(x="accuracy", y="spread", series="kind", panel="figure", xlabel="accuracy",
                    ylabel="spread over paraphrases"),
        ),
        Figure(
            "accuracy_heatmap",
            "Accuracy of each judge, over all paraphrases (the paper's Figure 1).",
            "configurations",
            Heatmap(row="attribute", column="judge", value="accuracy", label="accuracy"),
        ),
        Figure(
            "strategies",
            "Gain over the exact accuracy of the mean single judge (the paper's Figure 3). Within "
            "τ, a part of the gain is the tolerance itself: that of the single judge.",
            _gains,
            Heatmap(row="attribute", column="strategy", value="gain", label="gain in accuracy",
                    limits=None),
        ),
    ],
    findings=[findings],
    limits=[limits],
)  # fmt: skip
