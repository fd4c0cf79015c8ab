"""The tables of paraphrase robustness, with the paper's figures beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from judgesense.log.folder import Run
from judgesense.reporting.study_result import Record
from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common.study import paper as paper_of
from judgesense.studies.common.study import published, table
from judgesense.studies.paraphrase_robustness import measures
from judgesense.studies.paraphrase_robustness.grid import Grid
from judgesense.studies.paraphrase_robustness.measures import grouped, mean, means, stability
from judgesense.studies.paraphrase_robustness.strategies import (
    CONSTANT,
    SINGLE,
    Outcome,
    crossfit_accuracy,
)
from judgesense.studies.paraphrase_robustness.texts import SOURCES
from judgesense.text import number, p_value
from judgesense_dataset.embedded import VERIFIABILITIES

NAME = "paraphrase-robustness"

paper = partial(paper_of, NAME)


@dataclass(frozen=True)
class StudyMeasurements:
    """What the study measured: a record per configuration, and the outcomes of the strategies in
    the order of the attributes."""

    grid: Grid
    run: Run
    rows: Sequence[dict[str, Any]]
    outcomes: Sequence[Outcome]
    tolerance: float


@table(
    "kinds",
    "By verifiability (the paper's Table 6)",
    lambda s: _stability_note(s),
    paper_accuracy="paper",
    paper_stable="paper's share",
    constant_accuracy="constant score",
)
def kinds(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy and stability by verifiability."""
    counts, _ = stability(s.rows)
    for kind, own in grouped(s.rows, "kind", VERIFIABILITIES).items():
        stable, n = counts[kind]
        yield {
            "kind": kind,
            **means(own, "accuracy"),
            "paper_accuracy": paper(f"kind.{kind}.accuracy"),
            **means(own, "constant_accuracy", "gap", "sensitivity", "consistency"),
            "n_stable": stable,
            "n_configurations": n,
            "share_stable": stable / n,
            "paper_stable": paper(f"kind.{kind}.stable"),
        }


def _stability_note(s: StudyMeasurements) -> str:
    counts, test = stability(s.rows)
    total, of = (sum(column) for column in zip(*counts.values(), strict=True))
    by_kind = "not tested (one kind, or no difference)"
    if test is not None:
        by_kind = f"χ²({test.dof}) = {number(test.statistic, 2)}, {p_value(test.pvalue)}"
    return (
        f"Stability by kind: {by_kind}. The paper: χ²(2) = 1.46, p = 0.482, 41.1% stable; here "
        f"{total} of {of}. A judge that always gives the same score is stable, so first compare "
        "its accuracy with that of the constant score."
    )


