"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares plain data; ``templates/`` lays it out and escapes it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any

from judgesense.reporting.documents import render
from judgesense.reporting.palette import TEMPLATES, style_sheet
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import rows
from judgesense.run_folder.report import Key, identity, task_rank
from judgesense.text import middle_cut, number, short_names, short_templates, signed

MANY_TEMPLATES, LONG_NAME = 6, 4
LONGEST_ANSWER = 300

_WORD = re.compile(r"\s+|\w+|[^\w\s]")

Data = dict[str, Any]
Entry = Mapping[str, Any]
Parts = list[tuple[str, bool]]


def render_html(report: Mapping[str, Any]) -> str:
    """The report as a page without requests; its one script copies texts, and none other runs."""
    from markupsafe import Markup

    script = (TEMPLATES / "copy.js").read_text("utf-8")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    screen = first_screen(report)
    texts: Data = {}
    for entry in report["wordings"]:
        if entry["text"] is not None:
            texts.setdefault(entry["task"], {}).setdefault(entry["template"], entry["text"])
    order = [identity(row.cell) for row in rows(report)]
    return render(
        "report.html",
        report,
        css=Markup(style_sheet()),
        screen=screen,
        folded=[row["key"] for row in screen["others"]],
        heatmaps=list(_heatmaps(report, order)),
        wordings=list(_wordings(report, order)),
        texts=texts,
        remedies=list(_remedies(report, order)) if report["remedies"] else [],
        flips=_flips(report) if report["examples"] else [],
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _by_case(entries: Sequence[Entry], order: Sequence[Key]) -> Iterator[tuple[Data, list[Data]]]:
    """The entries of a list by case, in the order of the table."""
    found: dict[Key, list[Data]] = {}
    for entry in entries:
        found.setdefault(identity(entry), []).append(dict(entry))
    names = short_names([judge for _, judge, _, _ in found])
    for key in sorted(found, key=order.index):
        yield (
            {"key": key, "judge": middle_cut(names[key[1]]), "task": key[2], "scoring": key[3]},
            found[key],
        )


def _wordings(report: Mapping[str, Any], order: Sequence[Key]) -> Iterator[Data]:
    advice = {}
    for entry in report["recommendation"]:
        advice[identity(entry)] = entry["text"]
    for case, entries in _by_case(report["wordings"], order):
        yield {**case, "rows": entries, "said": advice.get(case["key"], "no recommendation")}


def _remedies(report: Mapping[str, Any], order: Sequence[Key]) -> Iterator[Data]:
    for case, entries in _by_case(report["remedies"], order):
        for entry in entries:
            gain = [entry[key] for key in ("gain", "gain_ci_low", "gain_ci_high")]
            mid, *ends = (signed(None if value is None else 100 * value, 1) for value in gain)
            entry["said"] = mid if entry["gain_ci_low"] is None else f"{mid} [{', '.join(ends)}]"
        yield {**case, "rows": entries}


def _heatmaps(report: Mapping[str, Any], order: Sequence[Key]) -> Iterator[Data]:
    """Template x template agreement of each case, beside the templates' own figures."""
    mapped = [row for row in report["template_pairs"] if row["labels"] == "mapped"]
    about = {(identity(row), row["template"]): row for row in report["templates"]}
    of_case = [identity(row) for row in report["templates"]]
    unknown = {"agreement": None, "accuracy": None}
    for case, pairs in _by_case(mapped, order):
        templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
        short = short_templates(templates)
        known = {frozenset((row["template_a"], row["template_b"])): row for row in pairs}
        lines = [
            {
                "template": one,
                "short": short[one],
                "cells": [(known.get(frozenset((one, two))), one == two) for two in templates],
                "own": about.get((case["key"], one), unknown),
            }
            for one in templates
        ]
        yield {
            **case,
            "wide": of_case.count(case["key"]) > MANY_TEMPLATES,
            "pairs": f"{sum(row['n_pairs'] for row in pairs)} pairs of verdicts",
            "lines": lines,
            "turned": max(map(len, short.values())) > LONG_NAME,
        }


def _flips(report: Mapping[str, Any]) -> list[Data]:
    """Verdicts that flipped, by case: both prompts side by side, differing words marked."""
    names = short_names({example["judge"] for example in report["examples"]})
    cases: dict[str, list[Data]] = {}
    for example in sorted(report["examples"], key=lambda each: task_rank(each["task"])):
        where = [names[example["judge"]], example["task"], f"{example['scoring']} scoring"]
        case = cases.setdefault(" · ".join(where), [])
        where = [f"item {example['item_id']}"]
        where += [] if example["order"] == "-" else [f"order {example['order']}"]
        where += [] if example["gold"] is None else [f"gold {example['gold']}"]
        sides = (example["a"], example["b"])
        parts = _differing(*(side["text"] or "" for side in sides))
        shown = [
            {**side, "parts": part, "notes": ", ".join(_side_notes(side, example["gold"]))}
            for side, part in zip(sides, parts, strict=True)
        ]
        case.append({"where": " · ".join(where), "sides": shown})
    return [{"name": name, "examples": found} for name, found in cases.items()]


def _differing(first: str, second: str) -> tuple[Parts, Parts]:
    """Two texts in pieces, each with whether the other text lacks it; words are compared.

    >>> _differing("Is it", "Is this")[0]
    [('Is ', False), ('it', True)]
    """
    one, two = (_WORD.findall(text) for text in (first, second))
    left: Parts = []
    right: Parts = []
    for kind, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        for side, words in ((left, one[a:b]), (right, two[c:d])):
            if words:
                side.append(("".join(words), kind != "equal"))
    return left, right


def _side_notes(side: Entry, gold: str | None) -> Iterator[str]:
    if side["raw"] != side["decision"]:
        yield f"answered {side['raw']}"
    if side["answer"] is not None and side["answer"].strip() != side["raw"]:
        yield f"wrote “{side['answer'].strip()[:LONGEST_ANSWER]}”"
    if side["margin"] is not None:
        yield f"by {number(side['margin'], 2)} nats"
    if gold is not None:
        yield "matches gold" if side["decision"] == gold else "does not match gold"
