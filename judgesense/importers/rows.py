"""One record of a foreign log as a row of the decision log, before its answer is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from judgesense.decisions import REWORDING, SCHEMA, SCORINGS, STATUSES, VARIANT_CLASSES
from judgesense.errors import JudgeSenseError
from judgesense.importers.columns import ColumnMap
from judgesense.json_files import parse_json
from judgesense.table_files import Record
from judgesense.tasks import NO_ORDER, ORDERS, prompt_id

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
_MOST = 2**31 - 1
"""The largest whole number that the decision log holds."""


def row_of(record: Record, columns: ColumnMap) -> dict[str, Any]:
    """A record's values under the decision log's names, checked and converted.

    Beside these, ``gold_flips`` says that gold is for the other option order, ``space`` has the
    labels that the file states, and ``place`` is the record's. Raises JudgeSenseError, with file,
    row and column, for a missing or invalid value.
    """
    row: dict[str, Any] = {}
    values, plain = record.values, columns.plain
    for name in SCHEMA.names:
        # Most columns are looked up by name; this loop is half of an import's time.
        value = values.get(plain[name]) if name in plain else columns.get(record, name)
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
    row["gold_flips"] = False
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


def _plain(value: Any) -> str | None:
    """A cell as text: blank and NaN become None, 4.0 becomes "4", nested values become JSON."""
    if type(value) is str:
        return value if value.strip() else None
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
