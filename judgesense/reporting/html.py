"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares plain data; ``templates/`` lays it out and escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity, task_rank
from judgesense.reporting.document import environment, render
from judgesense.reporting.table import advice_by_case, rows
from judgesense.text import number, same_start, short_names, short_templates

MANY_TEMPLATES, LONG_NAME = 6, 4
LONGEST_ANSWER = 300

Data = dict[str, Any]


def h(text: object) -> str:
    """Text that HTML shows as it is."""
    return escape(str(text), quote=True)


def render_html(report: Mapping[str, Any]) -> str:
    """The report as a page without scripts or requests."""
    return render(
        "report.html",
        report,
        title=_title(report),
        heatmaps=list(_heatmaps(report)),
        flips=list(_flips(report)),
    )


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
    """Verdicts that flipped, both prompts side by side."""
    return _part("flips", list(_flips(report)))


def _title(report: Mapping[str, Any]) -> str:
    names = short_names({c["judge"] for c in report["cells"] if c["judge"] not in BASELINES})
    shown = sorted(names.values())
    if not shown:
        return "JudgeSense report"
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"How much does the wording move {', '.join(shown[:3])}{more}?"


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
            "judge": names[key[1]],
            "task": key[2],
            "scoring": key[3],
            "wide": len(words) > MANY_TEMPLATES,
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
    for example in distinct.values():
        where = [names[example["judge"]], example["task"], f"{example['scoring']} scoring"]
        where += [f"item {example['item_id']}"]
        where += [] if example["order"] == "-" else [f"order {example['order']}"]
        where += [] if example["gold"] is None else [f"gold {example['gold']}"]
        sides = (example["a"], example["b"])
        tail = _shared_tail(*(side["text"] or "" for side in sides))
        yield {
            "where": " · ".join(where),
            "sides": [
                {
                    **side,
                    "cut": len(side["text"] or "") - tail,
                    "notes": ", ".join(_side_notes(side, example["gold"])),
                }
                for side in sides
            ],
        }


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
