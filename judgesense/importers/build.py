"""Turn records into a decision log: labels, verdicts and statuses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from judgesense.decisions import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import Tally, decision_space
from judgesense.importers.rows import row_of
from judgesense.importers.spool import Spool
from judgesense.table_files import Record
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED, is_scale

Parser = Callable[[str, tuple[str, ...]], str]
"""Reads a judge's text, given the labels, as a label, UNCLEAR or REFUSED."""

_STATUS = {UNCLEAR: "unclear", REFUSED: "refused", ERROR: "error"}
_OF_STATUS = {status: word for word, status in _STATUS.items()}
_KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
_FILLED = ("raw_decision", "decision", "status", "error", "gold", "option_mass", "margin")
"""The columns that depend on the decision space."""

_DECIDED = [*_FILLED, "task", "raw_text", "option_logprobs", "gold_flips", "place"]
_MOST_READINGS, _LONGEST = 8, 60
_REMEMBERED = 100_000
_ENDS = 2_000


@dataclass(frozen=True)
class ImportedLog:
    """A decision log made from foreign records.

    ``tasks`` maps a task's name to ``{"labels", "ordinal", "comparative"}``, as in ``run.json``,
    and ``counts`` to its rows by status. ``unknown`` counts, per task, the five most frequent
    answers that could not be read as a label; they are UNCLEAR in the log. ``readings`` are, per
    task, the most frequent answers and what each was read as: ``{"text", "label", "count"}``.
    """

    table: pa.Table
    tasks: dict[str, dict[str, Any]]
    counts: dict[str, dict[str, int]]
    unknown: dict[str, dict[str, int]] = field(default_factory=dict)
    readings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def build(
    records: Iterable[Record],
    columns: ColumnMap,
    labels: Sequence[str] | None = None,
    parse: Parser | None = None,
) -> ImportedLog:
    """Turn records into a decision log in memory; see `build_parts`."""
    parts: list[pa.Table] = []
    return replace(
        build_parts(records, columns, labels, parse, parts.append), table=pa.concat_tables(parts)
    )


def build_parts(
    records: Iterable[Record],
    columns: ColumnMap,
    labels: Sequence[str] | None,
    parse: Parser | None,
    write: Callable[[pa.Table], None],
) -> ImportedLog:
    """Turn records into the parts of a decision log, so that memory holds one part at a time.

    ``labels`` is the decision space, in order. By default it is what the file states, A and B for a
    task with option orders, and otherwise the task's gold labels. Where gold has fewer than two
    labels or whole numbers, the judges' decisions count too, except strays (see
    `judgesense.importers.labels`), and so do the whole numbers between them. ``parse`` reads a
    judge's text; by default a text is read only if it is a label, in any case. A row without
    decision, text and log-probabilities is an ERROR; a text that contains no label is UNCLEAR.
    ``write`` takes each part; the returned log has an empty ``table``.

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value, for two rows
    of the same judge, prompt and repeat, and for a task whose labels are unknown.
    """
    with Spool() as spool:
        tally = _spooled(records, columns, spool)
        spaces = {task: decision_space(task, tally.rows, labels) for task in tally.tasks}
        unknown: dict[str, Counter[str]] = {task: Counter() for task in spaces}
        readings: dict[str, Counter[tuple[str, str]]] = {task: Counter() for task in spaces}
        counts: dict[str, Counter[str]] = {task: Counter() for task in spaces}
        read = _remembering(parse or _is_label)
        for table in spool.tables():
            rows = table.select(_DECIDED).to_pylist()
            for row in rows:
                task, said = row["task"], row["raw_text"] or row["raw_decision"]
                told = row["option_logprobs"]
                row["option_logprobs"] = told and [(one["option"], one["logprob"]) for one in told]
                _decide(row, spaces[task], read, unknown[task])
                counts[task][row["status"]] += 1
                if said is not None:
                    readings[task][_short(said), row["raw_decision"]] += 1
            for name in _FILLED:
                at = SCHEMA.get_field_index(name)
                column = pa.array([row[name] for row in rows], SCHEMA.field(name).type)
                table = table.set_column(at, SCHEMA.field(name), column)
            write(table.select(SCHEMA.names))
    return ImportedLog(
        table=SCHEMA.empty_table(),
        tasks={
            task: {
                "labels": list(space),
                "ordinal": is_scale(space),
                "comparative": task in tally.ordered,
            }
            for task, space in spaces.items()
        },
        counts={task: dict(found) for task, found in counts.items()},
        unknown={task: dict(found.most_common(5)) for task, found in unknown.items() if found},
        readings={
            task: [
                {"text": text, "label": label, "count": count}
                for (text, label), count in found.most_common(_MOST_READINGS)
            ]
            for task, found in readings.items()
        },
    )


