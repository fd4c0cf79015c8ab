"""The tables of paraphrase robustness, with the paper's figures beside this study's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgesense.statistics.ranks import chosen
from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common.result import Table, published
from judgesense.studies.paraphrase_robustness.measures import (
    Configuration,
    Record,
    contrasts,
    correlations,
    effects,
    groups_of,
    kinds_of,
    mean,
    means,
    stability,
)
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome, crossfit_accuracy
from judgesense.text import number, p_value

STUDY = "paraphrase-robustness"

HEADINGS = {
    "constant_accuracy": "constant score", "near": "within τ", "f": "F", "eta_squared": "η²",
    "cohens_d": "Cohen's d", "near_gain": "gain within τ", "pearson": "Pearson's r",
    "gap_reworded": "gap, reworded", "gap_same": "gap, same prompt",
    "pearson_p": "p of r", "spearman": "Spearman's ρ", "spearman_p": "p of ρ", "n": "n",
    "paper_accuracy": "paper", "paper_f": "paper's F", "paper_eta_squared": "paper's η²",
    "paper_sensitivity": "paper's sensitivity", "paper_gap": "paper's gap",
    "paper_best": "paper's best", "paper_stable": "paper's share", "paper_cohens_d": "paper's d",
    "paper_pearson": "paper's r", "paper_difference": "paper's difference", "paper_p": "paper's p",
    "paper_gain": "paper's gain", "cost_usd": "US dollars",
}  # fmt: skip
"""Headings of the columns whose id does not say it all."""


def table(name: str, title: str, rows: Sequence[Record], note: str = "") -> Table:
    """A table with a column per field of the records, under the study's headings."""
    used = {field: text for field, text in HEADINGS.items() if rows and field in rows[0]}
    return Table.from_records(name, title, rows, note, **used)


def paper(key: str) -> float | None:
    """The figure that the paper states, or None."""
    entry = published(STUDY).get(key)
    return None if entry is None else entry.value


def configurations_table(found: Sequence[Configuration], tolerance: float) -> Table:
    """Every judge on every attribute."""
    rows = [
        {
            "attribute": one.scores.attribute.name, "kind": one.kind, "judge": one.scores.judge,
            **one.figures, "near": one.within[tolerance], "stable": one.found.stable,
            "n_items": len(one.scores.items), "n_left_out": one.scores.left_out,
        }
        for one in sorted(found, key=lambda one: one.scores.attribute.name)
    ]  # fmt: skip
    return table(
        "configurations",
        "Every judge on every attribute",
        rows,
        "accuracy: scores equal to the human mean rounded to a level (halves up), with Wilson's "
        "95% interval clustered by what items share. constant score: the accuracy of always giving "
        "the most frequent human level. unrounded: scores equal to the unrounded human mean. "
        f"within τ: scores at most {tolerance:g} from the human mean. gap by chance: the gap if "
        "each item's scores were assigned to the paraphrases at random. stable: gap and "
        "sensitivity below 0.15. top score: the share of the judge's most frequent score. left "
        "out: items with an undecided paraphrase.",
    )


def tasks_table(found: Sequence[Configuration]) -> Table:
    """Accuracy and robustness by task (the paper's Table 5)."""
    rows = []
    for group in groups_of(found):
        own = [one for one in found if one.group == group]
        row: Record = {"task": group}
        for name in ("accuracy", "sensitivity", "gap"):
            row |= means(own, name) | {f"paper_{name}": paper(f"task.{group}.{name}")}
        rows.append(row | means(own, "gap_by_chance") | {"n_configurations": len(own)})
    return table(
        "tasks",
        "By task (the paper's Table 5)",
        rows,
        "Means over judges and attributes. The paper's figures come from eight other judges and "
        "its own ten wordings.",
    )


def attributes_table(found: Sequence[Configuration], outcomes: Sequence[Outcome]) -> Table:
    """Accuracy by attribute: the mean over judges, and the best strategy (the paper's Table 2)."""
    rows = []
    for name in dict.fromkeys(one.scores.attribute.name for one in found):
        own = [one for one in found if one.scores.attribute.name == name]
        tried = [o for o in outcomes if o.attribute == name and o.calls and o.strategy != SINGLE]
        best = max(tried, key=lambda one: one.accuracy, default=None)
        rows.append(
            {
                "attribute": name, "kind": own[0].kind, **means(own, "accuracy"),
                "paper_accuracy": paper(f"attribute.{name}.accuracy"),
                **means(own, "constant_accuracy"),
                "best_strategy": None if best is None else best.strategy,
                "best_accuracy": crossfit_accuracy(tried),
                "paper_best": paper(f"attribute.{name}.best"),
            }
        )  # fmt: skip
    return table(
        "attributes",
        "By attribute (the paper's Table 2)",
        rows,
        "accuracy: mean over judges. best accuracy: exact accuracy of choosing the best strategy, "
        "each item scored by the strategy that other items choose (undefined with fewer than ten "
        "texts). The paper chose and measured on the same items, and its best may count a "
        "tolerance.",
    )


