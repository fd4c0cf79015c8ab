"""The first screen of a report: may you use the judge, for what, and with which change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.log.view import BASELINES
from judgesense.measure.card import TRUST, clause
from judgesense.measure.people import GOLD, MAJORITY
from judgesense.measure.report_file import Key, identity, main_cells, task_rank
from judgesense.recipes.recipe import AS_ASKED
from judgesense.tasks import is_scale
from judgesense.text import (
    brackets,
    join,
    middle_cut,
    number,
    percent,
    s,
    sentence,
    short_names,
    span,
)

Data = dict[str, Any]
Entry = Mapping[str, Any]

MOST_WORDINGS = 8
"""More wordings than that are shown below the first screen only."""

MOST_IN_TITLE = 4
LONGEST_TITLE = 240


class Case:
    """A trust card, and what its report has on the same judge, task and scoring.

    ``judge`` is the whole name, ``name`` the one that is shown. ``usable`` is ``use`` or ``care``
    if the judge can be used, with ``remedy`` if it has one.
    """

    def __init__(self, report: Mapping[str, Any], card: Entry) -> None:
        self.card = card
        self.key: Key = identity(card)
        _, self.judge, self.task, self.scoring = self.key
        self.name = self.judge
        self.trust: str = card["trust"]
        self.checks: Mapping[str, Entry] = card["checks"]
        lists = dict[str, list[Any]]()
        for name in ("remedies", "wordings", "recommendation", "people"):
            lists[name] = []
            for entry in report[name]:
                if identity(entry) == self.key:
                    lists[name].append(entry)
        self.remedies, self.wordings, self.recommendation, self.people = lists.values()
        self.cell = main_cells(report).get(self.key, {}).get("mapped", {})
        self.remedy: Entry | None = None
        for row in self.remedies:
            if row["remedy"] == card.get("remedy") != AS_ASKED:
                self.remedy = row
        self.usable: str | None = self.trust if self.trust in ("use", "care") else None
        self.change: str | None = None
        """What makes a judge usable that is not usable as asked."""
        if self.usable is None and self.remedy:
            self.usable, self.change = str(self.remedy["trust"]), str(self.remedy["remedy"])
        word = TRUST.index(self.usable or self.trust)
        readable, right = self.checks["readable"]["estimate"], self.checks["right"]["estimate"]
        self.rank = (word, TRUST.index(self.trust), -(right or 0.0), -(readable or 0.0))
        """Sort key: what can be used first, then the better check `right`."""

    def row(self) -> Data:
        """The row of the table."""
        right, checks = self.checks["right"], self.checks
        known, first = right["details"], self.cell.get("first_position_rate")
        accuracy = {
            **right,
            "estimate": known.get("accuracy"),
            "ci_low": known.get("accuracy_ci_low"),
            "ci_high": known.get("accuracy_ci_high"),
            "threshold": known.get("constant_accuracy"),
        }
        constant = f"; a constant answer is right on {percent(known.get('constant_accuracy'))}"
        taken = "" if first is None else f"; takes the first option {percent(first)} of the time"
        return {
            "key": self.key,
            "judge": self.name,
            "task": self.task,
            "scoring": self.scoring,
            "trust": self.trust,
            "text": self.card["text"],
            "why": next(reasons(self.card), "passes every check that applies"),
            "remedy": self.remedy["remedy"] if self.remedy else None,
            "after": self.remedy["trust"] if self.remedy else None,
            "bars": [
                _bar("same verdict after rewording", checks["steady"], "steady"),
                _bar("right", accuracy, "right", constant),
                _bar("same choice in both orders", checks["fair"], "fair", taken),
            ],
            "readable": percent(checks["readable"]["estimate"]),
            "n_items": checks["readable"]["n_items"],
        }


def reasons(card: Entry) -> Iterator[str]:
    """Why a trust card does not say `use`, worst first, each in a few words."""
    for name in card["because"]:
        yield clause(name, card["checks"][name]["state"], card["checks"][name]["estimate"])


def _bar(name: str, check: Entry, key: str, more: str = "") -> Data:
    """A figure from 0 to 1 with its interval, in percent of the bar, and its reference line."""
    value = check["estimate"]
    if value is None:
        said = "does not apply" if not check["applies"] else "not measured"
        return {
            "name": name,
            "value": None,
            "said": said,
            "why": clause(key, "unmeasured", None),
            "tone": "",
        }
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


def first_screen(report: Mapping[str, Any]) -> Data:
    """What the first screen shows: ``title``, ``rows``, ``others``, ``matrix`` and what to do next.

    Of a judge and task that were scored in two ways, the better one is in ``rows`` and the other
    in ``others``.
    """
    cases = [Case(report, card) for card in report["trust"] if card["judge"] not in BASELINES]
    names = short_names({case.judge for case in cases})
    for case in cases:
        case.name = middle_cut(names[case.judge])
    cases.sort(key=lambda case: (task_rank(case.task), case.rank, case.name, case.key))
    best: dict[tuple[str, str, str], Case] = {}
    for case in sorted(cases, key=lambda case: case.rank):
        best.setdefault(case.key[:3], case)
    unfinished, n_wordings = False, 0
    for run in report["runs"]:
        unfinished |= "asked" in run and not run.get("finished")
    first, shown, others = [], list[Data](), list[Data]()
    for case in cases:
        if best[case.key[:3]] is case:
            first.append(case)
            shown.append(case.row())
            n_wordings = max(n_wordings, case.checks["steady"]["details"].get("n_wordings") or 0)
        else:
            others.append(case.row())
    usable = {"use": 0, "care": 1, None: 2}
    step = min(first, key=lambda case: (usable[case.usable], case.rank), default=None)
    steps = {identity(entry): entry for entry in report["next"]}
    accuracy = None if unfinished else _accuracy(first)
    title = accuracy or _title(first)
    return {
        "title": f"So far: {title[:1].lower()}{title[1:]}" if unfinished and first else title,
        "unfinished": unfinished,
        "is_accuracy": accuracy is not None,
        "rows": shown,
        "others": others,
        "matrix": _matrix(first) if len(names) > 1 or len(report["runs"]) > 1 else None,
        "remedies": _remedies(first),
        "wordings": list(_wordings(first)),
        "n_wordings": n_wordings,
        "next": step and steps.get(step.key),
        "one_judge": len(names) == 1,
    }


def _matrix(cases: Sequence[Case]) -> Data | None:
    """Judges by tasks, a trust value in each place; None for one judge."""
    chips = {}
    for case in cases:
        remedy = case.remedy
        change = f"{remedy['trust']} with {remedy['remedy']}" if remedy else None
        chip = {"trust": case.trust, "text": case.card["text"], "remedy": change}
        chips[case.key[0], case.name, case.task] = chip
    judges = list(dict.fromkeys(chip[:2] for chip in chips))
    tasks = list(dict.fromkeys(task for _, _, task in chips))
    lines = [
        {"judge": judge, "cells": [chips.get((run, judge, task)) for task in tasks]}
        for run, judge in judges
    ]
    return {"tasks": tasks, "lines": lines} if len(judges) > 1 else None


def _remedies(cases: Sequence[Case]) -> Data:
    """The changes that pass, or how many were measured without one."""
    passing, measured, needed = [], {AS_ASKED}, False
    for case in cases:
        for row in case.remedies:
            if row["n_items"]:
                measured.add(row["remedy"])
        if case.remedy:
            text = case.remedy["text"]
            passing.append({"judge": case.name, "task": case.task, "text": text})
        if case.trust in ("avoid", "unknown"):
            needed = True
    tried = sorted(measured - {AS_ASKED})
    return {
        "passing": passing[:MOST_IN_TITLE],
        "more": max(0, len(passing) - MOST_IN_TITLE),
        "tried": join(tried) if tried else "",
        "n_tried": len(tried),
        "needed": needed,
    }


def _wordings(cases: Sequence[Case]) -> Iterator[Data]:
    """The wording to use for each case that has one; cases without one are left out."""
    shown = 0
    # What can be used comes first: its wording is the one that stays in sight.
    for case in sorted(cases, key=lambda case: TRUST.index(case.usable or case.trust)):
        (advised,) = case.recommendation
        if advised["template"] is None and case.trust == "avoid":
            continue
        if not advised["best_set"] or shown == MOST_WORDINGS:
            continue
        best = [row for row in case.wordings if row["template"] in advised["best_set"]]
        best.sort(key=lambda row: (-(row["accuracy"] or 0), -(row["agreement"] or 0)))
        best = [row for row in case.wordings if row["template"] == advised["template"]] or best
        if best:
            shown += 1
            yield {
                "judge": case.name,
                "task": case.task,
                "template": best[0]["template"],
                "text": best[0]["text"],
                "is_best": advised["template"] is not None,
                "equal": len(advised["best_set"]),
            }


def _accuracy(cases: Sequence[Case]) -> str | None:
    """How often judges that were asked under one wording are right, best first.

    Two people who often differ count one by one. None where wordings are compared, or without
    labels.
    """
    if any(case.checks["steady"]["state"] != "unmeasured" for case in cases):
        return None
    entries = []
    for case in cases:
        first, *persons = case.people or [None]
        between = first and first["between_people"]
        two = between and between["people"] == 2 and between["ties"]
        entries += [(case, entry) for entry in (persons if two else [first]) if entry]
    entries = [(case, entry) for case, entry in entries if entry["accuracy_ci_low"] is not None]
    parts: list[str] = []
    constants: dict[str, list[float]] = {}
    several = len({case.task for case in cases}) > 1
    for case, entry in sorted(entries, key=lambda each: -each[1]["accuracy"])[:MOST_IN_TITLE]:
        ends = brackets(entry["accuracy_ci_low"], entry["accuracy_ci_high"], percent)
        human = entry["human"].rpartition(".")[2]
        whose = "" if human in (GOLD, MAJORITY, "label") else f" by {human}"
        of = f" of the {entry['n']} labels{whose}"
        where = f" on {case.task}" if several else ""
        text = f"{case.name}{where} matches {percent(entry['accuracy'])}"
        text += f" {ends}{'' if of in ''.join(parts) else of}"
        if (near := within_one(entry)) is not None:
            text += f" and is within one point on {percent(near)}"
        if entry.get("weighted"):
            text += ", weighted by how the items were picked"
        if entry["kappa"] is not None:
            kappa = brackets(entry["kappa_ci_low"], entry["kappa_ci_high"], lambda x: number(x, 2))
            text += f" (κ {number(entry['kappa'], 2)} {kappa})".replace(" [–]", "")
        parts.append(text)
        constants.setdefault(entry["constant_label"], []).append(entry["constant_accuracy"])
    if len(constants) == 1:
        ((label, shares),) = constants.items()
        parts.append(f"always answering {label!r} matches {span(shares, percent)}")
    if len(entries) == 1:
        ((case, _),) = entries
        low, high = (
            case.checks["right"]["details"].get(f"beats_constant_ci_{end}")
            for end in ("low", "high")
        )
        if low is not None and high is not None:
            how = "reliably " if low > 0 or high < 0 else "not reliably "
            how += "less" if high < 0 else "more"
            share = percent(shares[0])
            parts = [
                f"{parts[0]}. That is {how} often than always answering {label!r} would ({share})"
            ]
        if case.trust == "avoid":
            parts.append(f"do not use it: {next(reasons(case.card))}")
    return ". ".join(map(sentence, parts)) or None


def within_one(people: Entry) -> float | None:
    """The share of verdicts at most one point off, on a scale of three points or more."""
    confusion, labels = people["confusion"], people["per_label"]
    if len(labels) < 3 or not is_scale(labels):
        return None
    near = (
        n
        for verdict, row in confusion.items()
        if is_scale([verdict])
        for label, n in row.items()
        if abs(int(verdict) - int(label)) < 2
    )
    return float(sum(near) / people["n"])


def _title(cases: Sequence[Case]) -> str:
    """The conclusion."""
    if not cases:
        return "JudgeSense report"
    judges, able = list[str](), list[str]()
    for case in cases:
        if case.name not in judges:
            judges.append(case.name)
        if case.usable and case.name not in able:
            able.append(case.name)
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
        for (only, _), found in alike.items():
            who = judges if alone else [case.name for case in found]
            parts.append(f"{_for(found)}, use {_some(who, 'or')}{care}{only}")
    for trust, lead, yet in (("avoid", "do not use", ""), ("unknown", "do not rely on", " yet")):
        left = [case for case in cases if alone and not case.usable and case.trust == trust]
        if left:
            why = dict.fromkeys(reason for case in left for reason in reasons(case.card))
            if all(case.checks["right"]["state"] == "unmeasured" for case in left):
                why = {clause("right", "unmeasured", None): None, **why}
            parts.append(f"{_for(left)}, {lead} {judges[0]}{yet}: {join(list(why)[:2])}")
    if not parts:
        unknown = any(case.trust == "unknown" for case in cases)
        passes = "is known to be usable yet" if unknown else "passes"
        return f"None of {len(judges)} judges {passes}"
    if 0 < len(able) < len(judges):
        parts = [*parts[:MOST_IN_TITLE], "no other judge passes yet"]
    text = ". ".join(map(sentence, parts))
    if len(text) > LONGEST_TITLE and not alone:
        return f"{len(able)} of {len(judges)} judges are usable for a task: {_some(able, 'and')}"
    return text


def _for(cases: Sequence[Case]) -> str:
    """The tasks of some cases: ``for the factuality and relevance tasks``."""
    tasks = list(dict.fromkeys(case.task for case in cases))
    return f"for the {join(tasks)} task{s(len(tasks))}"


def _some(names: Sequence[str], word: str) -> str:
    """The first names, and how many more there are."""
    more = len(names) - MOST_IN_TITLE
    return join([*names[:MOST_IN_TITLE], *([f"{more} more"] if more > 0 else [])], word)
