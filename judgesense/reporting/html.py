"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares plain data; ``templates/`` lays it out and escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity, main_cells, task_rank
from judgesense.reporting.beside import side_tables
from judgesense.reporting.markdown import METHOD, run_facts
from judgesense.reporting.style import CSS, LOWEST_AGREEMENT, MARKS, RAW_APART, TEMPLATES, TONES
from judgesense.reporting.table import COLUMNS, LEGEND, TEXT_COLUMNS, Row, rows, undecided_share
from judgesense.text import (
    interval,
    number,
    percent,
    same_start,
    sentence,
    short_names,
    short_templates,
)
from judgesense.trust.thresholds import STEADY_JSS

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_CARDS = 12
MANY_TEMPLATES, LONG_NAME = 6, 4
LONGEST_NAME, LONGEST_ANSWER = 34, 300

_ROW, _HEAD, _TOP = 26, 34, 12

Data = dict[str, Any]


def h(text: object) -> str:
    """Text that HTML shows as it is."""
    return escape(str(text), quote=True)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {"marks": MARKS, "css": Markup(CSS)}
    return made


def _part(name: str, *data: Any) -> str:
    """A part of the page by itself."""
    return str(getattr(_environment().get_template("parts.html").module, name)(*data))


def render_html(report: Mapping[str, Any]) -> str:
    """The report as a page that loads nothing from elsewhere and runs no script."""
    table = rows(report)
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=_title(report),
            runs=[run_facts(run) for run in report["runs"]],
            notes=report["notes"],
            threshold=STEADY_JSS,
            changed=percent(1 - STEADY_JSS),
            cards=_cards(table),
            forest=_forest(table),
            columns=COLUMNS,
            text_columns=TEXT_COLUMNS,
            legend=LEGEND,
            table=[
                (task, list(own)) for task, own in groupby(table, key=lambda row: row.cell["task"])
            ],
            sides=side_tables(report),
            advice=_advice(report),
            heatmaps=_heatmaps(report),
            flips=_flips(report),
            method=[text.replace("*", "").replace("`", "") for text in METHOD],
            cells=report["cells"],
        )
    )


def cards(report: Mapping[str, Any]) -> str:
    """A card per judge and task; nothing if there are too many to take in."""
    return _part("cards", _cards(rows(report)))


def forest(report: Mapping[str, Any]) -> str:
    """JSS by task with intervals, as inline SVG that follows the page's colours."""
    return _part("forest", _forest(rows(report)), STEADY_JSS)


def advice(report: Mapping[str, Any]) -> str:
    """What to do, case by case."""
    return _part("advice", _advice(report))


def heatmaps(report: Mapping[str, Any]) -> str:
    """Agreement of each pair of wordings, a panel per case."""
    return _part("heatmaps", _heatmaps(report), STEADY_JSS)


def flips(report: Mapping[str, Any]) -> str:
    """Verdicts that flipped, both prompts side by side."""
    return _part("flips", _flips(report))


def _title(report: Mapping[str, Any]) -> str:
    names = short_names({c["judge"] for c in report["cells"] if c["judge"] not in BASELINES})
    shown = sorted(names.values())
    if not shown:
        return "JudgeSense report"
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"How much does the wording move {', '.join(shown[:3])}{more}?"


def _cards(table: Sequence[Row]) -> list[Data]:
    judged = [row for row in table if not row.is_baseline]
    if len(judged) > MOST_CARDS:
        return []
    found = []
    for row in judged:
        cell, texts = row.cell, row.texts
        facts = [("κ", texts["kappa"]), ("right", texts["accuracy"])]
        if cell["first_position_rate"] is not None:
            facts.append(("takes the first option", texts["first"]))
        if undecided_share(cell):
            facts.append(("no verdict on", texts["undecided"]))
        facts.append(("items/pairs", texts["sample"]))
        names = {key: texts[key] for key in ("judge", "task", "scoring", "interval")}
        found.append({**names, "verdict": row.tone, "jss": texts["mapped"], "facts": facts})
    return found


def _forest(table: Sequence[Row]) -> Data:
    heads, drawn = [], []
    y = _TOP
    for task, group in groupby(table, key=lambda row: row.cell["task"]):
        y += _HEAD
        heads.append((task, y))
        for row in group:
            cell, name = row.cell, row.texts["judge"]
            apart = row.raw is not None and abs(row.raw - (cell["jss"] or 0)) > RAW_APART
            spread = "" if row.is_baseline else f" {row.texts['interval']}"
            drawn.append(
                {
                    "cell": cell,
                    "y": y + _ROW // 2,
                    "tone": row.tone,
                    "baseline": row.is_baseline,
                    "name": name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…",
                    "raw": row.raw if apart else None,
                    "text": row.texts["mapped"] + spread,
                }
            )
            y += _ROW
    return {"heads": heads, "rows": drawn, "bottom": y}


