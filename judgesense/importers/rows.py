"""Rows of a foreign log as rows of the decision log, before their answers are read.

A column is checked by its distinct values, some thousand rows at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.log import REWORDING, SCHEMA, SCORINGS, STATUSES, VARIANT_CLASSES
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.files.tables import Rows
from judgesense.importers.columns import ColumnMap
from judgesense.tasks import NO_ORDER, ORDERS, prompt_id

KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
"""What tells two decisions apart."""

SPOOLED = pa.schema([*SCHEMA, ("gold_flips", pa.bool_()), ("place", pa.string())])
"""The columns of a decision log that is not read yet: ``gold_flips`` says that gold is for the
other option order."""

_REQUIRED = ("judge", "task", "item_id", "template_id")
_WHOLE = ("repeat", "input_tokens", "output_tokens")
_NUMBERS = ("option_mass", "margin", "latency_s", "cost_usd")
_ALLOWED: Mapping[str, Sequence[str]] = {
    "order": (NO_ORDER, *ORDERS),
    "status": STATUSES,
    "scoring": SCORINGS,
    "variant_class": VARIANT_CLASSES,
}
_MADE_UP = ("task", "template_id", "item_id", "order", "variant")
"""What stands for an unknown prompt."""
_LOGPROBS = SCHEMA.field("option_logprobs").type

Values = list[Any] | None


@dataclass(frozen=True)
class Block:
    """Checked rows, n in all, by column; a column of None is empty. ``space``, the labels that the
    file states for a row, is one as well."""

    columns: Mapping[str, Values]
    n: int

    def some(self, name: str) -> Any:
        """A column to iterate over, which does not end if it is empty."""
        values = self.columns[name]
        return repeat(None) if values is None else values

    def zipped(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The rows' values in some columns, of which one is not empty."""
        return zip(*(self.some(name) for name in names), strict=False)

    def batch(self) -> pa.RecordBatch:
        """The rows as a batch in the schema of the spool."""
        columns = []
        for field in SPOOLED:
            values = self.columns[field.name]
            if values is None:
                columns.append(pa.nulls(self.n, field.type))
            elif field.name == "option_logprobs":
                columns.append(_lists(values))
            else:
                columns.append(pa.array(values, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=SPOOLED)


def block_of(rows: Rows, mapping: ColumnMap) -> Block:
    """The rows under the decision log's names, checked and converted.

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value.
    """
    n, places = len(rows), rows.places
    found: dict[str, Values] = {
        name: _texts(mapping.column(rows, name))
        for name in SCHEMA.names
        if name != "option_logprobs"
    }
    for name in _REQUIRED:
        if (values := found[name]) is None or None in values:
            row = rows.records()[0 if values is None else values.index(None)]
            raise JudgeSenseError(
                f"{row.place}: no {name}; set its column or a constant (--columns {name}=COLUMN or "
                f"{name}=:VALUE). The record has {', '.join(map(str, row.values))}"
            )
    read: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(_WHOLE, _whole), **dict.fromkeys(_NUMBERS, _number), "truncated": _truth,
        **{name: _one_of(allowed) for name, allowed in _ALLOWED.items()},
    }  # fmt: skip
    for name, reader in read.items():
        found[name] = _each(found[name], reader, name, places)
    found["option_logprobs"] = _options(mapping.column(rows, "option_logprobs"), places)
    found["repeat"] = [value or 0 for value in found["repeat"] or [0] * n]
    orders = [value or NO_ORDER for value in found["order"] or [NO_ORDER] * n]
    found["order"] = orders
    found["scoring"] = _scorings(Block(found, n))
    items = found["item_id"] or []
    clusters = found["cluster_id"] or items
    found["cluster_id"] = [own or item for own, item in zip(clusters, items, strict=True)]
    found["prompt_id"] = _prompt_ids(Block(found, n), _texts(mapping.column(rows, "prompt")))
    found["gold_flips"] = [False] * n
    if (gold := _texts(mapping.column(rows, "gold_ab"))) is not None:
        found["gold_flips"] = [
            value is not None and order == "BA" for value, order in zip(gold, orders, strict=True)
        ]
        stated = found["gold"] or [None] * n
        found["gold"] = [a if b is None else b for a, b in zip(stated, gold, strict=True)]
    spaces = rows.columns.get("labels")
    found["space"] = spaces and [
        tuple(labels) if isinstance(labels, (tuple, list)) else None for labels in spaces
    ]
    found["place"] = list(places)
    return Block(found, n)


