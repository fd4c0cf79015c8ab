"""Turn records into a decision log: labels, verdicts and statuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record, Rows, in_rows
from judgesense.importers.bulk import KEY, Block, block_of, block_of_rows
from judgesense.importers.columns import ColumnMap
from judgesense.importers.labels import Tally, decision_space
from judgesense.importers.readings import LONGEST, Parser, Readings, is_label
from judgesense.importers.rows import row_of
from judgesense.importers.spool import Spool
from judgesense.tasks import is_scale

_MOST_READINGS = 8
_REMEMBERED = 100_000


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


def build(
    records: Iterable[Record],
    columns: ColumnMap,
    labels: Sequence[str] | None = None,
    parse: Parser | None = None,
) -> ImportedLog:
    """Turn records into a decision log in memory; see `build_parts`."""
    parts: list[pa.Table] = []
    built = build_parts(in_rows(records), columns, labels, parse, parts.append)
    return replace(built, table=pa.concat_tables(parts))


def build_parts(
    blocks: Iterable[Rows],
    columns: ColumnMap,
    labels: Sequence[str] | None,
    parse: Parser | None,
    write: Callable[[pa.Table], None],
) -> ImportedLog:
    """Turn records into the parts of a decision log, so that memory holds one part at a time.

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
    with Spool() as spool:
        tally = _spooled(blocks, columns, spool)
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
        counts={task: dict(found) for task, found in readings.counts.items()},
        unknown={
            task: dict(found.most_common(5)) for task, found in readings.unknown.items() if found
        },
        readings={
            task: [
                {"text": text, "label": label, "count": count}
                for (text, label), count in found.most_common(_MOST_READINGS)
            ]
            for task, found in readings.shown.items()
        },
    )


def _spooled(blocks: Iterable[Rows], columns: ColumnMap, spool: Spool) -> Tally:
    """Put the rows into the spool; refuse two of the same judge, prompt and repeat."""
    # A hash takes a tenth of the key's memory; equal hashes are compared in full.
    seen: set[int] = set()
    tally = Tally()
    for rows in blocks:
        block = block_of(rows, columns)
        hashes = set(block.keys()) if block else set()
        if block is None or len(hashes) < block.n or not seen.isdisjoint(hashes):
            block = _one_by_one(rows.records(), columns, seen, spool)
            hashes = set(block.keys())
        seen |= hashes
        tally.add(block)
        spool.add(block)
    if not len(spool):
        raise JudgeSenseError("the source has no rows to import")
    return tally


def _one_by_one(
    records: Sequence[Record], columns: ColumnMap, seen: set[int], spool: Spool
) -> Block:
    """The rows as a block, in the slow way, which names the first that is wrong."""
    rows: list[dict[str, Any]] = []
    places: dict[tuple[Any, ...], str] = {}
    for record in records:
        row = row_of(record, columns)
        key = tuple(row[name] for name in KEY)
        before = places.get(key) or (spool.place_of(key) if hash(key) in seen else None)
        if before is not None:
            raise JudgeSenseError(
                f"{record.place}: same judge, item, template and order as {before} "
                f"({', '.join(map(str, key))}); map a column that distinguishes them "
                "(--columns repeat=COLUMN, or a finer item_id or template_id)"
            )
        places[key] = record.place
        rows.append(row)
    return block_of_rows(rows)


def _remembering(parse: Parser) -> Parser:
    """The parser, which reads a short text only once: logs repeat them by the thousand."""
    known = lru_cache(maxsize=_REMEMBERED)(parse)
    return lambda text, labels: (known if len(text) <= LONGEST else parse)(text, labels)
