"""The gate's three verdicts."""

from __future__ import annotations

import pytest

from judgesense.measure.card import CHECKS, Check, conclude
from judgesense.measure.gate import gate


def card(state: str, low: float | None, high: float | None, kappa: float | None = 0.9, **others):
    """A trust card with a JSS of 0.85 and the states of other checks."""
    checks = dict.fromkeys(CHECKS, Check.unmeasured(0.5, "not measured"))
    for name, other in others.items():
        checks[name] = Check(other, 0.5, None, None, 0.5, 60, f"{name} is {other}")
    details = {"kappa": kappa}
    steady = Check(state, 0.85, low, high, 0.8, 60, "JSS 0.850", details=details)
    return conclude({**checks, "steady": steady})


@pytest.mark.parametrize(
    ("given", "facts", "decision", "cause"),
    [
        (card("pass", 0.81, 0.9), {}, "PASS", "steady"),
        (card("open", 0.7, 0.9), {}, "INCONCLUSIVE", "steady"),
        (card("open", None, None), {}, "INCONCLUSIVE", "steady"),
        (card("fail", 0.5, 0.7), {}, "FAIL", "steady"),
        (card("pass", 0.81, 0.9, right="fail"), {}, "FAIL", "right"),
        (card("open", 0.7, 0.9, fair="fail"), {}, "FAIL", "fair"),
        (card("pass", 0.81, 0.9, notices="fail"), {}, "FAIL", "notices"),
        (card("pass", 0.81, 0.9, notices="fail", right="pass"), {}, "PASS", "steady"),
        # Without labels, damage that was tried has to tell something; with labels, it need not.
        (card("pass", 0.81, 0.9, notices="open"), {}, "INCONCLUSIVE", "notices"),
        (card("pass", 0.81, 0.9, notices="open", right="pass"), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, notices="pass"), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9), {"failed": 2}, "FAIL", "failed"),
        (card("pass", 0.81, 0.9), {"coverage": 0.49}, "FAIL", "coverage"),
        (card("pass", 0.81, 0.9), {"coverage": 0.5}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, kappa=None), {}, "INCONCLUSIVE", "one_label"),
        (card("pass", 0.81, 0.9, kappa=0.2), {}, "INCONCLUSIVE", "one_label"),
        (card("pass", 0.81, 0.9, kappa=0.21), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, kappa=0.1, right="pass"), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, None, right="open"), {"constant": True}, "FAIL", "one_label"),
    ],
)
def test_the_gate_follows_the_card(given, facts, decision, cause) -> None:
    found = gate(given, **facts)
    assert (found.decision, found.cause) == (decision, cause)
    assert found.text.startswith(f"{decision}: ")
