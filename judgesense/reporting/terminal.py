"""The report on a terminal, in colour, or as plain text: no line is wrapped, stacked or cut."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from judgesense.reporting.palette import STYLES
from judgesense.reporting.tables import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    advice_by_case,
    rows,
    side_tables,
)
from judgesense.text import aligned


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
