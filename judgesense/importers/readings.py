"""What a judge's answers are read as: verdicts, statuses and gold labels of an import's rows.

Rows that differ in nothing that a verdict depends on are read once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED

Parser = Callable[[str, tuple[str, ...]], str]
"""Reads a judge's text, given the labels, as a label, UNCLEAR or REFUSED."""

LONGEST = 60
"""In characters; a longer text is shown by its ends."""
_NEAR, _ENDS = 200, 2_000
_STATUS = {UNCLEAR: "unclear", REFUSED: "refused", ERROR: "error"}
_OF_STATUS = {status: word for word, status in _STATUS.items()}


class _Said(NamedTuple):
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


class _Read(NamedTuple):
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
        texts = _values(table, "raw_text")
        told = _Told(table["option_logprobs"].combine_chunks())
        said = self._said(table, texts, told)
        numbers: dict[_Said, int] = {}
        codes = [numbers.setdefault(row, len(numbers)) for row in said]
        sizes = np.bincount(codes, minlength=len(numbers)).tolist()
        read = []
        for number, (row, size) in enumerate(zip(numbers, sizes, strict=True)):
            try:
                read.append(self._read(row, size))
            except JudgeSenseError as error:
                place = table["place"][codes.index(number)]
                raise JudgeSenseError(f"{place}, {error}") from error
            self.counts[row.task][read[-1].status] += size
        self._show(said, texts, codes, read)
        at = pa.array(codes, pa.int32())
        for name, values in zip(_Read._fields, zip(*read, strict=True), strict=True):
            table = _with(table, name, pa.array(values, pa.string()).take(at))
        table = _with(table, "option_mass", told.filled(table["option_mass"], told.mass))
        table = _with(table, "margin", told.filled(table["margin"], told.margin))
        return table.select(SCHEMA.names)

    def _said(self, table: pa.Table, texts: list[str | None], told: _Told) -> list[_Said]:
        tasks, raws = _values(table, "task"), _values(table, "raw_decision")
        labels = {
            (task, raw): raw is not None
            and (raw in UNDECIDED or _label(raw, self._spaces[task], is_label) != UNCLEAR)
            for task, raw in set(zip(tasks, raws, strict=True))
        }
        needed = (
            None if labels[task, raw] else text
            for task, raw, text in zip(tasks, raws, texts, strict=True)
        )
        return list(
            map(
                _Said, tasks, _values(table, "status"), raws, needed, _values(table, "decision"),
                _values(table, "gold"), table["gold_flips"].to_pylist(), _values(table, "error"),
                told.best(),
            )
        )  # fmt: skip

    def _read(self, row: _Said, size: int) -> _Read:
        """The verdict of some rows; their place stands before an error's text."""
        labels = self._spaces[row.task]
        raw, error = row.raw, row.error
        if row.status in _OF_STATUS:
            raw = _OF_STATUS[row.status]
        elif raw is not None and raw not in UNDECIDED:
            raw = _label(raw, labels, is_label)
            if raw == UNCLEAR:
                raw = _label(row.text or str(row.raw), labels, self._parse)
        elif raw is None and row.decision is not None:
            raw = _label(row.decision, labels, is_label)
        elif raw is None and row.text is not None:
            raw = _label(row.text, labels, self._parse)
        elif raw is None and row.best is not None:
            raw = _label(row.best, labels, is_label)
        elif raw is None:
            raw, error = ERROR, error or "the log has no decision"
        if raw == UNCLEAR and row.status is None and row.raw not in UNDECIDED:
            self.unknown[row.task][str(row.raw or row.text or row.decision)[:60]] += size
        gold, decision = row.gold, row.decision
        if gold is not None:
            gold = self._own(gold, "gold", row.task)
        if decision is not None and decision not in UNDECIDED:
            decision = self._own(decision, "decision", row.task)
        if row.gold_flips and len(labels) == 2 and gold is not None:
            gold = labels[1 - labels.index(gold)]
        return _Read(
            raw_decision=raw,
            decision=raw if raw in UNDECIDED or decision is None else decision,
            status=_STATUS.get(raw, "ok"),
            gold=gold,
            error=error,
        )

    def _own(self, value: str, name: str, task: str) -> str:
        labels = self._spaces[task]
        found = _label(value, labels, is_label)
        if found == UNCLEAR:
            raise JudgeSenseError(
                f"{name}: {value!r} is not one of the labels {', '.join(labels)} of task {task!r}"
            )
        return found

    def _show(
        self,
        said: Sequence[_Said],
        texts: Sequence[str | None],
        codes: Sequence[int],
        read: Sequence[_Read],
    ) -> None:
        """Count the answers with what they were read as."""
        ends: dict[str, str] = {}

        def short(text: str | None) -> str | None:
            if text is None or len(text) > LONGEST:
                return text and _short(text)
            return ends.get(text) or ends.setdefault(text, _short(text))

        shown = (short(text or row.raw) for row, text in zip(said, texts, strict=True))
        for (text, code, task), count in Counter(
            zip(shown, codes, (row.task for row in said), strict=True)
        ).items():
            if text is not None:
                self.shown[task][text, read[code].raw_decision] += count


