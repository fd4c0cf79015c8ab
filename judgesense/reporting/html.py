"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares plain data; ``templates/`` lays it out and escapes it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from html import escape
from typing import Any

from judgesense.reporting.documents import environment, render
from judgesense.reporting.palette import TEMPLATES
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import advice_by_case, rows
from judgesense.run_folder.report import LISTS, Key, identity, task_rank
from judgesense.text import middle_cut, number, same_start, short_names, short_templates, signed

MANY_TEMPLATES, LONG_NAME = 6, 4
LONGEST_ANSWER = 300
LONGEST_NAME = 48
MOST_FLIPS = 3
"""Flips of a judge on a task, and scoring."""

_WORD = re.compile(r"\s+|\w+|[^\w\s]")

Data = dict[str, Any]
Parts = list[tuple[str, bool]]


def h(text: object) -> str:
    """Text that HTML shows as it is."""
    return escape(str(text), quote=True)


def render_html(report: Mapping[str, Any]) -> str:
    """The report as a page without requests; its one script copies texts, and none other runs."""
    script = (TEMPLATES / "copy.js").read_text("utf-8")
    shown, full_names = _with_short_names(report)
    screen = first_screen(shown)
    # A command needs the whole name.
    screen["next"] = first_screen(report)["next"]
    report = shown
    return render(
        "report.html",
        report,
        screen=screen,
        folded=[row["key"] for row in screen["others"]],
        full_names=full_names,
        heatmaps=list(_heatmaps(report)),
        wordings=list(_wordings(report)),
        texts=_texts(report),
        remedies=list(_remedies(report)),
        flips=list(_flips(report)),
        script=_markup(script),
        script_hash=_hash(script),
    )


def _with_short_names(report: Mapping[str, Any]) -> tuple[Data, dict[str, str]]:
    """The report with long names of judges cut in the middle, and the whole ones by those."""
    named = [
        key for key in LISTS if all(isinstance(e, Mapping) and "judge" in e for e in report[key])
    ]
    judges = {entry["judge"] for key in named for entry in report[key]}
    cut: dict[str, str] = {}
    for judge in sorted(judges):
        name, at, fingerprint = judge.partition("@")
        short = f"{middle_cut(name, LONGEST_NAME)}{at}{middle_cut(fingerprint, LONGEST_NAME)}"
        while short in cut.values() and short != judge:
            short += "′"
        cut[judge] = short
    long = {short: judge for judge, short in cut.items() if short != judge}
    if not long:
        return dict(report), {}
    made = dict(report)
    for key in named:
        made[key] = [{**entry, "judge": cut[entry["judge"]]} for entry in report[key]]
    return made, long


def _texts(report: Mapping[str, Any]) -> Data:
    """The text of every wording by task: judges and scorings share them."""
    found: Data = {}
    for entry in report["wordings"]:
        if entry["text"] is not None:
            found.setdefault(entry["task"], {}).setdefault(entry["template"], entry["text"])
    return found


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _hash(script: str) -> str:
    """A script as a source of a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def _part(name: str, data: Any) -> str:
    return str(getattr(environment().get_template("parts.html").module, name)(data))


def cards(report: Mapping[str, Any]) -> str:
    """A card per judge and task; empty if there are more than twelve."""
    return _part("cards", rows(report))


def forest(report: Mapping[str, Any]) -> str:
    """JSS by task with intervals, as inline SVG that follows the page's colours."""
    return _part("forest", rows(report))


def advice(report: Mapping[str, Any]) -> str:
    """What to do, case by case."""
    return _part("advice", advice_by_case(report))


def heatmaps(report: Mapping[str, Any]) -> str:
    """Agreement of each pair of wordings, a panel per case."""
    return _part("heatmaps", list(_heatmaps(report)))


def flips(report: Mapping[str, Any]) -> str:
    """Verdicts that flipped, folded by case: both prompts side by side, differing words marked."""
    return _part("flips", list(_flips(report)))


def _cases(report: Mapping[str, Any], name: str) -> Iterator[tuple[Data, list[Data]]]:
    """The entries of a list by case, in the order of the table."""
    found: dict[Key, list[Data]] = {}
    for entry in report[name]:
        found.setdefault(identity(entry), []).append(dict(entry))
    names = short_names({key[1] for key in found})
    order = [identity(row.cell) for row in rows(report)]
    for key in sorted(found, key=order.index):
        yield {"key": key, "judge": names[key[1]], "task": key[2], "scoring": key[3]}, found[key]


