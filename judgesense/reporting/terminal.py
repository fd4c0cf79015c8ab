"""The report on a terminal; plain, untruncated text where the output is not a TTY."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from judgesense.reporting.palette import STYLES
from judgesense.reporting.summary import next_steps
from judgesense.reporting.tables import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    Row,
    advice_by_case,
    rows,
    side_tables,
)
from judgesense.text import aligned

_BULLET = "  - "


def render_terminal(
    report: Mapping[str, Any],
    *,
    terminal: bool = False,
    width: int = 100,
    folder: str | Path | None = None,
) -> RenderableType:
    """The table and the advice: a rich renderable for a terminal, else a plain string.

    The plain string has one line per row and finding. On a terminal prose is wrapped, and a table
    wider than ``width`` columns becomes a block of lines for each row; print the renderable with
    ``crop=False``, so that nothing is cut. ``folder`` is that of the run, for the next commands;
    without it, those that need it are left out.
    """
    lines = list(_lines(report, width if terminal else sys.maxsize, folder))
    if not terminal:
        return "\n".join(line.plain for line in lines)
    return Group(*(_wrapped(line) if line.plain.startswith(_BULLET) else line for line in lines))


def print_report(report: Mapping[str, Any], folder: str | Path | None = None) -> None:
    """Print the report of the run in ``folder`` in the form that fits standard output."""
    if sys.stdout.isatty():
        console = Console()
        text = render_terminal(report, terminal=True, width=console.width, folder=folder)
        console.print(text, crop=False)
    else:
        print(render_terminal(report, folder=folder))


def _wrapped(line: Text) -> RenderableType:
    """A finding with its wrapped lines indented."""
    bullet = Table.grid(padding=(0, 1))
    bullet.add_row(" •", Text(line.plain.removeprefix(_BULLET)))
    return bullet


def _lines(report: Mapping[str, Any], width: int, folder: str | Path | None) -> Iterator[Text]:
    yield from _main_table(rows(report), width)
    yield from (Text(), Text(LEGEND, "dim"), Text(BASELINE_NOTE, "dim"))
    for side in side_tables(report):
        yield from (Text(), Text(side.heading, "bold"))
        left = [at < side.n_text for at in range(len(side.columns))]
        table = aligned([side.columns, *side.rows], left)
        if cell_len(max(table, key=cell_len)) > width:
            table = _blocks(side.columns, side.rows, left, width)
        yield from (_whole(line) for line in table)
        yield from (Text(note, "dim") for note in side.notes)
    steps = next_steps(report, folder)
    for case in advice_by_case(report):
        heading = f"{case['judge']} on {case['task']}, {case['scoring']} scoring"
        yield from (Text(), Text(heading, "bold"))
        yield from (Text(f"{_BULLET}{text}") for text in case["texts"])
        if step := steps.get(case["key"]):
            told = step["text"][:1].lower() + step["text"][1:]
            yield Text(f"{_BULLET}Next: {told}")
            yield from (_whole(line) for line in _command(step["command"] or "", width))
    if report["notes"]:
        yield from (Text(), *(Text(note, "yellow") for note in report["notes"]))


def _command(command: str, width: int) -> list[str]:
    """A command in lines of at most ``width`` columns that a shell reads as one.

    >>> _command("judgesense report runs/demo", 30)
    ['    judgesense report \\\\', '        runs/demo']
    """
    lines = textwrap.wrap(
        command, max(width - 2, 30), initial_indent=" " * 4, subsequent_indent=" " * 8,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [*(f"{line} \\" for line in lines[:-1]), *lines[-1:]]


def _main_table(table: Sequence[Row], width: int) -> Iterator[Text]:
    left = [key in TEXT_COLUMNS for key in COLUMNS]
    columns = tuple(COLUMNS.values())
    heading, rule, *body = aligned([columns, *(row.texts.values() for row in table)], left)
    if cell_len(rule) <= width:
        yield from (_whole(heading, "bold"), _whole(rule, "dim"))
    else:
        body = _blocks(columns, [tuple(row.texts.values()) for row in table], left, width)
    for row, text in zip(table, body, strict=True):
        line = _whole(text, STYLES["baseline"] if row.is_baseline else "")
        if not row.is_baseline:
            line.stylize(STYLES[row.tone], 0, len(row.texts["trust"]))
        yield line


def _blocks(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[bool], width: int
) -> list[str]:
    """Each row as a few lines: its text columns, then its numbers with their headings.

    >>> print(*_blocks(("trust", "judge", "JSS"), [("use", "a", "0.9")], (True, True, False), 80))
    use  a
         JSS 0.9
    """
    first = max((cell_len(row[0]) for row in rows), default=0)
    indent = " " * (first + 2)
    blocks = []
    for row in rows:
        known = list(zip(columns, row, left, strict=True))[1:]
        texts = [text for _, text, is_text in known if is_text]
        head = row[0] + " " * (first - cell_len(row[0]))
        # A heading stays on the line of its number.
        pairs = [
            f"{name} {text}".replace(" ", "\0") for name, text, is_text in known if not is_text
        ]
        wrapped = textwrap.wrap(
            ", ".join(pairs), max(width, 40), initial_indent=indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        blocks.append("\n".join(["  ".join([head, *texts]), *wrapped]).replace("\0", " "))
    return blocks


def _whole(line: str, style: str = "") -> Text:
    """A line of a table, which is never wrapped."""
    return Text(line, style, no_wrap=True, overflow="ignore")
