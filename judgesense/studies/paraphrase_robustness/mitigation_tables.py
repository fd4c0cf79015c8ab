"""The tables and figures of what asking more than once gives, and of paraphrase robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common import figures as pictures
from judgesense.studies.common.result import Picture, Table, Value
from judgesense.studies.paraphrase_robustness.measures import Configuration, kinds_of
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome
from judgesense.studies.paraphrase_robustness.recommendation import PAPER_TIERS, Tier
from judgesense.studies.paraphrase_robustness.tables import mean, paper, tau_sweep


def by_attribute(outcomes: Sequence[Outcome], tolerance: float) -> Table:
    """Every strategy on every attribute."""
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    rows: list[Sequence[Value]] = []
    for one in outcomes:
        gain, ends = one.gain(single[one.attribute])
        ci = one.interval()
        rows.append(
            (
                one.attribute, one.kind, one.strategy, one.judge, float(one.exact.mean()), ci.low,
                ci.high, gain, ends.low, ends.high, float(one.near.mean()),
                one.near_gain(single[one.attribute]), one.gap, one.calls,
                one.tokens, one.dollars, len(one.exact),
            )
        )  # fmt: skip
    return Table(
        "mitigations", "Asking more than once, attribute by attribute",
        ("attribute", "kind", "strategy", "judge", "exact", "low", "high", "gain", "gain low",
         "gain high", f"within {tolerance:g}", "gain within", "gap", "calls", "tokens",
         "US dollars", "items"),
        rows, "exact: the score, rounded to a level, equals the rounded human mean; within: the "
        "score as it is lies at most τ from the human mean as it is. Gains are over the mean single"
        " judge on the same items; intervals are t intervals over clusters. best judge: the one "
        "most often right on these same items, so flattered. calls, tokens and US dollars are for "
        "one item; US dollars are undefined without a price.",
    )  # fmt: skip


def over_all(outcomes: Sequence[Outcome], tolerance: float) -> Table:
    """The strategies over all attributes, with what they cost."""
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    totals: list[Sequence[Value]] = []
    for name in dict.fromkeys(one.strategy for one in outcomes):
        own = [one for one in outcomes if one.strategy == name]
        gains = [o.gain(single[o.attribute])[0] for o in own]
        close = [o.near_gain(single[o.attribute]) for o in own]
        totals.append(
            (
                name, len(own), float(np.mean([o.exact.mean() for o in own])),
                float(np.mean(gains)), min(gains), max(gains),
                float(np.mean([o.near.mean() for o in own])), float(np.mean(close)),
                mean([o.gap for o in own]), float(np.mean([o.calls for o in own])),
                float(np.mean([o.tokens for o in own])), paper(f"gain.{name.split(',')[0]}"),
            )
        )  # fmt: skip
    return Table(
        "strategies", "The strategies over all attributes, with what they cost",
        ("strategy", "attributes", "exact", "gain", "least gain", "most gain",
         f"within {tolerance:g}", "gain within", "gap", "calls", "tokens", "paper's gain"),
        totals, "Means over attributes; calls and tokens are for one item. The paper's gain of the "
        "fuser counts a tolerance; it calls self-consistency the cheapest because one model does "
        "it, but it asks as often as there are paraphrases.",
    )  # fmt: skip


def recommendation_table(tiers: Sequence[Tier]) -> Table:
    """The paper's Table 3, computed."""
    return Table(
        "recommendation", "Recommendation: what to use for which attribute",
        ("kind", "use", "people", "exact", "low", "high", "within", "constant score", "tokens",
         "US dollars", "items", "the paper's tier"),
        [
            (t.kind, t.strategy, t.human, t.exact, t.low, t.high, t.near, t.constant, t.tokens,
             t.dollars, t.n, PAPER_TIERS[t.kind])
            for t in tiers
        ],
        "use: the cheapest strategy (by US dollars where those of all are known, else by tokens) "
        "that is not shown to be less often right than the best one (95% interval of the "
        "difference on the same items). people: who scores instead below an accuracy of 0.30 or a "
        "constant score's, and reviews below 0.65 or while the interval reaches down to a constant "
        "score's (the paper's thresholds, section 4). Few items show little: where they cannot "
        "tell strategies apart the cheapest is named.",
    )  # fmt: skip


def figures(found: Sequence[Configuration], outcomes: Sequence[Outcome]) -> list[Picture]:
    """Accuracy against gap, attribute × judge, the sweep of τ, and the strategies' gains."""
    names = list(dict.fromkeys(one.scores.judge for one in found))
    attributes = list(dict.fromkeys(one.scores.attribute.name for one in found))
    cell: Mapping[tuple[str, str], float] = {
        (one.scores.attribute.name, one.scores.judge): one.found.accuracy for one in found
    }
    constant = {one.scores.attribute.name: one.constant for one in found}
    made = [
        Picture(
            "accuracy_gap",
            "Accuracy against win-rate gap; a point is a judge on an attribute.",
            lambda: pictures.scatter(
                {
                    kind: [
                        (one.found.accuracy, one.found.win_rate_gap or 0.0)
                        for one in found if one.kind == kind
                    ]
                    for kind in kinds_of(found)
                },
                xlabel="accuracy (exact, rounded human mean)", ylabel="win-rate gap",
            ),
        ),
        Picture(
            "accuracy_heatmap",
            "Accuracy of each judge and of a constant score, over all paraphrases.",
            lambda: pictures.heatmap(
                [[*(cell.get((a, j)) for j in names), constant[a]] for a in attributes], attributes,
                [*names, "constant score"], label="accuracy",
            ),
        ),
        Picture(
            "tolerance",
            "Share of scores at most τ from the raters' mean, by kind of attribute.",
            lambda: pictures.slopes(
                {
                    str(row[0]): [float(v) for v in (row[1], *row[3:]) if isinstance(v, float)]
                    for row in tau_sweep(found).rows
                },
                ["τ = 0", *(f"τ = {tau:g}" for tau in TOLERANCES)],
                ylabel="share of scores",
            ),
        ),
    ]  # fmt: skip
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    tried = [n for n in dict.fromkeys(o.strategy for o in outcomes) if n != SINGLE]
    gains = {(o.attribute, o.strategy): o.gain(single[o.attribute])[0] for o in outcomes}
    if tried and outcomes:
        most = max(map(abs, gains.values())) or 1.0
        made.append(
            Picture(
                "strategies",
                "Gain in exact accuracy over the mean single judge.",
                lambda: pictures.heatmap(
                    [[gains.get((a, s)) for s in tried] for a in single], list(single), tried,
                    label="gain in accuracy", limits=(-most, most),
                ),
            )
        )  # fmt: skip
    return made
