"""Designs: items and templates become a grid of prompts and the pairs that are measured.

The prompts of a task are its full grid, item x template x option order. The design decides which
of them are paired: ``balanced`` takes n pairs so that every template pair and every item occurs
equally often, ``full`` takes all template pairs of every item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from judgesense.benchmark import Benchmark, table_of_pairs, table_of_prompts
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.tables import read_table
from judgesense.log.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.log.pairs import MOST_COMPARED, random_order, steps_of
from judgesense.tasks import (
    NO_ORDER,
    Item,
    Pair,
    Prompt,
    Task,
    load_label_map,
    pair_up,
    render,
)
from judgesense_dataset.folder import PAIR_ROWS
from judgesense_dataset.reply_labels import field_to_read, reply_schema
from judgesense_dataset.templates import TaskTemplates, items_of, load_templates

DESIGNS = ("balanced", "full")
ORDER_PLANS = ("counterbalanced", "both", "AB", "BA")
DEFAULT_PAIRS = 125
"""Pairs per task of the balanced design, as in the paper (JudgeSense, section 3.2)."""

JUDGED = ("response", "summary", "text", "output", "answer")
"""Names of the judged field, for a task that has several fields and shows no options."""

_CHUNK = 2048
_Row = TypeVar("_Row")

Cell = tuple[int, int, str]
"""Index of the item, index of the template pair, option order."""


def build(
    templates: Mapping[str, TaskTemplates],
    items: Iterable[Item],
    design: str = "balanced",
    pairs: int | None = None,
    seed: int = 0,
    orders: str | None = None,
    source: Mapping[str, str] | None = None,
    rejected: Collection[tuple[str, str]] = (),
) -> Benchmark:
    """Build a benchmark from templates and items; its tasks are those that have items.

    Args:
        templates: the tasks and their wordings, by task name.
        items: what is judged, in any order.
        design: ``balanced`` or ``full``.
        pairs: pairs per task of the balanced design. By default 125; one per item if there are
            more items; all possible pairs if there are fewer than 125.
        seed: fixes which pairs and orders are chosen, whatever the machine.
        orders: the option orders in which a comparative task's pairs are shown.
            ``counterbalanced`` (the default of the balanced design) shows each pair in one order,
            and half of every template pair and of every gold label in each; ``both`` (the default
            of the full design) shows every pair twice; ``AB`` or ``BA`` shows one order only. The
            prompts cover both orders unless ``orders`` is AB or BA.
        source: recorded in the benchmark's ``source``.
        rejected: ids of two templates that are never paired.

    Raises:
        JudgeSenseError: for an unknown design or order plan, an item of an unknown task, an item
            that lacks a field, a repeated item id in a task, or more pairs than exist.

    >>> from judgesense_dataset.embedded import embedded_items, embedded_templates
    >>> build(embedded_templates(), embedded_items(), design="full").pairs.num_rows
    3000
    """
    orders = order_plan(design, orders)
    if design == "full" and pairs is not None:
        raise JudgeSenseError("the full design takes all pairs; leave out the number of pairs")
    prompt_tables, pair_tables = [PROMPT_SCHEMA.empty_table()], [PAIR_SCHEMA.empty_table()]
    groups = group_items(templates, items)
    tasks, aliases, fields, schemas = {}, {}, dict[str, str](), dict[str, str]()
    wordings, layouts = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for name, group in groups.items():
        entry = templates[name]
        tasks[name], wordings[name], layouts[name] = entry.task, {}, {}
        for template in entry.templates:
            wordings[name][template.template_id] = template.text
            layouts[name][template.template_id] = template.layout
            if template.aliases:
                aliases[template.template_id] = template.aliases
            if name_of_field := field_to_read(template):
                fields[template.template_id] = name_of_field
            if schema := reply_schema(template):
                schemas[template.template_id] = schema
        prompt_tables += _chunks(grid(entry, group, orders), table_of_prompts)
        columns = template_pairs(entry, rejected)
        cells = plan(entry, group, design, pairs, seed, orders, columns)
        pairs_of_task = (pair for _, pair, _, _ in paired(entry, group, cells))
        pair_tables += _chunks(pairs_of_task, table_of_pairs)
    return Benchmark(
        tasks=tasks,
        prompts=pa.concat_tables(prompt_tables),
        pairs=pa.concat_tables(pair_tables),
        source={"name": "items", **(source or {}), "design": design, "seed": str(seed)},
        aliases=aliases,
        wordings=wordings,
        layouts=layouts,
        fields=fields,
        schemas=schemas,
    )


def template_pairs(entry: TaskTemplates, rejected: Collection[tuple[str, str]] = ()) -> list[int]:
    """The indices, among all pairs of a task's templates, of those that are not rejected.

    Of many templates these are a sample, as in :func:`judgesense.log.pairs.pairs_of`.
    """
    names = [template.template_id for template in entry.templates]
    if len(names) > MOST_COMPARED:
        place, steps = (
            dict(zip(names, random_order(len(names)).tolist(), strict=True)),
            steps_of(len(names)),
        )
    else:
        place, steps = dict(zip(names, range(len(names)), strict=True)), len(names)
    return [
        at
        for at, (first, second) in enumerate(combinations(names, 2))
        if (first, second) not in rejected and abs(place[first] - place[second]) <= steps
    ]


def order_plan(design: str, orders: str | None) -> str:
    """The order plan of a design: ``orders``, or the design's default.

    Raises JudgeSenseError for an unknown design or order plan.
    """
    if design not in DESIGNS:
        raise JudgeSenseError(f"unknown design {design!r}; choose one of {', '.join(DESIGNS)}")
    orders = orders or ("counterbalanced" if design == "balanced" else "both")
    if orders not in ORDER_PLANS:
        raise JudgeSenseError(f"unknown orders {orders!r}; choose one of {', '.join(ORDER_PLANS)}")
    return orders


def build_from_files(templates: str | Path, items: str | Path) -> Benchmark:
    """Build the full design from a template file and an item file (see :func:`build`).

    If the template file has several tasks, the items need a ``task`` column. Raises
    JudgeSenseError naming file, row and column, before anything is built.
    """
    entries, loaded = read_files(templates, items)
    source = {
        "name": Path(items).name,
        "templates": sha256_of(Path(templates)),
        "items": sha256_of(Path(items)),
    }
    return build(entries, loaded, "full", source=source)


def read_files(
    templates: str | Path, items: str | Path
) -> tuple[dict[str, TaskTemplates], list[Item]]:
    """The tasks of a template file and the items of an item file; raises as `build_from_files`."""
    entries, records = load_templates(templates), list(read_table(Path(items)))
    tasks = set()
    for record in records:
        task = record.values.get("task") or None
        if task not in entries and (task is not None or len(entries) > 1):
            problem = "is missing or empty" if task is None else f"names the unknown task {task!r}"
            raise JudgeSenseError(
                f"{record.place}: the 'task' column {problem}; {templates} has the tasks "
                f"{', '.join(entries)}"
            )
        tasks.add(task)
    all_items = []
    for name, entry in entries.items():
        if len(entries) == 1 or name in tasks:
            all_items += items_of(records, str(items), entry.task, entry.fields)
    return entries, all_items


def group_items(
    templates: Mapping[str, TaskTemplates], items: Iterable[Item]
) -> dict[str, list[Item]]:
    """Group the items by task, in the order of the templates' tasks.

    Raises JudgeSenseError for an item of an unknown task and for a repeated item id in a task.
    """
    groups: dict[str, dict[str, Item]] = {}
    for item in items:
        if item.task not in templates:
            raise JudgeSenseError(
                f"item {item.item_id!r} belongs to the task {item.task!r}, which has no templates; "
                f"the tasks are {', '.join(templates)}"
            )
        group = groups.setdefault(item.task, {})
        if item.item_id in group:
            raise JudgeSenseError(f"task {item.task!r}: the item id {item.item_id!r} occurs twice")
        group[item.item_id] = item
    return {name: list(groups[name].values()) for name in templates if name in groups}


def shown_orders(task: Task, orders: str) -> tuple[str, ...]:
    """The option orders that prompts are rendered in: all of the task's unless the plan is one."""
    return (orders,) if orders in task.orders else task.orders


