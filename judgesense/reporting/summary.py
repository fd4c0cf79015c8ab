"""The first screen of a report: may you use the judge, for what, and with which change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.decisions.view import BASELINES
from judgesense.run_folder.report import Key, identity, main_cells, task_rank
from judgesense.text import brackets, join, percent, short_names, span
from judgesense.trust.card import TRUST
from judgesense.trust.rules import AS_ASKED

Data = dict[str, Any]
Entry = Mapping[str, Any]

_SETTLE = {
    "readable": "readable share not settled yet",
    "steady": "steadiness not settled yet",
    "responsive": "may ignore what is asked",
    "right": "better than chance not settled",
    "fair": "effect of order not settled",
}
_MISSING = {
    "readable": "no answer to read",
    "steady": "fewer than two wordings compared",
    "responsive": "no contrast wording was asked",
    "right": "no gold labels to compare",
    "fair": "asked in one order only",
}


class ReportCase:
    """One card, and what a report has on the same judge, task and scoring."""

    def __init__(self, report: Mapping[str, Any], card: Entry) -> None:
        self.card = card
        self.key: Key = identity(card)
        _, self.judge, self.task, self.scoring = self.key
        self.name = self.judge
        self.checks: Mapping[str, Entry] = card["checks"]
        self.remedies = self._own(report["remedies"])
        self.wordings = self._own(report["wordings"])
        self.named = next(iter(self._own(report["recommendation"])), None)
        self.cell = main_cells(report).get(self.key, {}).get("mapped", {})
        wanted = card.get("remedy")
        self.remedy = next(
            (row for row in self.remedies if row["remedy"] == wanted != AS_ASKED), None
        )

    @property
    def maybe(self) -> list[str]:
        """The changes of which it is not known whether they make it usable, the cheapest first."""
        return [
            row["remedy"]
            for row in self.remedies
            if row["trust"] == "unknown" and row["remedy"] != AS_ASKED
        ]

    def _own(self, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if identity(entry) == self.key]

    @property
    def trust(self) -> str:
        """``use``, ``care``, ``avoid`` or ``unknown``."""
        return str(self.card["trust"])

    @property
    def usable(self) -> str | None:
        """``use`` or ``care`` if it can be used, with its remedy if it has one."""
        if self.trust in ("use", "care"):
            return self.trust
        return str(self.remedy["trust"]) if self.remedy else None

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key: what can be used first, then the better check `right`."""
        word = TRUST.index(self.usable or self.trust)
        readable, right = (self.checks[name]["estimate"] for name in ("readable", "right"))
        return word, TRUST.index(self.trust), -(right or 0.0), -(readable or 0.0)

    def row(self) -> Data:
        """The row of the table."""
        right, checks = self.checks["right"], self.checks
        known = right["details"]
        first = self.cell.get("first_position_rate")
        return {
            "key": self.key,
            "judge": self.name,
            "task": self.task,
            "scoring": self.scoring,
            "trust": self.trust,
            "text": self.card["text"],
            "why": self.reason(),
            "remedy": self.remedy["remedy"] if self.remedy else None,
            "after": self.remedy["trust"] if self.remedy else None,
            "bars": [
                _bar("same verdict after rewording", checks["steady"], "steady"),
                _bar(
                    "right",
                    {
                        **right,
                        "estimate": known.get("accuracy"),
                        "ci_low": known.get("accuracy_ci_low"),
                        "ci_high": known.get("accuracy_ci_high"),
                        "threshold": known.get("constant_accuracy"),
                    },
                    "right",
                    f"; a constant answer {percent(known.get('constant_accuracy'))}",
                ),
                _bar(
                    "same choice in both orders",
                    checks["fair"],
                    "fair",
                    "" if first is None else f"; takes the first {percent(first)}",
                ),
            ],
            "readable": percent(checks["readable"]["estimate"]),
            "n_items": checks["readable"]["n_items"],
        }

    def chip(self) -> Data:
        """Its place in the matrix."""
        change = f"{self.remedy['trust']} with {self.remedy['remedy']}" if self.remedy else None
        return {"trust": self.trust, "text": self.card["text"], "remedy": change}

    def reason(self) -> str:
        """The worst reason in about six words."""
        return next(reasons(self.card), "passes every check that applies")


def reasons(card: Entry) -> Iterator[str]:
    """Why a trust card does not say `use`, worst first, each in about six words."""
    for name in card["because"]:
        check = card["checks"][name]
        share = percent(check["estimate"])
        if check["state"] == "open":
            yield _SETTLE[name]
        elif check["state"] == "unmeasured":
            yield _MISSING[name]
        elif name == "readable":
            yield f"{share} of answers can be read"
        elif name == "steady":
            yield f"rewording changes {percent(1 - check['estimate'])} of verdicts"
        elif name == "fair":
            yield f"same choice in both orders: {share}"
        else:
            yield {
                "right": "hardly more right than by chance",
                "responsive": "ignores what the question asks",
            }[name]


