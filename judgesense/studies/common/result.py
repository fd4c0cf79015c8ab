"""What every study gives: tables, findings and figures, written to one folder and printed.

A study is a module of this room with one public function. It declares its grid, has it judged
(:func:`judged`), measures with :mod:`judgesense.statistics`, and returns a :class:`Result`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.pipeline import Settings, execute, resolve_all
from judgesense.pipeline.data import DataReference
from judgesense.reporting.markdown import escape
from judgesense.run_folder import require_writable, versions, writing
from judgesense.text import number, sentence

RESULT_FILE, PAGE_FILE = "study.json", "study.md"
QUICK_ITEMS = 12
"""Items a task with ``--quick``, unless a study says otherwise."""

_STUDIES = Path(__file__).parents[1]

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """A table of a result: ``columns`` name what ``rows`` hold; None is what is undefined.

    ``note`` stands below it: n, what the intervals are, and which reading of the paper was taken.
    ``digits`` are those of floats.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Value]]
    note: str = ""
    digits: int = 3

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name}, row {index}: {len(row)} cells, {len(self.columns)} columns"
                )

    def texts(self) -> list[list[str]]:
        """The cells as a reader sees them."""
        return [[self._text(value) for value in row] for row in self.rows]

    def markdown(self) -> str:
        """The table in Markdown, its note below."""
        aligned = [_is_text(row[i] for row in self.rows) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(escape(column) for column in self.columns) + " |",
            "|" + "|".join(" --- " if text else " ---: " for text in aligned) + "|",
            *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in self.texts()),
        ]
        return "\n".join(lines) + (f"\n\n{self.note}" if self.note else "")

    def csv(self) -> str:
        """The table as CSV with full precision; undefined cells are empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if v is None else v for v in row] for row in self.rows)
        return buffer.getvalue()

    def _text(self, value: Value) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if value is None or isinstance(value, float):
            return number(value, self.digits)
        return str(value)


@dataclass(frozen=True)
class Picture:
    """A figure of a result; ``draw`` makes the matplotlib figure (see studies.pictures)."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass
class Result:
    """What a study found. ``findings`` are sentences computed from the tables; ``limits`` say
    what the figures do not show; ``settings`` what fixes them (judges, items, seed, data)."""

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
            "schema": 1,
            "study": self.study,
            "title": self.title,
            "settings": self.settings,
            "versions": versions(),
            "findings": self.findings,
            "limits": self.limits,
            "tables": {
                table.name: {
                    "title": table.title,
                    "columns": list(table.columns),
                    "rows": [list(row) for row in table.rows],
                    "note": table.note,
                }
                for table in self.tables
            },
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
        from judgesense.studies.common.figures import save

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


def judged(
    judges: Sequence[Any],
    benchmark: Benchmark | Callable[[], Benchmark],
    identity: Mapping[str, Any],
    settings: Settings,
    out: Path,
    note: Callable[[str], None],
    spent: float = 0.0,
) -> dict[str, Any]:
    """Have a study's grid judged into ``out``, as ``judgesense run`` does; returns its report.

    ``identity`` is what fixes the benchmark's content (names, hashes, seed), as JSON values. A
    finished run is read, not judged again; one that was stopped goes on. ``spent`` US dollars
    count against the judges' ``max_cost`` already.
    """
    specs = resolve_all(judges, None, {})
    load = benchmark if callable(benchmark) else lambda: benchmark
    return execute(specs, DataReference(dict(identity), load), settings, out, note, spent=spent)


@dataclass(frozen=True)
class Published:
    """A figure that a paper states: its value and its place (section, table or file)."""

    value: float
    place: str


def published(study: str) -> Mapping[str, Published]:
    """The figures that a study's paper states, by key; what it does not state is not there.

    They are in ``<study>/published.yaml``: ``key: {value: ..., place: ...}``.
    """
    return _published(study)


@cache
def _published(study: str) -> Mapping[str, Published]:
    path = _STUDIES / study.replace("-", "_") / "published.yaml"
    entries = yaml.safe_load(path.read_text("utf-8"))["figures"]
    return {key: Published(float(entry["value"]), entry["place"]) for key, entry in entries.items()}


def need_judges(judges: Sequence[Any], least: int, what: str) -> None:
    """Raise JudgeSenseError if fewer judges were given than a measure needs."""
    if len(judges) < least:
        raise JudgeSenseError(
            f"{what} needs at least {least} judges, got {len(judges)}; give --judge again with "
            "another (`judgesense judges list` names them)"
        )


def _is_text(values: Any) -> bool:
    return any(isinstance(value, (str, bool)) for value in values)


def _setting(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return escape(", ".join(map(str, value)))
    text = str(value)
    return f"`{text}`" if "|" in text and "`" not in text else escape(text)
