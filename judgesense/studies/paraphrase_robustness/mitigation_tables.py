"""The tables of the strategies that ask more than once, and of the recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from judgesense.studies.common.result import Table
from judgesense.studies.paraphrase_robustness.measures import Record, mean
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome
from judgesense.studies.paraphrase_robustness.recommendation import PAPER_TIERS, Tier
from judgesense.studies.paraphrase_robustness.tables import paper, table


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
        "on the same items; intervals are t intervals over clusters. best judge: the judge most "
        "often right on these same items, so its accuracy is flattering. calls, tokens and US "
        "dollars are per item; US dollars are undefined without a price.",
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


def recommendation_table(tiers: Sequence[Tier]) -> Table:
    """The paper's Table 3, computed from this study."""
    return table(
        "recommendation",
        "Recommendation: which strategy for which kind of attribute",
        [asdict(tier) | {"paper_tier": PAPER_TIERS[tier.kind]} for tier in tiers],
        "strategy: the cheapest one (by US dollars where all are known, else by tokens) that is "
        "not shown to be less often right than the best one (95% interval of the difference on the "
        "same items). people: they score instead below an accuracy of 0.30 or a constant score's, "
        "and review below 0.65 or while the interval reaches down to a constant score's (the "
        "paper's thresholds, section 4). If the items are too few to separate the strategies, the "
        "cheapest is named.",
    )