@table(
    "tasks",
    "By task (the paper's Table 5)",
    "Means over judges and attributes. The paper's figures come from eight other judges and ten "
    "other wordings.",
    paper_accuracy="paper",
    paper_sensitivity="paper's sensitivity",
    paper_gap="paper's gap",
)
def tasks(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy and robustness by task."""
    for group, own in grouped(s.rows, "group", SOURCES).items():
        row: dict[str, Any] = {"task": group}
        for name in ("accuracy", "sensitivity", "gap"):
            row |= means(own, name) | {f"paper_{name}": paper(f"task.{group}.{name}")}
        yield row | means(own, "gap_by_chance") | {"n_configurations": len(own)}


@table(
    "attributes",
    "By attribute (the paper's Table 2)",
    "accuracy: mean over judges. best accuracy: exact accuracy of the best strategy, where other "
    "items choose the strategy that scores each item (undefined with fewer than ten texts). The "
    "paper chose and measured on the same items, and its best accuracy may allow a tolerance.",
    paper_accuracy="paper",
    paper_best="paper's best",
    constant_accuracy="constant score",
)
def attributes(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy by attribute: the mean over judges, and the best strategy."""
    for name, own in grouped(s.rows, "attribute").items():
        tried = [o for o in s.outcomes if o.name == name and o.strategy not in (SINGLE, CONSTANT)]
        best = max(tried, key=lambda one: one.mean("exact"), default=None)
        yield {
            "attribute": name,
            "kind": own[0]["kind"],
            **means(own, "accuracy"),
            "paper_accuracy": paper(f"attribute.{name}.accuracy"),
            **means(own, "constant_accuracy"),
            "best_strategy": None if best is None else best.strategy,
            "best_accuracy": crossfit_accuracy(tried),
            "paper_best": paper(f"attribute.{name}.best"),
        }


@table(
    "judges",
    "The judges",
    "insensitive: the share of a judge's attributes on which at least 90% of items get the same "
    "score under every paraphrase while accuracy is no better than a constant score's. A judge is "
    "called insensitive if that share is at least half: it ignores both the wording and the text. "
    "option mass: the probability of all levels together; where it is small, the judge tends to "
    "write something else.",
    constant_accuracy="constant score",
)
def judges(s: StudyMeasurements) -> Iterator[Record]:
    """Judges by accuracy."""
    rows = []
    for name, own in grouped(s.rows, "judge").items():
        share = sum(row["insensitive"] for row in own) / len(own)
        rows.append(
            {
                "judge": name,
                **means(
                    own,
                    "accuracy",
                    "constant_accuracy",
                    "gap",
                    "sensitivity",
                    "consistency",
                    "top_score",
                    "option_mass",
                ),
                "n_attributes": len(own),
                "insensitive": share,
                "finding": "insensitive, not robust" if share >= 0.5 else "",
            }
        )
    yield from sorted(rows, key=lambda row: -row["accuracy"])


@table(
    "anova",
    "What explains accuracy: one-way ANOVAs",
    "Over items, each observation is an item's mean accuracy over judges, paraphrases and "
    "attributes. By verifiability, an item counts once per kind that its task has, so "
    "observations are not independent. Scales differ between tasks and kinds (2 to 6 levels), and "
    "fewer levels are easier to hit, which explains part of any effect.",
    f="F",
    eta_squared="η²",
    paper_f="paper's F",
    paper_eta_squared="paper's η²",
    n="n",
)
def anova(s: StudyMeasurements) -> Iterator[Record]:
    """How much of the variance of accuracy task, verifiability and judge explain."""
    for factor, column in (("task", "group"), ("verifiability", "kind"), ("judge", "judge")):
        groups = grouped(s.rows, column).values()
        over = {"configurations": [[row["accuracy"] for row in own] for own in groups]}
        if factor != "judge":
            over["items"] = [measures.item_accuracies(own) for own in groups]
        for name, numbers in over.items():
            key = f"anova.{factor}" + (".items.classic" if name == "items" else "")
            yield {
                "factor": factor,
                "over": name,
                **measures.anova_record(numbers),
                "paper_f": paper(f"{key}.F"),
                "paper_eta_squared": paper(f"{key}.eta2"),
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
    "Over configurations. By construction, gap and accuracy depend on each other: an accuracy "
    "near 0 or 1 leaves no room for a gap.",
    pearson="Pearson's r",
    pearson_p="p of r",
    spearman="Spearman's ρ",
    spearman_p="p of ρ",
    n="n",
    paper_pearson="paper's r",
    paper_spearman="paper's ρ",
)
def correlations(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy against robustness."""
    from scipy.stats import pearsonr, spearmanr

    for figure in ("gap", "sensitivity"):
        points = np.array([(r["accuracy"], r[figure]) for r in s.rows if r[figure] is not None])
        values: list[float | None] = [None] * 4
        # Undefined of a constant, and of two different points, which always lie on a line.
        if len(np.unique(points, axis=0)) >= 3 and (np.ptp(points, axis=0) > 0).all():
            r, rho = pearsonr(*points.T), spearmanr(*points.T)
            values = [float(x) for x in (r.statistic, r.pvalue, rho.statistic, rho.pvalue)]
        names = ("pearson", "pearson_p", "spearman", "spearman_p")
        yield {
            "figure": figure,
            "n": len(points),
            **dict(zip(names, values, strict=True)),
            **{f"paper_{n}": paper(f"correlation.{figure}.{n}") for n in ("pearson", "spearman")},
        }


@table(
    "tolerance",
    "Accuracy by tolerance (the paper's appendix D)",
    "unrounded: equal to the raters' mean. rounded: equal to the mean rounded to a level. within "
    "τ: at most τ from the mean. Compared with rounding, a tolerance of 0.5 adds only the second "
    "neighbour of a mean that ends in .5.",
    within_0_25="within 0.25",
    within_0_5="within 0.5",
)
def tolerance(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy by tolerance."""
    for kind, own in {**grouped(s.rows, "kind", VERIFIABILITIES), "all": s.rows}.items():
        within = {
            f"within_{tau:g}".replace(".", "_"): mean(row["within"][tau] for row in own)
            for tau in TOLERANCES
        }
        rounded = mean(row["accuracy"] for row in own)
        yield {"kind": kind, **means(own, "unrounded"), "rounded": rounded, **within}


@table(
    "control",
    "Is it the wording? The same prompt as a control",
    "Both gaps are drawn from the probabilities of the levels, as a judge that samples at "
    "temperature 1 among the levels would answer: one score per paraphrase, and as many for the "
    "base wording. Gaps are means of 200 draws, over the items decided under every paraphrase and "
    "under the base wording. items: of all configurations together. larger: configurations whose "
    "gap is larger when reworded. p: Wilcoxon's test. The paper asked three models the same "
    "prompt ten times.",
    gap_reworded="gap, reworded",
    gap_same="gap, same prompt",
    paper_difference="paper's difference",
    paper_p="paper's p",
)
def control(s: StudyMeasurements) -> Iterator[Record]:
    """The gap when the wording changes against the gap when it does not."""
    stated = {
        kind: (paper(f"control.{kind}.difference"), paper(f"control.{kind}.p"))
        for kind in VERIFIABILITIES
    }
    reworded, same = paper("control.reworded") or 0.0, paper("control.same") or 0.0
    stated["all"] = reworded - same, paper("control.p")
    for row in measures.control(s.rows):
        difference, p = stated[row["kind"]]
        yield {**row, "paper_difference": difference, "paper_p": p}


@table(
    "strategies",
    "The strategies over all attributes, with their cost",
    lambda s: (
        f"Means over attributes. within τ: at most {s.tolerance:g} from the human mean. Calls and "
        "tokens are per item. The paper's gain of the fuser allows a tolerance. The paper calls "
        "self-consistency cheapest because it uses one model, but it asks once per paraphrase."
    ),
    near="within τ",
    near_gain="gain within τ",
    paper_gain="paper's gain",
)
def strategies(s: StudyMeasurements) -> Iterator[Record]:
    """The strategies over all attributes."""
    by_strategy: dict[str, list[Outcome]] = {}
    for one in s.outcomes:
        by_strategy.setdefault(one.strategy, []).append(one)
    for name, own in by_strategy.items():
        gains = [one.mean("gain") for one in own]
        yield {
            "strategy": name,
            "n_attributes": len(own),
            "accuracy": mean(one.mean("exact") for one in own),
            "gain": mean(gains),
            "least_gain": min(gains),
            "most_gain": max(gains),
            "near": mean(one.mean("near") for one in own),
            "near_gain": mean(one.mean("near_gain") for one in own),
            "gap": mean(one.gap for one in own),
            "calls": mean(one.calls for one in own),
            "tokens": mean(float(one.cost[0]) for one in own),
            "paper_gain": paper(f"gain.{name.split(',')[0]}"),
        }


@table(
    "best_strategies",
    "The best strategy by kind (the paper's Table 6)",
    "Means over the attributes of a kind. best: of the strategies that ask more than once, exact "
    "or within τ. As in the paper, it is chosen and scored on the same items, so its accuracy is "
    "too high (the table `attributes` chooses on other items). Δ: over the exact accuracy of the "
    "single judge, as in the paper, so that a tolerance counts as a gain. gain: over the single "
    "judge under the same tolerance.",
    single="single judge",
    delta="Δ",
    paper_delta="paper's Δ",
    paper_best="paper's best",
)
def best_strategies(s: StudyMeasurements) -> Iterator[Record]:
    """Which strategy is best on each kind of attributes, and by how much."""
    for kind in VERIFIABILITIES:
        tried: dict[str, list[Outcome]] = {}
        for one in s.outcomes:
            if one.kind == kind:
                tried.setdefault(one.strategy, []).append(one)
        single = tried.pop(SINGLE, [])
        scores = {
            (name, field): float(np.mean([one.mean(field) for one in own]))
            for name, own in tried.items()
            for field in ("exact", "near")
            if len(own) == len(single) and min(one.calls for one in own) > 1
        }
        if scores:
            name, field = best = max(scores, key=lambda key: scores[key])
            gain = {"exact": "gain", "near": "near_gain"}[field]
            base = float(np.mean([one.mean("exact") for one in single]))
            stated = published(NAME)[f"kind.{kind}.best"]
            yield {
                "kind": kind,
                "n_attributes": len(single),
                "single": base,
                "strategy": name if field == "exact" else f"{name}, within τ",
                "accuracy": scores[best],
                "delta": scores[best] - base,
                "gain": mean(one.mean(gain) for one in tried[name]),
                "paper_best": stated.value,
                "paper_delta": stated.value - published(NAME)[f"kind.{kind}.accuracy"].value,
                "place": stated.place,
            }


@table(
    "published",
    "What the paper states of its judges and people (section 4), beside this study's",
    "Judges and texts differ, so the figures cannot be compared directly. ours: the lowest and "
    "the highest of this study's judges. quoted: cannot be recomputed here, because it needs the "
    "paper's judges or people, or a measure that the paper does not name.",
    paper="paper",
    lowest="ours, lowest",
    highest="ours, highest",
)
def stated(s: StudyMeasurements) -> Iterator[Record]:
    """The figures of single judges, of proprietary ones, and of people."""
    by_judge = list(grouped(s.rows, "judge").values())
    accuracies = [[row["accuracy"] for row in own] for own in by_judge]

    def above(level: float, attribute: str) -> list[float]:
        own = [r["accuracy"] > level for r in s.rows if r["attribute"].endswith(attribute)]
        return [float(sum(own))] if own else []

    ours = {
        "accuracy": [float(np.mean(own)) for own in accuracies],
        "lowest attribute": [min(own) for own in accuracies],
        "highest attribute": [max(own) for own in accuracies],
        "above 0.90 on understandability": above(0.90, "understandability"),
        "above 0.51 on interestingness": above(0.51, "interestingness"),
    }
    for key, figure in published(NAME).items():
        group, _, measure = key.partition("/")
        if measure:
            values = ours.get(measure) or []
            yield {
                "who": group,
                "figure": measure,
                "paper": figure.value,
                "place": figure.place,
                "lowest": min(values, default=None),
                "highest": max(values, default=None),
                "status": "beside ours" if values else "not asked" if measure in ours else "quoted",
            }


@table(
    "mitigations",
    "Strategies that ask more than once, by attribute",
    lambda s: (
        "accuracy: the score, rounded to a level, equals the rounded human mean. within τ: the "
        f"score is at most {s.tolerance:g} from the human mean. Gains are over the mean single "
        "judge on the same items; intervals are t intervals over clusters. best judge: each text "
        "is scored by the judge that is most often right on other texts (on all, with fewer than "
        "ten texts). judge: the one that all texts together choose. Calls, tokens and US dollars "
        "are per item; US dollars are undefined without a price."
    ),
    near="within τ",
    near_gain="gain within τ",
    cost_usd="US dollars",
)
def mitigations(s: StudyMeasurements) -> Iterator[Record]:
    """Every strategy on every attribute."""
    for one in s.outcomes:
        accuracy, low, high = one.interval(one.exact)
        gain, gain_low, gain_high = one.interval(one.gain, -1.0)
        tokens, dollars = one.cost.tolist()
        yield {
            "attribute": one.name,
            "kind": one.kind,
            "strategy": one.strategy,
            "judge": one.judge,
            "accuracy": accuracy,
            "ci_low": low,
            "ci_high": high,
            "gain": gain,
            "gain_low": gain_low,
            "gain_high": gain_high,
            "near": one.mean("near"),
            "near_gain": one.mean("near_gain"),
            "gap": one.gap,
            "calls": one.calls,
            "tokens": tokens,
            "cost_usd": None if np.isnan(dollars) else dollars,
            "n_items": one.n,
        }


@table(
    "configurations",
    "Every judge on every attribute",
    lambda s: (
        "accuracy: scores equal to the human mean rounded to a level (halves up), with Wilson's "
        "95% interval clustered by what items share. constant score: the accuracy of always giving "
        "the most frequent human level. unrounded: scores equal to the unrounded human mean. "
        f"within τ: scores at most {s.tolerance:g} from the human mean. gap by chance: the gap if "
        "each item's scores were assigned to the paraphrases at random. stable: gap and "
        "sensitivity below 0.15. top score: the share of the judge's most frequent score. left "
        "out: items with an undecided paraphrase."
    ),
    near="within τ",
    constant_accuracy="constant score",
)
def configurations(s: StudyMeasurements) -> Iterator[Record]:
    """Every judge on every attribute."""
    hidden = ("cell", "group", "within", "gaps", "insensitive")
    for row in sorted(s.rows, key=lambda row: str(row["attribute"])):
        yield {name: value for name, value in row.items() if name not in hidden}