def grid(entry: TaskTemplates, items: Iterable[Item], orders: str = "both") -> Iterator[Prompt]:
    """Every prompt of a task: item by item, order by order, template by template."""
    for item in items:
        for order in shown_orders(entry.task, orders):
            for template in entry.templates:
                yield render(entry.task, template, item, order)


def paired(
    entry: TaskTemplates, items: Sequence[Item], cells: Iterable[Cell]
) -> Iterator[tuple[Item, Pair, Prompt, Prompt]]:
    """The pair at each cell, with its item and its two rendered prompts."""
    template_pairs_of_task = list(combinations(entry.templates, 2))
    for row, column, order in cells:
        first, second = template_pairs_of_task[column]
        a = render(entry.task, first, items[row], order)
        b = render(entry.task, second, items[row], order)
        yield items[row], pair_up(a, b), a, b


def pair_rows(
    entry: TaskTemplates, items: Sequence[Item], cells: Iterable[Cell]
) -> Iterator[dict[str, Any]]:
    """The rows of ``folder.PAIR_ROWS`` at these cells, without the columns of a validation."""
    for item, pair, a, b in paired(entry, items, cells):
        yield {
            **{name: getattr(pair, name) for name in PAIR_ROWS.names if hasattr(pair, name)},
            "task_type": item.task,
            "source_benchmark": item.source,
            "prompt_a": a.text,
            "prompt_b": b.text,
            "response_being_judged": judged_text(entry.task, item, pair.order),
            "ground_truth_label": a.gold,
            "system_id": item.system_id,
            "license": item.license,
            "source_revision": item.revision,
            "expected_a": _expected(a),
            "expected_b": _expected(b),
        }


