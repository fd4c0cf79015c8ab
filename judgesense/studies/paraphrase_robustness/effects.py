"""The tables of what explains accuracy and robustness, with the paper's figures beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgesense.reporting.study_result import Record
from judgesense.statistics.anova import one_way_anova
from judgesense.studies.common.study import table
from judgesense.studies.paraphrase_robustness import measures
from judgesense.studies.paraphrase_robustness.measures import grouped
from judgesense.studies.paraphrase_robustness.tables import StudyMeasurements, paper
from judgesense_dataset.embedded import VERIFIABILITIES


@table(
    "anova",
    "What explains accuracy: one-way ANOVAs",
    "Over items, each observation is an item's mean accuracy over judges, paraphrases and "
    "attributes. By verifiability, an item counts once per kind that its task has, so "
    "observations are not independent. Scales differ between tasks and kinds (2 to 6 levels), and "
    "fewer levels are easier to hit, which explains part of any effect. η² has a 95% interval from "
    "the noncentral F (the paper's: 0.482 to 0.601, tasks over items). Welch's ANOVA allows "
    "unequal variances.",
    f="F",
    eta_squared="η²",
    eta_low="η² low",
    eta_high="η² high",
    welch_f="Welch's F",
    welch_df="its df",
    welch_p="p of Welch's F",
    paper_f="paper's F",
    paper_eta_squared="paper's η²",
    paper_welch_f="paper's Welch F",
    n="n",
)
def anova(s: StudyMeasurements) -> Iterator[Record]:
    """How much of the variance of accuracy task, verifiability and judge explain."""
    for factor, column in (("task", "group"), ("verifiability", "kind"), ("judge", "judge")):
        groups = grouped(s.rows, column).values()
        over = {"configurations": [[row["accuracy"] for row in members] for members in groups]}
        if factor != "judge":
            over["items"] = [measures.item_accuracies(members) for members in groups]
        for name, numbers in over.items():
            key = f"anova.{factor}" + (".items.classic" if name == "items" else "")
            result = one_way_anova(numbers)
            yield {
                "factor": factor,
                "over": name,
                **vars(result),
                "df": "–" if result.df is None else "{}, {}".format(*result.df),
                "paper_f": paper(f"{key}.F"),
                "paper_eta_squared": paper(f"{key}.eta2"),
                "paper_welch_f": paper(f"{key.removesuffix('.classic')}.welch.F"),
            }


@table(
    "contrasts",
    "Kinds of attributes against each other",
    "Over configurations. difference: first mean accuracy minus the second. p adjusted: p of "
    "Welch's test, times the number of comparisons.",
    cohens_d="Cohen's d",
    paper_cohens_d="paper's d",
)
def contrasts(s: StudyMeasurements) -> Iterator[Record]:
    """Kinds of attributes against each other."""
    for row in measures.contrasts(s.rows):
        yield row | {"paper_cohens_d": paper(f"contrast.{row['first']}.{row['second']}.d")}


@table(
    "correlations",
    "Accuracy against robustness",
    "Over configurations, of all judges and of each. By construction, gap and accuracy depend on "
    "each other: an accuracy near 0 or 1 leaves no room for a gap. The paper quotes r = −0.730 for "
    "LLaMA-3.1-8B and −0.164 for LLaMA-4, without saying against which figure.",
    pearson="Pearson's r",
    pearson_p="p of r",
    spearman="Spearman's ρ",
    spearman_p="p of ρ",
    n="n",
    paper_pearson="paper's r",
    paper_spearman="paper's ρ",
)
def correlations(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy against robustness, over all judges and for each."""
    by_judge = grouped(s.rows, "judge")
    for judge, rows in {"all": s.rows, **(by_judge if len(by_judge) > 1 else {})}.items():
        for figure in ("gap", "sensitivity"):
            figures = {n: paper(f"correlation.{figure}.{n}") for n in ("pearson", "spearman")}
            yield {
                "judge": judge,
                "figure": figure,
                **_correlation([(r["accuracy"], r[figure]) for r in rows if r[figure] is not None]),
                **{f"paper_{n}": value if judge == "all" else None for n, value in figures.items()},
            }


