"""Which strategy to use: a tier per kind of attribute, and `reckon` for one attribute and budget.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5.1 and Table 3. The paper's tiers are
the authors' reading of their results; here a rule computes them from the study's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes
from judgesense.files.documents import OwnShape, fit, parse_json
from judgesense.studies.common.result import RESULT_FILE
from judgesense.studies.paraphrase_robustness.attributes import full_name
from judgesense.studies.paraphrase_robustness.choice import (
    by_cost,
    crossfit_choice,
    most_accurate,
    usable,
)
from judgesense.studies.paraphrase_robustness.measures import Record
from judgesense.studies.paraphrase_robustness.mitigations import BEST, CONSTANT, SINGLE, Outcome
from judgesense.studies.paraphrase_robustness.tables import CHOICE
from judgesense.text import interval, number, percent
from judgesense_dataset.embedded import VERIFIABILITIES, load_attributes

READY, HUMAN_BELOW = 0.65, 0.30
"""Section 4: an accuracy of 0.65 or more is ready for production, below 0.30 is for people."""

PAPER_TIERS = {
    "verifiable": "single LLM judge",
    "semi-objective": "panel, human review of borderline cases",
    "subjective": "fuser, high human intervention",
}
"""Table 3."""


def recommend(outcomes: Sequence[Outcome]) -> list[Record]:
    """A strategy for each kind of attribute, most verifiable first.

    It is the cheapest one whose exact accuracy is not shown to be below the best one's: by US
    dollars if those of all strategies are known, else by tokens. Strategies are compared on the
    same items, pooled over the kind's attributes; one that decided less than half of them is left
    out. Accuracy is of the rule: each item is scored by the strategy that it chooses on other items
    (with ten clusters or more, else ``cross_fitted`` is False). People score instead where accuracy
    is below 0.30 or no better than a constant score, and review where it is below 0.65 or its
    interval reaches down to the constant score's accuracy.

    Returns:
        Records with kind, strategy, people (how much of the work stays with people), and the
        strategy's measured accuracy and cost.
    """
    rows = []
    for kind in VERIFIABILITIES:
        pooled = _pooled([one for one in outcomes if one.kind == kind])
        if not pooled:
            continue
        ranked = by_cost(usable(list(pooled.values())))
        one = ranked[_cheapest(ranked)]
        fitted = crossfit_choice(ranked, _cheapest)
        accuracy, ends = fitted or (one.accuracy, one.interval())
        constant = pooled[CONSTANT].accuracy
        rows.append(
            {
                "kind": kind, "strategy": one.strategy,
                "people": _people(accuracy, ends.low, constant), "accuracy": accuracy,
                "ci_low": ends.low, "ci_high": ends.high, "cross_fitted": fitted is not None,
                "near": float(one.near.mean()),
                "constant_accuracy": constant, "tokens": one.tokens, "cost_usd": one.dollars,
                "n_items": len(one.exact), "paper_tier": PAPER_TIERS[kind],
            }
        )  # fmt: skip
    return rows


def _cheapest(ranked: Sequence[Outcome]) -> int:
    """The index of the first strategy that is not shown to be less accurate than the best one."""
    best = ranked[most_accurate(ranked)]
    return next(at for at, one in enumerate(ranked) if one is best or _not_worse(one, best))


def _people(accuracy: float, low: float | None, constant: float) -> str:
    if accuracy <= constant:
        return "people score; the judge is no better than a constant score"
    if accuracy < HUMAN_BELOW:
        return "people score"
    return "people review" if accuracy < READY or low is None or low <= constant else "none"


def _not_worse(one: Outcome, best: Outcome) -> bool:
    gap, ends = best.gain(one)
    return gap <= 0 or ends.low is None or ends.low <= 0


def _pooled(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Each strategy over all attributes, on the items that all strategies decided.

    A strategy that lacks an attribute or decided less than half of the items is left out.
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
    """Which strategy to use for an attribute within a budget, and its measured accuracy and cost.

    ``accuracy`` is that of the strategy on the texts that chose it. ``choice_accuracy``, with its
    95% interval, is that of choosing within this budget on other texts; None for few texts.
    ``cost_usd`` is for 1,000 items, ``calls`` for one; ``too_dear`` names the strategies that were
    more accurate but exceed the budget; ``warning`` is empty or says why not to rely on the judge.
    """

    attribute: str
    strategy: str
    judge: str
    accuracy: float
    ci_low: float | None
    ci_high: float | None
    near: float
    calls: float
    cost_usd: float | None
    n_items: int
    too_dear: tuple[str, ...]
    warning: str
    choice_accuracy: float | None = None
    choice_low: float | None = None
    choice_high: float | None = None

    def text(self) -> str:
        """The reckoning in sentences."""
        ends = "" if self.ci_low is None else f" {interval(vars(self), 2)}"
        cost = "" if self.cost_usd is None else f", ${self.cost_usd:.4g} per 1,000 items"
        what = f"{self.strategy}, {self.judge}" if self.judge else self.strategy
        calls = "1 call" if self.calls == 1 else f"{self.calls:g} calls"
        lines = [
            f"{self.attribute}: use the {what} ({calls} per item{cost}).",
            f"Measured: exact accuracy {number(self.accuracy)}{ends}, within the tolerance "
            f"{number(self.near)}, on {self.n_items} items.",
        ]
        if self.choice_accuracy is None:
            lines.append(
                "The same items chose the strategy, so expect less on others; they are too few to "
                "say how much."
            )
        else:
            fitted = {"ci_low": self.choice_low, "ci_high": self.choice_high}
            ends = "" if self.choice_low is None else f" {interval(fitted, 2)}"
            lines.append(
                f"Expect {number(self.choice_accuracy)}{ends} on other items: the accuracy of such "
                "a choice on items that had no part in it."
            )
        if self.too_dear:
            lines.append(f"More accurate, but over the budget: {', '.join(self.too_dear)}.")
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
        budget: US dollars per 1,000 items; None sets no limit.
        token_price: US dollars per million tokens, where the log records no cost.

    Returns:
        The strategy within the budget that gains most over the mean single judge on the same
        items; of equals, the cheaper: by US dollars if those of all are known, else by tokens.

    Raises:
        JudgeSenseError: no finished study in the folder, an attribute that it did not measure, a
            budget without any known cost, or a budget too small for every strategy.
    """
    rows = [row for row in _rows(Path(study)) if row["n_items"]]
    name = full_name(attribute, load_attributes())
    own = {row["strategy"]: row for row in rows if row["attribute"] == name}
    if not own:
        measured = dict.fromkeys(row["attribute"] for row in rows)
        raise JudgeSenseError(f"{study} did not measure {name}, only {', '.join(measured)}")
    if CONSTANT not in own:
        raise JudgeSenseError(f"{study} does not have the {CONSTANT} of {name}; rerun the study")
    left_out = {CONSTANT, SINGLE} if BEST in own else {CONSTANT}
    allowed = [row for strategy, row in own.items() if strategy not in left_out]
    for row in allowed:
        if row["cost_usd"] is None and token_price is not None:
            row["cost_usd"] = row["tokens"] * token_price / 1e6
        if row["cost_usd"] is None and budget is not None:
            raise JudgeSenseError(
                f"{study} records no cost of {row['strategy']}: set --token-price, in US dollars "
                "per million tokens"
            )
    within = [row for row in allowed if budget is None or 1000 * row["cost_usd"] <= budget]
    if not within:
        least = min(1000 * row["cost_usd"] for row in allowed)
        raise JudgeSenseError(
            f"${budget:g} per 1,000 items is too little: the cheapest strategy costs ${least:g}"
        )
    cost = "tokens" if any(row["cost_usd"] is None for row in allowed) else "cost_usd"
    best = min(within, key=lambda row: (-_gain(row), row[cost], row["tokens"]))
    dearest = max(within, key=lambda row: (row[cost], row["tokens"]))
    fitted: dict[str, Any] = {field: dearest.get(field) for field in CHOICE}
    expected = float(best["accuracy"] if fitted[CHOICE[0]] is None else fitted[CHOICE[0]])
    warning = ""
    if _gain(best) <= _gain(own[CONSTANT]):
        warning = (
            "Do not rely on it: always giving the most frequent score is right "
            f"{percent(own[CONSTANT]['accuracy'])} of the time. Have people score."
        )
    elif expected < HUMAN_BELOW:
        warning = "Fewer than 30% of its scores are right. Have people score."
    elif expected < READY:
        warning = "Fewer than 65% of its scores are right. Have people review them."
    kept = ("strategy", "judge", "accuracy", "ci_low", "ci_high", "near", "calls", "n_items")
    return Reckoning(
        attribute=name,
        cost_usd=None if best["cost_usd"] is None else 1000 * best["cost_usd"],
        too_dear=tuple(
            row["strategy"] for row in allowed if row not in within and _gain(row) > _gain(best)
        ),
        warning=warning,
        **fitted,
        **{field: best[field] for field in kept},
    )


def _gain(row: Mapping[str, Any]) -> float:
    """The gain over the mean single judge, rounded so that equal strategies are equal."""
    return round(float(row["gain"]), 9)


class _Row(OwnShape):
    """A strategy on an attribute, as `mitigations_table` writes it."""

    attribute: str
    strategy: str
    judge: str
    accuracy: float
    ci_low: float | None
    ci_high: float | None
    gain: float
    near: float
    calls: float
    tokens: float
    cost_usd: float | None
    n_items: int
    choice_accuracy: float | None
    choice_low: float | None
    choice_high: float | None


class _Rows(OwnShape):
    rows: list[_Row]


class _Tables(OwnShape):
    mitigations: _Rows


class _Study(OwnShape):
    tables: _Tables


def _rows(study: Path) -> list[dict[str, Any]]:
    path = study / RESULT_FILE
    what = "finished study of paraphrase robustness"
    try:
        result = parse_json(file_bytes(path), str(path), finite=True)
    except OSError as error:
        raise JudgeSenseError(f"{study} holds no {what} ({path.name})") from error
    rows = fit(_Study, result, str(path), f"a {what}").tables.mitigations.rows
    return [row.model_dump() for row in rows]
