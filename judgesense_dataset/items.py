"""Read items: one row of a table file each, with the columns that the layout shows and optionally
``item_id``, ``gold``, ``cluster_id``, ``system_id`` and ``task``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, Text, fit
from judgesense.files.tables import Record, read_table
from judgesense.tasks import Item, Task


def _as_label(value: Any) -> Any:
    """Whole numbers are allowed, so that the gold level 4 is the label "4"."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Label = Annotated[str, BeforeValidator(_as_label)]
"""An id or a label: text or a whole number, "" for none."""


class _ItemRow(Shape):
    """A row of an item file; ``fields`` are the columns that the templates show."""

    item_id: Label = ""
    gold: Label = ""
    cluster_id: Label = ""
    system_id: Label = ""
    source: Label = ""
    revision: Label = ""
    license: Label = ""
    fields: dict[str, Text]


_COLUMNS = {"task", "id", *_ItemRow.model_fields} - {"fields"}


def load_items(path: str | Path, task: Task, fields: Iterable[str] | None = None) -> list[Item]:
    """Load the items of one task from a JSONL, CSV or Parquet file, in the file's order.

    ``fields`` are the columns that the templates show (``TaskTemplates.fields``); without it,
    every text column is a field. ``item_id`` defaults to the column ``id`` and then to
    ``<task>-<row>``, ``cluster_id`` to the item's id. In a file with a ``task`` column only the
    task's rows are read.

    Raises JudgeSenseError naming the file, row and column for a missing or empty field, a value
    that is not text, a repeated id, a gold label outside the decision space, or a file without
    items.
    """
    return items_of(read_table(Path(path)), str(path), task, fields)


def items_of(
    records: Iterable[Record], where: str, task: Task, fields: Iterable[str] | None = None
) -> list[Item]:
    """The items of one task in the records of ``where``; raises as :func:`load_items`."""
    needed = None if fields is None else sorted(fields)
    items: dict[str, Item] = {}
    for number, record in enumerate(records, 1):
        values = record.values
        if values.get("task") not in (None, "", task.name):
            continue
        shown = needed or [n for n in values if n not in _COLUMNS and values[n] is not None]
        if missing := [name for name in shown if values.get(name) is None]:
            raise JudgeSenseError(
                f"{record.place}: missing column {missing[0]!r}, which the templates of task "
                f"{task.name!r} show; the row has {', '.join(values)}"
            )
        id_column = "item_id" if "item_id" in values or "id" in shown else "id"
        texts = {name: values[name] for name in shown}
        entry = {**values, "item_id": values.get(id_column), "fields": texts}
        row = fit(_ItemRow, entry, record.place, "an item")
        if row.gold and row.gold not in task.labels:
            raise JudgeSenseError(
                f"{record.place}, column gold: {row.gold!r} is not a label of task "
                f"{task.name!r}; the labels are {', '.join(task.labels)}"
            )
        item_id = row.item_id or f"{task.name}-{number}"
        if item_id in items:
            raise JudgeSenseError(
                f"{record.place}, column {id_column}: {item_id!r} is already the id of an earlier "
                "row; give every item its own id"
            )
        items[item_id] = Item(
            item_id=item_id,
            task=task.name,
            fields=row.fields,
            gold=row.gold or None,
            cluster_id=row.cluster_id,
            system_id=row.system_id,
            source=row.source,
            revision=row.revision,
            license=row.license,
        )
    if not items:
        raise JudgeSenseError(f"{where}: holds no item of task {task.name!r}")
    return list(items.values())
