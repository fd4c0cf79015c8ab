"""What a judge's answers are read as: verdicts, statuses and gold labels of an import's rows.

Rows that differ in nothing that a verdict depends on are read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED

Parser = Callable[[str, tuple[str, ...]], str]
"""Reads a judge's text, given the labels, as a label, UNCLEAR or REFUSED."""

LONGEST = 60
"""In characters; a longer text is shown by its ends."""
_ENDS = 500
_STATUS = {UNCLEAR: "unclear", REFUSED: "refused", ERROR: "error"}
_OF_STATUS = {status: word for word, status in _STATUS.items()}


class _Answer(NamedTuple):
    """What a verdict depends on. ``text`` is None where the decision is a label already."""

    task: str
    status: str | None
    raw: str | None
    text: str | None
    decision: str | None
    gold: str | None
    gold_flips: bool
    error: str | None
    best: str | None


class _Reading(NamedTuple):
    """What a row is read as: columns of the decision log."""

    raw_decision: str
    decision: str
    status: str
    gold: str | None
    error: str | None


class Readings:
    """Reads an import's rows, table by table.

    ``spaces`` are the labels of each task. ``counts`` are the rows by status, ``unknown`` the
    answers that could not be read, and ``shown`` the answers with what they were read as, by task.
    """

    def __init__(self, spaces: Mapping[str, tuple[str, ...]], parse: Parser) -> None:
        self._spaces, self._parse = spaces, parse
        self.counts: dict[str, Counter[str]] = {task: Counter() for task in spaces}
        self.unknown: dict[str, Counter[str]] = {task: Counter() for task in spaces}
        self.shown: dict[str, Counter[tuple[str, str]]] = {task: Counter() for task in spaces}

    def decide(self, table: pa.Table) -> pa.Table:
        """The rows of a spool's table as a decision log.

        Raises JudgeSenseError, with the row's place, for gold or a decision that is no label.
        """
        texts, tasks = _values(table, "raw_text"), _values(table, "task")
        best, mass, margin = _of_options(table["option_logprobs"].combine_chunks())
        answers = self._answers(table, tasks, texts, best)
        numbers: dict[_Answer, int] = {}
        codes = [numbers.setdefault(answer, len(numbers)) for answer in answers]
        sizes = np.bincount(codes, minlength=len(numbers)).tolist()
        readings = []
        for number, (answer, size) in enumerate(zip(numbers, sizes, strict=True)):
            try:
                readings.append(self._read(answer, size))
            except JudgeSenseError as error:
                place = table["place"][codes.index(number)]
                raise JudgeSenseError(f"{place}, {error}") from error
            self.counts[answer.task][readings[-1].status] += size
        raws = _values(table, "raw_decision")
        shown = (
            None if text is None and raw is None else _short(text or raw)
            for text, raw in zip(texts, raws, strict=True)
        )
        for (text, code, task), count in Counter(zip(shown, codes, tasks, strict=True)).items():
            if text is not None:
                self.shown[task][text, readings[code].raw_decision] += count
        at = pa.array(codes, pa.int32())
        for name, values in zip(_Reading._fields, zip(*readings, strict=True), strict=True):
            table = _with(table, name, pa.array(values, pa.string()).take(at))
        for name, figures in (("option_mass", mass), ("margin", margin)):
            own = pa.array(figures, mask=np.isnan(figures))
            table = _with(table, name, pc.coalesce(table[name], own))
        return table.select(SCHEMA.names)

    def _answers(
        self, table: pa.Table, tasks: list[str], texts: list[str | None], best: list[str | None]
    ) -> list[_Answer]:
        raws = _values(table, "raw_decision")
        is_read = {
            (task, raw): raw is not None
            and (raw in UNDECIDED or _label(raw, self._spaces[task], is_label) != UNCLEAR)
            for task, raw in set(zip(tasks, raws, strict=True))
        }
        needed = (
            None if is_read[task, raw] else text
            for task, raw, text in zip(tasks, raws, texts, strict=True)
        )
        return list(
            map(
                _Answer, tasks, _values(table, "status"), raws, needed, _values(table, "decision"),
                _values(table, "gold"), table["gold_flips"].to_pylist(), _values(table, "error"),
                best,
            )
        )  # fmt: skip

    def _read(self, answer: _Answer, size: int) -> _Reading:
        """The verdict of some rows; their place stands before an error's text."""
        labels = self._spaces[answer.task]
        raw, error = answer.raw, answer.error
        if answer.status in _OF_STATUS:
            raw = _OF_STATUS[answer.status]
        elif raw is not None and raw not in UNDECIDED:
            raw = _label(raw, labels, is_label)
            if raw == UNCLEAR:
                raw = _label(answer.text or str(answer.raw), labels, self._parse)
        elif raw is None and answer.decision is not None:
            raw = _label(answer.decision, labels, is_label)
        elif raw is None and answer.text is not None:
            raw = _label(answer.text, labels, self._parse)
        elif raw is None and answer.best is not None:
            raw = _label(answer.best, labels, is_label)
        elif raw is None:
            raw, error = ERROR, error or "the log has no decision"
        if raw == UNCLEAR and answer.status is None and answer.raw not in UNDECIDED:
            unknown = str(answer.raw or answer.text or answer.decision)[:LONGEST]
            self.unknown[answer.task][unknown] += size
        gold, decision = answer.gold, answer.decision
        if gold is not None:
            gold = self._require_label(gold, "gold", answer.task)
        if decision is not None and decision not in UNDECIDED:
            decision = self._require_label(decision, "decision", answer.task)
        if answer.gold_flips and len(labels) == 2 and gold is not None:
            gold = labels[1 - labels.index(gold)]
        return _Reading(
            raw_decision=raw,
            decision=raw if raw in UNDECIDED or decision is None else decision,
            status=_STATUS.get(raw, "ok"),
            gold=gold,
            error=error,
        )

    def _require_label(self, value: str, name: str, task: str) -> str:
        labels = self._spaces[task]
        label = _label(value, labels, is_label)
        if label == UNCLEAR:
            raise JudgeSenseError(
                f"{name}: {value!r} is not one of the labels {', '.join(labels)} of task {task!r}"
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
    """A column of text as Python values."""
    column = table[name]
    if column.null_count == len(column):
        return [None] * len(column)
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), values)


@lru_cache(maxsize=1024)
def _short(text: str) -> str:
    """A text on one line; of a long one, both ends, since a verdict is at one of them."""
    if len(text) > 2 * _ENDS:
        text = f"{text[:_ENDS]} {text[-_ENDS:]}"
    line, half = " ".join(text.split()), (LONGEST - 5) // 2
    return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


def _label(text: str, labels: tuple[str, ...], parse: Parser) -> str:
    return text if text in labels else parse(text, labels)


def is_label(text: str, labels: tuple[str, ...]) -> str:
    """The label that the text is, in any case; else UNCLEAR."""
    folded = {label.casefold(): label for label in labels}
    return folded.get(text.strip().casefold(), UNCLEAR)
