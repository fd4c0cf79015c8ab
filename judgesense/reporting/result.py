"""A result of several tables, findings and figures, written to one folder and printed.

Studies and checks return one.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from judgesense.files.disk import require_writable, writing
from judgesense.reporting.documents import escape_markdown as escape
from judgesense.run_folder.record import versions
from judgesense.text import number, p_value, sentence

RESULT_FILE, PAGE_FILE = "study.json", "study.md"
Value = str | int | float | bool | None
Record = Mapping[str, Value]
"""A row of a table: its values under the column ids."""


_ID = re.compile(r"[a-z][a-z0-9_]*")
_P_VALUE = re.compile(r"p|p_\w+|\w+_p")
_WORDS = {"jss": "JSS", "kappa": "κ", "alpha": "α", "usd": "US dollars", "ci": "", "n": ""}
"""How a heading spells the parts of an id; ``ci_low`` is "low" and ``n_items`` is "items"."""


@dataclass(frozen=True)
class Column:
    """A column of a table: a field id for programs, a heading for readers.

    Args:
        id: the key of the column in a row, in ``study.json`` and in CSV (``jss``, ``ci_low``). The
            same quantity has the same id in every table.
        heading: what a reader sees; by default the id in words.
        digits: digits after the point of its floats; the table's own by default.

    >>> Column("jss_ci_low")
    Column(id='jss_ci_low', heading='JSS low', digits=None)
    """

    id: str
    heading: str = ""
    digits: int | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"column id {self.id!r} does not match {_ID.pattern}")
        words = [_WORDS.get(word, word) for word in self.id.split("_")]
        object.__setattr__(self, "heading", self.heading or " ".join(filter(None, words)) or "n")


@dataclass(frozen=True, init=False)
class Table:
    """A table of a result: records under field ids.

    Attributes:
        name: the table's key in ``study.json`` and the name of its CSV file.
        columns: the columns, left to right.
        rows: a record per row, with one value per column id; None is undefined.
        note: printed below: n, what the intervals are, which reading of the paper was taken.
        digits: digits after the point of floats, where a column sets none.

    >>> table = Table("jss", "Sensitivity", ["judge", Column("jss", "JSS", 2)], [("a", 0.875)])
    >>> table.rows[0]["jss"], table.texts()
    (0.875, [['a', '0.88']])
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    note: str
    digits: int

    def __init__(
        self,
        name: str,
        title: str,
        columns: Sequence[Column | str],
        rows: Iterable[Record | Sequence[Value]],
        note: str = "",
        digits: int = 3,
    ) -> None:
        """Make a table; ``columns`` may be ids, and rows tuples in the order of the columns.

        Raises:
            ValueError: an invalid or repeated id, or a row that lacks or adds a field.
        """
        made = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
        ids = [column.id for column in made]
        if len(set(ids)) < len(ids):
            raise ValueError(f"table {name}: a column id appears twice in {ids}")
        records: list[Mapping[str, Any]] = []
        for index, row in enumerate(rows):
            if isinstance(row, Mapping):
                odd: Any = sorted(set(ids) ^ set(row))
            else:
                odd = len(row) != len(ids) and f"{len(row)} values for {len(ids)} columns"
                row = dict(zip(ids, row, strict=False))
            if odd:
                raise ValueError(f"table {name}, row {index} does not fit the columns: {odd}")
            records.append(row)
        values = (name, title, made, tuple(records), note, digits)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    @classmethod
    def from_records(
        cls,
        name: str,
        title: str,
        rows: Sequence[Record],
        note: str = "",
        digits: int = 3,
        /,
        **headings: str,
    ) -> Table:
        """A table with a column per field of its first record, in that order.

        ``headings`` replace the default heading of a column.

        >>> table = Table.from_records("cost", "Cost", [{"judge": "a", "cost_usd": 1.5}])
        >>> [column.heading for column in table.columns]
        ['judge', 'cost US dollars']
        """
        columns = [Column(field, headings.get(field, "")) for field in (rows[0] if rows else ())]
        return cls(name, title, columns, rows, note, digits)

    def texts(self) -> list[list[str]]:
        """The cells as a reader sees them."""
        return [
            [
                p_value(value, "")
                if isinstance(value := row[column.id], float) and _P_VALUE.fullmatch(column.id)
                else _text(value, self.digits if column.digits is None else column.digits)
                for column in self.columns
            ]
            for row in self.rows
        ]

    def markdown(self) -> str:
        """The table in Markdown, its note below."""
        rules = [
            " --- " if any(isinstance(row[c.id], (str, bool)) for row in self.rows) else " ---: "
            for c in self.columns
        ]
        lines = [
            "| " + " | ".join(escape(column.heading) for column in self.columns) + " |",
            f"|{'|'.join(rules)}|",
            *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in self.texts()),
        ]
        return "\n".join(lines) + (f"\n\n{self.note}" if self.note else "")

    def csv(self) -> str:
        """The table as CSV: column ids, full precision, undefined cells empty."""
        buffer = io.StringIO()
        ids = [column.id for column in self.columns]
        writer = csv.DictWriter(buffer, ids, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return buffer.getvalue()

    def as_json(self) -> dict[str, Any]:
        """The table as JSON values: column ids, their headings, a record per row."""
        return {
            "title": self.title,
            "columns": [column.id for column in self.columns],
            "headings": {column.id: column.heading for column in self.columns},
            "rows": [dict(row) for row in self.rows],
            "note": self.note,
        }


def _text(value: Value, digits: int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, float):
        return number(value, digits)
    return str(value)


@dataclass(frozen=True)
class Picture:
    """A figure of a result; ``draw`` returns the matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass
class Result:
    """The output of a study.

    ``settings`` fix the figures (judges, items, seed, data), ``findings`` are sentences computed
    from the tables, and ``limits`` say what the figures do not show.
    """

    study: str
    title: str
    settings: dict[str, Any]
    tables: list[Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def table(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    def as_json(self) -> dict[str, Any]:
        """The result without its pictures, as JSON values."""
        return {
            "schema": 2,
            "study": self.study,
            "title": self.title,
            "settings": self.settings,
            "versions": versions(),
            "findings": self.findings,
            "limits": self.limits,
            "tables": {table.name: table.as_json() for table in self.tables},
        }

    def markdown(self) -> str:
        """The result as a page, pictures beside it in ``figures/``."""
        lines = [f"# {self.title}", ""]
        lines += [f"- {name}: {_setting(value)}" for name, value in self.settings.items()]
        if self.findings:
            lines += ["", "## Findings", "", *(f"- {sentence(text)}" for text in self.findings)]
        for table in self.tables:
            lines += ["", f"## {table.title}", "", table.markdown()]
        for picture in self.pictures:
            lines += ["", f"![{escape(picture.caption)}](figures/{picture.name}.png)", ""]
            lines += [f"*{picture.caption}*"]
        if self.limits:
            lines += ["", "## Limits", "", *(f"- {sentence(text)}" for text in self.limits)]
        return "\n".join(lines) + "\n"

    def write(self, out: Path) -> None:
        """Write ``study.json``, ``study.md``, ``tables/*.csv`` and ``figures/*.{png,svg}``."""
        from judgesense.reporting.plots import save

        require_writable(out)
        text = json.dumps(self.as_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with writing(out):
            (out / "tables").mkdir(exist_ok=True)
            for table in self.tables:
                (out / "tables" / f"{table.name}.csv").write_text(table.csv(), "utf-8")
            for picture in self.pictures:
                save(picture.draw(), out / "figures", picture.name)
            (out / PAGE_FILE).write_text(self.markdown(), "utf-8")
            (out / RESULT_FILE).write_text(text, "utf-8")


def _setting(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return escape(", ".join(map(str, value)))
    text = str(value)
    return f"`{text}`" if "|" in text and "`" not in text else escape(text)