def kinds_table(found: Sequence[Configuration]) -> Table:
    """Accuracy and stability by verifiability (the paper's Table 6 and its stability rates)."""
    counts, test = stability(found)
    rows = []
    for kind, (stable, n) in counts.items():
        own = [one for one in found if one.kind == kind]
        rows.append(
            {
                "kind": kind, **means(own, "accuracy"),
                "paper_accuracy": paper(f"kind.{kind}.accuracy"),
                **means(own, "constant_accuracy", "gap", "sensitivity", "consistency"),
                "n_stable": stable, "n_configurations": n, "share_stable": stable / n,
                "paper_stable": paper(f"kind.{kind}.stable"),
            }
        )  # fmt: skip
    if test is None:
        said = "too few kinds for a test"
    elif test.statistic is None:
        said = f"no χ² test ({test.degenerate})"
    else:
        said = f"χ²({test.df[0]:g}) = {number(test.statistic, 2)}, {p_value(test.p_value)}"
    total, of = (sum(column) for column in zip(*counts.values(), strict=True))
    return table(
        "kinds",
        "By verifiability",
        rows,
        f"Stability by kind: {said}. The paper: χ²(2) = 1.46, p = 0.482, 41.1% stable; here "
        f"{total} of {of}. A judge that always gives the same score is stable: first compare its "
        "accuracy with the constant score's.",
    )


def anova_table(found: Sequence[Configuration]) -> Table:
    """How much of the variance of accuracy task, verifiability and judge explain."""
    keys = {
        ("task", "configurations"): "anova.task", ("task", "items"): "anova.task.items",
        ("verifiability", "configurations"): "anova.verifiability",
    }  # fmt: skip
    rows = []
    for row in effects(found):
        key = keys.get((row["factor"], row["over"]), "-")
        key += f".{row['form'].lower()}" if key.endswith("items") else ""
        stated = {"paper_f": paper(f"{key}.F"), "paper_eta_squared": paper(f"{key}.eta2")}
        rows.append(row | stated)
    return table(
        "anova",
        "What explains accuracy: one-way ANOVAs",
        rows,
        "Over items, a number is an item's mean accuracy over judges, paraphrases and attributes; "
        "by verifiability, an item counts once per kind that its task has, so these numbers are "
        "not independent. Scales differ between tasks and kinds (2 to 6 levels): part of any "
        "effect is that fewer levels are easier to hit.",
    )


def contrasts_table(found: Sequence[Configuration]) -> Table:
    """Kinds of attributes against each other."""
    return table(
        "contrasts",
        "Kinds of attributes against each other",
        [
            row | {"paper_cohens_d": paper(f"contrast.{row['first']}.{row['second']}.d")}
            for row in contrasts(found)
        ],
        "Over configurations. difference: of the mean accuracies, first minus second. p adjusted: "
        "Welch's test, times the number of comparisons.",
    )


def correlations_table(found: Sequence[Configuration]) -> Table:
    """Accuracy against robustness."""
    rows = [
        row
        | {"paper_pearson": paper(f"correlation.{row['figure']}.pearson")
           if row["among"] == "all" else None}
        for row in correlations(found)
    ]  # fmt: skip
    return table(
        "correlations",
        "Accuracy against robustness",
        rows,
        "Over configurations. By construction, gap and accuracy depend on each other: at an "
        "accuracy near 0 or 1 there is no room for a gap.",
    )


def judges_table(found: Sequence[Configuration]) -> tuple[Table, list[str]]:
    """Judges by accuracy, and the names of those that are insensitive rather than robust."""
    wins: list[str] = []
    for name in dict.fromkeys(one.scores.attribute.name for one in found):
        own = [one for one in found if one.scores.attribute.name == name]
        best = int(chosen([one.found.accuracy for one in own]))
        wins.append(own[best].scores.judge)
    rows = []
    for name in dict.fromkeys(one.scores.judge for one in found):
        own = [one for one in found if one.scores.judge == name]
        share = sum(one.insensitive for one in own) / len(own)
        rows.append(
            {
                "judge": name,
                **means(own, "accuracy", "constant_accuracy", "gap", "sensitivity", "consistency",
                        "top_score", "option_mass"),
                "best_on": wins.count(name), "n_attributes": len(own), "insensitive": share,
                "finding": "insensitive, not robust" if share >= 0.5 else "",
            }
        )  # fmt: skip
    rows.sort(key=lambda row: -float(row["accuracy"] or 0))
    made = table(
        "judges",
        "The judges",
        rows,
        "insensitive: the share of a judge's attributes on which at least 90% of items get the "
        "same score under every paraphrase while accuracy is no better than a constant score's. A "
        "judge with half of its attributes or more is called insensitive: it ignores the wording "
        "and the text alike. option mass: the probability of all levels together; where it is "
        "small, the judge would rather write something else.",
    )
    return made, [row["judge"] for row in rows if row["finding"]]


