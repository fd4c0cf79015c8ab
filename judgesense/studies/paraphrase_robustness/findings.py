"""The findings and limits of paraphrase robustness, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense.studies.paraphrase_robustness.grid import Grid
from judgesense.studies.paraphrase_robustness.measures import (
    Configuration,
    Record,
    correlations,
    effects,
    kinds_of,
    means,
)
from judgesense.studies.paraphrase_robustness.mitigations import CONSTANT, SINGLE, Outcome
from judgesense.text import join, number, p_value, short_names, signed

FEW_WORDINGS = 4
"""With fewer wordings of your own, the gap is about these only."""


def findings(
    found: Sequence[Configuration],
    tried: Sequence[Outcome],
    controls: Sequence[Record],
    insensitive: Sequence[str],
) -> Iterator[str]:
    """What the tables show."""
    n = len(found)
    by_kind = (
        f"{number(means([o for o in found if o.kind == kind], 'accuracy')['accuracy'], 2)} on "
        f"{kind} attributes"
        for kind in kinds_of(found)
    )
    yield "accuracy: " + ", ".join(by_kind)
    above = sum((one.found.accuracy_ci_low or 0.0) > one.constant for one in found)
    at_all = sum(one.found.accuracy > one.constant for one in found)
    yield (
        f"in {at_all} of {n} configurations the judge is right more often than always giving the "
        f"most frequent score, in {above} with the whole interval"
    )
    yield gap_finding(
        [(one.found.win_rate_gap, one.found.win_rate_gap_chance) for one in found], "paraphrases"
    )
    explained = [
        (row["eta_squared"], row["factor"])
        for row in effects(found)
        if row["over"] == "configurations" and row["eta_squared"] is not None
    ]
    if explained:
        ranked = ", ".join(f"{name} {number(eta, 2)}" for eta, name in sorted(explained)[::-1])
        yield f"share of the variance of accuracy between configurations (η²): {ranked}"
    for row in correlations(found):
        if row["among"] == "all" and row["pearson"] is not None:
            yield (
                f"accuracy against {row['figure']}: r = {number(row['pearson'], 2)} "
                f"({p_value(row['pearson_p'])}, n = {row['n']})"
            )
    if insensitive:
        yield (
            f"{join(insensitive)}: insensitive, not robust: most scores stay the same under every "
            "paraphrase and are right no more often than a constant score"
        )
    if controls and controls[-1]["p"] is not None:
        last = controls[-1]
        yield (
            f"rewording moves accuracy by {number(last['gap_reworded'])}, asking the same prompt "
            f"again by {number(last['gap_same'])} (Wilcoxon {p_value(last['p'])}, "
            f"{last['n_configurations']} configurations)"
        )
    yield from _strategies(tried)


def gap_finding(gaps: Sequence[tuple[float | None, float | None]], wordings: str) -> str:
    """The mean gap between wordings against the gap by chance, over (gap, by chance) pairs."""
    known = [(gap, chance or 0.0) for gap, chance in gaps if gap is not None]
    wide = sum(gap > chance for gap, chance in known)
    gap, chance = (float(np.mean(column)) for column in zip(*known, strict=True))
    return (
        f"the mean gap between the best and the worst of the {wordings} is {number(gap)}; scores "
        f"assigned to the {wordings} at random would have a gap of {number(chance)}; the gap is "
        f"wider than that in {wide} of {len(gaps)} configurations"
    )


def _strategies(tried: Sequence[Outcome]) -> Iterator[str]:
    single = {one.attribute: one for one in tried if one.strategy == SINGLE}
    gains: dict[str, list[float]] = {}
    for one in tried:
        if one.strategy not in (SINGLE, CONSTANT):
            gains.setdefault(one.strategy, []).append(one.gain(single[one.attribute])[0])
    for name, own in gains.items():
        yield (
            f"{name}: {signed(float(np.mean(own)))} exact accuracy against the mean single judge "
            f"(from {signed(min(own))} to {signed(max(own))} over {len(own)} attributes)"
        )
    if single:
        constant = np.mean([o.accuracy for o in tried if o.strategy == CONSTANT])
        alone = np.mean([o.accuracy for o in single.values()])
        yield (
            f"the most frequent human score is right {number(float(constant))} of the time, the "
            f"mean single judge {number(float(alone))}"
        )


def limits(grid: Grid) -> Iterator[str]:
    """What the figures do not show."""
    plan = grid.plan
    counts = {name: len(plan.paraphrases_of(one)) for name, one in plan.attributes.items()}
    fewest = min(counts.values())
    few = [name for name, n in counts.items() if n == fewest]
    yield (
        f"{plan.limit} texts per task: an accuracy of a configuration has an interval of about "
        f"±{1 / np.sqrt(plan.limit):.2f}, and a largest difference of {plan.paraphrases} "
        "accuracies is biased upwards; compare the gap with the gap by chance"
    )
    if plan.templates is None:
        yield "the wordings are this project's, not the paper's, which prints only a few of its own"
    elif fewest < FEW_WORDINGS:
        yield (
            f"{join(few)}: only {fewest} wordings, so the gap is between these and says little "
            "about others"
        )
    yield (
        "texts are drawn equally from bands of the human score, so low scores are more frequent "
        "here than in the sets; accuracies do not describe the sets' own mix"
    )
    if plan.scoring == "options":
        yield (
            "the most probable level is the score, even for a judge that would rather write "
            "something else"
        )
    if absent := 12 - len(plan.attributes):
        yield f"{absent} of the paper's 12 attributes were not judged"
    if plan.data.get("summarisation") == "summeval":
        yield "the summaries are SummEval's, not TL;DR's; quality is a mean of four ratings"
    for names in one_model(grid.report):
        yield (
            f"{join(names)} are one model under several settings: they share their errors, so "
            "their votes in a panel are not independent"
        )


def one_model(report: Mapping[str, Any]) -> list[list[str]]:
    """The judges of a report that share their weights, or their model at an endpoint.

    Functions are never counted as one model.
    """
    described = {
        judge["name"]: judge.get("describe", {})
        for run in report.get("runs", ())
        for judge in (run or {}).get("judges", ())
    }
    names = short_names(set(described))
    models: dict[str, list[str]] = {}
    for name, fixed in described.items():
        if model := fixed.get("weights") or fixed.get("model"):
            models.setdefault(model, []).append(names[name])
    return [own for own in models.values() if len(own) > 1]