class _Told:
    """The options' log-probabilities of a table's rows, as flat arrays."""

    def __init__(self, lists: Any) -> None:
        # A null list has no length, and the slots below it may be another's.
        self._rows = np.flatnonzero(lists.value_lengths().fill_null(0).to_numpy() > 0)
        self._n, flat = len(lists), lists.flatten()
        self._names = flat.field("option").to_pylist()
        self._values = flat.field("logprob").to_numpy(zero_copy_only=False)
        self._lengths = lists.value_lengths().fill_null(0).to_numpy()[self._rows]
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]]).astype(np.int64)

    def best(self) -> list[str | None]:
        """The first of each row's most likely options."""
        found: list[str | None] = [None] * self._n
        for rows, values, starts in self._groups():
            for row, at in zip(rows.tolist(), (starts + values.argmax(1)).tolist(), strict=True):
                found[row] = self._names[at]
        return found

    def mass(self) -> tuple[Any, Any]:
        """Rows, and the probability of all options together."""
        found = []
        for rows, values, _ in self._groups():
            ordered = -np.sort(-values, axis=1)
            # math.exp, since NumPy's differs in the last bit; largest first, as Python adds.
            shares = np.array(list(map(math.exp, ordered.ravel()))).reshape(ordered.shape)
            total = shares[:, 0]
            for share in shares.T[1:]:
                total = total + share
            found.append((rows, np.minimum(1.0, total)))
        return _joined(found)

    def margin(self) -> tuple[Any, Any]:
        """Rows with two options or more, and the difference of the best two."""
        found = []
        for rows, values, _ in self._groups():
            if values.shape[1] > 1:
                ordered = -np.sort(-values, axis=1)
                with np.errstate(invalid="ignore"):
                    found.append((rows, ordered[:, 0] - ordered[:, 1]))
        return _joined(found)

    def filled(self, column: pa.ChunkedArray, figures: Callable[[], tuple[Any, Any]]) -> pa.Array:
        """A column with the figures where it has none."""
        if not len(self._rows) or not column.null_count:
            return column.combine_chunks()
        values = column.to_numpy(zero_copy_only=False).copy()
        missing = column.is_null().to_numpy()
        rows, found = figures()
        empty = missing[rows]
        values[rows[empty]], missing[rows[empty]] = found[empty], False
        return pa.array(values, pa.float64(), mask=missing)

    def _groups(self) -> Any:
        """Rows with the same number of options: their places, values and starts."""
        for length in np.unique(self._lengths).tolist():
            own = self._lengths == length
            starts = self._starts[own]
            yield self._rows[own], self._values[starts[:, None] + np.arange(length)], starts


def _joined(found: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    rows, values = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(values)


def _values(table: pa.Table, name: str) -> list[Any]:
    """A column of text as Python values."""
    column = table[name]
    if column.null_count == len(column):
        return [None] * len(column)
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), values)


def _short(text: str) -> str:
    """A text on one line; of a long one, both ends, since a verdict is at one of them."""
    half = (LONGEST - 5) // 2
    if len(text) > 2 * _ENDS:
        for near in (_NEAR, _ENDS):
            head, tail = (" ".join(end.split()) for end in (text[:near], text[-near:]))
            if min(len(head), len(tail)) > half:
                return f"{head[:half]} ... {tail[-half:]}"
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


def _label(text: str, labels: tuple[str, ...], parse: Parser) -> str:
    return text if text in labels else parse(text, labels)


def is_label(text: str, labels: tuple[str, ...]) -> str:
    """The label that the text is, in any case; else UNCLEAR."""
    folded = {label.casefold(): label for label in labels}
    return folded.get(text.strip().casefold(), UNCLEAR)
