"""People's labels in an imported file: read, put together as gold labels, and kept apart."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from judgesense.files.tables import Rows
from judgesense.importers.columns import ROW, ColumnMap, values_in
from judgesense.importers.rows import cells_in, texts_of
from judgesense.importers.values import (
    abbreviated,
    fold,
    has_failed,
    label_in,
    misspelt,
    number_in,
    says_nothing,
    spellings,
    stated,
    word_of,
)
from judgesense.importers.who import is_final
from judgesense.importers.word_counts import inflected
from judgesense.log.folder import PEOPLE_SCHEMA
from judgesense.tasks import ERROR, NO_ORDER, UNCLEAR, UNDECIDED
from judgesense.text import shorten

_LIMIT = re.compile(r"(>=|<=|>|<)\s*(-?[0-9.]+)")
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


class Vocabulary(NamedTuple):
    """The labels of a task, and what other words mean."""

    labels: tuple[str, ...] | None = None
    mapping: Mapping[str, str] = {}


@dataclass
class PeopleLabels:
    """Gives each row of a file its gold label, and keeps what every person said in ``names``.

    ``mapping`` is from words of verdicts and labels, in any case, to the task's labels; a key such
    as ``>=0.5`` stands for numbers. ``joined`` are labels from another file, by name of a column to
    add and by item.
    """

    columns: ColumnMap
    names: Sequence[str]
    mapping: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    joined: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tasks: Mapping[str, Vocabulary] = field(default_factory=dict)
    """The labels and mapping of each task, where they differ."""
    texts: Collection[str] = ()
    """The columns of verdicts that hold a judge's texts, which `build_parts` reads."""
    ties: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    """Verdicts and people's labels that are no label: neither counts as a verdict or label."""
    failed: Counter[str] = field(default_factory=Counter)
    """The texts of failed calls."""
    misspelt: Counter[str] = field(default_factory=Counter)
    """Misspellings that are read as the label that they misspell."""
    blank: int = 0
    """Verdicts that a file leaves out, or of which it says that there is none."""

    def __post_init__(self) -> None:
        self._kept: dict[str, list[Any]] = {name: [] for name in PEOPLE_SCHEMA.names}
        self._rows = 0
        self._reader = _Reader(Vocabulary(self.labels, self.mapping), self.misspelt)
        self._readers = {task: _Reader(each, self.misspelt) for task, each in self.tasks.items()}

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
            if values_in(rows, name) is None:
                continue
            words = cells_in(rows, name)
            if name not in self.texts:
                own = reasons[number] if len(reasons) == len(verdicts) else ""
                texts = cells_in(rows, own) if own else [None] * len(rows)
                readers = self._readers_of(Rows(columns, rows.places))
                cells = zip(readers, words, texts, cells_in(rows, "error"), strict=True)
                words = [self._verdict(*each) for each in cells]
            columns[name] = words
        if self.names:
            columns["gold"] = self._majority(Rows(columns, rows.places))
        return Rows(columns, rows.places)

    def _majority(self, rows: Rows) -> list[str | None]:
        readers = self._readers_of(rows)
        given = [
            [self._label(*each) for each in zip(readers, cells_in(rows, name), strict=True)]
            for name in self.names
        ]
        places = [
            texts_of(self.columns.column(rows, target)) or [None] * len(rows)
            for target in ("task", "item_id", "order")
        ]
        final = [at for at, name in enumerate(self.names) if is_final(name) and self.names[2:]]
        gold: list[str | None] = []
        for task, item, order, *labels in zip(*places, *given, strict=True):
            decided = [labels[at] for at in final if labels[at] is not None]
            counts = Counter(x for x in decided or labels if x is not None).most_common(2)
            tie = len(counts) > 1 and counts[0][1] == counts[1][1]
            self.ties += tie
            gold.append(counts[0][0] if counts and not tie else None)
            for name, label in zip(self.names, labels, strict=True):
                if label is not None:
                    row = (task, item, order or NO_ORDER, name, label)
                    for column, value in zip(self._kept.values(), row, strict=True):
                        column.append(value)
        return gold

    def _readers_of(self, rows: Rows) -> list[_Reader]:
        """What reads the labels of each row's task."""
        if not self._readers:
            return [self._reader] * len(rows)
        tasks = texts_of(self.columns.column(rows, "task")) or []
        return [self._readers.get(task, self._reader) for task in tasks]

    def _label(self, reader: _Reader, cell: str | None) -> str | None:
        word = reader.word(cell)
        if word is None or reader.knows(word):
            return word
        self.unread[shorten(word, 60)] += 1
        return None

    def _verdict(
        self, reader: _Reader, cell: str | None, reason: str | None, error: str | None
    ) -> str | None:
        """What a cell of a verdict says; ERROR beside or in the text of a failed call, and for
        what is no label."""
        if cell in UNDECIDED:
            return cell
        for text in (cell, reason):
            if text is not None and has_failed(text) and not reader.is_label(text):
                self.failed[shorten(text, 60)] += 1
                return ERROR
        word = reader.word(cell)
        if word is None:
            self.failed.update([shorten(error, 80)] if error else [])
            self.blank += not error
            return None if reason is None else ERROR
        if not reader.knows(word):
            self.unread[shorten(word, 60)] += 1
            return ERROR
        return word

    def counts(self) -> dict[str, Any]:
        """What is no verdict: the cells that are blank, unread and of failed calls."""
        kinds = {"unread": self.unread, "failed": self.failed}
        kinds |= {"misspelt": self.misspelt} if self.misspelt else {}
        texts = {kind: dict(count.most_common(5)) for kind, count in kinds.items()}
        sizes = {kind: count.total() for kind, count in kinds.items()}
        return {"blank": self.blank, **sizes, "texts": texts}

    def table(self) -> pa.Table:
        """What every person said, one row a label."""
        return pa.table(self._kept, schema=PEOPLE_SCHEMA)


