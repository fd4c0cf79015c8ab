"""What a check must show for a CI: ``right=0.8``, ``tone:readable=0.95``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from judgesense.errors import JudgeSenseError
from judgesense.measure.card import CHECKS, Decision, Gate
from judgesense.reporting.report import Report
from judgesense.text import percent

_FORM = re.compile(r"(?:(?P<task>.+):)?(?P<check>\w+)\s*=\s*(?P<least>[0-9.]+%?)")


class Requirement(NamedTuple):
    """The least share that a check must reach, on one task or on all."""

    check: str
    least: float
    task: str | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """``task:check=share``. Raises JudgeSenseError for another text.

        >>> Requirement.parse("tone:right=80%")
        Requirement(check='right', least=0.8, task='tone')
        """
        match = _FORM.fullmatch(text.strip())
        least = match and float(match["least"].rstrip("%")) / (100 if "%" in match["least"] else 1)
        if match is None or match["check"] not in CHECKS or least is None or not 0 <= least <= 1:
            raise JudgeSenseError(
                f"--require {text}: expected CHECK=SHARE or TASK:CHECK=SHARE, such as right=0.8; "
                f"the checks are {', '.join(CHECKS)}"
            )
        return cls(match["check"], least, match["task"])


def required(report: Report, requirements: Sequence[Requirement]) -> Gate:
    """The decision on some requirements: FAIL if one is reliably missed, PASS if all are reached.

    A share is reached if its whole interval is, and missed if none of it is. ``right`` is the share
    of items on which the judge agrees with people. Raises JudgeSenseError for an unknown task.
    """
    outcomes: list[tuple[Decision, str, str]] = []
    for requirement in requirements:
        entries = [entry for entry in report.assessments if requirement.task in (None, entry.task)]
        if not entries:
            tasks = ", ".join(dict.fromkeys(entry.task for entry in report.assessments))
            raise JudgeSenseError(f"--require: no task {requirement.task!r}; choose from {tasks}")
        for entry in entries:
            check, people = entry.card.checks[requirement.check], entry.people
            share, low, high = check.estimate, check.ci_low, check.ci_high
            if requirement.check == "right":
                share, low, high = (
                    (people[0].accuracy, people[0].accuracy_ci_low, people[0].accuracy_ci_high)
                    if people
                    else (None, None, None)
                )
            decision: Decision = "INCONCLUSIVE"
            if low is not None and low >= requirement.least:
                decision = "PASS"
            elif high is not None and high < requirement.least:
                decision = "FAIL"
            ends = "" if low is None or high is None else f" [{percent(low)}, {percent(high)}]"
            shown = "not measured" if share is None else f"{percent(share)}{ends}"
            outcomes.append(
                (
                    decision,
                    requirement.check,
                    f"{entry.task}: {requirement.check} is {shown}, "
                    f"{percent(requirement.least)} is required",
                )
            )
    order: list[Decision] = ["FAIL", "INCONCLUSIVE", "PASS"]
    decision, cause, because = min(outcomes, key=lambda outcome: order.index(outcome[0]))
    return Gate(decision, cause, because)