def _wordings(report: Mapping[str, Any]) -> Iterator[Data]:
    said = {identity(entry): entry["text"] for entry in report["recommendation"]}
    for case, entries in _cases(report, "wordings"):
        yield {**case, "rows": entries, "said": said.get(case["key"], "no recommendation")}


def _remedies(report: Mapping[str, Any]) -> Iterator[Data]:
    for case, entries in _cases(report, "remedies"):
        for entry in entries:
            gain = [entry[key] for key in ("gain", "gain_ci_low", "gain_ci_high")]
            mid, *ends = (signed(None if value is None else 100 * value, 1) for value in gain)
            entry["said"] = mid if entry["gain_ci_low"] is None else f"{mid} [{', '.join(ends)}]"
        yield {**case, "rows": entries}


def _heatmaps(report: Mapping[str, Any]) -> Iterator[Data]:
    by_case: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in report["template_pairs"]:
        if row["labels"] == "mapped":
            by_case.setdefault(identity(row), []).append(row)
    names = short_names({key[1] for key in by_case})
    order = [identity(row.cell) for row in rows(report)]
    for key in sorted(by_case, key=order.index):
        words = [row for row in report["templates"] if identity(row) == key]
        yield {
            "key": key,
            "judge": names[key[1]],
            "task": key[2],
            "scoring": key[3],
            "wide": len(words) > MANY_TEMPLATES,
            "pairs": f"{sum(row['n_pairs'] for row in by_case[key])} pairs of verdicts",
            **_heatmap(by_case[key], words),
        }


def _heatmap(pairs: Sequence[Mapping[str, Any]], words: Sequence[Mapping[str, Any]]) -> Data:
    """Template x template agreement; ``words`` are the templates' own figures."""
    templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
    short = short_templates(templates)
    known = {frozenset((row["template_a"], row["template_b"])): row for row in pairs}
    about = {row["template"]: row for row in words}
    unknown = {"agreement": None, "accuracy": None}
    lines = [
        {
            "template": one,
            "short": short[one],
            "cells": [(known.get(frozenset((one, two))), one == two) for two in templates],
            "own": about.get(one, unknown),
        }
        for one in templates
    ]
    return {"lines": lines, "turned": max(map(len, short.values())) > LONG_NAME}


def _flips(report: Mapping[str, Any]) -> Iterator[Data]:
    names = short_names({example["judge"] for example in report["examples"]})
    # Coherence first; a pair that flips in both scorings is shown once.
    distinct: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for example in sorted(report["examples"], key=lambda each: task_rank(each["task"])):
        pair = (example["a"]["prompt_id"], example["b"]["prompt_id"])
        distinct.setdefault((example["judge"], example["task"], example["item_id"], pair), example)
    cases: dict[str, list[Data]] = {}
    for example in distinct.values():
        where = [names[example["judge"]], example["task"], f"{example['scoring']} scoring"]
        case = cases.setdefault(" · ".join(where), [])
        where = [f"item {example['item_id']}"]
        where += [] if example["order"] == "-" else [f"order {example['order']}"]
        where += [] if example["gold"] is None else [f"gold {example['gold']}"]
        sides = (example["a"], example["b"])
        texts = [side["text"] or "" for side in sides]
        tail = _shared_tail(*texts)
        parts = _differing(*(text[: len(text) - tail] for text in texts))
        case.append(
            {
                "where": " · ".join(where),
                "shared": texts[0][len(texts[0]) - tail :].strip("\n"),
                "sides": [
                    {
                        **side,
                        "parts": own,
                        "notes": ", ".join(_side_notes(side, example["gold"])),
                    }
                    for side, own in zip(sides, parts, strict=True)
                ],
            }
        )
    for name, found in cases.items():
        yield {"name": name, "examples": found[:MOST_FLIPS]}


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


def _shared_tail(first: str, second: str) -> int:
    """Length of the common end of two prompts, in whole lines."""
    tail = same_start(first[::-1], second[::-1])[::-1]
    if tail in (first, second):
        return len(tail)
    cut = tail.find("\n")
    return 0 if cut < 0 else len(tail) - cut


def _side_notes(side: Mapping[str, Any], gold: str | None) -> Iterator[str]:
    if side["raw"] != side["decision"]:
        yield f"answered {side['raw']}"
    if side["answer"] is not None and side["answer"].strip() != side["raw"]:
        yield f"wrote “{side['answer'].strip()[:LONGEST_ANSWER]}”"
    if side["margin"] is not None:
        yield f"by {number(side['margin'], 2)} nats"
    if gold is not None:
        yield "matches gold" if side["decision"] == gold else "does not match gold"
