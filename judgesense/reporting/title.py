"""A report's conclusion in one sentence: the title of its page."""

from __future__ import annotations

from collections.abc import Sequence

from judgesense.reporting.case import ReportCase
from judgesense.text import join, percent, span

MOST_IN_TITLE = 4
LONGEST_TITLE = 240

_TITLE_FAILS = {
    "fair": "it follows the order of the options",
    "right": "it is hardly more right than chance",
    "responsive": "it ignores what the question asks",
}


def title_of(cases: Sequence[ReportCase]) -> str:
    """The conclusion in one sentence."""
    if not cases:
        return "JudgeSense report"
    judges = list(dict.fromkeys(case.name for case in cases))
    return _of_one(judges[0], cases) if len(judges) == 1 else _of_several(judges, cases)


def _of_one(judge: str, cases: Sequence[ReportCase]) -> str:
    usable = [case for case in cases if case.usable]
    unknown = [case for case in cases if not case.usable and case.trust == "unknown"]
    avoid = [case for case in cases if not case.usable and case.trust == "avoid"]
    parts: list[str] = []
    for word, lead in (("use", "use {} for"), ("care", "use {} with care for")):
        found = [case for case in usable if case.usable == word]
        if found:
            said = [
                case.task if case.trust in ("use", "care") or case.remedy is None
                else f"{case.task} (only with {case.remedy['remedy']})"
                for case in found
            ]  # fmt: skip
            parts.append(f"{lead.format('it' if parts else judge)} {join(said)}")
    if avoid:
        tasks = f" for {join([case.task for case in avoid])}"
        parts.append(f"do not use {'it' if parts else judge}{tasks}: {_why_not(avoid)}")
    if unknown:
        tasks = join([case.task for case in unknown])
        why = join(_common(unknown, ("steady", "right")))
        alone = f"{judge}: not known yet ({why})" if why else f"{judge}: not known yet"
        parts.append(f"{tasks}: not known yet" if parts else alone)
    text = "; ".join(parts)
    return text if text.startswith(judge) else text[:1].upper() + text[1:]


def _common(cases: Sequence[ReportCase], names: Sequence[str]) -> list[str]:
    """What is not settled yet in cases of unknown trust."""
    named = {name for case in cases for name in case.card["because"]}
    said = {"steady": "steadiness not settled", "right": "being right not settled"}
    return [said[name] for name in names if name in named]


def _why_not(cases: Sequence[ReportCase]) -> str:
    """The failed checks of cases to avoid, the two commonest ones."""
    failed = [name for case in cases for name in case.card["because"]]
    common = sorted(dict.fromkeys(failed), key=lambda name: -failed.count(name))[:2]
    first, *rest = (_fails(name, cases) for name in common)
    return join([first, *(reason.removeprefix("it ") for reason in rest)])


def _fails(name: str, cases: Sequence[ReportCase]) -> str:
    own = [case for case in cases if name in case.card["because"]]
    values = [case.checks[name]["estimate"] for case in own]
    if name == "readable":
        return f"only {span(values, percent)} of its answers can be read"
    if name == "steady":
        return f"rewording changes {span([1 - value for value in values], percent)} of its verdicts"
    first = [case.cell.get("first_position_rate") for case in own]
    known = [value for value in first if value is not None]
    if name == "fair" and known and min(known) > 0.5:
        return f"it takes the first option in {span(known, percent)} of verdicts"
    return _TITLE_FAILS[name]


def _of_several(judges: Sequence[str], cases: Sequence[ReportCase]) -> str:
    able = list(dict.fromkeys(case.name for case in cases if case.usable))
    if not able:
        unknown = any(case.trust == "unknown" for case in cases)
        return (
            f"None of {len(judges)} judges {'is known to be usable yet' if unknown else 'passes'}"
        )
    parts = []
    for word in ("use", "care"):
        found: dict[str, list[str]] = {}
        for case in cases:
            if case.usable == word:
                changed = case.remedy is not None and case.trust not in ("use", "care")
                change = f" ({case.remedy['remedy']})" if changed and case.remedy else ""
                found.setdefault(f"{case.task}{change}", []).append(case.name)
        care = " with care" if word == "care" else ""
        for task, names in found.items():
            more = len(names) - MOST_IN_TITLE
            shown = [*names[:MOST_IN_TITLE], *([f"{more} more"] if more > 0 else [])]
            parts.append(f"use {join(shown, 'or')}{care} for {task}")
    left = len(judges) - len(able)
    rest = f"; no other judge of {len(judges)} yet" if left else ""
    text = "; ".join(parts[:MOST_IN_TITLE])
    if len(text) > LONGEST_TITLE:
        over = len(able) - MOST_IN_TITLE
        named = [*able[:MOST_IN_TITLE], *([f"{over} more"] if over > 0 else [])]
        return f"{len(able)} of {len(judges)} judges are usable for a task: {join(named)}"
    return f"{text[:1].upper()}{text[1:]}{rest}"