def _spooled(records: Iterable[Record], columns: ColumnMap, spool: Spool) -> Tally:
    """Put the records' rows into the spool; refuse two of the same judge, prompt and repeat."""
    seen: dict[int, int] = {}
    tally = Tally()
    for number, record in enumerate(records):
        row = row_of(record, columns)
        key = tuple(row[name] for name in _KEY)
        # The hash takes a tenth of the key's memory; equal hashes are compared in full.
        before = seen.setdefault(hash(key), number)
        if before != number and spool.values(before, _KEY) == key:
            (place,) = spool.values(before, ("place",))
            raise JudgeSenseError(
                f"{record.place}: same judge, item, template and order as {place} "
                f"({', '.join(map(str, key))}); map a column that distinguishes them "
                "(--columns repeat=COLUMN, or a finer item_id or template_id)"
            )
        tally.add(row)
        spool.add(row)
    if not len(spool):
        raise JudgeSenseError("the source has no rows to import")
    return tally


def _remembering(parse: Parser) -> Parser:
    """The parser, which reads a short text only once: logs repeat them by the thousand."""
    known = lru_cache(maxsize=_REMEMBERED)(parse)
    return lambda text, labels: (known if len(text) <= _LONGEST else parse)(text, labels)


def _decide(
    row: dict[str, Any], labels: tuple[str, ...], parse: Parser, unknown: Counter[str]
) -> None:
    """Fill ``raw_decision``, ``decision`` and ``status``."""
    raw = row["raw_decision"]
    if row["status"] in _OF_STATUS:
        raw = _OF_STATUS[row["status"]]
    elif raw is not None and raw not in UNDECIDED:
        raw = _read(raw, labels, _is_label)
        if raw == UNCLEAR:
            raw = _read(row["raw_text"] or row["raw_decision"], labels, parse)
    elif raw is None and row["decision"] is not None:
        raw = _read(row["decision"], labels, _is_label)
    elif raw is None and row["raw_text"] is not None:
        raw = _read(row["raw_text"], labels, parse)
    elif raw is None and row["option_logprobs"]:
        raw = max(row["option_logprobs"], key=lambda pair: pair[1])[0]
        raw = _read(raw, labels, _is_label)
    elif raw is None:
        raw = ERROR
        row["error"] = row["error"] or "the log has no decision"
    if raw == UNCLEAR and row["status"] is None and row["raw_decision"] not in UNDECIDED:
        unknown[str(row["raw_decision"] or row["raw_text"] or row["decision"])[:60]] += 1
    for name in ("gold", "decision"):
        value = row[name]
        if value is None or (name == "decision" and value in UNDECIDED):
            continue
        row[name] = _read(value, labels, _is_label)
        if row[name] == UNCLEAR:
            raise JudgeSenseError(
                f"{row['place']}, {name}: {value!r} is not one of the labels {', '.join(labels)} "
                f"of task {row['task']!r}"
            )
    if row["gold_flips"] and len(labels) == 2:
        row["gold"] = labels[1 - labels.index(row["gold"])]
    row["raw_decision"] = raw
    row["decision"] = raw if raw in UNDECIDED or row["decision"] is None else row["decision"]
    row["status"] = _STATUS.get(raw, "ok")
    if row["option_logprobs"]:
        values = sorted((value for _, value in row["option_logprobs"]), reverse=True)
        if row["option_mass"] is None:
            row["option_mass"] = min(1.0, sum(map(math.exp, values)))
        if row["margin"] is None and len(values) > 1:
            row["margin"] = values[0] - values[1]


def _short(text: str) -> str:
    """A text on one line; of a long one, both ends, since a verdict is at one of them."""
    half = (_LONGEST - 5) // 2
    if len(text) > 2 * _ENDS:
        head, tail = (" ".join(end.split()) for end in (text[:_ENDS], text[-_ENDS:]))
        if min(len(head), len(tail)) > half:
            return f"{head[:half]} ... {tail[-half:]}"
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:half]} ... {line[-half:]}"


def _read(text: str, labels: tuple[str, ...], parse: Parser) -> str:
    return text if text in labels else parse(text, labels)


def _is_label(text: str, labels: tuple[str, ...]) -> str:
    folded = {label.casefold(): label for label in labels}
    return folded.get(text.strip().casefold(), UNCLEAR)
