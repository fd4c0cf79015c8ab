"""The report on a terminal; plain, untruncated text where the output is not a TTY."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judgesense.reporting.beside import side_tables
from judgesense.reporting.table import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    Row,
    advice_by_case,
    rows,
)

STYLES = {
    "reliable": "green",
    "unstable": "red",
    "undecided": "yellow",
    "degenerate": "magenta",
}
_LEFT = [key in TEXT_COLUMNS for key in COLUMNS]


def render_terminal(report: Mapping[str, Any], *, terminal: bool = False) -> RenderableType:
    """The table and the advice: a rich renderable for a terminal, else a plain string.

    The plain string has one line per row and finding, neither wrapped nor cut.
    """
    return _rich(report) if terminal else _plain(report)


def print_report(report: Mapping[str, Any]) -> None:
    """Print the report in the form that fits standard output."""
    if sys.stdout.isatty():
        Console().print(render_terminal(report, terminal=True))
    else:
        print(render_terminal(report))


def _plain(report: Mapping[str, Any]) -> str:
    body = [list(row.texts.values()) for row in rows(report)]
    lines = [*_aligned(list(COLUMNS.values()), _LEFT, body), "", LEGEND, BASELINE_NOTE]
    for side in side_tables(report):
        left = [at < side.n_text for at in range(len(side.columns))]
        lines += ["", side.heading, *_aligned(side.columns, left, side.rows), *side.notes]
    for heading, findings in _grouped(report):
        lines += ["", heading, *(f"  - {text}" for text in findings)]
    lines += ["", *report["notes"]] if report["notes"] else []
    return "\n".join(lines)


def _aligned(
    columns: Sequence[str], left: Sequence[bool], body: Sequence[Sequence[str]]
) -> Iterator[str]:
    widths = [max(map(cell_len, column)) for column in zip(columns, *body, strict=True)]
    for line in (columns, ["-" * width for width in widths], *body):
        padded = []
        for text, width, is_left in zip(line, widths, left, strict=True):
            space = " " * (width - cell_len(text))
            padded.append(text + space if is_left else space + text)
        yield "  ".join(padded).rstrip()


def _rich(report: Mapping[str, Any]) -> RenderableType:
    table = _rich_table()
    for name, left in zip(COLUMNS.values(), _LEFT, strict=True):
        table.add_column(
            name, justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    for index, (_, group) in enumerate(groupby(rows(report), key=lambda row: row.cell["task"])):
        if index:
            table.add_row()
        for row in group:
            table.add_row(*_styled(row))
    notes = [Text(note, style="dim") for note in (LEGEND, BASELINE_NOTE)]
    parts: list[RenderableType] = [table, Text(), *notes]
    for side in side_tables(report):
        beside = _rich_table()
        for place, name in enumerate(side.columns):
            beside.add_column(name, justify="left" if place < side.n_text else "right")
        for line in side.rows:
            beside.add_row(*map(Text, line))
        parts += [Text(), Text(side.heading, style="bold"), beside]
        parts += [Text(note, style="dim") for note in side.notes]
    for heading, findings in _grouped(report):
        parts += [Text(), Text(heading, style="bold")]
        for text in findings:
            bullet = Table.grid(padding=(0, 1))
            bullet.add_row("•", Text(text))
            parts.append(Padding(bullet, (0, 0, 0, 2)))
    parts += [Text(note, style="yellow") for note in report["notes"]]
    return Group(*parts)


def _rich_table() -> Table:
    return Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)


def _styled(row: Row) -> Iterator[Text]:
    styles = {} if row.is_baseline else {"verdict": STYLES[row.tone], "mapped": "bold"}
    base = "dim" if row.is_baseline else ""
    for key, text in row.texts.items():
        yield Text(text, style=styles.get(key, base))


def _grouped(report: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for case in advice_by_case(report):
        yield f"{case['judge']} on {case['task']}, {case['scoring']} scoring", case["texts"]
