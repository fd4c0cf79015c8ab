"""Text as it fits a terminal: words stay whole, tables stay tables, and commands can be pasted.

Only what a person reads is laid out. A pipe gets each finding and each row on one line, so that
``grep`` finds it.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import IO

NARROWEST, LONGEST_LINE = 40, 100
"""Columns of the narrowest terminal that is laid out for, and of a line of prose."""

_LEAST = 12
"""Columns that a column of text keeps in a table that is too wide."""

_RULE = re.compile(r"-+(  -+)*$")
_FIGURE = re.compile(r"[\[(<>+−-]*[\d–]|$")
_COMMAND = re.compile(r"(\s*(?:(?:Next|Or):\s+)?)(judgesense\s.*)$")
_WORDS = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")
_BULLET = re.compile(r"\s*(?:[-•] )?")

Fitted = tuple[int, str]
"""A line, and which of the given ones it comes from."""


def terminal_width(stream: IO[str] | None = None) -> int | None:
    """The columns of the terminal behind a stream (stdout); None where it leads elsewhere."""
    if not (stream or sys.stdout).isatty():
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)


def fit(text: str, width: int | None) -> str:
    """A text for a terminal of some columns; None leaves it as it is.

    >>> print(fit("Next: judgesense check items.csv --human label", 40))
    Next: judgesense check items.csv \\
        --human label
    """
    if width is None:
        return text
    return "\n".join(line for _, line in fitted(text.split("\n"), width))


def fitted(lines: Sequence[str], width: int) -> Iterator[Fitted]:
    """Lines of prose, tables (`judgesense.text.aligned`) and commands, each for some columns."""
    at = 0
    while at < len(lines):
        rule = lines[at + 1] if at + 1 < len(lines) else ""
        if _RULE.match(rule) and "  " in rule:
            rows = [at]
            while rows[-1] + 1 < len(lines) and _in_columns(lines[rows[-1] + 1], rule):
                rows.append(rows[-1] + 1)
            yield from _table(lines, rows, rule, width)
            at = rows[-1] + 1
            continue
        yield from ((at, part) for part in _line(lines[at], width))
        at += 1


def _line(line: str, width: int) -> list[str]:
    if len(line) <= min(width, LONGEST_LINE):
        return [line]
    if command := _COMMAND.match(line):
        return _command(command[1], command[2], width) if len(line) > width else [line]
    lead = _BULLET.match(line)
    indent = " " * len(lead[0] if lead else "")
    # A path or a name that is broken can be neither clicked nor copied.
    return wrap(
        line,
        min(width, LONGEST_LINE),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command(lead: str, command: str, width: int) -> list[str]:
    """A command over several lines that a shell reads as one: broken before an option if possible,
    never inside quotes."""
    words = _WORDS.findall(command)
    # An option stays with its value.
    units: list[str] = []
    for word in words:
        if (
            units
            and not word.startswith("-")
            and units[-1].startswith("-")
            and " " not in units[-1]
        ):
            units[-1] += f" {word}"
        else:
            units.append(word)
    lines, indent = [lead + units[0]], " " * (len(lead) - len(lead.lstrip()) + 4)
    for unit in units[1:]:
        if len(lines[-1]) + len(unit) + 3 <= width:
            lines[-1] += f" {unit}"
        else:
            lines.append(indent + unit)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _cells_of(line: str) -> str:
    """A line with one character for each column of the terminal: wide ones get a filler."""
    from rich.cells import cell_len

    return "".join(letter + "\0" * (cell_len(letter) - 1) for letter in line)


def _in_columns(line: str, rule: str) -> bool:
    """Whether a line is a row of the table under a rule: no text lies between the columns."""
    cells = _cells_of(line)
    gaps = [gap.start() for gap in re.finditer("  ", rule)]
    return (
        bool(line.strip())
        and len(cells) <= len(rule)
        and not any(cells[gap : gap + 2].strip() for gap in gaps)
    )


def _table(lines: Sequence[str], rows: list[int], rule: str, width: int) -> Iterator[Fitted]:
    """A table in some columns: what all rows share is said below it, and text is wrapped inside its
    cells; if that is not enough, the figures follow in further blocks under the same names."""
    from rich.cells import cell_len

    spans = [(found.start(), found.end()) for found in re.finditer("-+", rule)]
    numbers = [at for at in rows if at != rows[0] + 1]
    table = [
        [_cells_of(lines[at])[start:end].replace("\0", "").strip() for start, end in spans]
        for at in numbers
    ]
    left = [
        any(_FIGURE.match(row[column]) is None for row in table[1:]) for column in range(len(spans))
    ]
    widths = [end - start for start, end in spans]

    def total(columns: Sequence[int]) -> int:
        return sum(widths[column] for column in columns) + 2 * (len(columns) - 1)

    columns, same = list(range(len(spans))), list[int]()
    if total(columns) > width and len(table) > 2:
        same = [c for c in columns[1:] if left[c] and len({row[c] for row in table[1:]}) == 1]
        columns = [column for column in columns if column not in same] or columns
    texts = [column for column in columns if left[column]]
    names = list(takewhile(left.__getitem__, columns)) or columns[:1]
    # First all text gives way; then the names, until a third is left for what they name.
    of_names = width if names == columns else width * 2 // 3
    for some, least, most in ((columns, _LEAST, width), (names, _LEAST // 2, of_names)):
        while total(some) > most and (wide := [c for c in texts if widths[c] > least]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    blocks: list[list[int]] = [[]]
    for column in (column for column in columns if column not in names):
        if blocks[-1] and total([*names, *blocks[-1], column]) > width:
            blocks.append([])
        blocks[-1].append(column)
    for number, block in enumerate(blocks):
        shown = sorted([*names, *block])
        if number:
            yield rows[0], ""
        for at, row in zip(numbers, table, strict=True):
            parts = [wrap(row[c], widths[c]) or [""] if left[c] else [row[c]] for c in shown]
            for depth in range(max(map(len, parts))):
                padded = []
                for column, part in zip(shown, parts, strict=True):
                    text = part[depth] if depth < len(part) else ""
                    space = " " * (widths[column] - cell_len(text))
                    padded.append(text + space if left[column] else space + text)
                yield at, "  ".join(padded).rstrip()
            if at == rows[0]:
                yield rows[0] + 1, "  ".join("-" * widths[column] for column in shown)
    if same:
        shared = ", ".join(f"{table[0][column]} {table[1][column]}" for column in same)
        yield from ((rows[-1], part) for part in _line(f"All rows: {shared}.", width))