def _bar(name: str, check: Entry, key: str, more: str = "") -> Data:
    """A figure from 0 to 1 with its interval, in percent of the bar, and its reference line."""
    value = check["estimate"]
    if value is None:
        said = "does not apply" if not check["applies"] else "not measured"
        return {"name": name, "value": None, "said": said, "why": _MISSING[key], "tone": ""}
    low, high = check["ci_low"], check["ci_high"]
    needs = "" if key == "right" else f"; needs {percent(check['threshold'])}"
    return {
        "name": name,
        "value": 100 * value,
        "low": 100 * (value if low is None else low),
        "width": 100 * ((value if high is None else high) - (value if low is None else low)),
        "line": None if check["threshold"] is None else 100 * check["threshold"],
        "said": percent(value),
        "interval": brackets(low, high, percent),
        "why": f"{check['n_items']} items{needs}{more}",
        "tone": check["state"],
    }


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


MOST_WORDINGS = 8
"""More wordings than that are shown below the first screen only."""


_UNKNOWN = "DIR"
"""The folder of a run in a command of a page, which can be moved."""


def first_screen(report: Mapping[str, Any]) -> Data:
    """What the first screen shows: ``title``, ``rows``, ``others``, ``matrix`` and what to do next.

    Of a judge and task that were scored in two ways, the better one is in ``rows`` and the other
    in ``others``.
    """
    cases = [ReportCase(report, card) for card in report["trust"] if card["judge"] not in BASELINES]
    names = short_names({case.judge for case in cases})
    for case in cases:
        case.name = names[case.judge]
    cases.sort(key=lambda case: (task_rank(case.task), case.rank, case.name, case.key))
    best: dict[tuple[str, str, str], ReportCase] = {}
    for case in sorted(cases, key=lambda case: case.rank):
        best.setdefault(case.key[:3], case)
    chosen = set(map(id, best.values()))
    first = [case for case in cases if id(case) in chosen]
    unfinished = any("asked" in run and not run.get("finished") for run in report["runs"])
    title = title_of(first)
    return {
        "title": f"So far: {title[:1].lower()}{title[1:]}" if unfinished and first else title,
        "unfinished": unfinished,
        "rows": [case.row() for case in first],
        "others": [case.row() for case in cases if id(case) not in chosen],
        "matrix": _matrix(first),
        "remedies": _remedies(first),
        "wordings": list(_wordings(first)),
        "n_wordings": max((_wordings_of(case) for case in first), default=0),
        "next": _next(first),
        "one_judge": len(names) == 1,
    }


def _changed(remedy: Entry) -> str:
    """A remedy in words: what it costs, and what it buys."""
    cost = remedy["prompts_per_item"]
    said = f"{remedy['remedy']} ({cost} prompt{'' if cost == 1 else 's'} per item)"
    if remedy["accuracy"] is not None:
        said += f": right on {percent(remedy['accuracy'])}"
        said += f" instead of {percent(remedy['accuracy_before'])}"
    if remedy["gain"] is not None and remedy["gain_ci_low"] is not None:
        low, high = (f"{100 * remedy[f'gain_ci_{side}']:+.0f}" for side in ("low", "high"))
        said += f", {100 * remedy['gain']:+.0f} points [{low}, {high}]".replace("-", "\u2212")
        said += " (on items that were not used to choose it)"
    return said


def _matrix(cases: Sequence[ReportCase]) -> Data | None:
    """Judges by tasks, a trust value in each place; None for one judge."""
    judges = list(dict.fromkeys((case.key[0], case.name) for case in cases))
    if len(judges) < 2:
        return None
    tasks = list(dict.fromkeys(case.task for case in cases))
    found = {(case.key[0], case.name, case.task): case.chip() for case in cases}
    return {
        "tasks": tasks,
        "lines": [
            {"judge": judge, "cells": [found.get((run, judge, task)) for task in tasks]}
            for run, judge in judges
        ],
    }


def _remedies(cases: Sequence[ReportCase]) -> Data:
    """The changes that pass, or how many were measured without one."""
    passing = [
        {"judge": case.name, "task": case.task, "text": _changed(case.remedy)}
        for case in cases
        if case.remedy
    ]
    found = {row["remedy"] for case in cases for row in case.remedies if row["n_items"]}
    tried = sorted(found - {AS_ASKED})
    needy = [case for case in cases if case.trust in ("avoid", "unknown")]
    return {
        "passing": passing[:MOST_IN_TITLE],
        "more": len(passing) - len(passing[:MOST_IN_TITLE]),
        "tried": join(tried, "or") if tried else "",
        "maybe": sorted({name for case in needy for name in case.maybe}),
        "n_tried": len(tried),
        "needed": bool(needy),
    }


