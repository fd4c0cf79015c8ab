"""The verdict of a gate: PASS, FAIL or INCONCLUSIVE, from a trust card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judgesense.text import interval, number, percent
from judgesense.trust.settle import Plan
from judgesense.trust.thresholds import LEAST_COVERAGE, LOW_KAPPA

Decision = Literal["PASS", "FAIL", "INCONCLUSIVE"]


@dataclass(frozen=True)
class Gate:
    """Whether a judge's JSS lies above a threshold, as far as the interval tells.

    ``because`` says why in one sentence without its full stop. ``cause`` names it for programs:
    ``steady`` or another check of the card, ``failed`` (prompts without an answer), ``coverage``
    (too few pairs with two verdicts) or ``one_label``. ``plan`` is what settles it, with
    INCONCLUSIVE because of ``steady``.
    """

    decision: Decision
    cause: str
    because: str
    plan: Plan | None = None

    @property
    def text(self) -> str:
        """The decision and why.

        >>> Gate("FAIL", "failed", "3 prompts have no answer").text
        'FAIL: 3 prompts have no answer'
        """
        return f"{self.decision}: {self.because}"


def gate(
    card: Mapping[str, Any],
    *,
    failed: int = 0,
    coverage: float | None = 1.0,
    constant: bool = False,
) -> Gate:
    """The gate's verdict on a judge.

    PASS if the card's check `steady` passes (the whole interval of JSS lies above the threshold)
    and no check of the card fails. FAIL if a check fails (for `steady`: the whole interval lies
    below the threshold), if a prompt has no answer, if fewer than half of the pairs got two
    verdicts, or if a judge gave one label throughout where the gold labels differ. INCONCLUSIVE
    otherwise, also if nearly all verdicts are one label and no other check shows that the judge
    reads what it judges.

    Args:
        card: an entry of ``trust`` in ``report.json``.
        failed: prompts without an answer.
        coverage: share of the planned pairs with two verdicts; None without any pair.
        constant: whether the judge gave one label, or took one option, throughout.

    >>> check = {"state": "pass", "estimate": 0.95, "ci_low": 0.9, "ci_high": 0.98,
    ...          "threshold": 0.8, "n_items": 60, "text": "JSS 0.950", "applies": True}
    >>> check["details"] = {"kappa": 0.9}
    >>> gate({"checks": {"steady": check}}).text
    'PASS: JSS 0.950 [0.900, 0.980] is above 0.8'
    """
    checks: Mapping[str, Mapping[str, Any]] = card["checks"]
    steady = checks["steady"]
    if failed:
        return Gate("FAIL", "failed", f"{failed} prompts have no answer")
    if coverage is not None and coverage < LEAST_COVERAGE:
        told = "no pair of wordings got two verdicts, so JSS is undefined"
        if steady["estimate"] is not None:
            told = f"only {percent(coverage)} of the pairs got two verdicts (JSS "
            told += f"{number(steady['estimate'])} covers only these)"
        return Gate("FAIL", "coverage", told)
    for name, check in checks.items():
        if name != "steady" and check["state"] == "fail":
            return Gate("FAIL", name, check["text"])
    if steady["estimate"] is None:
        return Gate("INCONCLUSIVE", "steady", steady["text"])
    figures = f"JSS {number(steady['estimate'])} {interval(steady)}"
    threshold = f"{steady['threshold']:g}"
    if constant and any(checks[name]["estimate"] is not None for name in ("right", "fair")):
        return Gate(
            "FAIL", "one_label",
            f"JSS {number(steady['estimate'])} says nothing about a judge that always gives one "
            "label, or always the option shown first",
        )  # fmt: skip
    if steady["state"] == "fail":
        return Gate("FAIL", "steady", f"{figures} is below {threshold}")
    if steady["state"] == "open":
        told = "has no interval, which one item alone cannot give"
        if steady["ci_low"] is not None:
            told = f"does not settle whether it is above {threshold}"
        return _open(f"{figures} {told}", steady["details"], steady["n_items"])
    kappa = steady.get("details", {}).get("kappa")
    reads = any(checks[name]["state"] == "pass" for name in ("right", "responsive")
                if name in checks)  # fmt: skip
    if (kappa is None or kappa <= LOW_KAPPA) and not reads:
        return Gate(
            "INCONCLUSIVE", "one_label",
            f"{figures} is above {threshold}, but nearly all verdicts are one label: a judge that "
            "does not read would be as steady",
        )  # fmt: skip
    return Gate("PASS", "steady", f"{figures} is above {threshold}")


def _open(told: str, details: Mapping[str, Any], n_items: int) -> Gate:
    if "items_needed" not in details:
        return Gate("INCONCLUSIVE", "steady", told)
    plan = Plan.of(details)
    return Gate("INCONCLUSIVE", "steady", f"{told}; {plan.text(n_items)}", plan)
