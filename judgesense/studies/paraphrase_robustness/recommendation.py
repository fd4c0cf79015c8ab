"""From measured strategies to advice: a tier for each kind of attribute, and a ready reckoner.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5.1 and Table 3. The paper's tiers are
the authors' reading of their results; here a rule computes them from the results at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.studies.common.result import RESULT_FILE
from judgesense.studies.paraphrase_robustness.attributes import full_name
from judgesense.studies.paraphrase_robustness.mitigations import BEST, CONSTANT, SINGLE, Outcome
from judgesense.text import number
from judgesense_dataset.embedded import VERIFIABILITIES, load_attributes

READY, HUMAN_BELOW = 0.65, 0.30
"""Section 4: accuracy from 0.65 is ready to go into production, below 0.30 is for humans."""

PAPER_TIERS = {
    "verifiable": "single LLM judge",
    "semi-objective": "panel, human review of borderline cases",
    "subjective": "fuser, high human intervention",
}
"""Table 3."""


@dataclass(frozen=True)
class Tier:
    """What to use for a kind of attribute, and what it was measured to do.

    ``strategy`` is the cheapest one whose exact accuracy is not shown to be below the best one's:
    by US dollars where those of all strategies are known, else by tokens.
    ``human`` says how much of the work stays with people.
    """

    kind: str
    strategy: str
    human: str
    exact: float
    low: float | None
    high: float | None
    near: float
    constant: float
    tokens: float
    dollars: float | None
    n: int


def recommend(outcomes: Sequence[Outcome]) -> list[Tier]:
    """A tier for each kind of attribute, most verifiable first.

    Strategies are compared on the same items, pooled over the kind's attributes; one that decided
    less than half of them is left out. People score
    instead where accuracy is below 0.30 or no better than a constant score, and review where it is
    below 0.65 or its interval reaches down to the constant score's accuracy.
    """
    tiers = []
    for kind in VERIFIABILITIES:
        pooled = _pooled([one for one in outcomes if one.kind == kind])
        if not pooled:
            continue
        # The mean over judges is no strategy that one can use, unless there is but one judge.
        idle = {CONSTANT, SINGLE} if BEST in pooled else {CONSTANT}
        usable = {name: one for name, one in pooled.items() if name not in idle}
        best = max(usable.values(), key=lambda one: float(one.exact.mean()))
        priced = all(one.dollars is not None for one in usable.values())
        cheapest = sorted(
            usable.values(), key=lambda one: (one.dollars or 0.0 if priced else 0.0, one.tokens)
        )
        chosen = next(one for one in cheapest if one is best or _not_worse(one, best))
        tiers.append(_tier(chosen, float(pooled[CONSTANT].exact.mean())))
    return tiers


def _not_worse(one: Outcome, best: Outcome) -> bool:
    gap, ends = best.gain(one)
    return gap <= 0 or ends.low is None or ends.low <= 0


def _tier(chosen: Outcome, constant: float) -> Tier:
    accuracy, ends = float(chosen.exact.mean()), chosen.interval()
    if accuracy < HUMAN_BELOW or accuracy <= constant:
        human = "people score; the judge is no better than a constant score" if (
            accuracy <= constant
        ) else "people score"  # fmt: skip
    elif accuracy < READY or ends.low is None or ends.low <= constant:
        human = "people review"
    else:
        human = "none"
    return Tier(
        chosen.kind, chosen.strategy, human, accuracy, ends.low, ends.high,
        float(chosen.near.mean()), constant, chosen.tokens, chosen.dollars,
        len(chosen.exact),
    )  # fmt: skip


def _pooled(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Each strategy over all attributes, on the items that all strategies decided.

    A strategy that lacks an attribute, or decided less than half of the items, is left out.
    """
    attributes = list(dict.fromkeys(one.attribute for one in outcomes))
    by_name: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_name.setdefault(one.strategy, []).append(one)
    whole = {
        name: Outcome(
            name, " + ".join(attributes), own[0].kind,
            np.concatenate([one.exact for one in own]), np.concatenate([one.near for one in own]),
            tuple(f"{one.attribute}/{item}" for one in own for item in one.items),
            tuple(cluster for one in own for cluster in one.clusters), None,
            float(np.mean([one.calls for one in own])),
            float(np.mean([one.tokens for one in own])), _mean([one.dollars for one in own]),
        )
        for name, own in by_name.items()
        if len(own) == len(attributes)
    }  # fmt: skip
    most = max((len(one.items) for one in whole.values()), default=0)
    kept = {name: one for name, one in whole.items() if 2 * len(one.items) >= most}
    shared = set.intersection(*(set(one.items) for one in kept.values())) if kept else set()
    return {name: one.on(shared) for name, one in kept.items()}


def _mean(dollars: Sequence[float | None]) -> float | None:
    known = [each for each in dollars if each is not None]
    return float(np.mean(known)) if len(known) == len(dollars) else None


