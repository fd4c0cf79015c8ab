"""What a check must show for a CI: ``right=0.8``, ``tone:readable=0.95``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from judgesense.errors import JudgeSenseError
from judgesense.measure.assessment import Assessment
from judgesense.measure.card import CHECKS
from judgesense.measure.figures import GroupShare, HumanAgreement, WhereWrong
from judgesense.measure.gate import Decision, Gate
from judgesense.reporting.report import Report
from judgesense.reporting.sentences import UNSEEN
from judgesense.text import join, percent

_FORM = re.compile(
    r"(?:(?P<task>.+):)?(?P<check>\w+)(?:\[(?P<group>[^\]]+)\])?\s*=\s*(?P<least>[0-9.]+%?)"
)


class Requirement(NamedTuple):
    """The least share that a check must reach, on one task or on all.

    With a ``group``, such as ``language=de``, only its items count; the check is then `right`.
    """

    check: str
    least: float
    task: str | None = None
    group: str | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """``task:check[group]=share``. Raises JudgeSenseError for another text.

        >>> Requirement.parse("tone:right=80%")
        Requirement(check='right', least=0.8, task='tone', group=None)
        >>> Requirement.parse("right[language=de]=0.8").group
        'language=de'
        """
        match = _FORM.fullmatch(text.strip())
        least = match and float(match["least"].rstrip("%")) / (100 if "%" in match["least"] else 1)
        known = match is not None and match["check"] in (("right",) if match["group"] else CHECKS)
        if match is None or not known or least is None or not 0 <= least <= 1:
            raise JudgeSenseError(
                f"--require {text}: expected CHECK=SHARE, TASK:CHECK=SHARE or "
                "right[COLUMN=VALUE]=SHARE, such as right=0.8; "
                f"the checks are {', '.join(CHECKS)}"
            )
        return cls(match["check"], least, match["task"], match["group"])


def required(report: Report, requirements: Sequence[Requirement]) -> Gate:
    """The decision on some requirements: FAIL if one is reliably missed, PASS if all are reached.

    A share is reached if its whole interval is, and missed if none of it is, at an error divided
    among the requirements of all tasks. ``right`` is the share of items on which the judge agrees
    with people, of which those that people tie on count in part. Raises JudgeSenseError for an
    unknown task.
    """
    from scipy.special import ndtri

    outcomes: list[tuple[Decision, str, str]] = []
    n = sum(entry.task == r.task for r in requirements for entry in report.assessments if r.task)
    n += len(report.assessments) * sum(r.task is None for r in requirements)
    # One task that is missed fails all, so the error of 2.5% is divided among them.
    wider = float(ndtri(1 - 0.025 / max(n, 1)) / ndtri(0.975))
    for requirement in requirements:
        entries = [entry for entry in report.assessments if requirement.task in (None, entry.task)]
        if not entries:
            tasks = ", ".join(dict.fromkeys(entry.task for entry in report.assessments))
            raise JudgeSenseError(f"--require: no task {requirement.task!r}; choose from {tasks}")
        for entry in entries:
            check, people = entry.card.checks[requirement.check], entry.people
            share, low, high = check.estimate, check.ci_low, check.ci_high
            name = requirement.check
            if requirement.group is not None:
                name = f"{name} of {requirement.group}"
                group = _group(entry.where_wrong, requirement.group)
                share, low, high = group.estimate, group.ci_low, group.ci_high
            elif requirement.check == "right":
                share, low, high = (None, None, None) if not people else right_share(people[0])
                if people and people[0].accuracy_with_ties is not None:
                    name += " (ties of people in part)"
            decision: Decision = "INCONCLUSIVE"
            picked = requirement.check == "right" and check.details.get("picked_labels", False)
            if requirement.check == "right" and _is_part(entry):
                name += " of the labelled items"
            if picked:
                name += ", which are no random part,"
            elif low is not None and low >= requirement.least:
                decision = "PASS"
            elif (
                high is not None
                and share is not None
                and share + wider * (high - share) < requirement.least
            ):
                decision = "FAIL"
            ends = "" if low is None or high is None else f" [{percent(low)}, {percent(high)}]"
            shown = "not measured" if share is None else f"{percent(share)}{ends}"
            text = f"{entry.task}: {name} is {shown}, {percent(requirement.least)} is required"
            if decision == "PASS" and requirement.check == "right":
                text += f", {UNSEEN}"
            outcomes.append((decision, requirement.check, text))
    order: list[Decision] = ["FAIL", "INCONCLUSIVE", "PASS"]
    decision, cause, because = min(outcomes, key=lambda outcome: order.index(outcome[0]))
    return Gate(decision, cause, because)


def right_share(row: HumanAgreement) -> tuple[float | None, float | None, float | None]:
    """The share of labelled items on which a judge is right, and its interval.

    Items on which people tie are the hard ones: without them the share would be too high.
    """
    if row.accuracy_with_ties is not None:
        return row.accuracy_with_ties, row.with_ties_ci_low, row.with_ties_ci_high
    return row.accuracy, row.accuracy_ci_low, row.accuracy_ci_high


def _is_part(entry: Assessment) -> bool:
    """Whether people labelled some of the items only, of which a share then tells."""
    if not entry.people:
        return False
    first = entry.people[0]
    ties = 0 if first.between_people is None else first.between_people.ties
    return first.n_items + ties < entry.card.checks["readable"].n_items


def _group(found: WhereWrong | None, wanted: str) -> GroupShare:
    """A group of items with people's labels. Raises JudgeSenseError if there is none."""
    groups = found.shares if found is not None and found.measure == "right" else ()
    for group in groups:
        if wanted in (group.name, f"{group.by}={group.name}"):
            return group
    known = join([f"{group.by}={group.name}" for group in groups[:6]]) or "none with labels"
    raise JudgeSenseError(f"--require: no group {wanted!r} of items; the groups are {known}")
