"""What a run judges: a table of prompts and a table of pairs, with their tasks.

Tables, not objects: a benchmark can hold millions of prompts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.tasks import NO_ORDER, Pair, Prompt, Task, load_label_map, signature_hash

_STRING = pa.string()

PROMPT_SCHEMA = pa.schema([(f.name, _STRING) for f in dataclasses.fields(Prompt)])
PAIR_SCHEMA = pa.schema([(f.name, _STRING) for f in dataclasses.fields(Pair)])


@dataclass(frozen=True)
class Benchmark:
    """Prompts and pairs to be judged.

    ``prompts`` has the columns of :class:`~judgesense.tasks.Prompt`, ``pairs`` those of
    :class:`~judgesense.tasks.Pair`; every pair's prompts are among the prompts. ``source`` says
    what fixes the content (name or path, revision, hash) and is recorded in ``run.json``.
    """

    tasks: Mapping[str, Task]
    prompts: pa.Table
    pairs: pa.Table
    source: Mapping[str, str]

    def __post_init__(self) -> None:
        for name, table, schema in (
            ("prompts", self.prompts, PROMPT_SCHEMA),
            ("pairs", self.pairs, PAIR_SCHEMA),
        ):
            if not table.schema.equals(schema):
                raise JudgeSenseError(
                    f"the {name} table has columns {table.schema.names}, not {schema.names}"
                )
        if self.prompts.num_rows == 0:
            raise JudgeSenseError("the benchmark holds no prompts; nothing to judge")
        known = pc.unique(self.prompts["prompt_id"])
        for side in ("prompt_id_a", "prompt_id_b"):
            absent = pc.invert(pc.is_in(self.pairs[side], value_set=known))
            if pc.any(absent).as_py():
                pair = self.pairs.filter(absent)["pair_id"][0].as_py()
                raise JudgeSenseError(f"pair {pair!r}: its {side} is not among the prompts")

    @property
    def data_hash(self) -> str:
        """The ``data`` part of a signature: which stimuli, whatever their order."""
        columns = (self.pairs["prompt_id_a"].to_pylist(), self.pairs["prompt_id_b"].to_pylist())
        return signature_hash(zip(*columns, strict=True))

    def select(
        self,
        tasks: Iterable[str] | None = None,
        orders: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Benchmark:
        """The part with these tasks and option orders, and the first ``limit`` items a task.

        Tasks without an option order are kept whatever ``orders`` says. Raises JudgeSenseError
        for an unknown task, naming those that exist.
        """
        wanted = list(self.tasks) if tasks is None else list(tasks)
        if unknown := [name for name in wanted if name not in self.tasks]:
            raise JudgeSenseError(
                f"unknown task {unknown[0]!r}; this benchmark has {', '.join(self.tasks)}"
            )
        items: set[str] | None = None
        if limit is not None:
            items = set()
            for name in wanted:
                ids = self.prompts.filter(pc.equal(self.prompts["task"], name))["item_id"]
                items.update(f"{name}\n{item}" for item in pc.unique(ids).to_pylist()[:limit])

        def keep(table: pa.Table) -> pa.Table:
            mask = pc.is_in(table["task"], value_set=pa.array(wanted, _STRING))
            if orders is not None:
                shown = pa.array([NO_ORDER, *orders], _STRING)
                mask = pc.and_(mask, pc.is_in(table["order"], value_set=shown))
            if items is not None:
                key = pc.binary_join_element_wise(table["task"], table["item_id"], "\n")
                mask = pc.and_(mask, pc.is_in(key, value_set=pa.array(sorted(items), _STRING)))
            return table.filter(mask)

        return dataclasses.replace(
            self,
            tasks={name: self.tasks[name] for name in wanted},
            prompts=keep(self.prompts),
            pairs=keep(self.pairs),
        )


def table_of_prompts(prompts: Iterable[Prompt]) -> pa.Table:
    """Prompts as a table."""
    return _table(prompts, PROMPT_SCHEMA)


def table_of_pairs(pairs: Iterable[Pair]) -> pa.Table:
    """Pairs as a table."""
    return _table(pairs, PAIR_SCHEMA)


def _table(rows: Iterable[Prompt] | Iterable[Pair], schema: pa.Schema) -> pa.Table:
    columns: dict[str, list[str | None]] = {name: [] for name in schema.names}
    for row in rows:
        for name, column in columns.items():
            column.append(getattr(row, name))
    return pa.table(columns, schema=schema)


def infer_task(name: str, label_maps: Iterable[str], orders: Iterable[str]) -> Task:
    """The task behind a table's rows: labels from its label maps, comparative if it has orders.

    Labels that are all integers make an ordinal task, in numeric order.
    """
    labels: dict[str, None] = {}
    for text in label_maps:
        labels.update(dict.fromkeys(load_label_map(text).values()))
    ordinal = all(label.lstrip("-").isdigit() for label in labels)
    ordered = sorted(labels, key=int) if ordinal else list(labels)
    comparative = any(order != NO_ORDER for order in orders)
    if comparative:
        ordered = sorted(ordered)
    return Task(
        name=name,
        labels=tuple(ordered),
        ordinal=ordinal,
        options={label: f"option_{label.lower()}" for label in ordered} if comparative else {},
    )
