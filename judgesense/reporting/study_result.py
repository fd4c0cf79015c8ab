"""A result of several tables, findings and figures, written to one folder and printed.

Studies and checks return one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.files.disk import require_folder, writing
from judgesense.files.tables import csv_text
from judgesense.log.record import versions
from judgesense.reporting.documents import escape_markdown as escape
from judgesense.text import number, p_value, sentence

RESULT_FILE, PAGE_FILE = "study.json", "study.md"

Value = str | int | float | bool | None
Record = Mapping[str, Value]
"""A row of a table: its values under the column ids."""

_P_VALUE = re.compile(r"p|p_\w+|\w+_p")
_WORDS = {"jss": "JSS", "kappa": "κ", "alpha": "α", "usd": "US dollars", "ci": "", "n": ""}
"""How a heading spells the parts of an id; ``ci_low`` is "low" and ``n_items`` is "items"."""


@dataclass(frozen=True)
class Table:
    """A table of a result: records under field ids; `from_records` makes one.

    Attributes:
        name: the table's key in ``study.json`` and the name of its CSV file.
        rows: a record per row, with one value per column id; None is undefined.
        columns: id -> heading, left to right. The ids are for programs: the same quantity has the
            same id in every table.
        note: printed below: n, what the intervals are, which reading of the paper was taken.
        digits: digits after the point of floats.
    """

    name: str
    title: str
    rows: tuple[Mapping[str, Any], ...]
    columns: Mapping[str, str]
    note: str = ""
    digits: int = 3

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

        ``headings`` replace the default heading of a column, which is its id in words. Raises
        ValueError for a record with other fields than the first.

        >>> table = Table.from_records("cost", "Cost", [{"judge": "a", "cost_usd": 1.5}])
        >>> dict(table.columns), table.texts()
        ({'judge': 'judge', 'cost_usd': 'cost US dollars'}, [['a', '1.500']])
        """
        ids = list(rows[0]) if rows else []
        if odd := [row for row in rows if list(row) != ids]:
            raise ValueError(f"table {name}: the fields {list(odd[0])} are not {ids}")
        columns = {record: headings.get(record) or _heading(record) for record in ids}
        return cls(name, title, tuple(rows), columns, note, digits)

    def texts(self) -> list[list[str]]:
        """The cells as a reader sees them."""
        return [[_text(name, row[name], self.digits) for name in self.columns] for row in self.rows]

    def markdown(self) -> str:
        """The table in Markdown, its note below."""
        rules = [
            " --- " if any(isinstance(row[name], (str, bool)) for row in self.rows) else " ---: "
            for name in self.columns
        ]
        lines = [
            "| " + " | ".join(map(escape, self.columns.values())) + " |",
            f"|{'|'.join(rules)}|",
            *("| " + " | ".join(map(escape, row)) + " |" for row in self.texts()),
        ]
        return "\n".join(lines) + (f"\n\n{self.note}" if self.note else "")

    def csv(self) -> str:
        """The table as CSV: column ids, full precision, undefined cells empty."""
        return csv_text(list(self.columns), self.rows)

    def as_json(self) -> dict[str, Any]:
        """The table as JSON values: column ids, their headings, a record per row."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "headings": dict(self.columns),
            "rows": [dict(row) for row in self.rows],
            "note": self.note,
        }


def _heading(name: str) -> str:
    words = [_WORDS.get(word, word) for word in name.split("_")]
    return " ".join(filter(None, words)) or name


def _text(name: str, value: Value, digits: int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and _P_VALUE.fullmatch(name):
        return p_value(value, "")
    return number(value, digits) if value is None or isinstance(value, float) else str(value)


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

        require_folder(out)
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
