"""The report on a terminal; plain, untruncated text where the output is not a TTY."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from judgesense.reporting.beside import side_tables
from judgesense.reporting.table import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    advice_by_case,
    rows,
)
from judgesense.text import aligned

STYLES = {
    "use": "green",
    "care": "yellow",
    "unknown": "magenta",
    "avoid": "red",
    "baseline": "dim",
}
_BULLET = "  - "


def render_terminal(report: Mapping[str, Any], *, terminal: bool = False) -> RenderableType:
    """The table and the advice: a rich renderable for a terminal, else a plain string.

    The plain string has one line per row and finding. On a terminal only prose is wrapped; print
    the renderable with ``crop=False``, so that no table is cut.
    """
    lines = list(_lines(report))
    if not terminal:
        return "\n".join(line.plain for line in lines)
    return Group(*(_wrapped(line) if line.plain.startswith(_BULLET) else line for line in lines))


def print_report(report: Mapping[str, Any]) -> None:
    """Print the report in the form that fits standard output."""
    if sys.stdout.isatty():
        Console().print(render_terminal(report, terminal=True), crop=False)
    else:
        print(render_terminal(report))


def _wrapped(line: Text) -> RenderableType:
    """A finding with its wrapped lines indented."""
    bullet = Table.grid(padding=(0, 1))
    bullet.add_row(" •", Text(line.plain.removeprefix(_BULLET)))
    return bullet


def _lines(report: Mapping[str, Any]) -> Iterator[Text]:
    table = rows(report)
    left = [key in TEXT_COLUMNS for key in COLUMNS]
    heading, rule, *body = aligned([COLUMNS.values(), *(row.texts.values() for row in table)], left)
    yield _whole(heading, "bold")
    yield _whole(rule, "dim")
    for row, text in zip(table, body, strict=True):
        line = _whole(text, STYLES["baseline"] if row.is_baseline else "")
        if not row.is_baseline:
            line.stylize(STYLES[row.tone], 0, len(row.texts["trust"]))
        yield line
    yield from (Text(), Text(LEGEND, "dim"), Text(BASELINE_NOTE, "dim"))
    for side in side_tables(report):
        yield from (Text(), Text(side.heading, "bold"))
        left = [at < side.n_text for at in range(len(side.columns))]
        yield from (_whole(line) for line in aligned([side.columns, *side.rows], left))
        yield from (Text(note, "dim") for note in side.notes)
    for case in advice_by_case(report):
        heading = f"{case['judge']} on {case['task']}, {case['scoring']} scoring"
        yield from (Text(), Text(heading, "bold"))
        yield from (Text(f"{_BULLET}{text}") for text in case["texts"])
    if report["notes"]:
        yield from (Text(), *(Text(note, "yellow") for note in report["notes"]))


def _whole(line: str, style: str = "") -> Text:
    """A line of a table, which is never wrapped."""
    return Text(line, style, no_wrap=True, overflow="ignore")
