"""The files of ``judgesense judge``: items in, verdicts out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import replacing
from judgesense.files.tables import csv_text, read_table, read_table_rows
from judgesense.importers.column_names import columns_of, item_of
from judgesense.tasks import Item
from judgesense.text import number
from judgesense_dataset.sources.loader import Reader
from judgesense_dataset.sources.own import OwnData, collect
from local_judges.improved_judge import ImprovedJudge

Row = Mapping[str, Any]

FORMATS = (".parquet", ".jsonl", ".csv")
"""The types of files of verdicts."""


@dataclass(frozen=True)
class ItemVerdict:
    """The verdict on one item: a row of a file of verdicts.

    ``verdict`` and ``gold`` are labels in the item's own order; ``verdict`` is UNCLEAR, REFUSED or
    ERROR without a decision. ``probability`` is that of the label after the remedy, ``margin`` how
    much more probable it is than the next label (for votes, the difference of their shares),
    ``score`` the expected score on a scale. ``ask_person`` is true for a margin below the file's
    threshold or no verdict, and None if the file has no threshold. ``wording`` and ``order`` are
    None where the verdict rests on several. ``certificate`` says of an ablated judge whether one
    sentence can change the verdict (`judgesense.recipes.ablation`). ``reasoning`` is what the judge
    wrote to explain its verdict; of several replies, that of the first with this verdict.
    """

    item_id: str
    verdict: str
    probability: float | None
    margin: float | None
    score: float | None
    ask_person: bool | None
    cost_usd: float | None
    error: str | None = None
    cluster_id: str | None = None
    system_id: str | None = None
    judge: str | None = None
    task: str | None = None
    wording: str | None = None
    order: str | None = None
    repeat: int = 0
    gold: str | None = None
    certificate: str | None = None
    reasoning: str | None = None

    @property
    def note(self) -> str:
        """One line: the verdict, its figures, and whether a person should look."""
        figures = {
            "probability": self.probability,
            "margin": self.margin,
            "expected score": self.score,
        }
        parts = [f"{name} {number(x, 2)}" for name, x in figures.items() if x is not None]
        text = self.verdict + (f" ({', '.join(parts)})" if parts else "")
        if self.error:
            text += f": {self.error}"
        return text + ("; ask a person" if self.ask_person else "")


_ARROW = {str: pa.string(), float: pa.float64(), bool: pa.bool_(), int: pa.int32()}
SCHEMA = pa.schema(
    [
        (name, _ARROW[(get_args(kind) or (kind,))[0]])
        for name, kind in get_type_hints(ItemVerdict).items()
        if name != "reasoning"
    ]
)
"""The columns of a file of verdicts: the fields of `ItemVerdict` that a log keeps."""


def read_items(
    items: str | Path, improved: ImprovedJudge, columns: Mapping[str, str]
) -> tuple[list[Item], dict[str, Any], list[Row]]:
    """The items of a file, what identifies them, and their rows, with the columns as they are.

    ``columns`` maps columns of items to those of the data. Raises JudgeSenseError naming the place,
    row and column of what is missing or invalid.
    """
    known = {*improved.fields, "item_id", "cluster_id", "system_id", "gold"}
    if unknown := sorted(columns.keys() - known):
        raise JudgeSenseError(
            f"columns: {unknown[0]!r} is not a field of the items; choose from "
            f"{', '.join(sorted(known))}"
        )
    wordings = improved.wordings
    path = Path(items)
    identity: dict[str, Any] = {"columns": dict(columns)} if columns else {}
    if not path.is_file():
        raise JudgeSenseError(f"no file {items}; give a file of items: JSONL, CSV or Parquet")
    identity.update(path=str(path.resolve()))
    if "item_id" not in columns and (id_column := _id_column(path, improved)):
        columns = {**columns, "item_id": id_column}
    data = OwnData(path=path, columns=columns)
    item_list = list(collect(data, wordings, Reader(), None, 0).items)
    all_rows = (record.values for record in read_table(path))
    rows = [row for row in all_rows if row.get("task") in (None, "", wordings.task.name)]
    return item_list, {**identity, "revision": item_list[0].revision}, rows


def _id_column(path: Path, improved: ImprovedJudge) -> str | None:
    """The column that says which item a row is, as a check reads it; None for those of the items'
    own names, and where no column does."""
    file_columns, _ = columns_of(read_table_rows(path))
    if {"item_id", "id"} & file_columns.keys():
        return None
    others = {name: column for name, column in file_columns.items() if name not in improved.fields}
    return item_of({name: column for name, column in others.items() if column.unique})


def changed_since(out: Path, verdicts: Sequence[ItemVerdict]) -> list[bool]:
    """Whether each verdict is new, or another than the file of an earlier call has."""
    earlier = read_table(out) if out.is_file() else ()
    earlier_verdicts = {(row.values.get("item_id"), row.values.get("verdict")) for row in earlier}
    return [(verdict.item_id, verdict.verdict) not in earlier_verdicts for verdict in verdicts]


def write_verdicts(verdicts: Sequence[ItemVerdict], out: Path, items: Sequence[Row] = ()) -> None:
    """Write verdicts as Parquet, JSONL or CSV, whole or not at all.

    ``items`` are the rows of the items' file, one per verdict: their columns follow the
    verdict's. A column with the name of one of the verdict's is kept as ``input_<name>``, unless
    both hold the same.

    Raises JudgeSenseError if the file cannot be written.
    """
    rows = [asdict(verdict) for verdict in verdicts]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    for name in dict.fromkeys(name for row in items for name in row):
        values = [row.get(name) for row in items]
        if name in SCHEMA.names:
            pairs = zip(rows, values, strict=True)
            if all(str(row[name] or "") == str(value or "") for row, value in pairs):
                continue
            name = f"input_{name}"
        table = table.append_column(name, _as_column(values))
    try:
        with replacing(out) as temporary:
            if out.suffix == ".parquet":
                pq.write_table(table, temporary)
            elif out.suffix == ".jsonl":
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
                temporary.write_text("".join(lines), encoding="utf-8")
            else:
                text = csv_text(table.column_names, table.to_pylist())
                temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JudgeSenseError(f"cannot write {out}: {error.strerror or error}") from error


def _as_column(values: list[Any]) -> pa.Array:
    """Values of one type as they are; nested ones, and those of several types, as JSON."""
    try:
        column = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        column = None
    if column is not None and not pa.types.is_nested(column.type):
        return column
    return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values])
