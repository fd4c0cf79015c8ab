"""Read item files, with errors that name the row.

An item file is JSONL, CSV or Parquet: one row per item, with the columns that the layout shows and
optionally ``item_id``, ``gold``, ``cluster_id``, ``system_id`` and ``task``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.tasks import Item, Task

_ITEM_COLUMNS = (
    "item_id", "gold", "cluster_id", "system_id", "source", "revision", "license", "task",
)  # fmt: skip


def load_items(path: str | Path, task: Task, fields: Iterable[str] | None = None) -> list[Item]:
    """Load the items of one task from a JSONL, CSV or Parquet file, in the file's order.

    ``fields`` are the columns that the templates show (``TaskTemplates.fields``); without it,
    every text column is a field. ``item_id`` defaults to ``<task>-<row>``, ``cluster_id`` to the
    item's id. In a file with a ``task`` column only the task's rows are read.

    Raises JudgeSenseError naming the file, row (counted from 1 after a CSV's header) and column
    for a missing or empty field, a value that is not text, a repeated id, a gold label outside the
    decision space, text that is not UTF-8, or a file without items.
    """
    path = Path(path)
    return items_from_rows(read_rows(path), str(path), task, fields)


def items_from_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    where: str,
    task: Task,
    fields: Iterable[str] | None = None,
) -> list[Item]:
    """The items of one task in numbered rows of ``where``; raises as :func:`load_items`."""
    needed = None if fields is None else sorted(fields)
    items: list[Item] = []
    rows_of: dict[str, int] = {}
    for number, row in rows:
        if row.get("task") not in (None, "", task.name):
            continue
        item = _item(row, f"{where}, row {number}", number, task, needed)
        if item.item_id in rows_of:
            raise JudgeSenseError(
                f"{where}, row {number}, column item_id: {item.item_id!r} is already the id of "
                f"row {rows_of[item.item_id]}; give every item its own id"
            )
        rows_of[item.item_id] = number
        items.append(item)
    if not items:
        raise JudgeSenseError(f"{where}: holds no item of task {task.name!r}")
    return items


def _item(
    row: Mapping[str, Any], where: str, number: int, task: Task, needed: list[str] | None
) -> Item:
    if needed is None:
        names = [name for name in row if name not in _ITEM_COLUMNS and row[name] is not None]
    else:
        names = needed
    shown: dict[str, str] = {}
    for name in names:
        value = row.get(name)
        if value is None:
            raise JudgeSenseError(
                f"{where}: missing column {name!r}, which the templates of task {task.name!r} "
                f"show; the row has {', '.join(row)}"
            )
        if not isinstance(value, str):
            raise JudgeSenseError(f"{where}, column {name}: must be text, got {value!r}")
        if not value.strip():
            raise JudgeSenseError(f"{where}, column {name}: is empty; fill it or drop the row")
        require_utf8(value, f"{where}, column {name}")
        shown[name] = value
    labelled = {name: _plain(row.get(name), f"{where}, column {name}") for name in _ITEM_COLUMNS}
    gold = labelled["gold"] or None
    if gold is not None and gold not in task.labels:
        raise JudgeSenseError(
            f"{where}, column gold: {gold!r} is not a label of task {task.name!r}; "
            f"the labels are {', '.join(task.labels)}"
        )
    return Item(
        item_id=labelled["item_id"] or f"{task.name}-{number}",
        task=task.name,
        fields=shown,
        gold=gold,
        cluster_id=labelled["cluster_id"],
        system_id=labelled["system_id"],
        source=labelled["source"],
        revision=labelled["revision"],
        license=labelled["license"],
    )


def _plain(value: Any, where: str) -> str:
    """An id or label as text; whole numbers are allowed, so the gold level 4 is the label "4"."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise JudgeSenseError(f"{where}: must be text or a whole number, got {value!r}")
    require_utf8(str(value), where)
    return str(value)


def require_utf8(text: str, where: str) -> None:
    """Raise JudgeSenseError for a text with half a surrogate pair, such as JSON's ``\\ud800``."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JudgeSenseError(
            f"{where}: character {error.start} cannot be written as UTF-8; correct the text"
        ) from error


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table file, numbered from 1.

    Raises JudgeSenseError as :func:`judgesense.files.tables.read_table`.
    """
    for number, record in enumerate(read_table(path), start=1):
        yield number, dict(record.values)
