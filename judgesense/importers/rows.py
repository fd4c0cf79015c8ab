"""One record of a foreign log as a row of the decision log, before its answer is read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from judgesense.decisions.log import REWORDING, SCHEMA, SCORINGS, STATUSES, VARIANT_CLASSES
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.files.tables import Record
from judgesense.importers.columns import ColumnMap
from judgesense.tasks import NO_ORDER, ORDERS, prompt_id

REQUIRED = ("judge", "task", "item_id", "template_id")
NUMBERS: Mapping[str, type] = {
    "repeat": int,
    "input_tokens": int,
    "output_tokens": int,
    "option_mass": float,
    "margin": float,
    "latency_s": float,
    "cost_usd": float,
}
ALLOWED: Mapping[str, Sequence[str]] = {
    "order": (NO_ORDER, *ORDERS),
    "status": STATUSES,
    "scoring": SCORINGS,
    "variant_class": VARIANT_CLASSES,
}
MADE_UP = ("task", "template_id", "item_id", "order", "variant")
"""What `made_up` is made of."""
_MOST = 2**31 - 1
"""The largest whole number that the decision log holds."""


def row_of(record: Record, columns: ColumnMap) -> dict[str, Any]:
    """A record's values under the decision log's names, checked and converted.

    Beside these, ``gold_flips`` says that gold is for the other option order, ``space`` has the
    labels that the file states, and ``place`` is the record's. Raises JudgeSenseError, with file,
    row and column, for a missing or invalid value.
    """
    row: dict[str, Any] = {}
    for name in SCHEMA.names:
        value = columns.get(record, name)
        row[name] = plain(value) if name != "option_logprobs" else value
    for name in REQUIRED:
        if row[name] is None:
            raise JudgeSenseError(
                f"{record.place}: no {name}; set its column or a constant "
                f"(--columns {name}=COLUMN or {name}=:VALUE). The record has "
                f"{', '.join(map(str, record.values))}"
            )
    for name in NUMBERS:
        if row[name] is not None:
            row[name] = number(row[name], name, record.place)
    if row["truncated"] is not None:
        row["truncated"] = truth(row["truncated"], record.place)
    row["option_logprobs"] = logprobs(row["option_logprobs"], record.place)
    row["repeat"] = row["repeat"] or 0
    row["order"] = row["order"] or NO_ORDER
    only_logprobs = row["option_logprobs"] and not (row["raw_decision"] or row["raw_text"])
    row["scoring"] = row["scoring"] or ("options" if only_logprobs else "generate")
    for name, allowed in ALLOWED.items():
        if row[name] is not None and row[name] not in allowed:
            raise JudgeSenseError(
                f"{record.place}, {name}: {row[name]!r} is not one of {', '.join(allowed)}"
            )
    row["cluster_id"] = row["cluster_id"] or row["item_id"]
    if row["prompt_id"] is None:
        prompt = plain(columns.get(record, "prompt"))
        row["prompt_id"] = prompt_id(prompt or made_up(*(row[name] for name in MADE_UP)))
    row["gold_flips"] = False
    if (gold := plain(columns.get(record, "gold_ab"))) is not None:
        row["gold"], row["gold_flips"] = gold, row["order"] == "BA"
    row["space"] = space(record.values.get("labels"))
    row["place"] = record.place
    return row


def made_up(task: str, template: str, item: str, order: str, variant: str | None) -> str:
    """What stands for an unknown prompt."""
    parts = (task, template, item, order)
    return "\n".join(parts if variant in (None, REWORDING) else (*parts, variant))


def space(labels: Any) -> tuple[Any, ...] | None:
    """The decision space that an entry states."""
    return tuple(labels) if isinstance(labels, (tuple, list)) else None


def plain(value: Any) -> str | None:
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


def number(value: str, name: str, place: str) -> Any:
    """A figure of the column ``name``. Raises JudgeSenseError for what is none."""
    kind = NUMBERS[name]
    try:
        found = kind(value)
    except ValueError as error:
        raise JudgeSenseError(
            f"{place}, {name}: {value!r} is not {'an integer' if kind is int else 'a number'}"
        ) from error
    if found < 0 or (kind is float and not math.isfinite(found)):
        raise JudgeSenseError(f"{place}, {name}: {value} must be finite and 0 or more")
    if kind is int and found > _MOST:
        raise JudgeSenseError(f"{place}, {name}: {value[:20]}... is more than {_MOST}")
    return found


def truth(value: str, place: str) -> bool:
    """Whether an answer was cut off. Raises JudgeSenseError for any other word."""
    found = {"true": True, "1": True, "false": False, "0": False}.get(value.lower())
    if found is None:
        raise JudgeSenseError(f"{place}, truncated: {value!r} is neither true nor false")
    return found


def logprobs(value: Any, place: str) -> list[tuple[str, float]] | None:
    """Read ``{"YES": -0.1}``, a list of ``{"option", "logprob"}``, or pairs; also as JSON text."""
    try:
        if isinstance(value, str):
            where = f"{place}, option_logprobs"
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
            f"{place}, option_logprobs: expected an object of option: logprob, "
            f"got {str(value)[:80]!r}"
        ) from error
    for option, logprob in pairs:
        if math.isnan(logprob) or logprob > 1e-6:
            raise JudgeSenseError(
                f"{place}, option_logprobs: {logprob} for {option!r} is not a log-probability"
            )
    return pairs
