"""The tables of paraphrase robustness, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common.result import Table, Value, published
from judgesense.studies.paraphrase_robustness.measures import (
    Configuration,
    Control,
    contrasts,
    correlations,
    effects,
    groups_of,
    kinds_of,
    stability,
)
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome

PAPER = "paraphrase-robustness"


def paper(key: str) -> float | None:
    """The figure that the paper states, or None."""
    entry = published(PAPER).get(key)
    return None if entry is None else entry.value


def _difference(first: str, second: str) -> float | None:
    one, two = paper(first), paper(second)
    return None if one is None or two is None else one - two


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the defined values, or None."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def configurations(found: Sequence[Configuration], tolerance: float) -> Table:
    """Every judge on every attribute."""
    rows = [
        (
            one.scores.attribute.name, one.kind, one.scores.judge, one.found.accuracy,
            one.found.accuracy_ci_low, one.found.accuracy_ci_high, one.constant, one.unrounded,
            one.within[tolerance], one.found.win_rate_gap, one.found.win_rate_gap_chance,
            one.found.sensitivity, one.found.consistency, one.found.stable, one.one_score,
            len(one.scores.items), one.scores.left_out,
        )
        for one in sorted(found, key=lambda one: one.scores.attribute.name)
    ]  # fmt: skip
    return Table(
        "configurations",
        "Every judge on every attribute",
        (
            "attribute", "kind", "judge", "accuracy", "low", "high", "constant score",
            "unrounded", f"within {tolerance:g}", "gap", "gap by chance", "sensitivity",
            "consistency", "stable", "commonest score", "items", "left out",
        ),
        rows,
        "accuracy: scores equal to the human mean rounded to a level (halves up), with Wilson's "
        "95% interval clustered by what items share; constant score: the accuracy of always giving "
        "the commonest human level; unrounded: scores equal to the human mean as it is; gap by "
        "chance: the gap if each item's scores were dealt to the paraphrases at random; stable: "
        "gap and sensitivity below 0.15; commonest score: its share of the judge's scores; left "
        "out: items with an undecided paraphrase.",
    )  # fmt: skip


def by_task(found: Sequence[Configuration]) -> Table:
    """The paper's Table 5 beside ours."""
    rows: list[Sequence[Value]] = []
    for group in groups_of(found):
        own = [one for one in found if one.group == group]
        rows.append(
            (
                group, mean([one.found.accuracy for one in own]), paper(f"task.{group}.accuracy"),
                mean([one.found.sensitivity for one in own]), paper(f"task.{group}.sensitivity"),
                mean([one.found.win_rate_gap for one in own]), paper(f"task.{group}.gap"),
                mean([one.found.win_rate_gap_chance for one in own]), len(own),
            )
        )  # fmt: skip
    return Table(
        "tasks", "By task (the paper's Table 5)",
        ("task", "accuracy", "paper", "sensitivity", "paper's sensitivity", "gap", "paper's gap",
         "gap by chance", "configurations"),
        rows, "Means over judges and attributes. The paper's figures are of eight other judges and "
        "its own wordings.",
    )  # fmt: skip


def by_attribute(found: Sequence[Configuration], outcomes: Sequence[Outcome]) -> Table:
    """The paper's Table 2 beside ours: the mean over judges, and the best strategy."""
    rows: list[Sequence[Value]] = []
    for name in dict.fromkeys(one.scores.attribute.name for one in found):
        own = [one for one in found if one.scores.attribute.name == name]
        tried = [
            o for o in outcomes if o.attribute == name and o.calls and o.strategy != SINGLE
        ]  # fmt: skip
        best = max(tried, key=lambda one: float(one.exact.mean()), default=None)
        rows.append(
            (
                name, own[0].kind, mean([one.found.accuracy for one in own]),
                paper(f"attribute.{name}.accuracy"), mean([one.constant for one in own]),
                None if best is None else best.strategy,
                None if best is None else float(best.exact.mean()),
                paper(f"attribute.{name}.best"),
            )
        )  # fmt: skip
    return Table(
        "attributes", "By attribute (the paper's Table 2)",
        ("attribute", "kind", "accuracy", "paper", "constant score", "best strategy",
         "its accuracy", "paper's best"),
        rows, "accuracy: mean over judges. The best strategy is chosen and measured on the same "
        "items; its exact accuracy, while the paper's best may count a tolerance.",
    )  # fmt: skip


