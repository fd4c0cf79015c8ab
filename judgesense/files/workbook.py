"""Rows of an Excel workbook: of its one sheet that has a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.limits import require_small

_LOOKED_AT = 50
"""Rows of a sheet in which its header is looked for."""

_FEWEST = 2
"""Rows, and columns, of what counts as a table."""


def workbook_rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The values of each row by name, and its place; empty cells are None, empty rows left out.

    The header is the first row as wide as most rows after it, so that a title may stand above it.
    Raises JudgeSenseError for a damaged file, for no sheet or several sheets with a table, and for
    a column name that occurs twice; MissingExtraError without openpyxl.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingExtraError("openpyxl", "excel", f"reading {path.name}") from error
    try:
        with ZipFile(path) as archive:
            require_small(archive, path)
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError, ValueError, OSError) as error:
        raise JudgeSenseError(f"{path} cannot be read as an Excel workbook ({error})") from error
    try:
        tables = [
            (sheet, header)
            for sheet in book.worksheets
            if sheet.sheet_state == "visible" and (header := _header(_head(sheet))) is not None
        ]
        if not tables:
            raise JudgeSenseError(f"{path} has no sheet with a header and rows")
        widest = max(_filled(_head(sheet)[header]) for sheet, header in tables)
        tables = [(s, header) for s, header in tables if 2 * _filled(_head(s)[header]) > widest]
        if len(tables) > 1:
            titles = ", ".join(sheet.title for sheet, _ in tables)
            raise JudgeSenseError(
                f"{path} has several sheets with a table ({titles}); save one of them as a CSV file"
            )
        sheet, header = tables[0]
        rows = sheet.iter_rows(min_row=header + 1, values_only=True)
        above, names = (
            [str(cell).strip() if cell is not None else "" for cell in cells]
            for cells in (_head(sheet)[header - 1] if header else (), next(rows))
        )
        names = header_of_two(above, names) or names
        if repeated := sorted({name for name in names if name and names.count(name) > 1}):
            raise JudgeSenseError(f"{path}: the {repeated[0]!r} column appears twice in the header")
        for number, cells in enumerate(rows, header + 2):
            if _filled(cells):
                values = {name: _value(cell) for name, cell in zip(names, cells, strict=False)}
                values.pop("", None)
                yield values, f"{path}, row {number} of sheet {sheet.title}"
    finally:
        book.close()


def header_of_two(above: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """The names in a header of two rows, of which the upper one names groups of columns; None
    where the upper row is a title, or there is none.

    >>> header_of_two(["", "Tone", "", "Style", ""], ["id", "human", "judge", "human", "judge"])
    ['id', 'Tone human', 'Tone judge', 'Style human', 'Style judge']
    """
    if len(above) < len(names) or any(name.isdecimal() for name in names):
        return None
    groups: list[str] = []
    for group, name in zip(above, names, strict=False):
        # A merged cell holds its text in the first of its columns.
        groups.append(group or (groups[-1] if groups and name else ""))
    filled = [name for name in names if name]
    sizes = {group: groups.count(group) for group, name in zip(groups, names, strict=False) if name}
    sizes.pop("", None)
    repeated = len({*filled}) < len(filled) and ("" in names or max(sizes.values(), default=0) > 1)
    # A title and what is said beside it begin in the first column, too.
    several = (
        len(sizes) > 1 + bool(above[0] and names[0])
        and min(sizes.values()) > 1
        and ":" not in str(above)
    )
    if not (repeated or several):
        return None
    joined = [f"{group} {name}".strip() for group, name in zip(groups, names, strict=True)]
    return joined if all(joined) and len({*joined}) == len(joined) else None


def _head(sheet: Any) -> list[Sequence[Any]]:
    return list(islice(sheet.iter_rows(values_only=True), _LOOKED_AT))


def _filled(cells: Sequence[Any]) -> int:
    return sum(cell is not None for cell in cells)


def _header(rows: list[Sequence[Any]]) -> int | None:
    """The place of the header among the first rows; None if the sheet holds no table."""
    widths = [_filled(cells) for cells in rows]
    if max(widths, default=0) < _FEWEST:
        return None
    usual = sorted(width for width in widths if width)[len([w for w in widths if w]) // 2]
    for at, cells in enumerate(rows[:-1]):
        named = all(isinstance(cell, str) for cell in cells if cell is not None)
        if widths[at] >= max(usual, _FEWEST) and named:
            return at
        both = zip(cells, rows[at + 1], strict=False)
        either = sum(one is not None or two is not None for one, two in both)
        if named and max(widths[at : at + 2]) < usual <= either:
            return at + 1  # Its names stand in two rows.
    return None


def _value(cell: Any) -> Any:
    if isinstance(cell, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)):
        return str(cell)
    return cell.strip() if isinstance(cell, str) else cell
