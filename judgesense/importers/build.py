"""Turn rows of a foreign log into the parts of a decision log."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.answer_reader import AnswerReader, Parser
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import TaskLabels, is_ordered, show_labels
from judgesense.importers.people import Vocabulary
from judgesense.importers.rows import SPOOLED, batch_of, checked

KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
"""What distinguishes two decisions."""

_ROWS, _BYTES = 1 << 15, 1 << 26
"""A part has at most this many rows, and about this many bytes."""


def build_parts(
    blocks: Iterable[Rows],
    columns: ColumnMap,
    labels: Sequence[str] | None,
    parse: Parser | None,
    write: Callable[[pa.Table], None],
    stated: Mapping[str, Vocabulary] | None = None,
) -> dict[str, dict[str, Any]]:
    """Turn rows into the parts of a decision log, so that memory holds one part at a time.

    ``labels`` is the decision space, in order. By default it is what the file states, A and B for a
    task with option orders, and otherwise the task's gold labels. Where gold has fewer than two
    labels or whole numbers, the judges' decisions count too, except strays (see
    `judgesense.importers.labels`), and so do the whole numbers between them. ``parse`` reads a
    judge's text; by default a text is read only if it is a label, in any case. A row without
    decision, text and log-probabilities is an ERROR; a text that contains no label is UNCLEAR.
    ``write`` takes each part. ``stated`` has the labels of each task, where they differ.

    Returns what ``run.json`` has by task: ``tasks``, ``counts`` (rows by status), and
    ``not_labels`` (the five most frequent answers that could not be read as a label).

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value, for two rows
    of the same judge, prompt and repeat, and for a task whose labels are unknown.
    """
    tasks: dict[str, TaskLabels] = {}
    with tempfile.TemporaryDirectory() as scratch:
        # A log may be larger than memory, and its labels are known after its last row.
        path = Path(scratch, "rows.parquet")
        try:
            with pq.ParquetWriter(path, SPOOLED, compression="zstd") as writer:
                for rows in blocks:
                    block = checked(*columns.long(rows))
                    writer.write_batch(batch_of(block))
                    show_labels(tasks, block)
        except JudgeSenseError:
            _require_distinct(path)  # An earlier row is named first.
            raise
        if not tasks:
            raise JudgeSenseError("the source has no rows to import")
        _require_distinct(path)
        stated = stated or {}
        spaces = {
            name: tuple((stated[name].labels if name in stated else labels) or task.space(name))
            for name, task in tasks.items()
        }
        readings = AnswerReader(spaces, parse)
        with pq.ParquetFile(path) as file:
            n, groups = file.metadata.num_rows, range(file.num_row_groups)
            size = sum(file.metadata.row_group(at).total_byte_size for at in groups)
            for batch in file.iter_batches(min(_ROWS, 1 + n * _BYTES // size)):
                write(readings.decide(pa.Table.from_batches([batch])))
    return {
        "tasks": {
            task: {
                "labels": list(space),
                "ordinal": is_ordered(space),
                "comparative": tasks[task].ordered,
            }
            for task, space in spaces.items()
        },
        "counts": {task: dict(count) for task, count in readings.counts.items()},
        "not_labels": {
            task: dict(count.most_common(5)) for task, count in readings.unknown.items() if count
        },
    }


def _require_distinct(path: Path) -> None:
    """Raise JudgeSenseError for two rows of the same key."""
    keys = pq.read_table(path, columns=[*KEY])
    if keys.group_by(KEY).aggregate([]).num_rows == keys.num_rows:
        return
    earlier: dict[tuple[Any, ...], str] = {}
    for row in pq.read_table(path, columns=[*KEY, "place"]).to_pylist():
        place = row.pop("place")
        if (first := earlier.setdefault(tuple(row.values()), place)) is not place:
            raise JudgeSenseError(
                f"{place}: item {row['item_id']!r} has a verdict already, in {first}; name the "
                "column that tells the rows apart: --columns item_id=COLUMN, or repeat=, "
                "system_id=, template_id= or order=COLUMN"
            )
