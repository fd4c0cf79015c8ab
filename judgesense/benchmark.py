"""A benchmark: the tasks, and tables of prompts and pairs that a run judges.

They are tables and not objects because a benchmark can hold millions of prompts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.tasks import (
    NO_ORDER,
    Aliases,
    Pair,
    Prompt,
    Task,
    is_scale,
    load_label_map,
    signature_hash,
)


@dataclass(frozen=True)
class Benchmark:
    """Prompts and pairs to be judged.

    ``prompts`` has the columns of :class:`~judgesense.tasks.Prompt` (with variants those of
    `VARIANT_SCHEMA`), ``pairs`` those of :class:`~judgesense.tasks.Pair`; every pair's prompts are
    among the prompts. ``source`` identifies the content (name or path, revision, hash) and is
    recorded in ``run.json``, as are ``wordings`` and ``layouts``: those of each template by task,
    where known. ``aliases`` are the templates' further texts for an answer, by template id, and
    ``fields`` the field of a JSON reply that holds the verdict, where a template shows it, and
    ``schemas`` the JSON schema of such a reply.
    ``attacks`` are the ``texts`` of attacks by variant, and the label that ``wins`` by task;
    ``damage`` are the ``kinds`` of damage with what they do, the label that ``wins`` and ``where``
    the outputs are, or ``why`` there is none.
    """

    tasks: Mapping[str, Task]
    prompts: pa.Table
    pairs: pa.Table
    source: Mapping[str, str]
    aliases: Mapping[str, Aliases] = field(default_factory=dict)
    wordings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    layouts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    attacks: Mapping[str, Any] = field(default_factory=dict)
    damage: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prompts.num_rows == 0:
            raise JudgeSenseError("the benchmark has no prompts to judge")
        known = pc.unique(self.prompts["prompt_id"])
        for side in ("prompt_id_a", "prompt_id_b"):
            absent = pc.invert(pc.is_in(self.pairs[side], value_set=known))
            if pc.any(absent).as_py():
                pair = self.pairs.filter(absent)["pair_id"][0].as_py()
                raise JudgeSenseError(f"pair {pair!r}: its {side} is not among the prompts")

    @property
    def reply_forms(self) -> list[str]:
        """The variants whose options are scored inside the form of a reply, sorted."""
        if "reply_form" not in self.prompts.column_names:
            return []
        formed = self.prompts.filter(pc.is_valid(self.prompts["reply_form"]))
        return sorted(pc.unique(formed["variant"]).to_pylist())

    @property
    def asked(self) -> pa.Table:
        """The prompts as a judge is asked them, with the schema of their replies if they have
        one. A variant may ask for another form, so it has none."""
        if not self.schemas:
            return self.prompts
        schemas = [self.schemas.get(name) for name in self.prompts["template_id"].to_pylist()]
        if "variant" in self.prompts.column_names:
            variants = self.prompts["variant"].to_pylist()
            schemas = [None if v else s for s, v in zip(schemas, variants, strict=True)]
        return self.prompts.append_column("schema", pa.array(schemas, pa.string()))

    @property
    def data_hash(self) -> str:
        """The ``data`` part of a signature, which identifies the stimuli whatever their order.

        It is of the pairs, and of each prompt of a task with one wording, which has no pairs.
        """
        columns = (self.pairs["prompt_id_a"].to_pylist(), self.pairs["prompt_id_b"].to_pylist())
        paired = pc.unique(self.pairs["task"])
        alone = self.prompts.filter(pc.invert(pc.is_in(self.prompts["task"], value_set=paired)))
        if "variant" in alone.column_names:
            alone = alone.filter(pc.is_null(alone["variant"]))
        ids = pc.unique(alone["prompt_id"]).to_pylist()
        return signature_hash([*zip(*columns, strict=True), *zip(ids, ids, strict=True)])

    def select(
        self,
        tasks: Iterable[str] | None = None,
        orders: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Benchmark:
        """Select the chosen tasks' pairs and the prompts that they need.

        The prompts are those of the pairs in every option order of the data, which position
        figures need. ``orders`` shows each comparative pair in each of these orders instead of its
        own. ``limit`` is the maximum number of items per task. A task without pairs keeps all
        prompts of its items.

        Raises JudgeSenseError for an unknown task or an order that the data lack.
        """
        wanted = list(self.tasks) if tasks is None else list(tasks)
        for name in wanted:
            if name not in self.tasks:
                raise JudgeSenseError(f"unknown task {name!r}; choose from {', '.join(self.tasks)}")
        chosen = pa.array(wanted, pa.string())
        prompts = self.prompts.filter(pc.is_in(self.prompts["task"], value_set=chosen))
        pairs = self.pairs.filter(pc.is_in(self.pairs["task"], value_set=chosen))
        # A task with one wording has no pairs: its items are those of its prompts.
        paired = pc.unique(pairs["task"])
        if limit is not None:
            alone = prompts.filter(pc.invert(pc.is_in(prompts["task"], value_set=paired)))
            kept = pa.concat_arrays(
                pc.unique(_key(table.filter(pc.equal(table["task"], name)), *_ITEM))[:limit]
                for name in wanted
                for table in (pairs, alone)
            )
            pairs = pairs.filter(pc.is_in(_key(pairs, *_ITEM), value_set=kept))
            prompts = prompts.filter(pc.is_in(_key(prompts, *_ITEM), value_set=kept))
        if orders is not None:
            pairs = _shown_in(pairs, prompts, list(orders))
            shown = pa.array([NO_ORDER, *orders], pa.string())
            prompts = prompts.filter(pc.is_in(prompts["order"], value_set=shown))
        needed = pa.concat_arrays(
            pc.unique(_key(pairs, *_ITEM, f"template_{side}")) for side in "ab"
        )
        unpaired = pc.invert(pc.is_in(prompts["task"], value_set=paired))
        cells = _key(prompts, *_ITEM, "template_id")
        prompts = prompts.filter(pc.or_(unpaired, pc.is_in(cells, value_set=needed)))
        asked = set(pc.unique(prompts["template_id"]).to_pylist())
        return dataclasses.replace(
            self,
            tasks={name: self.tasks[name] for name in wanted},
            prompts=prompts,
            pairs=pairs,
            aliases={key: value for key, value in self.aliases.items() if key in asked},
        )


_ITEM = ("task", "item_id")


def _key(table: pa.Table, *columns: str) -> pa.Array:
    joined = pc.binary_join_element_wise(*(table[name] for name in columns), "\n")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _shown_in(pairs: pa.Table, prompts: pa.Table, orders: list[str]) -> pa.Table:
    available = set(pc.unique(prompts["order"]).to_pylist())
    plain = pairs.filter(pc.equal(pairs["order"], NO_ORDER))
    shown = pairs.filter(pc.not_equal(pairs["order"], NO_ORDER))
    if not shown.num_rows:
        return plain
    if absent := [order for order in orders if order not in available]:
        raise JudgeSenseError(
            f"the data have no prompts in the order {absent[0]!r}, only in "
            f"{', '.join(sorted(available - {NO_ORDER})) or 'none'}"
        )
    cells = zip(
        _key(prompts, *_ITEM, "template_id", "order").to_pylist(),
        zip(prompts["prompt_id"].to_pylist(), prompts["label_map"].to_pylist(), strict=True),
        strict=True,
    )
    prompt_at = dict(cells)
    rows: dict[str, dict[str, str]] = {}
    for order in orders:
        for pair in shown.to_pylist():
            row = {**pair, "order": order}
            for side in "ab":
                cell = "\n".join((pair["task"], pair["item_id"], pair[f"template_{side}"], order))
                if cell not in prompt_at:
                    raise JudgeSenseError(
                        f"pair {pair['pair_id']!r}: its prompt of template "
                        f"{pair[f'template_{side}']!r} is missing in the order {order}"
                    )
                row[f"prompt_id_{side}"], row[f"label_map_{side}"] = prompt_at[cell]
            row["pair_id"] = f"{pair['item_id']}:{order}:{pair['template_a']}~{pair['template_b']}"
            rows.setdefault(row["pair_id"], row)
    return pa.concat_tables([plain, pa.Table.from_pylist(list(rows.values()), schema=PAIR_SCHEMA)])


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
    """Infer a table's task: labels from its label maps, comparative if it has option orders.

    Labels that are all whole numbers make an ordinal task, in numeric order.

    >>> infer_task("tone", ['{"1":"1","2":"2","10":"10"}'], ["-"]).labels
    ('1', '2', '10')
    """
    labels: dict[str, None] = {}
    for text in label_maps:
        labels.update(dict.fromkeys(load_label_map(text).values()))
    ordinal = is_scale(labels)
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
