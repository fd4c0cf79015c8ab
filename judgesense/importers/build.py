"""Turn records into rows of a decision log: labels, statuses and ids."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from judgesense.decisions import REWORDING, SCHEMA, SCORINGS, STATUSES, VARIANT_CLASSES
from judgesense.errors import JudgeSenseError
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import decision_space
from judgesense.json_files import parse_json
from judgesense.table_files import Record
from judgesense.tasks import (
    ERROR,
    NO_ORDER,
    ORDERS,
    REFUSED,
    UNCLEAR,
    UNDECIDED,
    is_scale,
    prompt_id,
)

Parser = Callable[[str, tuple[str, ...]], str]
"""Reads a judge's text, given the labels, as a label, UNCLEAR or REFUSED."""

_STATUS = {UNCLEAR: "unclear", REFUSED: "refused", ERROR: "error"}
_OF_STATUS = {status: word for word, status in _STATUS.items()}
_KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
_REQUIRED = ("judge", "task", "item_id", "template_id")
_NUMBERS: Mapping[str, type] = {
    "repeat": int,
    "input_tokens": int,
    "output_tokens": int,
    "option_mass": float,
    "margin": float,
    "latency_s": float,
    "cost_usd": float,
}
_ALLOWED: Mapping[str, Sequence[str]] = {
    "order": (NO_ORDER, *ORDERS),
    "status": STATUSES,
    "scoring": SCORINGS,
    "variant_class": VARIANT_CLASSES,
}
_MOST_READINGS, _LONGEST = 8, 60
_MOST = 2**31 - 1
"""The largest whole number that the decision log holds."""


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
    """Turn records into a decision log.

    ``labels`` is the decision space, in order. By default it is what the file states, A and B for a
    task with option orders, and otherwise the task's gold labels. Where gold has fewer than two
    labels or whole numbers, the judges' decisions count too, except strays (see
    `judgesense.importers.labels`), and so do the whole numbers between them. ``parse`` reads a
    judge's text; by default a text is read only if it is a label, in any case. A row without
    decision, text and log-probabilities is an ERROR; a text that contains no label is UNCLEAR.

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value, for two rows
    of the same judge, prompt and repeat, and for a task whose labels are unknown.
    """
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[Any, ...], str] = {}
    for record in records:
        row = _row(record, columns)
        key = tuple(row[name] for name in _KEY)
        if key in seen:
            raise JudgeSenseError(
                f"{record.place}: same judge, item, template and order as {seen[key]} "
                f"({', '.join(map(str, key))}); map a column that distinguishes them "
                "(--columns repeat=COLUMN, or a finer item_id or template_id)"
            )
        seen[key] = record.place
        rows.append(row)
    if not rows:
        raise JudgeSenseError("the source has no rows to import")
    tasks = dict.fromkeys(row["task"] for row in rows)
    spaces = {task: decision_space(task, rows, labels) for task in tasks}
    unknown: dict[str, Counter[str]] = {task: Counter() for task in spaces}
    readings: dict[str, Counter[tuple[str, str]]] = {task: Counter() for task in spaces}
    for row in rows:
        said = row["raw_text"] or row["raw_decision"]
        _decide(row, spaces[row["task"]], parse or _is_label, unknown[row["task"]])
        if said is not None:
            readings[row["task"]][_short(said), row["raw_decision"]] += 1
    return ImportedLog(
        table=pa.table({name: [row[name] for row in rows] for name in SCHEMA.names}, schema=SCHEMA),
        tasks={
            task: {
                "labels": list(space),
                "ordinal": is_scale(space),
                "comparative": any(r["order"] != NO_ORDER for r in rows if r["task"] == task),
            }
            for task, space in spaces.items()
        },
        counts={
            task: dict(Counter(row["status"] for row in rows if row["task"] == task))
            for task in spaces
        },
        unknown={task: dict(found.most_common(5)) for task, found in unknown.items() if found},
        readings={
            task: [
                {"text": text, "label": label, "count": count}
                for (text, label), count in found.most_common(_MOST_READINGS)
            ]
            for task, found in readings.items()
        },
    )