class _Reader:
    """Reads cells as labels of one task."""

    def __init__(self, vocabulary: Vocabulary, corrected: Counter[str]) -> None:
        self._labels = vocabulary.labels or ()
        self._mapping = vocabulary.mapping
        self._mapped = {fold(key): label for key, label in vocabulary.mapping.items()}
        self._spellings = spellings(self._labels)
        self._known: dict[str | None, str | None] = {None: None}
        self._near: dict[str | None, str] = {}
        self._corrected = corrected

    def knows(self, word: str) -> bool:
        """Whether a word is a label, or nothing says what the labels are."""
        return not self._labels or word in self._labels or word in UNDECIDED

    def is_label(self, text: str) -> bool:
        """Whether a text is a label as it is written."""
        return label_in(self._spellings, text) != UNCLEAR

    def word(self, cell: str | None) -> str | None:
        """The label that a cell states, its word if it states none, None for no verdict."""
        if cell not in self._known:
            word = word_of(cell)
            read = None if word is None else self._read(word)
            self._known[cell] = None if says_nothing(read) else read  # --map 9=n/a
            spelled = self._mapped | {fold(label): label for label in self._labels}
            if word is not None and fold(word) not in spelled:
                near = abbreviated(word, spelled)
                if not self.knows(self._known[cell] or ""):
                    near = near or inflected(fold(word), spelled) or misspelt(fold(word), spelled)
                    if fold(word) == "none":
                        self._known[cell] = None
                if near:
                    self._known[cell] = spelled[near]
                    self._near[cell] = f"{word} as {spelled[near]}"
        if cell in self._near:
            self._corrected[self._near[cell]] += 1
        return self._known[cell]

    def _read(self, word: str) -> str:
        if fold(word) in self._mapped:
            return self._mapped[fold(word)]
        number = number_in(word)
        for key, label in self._mapping.items():
            limit = _LIMIT.fullmatch(key)
            if limit and number is not None and _COMPARISONS[limit[1]](number, float(limit[2])):
                return label
        label = label_in(self._spellings, word)
        if label == UNCLEAR and self._labels and word not in UNDECIDED:
            label = stated(word, self._labels)
        return word if label == UNCLEAR else label
