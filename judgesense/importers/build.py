"""Turn rows of a foreign log into the parts of a decision log."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record, Rows, in_rows
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import Tally, decision_space
from judgesense.importers.readings import LONGEST, Parser, Readings, is_label
from judgesense.importers.rows import KEY, SPOOLED, Block, block_of
from judgesense.tasks import is_scale

_MOST_READINGS = 8
_REMEMBERED = 100_000
_ROWS, _CHARACTERS = 1 << 15, 1 << 26
"""A part ends after this many rows, or about this many bytes of text."""
_IN_MEMORY = 1 << 26
"""In bytes; more goes to a temporary file."""


@dataclass(frozen=True)
class ImportedLog:
    """A decision log made from foreign records.

    ``tasks`` maps a task's name to ``{"labels", "ordinal", "comparative"}``, as in ``run.json``,
    and ``counts`` to its rows by status. ``unknown`` counts, per task, the five most frequent
    answers that could not be read as a label; they are UNCLEAR in the log. ``readings`` are, per
    task, the most frequent answers and what each was read as: ``{"text", "label", "count"}``.
    """

    table: pa.Table
    tasks: dict[str, dict[str, Any]]
    counts: dict[str, dict[str, int]]
    unknown: dict[str, dict[str, int]] = field(default_factory=dict)
    readings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def build(records: Iterable[Record], columns: ColumnMap) -> ImportedLog:
    """Turn records into a decision log in memory; see `build_parts`."""
    parts: list[pa.Table] = []
    built = build_parts(in_rows(records), columns, None, None, parts.append)
    return replace(built, table=pa.concat_tables(parts))


def build_parts(
    blocks: Iterable[Rows],
    columns: ColumnMap,
    labels: Sequence[str] | None,
    parse: Parser | None,
    write: Callable[[pa.Table], None],
) -> ImportedLog:
    """Turn rows into the parts of a decision log, so that memory holds one part at a time.

    ``labels`` is the decision space, in order. By default it is what the file states, A and B for a
    task with option orders, and otherwise the task's gold labels. Where gold has fewer than two
    labels or whole numbers, the judges' decisions count too, except strays (see
    `judgesense.importers.labels`), and so do the whole numbers between them. ``parse`` reads a
    judge's text; by default a text is read only if it is a label, in any case. A row without
    decision, text and log-probabilities is an ERROR; a text that contains no label is UNCLEAR.
    ``write`` takes each part; the returned log has an empty ``table``.

    Raises JudgeSenseError, with file, row and column, for a missing or invalid value, for two rows
    of the same judge, prompt and repeat, and for a task whose labels are unknown.
    """
    with _Spool() as spool:
        tally = Tally()
        for rows in blocks:
            block = block_of(columns.long(rows), columns.of_long())
            spool.add(block)
            tally.add(block)
        if not tally.tasks:
            raise JudgeSenseError("the source has no rows to import")
        spaces = {task: decision_space(task, tally.rows, labels) for task in tally.tasks}
        readings = Readings(spaces, _remembering(parse or is_label))
        for table in spool.tables():
            write(readings.decide(table))
    return ImportedLog(
        table=SCHEMA.empty_table(),
        tasks={
            task: {
                "labels": list(space),
                "ordinal": is_scale(space),
                "comparative": task in tally.ordered,
            }
            for task, space in spaces.items()
        },
        counts={task: dict(count) for task, count in readings.counts.items()},
        unknown={
            task: dict(count.most_common(5)) for task, count in readings.unknown.items() if count
        },
        readings={
            task: [
                {"text": text, "label": label, "count": count}
                for (text, label), count in shown.most_common(_MOST_READINGS)
            ]
            for task, shown in readings.shown.items()
        },
    )


class _Spool:
    """Rows of an import on their way to disk: a log may be larger than memory.

    They lie compressed in memory, and in a temporary file once they take more than 64 MB.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        sink = pa.PythonFile(self._file, mode="w")
        self._writer = pa.ipc.new_stream(sink, SPOOLED, options=options)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._characters = self._tables = 0
        # A hash takes a tenth of the key's memory; equal hashes are compared in full.
        self._seen: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, block: Block) -> None:
        """Keep the rows of a block. Raises JudgeSenseError for a row that is there already."""
        hashes = list(map(hash, block.zipped(*KEY)))
        distinct = set(hashes)
        if len(distinct) < block.n or not self._seen.isdisjoint(distinct):
            self._refuse_repeats(block, hashes)
        self._seen |= distinct
        batch = block.batch()
        while batch.num_rows:
            part = batch.slice(0, _ROWS - self._rows)
            batch = batch.slice(part.num_rows)
            self._waiting.append(part)
            self._rows += part.num_rows
            self._characters += pc.sum(pc.binary_length(part["raw_text"])).as_py() or 0
            if self._rows >= _ROWS or self._characters >= _CHARACTERS:
                self._writer.write_table(self._table(), max_chunksize=_ROWS)
                self._tables += 1
                self._waiting, self._rows, self._characters = [], 0, 0

    def _refuse_repeats(self, block: Block, hashes: Sequence[int]) -> None:
        earlier: dict[tuple[Any, ...], str] = {}
        places = block.columns["place"] or ()
        for key, number, place in zip(block.zipped(*KEY), hashes, places, strict=True):
            before = earlier.get(key) or (self._place_of(key) if number in self._seen else None)
            if before is not None:
                raise JudgeSenseError(
                    f"{place}: same judge, item, template and order as {before} "
                    f"({', '.join(map(str, key))}); map a column that distinguishes them "
                    "(--columns repeat=COLUMN, or a finer item_id or template_id)"
                )
            earlier[key] = place

    def _place_of(self, key: tuple[Any, ...]) -> str | None:
        for table in self.tables():
            columns = [table[name].to_pylist() for name in (*KEY, "place")]
            for *own, place in zip(*columns, strict=True):
                if tuple(own) == key:
                    return str(place)
        return None

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._waiting, SPOOLED).combine_chunks()

    def tables(self) -> Iterator[pa.Table]:
        """All rows, some at a time, in the order in which they came."""
        end = self._file.tell()
        self._file.seek(0)
        try:
            if self._tables:
                stream = pa.ipc.open_stream(pa.PythonFile(self._file, mode="r"))
                for _ in range(self._tables):
                    yield pa.Table.from_batches([stream.read_next_batch()])
        finally:
            self._file.seek(end)
        if self._rows:
            yield self._table()


def _remembering(parse: Parser) -> Parser:
    """The parser, which reads a short text only once: logs repeat them by the thousand."""
    known = lru_cache(maxsize=_REMEMBERED)(parse)
    return lambda text, labels: (known if len(text) <= LONGEST else parse)(text, labels)