def _expected(prompt: Prompt) -> str | None:
    answers = load_label_map(prompt.label_map).items()
    return next((raw for raw, label in answers if label == prompt.gold), None)


def judged_text(task: Task, item: Item, order: str) -> str:
    """The judged part of an item as one text; options as ``A: ... | B: ...`` in this order."""
    if task.comparative:
        texts = [item.fields[task.options[label]] for label in task.labels]
        options = zip(task.labels, reversed(texts) if order == "BA" else texts, strict=True)
        return " | ".join(f"{label}: {text}" for label, text in options)
    field = next((name for name in JUDGED if name in item.fields), None)
    return item.fields[field] if field else "\n".join(item.fields.values())


def plan(
    entry: TaskTemplates,
    items: Sequence[Item],
    design: str,
    pairs: int | None,
    seed: int,
    orders: str,
    columns: Sequence[int] | None = None,
) -> list[Cell]:
    """Which cells of item x template pair are measured, and in which option order.

    ``columns`` are the template pairs to choose from, all by default.
    """
    columns = range(math.comb(len(entry.templates), 2)) if columns is None else columns
    width = len(columns)
    capacity = len(items) * width
    if design == "full":
        cells = list(product(range(len(items)), columns))
    else:
        n = min(capacity, max(DEFAULT_PAIRS, len(items))) if pairs is None else pairs
        if not 1 <= n <= capacity:
            raise JudgeSenseError(
                f"task {entry.task.name!r}: cannot make {n} pairs; {len(items)} items and {width} "
                f"template pairs allow 1 to {capacity}"
            )
        places = balanced_cells(len(items), width, n, _rng(seed, entry.task.name))
        cells = [(row, columns[column]) for row, column in places]
    if not entry.task.comparative:
        return [(row, column, NO_ORDER) for row, column in cells]
    if orders == "counterbalanced":
        return _counterbalanced(cells, [item.gold for item in items], seed, entry.task.name)
    order_list = entry.task.orders if orders == "both" else (orders,)
    return [(row, column, order) for row, column in cells for order in order_list]


def balanced_cells(
    rows: int, columns: int, n: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """n distinct cells of a grid in which every row and every column occurs equally often (±1).

    Walking both axes at once meets every row and column equally often, and repeats no cell for
    lcm(rows, columns) steps; shifting the columns by one then opens the next such class. Both axes
    are shuffled first, so that the walk's regularity is no property of the items.
    """
    row_at, column_at = rng.permutation(rows), rng.permutation(columns)
    period = math.lcm(rows, columns)
    step = np.arange(n)
    row = row_at[step % rows]
    column = column_at[(step + step // period) % columns]
    return [(int(r), int(c)) for r, c in zip(row, column, strict=True)]


def _counterbalanced(
    cells: Sequence[tuple[int, int]], golds: Sequence[str | None], seed: int, task: str
) -> list[Cell]:
    """Alternate the orders along the cells sorted by gold label and template pair.

    Each label and each template pair is then halved (±1), so that no position is right more often.
    """
    start = int(_rng(seed, task + ":order").integers(2))
    turn = sorted(range(len(cells)), key=lambda at: (golds[cells[at][0]] or "", cells[at][1]))
    order = dict.fromkeys(range(len(cells)), "AB")
    for place, at in enumerate(turn):
        order[at] = ("AB", "BA")[(place + start) % 2]
    return [(row, column, order[at]) for at, (row, column) in enumerate(cells)]


def _rng(seed: int, name: str) -> np.random.Generator:
    """A random stream per task, so that leaving one task out changes no other."""
    return np.random.default_rng([seed, *name.encode()])


def _chunks(rows: Iterable[_Row], table_of: Callable[[list[_Row]], pa.Table]) -> Iterator[pa.Table]:
    """Tables of some thousand rows, so that no list of all rows is ever in memory."""
    rows = iter(rows)
    while chunk := list(islice(rows, _CHUNK)):
        yield table_of(chunk)
