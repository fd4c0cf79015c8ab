"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares plain data; ``templates/`` lays it out and escapes it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense.measure.disagreements import KINDS, LONGEST_TEXT, NEAR
from judgesense.measure.report_file import Key, identity
from judgesense.reporting.documents import render
from judgesense.reporting.palette import TEMPLATES, style_sheet
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import rows
from judgesense.text import (
    brackets,
    middle_cut,
    p_value,
    printable,
    short_names,
    short_templates,
    signed,
)

MANY_TEMPLATES, LONG_NAME = 6, 4
SCRIPTS = ("copy.js", "disagreements.js")

MOST_ROWS, FIRST_ROWS = 20_000, 30
"""Disagreements in the page, and in its table for browsers without scripts."""
MOST_CHARACTERS, SHORTEST_TEXT, LONGEST_CELL = 4_000_000, 200, 160
"""The texts of disagreements are cut so that the page stays small; the CSV file has them whole."""

Data = dict[str, Any]
Entry = Mapping[str, Any]


def render_html(report: Mapping[str, Any], listed: Sequence[Entry] = ()) -> str:
    """The report as a page without requests, whose one script is the only one that runs.

    ``listed`` are the rows of `judgesense.measure.disagreements`.
    """
    from markupsafe import Markup

    script = "\n".join((TEMPLATES / name).read_text("utf-8") for name in SCRIPTS)
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
        turned=_turned(report["attacks"]) if report["attacks"] else [],
        remedies=list(_remedies(report, order)) if report["remedies"] else [],
        wrong=_wrong(report, listed, order, texts) if report["where_wrong"] else None,
        improve=report.get("improve"),
        picture=_picture(report["improve"]["rows"]) if "improve" in report else None,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _picture(rows: Sequence[Entry]) -> str | None:
    """The plot of `judgesense improve` as a data URL; None without matplotlib, for the table has
    the same figures."""
    from io import BytesIO

    from judgesense.reporting.plots import ways

    try:
        drawn = ways(rows)
    except MissingExtraError:
        return None
    held = BytesIO()
    drawn.savefig(held, format="png", dpi=110, bbox_inches="tight", facecolor="white")
    return f"data:image/png;base64,{b64encode(held.getvalue()).decode()}"


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


def _turned(entries: Sequence[Entry]) -> list[Data]:
    """The items that an attack turned, to read, those of the worst kinds first."""
    names = short_names({entry["judge"] for entry in entries})
    ranked = sorted(
        (entry for entry in entries if entry["kept"] is not None and entry["defence"] is None),
        key=lambda entry: entry["kept"],
    )
    return [
        {
            **item,
            "judge": names[entry["judge"]],
            "task": entry["task"],
            "kind": entry["kind"],
            "text": (item.get("text") or "")[:LONGEST_TEXT],
        }
        for entry in ranked
        for item in entry["turned_items"]
    ][:FIRST_ROWS]


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
    about, of_case = {}, []
    for row in report["templates"]:
        of_case.append(identity(row))
        about[of_case[-1], row["template"]] = row
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


def _wrong(
    report: Mapping[str, Any], listed: Sequence[Entry], order: Sequence[Key], texts: Data
) -> Data:
    """The section on disagreements: groups, the first rows as a table, and all as data."""
    from markupsafe import Markup

    cases, named, place = list[Data](), list[Data](), dict[Key, int]()
    for case, _ in _by_case(report["where_wrong"], order):
        place[case["key"]] = len(cases)
        case["name"] = f"{case['judge']} · {case['task']} · {case['scoring']}"
        cases.append(case)
        named.append({"name": case["name"], "task": case["task"]})
    # The clearest cases of each judge and task, so that none fills the page alone.
    seen: Counter[Key] = Counter()
    ranks = []
    for row in listed:
        seen[identity(row)] += 1
        ranks.append(seen[identity(row)])
    kept = sorted(range(len(listed)), key=ranks.__getitem__)[:MOST_ROWS]
    shown = sorted((listed[at] for at in kept), key=lambda row: place[identity(row)])
    longest = min(LONGEST_TEXT, max(SHORTEST_TEXT, MOST_CHARACTERS // max(1, len(shown))))

    def cut(found: Mapping[str, str]) -> dict[str, str]:
        each = max(SHORTEST_TEXT, longest // max(1, len(found)))
        return {
            name: text if len(text) <= each else f"{text[:each]} …" for name, text in found.items()
        }

    rows = [
        [
            place[identity(row)],
            row["item_id"],
            row["order"],
            sum(1 << KINDS.index(kind) for kind in row["kinds"]),
            row["label"],
            row["verdict"],
            row["margin"],
            row["verdicts"],
            cut(row["answers"]),
            row["people"],
            cut({**row["columns"], **({"prompt": row["text"]} if row["text"] else {})}),
        ]
        for row in shown
    ]
    data = {
        "kinds": KINDS,
        "cases": named,
        "wordings": texts,
        "rows": rows,
    }
    groups, n_rows, n_groups = [], 0, 0
    for entry in report["where_wrong"]:
        n_rows, n_groups = n_rows + entry["n_listed"], n_groups + entry["n_groups"]
        for group in entry["groups"]:
            ends = (100 * group["ci_low"], 100 * group["ci_high"])
            groups.append(
                {
                    **group,
                    "case": cases[place[identity(entry)]]["name"],
                    "measure": entry["measure"],
                    "points": signed(100 * group["difference"], 0),
                    "interval": brackets(*ends, lambda end: signed(end, 0)),
                    "p": p_value(group["p_holm"], ""),
                }
            )
    counts = [
        (kind, 1 << bit, sum(row[3] >> bit & 1 for row in rows)) for bit, kind in enumerate(KINDS)
    ]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return {
        "near": f"{NEAR:g}",
        "cases": cases,
        "n_rows": n_rows,
        "n_shown": len(shown),
        "counts": counts,
        "groups": groups,
        "n_groups": n_groups,
        "first": [
            {
                **row,
                "item": row["item_id"] + ("" if row["order"] == "-" else f" {row['order']}"),
                "case": cases[place[identity(row)]]["name"],
                "kinds": ", ".join(row["kinds"]),
                "label": row["label"] or "",
                "text": " ".join(
                    next(
                        iter((*row["answers"].values(), *row["columns"].values())),
                        row["text"] or "",
                    ).split()
                )[:LONGEST_CELL],
            }
            for row in shown[:FIRST_ROWS]
        ],
        # Nothing in a text can end the script element.
        "data": Markup(printable(text).replace("<", "\\u003c")),
    }