def tolerance_table(found: Sequence[Configuration]) -> Table:
    """Accuracy by tolerance (the paper's appendix D)."""
    rows = []
    for kind in [*kinds_of(found), "all"]:
        own = [one for one in found if kind in (one.kind, "all")]
        rows.append(
            {
                "kind": kind, **means(own, "unrounded"),
                "rounded": mean(one.found.accuracy for one in own),
                **{_within(tau): mean(one.within[tau] for one in own) for tau in TOLERANCES},
            }
        )  # fmt: skip
    return Table.from_records(
        "tolerance",
        "Accuracy by tolerance",
        rows,
        "unrounded: equal to the raters' mean; rounded: equal to it as a level; within τ: at most "
        "τ from it. Whole scores within 0.5 of a mean are those that equal the rounded mean, and "
        "both neighbours of a half: 0.5 adds nothing else to rounding.",
        **{_within(tau): f"within {tau:g}" for tau in TOLERANCES},
    )


def _within(tau: float) -> str:
    return f"within_{tau:g}".replace(".", "_")


def control_table(rows: Sequence[Record], how: str) -> Table:
    """The gap when the wording changes against the gap when it does not."""

    reworded, same = paper("control.reworded"), paper("control.same")

    def stated(kind: str) -> Record:
        if kind != "all":
            return {f"paper_{n}": paper(f"control.{kind}.{n}") for n in ("difference", "p")}
        difference = None if reworded is None or same is None else reworded - same
        return {"paper_difference": difference, "paper_p": paper("control.p")}

    return table(
        "control",
        "Is it the wording? The same prompt as a control",
        [row | stated(row["kind"]) for row in rows],
        f"{how} Both gaps of a configuration are over the same items: those decided under every "
        "paraphrase and under the base wording. items: of all configurations together. larger: "
        "configurations with the larger gap when reworded. p: Wilcoxon's test.",
    )


def mitigations_table(outcomes: Sequence[Outcome], tolerance: float) -> Table:
    """Every strategy on every attribute."""
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    rows: list[Record] = []
    for one in outcomes:
        gain, ends = one.gain(single[one.attribute])
        ci = one.interval()
        rows.append(
            {
                "attribute": one.attribute, "kind": one.kind, "strategy": one.strategy,
                "judge": one.judge, "accuracy": one.accuracy, "ci_low": ci.low, "ci_high": ci.high,
                "gain": gain, "gain_low": ends.low, "gain_high": ends.high,
                "near": float(one.near.mean()), "near_gain": one.near_gain(single[one.attribute]),
                "gap": one.gap, "calls": one.calls, "tokens": one.tokens, "cost_usd": one.dollars,
                "n_items": len(one.exact),
            }
        )  # fmt: skip
    return table(
        "mitigations",
        "Strategies that ask more than once, by attribute",
        rows,
        "accuracy: the score, rounded to a level, equals the rounded human mean. within τ: the "
        f"score is at most {tolerance:g} from the human mean. Gains are over the mean single judge "
        "on the same items; intervals are t intervals over clusters. best judge: each text is "
        "scored by the judge that is most often right on other texts (on all, with fewer than ten "
        "texts); judge names the one that all texts choose. calls, tokens and US dollars are per "
        "item; US dollars are undefined without a price.",
    )


def strategies_table(outcomes: Sequence[Outcome], tolerance: float) -> Table:
    """The strategies over all attributes, with their cost."""
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    rows: list[Record] = []
    for name in dict.fromkeys(one.strategy for one in outcomes):
        own = [one for one in outcomes if one.strategy == name]
        gains = [o.gain(single[o.attribute])[0] for o in own]
        rows.append(
            {
                "strategy": name, "n_attributes": len(own),
                "accuracy": float(np.mean([o.accuracy for o in own])),
                "gain": float(np.mean(gains)), "least_gain": min(gains), "most_gain": max(gains),
                "near": float(np.mean([o.near.mean() for o in own])),
                "near_gain": float(np.mean([o.near_gain(single[o.attribute]) for o in own])),
                "gap": mean(o.gap for o in own), "calls": float(np.mean([o.calls for o in own])),
                "tokens": float(np.mean([o.tokens for o in own])),
                "paper_gain": paper(f"gain.{name.split(',')[0]}"),
            }
        )  # fmt: skip
    return table(
        "strategies",
        "The strategies over all attributes, with their cost",
        rows,
        f"Means over attributes; within τ: at most {tolerance:g} from the human mean; calls and "
        "tokens are per item. The paper's gain of the fuser counts a tolerance. The paper calls "
        "self-consistency the cheapest because one model does it, but it asks once per paraphrase.",
    )
