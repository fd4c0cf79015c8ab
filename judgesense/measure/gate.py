"""The gate: whether a judge's JSS lies above a threshold, as far as its trust card tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from judgesense.measure.card import TrustCard
from judgesense.measure.thresholds import LEAST_COVERAGE, LOW_KAPPA
from judgesense.text import interval, number, percent

Decision = Literal["PASS", "FAIL", "INCONCLUSIVE"]


@dataclass(frozen=True)
class Gate:
    """Whether a judge's JSS lies above a threshold, as far as the interval tells.

    ``because`` says why in one sentence without its full stop. ``cause`` names it for programs:
    ``steady`` or another check of the card, ``failed`` (prompts without an answer), ``coverage``
    (too few pairs with two verdicts) or ``one_label``.
    """

    decision: Decision
    cause: str
    because: str

    @property
    def text(self) -> str:
        """The decision and why.

        >>> Gate("FAIL", "failed", "3 prompts have no answer").text
        'FAIL: 3 prompts have no answer'
        """
        return f"{self.decision}: {self.because}"


def combined(gates: Sequence[Gate]) -> Gate:
    """The worst decision of some gates, and what each of those that decide so says.

    >>> combined([Gate("PASS", "right", "no worse"), Gate("FAIL", "readable", "too few")]).text
    'FAIL: too few'
    """
    order: tuple[Decision, ...] = ("FAIL", "INCONCLUSIVE", "PASS")
    worst = min((gate.decision for gate in gates), key=order.index)
    deciding = [gate for gate in gates if gate.decision == worst]
    return Gate(worst, deciding[0].cause, ". ".join(gate.because for gate in deciding))


def gate(
    card: TrustCard,
    *,
    failed: int = 0,
    coverage: float | None = 1.0,
    constant: bool = False,
) -> Gate:
    """The gate's verdict on a judge.

    PASS if the card's check `steady` passes (the whole interval of JSS lies above the threshold)
    and no check of the card but `resistant` fails; where people's labels show whether the judge is
    right, `notices` may fail, too; where they do not and damage was tried, it has to pass. FAIL
    if one fails (for `steady`: the whole interval lies below the threshold), if a prompt has no
    answer, if fewer than half of the pairs got two verdicts, or if a judge gave one label
    throughout where the gold labels differ.
    INCONCLUSIVE otherwise, also if nearly all verdicts are one label and no other check shows that
    the judge reads what it judges.

    Args:
        card: the judge's trust card.
        failed: prompts without an answer.
        coverage: share of the planned pairs with two verdicts; None without any pair.
        constant: whether the judge gave one label, or took one option, throughout.
    """
    steady = card.checks["steady"]
    if failed:
        return Gate("FAIL", "failed", f"{failed} prompts have no answer")
    if coverage is not None and coverage < LEAST_COVERAGE:
        return Gate("FAIL", "coverage", f"only {percent(coverage)} of the pairs got two verdicts")
    excused = ["steady", "resistant"]
    if card.checks["right"].state != "unmeasured":
        excused.append("notices")  # People's labels count for more.
    for name, check in card.checks.items():
        if name not in excused and check.state == "fail":
            return Gate("FAIL", name, check.text)
    if steady.estimate is None:
        return Gate("INCONCLUSIVE", "steady", steady.text)
    figures = f"JSS {number(steady.estimate)} {interval(steady.ci_low, steady.ci_high)}"
    if constant and any(card.checks[name].estimate is not None for name in ("right", "fair")):
        text = f"{figures} comes from a judge that always gives the same label or option"
        return Gate("FAIL", "one_label", text)
    if steady.state == "fail":
        return Gate("FAIL", "steady", f"{figures} is below {steady.threshold:g}")
    if steady.state == "open":
        return Gate("INCONCLUSIVE", "steady", steady.text)
    notices = card.checks["notices"]
    was_tried = notices.state == "open" or "kinds" in notices.details
    if "notices" not in excused and was_tried and notices.state != "pass":
        return Gate("INCONCLUSIVE", "notices", notices.text)
    text = f"{figures} is above {steady.threshold:g}"
    reads = any(card.checks[name].state == "pass" for name in ("right", "responsive", "notices"))
    if (steady.details["kappa"] or 0.0) <= LOW_KAPPA and not reads:
        text += (
            ", but nearly all verdicts are one label: a judge that ignores the items would be just "
            "as steady"
        )
        return Gate("INCONCLUSIVE", "one_label", text)
    return Gate("PASS", "steady", text)