def by_kind(found: Sequence[Configuration]) -> Table:
    """Accuracy and stability by verifiability (the paper's Table 6 and its stability rates)."""
    counts, test = stability(found)
    rows: list[Sequence[Value]] = []
    for kind in kinds_of(found):
        own = [one for one in found if one.kind == kind]
        yes, n = counts[kind]
        rows.append(
            (
                kind, mean([one.found.accuracy for one in own]), paper(f"kind.{kind}.accuracy"),
                mean([one.constant for one in own]), mean([one.found.win_rate_gap for one in own]),
                mean([one.found.sensitivity for one in own]),
                mean([one.found.consistency for one in own]), yes, n, yes / n,
                paper(f"kind.{kind}.stable"),
            )
        )  # fmt: skip
    total, everything = sum(y for y, _ in counts.values()), sum(n for _, n in counts.values())
    said = "Stability by kind: too few kinds for a test."
    if test is not None and test.statistic is not None and test.p_value is not None:
        said = (
            f"Stability by kind: χ²({test.df[0]:g}) = {test.statistic:.2f}, p = {test.p_value:.3f}."
        )
    elif test is not None:
        said = f"Stability by kind: no χ² test ({test.degenerate})."
    return Table(
        "kinds", "By verifiability",
        ("kind", "accuracy", "paper", "constant score", "gap", "sensitivity", "consistency",
         "stable", "of", "share", "paper's share"),
        rows, f"{said} The paper: χ²(2) = 1.46, p = 0.482, 41.1% stable; here {total} of "
        f"{everything}. A judge that always says the same is stable: read accuracy beside the "
        "constant score's first.",
    )  # fmt: skip


def anovas(found: Sequence[Configuration]) -> Table:
    """What task, verifiability and judge explain of accuracy."""
    keys = {
        ("task", "configurations"): "anova.task", ("task", "items"): "anova.task.items",
        ("verifiability", "configurations"): "anova.verifiability",
    }  # fmt: skip
    rows: list[Sequence[Value]] = []
    for one in effects(found):
        key = keys.get((one.factor, one.over), "-")
        key += f".{one.form.lower()}" if key.endswith("items") else ""
        test = one.test
        df = "–" if test is None or not test.df else ", ".join(f"{x:.4g}" for x in test.df)
        rows.append(
            (
                one.factor, one.over, one.form, None if test is None else test.statistic, df,
                None if test is None else test.p_value, None if test is None else test.effect,
                None if test is None else test.n, paper(f"{key}.F"), paper(f"{key}.eta2"),
            )
        )  # fmt: skip
    return Table(
        "anova", "What explains accuracy: one-way ANOVAs",
        ("factor", "over", "form", "F", "df", "p", "η²", "n", "paper's F", "paper's η²"),
        rows, "Over items a number is an item's mean accuracy over judges, paraphrases and "
        "attributes; by verifiability an item counts once for each kind that its task has, so these"
        " numbers are not independent. The scales differ between tasks and kinds (2 to 6 levels): "
        "part of any effect is that fewer levels are easier to hit.",
    )  # fmt: skip


def kind_contrasts(found: Sequence[Configuration]) -> Table:
    """Kinds against each other."""
    rows = [
        (f"{c.first} − {c.second}", c.difference, c.d, c.p_value,
         paper(f"contrast.{c.first}.{c.second}.d"))
        for c in contrasts(found)
    ]  # fmt: skip
    return Table(
        "contrasts", "Kinds of attributes against each other",
        ("kinds", "difference of accuracy", "Cohen's d", "p", "paper's d"),
        rows, "Over configurations; p of Welch's test, times the number of comparisons.",
    )  # fmt: skip


def correlation_table(found: Sequence[Configuration]) -> Table:
    """Accuracy against robustness."""
    short = {"win-rate gap": "gap", "sensitivity": "sensitivity"}
    rows = [
        (
            c.among, c.figure, c.n, c.pearson, c.pearson_p, c.spearman, c.spearman_p,
            paper(f"correlation.{short[c.figure]}.pearson") if c.among == "all" else None,
        )
        for c in correlations(found)
    ]  # fmt: skip
    return Table(
        "correlations", "Accuracy against robustness",
        ("among", "accuracy against", "n", "Pearson's r", "p", "Spearman's ρ", "p of ρ",
         "paper's r"),
        rows, "Over configurations. Gap and accuracy are tied together by construction: at an "
        "accuracy near 0 or 1 there is no room for a gap.",
    )  # fmt: skip


