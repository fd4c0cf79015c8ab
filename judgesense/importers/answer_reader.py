"""What a judge's answers are read as: verdicts, statuses and gold labels of an import's rows.

Rows that differ in nothing that a verdict depends on are read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.importers.values import has_failed, is_label, label_in, spellings
from judgesense.log.schema import SCHEMA
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED

Parser = Callable[[str, tuple[str, ...]], str]
"""Reads a judge's text, given the labels, as a label, UNCLEAR or REFUSED."""

NO_DECISION = "the log has no decision"
"""The error of a row that says nothing."""
_SHOWN = 60
"""Characters of an unread answer that are shown."""
_SHORT, _REMEMBERED = 60, 100_000
"""A text of at most so many characters is parsed once; logs repeat them by the thousand."""
_STATUS = {UNCLEAR: "unclear", REFUSED: "refused", ERROR: "error"}
_OF_STATUS = {status: word for word, status in _STATUS.items()}


class _Reading(NamedTuple):
    """What a row is read as: columns of the decision log."""

    raw_decision: str
    decision: str
    status: str
    gold: str | None
    error: str | None


class AnswerReader:
    """Reads an import's rows, table by table.

    ``spaces`` are the labels of each task. ``counts`` are the rows by status, and ``unknown`` the
    answers that could not be read, by task.
    """

    def __init__(self, spaces: Mapping[str, tuple[str, ...]], parse: Parser | None) -> None:
        self._spaces = spaces
        self._spellings = {task: spellings(labels) for task, labels in spaces.items()}
        self._parse = parse = parse or is_label
        self._parse_short = lru_cache(maxsize=_REMEMBERED)(parse)
        self.counts: dict[str, Counter[str]] = {task: Counter() for task in spaces}
        self.unknown: dict[str, Counter[str]] = {task: Counter() for task in spaces}

    def decide(self, table: pa.Table) -> pa.Table:
        """The rows of a spool's table as a decision log.

        Raises JudgeSenseError, with the row's place, for gold or a decision that is no label.
        """
        best, mass, margin = _of_options(table["option_logprobs"].combine_chunks())
        numbers: dict[tuple[Any, ...], int] = {}
        codes = [numbers.setdefault(answer, len(numbers)) for answer in self._answers(table, best)]
        sizes = np.bincount(codes, minlength=len(numbers)).tolist()
        readings = []
        for number, (answer, size) in enumerate(zip(numbers, sizes, strict=True)):
            try:
                readings.append(self._read(size, *answer))
            except JudgeSenseError as error:
                place = table["place"][codes.index(number)]
                raise JudgeSenseError(f"{place}, {error}") from error
            self.counts[answer[0]][readings[-1].status] += size
        at = pa.array(codes, pa.int32())
        columns = {name: table[name] for name in SCHEMA.names}
        for name, values in zip(_Reading._fields, zip(*readings, strict=True), strict=True):
            columns[name] = pa.array(values, pa.string()).take(at)
        for name, figures in (("option_mass", mass), ("margin", margin)):
            columns[name] = pc.coalesce(table[name], pa.array(figures, mask=np.isnan(figures)))
        return pa.table(columns, schema=SCHEMA)

    def _answers(self, table: pa.Table, best: list[str | None]) -> Iterable[tuple[Any, ...]]:
        """What each row's verdict depends on; no text where the decision is a label already."""
        tasks, raws = _values(table, "task"), _values(table, "raw_decision")
        is_read = {
            (task, raw): raw is not None
            and (raw in UNDECIDED or label_in(self._spellings[task], raw) != UNCLEAR)
            for task, raw in set(zip(tasks, raws, strict=True))
        }
        texts = (
            None if is_read[task, raw] else text
            for task, raw, text in zip(tasks, raws, _values(table, "raw_text"), strict=True)
        )
        status, decision, gold, error = (
            _values(table, name) for name in ("status", "decision", "gold", "error")
        )
        flips = table["gold_flips"].to_pylist()
        return zip(tasks, status, raws, texts, decision, gold, flips, error, best, strict=True)

    def _read(
        self,
        size: int,
        task: str,
        status: str | None,
        raw: str | None,
        text: str | None,
        decision: str | None,
        gold: str | None,
        gold_flips: bool,
        error: str | None,
        best: str | None,
    ) -> _Reading:
        labels, spelled = self._spaces[task], self._spellings[task]
        stated = raw
        if status in _OF_STATUS:
            raw = _OF_STATUS[status]
        elif raw is not None:
            if raw not in UNDECIDED and (raw := label_in(spelled, raw)) == UNCLEAR:
                raw = self._parsed(text or str(stated), labels)
        elif decision is not None:
            raw = label_in(spelled, decision)
        elif text is not None:
            raw = ERROR if has_failed(text) else self._parsed(text, labels)
            error = error or (text[:_SHOWN] if raw == ERROR else None)
        elif best is not None:
            raw = label_in(spelled, best)
        else:
            raw, error = ERROR, error or NO_DECISION
        if raw == UNCLEAR and status is None and stated not in UNDECIDED:
            self.unknown[task][str(stated or text or decision)[:_SHOWN]] += size
        if gold is not None:
            gold = self._require_label(gold, "gold", task)
            if gold_flips and gold in labels[:2]:
                gold = labels[1 - labels.index(gold)]
        if raw in UNDECIDED or decision is None:
            decision = raw
        elif decision not in UNDECIDED:
            decision = self._require_label(decision, "decision", task)
        return _Reading(raw, decision, _STATUS.get(raw, "ok"), gold, error)

    def _parsed(self, text: str, labels: tuple[str, ...]) -> str:
        if text in labels:
            return text
        return (self._parse_short if len(text) <= _SHORT else self._parse)(text, labels)

    def _require_label(self, value: str, name: str, task: str) -> str:
        if (label := label_in(self._spellings[task], value)) == UNCLEAR:
            raise JudgeSenseError(
                f"{name}: {value!r} is not one of the labels {', '.join(self._spaces[task])} of "
                f"task {task!r}"
            )
        return label


def _of_options(lists: pa.ListArray) -> tuple[list[str | None], Any, Any]:
    """By row: the most likely option, the probability of all, and the distance of the best two in
    nats; None and NaN where there is none."""
    best = np.full(len(lists), None, dtype=object)
    mass, margin = np.full((2, len(lists)), np.nan)
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    rows = np.flatnonzero(lengths)
    if not len(rows):
        return best.tolist(), mass, margin
    lengths, options = lengths[rows], lists.flatten()
    values = options.field("logprob").to_numpy(zero_copy_only=False)
    names = options.field("option").to_numpy(zero_copy_only=False)
    starts = np.cumsum(lengths) - lengths
    likely = np.lexsort((-values, np.repeat(rows, lengths)))
    best[rows] = names[likely[starts]]
    mass[rows] = np.minimum(1.0, np.add.reduceat(np.exp(values), starts))
    two = lengths > 1
    with np.errstate(invalid="ignore"):
        margin[rows[two]] = values[likely[starts[two]]] - values[likely[starts[two] + 1]]
    return best.tolist(), mass, margin


def _values(table: pa.Table, name: str) -> list[Any]:
    column = table[name]
    if column.null_count == len(column):
        return [None] * len(column)
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values
