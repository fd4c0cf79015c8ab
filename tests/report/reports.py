"""Reports as users get them, from logs made by rule, and assessments with chosen figures."""

from __future__ import annotations

from typing import Any

from judgesense.measure.assess import measure
from judgesense.measure.assessment import Assessment, Outlook
from judgesense.measure.card import CHECKS, LEADS, Check, TrustCard
from judgesense.measure.figures import Diagnostics
from judgesense.measure.planning import plan
from judgesense.reporting.report import Report

JUDGED = Diagnostics(n_planned=300, n_judged=300, n_items=100, n_prompts=300)


def report_of(*tables: Any, **options: Any) -> Report:
    """The report on a log and its pairs."""
    return Report(measure(*tables, **options))


def check(
    state: str,
    estimate: float | None = 0.85,
    low: float | None = 0.7,
    high: float | None = 0.95,
    **details: Any,
) -> Check:
    """A check of 100 items against a threshold of 0.8."""
    if state == "unmeasured":
        return Check.unmeasured(0.8, "t")
    return Check(state, estimate, low, high, 0.8, 100, "t", details={"n_wordings": 5, **details})


def card(
    trust: str, because: tuple[str, ...] = (), remedy: str | None = None, **checks: str | Check
) -> TrustCard:
    """A card whose other checks pass."""
    every = dict.fromkeys(CHECKS, check("pass"))
    for name, given in checks.items():
        every[name] = check(given) if isinstance(given, str) else given
    return TrustCard(trust, because, f"{LEADS[trust]}: t", every, remedy)


def assessment(given: TrustCard, diagnostics: Diagnostics = JUDGED, **figures: Any) -> Assessment:
    """The assessment of a judge with a card."""
    settled = plan(given.checks) if given.trust != "avoid" else None
    figures = {"cells": (), "outlook": Outlook(settled, None), **figures}
    return Assessment("r", "m@1", "t", "options", card=given, diagnostics=diagnostics, **figures)