def judges(found: Sequence[Configuration]) -> tuple[Table, list[str]]:
    """Judges by accuracy, and the names of those that are insensitive rather than robust."""
    names = list(dict.fromkeys(one.scores.judge for one in found))
    attributes = dict.fromkeys(one.scores.attribute.name for one in found)
    wins = {
        max((o for o in found if o.scores.attribute.name == a), key=lambda o: o.found.accuracy)
        .scores.judge: 0
        for a in attributes
    }  # fmt: skip
    for a in attributes:
        own = [one for one in found if one.scores.attribute.name == a]
        wins[max(own, key=lambda one: one.found.accuracy).scores.judge] += 1
    rows: list[Sequence[Value]] = []
    numb = []
    for name in names:
        own = [one for one in found if one.scores.judge == name]
        share = sum(one.insensitive for one in own) / len(own)
        if share >= 0.5:
            numb.append(name)
        rows.append(
            (
                name, mean([one.found.accuracy for one in own]),
                mean([one.constant for one in own]), mean([one.found.win_rate_gap for one in own]),
                mean([one.found.sensitivity for one in own]),
                mean([one.found.consistency for one in own]),
                mean([one.one_score for one in own]),
                mean([one.scores.mass for one in own]), wins.get(name, 0), len(own), share,
                "insensitive, not robust" if share >= 0.5 else "",
            )
        )  # fmt: skip
    rows.sort(key=lambda row: -float(row[1] or 0))
    table = Table(
        "judges", "The judges",
        ("judge", "accuracy", "constant score", "gap", "sensitivity", "consistency",
         "commonest score", "mass", "best on", "of", "insensitive", "finding"),
        rows, "insensitive: the share of its attributes on which at least 90% of items get the "
        "same score under every paraphrase and accuracy is no better than a constant score's. From "
        "half of them on a judge is called insensitive: it does not move because it does not look. "
        "mass: the probability of all levels together; where it is small, the judge would rather "
        "write something else.",
    )  # fmt: skip
    return table, numb


def tau_sweep(found: Sequence[Configuration]) -> Table:
    """Accuracy by tolerance, as the paper's appendix D."""
    rows: list[Sequence[Value]] = []
    for kind in [*kinds_of(found), "all"]:
        own = [one for one in found if kind in (one.kind, "all")]
        rows.append(
            (
                kind, mean([one.unrounded for one in own]),
                mean([one.found.accuracy for one in own]),
                *(mean([one.within[tau] for one in own]) for tau in TOLERANCES),
            )
        )  # fmt: skip
    return Table(
        "tolerance", "What a tolerance gives",
        ("kind", "unrounded", "rounded", *(f"within {tau:g}" for tau in TOLERANCES)),
        rows, "unrounded: equal to the raters' mean as it is; rounded: equal to it as a level; "
        "within τ: at most τ from it. Whole scores within 0.5 of a mean are those that equal the "
        "rounded mean, and both neighbours of a half: 0.5 adds nothing else to rounding.",
    )  # fmt: skip


def control_table(rows: Sequence[Control], how: str) -> Table:
    """Rewording against asking the same again."""
    return Table(
        "control", "Is it the wording? The same prompt as a control",
        ("kind", "configurations", "items", "gap, reworded", "gap, same prompt", "difference",
         "ratio", "larger when reworded", "Wilcoxon p", "paper's difference", "paper's p"),
        [
            (
                row.kind, row.n, row.items, row.reworded, row.same, row.reworded - row.same,
                row.reworded / row.same if row.same else None, row.larger, row.test.p_value,
                _difference("control.reworded", "control.same") if row.kind == "all"
                else paper(f"control.{row.kind}.difference"),
                paper("control.p" if row.kind == "all" else f"control.{row.kind}.p"),
            )
            for row in rows
        ],
        f"{how} A configuration's two gaps are over the same items: those decided under every "
        "paraphrase and under the base wording; items: of all configurations together.",
    )  # fmt: skip