def _advice(report: Mapping[str, Any]) -> list[Data]:
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    cells = main_cells(report)
    found = []
    for key, group in groupby(report["findings"], key=identity):
        first, *rest = group
        degenerate = key in cells and cells[key]["mapped"]["verdict"] == "degenerate"
        found.append(
            {
                "judge": names[key[1]],
                "task": key[2],
                "scoring": key[3],
                "tone": "degenerate" if degenerate else TONES[first["kind"]],
                "first": sentence(first["text"]),
                "rest": [sentence(finding["text"]) for finding in rest],
            }
        )
    return found


def _heatmaps(report: Mapping[str, Any]) -> list[Data]:
    by_case: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in report["template_pairs"]:
        if row["labels"] == "mapped":
            by_case.setdefault(identity(row), []).append(row)
    names = short_names({key[1] for key in by_case})
    order = [identity(row.cell) for row in rows(report)]
    found = []
    for key in sorted(by_case, key=order.index):
        words = [row for row in report["templates"] if identity(row) == key]
        known = {"judge": names[key[1]], "task": key[2], "scoring": key[3]}
        wide = len(words) > MANY_TEMPLATES
        found.append({**known, "wide": wide, **_heatmap(by_case[key], words)})
    return found


def _heatmap(pairs: Sequence[Mapping[str, Any]], words: Sequence[Mapping[str, Any]]) -> Data:
    """Template x template agreement; ``words`` are the templates' own figures."""
    templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
    short = short_templates(templates)
    value = {(row["template_a"], row["template_b"]): row for row in pairs}
    about = {row["template"]: row for row in words}
    unknown = {"agreement": None, "accuracy": None}
    lines = [
        {
            "template": one,
            "short": short[one],
            "cells": [
                _heat_cell(value.get((one, two)) or value.get((two, one)), one == two)
                for two in templates
            ],
            "mean": number(about.get(one, unknown)["agreement"], 2),
            "accuracy": percent(about.get(one, unknown)["accuracy"]),
        }
        for one in templates
    ]
    return {"lines": lines, "turned": max(map(len, short.values())) > LONG_NAME}


def _heat_cell(row: Mapping[str, Any] | None, same: bool) -> Data:
    if row is None or row["jss"] is None:
        return {"css": "same" if same else "none", "text": "" if same else "·", "title": ""}
    jss = row["jss"]
    high = jss >= STEADY_JSS
    share = (jss - STEADY_JSS) / (1 - STEADY_JSS if high else LOWEST_AGREEMENT - STEADY_JSS)
    return {
        "css": "high" if high else "low",
        "strength": round(100 * min(1.0, share)),
        "text": number(jss, 2),
        "title": f"{row['template_a']} and {row['template_b']}: {number(jss)} {interval(row)}, "
        f"{row['n_pairs']} pairs",
    }


def _flips(report: Mapping[str, Any]) -> list[Data]:
    names = short_names({example["judge"] for example in report["examples"]})
    # Coherence first; a pair that flips in both scorings is shown once.
    distinct: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for example in sorted(report["examples"], key=lambda each: task_rank(each["task"])):
        pair = (example["a"]["prompt_id"], example["b"]["prompt_id"])
        distinct.setdefault((example["judge"], example["task"], example["item_id"], pair), example)
    found = []
    for example in distinct.values():
        where = [names[example["judge"]], example["task"], f"{example['scoring']} scoring"]
        where += [f"item {example['item_id']}"]
        where += [] if example["order"] == "-" else [f"order {example['order']}"]
        where += [] if example["gold"] is None else [f"gold {example['gold']}"]
        sides = (example["a"], example["b"])
        tail = _shared_tail(*(side["text"] or "" for side in sides))
        found.append(
            {
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
        )
    return found


def _shared_tail(first: str, second: str) -> int:
    """Length of the common end of two prompts, in whole lines."""
    tail = same_start(first[::-1], second[::-1])[::-1]
    if tail in (first, second):
        return len(tail)
    cut = tail.find("\n")
    return 0 if cut < 0 else len(tail) - cut


def _side_notes(side: Mapping[str, Any], gold: str | None) -> list[str]:
    notes = []
    if side["raw"] != side["decision"]:
        notes.append(f"answered {side['raw']}")
    if side["answer"] is not None and side["answer"].strip() != side["raw"]:
        notes.append(f"wrote “{side['answer'].strip()[:LONGEST_ANSWER]}”")
    if side["margin"] is not None:
        notes.append(f"by {number(side['margin'], 2)} nats")
    if gold is not None:
        notes.append("matches gold" if side["decision"] == gold else "does not match gold")
    return notes