def _texts(values: Values) -> Values:
    """The cells as text; None if all are blank."""
    if values is None:
        return None
    kinds = set(map(type, values))
    if kinds == {str} and all(map(str.strip, values)):
        return values
    if kinds <= {str, type(None)}:
        values = [value if value and value.strip() else None for value in values]
    else:
        values = [_text(value) for value in values]
    return values if any(value is not None for value in values) else None


def _text(value: Any) -> str | None:
    """A cell as text: blank and NaN become None, 4.0 becomes "4", nested values become JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)
    return text if text.strip() else None


def _each(values: Values, read: Callable[[str], Any], name: str, places: Sequence[str]) -> Values:
    """What each text says, read once for all rows that have it."""
    if values is None:
        return None
    known: dict[str | None, Any] = {None: None}
    for value in dict.fromkeys(values):
        try:
            known[value] = None if value is None else read(value)
        except ValueError as error:
            reason = f"{places[values.index(value)]}, {name}: {str(value)[:40]!r} {error}"
            raise JudgeSenseError(reason) from error
    return [known[value] for value in values]


def _whole(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError("is not an integer") from None
    if not 0 <= value < 2**31:
        raise ValueError("must be 0 or more, and less than 2147483648")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not 0 <= value < math.inf:
        raise ValueError("must be finite and 0 or more")
    return value


def _truth(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise ValueError("is neither true nor false")
    return words[text.lower()]


def _one_of(allowed: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"is not one of {', '.join(allowed)}")
        return text

    return read


def _options(values: Values, places: Sequence[str]) -> Values:
    """Options with their log-probabilities, in nats; None if no row has any.

    A cell is ``{"YES": -0.1}``, a list of ``{"option", "logprob"}`` or of pairs, or JSON of one.
    """
    if values is None:
        return None
    found: list[list[tuple[str, float]] | None] = []
    for value, place in zip(values, places, strict=True):
        where = f"{place}, option_logprobs"
        if isinstance(value, str):
            value = parse_json(value, f"{where}: expected an object of option: logprob")
        if not value:
            found.append(None)
            continue
        try:
            listed = value.items() if isinstance(value, Mapping) else value
            pairs = [each.values() if isinstance(each, Mapping) else each for each in listed]
            found.append([(str(option), float(logprob)) for option, logprob in pairs])
        except (TypeError, ValueError, AttributeError) as error:
            raise JudgeSenseError(
                f"{where}: expected an object of option: logprob, got {str(value)[:80]!r}"
            ) from error
        for option, logprob in found[-1] or ():
            if not logprob <= 1e-6:
                raise JudgeSenseError(f"{where}: {logprob} for {option!r} is not a log-probability")
    return found if any(found) else None


def _scorings(block: Block) -> list[str]:
    """As stated; by default options for rows that have nothing but log-probabilities."""
    if block.columns["option_logprobs"] is None:
        return [value or "generate" for value in block.columns["scoring"] or [None] * block.n]
    rows = block.zipped("scoring", "option_logprobs", "raw_decision", "raw_text")
    return [
        scoring or ("options" if logprobs and not (decision or text) else "generate")
        for scoring, logprobs, decision, text in rows
    ]


def _prompt_ids(block: Block, prompts: Values) -> list[str]:
    """As stated, or else of the prompt, or else of what stands for it."""
    ids = block.columns["prompt_id"]
    if ids is not None and None not in ids:
        return ids
    texts = [
        prompt or "\n".join(key if key[-1] not in (None, REWORDING) else key[:-1])
        for prompt, key in zip(prompts or repeat(None), block.zipped(*_MADE_UP), strict=False)
    ]
    known = {text: prompt_id(text) for text in set(texts)}
    return [own or known[text] for own, text in zip(ids or repeat(None), texts, strict=False)]


def _lists(values: Sequence[Sequence[tuple[str, float]] | None]) -> pa.Array:
    """Lists of options with their log-probabilities."""
    lengths = [len(value) if value else 0 for value in values]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    pairs = [pair for value in values if value for pair in value]
    names, figures = zip(*pairs, strict=True) if pairs else ((), ())
    struct = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(figures, pa.float64())],
        fields=list(_LOGPROBS.value_type),
    )
    empty = pa.array([value is None for value in values])
    return pa.ListArray.from_arrays(pa.array(ends), struct, _LOGPROBS, mask=empty)
