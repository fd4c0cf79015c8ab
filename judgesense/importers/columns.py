"""The column map: from the names of a foreign log to those of the decision log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import ABSENT, Record, Rows

EXTRA = ("prompt", "gold_ab")
"""Targets beside the decision log's columns: the user message, whose hash is ``prompt_id``, and a
gold label for the order AB, whatever the order of the row."""

TARGETS = (*SCHEMA.names, *EXTRA)


@dataclass(frozen=True)
class ColumnMap:
    """Where each column of the decision log comes from.

    ``given`` maps a target to a source column (dots reach into nested values: ``doc.id``) or to
    a constant (``:coherence``). Other targets use ``default``, the names of the format, which may
    be missing from a row.
    """

    given: Mapping[str, str]
    default: Mapping[str, str]

    def get(self, record: Record, target: str) -> Any:
        """The record's value for a target, or None.

        Raises JudgeSenseError, with the record's columns, if a named source column is missing.
        """
        source = self.given.get(target)
        if source is None:
            name = self.default.get(target, target)
            if "." not in name:
                return record.values.get(name)
            value = _lookup(record.values, name)
            return None if value is ABSENT else value
        if source.startswith(":"):
            return source[1:]
        value = _lookup(record.values, source)
        if value is ABSENT:
            raise JudgeSenseError(
                f"{record.place}: no column {source!r} (for {target}); its columns: "
                f"{', '.join(map(str, record.values))}"
            )
        return value

    def column(self, rows: Rows, target: str) -> list[Any] | None:
        """The values of `get` for many entries; None if there are none.

        Raises JudgeSenseError as `get` does.
        """
        source = self.given.get(target)
        if source is not None and source.startswith(":"):
            return [source[1:]] * len(rows.places)
        name = source or self.default.get(target, target)
        values = rows.columns.get(name)
        if values is not None and ABSENT not in values:
            return values
        if source is None and "." not in name:
            return values and [None if value is ABSENT else value for value in values]
        return [self.get(record, target) for record in rows.records()]


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
            check_target(target, targets)
            if target in columns:
                raise JudgeSenseError(f"columns: {target} appears twice")
            columns[target] = source
    return columns


def check_target(target: str, targets: Sequence[str] = TARGETS) -> None:
    """Raise JudgeSenseError unless ``target`` is one of ``targets``."""
    if target not in targets:
        raise JudgeSenseError(
            f"columns: unknown column {target!r}; choose one of {', '.join(targets)}"
        )


def _lookup(values: Mapping[str, Any], name: str) -> Any:
    if name in values:
        return values[name]
    value: Any = values
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ABSENT
        value = value[part]
    return value