def _correlation(points: Sequence[tuple[float, float]]) -> Record:
    """Pearson's and Spearman's correlation of some points, with their p-values."""
    from scipy.stats import pearsonr, spearmanr

    values: list[float | None] = [None] * 4
    # Undefined of a constant, and of two different points, which always lie on a line.
    if len(set(points)) >= 3 and (np.ptp(points, axis=0) > 0).all():
        r, rho = pearsonr(*np.transpose(points)), spearmanr(*np.transpose(points))
        values = [float(x) for x in (r.statistic, r.pvalue, rho.statistic, rho.pvalue)]
    names = ("pearson", "pearson_p", "spearman", "spearman_p")
    return {"n": len(points), **dict(zip(names, values, strict=True))}


@table(
    "weights",
    "Judges with open weights against proprietary ones",
    "Mean accuracies over configurations. open: run from weights, or by an endpoint that serves "
    "open weights only; proprietary: by its maker's endpoint. Judges of other endpoints are left "
    "out. The paper compares four with four; it calls a model of Mistral's API open.",
    n_proprietary="proprietary judges",
    n_open="open judges",
    paper_difference="paper's difference",
)
def weights(s: StudyMeasurements) -> Iterator[Record]:
    """How much more accurate proprietary judges are, by kind; no rows without both."""
    kind_of = measures.weights_of(s.run)
    rows = [{**row, "weights": kind_of.get(row["judge"])} for row in s.rows]
    for kind, members in {**grouped(rows, "kind", VERIFIABILITIES), "all": rows}.items():
        by_weights = grouped(members, "weights")
        if not {measures.OPEN, measures.PROPRIETARY} <= by_weights.keys():
            continue
        open_ones, others = by_weights[measures.OPEN], by_weights[measures.PROPRIETARY]
        accuracies = [float(np.mean([row["accuracy"] for row in of])) for of in (others, open_ones)]
        yield {
            "kind": kind,
            "n_proprietary": len({row["judge"] for row in others}),
            "n_open": len({row["judge"] for row in open_ones}),
            "proprietary": accuracies[0],
            "open": accuracies[1],
            "difference": accuracies[0] - accuracies[1],
            "paper_difference": paper(f"proprietary less open/{kind}"),
        }


@table(
    "control",
    "Is it the wording? The same prompt as a control",
    lambda s: (
        (
            "Every judge was asked the base wording as often as there are paraphrases. A judge at "
            "temperature 0 answers the same prompt alike, so set the temperature that you use."
            if s.grid.plan.same_prompt
            else "Both gaps are drawn from the probabilities of the levels, as a judge that "
            "samples at temperature 1 among the levels would answer: one score per paraphrase, and "
            "as many for the base wording. Gaps are means of 200 draws."
        )
        + " Gaps cover the items decided under every paraphrase and under the base wording. items: "
        "of all configurations together. larger: configurations whose gap is larger when reworded. "
        "p: Wilcoxon's test. The paper asked three models the same prompt ten times, at "
        "temperature 1."
    ),
    gap_reworded="gap, reworded",
    gap_same="gap, same prompt",
    paper_difference="paper's difference",
    paper_p="paper's p",
)
def control(s: StudyMeasurements) -> Iterator[Record]:
    """The gap when the wording changes against the gap when it does not."""
    figures = {
        kind: (paper(f"control.{kind}.difference"), paper(f"control.{kind}.p"))
        for kind in VERIFIABILITIES
    }
    reworded, same = paper("control.reworded") or 0.0, paper("control.same") or 0.0
    figures["all"] = reworded - same, paper("control.p")
    for row in measures.control(s.rows):
        difference, p = figures[row["kind"]]
        yield {**row, "paper_difference": difference, "paper_p": p}
