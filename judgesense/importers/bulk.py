"""Many records of a foreign log at once, as columns: quicker than `row_of` for each of them.

A column is checked by its distinct values. What is wrong is left to `row_of`, which names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.columns import ColumnMap
from judgesense.importers.rows import (
    ALLOWED,
    MADE_UP,
    NUMBERS,
    REQUIRED,
    logprobs,
    made_up,
    number,
    plain,
    space,
    truth,
)
from judgesense.tasks import NO_ORDER, prompt_id

KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
"""What tells two decisions apart."""

SPOOLED = pa.schema([*SCHEMA, ("gold_flips", pa.bool_()), ("place", pa.string())])
"""A row as it lies in the spool."""

_LOGPROBS = SCHEMA.field("option_logprobs").type

Values = list[Any] | None


class _OddError(Exception):
    """The rows have to be read one by one."""


@dataclass(frozen=True)
class Block:
    """Checked rows, n in all, by column; a column of None is empty. ``space`` is one as well."""

    columns: Mapping[str, Values]
    n: int

    def zipped(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The rows' values in some columns."""
        return zip(*(self.some(name) for name in names), strict=False)

    def some(self, name: str) -> Any:
        """A column to iterate over, which does not end if it is empty."""
        values = self.columns[name]
        return repeat(None) if values is None else values

    def keys(self) -> list[int]:
        """A hash of each row's `KEY`."""
        return list(map(hash, self.zipped(*KEY)))

    def batch(self) -> pa.RecordBatch:
        """The rows as a batch in the schema of the spool."""
        columns = []
        for field in SPOOLED:
            values = self.columns[field.name]
            if values is None:
                column = pa.nulls(self.n, field.type)
            elif field.name == "option_logprobs":
                column = _lists(values)
            else:
                column = pa.array(values, field.type)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=SPOOLED)


def block_of(rows: Rows, columns: ColumnMap) -> Block | None:
    """The rows as a block; None if one of them is wrong."""
    try:
        return _block(rows, columns)
    except (_OddError, JudgeSenseError):
        return None


def block_of_rows(rows: Sequence[Mapping[str, Any]]) -> Block:
    """A block from the results of `row_of`."""
    names = (*SPOOLED.names, "space")
    return Block({name: [row[name] for row in rows] for name in names}, len(rows))


def _block(rows: Rows, mapping: ColumnMap) -> Block:
    places = rows.places
    n = len(places)
    found: dict[str, Values] = {}
    for name in SCHEMA.names:
        values = mapping.column(rows, name)
        found[name] = values if name == "option_logprobs" else _texts(values)
    for name in REQUIRED:
        if (values := found[name]) is None or None in values:
            raise _OddError
    for name in NUMBERS:
        found[name] = _each(found[name], partial(number, name=name, place=""))
    found["truncated"] = _each(found["truncated"], partial(truth, place=""))
    told = found["option_logprobs"]
    if told is not None:
        told = [logprobs(value, "") for value in told]
        found["option_logprobs"] = told if any(told) else None
    found["repeat"] = [value or 0 for value in found["repeat"] or [0] * n]
    orders = [value or NO_ORDER for value in found["order"] or [NO_ORDER] * n]
    found["order"] = orders
    found["scoring"] = _scoring(Block(found, n))
    for name, allowed in ALLOWED.items():
        if not set(found[name] or ()) <= {None, *allowed}:
            raise _OddError
    own = found["cluster_id"] or found["item_id"] or ()
    found["cluster_id"] = [
        value or item for value, item in zip(own, found["item_id"] or (), strict=True)
    ]
    found["prompt_id"] = _prompt_ids(Block(found, n), _texts(mapping.column(rows, "prompt")))
    found["gold_flips"] = [False] * n
    if (gold := _texts(mapping.column(rows, "gold_ab"))) is not None:
        told = found["gold"] or [None] * n
        found["gold_flips"] = [
            value is not None and order == "BA" for value, order in zip(gold, orders, strict=True)
        ]
        found["gold"] = [a if b is None else b for a, b in zip(told, gold, strict=True)]
    stated = rows.columns.get("labels")
    found["space"] = stated and [space(value) for value in stated]
    found["place"] = list(places)
    return Block(found, n)


def _texts(values: Values) -> Values:
    """`plain` of each value; None if there are none."""
    if values is None:
        return None
    kinds = set(map(type, values))
    if kinds == {str} and all(map(str.strip, values)):
        return values
    if kinds <= {str, type(None)}:
        values = [value if value and value.strip() else None for value in values]
    else:
        values = [plain(value) for value in values]
    return values if any(value is not None for value in values) else None


def _each(values: Values, read: Callable[[str], Any]) -> Values:
    """What each text says, read once for all rows that have it."""
    if values is None:
        return None
    said = {value: None if value is None else read(value) for value in set(values)}
    return [said[value] for value in values]


def _scoring(block: Block) -> list[str]:
    """As stated; by default options for rows that have nothing but log-probabilities."""
    if block.columns["option_logprobs"] is None:
        return [value or "generate" for value in block.columns["scoring"] or [None] * block.n]
    told = block.zipped("scoring", "option_logprobs", "raw_decision", "raw_text")
    return [
        scoring or ("options" if logprobs and not (decision or text) else "generate")
        for scoring, logprobs, decision, text in told
    ]


def _prompt_ids(block: Block, prompts: Values) -> list[str]:
    """As stated, or else of the prompt, or else of what stands for it."""
    ids, found = block.columns["prompt_id"], dict[str, str]()
    if ids is not None and None not in ids:
        return ids
    texts = [prompt or made_up(*key) for prompt, key in zip(
        prompts or repeat(None), block.zipped(*MADE_UP), strict=False
    )]  # fmt: skip
    for text in set(texts):
        found[text] = prompt_id(text)
    return [own or found[text] for own, text in zip(ids or repeat(None), texts, strict=False)]


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