@dataclass(frozen=True)
class Reckoning:
    """What to use for an attribute within a budget, and what it was measured to do.

    ``dollars`` are for 1,000 items; ``too_dear`` names the strategies that were more accurate and
    exceed the budget; ``warning`` is empty, or says why not to rely on the judge.
    """

    attribute: str
    strategy: str
    judge: str
    exact: float
    low: float | None
    high: float | None
    near: float
    calls: float
    dollars: float | None
    items: int
    too_dear: tuple[str, ...]
    warning: str

    def text(self) -> str:
        """The reckoning in sentences."""
        ends = f" [{number(self.low, 2)}, {number(self.high, 2)}]" if self.low is not None else ""
        cost = "" if self.dollars is None else f", ${self.dollars:.4g} for 1,000 items"
        what = f"{self.strategy}, {self.judge}" if self.judge else self.strategy
        calls = "1 call" if self.calls == 1 else f"{self.calls:g} calls"
        lines = [
            f"{self.attribute}: use the {what} ({calls} an item{cost}).",
            f"Measured: exact accuracy {number(self.exact)}{ends}, within the tolerance "
            f"{number(self.near)}, on {self.items} items.",
        ]
        if self.too_dear:
            lines.append(f"Over the budget, and more accurate: {', '.join(self.too_dear)}.")
        return "\n".join(lines + ([self.warning] if self.warning else []))


def reckon(
    study: str | Path,
    attribute: str,
    budget: float | None = None,
    token_price: float | None = None,
) -> Reckoning:
    """The strategy to use for an attribute, from a finished study.

    Args:
        study: the study's folder.
        attribute: its name, with or without the task.
        budget: US dollars for 1,000 items; None sets no limit.
        token_price: US dollars for a million tokens, where the log records no cost.

    Returns:
        The strategy within the budget that gains most over the mean single judge on the same
        items, the cheaper of equals: by US dollars where those of all are known, else by tokens.

    Raises:
        JudgeSenseError: no finished study there, an attribute it did not measure, a budget but no
            known cost, or a budget under which nothing can be asked.
    """
    rows = [row for row in _rows(Path(study)) if row["items"]]
    measured = list(dict.fromkeys(row["attribute"] for row in rows))
    name = full_name(attribute, load_attributes())
    own = [row for row in rows if row["attribute"] == name]
    if not own:
        raise JudgeSenseError(f"{study} did not measure {name}; it has {', '.join(measured)}")
    constant = next(row for row in own if row["strategy"] == CONSTANT)
    idle = {CONSTANT, SINGLE} if any(row["strategy"] == BEST for row in own) else {CONSTANT}
    usable = [row for row in own if row["strategy"] not in idle]
    for row in usable:
        if row["US dollars"] is None and token_price is not None:
            row["US dollars"] = row["tokens"] * token_price / 1e6
        if row["US dollars"] is None and budget is not None:
            raise JudgeSenseError(
                f"{study} records no cost of {row['strategy']}: give --token-price, in US dollars "
                "for a million tokens"
            )
    within = [row for row in usable if budget is None or 1000 * row["US dollars"] <= budget]
    if not within:
        least = min(1000 * row["US dollars"] for row in usable)
        raise JudgeSenseError(f"${budget:g} for 1,000 items is too little: the least is ${least:g}")
    cost = "tokens" if any(row["US dollars"] is None for row in usable) else "US dollars"
    best = min(within, key=lambda row: (-_gain(row), row[cost], row["tokens"]))
    warning = ""
    if _gain(best) <= _gain(constant):
        warning = (
            f"Do not rely on it: always giving the commonest score is right {constant['exact']:.0%}"
            " of the time. Have people score."
        )
    elif best["exact"] < HUMAN_BELOW:
        warning = "Fewer than 30% of its scores are right. Have people score."
    elif best["exact"] < READY:
        warning = "Fewer than 65% of its scores are right. Have people review them."
    return Reckoning(
        name, best["strategy"], best["judge"], best["exact"], best["low"], best["high"],
        best["near"], best["calls"],
        None if best["US dollars"] is None else 1000 * best["US dollars"], best["items"],
        tuple(r["strategy"] for r in usable if r not in within and _gain(r) > _gain(best)),
        warning,
    )  # fmt: skip


def _gain(row: Mapping[str, Any]) -> float:
    """Over the mean single judge, without the noise of its last digits: equals are equal."""
    return round(float(row["gain"]), 9)


def _rows(study: Path) -> list[dict[str, Any]]:
    try:
        tables: Mapping[str, Any] = json.loads((study / RESULT_FILE).read_text("utf-8"))["tables"]
        table = tables["mitigations"]
    except (OSError, ValueError, KeyError) as error:
        raise JudgeSenseError(
            f"{study} holds no finished study of paraphrase robustness ({RESULT_FILE})"
        ) from error
    names = ["near" if name.startswith("within") else name for name in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]