def _row(record: Record, columns: ColumnMap) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in SCHEMA.names:
        value = columns.get(record, name)
        row[name] = _plain(value) if name != "option_logprobs" else value
    for name in _REQUIRED:
        if row[name] is None:
            raise JudgeSenseError(
                f"{record.place}: no {name}; set its column or a constant "
                f"(--columns {name}=COLUMN or {name}=:VALUE). The record has "
                f"{', '.join(map(str, record.values))}"
            )
    for name, kind in _NUMBERS.items():
        if row[name] is not None:
            row[name] = _number(row[name], kind, name, record)
    row["truncated"] = _boolean(row["truncated"], record)
    row["option_logprobs"] = _logprobs(row["option_logprobs"], record)
    row["repeat"] = row["repeat"] or 0
    row["order"] = row["order"] or NO_ORDER
    only_logprobs = row["option_logprobs"] and not (row["raw_decision"] or row["raw_text"])
    row["scoring"] = row["scoring"] or ("options" if only_logprobs else "generate")
    for name, allowed in _ALLOWED.items():
        if row[name] is not None and row[name] not in allowed:
            raise JudgeSenseError(
                f"{record.place}, {name}: {row[name]!r} is not one of {', '.join(allowed)}"
            )
    row["cluster_id"] = row["cluster_id"] or row["item_id"]
    if row["prompt_id"] is None:
        prompt = _plain(columns.get(record, "prompt"))
        row["prompt_id"] = prompt_id(prompt) if prompt else _made_up_id(row)
    if (gold := _plain(columns.get(record, "gold_ab"))) is not None:
        row["gold"], row["gold_flips"] = gold, row["order"] == "BA"
    space = record.values.get("labels")
    row["space"] = tuple(space) if isinstance(space, (tuple, list)) else None
    row["place"] = record.place
    return row


def _made_up_id(row: Mapping[str, Any]) -> str:
    parts = [row[name] for name in ("task", "template_id", "item_id", "order")]
    key = "\n".join(parts if row["variant"] in (None, REWORDING) else [*parts, row["variant"]])
    return hashlib.sha256(key.encode("utf-8")).hexdigest()[:16]


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
    if row.get("gold_flips") and len(labels) == 2:
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
    line = " ".join(text.split())
    half = (_LONGEST - 5) // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} ... {line[-half:]}"


def _read(text: str, labels: tuple[str, ...], parse: Parser) -> str:
    return text if text in labels else parse(text, labels)


def _is_label(text: str, labels: tuple[str, ...]) -> str:
    folded = {label.casefold(): label for label in labels}
    return folded.get(text.strip().casefold(), UNCLEAR)


def _plain(value: Any) -> str | None:
    """A cell as text: blank and NaN become None, 4.0 becomes "4", nested values become JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    return text if text.strip() else None


def _number(value: str, kind: type, name: str, record: Record) -> Any:
    try:
        number = kind(value)
    except ValueError as error:
        raise JudgeSenseError(
            f"{record.place}, {name}: {value!r} is not "
            f"{'an integer' if kind is int else 'a number'}"
        ) from error
    if number < 0 or (kind is float and not math.isfinite(number)):
        raise JudgeSenseError(f"{record.place}, {name}: {value} must be finite and 0 or more")
    if kind is int and number > _MOST:
        raise JudgeSenseError(f"{record.place}, {name}: {value[:20]}... is more than {_MOST}")
    return number


def _boolean(value: str | None, record: Record) -> bool | None:
    if value is None:
        return None
    truth = {"true": True, "1": True, "false": False, "0": False}.get(value.lower())
    if truth is None:
        raise JudgeSenseError(f"{record.place}, truncated: {value!r} is neither true nor false")
    return truth


def _logprobs(value: Any, record: Record) -> list[tuple[str, float]] | None:
    """Read ``{"YES": -0.1}``, a list of ``{"option", "logprob"}``, or pairs; also as JSON text."""
    try:
        if isinstance(value, str):
            where = f"{record.place}, option_logprobs"
            value = parse_json(value, where) if value.strip() else None
        if not value:
            return None
        if isinstance(value, Mapping):
            pairs = [(str(option), float(logprob)) for option, logprob in value.items()]
        else:
            pairs = [
                (str(pair["option"]), float(pair["logprob"]))
                if isinstance(pair, Mapping)
                else (str(pair[0]), float(pair[1]))
                for pair in value
            ]
    except (TypeError, ValueError, OverflowError, KeyError, IndexError) as error:
        raise JudgeSenseError(
            f"{record.place}, option_logprobs: expected an object of option: logprob, "
            f"got {str(value)[:80]!r}"
        ) from error
    for option, logprob in pairs:
        if math.isnan(logprob) or logprob > 1e-6:
            raise JudgeSenseError(
                f"{record.place}, option_logprobs: {logprob} for {option!r} is not a "
                "log-probability"
            )
    return pairs
