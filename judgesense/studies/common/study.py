"""How a study is declared, and how its declaration becomes a result.

A study judges a grid (`judged`) or asks responders (`question_sets.ask_all`), and measures cells:
dicts or small dataclasses. What it shows is declared on these cells, its *source*, in the order of
the page:

- a table is a function from the source to records, under `table`: name, title, note, headings of
  the columns whose id does not say it all. The paper's own figures are columns beside them
  (`paper`). A table without records is left out.
- a figure is a `Figure`, drawn by one of the kinds of `common.figures`, which names the columns.
- findings and limits are functions from the source and the finished tables to sentences.

::

    @table("accuracy", "Accuracy over templates", "std: over templates.", n_items="items")
    def accuracy(cells):
        for cell in cells:
            yield {"model": cell.model, "accuracy": cell.mean, "n_items": cell.n}

    STUDY = Study("my-study", "My study", tables=[accuracy], findings=[findings],
                  figures=[Figure("accuracy", "…", "accuracy", Points(...))])
    result = STUDY.result(cells, settings={"judges": [...]})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.measure.assessment import ReportContents
from judgesense.pipeline import Settings, execute, resolve_all
from judgesense.pipeline.data import DataReference, add_variants
from judgesense.reporting.study_result import Picture, Record, Result, Table

if TYPE_CHECKING:
    from judgesense.pipeline.data import Parts
    from judgesense.studies.common.figures import Kind

_STUDIES = Path(__file__).parents[1]

PROTOCOL = {"what this is": "the paper's protocol with the models below, not with the paper's"}
REANALYSIS = {"what this is": "a re-analysis of existing verdicts or scores"}
"""The first setting of every study: what a result replicates."""

Text = str | Callable[[Any], str]
"""A text, or a function of the source that writes it."""

Tables = Mapping[str, Table]
Sentences = Callable[[Any, Tables], Iterable[str]]


def table(
    name: str, title: Text, note: Text = "", **headings: str
) -> Callable[[Callable[[Any], Iterable[Record]]], Callable[[Any], Table]]:
    """Declare the function below, from a source to records, as a table of the source.

    >>> @table("double", "Doubled", n="number")
    ... def double(numbers):
    ...     return ({"n": n, "doubled": 2 * n} for n in numbers)
    >>> print(double([1, 2]).markdown())
    | number | doubled |
    | ---: | ---: |
    | 1 | 2 |
    | 2 | 4 |
    """
    return lambda rows: (
        lambda source: Table.from_records(
            name, _text(title, source), list(rows(source)), _text(note, source), **headings
        )
    )


@dataclass(frozen=True)
class Figure:
    """The declaration of a figure.

    ``data`` is the name of the table that it draws, or a function from the source and the tables to
    records. Without records there is no figure.
    """

    name: str
    caption: Text
    data: str | Callable[[Any, Tables], Iterable[Record]]
    kind: Kind

    def pictures(self, source: Any, tables: Tables) -> Iterator[Picture]:
        """The figure, drawn when written; none without records."""
        if isinstance(self.data, str):
            rows = list(tables[self.data].rows) if self.data in tables else []
        else:
            rows = list(self.data(source, tables))
        if rows:
            yield Picture(self.name, _text(self.caption, source), partial(self.kind.draw, rows))


@dataclass(frozen=True)
class Study:
    """The declaration of a study: what it shows of the cells that it measured."""

    name: str
    title: str
    tables: Sequence[Callable[[Any], Table]]
    figures: Sequence[Figure] = ()
    findings: Sequence[Sentences] = ()
    limits: Sequence[Sentences] = ()

    def result(self, source: Any, settings: Mapping[str, Any]) -> Result:
        """All tables that have rows, the figures, the findings and the limits of a source."""
        all_tables = [declaration(source) for declaration in self.tables]
        tables = {table.name: table for table in all_tables if table.rows}
        return Result(
            self.name,
            self.title,
            dict(settings),
            list(tables.values()),
            [text for finding in self.findings for text in finding(source, tables)],
            [text for limit in self.limits for text in limit(source, tables)],
            [table for figure in self.figures for table in figure.pictures(source, tables)],
        )


def _text(text: Text, source: Any) -> str:
    return text if isinstance(text, str) else text(source)


@dataclass(frozen=True)
class Published:
    """A figure stated in a paper: its value and its place (section, table or file)."""

    value: float
    place: str

    def beside(self, values: Sequence[float]) -> Record:
        """The paper's figure and its place, and the lowest and the highest of this study's."""
        ends = {"lowest": min(values, default=None), "highest": max(values, default=None)}
        return {"paper": self.value, "place": self.place, **ends}


@cache
def published(study: str) -> Mapping[str, Published]:
    """The figures stated in a study's paper, by key, from ``<study>/published.yaml``."""
    path = _STUDIES / study.replace("-", "_") / "published.yaml"
    entries = read_yaml(path)["figures"]
    return {key: Published(float(entry["value"]), entry["place"]) for key, entry in entries.items()}


def paper(study: str, key: str) -> float | None:
    """The figure that a study's paper states, or None."""
    entry = published(study).get(key)
    return None if entry is None else entry.value


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the defined values, or None."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def judged(
    judges: Sequence[Any],
    benchmark: Benchmark | Callable[[], Benchmark],
    identity: Mapping[str, Any],
    settings: Settings,
    out: Path,
    note: Callable[[str], None],
    variants: Sequence[str] = (),
    parts: Parts | None = None,
) -> ReportContents:
    """Judge a study's grid into ``out``, as ``judgesense run`` does, and return its report.

    ``identity`` holds JSON values that fix the benchmark's content (names, hashes, seed). A
    finished run is read, and an interrupted one is resumed. ``variants`` are chosen as in
    ``judgesense run`` and made from the templates and items of ``parts``.
    """
    load = benchmark if callable(benchmark) else lambda: benchmark
    data = add_variants(DataReference(dict(identity), load, parts), variants)
    specs = resolve_all(judges, None, {})
    return execute(specs, data, settings, out, note, tries=False).contents


def need_judges(judges: Sequence[Any], least: int, what: str) -> None:
    """Raise JudgeSenseError if there are fewer judges than a measure needs."""
    if len(judges) < least:
        raise JudgeSenseError(
            f"{what} needs at least {least} judges, got {len(judges)}; repeat --judge to add one "
            "(`judgesense judges list` shows the names)"
        )
