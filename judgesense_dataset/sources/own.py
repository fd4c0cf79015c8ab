"""Your own items: a JSONL, CSV or Parquet file or a Hub set, with a map of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.tables import Record, read_table
from judgesense_dataset.sources.loader import Collected, Reader, generator, shuffled
from judgesense_dataset.templates import TaskTemplates, items_of


@dataclass(frozen=True)
class OwnData:
    """The place of your items and the names of their columns.

    ``columns`` maps an item's column (a field of the layout, ``item_id``, ``gold``,
    ``cluster_id``, ``system_id``) to yours; ``labels`` maps your gold labels to the task's.
    """

    path: Path | None = None
    hub_id: str = ""
    config: str | None = None
    split: str = "test"
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    license: str = "unknown"


def collect(
    data: OwnData, entry: TaskTemplates, reader: Reader, n: int | None, seed: int
) -> Collected:
    """Draw n items of a task from your data at random, or take all if ``n`` is None.

    Raises JudgeSenseError naming the file or set, the row and the column for a mapped column that
    is missing or empty, a label outside the decision space, or a repeated id.
    """
    if data.path is not None:
        records, where = read_table(data.path), str(data.path)
        provenance = {
            "source": data.path.name,
            "revision": f"sha256:{sha256_of(data.path)}" if data.path.is_file() else "",
            "license": data.license,
        }
    else:
        columns = dict.fromkeys(data.columns.values(), object)
        table = reader.split(data.hub_id, data.config, data.split, columns, data.license)
        records, where = (Record(row, place) for place, row in table), table.where
        provenance = {"source": table.name, "revision": table.revision, "license": table.license}
    renamed = (Record({**_rename(record, data), **provenance}, record.place) for record in records)
    items = items_of(renamed, where, entry.task, entry.fields)
    if n is not None:
        if n > len(items):
            raise JudgeSenseError(
                f"too few items: {where} has {len(items)} of task {entry.task.name!r}, but {n} "
                "were requested; lower --limit"
            )
        items = shuffled(items, generator(seed, "own"))[:n]
    return Collected(items)


def _rename(record: Record, data: OwnData) -> dict[str, Any]:
    row = record.values
    renamed = {**row, **{name: row.get(column) for name, column in data.columns.items()}}
    if missing := [(name, column) for name, column in data.columns.items() if column not in row]:
        name, column = missing[0]
        raise JudgeSenseError(
            f"{record.place}: no column {column!r}, which --columns names for {name!r}; the row's "
            f"columns are {', '.join(row)}"
        )
    if data.labels and renamed.get("gold") is not None:
        gold = str(renamed["gold"])
        if gold not in data.labels:
            raise JudgeSenseError(
                f"{record.place}, column {data.columns.get('gold', 'gold')}: the label {gold!r} is "
                f"not in --gold-map, which has {', '.join(data.labels)}"
            )
        renamed["gold"] = data.labels[gold]
    return renamed
