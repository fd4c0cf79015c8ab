"""People's labels in an imported file: read, put together as gold labels, and kept apart."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from judgesense.files.tables import Rows
from judgesense.importers.column_names import NUMBER, word_of
from judgesense.importers.columns import ROW, ColumnMap
from judgesense.importers.readings import Parser, is_label, label_in, spellings
from judgesense.importers.rows import texts_of
from judgesense.log.folder import PEOPLE_SCHEMA
from judgesense.tasks import NO_ORDER, UNCLEAR

_AS_NAMED = ColumnMap({})
_LIMIT = re.compile(r"(>=|<=|>|<)\s*(-?[0-9.]+)")
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass
class PeopleLabels:
    """Gives each row of a file its gold label, and keeps what every person said in ``names``.

    ``mapping`` is from words of verdicts and labels, in any case, to the task's labels; a key such
    as ``>=0.5`` stands for numbers. ``joined`` are labels from another file, by name of a column to
    add and by item. ``parse`` reads a verdict that is no label and has a reason beside it, so that
    the reason is not read for it; None if the file has no reasons.
    """

    columns: ColumnMap
    names: Sequence[str]
    mapping: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    parse: Parser | None = None
    joined: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ties: int = 0

    def __post_init__(self) -> None:
        self._kept: dict[str, list[Any]] = {name: [] for name in PEOPLE_SCHEMA.names}
        self._rows = 0
        self._known: dict[str | None, str | None] = {None: None}
        self._spellings = spellings(self.labels or ())

    def labelled(self, rows: Rows) -> Rows:
        """The rows with people's labels as ``gold``: of several the majority, none for a tie."""
        verdicts = (self.columns.given.get("raw_decision") or "raw_decision").split(",")
        reasons = (self.columns.given.get("raw_text") or "").split(",")
        columns = dict(rows.columns)
        columns[ROW] = list(range(self._rows + 1, self._rows + len(rows) + 1))
        self._rows += len(rows)
        if self.joined:
            items = texts_of(self.columns.column(Rows(columns, rows.places), "item_id")) or []
            for name, by_item in self.joined.items():
                columns[name] = [by_item.get(item) for item in items]
        for number, name in enumerate(verdicts):
            if name in columns:
                words = [self._word(cell) for cell in self._cells(rows, name)]
                if len(reasons) == len(verdicts) and reasons[number] in columns:
                    words = self._without_reasons(words, self._cells(rows, reasons[number]))
                columns[name] = words
        if self.names:
            columns["gold"] = self._majority(Rows(columns, rows.places))
        return Rows(columns, rows.places)

    def _majority(self, rows: Rows) -> list[str | None]:
        given = [[self._word(cell) for cell in self._cells(rows, name)] for name in self.names]
        places = [
            texts_of(self.columns.column(rows, target)) or [None] * len(rows)
            for target in ("task", "item_id", "order")
        ]
        gold: list[str | None] = []
        for task, item, order, *labels in zip(*places, *given, strict=True):
            counts = Counter(label for label in labels if label is not None).most_common(2)
            tie = len(counts) > 1 and counts[0][1] == counts[1][1]
            self.ties += tie
            gold.append(counts[0][0] if counts and not tie else None)
            for name, label in zip(self.names, labels, strict=True):
                if label is not None:
                    row = (task, item, order or NO_ORDER, name, label)
                    for column, value in zip(self._kept.values(), row, strict=True):
                        column.append(value)
        return gold

    def _cells(self, rows: Rows, name: str) -> list[Any]:
        return texts_of(_AS_NAMED.column(rows, name)) or [None] * len(rows)

    def _without_reasons(self, words: list[Any], reasons: list[Any]) -> list[str | None]:
        """Verdicts that nobody reads from the reason: without a label they are UNCLEAR."""
        read, labels = self.parse or is_label, self.labels or ()
        return [
            (UNCLEAR if reason else None)
            if word is None
            else word
            if not reason or not labels or word in labels
            else read(word, labels)
            for word, reason in zip(words, reasons, strict=True)
        ]

    def table(self) -> pa.Table:
        """What every person said, one row a label."""
        return pa.table(self._kept, schema=PEOPLE_SCHEMA)

    def _word(self, cell: str | None) -> str | None:
        if cell not in self._known:
            word = word_of(cell)
            self._known[cell] = None if word is None else self._read(word)
        return self._known[cell]

    def _read(self, word: str) -> str:
        folded = {key.casefold(): label for key, label in self.mapping.items()}
        if word.casefold() in folded:
            return folded[word.casefold()]
        for key, label in self.mapping.items():
            limit = _LIMIT.fullmatch(key) if NUMBER.fullmatch(word) else None
            if limit and _COMPARISONS[limit[1]](float(word), float(limit[2])):
                return label
        label = label_in(self._spellings, word)
        return word if label == UNCLEAR else label
