"""The column map: from the names of a foreign log to those of the decision log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import ABSENT, Rows
from judgesense.log.schema import SCHEMA

TARGETS = (*SCHEMA.names, "prompt", "gold_ab")
"""The decision log's columns; the user message, whose hash is ``prompt_id``; and a gold label for
the order AB, whatever the order of the row."""

EVERY_OTHER = "*"
"""As the source of ``raw_decision``: every column that no target names is a judge's. Columns may
also be named, separated by commas; then other targets may have a column for each of them."""

ROW = "row number"
"""The column that stands for an id where a file has none."""

TASK, VERDICT, HUMAN = "criterion of the column", "verdict of the judge", "label of a person"
ORDER, REPEAT, SYSTEM = "option order", "number of the repeat", "system of the column"
ITEM, COMPARED = "number of the row", "output as compared"
CONVERSATION = "beginning of the id"
"""Names of the columns that a step adds, which no file has."""
ADDED = (TASK, VERDICT, HUMAN, ORDER, REPEAT, SYSTEM, ITEM, CONVERSATION)

NAMES = re.compile(r"\{([^{}]+)\}")
"""The columns that a source joins."""


@dataclass(frozen=True)
class ColumnMap:
    """Where each column of the decision log comes from.

    ``given`` maps a target to a source column (dots reach into nested values: ``doc.id``), to
    several joined by text (``{dataset}/{query}``), or to a constant (``:coherence``). Other targets
    are columns of their own name, which may be missing from a row.
    """

    given: Mapping[str, str]

    def column(self, rows: Rows, target: str) -> list[Any] | None:
        """The values for a target; None if there are none.

        Raises JudgeSenseError, with the first row's columns, if a named source column is missing.
        """
        source = self.given.get(target)
        if source is None:
            values = values_in(rows, target)
            if values is None or ABSENT not in values:
                return values
            return [None if value is ABSENT else value for value in values]
        if source.startswith(":"):
            return [source[1:]] * len(rows)
        if names := NAMES.findall(source):
            columns = [self._named(rows, name, target) for name in names]
            form = NAMES.sub("{}", source)
            return [form.format(*values) for values in zip(*columns, strict=True)]
        return self._named(rows, source, target)

    def _named(self, rows: Rows, name: str, target: str) -> list[Any]:
        values = values_in(rows, name)
        if values is not None and target == "raw_text" and "." in name:
            return [None if value is ABSENT else value for value in values]  # No reason given.
        if values is None or ABSENT in values:
            at = 0 if values is None else values.index(ABSENT)
            row = rows.records()[at]
            raise JudgeSenseError(
                f"{row.place}: no column {name!r} (for {target}); its columns: "
                f"{', '.join(map(str, row.values))}"
            )
        return values

    def long(self, rows: Rows) -> tuple[Rows, ColumnMap]:
        """Rows with one column per judge, as one row per decision, and their map; other rows as
        they are.

        Each row becomes as many as there are judges, with the columns ``judge`` and
        ``raw_decision``. Raises JudgeSenseError if no column is left for a judge.

        >>> columns = ColumnMap({"raw_decision": "*", "item_id": "id"})
        >>> long, _ = columns.long(Rows({"id": [1], "gpt": ["YES"], "llama": ["NO"]}, ["row 1"]))
        >>> long.columns["judge"], long.columns["raw_decision"], long.columns["id"]
        (['gpt', 'llama'], ['YES', 'NO'], [1, 1])
        """
        source = self.given.get("raw_decision", "")
        if source == EVERY_OTHER:
            sources = [each for each in self.given.values() if not each.startswith(":")]
            named = {name for each in sources for name in (NAMES.findall(each) or [each])}
            judges = [name for name in rows.columns if name not in named]
            if not judges:
                raise JudgeSenseError(f"{rows.places[0]}: no column is left that names a judge")
        elif source in rows.columns or len(judges := source.split(",")) < 2:
            return rows, self
        each_judge = {"raw_decision": judges}
        for target, source in self.given.items():
            several = len(parts := source.split(",")) == len(judges) > 1
            if several and source not in rows.columns:
                each_judge.setdefault(target, parts)
        columns = {
            name: [value for value in values for _ in judges]
            for name, values in rows.columns.items()
            if name not in judges
        }
        columns["judge"] = judges * len(rows)
        for target, names in each_judge.items():
            parted = zip(*(self._named(rows, name, target) for name in names), strict=True)
            columns[target] = [value for row in parted for value in row]
        left = {name: source for name, source in self.given.items() if name not in each_judge}
        places = [place for place in rows.places for _ in judges]
        return Rows(columns, places), ColumnMap(left)


def read_columns(columns: ColumnMap) -> set[str]:
    """The columns of a file that the decision log takes.

    Of a prompt its id is read, not its text; what people see of an item is in it.
    """
    sources = {
        part
        for target in TARGETS
        for source in [columns.given.get(target, target)]
        for part in (NAMES.findall(source) or source.split(","))
    }
    return sources - {"prompt", columns.given.get("prompt", "")} | {COMPARED}


def values_in(rows: Rows, name: str) -> list[Any] | None:
    """A column's values, or those inside nested ones; None if no row can have them."""
    if (values := rows.columns.get(name)) is not None:
        return values
    parts = name.split(".")
    heads = ((".".join(parts[:n]), parts[n:]) for n in range(len(parts) - 1, 0, -1))
    found = next(((head, rest) for head, rest in heads if head in rows.columns), None)
    if found is None:
        return None
    values = rows.columns[found[0]]
    for part in found[1]:
        values = [
            value.get(part, ABSENT) if isinstance(value, Mapping) else ABSENT for value in values
        ]
    return values


def parse_columns(texts: Sequence[str], targets: Sequence[str] = TARGETS) -> dict[str, str]:
    """``["judge=model,task=:coherence", ...]`` as a map from target to source.

    ``targets`` are the allowed targets, by default those of the decision log.

    Raises JudgeSenseError for an entry without ``=``, an unknown target, or a repeated one.

    >>> parse_columns(["judge=model,task=:coherence", "item_id=doc.id"])
    {'judge': 'model', 'task': ':coherence', 'item_id': 'doc.id'}
    """
    columns: dict[str, str] = {}
    for text in texts:
        for entry in re.split(r",\s*(?=\w+\s*=)", text):
            target, equals, source = (part.strip() for part in entry.partition("="))
            if not equals or not source:
                raise JudgeSenseError(
                    f"columns: {entry!r} is not TARGET=COLUMN or TARGET=:CONSTANT"
                )
            if target not in targets:
                raise JudgeSenseError(
                    f"columns: unknown column {target!r}; choose one of {', '.join(targets)}"
                )
            if target in columns:
                raise JudgeSenseError(f"columns: {target} appears twice")
            columns[target] = source
    return columns
