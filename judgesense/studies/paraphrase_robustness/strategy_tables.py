"""The tables of the strategies that ask more than once, with the paper's figures beside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgesense.reporting.study_result import Record
from judgesense.studies.common.study import mean, published, table
from judgesense.studies.paraphrase_robustness.measures import grouped, means
from judgesense.studies.paraphrase_robustness.strategies import FUSER, SINGLE, by_strategy
from judgesense.studies.paraphrase_robustness.tables import NAME, StudyMeasurements, paper
from judgesense_dataset.embedded import VERIFIABILITIES


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
    for name, outcomes in by_strategy(s.outcomes).items():
        gains = [outcome.mean("gain") for outcome in outcomes]
        yield {
            "strategy": name,
            "n_attributes": len(outcomes),
            "accuracy": mean(outcome.mean("exact") for outcome in outcomes),
            "gain": mean(gains),
            "least_gain": min(gains),
            "most_gain": max(gains),
            "near": mean(outcome.mean("near") for outcome in outcomes),
            "near_gain": mean(outcome.mean("near_gain") for outcome in outcomes),
            "gap": mean(outcome.gap for outcome in outcomes),
            "calls": mean(outcome.calls for outcome in outcomes),
            "tokens": mean(float(outcome.cost[0]) for outcome in outcomes),
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
        groups = by_strategy([outcome for outcome in s.outcomes if outcome.kind == kind])
        single = groups.pop(SINGLE, [])
        scores = {
            (name, field): float(np.mean([outcome.mean(field) for outcome in outcomes]))
            for name, outcomes in groups.items()
            for field in ("exact", "near")
            if len(outcomes) == len(single) and min(outcome.calls for outcome in outcomes) > 1
        }
        if scores:
            name, field = best = max(scores, key=lambda key: scores[key])
            gain = {"exact": "gain", "near": "near_gain"}[field]
            base = float(np.mean([outcome.mean("exact") for outcome in single]))
            figure = published(NAME)[f"kind.{kind}.best"]
            yield {
                "kind": kind,
                "n_attributes": len(single),
                "single": base,
                "strategy": name if field == "exact" else f"{name}, within τ",
                "accuracy": scores[best],
                "delta": scores[best] - base,
                "gain": mean(outcome.mean(gain) for outcome in groups[name]),
                "paper_best": figure.value,
                "paper_delta": figure.value - published(NAME)[f"kind.{kind}.accuracy"].value,
                "place": figure.place,
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
    for outcome in s.outcomes:
        tokens, dollars = outcome.cost.tolist()
        yield {
            "attribute": outcome.name,
            "kind": outcome.kind,
            "strategy": outcome.strategy,
            "judge": outcome.judge,
            **outcome.figures(),
            "near_gain": outcome.mean("near_gain"),
            "gap": outcome.gap,
            "calls": outcome.calls,
            "tokens": tokens,
            "cost_usd": None if np.isnan(dollars) else dollars,
            "n_items": outcome.n,
        }


TIERS = {
    "verifiable": (1, "one judge", SINGLE),
    "semi-objective": (2, "a panel; people for borderline cases", "panel, median"),
    "subjective": (3, "a fuser; people", FUSER),
}
"""The tier, the set-up and its strategy here of each kind of attributes (the paper's Table 3)."""

PRODUCTION, MITIGATION = 0.65, 0.46
"""The least accuracies that section 4 expects of verifiable and of semi-objective attributes."""


@table(
    "tiers",
    "Tiers of automation (the paper's Table 3, and the data for a chart like its Figure 4)",
    f"tier and set-up: the paper's, by verifiability alone. tier here: by the accuracy of one "
    f"judge, 1 from {PRODUCTION}, 2 from {MITIGATION}, else 3 (the accuracies that section 4 "
    "expects of each kind); 3 also where one judge is no better than the constant score. "
    "difference by wording: the gap when reworded less the gap of the same prompt. The text that "
    "we have of Figure 4 is its caption only.",
    tier_here="tier here",
    of_setup="accuracy of the set-up",
    constant_accuracy="constant score",
    share_stable="stable",
    wording="difference by wording",
)
def tiers(s: StudyMeasurements) -> Iterator[Record]:
    """Which tier an attribute belongs to, by its kind and by what was measured."""
    for name, members in grouped(s.rows, "attribute").items():
        tier, setup, strategy = TIERS[members[0]["kind"]]
        figures = means(members, "accuracy", "constant_accuracy", "gap", "sensitivity")
        accuracy = figures["accuracy"]
        tier_here = 1 if accuracy >= PRODUCTION else 2 if accuracy >= MITIGATION else 3
        yield {
            "attribute": name,
            "kind": members[0]["kind"],
            "tier": tier,
            "setup": setup,
            "tier_here": 3 if accuracy <= figures["constant_accuracy"] else tier_here,
            **figures,
            "of_setup": mean(
                outcome.mean("exact")
                for outcome in s.outcomes
                if (outcome.name, outcome.strategy) == (name, strategy)
            ),
            "share_stable": mean(float(row["stable"] is True) for row in members),
            "wording": mean(row["gaps"] and row["gaps"][0] - row["gaps"][1] for row in members),
        }
