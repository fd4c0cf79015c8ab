"""Rows of a foreign log as rows of the decision log, before their answers are read.

A column is checked by its distinct values, some thousand rows at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field, TypeAdapter, ValidationError

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Count, parse_json
from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.columns import ColumnMap, values_in
from judgesense.log.schema import REWORDING, SCHEMA, SCORINGS, STATUSES, VARIANT_CLASSES
from judgesense.tasks import NO_ORDER, ORDERS, prompt_id

Values = list[Any] | None
Columns = Mapping[str, Values]
"""Rows by column; a column of None is empty."""

SPOOLED = pa.schema([*SCHEMA, ("gold_flips", pa.bool_()), ("place", pa.string())])
"""The columns of a decision log that is not read yet: ``gold_flips`` says that gold is for the
other option order."""

_REQUIRED = ("judge", "task", "item_id", "template_id")
_NUMBER = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("repeat", "input_tokens", "output_tokens"), Count),
    **dict.fromkeys(("option_mass", "margin", "latency_s", "cost_usd"), _NUMBER),
    "truncated": bool,
    "order": Literal[(NO_ORDER, *ORDERS)],
    "status": Literal[STATUSES],
    "scoring": Literal[SCORINGS],
    "variant_class": Literal[VARIANT_CLASSES],
}
"""What the text of a cell must be, in the columns that are not just text."""
_READERS: Mapping[str, Callable[[Any], Any]] = {
    name: TypeAdapter(kind).validate_python for name, kind in _KINDS.items()
}


def checked(rows: Rows, mapping: ColumnMap) -> Columns:
    """The rows under the names of `SPOOLED`, checked and converted, and ``space``, the labels that
    the file states for each row.

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value.
    """
    n, places = len(rows), rows.places
    columns: dict[str, Values] = {
        name: texts_of(mapping.column(rows, name))
        for name in SCHEMA.names
        if name != "option_logprobs"
    }
    for name in _REQUIRED:
        if (values := columns[name]) is None or None in values:
            row = rows.records()[0 if values is None else values.index(None)]
            raise JudgeSenseError(
                f"{row.place}: no {name}; set its column or a constant (--columns {name}=COLUMN or "
                f"{name}=:VALUE). The record has {', '.join(map(str, row.values))}"
            )
    for name, read in _READERS.items():
        if (values := columns[name]) is not None:
            columns[name] = converted(values, read, name, places)
    columns["option_logprobs"] = _options(mapping.column(rows, "option_logprobs"), places)
    columns["repeat"] = [value or 0 for value in columns["repeat"] or [0] * n]
    columns["order"] = orders = [value or NO_ORDER for value in columns["order"] or [NO_ORDER] * n]
    columns["scoring"] = [
        scoring or ("options" if logprobs and not (decision or text) else "generate")
        for scoring, logprobs, decision, text in _zipped(
            columns, n, "scoring", "option_logprobs", "raw_decision", "raw_text"
        )
    ]
    columns["cluster_id"] = [
        cluster or item for cluster, item in _zipped(columns, n, "cluster_id", "item_id")
    ]
    columns["prompt_id"] = _prompt_ids(columns, n, texts_of(mapping.column(rows, "prompt")))
    columns["gold_flips"] = [False] * n
    if (gold := texts_of(mapping.column(rows, "gold_ab"))) is not None:
        columns["gold_flips"] = [
            value is not None and order == "BA" for value, order in zip(gold, orders, strict=True)
        ]
        stated = columns["gold"] or [None] * n
        columns["gold"] = [a if b is None else b for a, b in zip(stated, gold, strict=True)]
    spaces = rows.columns.get("labels")
    columns["space"] = spaces and [
        tuple(each) if isinstance(each, (tuple, list)) and {*map(type, each)} == {str} else None
        for each in spaces
    ]
    columns["place"] = list(places)
    return columns


def fits(target: str, texts: Iterable[str]) -> bool:
    """Whether every text of a column can be read as a column of the decision log."""
    read = _READERS.get(target)
    try:
        for text in texts:
            if read is not None and text:
                read(text)
    except ValidationError:
        return False
    return target != "option_logprobs" or not any(text[:1] not in "[{" for text in texts)


def batch_of(columns: Columns) -> pa.RecordBatch:
    """Checked rows as a batch in the schema of the spool."""
    n = len(columns["place"] or ())
    arrays = [pa.array(columns[field.name] or [None] * n, field.type) for field in SPOOLED]
    return pa.RecordBatch.from_arrays(arrays, schema=SPOOLED)


def _zipped(columns: Columns, n: int, *names: str) -> list[tuple[Any, ...]]:
    empty = [None] * n
    return list(zip(*(columns[name] or empty for name in names), strict=True))


def cells_in(rows: Rows, name: str) -> list[Any]:
    """A column's cells as text; None for those that are blank or lacking."""
    cells = (None if value is ABSENT else value for value in values_in(rows, name) or ())
    return texts_of([*cells]) or [None] * len(rows)


def texts_of(values: Values) -> Values:
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


def converted(
    values: list[Any], read: Callable[[Any], Any], name: str, places: Sequence[str]
) -> list[Any]:
    """A column's texts as ``read`` converts them; None stays None.

    Raises JudgeSenseError, with the place and the column's name, for a text that does not fit.
    """
    known: dict[str | None, Any] = {None: None}
    for value in dict.fromkeys(values):
        try:
            known[value] = None if value is None else read(value)
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"]
            raise JudgeSenseError(
                f"{places[values.index(value)]}, {name}: {reason}; found {value!r:.60}"
            ) from error
    return [known[value] for value in values]


def _options(values: Values, places: Sequence[str]) -> Values:
    """Options with their log-probabilities, in nats; None if no row has any.

    A cell is ``{"YES": -0.1}``, a list of ``{"option", "logprob"}`` or of pairs, or JSON of one.
    """
    if values is None:
        return None
    options: list[list[tuple[str, float]] | None] = []
    for value, place in zip(values, places, strict=True):
        where = f"{place}, option_logprobs"
        if isinstance(value, str):
            value = parse_json(value, f"{where}: expected an object of option: logprob")
        if not value:
            options.append(None)
            continue
        try:
            listed = value.items() if isinstance(value, Mapping) else value
            pairs = [each.values() if isinstance(each, Mapping) else each for each in listed]
            options.append([(str(option), float(logprob)) for option, logprob in pairs])
        except (TypeError, ValueError, AttributeError) as error:
            raise JudgeSenseError(
                f"{where}: expected an object of option: logprob, got {str(value)[:80]!r}"
            ) from error
        for option, logprob in options[-1] or ():
            if not logprob <= 1e-6:
                raise JudgeSenseError(f"{where}: {logprob} for {option!r} is not a log-probability")
    return options if any(options) else None


def _prompt_ids(columns: Columns, n: int, prompts: Values) -> list[str]:
    ids = columns["prompt_id"]
    if ids is not None and None not in ids:
        return ids
    keys = _zipped(columns, n, "task", "template_id", "item_id", "order", "variant")
    texts = [
        prompt or "\n".join(key if key[-1] not in (None, REWORDING) else key[:-1])
        for prompt, key in zip(prompts or repeat(None, n), keys, strict=True)
    ]
    known = {text: prompt_id(text) for text in set(texts)}
    return [
        stated or known[text] for stated, text in zip(ids or repeat(None, n), texts, strict=True)
    ]
