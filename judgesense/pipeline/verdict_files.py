"""The files of ``judgesense judge``: items in, verdicts out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import replacing
from judgesense.systems.verdict_table import SCHEMA
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import Reader
from judgesense_dataset.sources.own import OwnData, collect
from judgesense_dataset.templates import TaskTemplates
from local_judges.stabilised_file import Stabilised

FORMATS = (".parquet", ".jsonl", ".csv")
"""The types of files of verdicts."""


@dataclass(frozen=True)
class ItemVerdict:
    """The verdict on one item.

    ``verdict`` is a label of the task, in the item's own order, or UNCLEAR, REFUSED or ERROR.
    ``probability`` is that of the label after the remedy, ``margin`` the nats between it and the
    next label (for votes, the difference of their shares), ``score`` the expected score on a scale;
    None where the rule has none.
    ``ask_person`` is true for a margin below the file's threshold and without a verdict, and None
    where the file has no threshold. ``cost_usd`` is in US dollars, None if unknown. ``wording`` and
    ``order`` are None where the verdict rests on several. The fields are the columns of
    `judgesense.systems.verdict_table.SCHEMA`.
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


def read_items(
    items: str | Path, stabilised: Stabilised, columns: Mapping[str, str]
) -> tuple[list[Item], dict[str, Any]]:
    """The items of a file, a Hub set or a dataset's folder, and what identifies them.

    ``columns`` maps columns of items to those of the data. Raises JudgeSenseError naming the place,
    row and column of what is missing or invalid.
    """
    known = {*stabilised.fields, "item_id", "cluster_id", "system_id", "gold"}
    if unknown := sorted(columns.keys() - known):
        raise JudgeSenseError(
            f"columns: {unknown[0]!r} is not a column of items; choose from "
            f"{', '.join(sorted(known))}"
        )
    asked = TaskTemplates(
        stabilised.entry.task,
        tuple(t for t in stabilised.entry.templates if t.template_id in stabilised.rule.wordings),
    )
    path = Path(items)
    place: dict[str, Any] = {"columns": dict(columns)} if columns else {}
    reader = Reader()
    if path.is_file():
        own = OwnData(path=path, columns=columns)
        place.update(path=str(path.resolve()))
    else:
        hub_id, config, split = [*str(items).split(":"), "", ""][:3]
        folder = Path(hub_id).expanduser()
        if folder.is_dir():
            folder = folder.resolve()
            reader, hub_id = Reader(mirror=folder.parent.parent), "/".join(folder.parts[-2:])
        elif path.suffix in (".jsonl", ".csv", ".parquet") or hub_id.count("/") != 1:
            raise JudgeSenseError(
                f"no file {items}; give a file of items, a dataset's folder or a Hub set (org/name)"
            )
        own = OwnData(hub_id=hub_id, config=config or None, split=split or "test", columns=columns)
        place.update(hub=str(items))
    read = collect(own, asked, reader, None, 0).items
    return list(read), {**place, "revision": read[0].revision}


def write_verdicts(verdicts: Sequence[ItemVerdict], out: Path) -> None:
    """Write verdicts as Parquet, JSONL or CSV, whole or not at all.

    Raises JudgeSenseError if the file cannot be written.
    """
    rows = [asdict(verdict) for verdict in verdicts]
    try:
        with replacing(out) as temporary:
            if out.suffix == ".parquet":
                pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), temporary)
            elif out.suffix == ".jsonl":
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                temporary.write_text("".join(lines), encoding="utf-8")
            else:
                text = io.StringIO()
                writer = csv.DictWriter(text, SCHEMA.names, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
                temporary.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise JudgeSenseError(f"cannot write {out}: {error.strerror or error}") from error
