"""The report on a terminal; plain, untruncated text where the output is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity
from judgesense.reporting.beside import SideTable, side_tables
from judgesense.reporting.table import COLUMNS, TEXT_COLUMNS, Row, rows
from judgesense.text import sentence, short_names

STYLES = {
    "reliable": "green",
    "unstable": "red",
    "undecided": "yellow",
    "degenerate": "magenta",
}
BASELINE_NOTE = (
    "oracle: a judge that is always right; always-first: one that always takes the option shown "
    "first. What they score, the wordings and the data score, not a judge."
)


def render_terminal(report: Mapping[str, Any], *, terminal: bool = False) -> RenderableType:
    """The table and the advice: a rich renderable for a terminal, else a plain string.

    The plain string has one line a row and a finding, neither wrapped nor cut.
    """
    return _rich(report) if terminal else _plain(report)


def print_report(report: Mapping[str, Any]) -> None:
    """Print the report as standard output takes it."""
    if sys.stdout.isatty():
        Console().print(render_terminal(report, terminal=True))
    else:
        print(render_terminal(report))


def _plain(report: Mapping[str, Any]) -> str:
    table = [tuple(COLUMNS), *(row.texts for row in rows(report))]
    widths = [max(cell_len(line[i]) for line in table) for i in range(len(COLUMNS))]
    lines = [_line(line, widths) for line in table]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += ["", BASELINE_NOTE]
    for side in side_tables(report):
        lines += ["", side.heading, *_side_lines(side), *side.notes]
    for heading, findings in _grouped(report):
        lines += ["", heading, *(f"  - {text}" for text in findings)]
    lines += ["", *report["notes"]] if report["notes"] else []
    return "\n".join(lines)


def _side_lines(side: SideTable) -> Iterator[str]:
    table = [side.columns, *side.rows]
    widths = [max(cell_len(line[i]) for line in table) for i in range(len(side.columns))]
    for line in (table[0], tuple("-" * width for width in widths), *table[1:]):
        padded = []
        for place, (text, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - cell_len(text))
            padded.append(text + space if place < side.n_text else space + text)
        yield "  ".join(padded).rstrip()


def _line(texts: tuple[str, ...], widths: list[int]) -> str:
    padded = []
    for name, text, width in zip(COLUMNS, texts, widths, strict=True):
        space = " " * (width - cell_len(text))
        padded.append(text + space if name in TEXT_COLUMNS else space + text)
    return "  ".join(padded).rstrip()


def _rich(report: Mapping[str, Any]) -> RenderableType:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for name in COLUMNS:
        left = name in TEXT_COLUMNS
        table.add_column(
            name, justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    before = None
    for row in rows(report):
        if before not in (None, row.cell["task"]):
            table.add_row()
        before = row.cell["task"]
        table.add_row(*_styled(row))
    parts: list[RenderableType] = [table, Text(), Text(BASELINE_NOTE, style="dim")]
    for side in side_tables(report):
        beside = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
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


def _styled(row: Row) -> list[Text]:
    base = "dim" if row.is_baseline else ""
    texts = [Text(text, style=base) for text in row.texts]
    if not row.is_baseline:
        texts[COLUMNS.index("verdict")].stylize(STYLES[row.cell["verdict"]])
        texts[COLUMNS.index("mapped JSS")].stylize("bold")
    return texts


def _grouped(report: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    for key, group in groupby(report["findings"], key=identity):
        _, judge, task, scoring = key
        yield f"{names[judge]} on {task}, {scoring} scoring", [sentence(f["text"]) for f in group]
