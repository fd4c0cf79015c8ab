"""Your own items: a JSONL, CSV or Parquet file or a Hub set, with a map of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense_dataset.items import items_from_rows, read_rows
from judgesense_dataset.sources.loader import Collected, Reader, generator, shuffled
from judgesense_dataset.templates import TaskTemplates

_PROVENANCE = ("source", "revision", "license")


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
    is missing, empty or not UTF-8, a label outside the decision space, or a repeated id.
    """
    rows: Iterable[tuple[int, Mapping[str, Any]]]
    if data.path is not None:
        if not data.path.is_file():
            raise JudgeSenseError(f"--items {data.path}: no such file")
        where, source = str(data.path), data.path.name
        revision = f"sha256:{sha256_of(data.path)}"
        rows, license_ = read_rows(data.path), data.license
    else:
        columns = dict.fromkeys(data.columns.values(), object)
        table = reader.split(data.hub_id, data.config, data.split, columns, data.license)
        where, source, revision, license_ = table.where, table.name, table.revision, table.license
        rows = ((number, row) for number, (_, row) in enumerate(table, 1))
    provenance = dict(zip(_PROVENANCE, (source, revision, license_), strict=True))
    mapped = (
        (number, {**_rename(row, data, f"{where}, row {number}"), **provenance})
        for number, row in rows
    )
    items = items_from_rows(mapped, where, entry.task, entry.fields)
    if n is not None:
        if n > len(items):
            raise JudgeSenseError(
                f"too few items: {where} has {len(items)} of task {entry.task.name!r}, but {n} "
                "were requested"
            )
        items = shuffled(items, generator(seed, "own"))[:n]
    return Collected(items)


def _rename(row: Mapping[str, Any], data: OwnData, place: str) -> dict[str, Any]:
    renamed = {name: value for name, value in row.items() if name not in _PROVENANCE}
    for ours, theirs in data.columns.items():
        if theirs not in row:
            raise JudgeSenseError(
                f"{place}: no column {theirs!r}, which --columns maps to {ours!r}; "
                f"the row has {', '.join(row)}"
            )
        renamed[ours] = row[theirs]
    if data.labels and renamed.get("gold") is not None:
        gold = str(renamed["gold"])
        if gold not in data.labels:
            raise JudgeSenseError(
                f"{place}, column {data.columns.get('gold', 'gold')}: the label {gold!r} is not "
                f"in --gold-map, which has {', '.join(data.labels)}"
            )
        renamed["gold"] = data.labels[gold]
    return renamed
