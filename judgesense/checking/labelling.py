"""What people label next, blind, and the file that their labels are in: ``judgesense label``.

The order is drawn once from the verdicts (`judgesense.comparison.units.pick`): doubtful items
come more often, each with a known probability. Everyone gets the same order, so that two people's
labels can be compared. Nobody sees verdicts, reasons, or other people's labels.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.comparison.human_labels import LabelRow
from judgesense.comparison.units import ALL, pick, strata_of, units_of
from judgesense.comparison.verdict_files import SomeId, fields_of, read_rows, read_verdicts
from judgesense.comparison.verdict_table import SCHEMA, VerdictTable
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import replacing
from judgesense.files.tables import SUFFIXES, csv_text, read_table_rows
from judgesense.importers.column_names import columns_of, plain
from judgesense.importers.columns import ROW
from judgesense.importers.recognise import require_columns, understand
from judgesense.log.folder import Run, read_run
from judgesense.log.record import now
from judgesense.measure.disagreements import columns_of_items

MOST_LABELS = 10
"""One for each key with a digit."""

LONGEST_NAME, LONGEST_COMMENT = 40, 4000

_AT_ONCE = 20
"""The fewest items drawn and shuffled together, so that their order hides the strata."""

_HIDDEN = re.compile(r"(system|model|generator)(_?[a-z0-9])?|score|metadata")
"""Names of columns that say who wrote an answer or what a grader made of it."""

COLUMNS = (
    "item_id",
    "system_id",
    "label",
    "rater",
    "stratum",
    "probability",
    "comment",
    "labelled_at",
)
"""The columns of the file of labels, one row per item and person. ``probability`` is the share of
the stratum's items that have a label; ``estimate`` weights labels by ``stratum``."""


class LabelFileRow(LabelRow):
    """A row of a file that `Labelling` wrote."""

    comment: SomeId = None
    labelled_at: SomeId = None


