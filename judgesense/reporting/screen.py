"""The first screen of a report's page: may you use the judge, for what, and with which change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.reporting.case import Data, Entry, ReportCase
from judgesense.reporting.title import MOST_IN_TITLE, title_of
from judgesense.run_folder.report import Key, task_rank
from judgesense.text import join, percent, short_names
from judgesense.trust.card import TRUST
from judgesense.trust.rules import AS_ASKED

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
