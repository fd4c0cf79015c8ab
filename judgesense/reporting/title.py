"""The title of a report: its conclusion in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgesense.measure.card import clause
from judgesense.measure.figures import HumanAgreement
from judgesense.measure.people import GOLD, MAJORITY, within_one
from judgesense.reporting.case import Case, reasons
from judgesense.reporting.sentences import distance
from judgesense.statistics.selection import largest
from judgesense.text import brackets, join, number, percent, plural_s, sentence, span

MOST_SHOWN = 4
"""Names in a title, and remedies on the first screen."""

LONGEST_TITLE = 240

_LUCK = 0.01
"""The least that the best of several judges owes to luck, to be said."""


def title(cases: Sequence[Case], unfinished: bool = False) -> str:
    """The conclusion on some cases: how often they are right, or which to use for which task."""
    text = (None if unfinished else _accuracy(cases)) or _conclusion(cases)
    return f"So far: {text[:1].lower()}{text[1:]}" if unfinished and cases else text


def _labels(case: Case) -> list[HumanAgreement]:
    """The labels that a title is about; two people who often differ count one by one."""
    if not case.entry.people:
        return []
    first, *persons = case.entry.people
    between = first.between_people
    two = between is not None and between.people == 2 and between.ties
    return [row for row in (persons if two else [first]) if row.accuracy_ci_low is not None]


def _accuracy(cases: Sequence[Case]) -> str | None:
    """How often judges that were asked under one wording are right, best first.

    None where wordings are compared, or without labels.
    """
    if any(case.entry.card.checks["steady"].state != "unmeasured" for case in cases):
        return None
    entries = [(case, labels) for case in cases for labels in _labels(case)]
    entries.sort(key=lambda pair: -(pair[1].accuracy or 0.0))
    parts: list[str] = []
    constants: dict[str | None, list[float]] = {}
    several = len({case.task for case in cases}) > 1
    for case, labels in entries[:MOST_SHOWN]:
        ends = brackets(labels.accuracy_ci_low, labels.accuracy_ci_high, percent)
        human = labels.human.rpartition(".")[2]
        whose = "" if human in (GOLD, MAJORITY, "label") else f" by {human}"
        of = f" of the {labels.n} labels{whose}"
        where = f" on {case.task}" if several else ""
        text = f"{case.name}{where} matches {percent(labels.accuracy)}"
        text += f" {ends}{'' if of in ''.join(parts) else of}"
        if (near := within_one(labels)) is not None:
            text += f" and is within one point on {percent(near)}"
        if labels.weighted:
            text += ", weighted by how the items were picked"
        if labels.kappa is not None:
            ends = brackets(labels.kappa_ci_low, labels.kappa_ci_high, lambda x: number(x, 2))
            text += f" (κ {number(labels.kappa, 2)} {ends})".replace(" [–]", "")
        parts.append(text)
        constants.setdefault(labels.constant_label, []).append(labels.constant_accuracy or 0.0)
    if not several and (chosen := _chosen([labels for _, labels in entries])):
        parts.append(chosen)
    if len(constants) == 1:
        ((label, shares),) = constants.items()
        parts.append(f"always answering {label!r} matches {span(shares, percent)}")
    if len(entries) == 1:
        ((case, labels),) = entries
        card = case.entry.card
        details = card.checks["right"].details
        low, high = details.get("beats_constant_ci_low"), details.get("beats_constant_ci_high")
        if low is not None and high is not None:
            how = "reliably " if low > 0 or high < 0 else "not reliably "
            how += "less" if high < 0 else "more"
            share = percent(labels.constant_accuracy)
            parts = [
                f"{parts[0]}. That is {how} often than always answering "
                f"{labels.constant_label!r} would ({share})"
            ]
        if far := distance(case.entry.people[0].between_people):
            parts.append(far)
        if case.trust == "avoid":
            parts.append(f"do not use it: {next(reasons(card))}")
    return ". ".join(map(sentence, parts)) or None


def _chosen(rows: Sequence[HumanAgreement]) -> str | None:
    """What the first of several judges is likely to reach on other items; None if as much as here.

    Errors of judges are taken as independent, of which most choice by luck can be made.
    """
    if len(rows) < 2 or len({row.human for row in rows}) > 1:
        return None
    best = largest(
        [row.accuracy for row in rows],
        [row.accuracy_ci_low for row in rows],
        [row.accuracy_ci_high for row in rows],
        np.eye(len(rows)),
    )
    if (rows[0].accuracy or 0.0) - best.estimate < _LUCK:
        return None
    return (
        f"the first of {len(rows)} was chosen by these labels: on others it would match about "
        f"{percent(best.estimate)}"
    )


def _conclusion(cases: Sequence[Case]) -> str:
    """Which judge to use for which task, and which not."""
    if not cases:
        return "JudgeSense report"
    judges = list(dict.fromkeys(case.name for case in cases))
    usable = list(dict.fromkeys(case.name for case in cases if case.usable))
    alone = len(judges) == 1
    parts = []
    for word, care in (("use", ""), ("care", " with care")):
        alike: dict[tuple[str, str], list[Case]] = {}
        for case in cases:
            if case.usable == word:
                only = ""
                if case.change:
                    other = "avoid it" if case.trust == "avoid" else "its trust value is unknown"
                    only = f" (only with the remedy {case.change!r}; otherwise {other})"
                alike.setdefault((only, "" if alone else case.task), []).append(case)
        for (only, _), group in alike.items():
            who = judges if alone else [case.name for case in group]
            parts.append(f"{_for(group)}, use {_some(who, 'or')}{care}{only}")
    for trust, lead, yet in (("avoid", "do not use", ""), ("unknown", "do not rely on", " yet")):
        left = [case for case in cases if alone and not case.usable and case.trust == trust]
        if left:
            why = dict.fromkeys(reason for case in left for reason in reasons(case.entry.card))
            if all(case.entry.card.checks["right"].state == "unmeasured" for case in left):
                why = {clause("right", "unmeasured", None): None, **why}
            parts.append(f"{_for(left)}, {lead} {judges[0]}{yet}: {join(list(why)[:2])}")
    if not parts:
        unknown = any(case.trust == "unknown" for case in cases)
        passes = "is known to be usable yet" if unknown else "passes"
        return f"None of {len(judges)} judges {passes}"
    if 0 < len(usable) < len(judges):
        parts = [*parts[:MOST_SHOWN], "no other judge passes yet"]
    text = ". ".join(map(sentence, parts))
    if len(text) > LONGEST_TITLE and not alone:
        return (
            f"{len(usable)} of {len(judges)} judges are usable for a task: {_some(usable, 'and')}"
        )
    return text


def _for(cases: Sequence[Case]) -> str:
    """The tasks of some cases: ``for the factuality and relevance tasks``."""
    tasks = list(dict.fromkeys(case.task for case in cases))
    return f"for the {join(tasks)} task{plural_s(len(tasks))}"


def _some(names: Sequence[str], word: str) -> str:
    """The first names, and how many more there are."""
    more = len(names) - MOST_SHOWN
    return join([*names[:MOST_SHOWN], *([f"{more} more"] if more > 0 else [])], word)