class Labelling:
    """The items to label, in their order, and the labels given so far; safe between threads.

    ``table`` has the verdicts (UNCLEAR for items alone) and ``texts`` the columns of each row.
    ``show`` names the columns to show, by default all but those that name systems. Labels are
    added to a file ``out`` that exists. Raises JudgeSenseError for more labels than keys, and for a
    file with labels of other items.
    """

    def __init__(
        self,
        table: VerdictTable,
        labels: Sequence[str],
        out: Path,
        *,
        texts: Sequence[Mapping[str, Any]],
        show: Sequence[str] = (),
        seed: int = 0,
        limit: int | None = None,
    ) -> None:
        if not 1 < len(labels) <= MOST_LABELS:
            raise JudgeSenseError(
                f"{table.source}: {len(labels)} labels, such as {', '.join(labels[:3])}; choose 2 "
                f"to {MOST_LABELS} with --answers A,B"
            )
        self.labels, self.out, self.source = tuple(labels), out, table.source
        self.positive: str | None = None
        try:
            units = units_of(table)
        except JudgeSenseError:
            # Of labels of which none is known to be good, the first counts as good.
            self.positive = table.labels[0]
            units = units_of(table, self.positive)
        self._units = units
        self._shown = [
            {
                name: str(text)
                for name, text in own.items()
                if (name in show if show else not _HIDDEN.fullmatch(plain(name)))
            }
            for own in (texts[row] for row in units.rows)
        ]
        verdicts = not np.isnan(units.means).all()
        self._strata = strata_of(units).astype(str) if verdicts else np.full(len(units), "")
        self.total = min(limit or len(units), len(units))
        self._seed, self._order = seed, list[int]()
        self._drawn = np.full(len(units), np.nan)
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._lock = RLock()
        self.names: dict[str, None] = {}
        """Everyone who labels now."""
        self._read()

    def state(self, name: str, at: int | None = None) -> dict[str, Any]:
        """What a person sees: the item at a place of the order, by default the next to label."""
        with self._lock:
            self.names[name] = None
            done = min(self.total, self.counts().get(name, 0))
            if at is None and done < self.total:
                labelled = {
                    unit for (who, unit), row in self._rows.items() if who == name and row["label"]
                }
                at = next((p for p in range(self.total) if self._unit(p) not in labelled), None)
            found: dict[str, Any] = {"done": done, "total": self.total, "at": at, "item": None}
            if at is None or not 0 <= at < self.total:
                return found | {"at": None}
            row = self._rows.get((name, self._unit(at)), {})
            return found | {
                "item": self._shown[self._unit(at)],
                "label": row.get("label") or None,
                "comment": row.get("comment") or "",
            }

    def put(self, name: str, at: int, label: str | None, comment: str) -> None:
        """Save a person's label and comment; when this returns, they are on disk.

        Raises OSError if they cannot be written; they are not kept then.
        """
        with self._lock:
            rows, key = dict(self._rows), (name, self._unit(at))
            # The last one given is the last row, which undo takes away.
            old = rows.pop(key, {})
            rows[key] = {
                "label": label if label is not None else old.get("label"),
                "comment": comment,
                "labelled_at": now(),
            }
            self._save(rows)

    def undo(self, name: str) -> int | None:
        """Take away a person's last label; returns its place in the order, None without one."""
        with self._lock:
            own = [key for key, row in self._rows.items() if key[0] == name and row["label"]]
            if not own:
                return None
            self._save({**self._rows, own[-1]: {**self._rows[own[-1]], "label": None}})
            return next((p for p in range(self.total) if self._unit(p) == own[-1][1]), None)

    def is_finished(self) -> bool:
        """Whether everyone who labels now has labelled all items."""
        with self._lock:
            counts = self.counts()
            return bool(self.names) and all(counts.get(n, 0) >= self.total for n in self.names)

    def counts(self) -> dict[str, int]:
        """The number of labels of each person in the file."""
        found: dict[str, int] = {}
        for (name, _), row in self._rows.items():
            found[name] = found.get(name, 0) + bool(row["label"])
        return found

    def _unit(self, place: int) -> int:
        """The output at a place of the order, which is drawn as far as it is needed."""
        while len(self._order) <= place:
            systems, size = range(len(self._units.systems)), max(_AT_ONCE, len(self._order) // 4)
            drawn, *_ = pick(self._units, self._drawn, systems, size, self._seed + len(self._order))
            self._drawn[drawn] = 0.0
            self._order += drawn.tolist()
        return self._order[place]

    def _id(self, unit: int) -> tuple[str, str]:
        units = self._units
        system = units.systems[units.system[unit]]
        if units.flipped[unit]:
            system = "|".join(reversed(system.split("|")))
        return str(units.items[unit]), "" if units.systems == (ALL,) else system

    def _read(self) -> None:
        if not self.out.exists():
            return
        known = {self._id(unit): unit for unit in range(len(self._units))}
        for row, record in read_rows(self.out, LabelFileRow, {}, "--columns"):
            unit = known.get((row.item_id, row.system_id or ""))
            if unit is None or (row.stratum or "") != self._strata[unit]:
                raise JudgeSenseError(
                    f"{record.place}: item {row.item_id!r} is not in {self.source}, or its "
                    "verdicts have changed; name another file with --out"
                )
            self._rows[row.rater or "", unit] = {
                "label": row.label,
                "comment": row.comment or "",
                "labelled_at": row.labelled_at or "",
            }

    def _save(self, rows: dict[tuple[str, int], dict[str, Any]]) -> None:
        taken = Counter(
            self._strata[unit] for unit in {unit for (_, unit), row in rows.items() if row["label"]}
        )
        sizes = Counter(self._strata.tolist())
        lines = []
        for (name, unit), row in rows.items():
            stratum = self._strata[unit]
            share = round(taken[stratum] / sizes[stratum], 6) if row["label"] else ""
            cells = [
                *self._id(unit),
                row["label"] or "",
                name,
                stratum,
                share,
                row["comment"],
                row["labelled_at"],
            ]
            lines.append(dict(zip(COLUMNS, cells, strict=True)))
        with replacing(self.out) as temporary, temporary.open("wb") as file:
            file.write(csv_text(COLUMNS, lines).encode())
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(self.out.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._rows = rows


def open_labelling(
    source: Path,
    out: Path | None = None,
    *,
    verdict: str | None = None,
    answers: Sequence[str] | None = None,
    show: Sequence[str] | None = None,
    judge: str | None = None,
    task: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> tuple[Labelling, dict[str, str]]:
    """The items to label in a table of verdicts, a table of items (with ``answers``), or a run's
    folder; and the columns under which ``estimate`` reads the file.

    The labels go to ``out``: by default ``SOURCE.labels.csv``, or ``labels.csv`` in the folder. The
    column ``verdict`` picks the items. Raises JudgeSenseError as
    `judgesense.comparison.verdict_files.read_verdicts`, without labels to choose from, and for a
    file of labels of other items.
    """
    more: dict[str, Any] = {"seed": seed, "limit": limit, "show": show or ()}
    if source.is_dir():
        table = read_verdicts(source, judge=judge, task=task)
        by_item = _texts_of(read_run(source), table.task)
        texts = [by_item.get(item, {}) for item in table.column("item_id")]
        target = out or source / "labels.csv"
        return Labelling(table, answers or table.labels, target, texts=texts, **more), {}
    if source.suffix.lower() not in SUFFIXES:
        raise JudgeSenseError(
            f"{source}: label reads tables ({', '.join(SUFFIXES)}) and folders of runs. For a log "
            f"of another tool: judgesense check {source} --out DIR, then judgesense label DIR"
        )
    target = out or source.with_name(f"{source.stem}.labels.csv")
    blocks = list(read_table_rows(source))
    found, size = columns_of(blocks)
    try:
        meant = understand(found, size, str(source), labels=answers)
        roles, people, labels = dict(meant.columns), meant.people, meant.labels
    except JudgeSenseError:
        if answers is None:
            raise
        own = next((name for name in ("item_id", "id") if name in found), ROW)
        roles, people, labels = {"item_id": own}, (), tuple(answers)
    judged = roles.get("raw_decision", "").split(",") if roles.get("raw_decision") else []
    require_columns(found, str(source), [verdict] if verdict else [], "--verdict")
    require_columns(found, str(source), show or (), "--show")
    columns = fields_of(roles)
    chosen = verdict or next(iter(judged), None)
    if chosen is not None:
        columns["verdict"] = chosen
        if len(judged) > 1:
            columns.pop("judge", None)
        table = read_verdicts(source, judge=judge, task=task, columns=columns)
    else:
        table = _items_alone(source, blocks, columns["item_id"], tuple(labels or answers or ()))
    hidden = {
        *judged,
        *people,
        *roles.get("raw_text", "").split(","),
        *SCHEMA.names,
        *columns.values(),
        chosen,
    }
    vocabulary = {word.casefold() for word in (*table.labels, *(labels or ()))}
    hidden |= {
        name for name, column in found.items() if column.labels and {*column.words} <= vocabulary
    }
    records = [record.values for rows in blocks for record in rows.records()]
    wanted = set(show) if show else {name for name in found if name not in hidden}
    texts = [
        {
            name: value
            for name, value in values.items()
            if name in wanted and value not in (None, "")
        }
        for values in _of_table(records, table, columns)
    ]
    choices = answers or (table.labels if len(table.labels) <= MOST_LABELS else labels)
    return Labelling(table, choices or table.labels, target, texts=texts, **more), columns


def _texts_of(run: Run, task: str) -> dict[str, dict[str, str]]:
    """What a run has on each item: the other columns of an imported file, or its first prompt."""
    texts = columns_of_items(run.items, task)
    if run.items is None and run.prompts is not None:
        for row in run.prompts.select(["item_id", "text"]).to_pylist():
            texts.setdefault(row["item_id"], {"prompt": row["text"]})
    return texts


def _of_table(
    records: list[Mapping[str, Any]], table: VerdictTable, columns: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """The file's rows that the table has, in its order; a judge's rows may be some of them."""
    if len(records) == len(table):
        return records
    by_item = {str(values.get(columns["item_id"])): values for values in reversed(records)}
    return [by_item.get(item, {}) for item in table.column("item_id")]


def _items_alone(
    source: Path, blocks: Sequence[Any], id_column: str, labels: tuple[str, ...]
) -> VerdictTable:
    """A table of items without verdicts: each is as doubtful as any other."""
    ids: list[Any] = []
    for rows in blocks:
        known = rows.columns.get(id_column)
        ids += known if known is not None else range(len(ids) + 1, len(ids) + len(rows) + 1)
    items = list(map(str, ids))
    if len(set(items)) < len(items):
        raise JudgeSenseError(f"{source}: an id in {id_column!r} repeats; keep one row per id")
    n = len(items)
    columns: dict[str, list[Any]] = {name: [None] * n for name in SCHEMA.names}
    columns |= {
        "item_id": items,
        "cluster_id": items,
        "verdict": ["UNCLEAR"] * n,
        "repeat": [0] * n,
    }
    return VerdictTable(pa.table(columns, schema=SCHEMA), labels, str(source), stated=True)