def _wordings(cases: Sequence[ReportCase]) -> Iterator[Data]:
    """The wording to use for each case that has one; cases without one are left out."""
    shown = 0
    # What can be used comes first: its wording is the one that stays in sight.
    for case in sorted(cases, key=lambda case: TRUST.index(case.usable or case.trust)):
        named = case.named
        if named is None or (named["template"] is None and case.trust == "avoid"):
            continue
        if not named["best_set"] or shown == MOST_WORDINGS:
            continue
        best = [row for row in case.wordings if row["template"] in named["best_set"]]
        best.sort(key=lambda row: (-(row["accuracy"] or 0), -(row["agreement"] or 0)))
        own = [row for row in case.wordings if row["template"] == named["template"]] or best
        if not own:
            continue
        shown += 1
        yield {
            "judge": case.name,
            "task": case.task,
            "template": own[0]["template"],
            "text": own[0]["text"],
            "is_best": named["template"] is not None,
            "equal": len(named["best_set"]),
            "said": named["text"],
        }


def _wordings_of(case: ReportCase) -> int:
    """How many wordings of one polarity were compared; 0 where none were."""
    return int(case.checks["steady"]["details"].get("n_wordings") or 0)


def next_steps(report: Mapping[str, Any], folder: str | Path | None = None) -> dict[Key, Data]:
    """The next step for each judge, task and scoring: its ``text`` and one ``command``.

    ``remedy`` says whether it makes a judge usable that is not usable as asked. ``folder`` is that
    of the run, for the command; without it, a step that needs it has the command None.
    """
    cases = [ReportCase(report, card) for card in report["trust"] if card["judge"] not in BASELINES]
    found = {}
    for case in cases:
        step = _step(case, [case.task], str(folder or _UNKNOWN))
        if folder is None and _UNKNOWN in step["command"].split():
            step |= {"command": None, "text": f"{step['text'].removesuffix(':')}."}
        found[case.key] = step
    return found


def _next(cases: Sequence[ReportCase]) -> Data | None:
    """The next step for the most usable case."""
    if not cases:
        return None
    order = {"use": 0, "care": 1, None: 2}
    case = min(cases, key=lambda case: (order[case.usable], case.rank))
    return _step(case, list(dict.fromkeys(case.task for case in cases)))


def _step(case: ReportCase, tasks: Sequence[str], folder: str = _UNKNOWN) -> Data:
    """The next step in words and as one command; another judge would be measured on ``tasks``."""
    run = shlex.quote(folder)
    who = f"--judge {shlex.quote(case.judge.partition('@')[0])}"
    task = shlex.quote(case.task)
    if case.trust not in ("use", "care") and case.remedy:
        return {
            "remedy": True,
            "text": f"Write the judge for {case.task} with this change "
            f"({case.remedy['remedy']}) to a file:",
            "command": f"judgesense stabilise {run} {who} --task {task} "
            f"--scoring {case.scoring} --out stable.yaml",
        }
    if case.trust == "use":
        return {
            "text": f"Judge your own items on {case.task}:",
            "command": f"judgesense judge ITEMS {who} --task {task} --out verdicts.jsonl",
        }
    fair = case.checks["fair"]
    if case.trust != "avoid" and fair["applies"] and fair["state"] == "unmeasured":
        return {
            "text": "Ask in both orders of the options:",
            "command": f"judgesense run {who} --tasks {task} --orders AB,BA --out DIR2",
        }
    if case.trust == "unknown" and case.checks["steady"]["state"] == "unmeasured":
        return {
            "text": "Judge the items under several wordings:",
            "command": f"judgesense run {who} --tasks {task} --templates FILE --out DIR2",
        }
    unsettled = "open" in {check["state"] for check in case.checks.values()}
    if case.trust == "unknown" or (case.trust == "care" and unsettled):
        return {
            "text": "See how many items and wordings settle it:",
            "command": f"judgesense plan {run}",
        }
    if case.trust == "care":
        return {
            "text": "Write it as a judge that asks a person where it is unsure:",
            "command": f"judgesense stabilise {run} {who} --task {task} "
            f"--scoring {case.scoring} --out stable.yaml",
        }
    others = shlex.quote(",".join(tasks))
    measure = f"easure another judge on the same task{'s' if len(tasks) > 1 else ''}:"
    maybe = next(iter(case.maybe), None)
    first = f"Judge more items: it is not known yet whether {maybe} makes it usable. Or m"
    return {
        "text": f"{'M' if maybe is None else first}{measure}",
        "command": f"judgesense run --judge ANOTHER --tasks {others} --out DIR2",
    }
