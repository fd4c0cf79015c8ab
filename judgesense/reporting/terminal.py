"""The report on a terminal, in colour, or as plain text: no line is wrapped, stacked or cut."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from judgesense.reporting.palette import STYLES
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    advice_by_case,
    among_people,
    rows,
    side_tables,
)
from judgesense.run_folder.report import identity
from judgesense.text import aligned, brackets, percent, short_names

MOST_LABELS = 5
"""Labels that are shown for each judge in a few lines."""


def render_terminal(report: Mapping[str, Any]) -> str:
    """The tables, the advice and the next steps as plain text, one line per row and finding."""
    return "\n".join(line.plain for line in _lines(report))


def print_report(report: Mapping[str, Any]) -> None:
    """Print a report, in colour on a terminal."""
    if not sys.stdout.isatty():
        print(render_terminal(report))
        return
    console = Console()
    for line in _lines(report):
        console.print(line, crop=False, no_wrap=True, overflow="ignore")


def render_brief(report: Mapping[str, Any], folder: Path) -> str:
    """The report in a few lines: each judge beside people, what was not measured, and the paths."""
    lines = [f"{first_screen(report)['title']}."]
    names = short_names({card["judge"] for card in report["trust"]})
    beside = {identity(entry): entry for entry in reversed(report["people"])}
    for card in report["trust"]:
        if (entry := beside.get(identity(card))) is None:
            continue
        lines += [
            "",
            f"{names[card['judge']]} on {card['task']}: {card['checks']['right']['text']}",
        ]
        for label, figures in list(entry["per_label"].items())[:MOST_LABELS]:
            share = entry["corrected"].get(label)
            if share is None or not figures["n"]:
                continue
            ends = brackets(share["ci_low"], share["ci_high"], percent)
            lines.append(
                f"  {label}: finds {percent(figures['recall'])} of {figures['n']}, right "
                f"{percent(figures['precision'])} of the times it says so; "
                f"{percent(share['verdicts'])} of its verdicts, corrected "
                f"{percent(share['share'])} {ends}"
            )
        named = {**entry, "judge": names[card["judge"]]}
        lines += [f"  {text}" for text in among_people(named)]
    missing = {
        name: check["text"]
        for card in report["trust"]
        for name, check in card["checks"].items()
        if check["state"] == "unmeasured" and check["applies"]
    }
    if missing:
        lines += ["", f"Not measured: {', '.join(missing)}."]
    for step in report["next"][:1]:
        lines += [f"Next: {step['text']}", *([f"  {step['command']}"] if step["command"] else [])]
    return "\n".join([*lines, f"All of it: {folder}/report.html"])


def _lines(report: Mapping[str, Any]) -> Iterator[Text]:
    table = rows(report)
    texts = [tuple(COLUMNS.values()), *(tuple(row.texts.values()) for row in table)]
    heading, rule, *body = aligned(texts, [key in TEXT_COLUMNS for key in COLUMNS])
    yield from (Text(heading, "bold"), Text(rule, "dim"))
    for row, text in zip(table, body, strict=True):
        line = Text(text, STYLES["baseline"] if row.is_baseline else "")
        if not row.is_baseline:
            line.stylize(STYLES[row.tone], 0, len(row.texts["trust"]))
        yield line
    yield from (Text(), Text(LEGEND, "dim"), Text(BASELINE_NOTE, "dim"))
    for side in side_tables(report):
        yield from (Text(), Text(side.heading, "bold"))
        left = [at < side.n_text for at in range(len(side.columns))]
        yield from map(Text, aligned([side.columns, *side.rows], left))
        yield from (Text(note, "dim") for note in side.notes)
    for case in advice_by_case(report):
        heading = f"{case['judge']} on {case['task']}, {case['scoring']} scoring"
        yield from (Text(), Text(heading, "bold"))
        yield from (Text(f"  - {text}") for text in case["texts"])
        if step := case["next"]:
            yield Text(f"  Next: {step['text']}", "bold")
            if step["command"]:
                yield Text(f"    {step['command']}")
    if report["notes"]:
        yield from (Text(), *(Text(note, "yellow") for note in report["notes"]))
