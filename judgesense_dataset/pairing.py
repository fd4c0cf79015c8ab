"""Designs: items and templates become a grid of prompts and the pairs that are measured.

The prompts of a task are its full grid, item x template x option order. Which of them are paired
is the design: ``balanced`` takes n pairs so that every template pair and every item occurs
equally often, ``full`` takes all template pairs of every item.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from judgesense.benchmark import (
    PAIR_SCHEMA,
    PROMPT_SCHEMA,
    Benchmark,
    table_of_pairs,
    table_of_prompts,
)
from judgesense.errors import JudgeSenseError
from judgesense.tasks import NO_ORDER, Item, Pair, Prompt, pair_up, render, template_pairs
from judgesense_dataset.items import load_items, read_rows
from judgesense_dataset.templates import TaskTemplates, load_templates

DESIGNS = ("balanced", "full")
ORDER_PLANS = ("counterbalanced", "both", "AB", "BA")
DEFAULT_PAIRS = 125
"""Pairs a task of the balanced design, as in the paper (JudgeSense, section 3.2)."""

_CHUNK = 2048
_Cell = tuple[int, int, str]
_Row = TypeVar("_Row")


def build(
    templates: Mapping[str, TaskTemplates],
    items: Iterable[Item],
    design: str = "balanced",
    pairs: int | None = None,
    seed: int = 0,
    orders: str | None = None,
    source: Mapping[str, str] | None = None,
) -> Benchmark:
    """The benchmark of these templates and items; the tasks are those that have items.

    ``pairs`` is the number of pairs a task of the balanced design, by default 125, or one for
    each item where there are more items, or all there are where there are fewer. ``orders`` says
    in which option orders a comparative task's pairs are shown: ``counterbalanced`` (each pair in
    one order, half of every template pair and of every gold label in each; the default of the
    balanced design), ``both`` (every pair twice; the default of the full design), ``AB`` or
    ``BA``. The prompts are the full grid in both orders unless ``orders`` is AB or BA.

    The same arguments give the same tables, whatever the machine. Raises JudgeSenseError for an
    unknown design or order plan, an item of an unknown task, an item that lacks a field, an id
    given twice in a task, or more pairs than there are.
    """
    if design not in DESIGNS:
        raise JudgeSenseError(f"unknown design {design!r}; the designs are {', '.join(DESIGNS)}")
    orders = orders or ("counterbalanced" if design == "balanced" else "both")
    if orders not in ORDER_PLANS:
        raise JudgeSenseError(f"unknown orders {orders!r}; they are {', '.join(ORDER_PLANS)}")
    if design == "full" and pairs is not None:
        raise JudgeSenseError("the full design has all pairs; leave out the number of pairs")
    prompt_tables, pair_tables, tasks = [], [], {}
    for name, group in group_items(templates, items).items():
        entry = templates[name]
        tasks[name] = entry.task
        prompt_tables.extend(_chunks(grid(entry, group, orders), table_of_prompts))
        cells = plan(entry, group, design, pairs, seed, orders)
        pair_tables.extend(_chunks(paired(entry, group, cells), table_of_pairs))
    return Benchmark(
        tasks=tasks,
        prompts=pa.concat_tables(prompt_tables or [PROMPT_SCHEMA.empty_table()]),
        pairs=pa.concat_tables(pair_tables or [PAIR_SCHEMA.empty_table()]),
        source={"name": "items", **(source or {}), "design": design, "seed": str(seed)},
    )


def build_from_files(
    templates: str | Path,
    items: str | Path,
    design: str = "full",
    pairs: int | None = None,
    seed: int = 0,
    orders: str | None = None,
) -> Benchmark:
    """The benchmark of a person's own template file and item file (see :func:`build`).

    With several tasks in the template file, the items need a ``task`` column. Raises
    JudgeSenseError naming file, row and column, before anything is built.
    """
    templates, items = Path(templates), Path(items)
    entries = load_templates(templates)
    named = {number: row.get("task") or None for number, row in read_rows(items)}
    for number, task in named.items():
        if task not in entries and (task is not None or len(entries) > 1):
            problem = "is missing or empty" if task is None else f"names the unknown task {task!r}"
            raise JudgeSenseError(
                f"{items}, row {number}: the column 'task' {problem}; "
                f"{templates} has the tasks {', '.join(entries)}"
            )
    present = set(named.values()) if len(entries) > 1 else set(entries)
    loaded = [
        item
        for name, entry in entries.items()
        if name in present
        for item in load_items(items, entry.task, entry.fields)
    ]
    source = {"name": items.name, "templates": _sha256(templates), "items": _sha256(items)}
    return build(entries, loaded, design, pairs, seed, orders, source)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def group_items(
    templates: Mapping[str, TaskTemplates], items: Iterable[Item]
) -> dict[str, list[Item]]:
    """The items by task, in the templates' order of tasks.

    Raises JudgeSenseError for an item of an unknown task and an id given twice in a task.
    """
    groups: dict[str, list[Item]] = {name: [] for name in templates}
    seen: set[tuple[str, str]] = set()
    for item in items:
        if item.task not in groups:
            raise JudgeSenseError(
                f"item {item.item_id!r} is of the task {item.task!r}, which has no templates; "
                f"the tasks are {', '.join(groups)}"
            )
        if (item.task, item.item_id) in seen:
            raise JudgeSenseError(f"task {item.task!r}: the item id {item.item_id!r} occurs twice")
        seen.add((item.task, item.item_id))
        groups[item.task].append(item)
    return {name: group for name, group in groups.items() if group}


def grid(entry: TaskTemplates, items: Iterable[Item], orders: str = "both") -> Iterator[Prompt]:
    """Every prompt of a task, one after the other: item by item, order by order."""
    shown = (orders,) if orders in entry.task.orders else entry.task.orders
    for item in items:
        for order in shown:
            for template in entry.templates:
                yield render(entry.task, template, item, order)


def paired(entry: TaskTemplates, items: Sequence[Item], cells: Iterable[_Cell]) -> Iterator[Pair]:
    """The pairs at these cells (index of the item, index of the template pair, option order)."""
    by_id = {template.template_id: template for template in entry.templates}
    joined = template_pairs(list(by_id))
    for row, column, order in cells:
        first, second = (
            render(entry.task, by_id[name], items[row], order) for name in joined[column]
        )
        yield pair_up(first, second)


def plan(
    entry: TaskTemplates,
    items: Sequence[Item],
    design: str,
    pairs: int | None,
    seed: int,
    orders: str,
) -> list[_Cell]:
    """Which cells of item x template pair are measured, and in which option order.

    Cells are (index of the item, index of the template pair, option order).
    """
    width = math.comb(len(entry.templates), 2)
    capacity = len(items) * width
    if design == "full":
        cells = [(row, column) for row in range(len(items)) for column in range(width)]
    else:
        n = min(capacity, max(DEFAULT_PAIRS, len(items))) if pairs is None else pairs
        if not 1 <= n <= capacity:
            raise JudgeSenseError(
                f"task {entry.task.name!r}: {n} pairs asked for; {len(items)} items and {width} "
                f"template pairs give 1 to {capacity}"
            )
        cells = balanced_cells(len(items), width, n, _rng(seed, entry.task.name))
    if not entry.task.comparative:
        return [(row, column, NO_ORDER) for row, column in cells]
    if orders == "counterbalanced":
        return _counterbalanced(cells, [item.gold for item in items], seed, entry.task.name)
    shown = entry.task.orders if orders == "both" else (orders,)
    return [(row, column, order) for row, column in cells for order in shown]


def balanced_cells(
    rows: int, columns: int, n: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """n distinct cells of a grid with every row and every column equally often, within one.

    Walking both axes at once meets every row and column equally often, and meets no cell twice
    until lcm(rows, columns) steps; a shift of the columns by one then opens the next such class.
    Both axes are shuffled first, so that the walk's regularity is no property of the items.
    """
    row_at, column_at = rng.permutation(rows), rng.permutation(columns)
    period = math.lcm(rows, columns)
    step = np.arange(n)
    row = row_at[step % rows]
    column = column_at[(step + step // period) % columns]
    return [(int(r), int(c)) for r, c in zip(row, column, strict=True)]


def _counterbalanced(
    cells: Sequence[tuple[int, int]], golds: Sequence[str | None], seed: int, task: str
) -> list[_Cell]:
    """Orders in turn along the cells sorted by gold and template pair: each is halved, within one.

    So a position is the right answer as often as not, in every template pair.
    """
    start = int(_rng(seed, task + ":order").integers(2))
    turn = sorted(range(len(cells)), key=lambda at: (golds[cells[at][0]] or "", cells[at][1]))
    order = dict.fromkeys(range(len(cells)), "AB")
    for place, at in enumerate(turn):
        order[at] = ("AB", "BA")[(place + start) % 2]
    return [(row, column, order[at]) for at, (row, column) in enumerate(cells)]


def _rng(seed: int, name: str) -> np.random.Generator:
    """A stream of its own for every task, so that leaving one out changes no other."""
    return np.random.default_rng([seed, *name.encode()])


def _chunks(rows: Iterable[_Row], table_of: Callable[[list[_Row]], pa.Table]) -> Iterator[pa.Table]:
    """Tables of some thousand rows, so that no list of all rows ever stands in memory."""
    rows = iter(rows)
    while chunk := list(islice(rows, _CHUNK)):
        yield table_of(chunk)
