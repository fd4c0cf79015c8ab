"""Turn rows of a foreign log into the parts of a decision log."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import TaskLabels, show_labels
from judgesense.importers.readings import Parser, Readings
from judgesense.importers.rows import SPOOLED, Columns, batch_of, checked
from judgesense.tasks import is_scale

KEY = ("judge", "task", "scoring", "item_id", "template_id", "order", "repeat", "variant")
"""What distinguishes two decisions."""

_ROWS, _CHARACTERS = 1 << 15, 1 << 26
"""A part ends after this many rows, or about this many bytes of text."""
_IN_MEMORY = 1 << 24
"""In bytes; more goes to a temporary file."""


def build_parts(
    blocks: Iterable[Rows],
    columns: ColumnMap,
    labels: Sequence[str] | None,
    parse: Parser | None,
    write: Callable[[pa.Table], None],
) -> dict[str, dict[str, Any]]:
    """Turn rows into the parts of a decision log, so that memory holds one part at a time.

    ``labels`` is the decision space, in order. By default it is what the file states, A and B for a
    task with option orders, and otherwise the task's gold labels. Where gold has fewer than two
    labels or whole numbers, the judges' decisions count too, except strays (see
    `judgesense.importers.labels`), and so do the whole numbers between them. ``parse`` reads a
    judge's text; by default a text is read only if it is a label, in any case. A row without
    decision, text and log-probabilities is an ERROR; a text that contains no label is UNCLEAR.
    ``write`` takes each part.

    Returns what ``run.json`` has by task: ``tasks``, ``counts`` (rows by status), and
    ``not_labels`` (the five most frequent answers that could not be read as a label).

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value, for two rows
    of the same judge, prompt and repeat, and for a task whose labels are unknown.
    """
    if labels is not None and (len(labels) < 2 or len(set(labels)) < len(labels)):
        raise JudgeSenseError(f"labels must be at least two distinct ones, not {list(labels)}")
    tasks: dict[str, TaskLabels] = {}
    with _Spool() as spool:
        for rows in blocks:
            block = checked(columns.long(rows), columns.of_long())
            spool.add(block)
            show_labels(tasks, block)
        if not tasks:
            raise JudgeSenseError("the source has no rows to import")
        spaces = {
            name: tuple(labels) if labels is not None else task.space(name)
            for name, task in tasks.items()
        }
        readings = Readings(spaces, parse)
        for table in spool.tables():
            write(readings.decide(table))
    return {
        "tasks": {
            task: {
                "labels": list(space),
                "ordinal": is_scale(space),
                "comparative": tasks[task].ordered,
            }
            for task, space in spaces.items()
        },
        "counts": {task: dict(count) for task, count in readings.counts.items()},
        "not_labels": {
            task: dict(count.most_common(5)) for task, count in readings.unknown.items() if count
        },
    }


class _Spool:
    """Rows of an import on their way to disk: a log may be larger than memory.

    They lie compressed in memory, and in a temporary file once they take more than 16 MB.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        sink = pa.PythonFile(self._file, mode="w")
        self._writer = pa.ipc.new_stream(sink, SPOOLED, options=options)
        # A hash takes a tenth of the key's memory; equal hashes are compared in full.
        self._seen: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, columns: Columns) -> None:
        """Keep some rows. Raises JudgeSenseError for a row that is there already."""
        batch = batch_of(columns)
        variants = columns["variant"] or [None] * batch.num_rows
        keys = list(zip(*(columns[name] or variants for name in KEY), strict=True))
        hashes = list(map(hash, keys))
        distinct = set(hashes)
        if len(distinct) < len(keys) or not self._seen.isdisjoint(distinct):
            self._refuse_repeats(keys, columns["place"] or [])
        self._seen |= distinct
        self._writer.write_batch(batch)

    def _refuse_repeats(self, keys: Sequence[tuple[Any, ...]], places: Sequence[str]) -> None:
        wanted = set(keys)
        earlier: dict[tuple[Any, ...], str] = {}
        for table in self.tables():
            there = zip(*(table[name].to_pylist() for name in KEY), strict=True)
            for key, place in zip(there, table["place"].to_pylist(), strict=True):
                if key in wanted:
                    earlier[key] = place
        for key, place in zip(keys, places, strict=True):
            if key in earlier:
                raise JudgeSenseError(
                    f"{place}: item {key[KEY.index('item_id')]!r} has a verdict already, in "
                    f"{earlier[key]}; name the column that tells the rows apart: --columns "
                    "item_id=COLUMN, or repeat=, system_id=, template_id= or order=COLUMN"
                )
            earlier[key] = place

    def tables(self) -> Iterator[pa.Table]:
        """All rows, some at a time, in the order in which they came; none can be added then."""
        self._writer.close()
        self._file.seek(0)
        some: list[pa.RecordBatch] = []
        rows = characters = 0
        for batch in pa.ipc.open_stream(pa.PythonFile(self._file, mode="r")):
            while batch.num_rows:
                some.append(batch.slice(0, _ROWS - rows))
                batch = batch.slice(some[-1].num_rows)
                rows += some[-1].num_rows
                characters += pc.sum(pc.binary_length(some[-1]["raw_text"])).as_py() or 0
                if rows >= _ROWS or characters >= _CHARACTERS:
                    yield pa.Table.from_batches(some).combine_chunks()
                    some, rows, characters = [], 0, 0
        if some:
            yield pa.Table.from_batches(some).combine_chunks()
