"""What people label next, blind, and the file that their labels are in: ``judgesense label``.

The order is drawn once from the verdicts (`judgesense.comparison.outputs.pick`): doubtful items
come more often, each with a known probability. Everyone gets the same order, so that two people's
labels can be compared. Nobody sees verdicts, reasons, or other people's labels.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from judgesense.comparison.outputs import ALL, outputs_of, pick, strata_of
from judgesense.comparison.verdicts import Verdicts, read_verdicts, verdicts_in
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, replacing
from judgesense.files.tables import SUFFIXES, csv_text, read_table, read_table_rows
from judgesense.files.typed_rows import SomeId, typed_rows
from judgesense.importers.column_names import ROLES, Columns, columns_of, header_key
from judgesense.importers.columns import ROW
from judgesense.importers.label_files import LabelRow
from judgesense.importers.reading import understand
from judgesense.importers.recognise import require_columns
from judgesense.importers.verdict_table import columns_by_name, import_table
from judgesense.importers.who import tokens
from judgesense.log.folder import Run, read_run
from judgesense.log.record import now
from judgesense.measure.texts import wording_texts
from judgesense.measure.words import columns_of_items
from judgesense.pipeline.verdict_files import SCHEMA
from judgesense.tasks import UNCLEAR

MOST_LABELS = 10
"""One for each key with a digit."""

LONGEST_NAME, LONGEST_COMMENT = 40, 4000

_AT_ONCE = 20
"""The fewest items drawn and shuffled together, so that their order hides the strata."""

_HIDDEN = re.compile(r"(system|model|generator)(_?[a-z0-9])?|score|metadata")
"""Names of columns that say who wrote an answer or what a grader made of it."""
_OF_VERDICTS = frozenset(
    ["judge", "grader", "autorater", "evaluator", "verdict", "critique", "grade", "label", "gold"]
)
"""In a column's name: it may tell what a judge or a person said of the answer."""


def _is_hidden(name: str) -> bool:
    """Whether a column may tell a verdict: one of a judge or of a person, or one with reasons."""
    key = header_key(name)
    is_told = key in ROLES["raw_text"].split() or {*tokens(name)} & _OF_VERDICTS
    return bool(is_told) or _HIDDEN.fullmatch(key) is not None


GOALS = (20, 15, 10, 8, 5, 3, 2, 1)
"""Half-widths of a 95% interval, in points, that a person who labels can aim at."""

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


@dataclass(frozen=True)
class _Row:
    """One person's label of an output, if any, and the comment."""

    label: str | None = None
    comment: str = ""
    labelled_at: str = ""


class Labelling:
    """The items to label, in their order, and the labels given so far; safe between threads.

    ``verdicts`` are those on the items (UNCLEAR for items alone) and ``texts`` the columns of each
    row. ``show`` names the columns to show, by default all but those that name systems. Labels are
    added to a file ``out`` that exists. ``rubric`` is what the page shows beside every item. Raises
    JudgeSenseError for more labels than keys, and for a file with labels of other items.
    """

    def __init__(
        self,
        verdicts: Verdicts,
        labels: Sequence[str],
        out: Path,
        *,
        texts: Sequence[Mapping[str, Any]],
        show: Sequence[str] = (),
        seed: int = 0,
        limit: int | None = None,
        rubric: str = "",
    ) -> None:
        if not 1 < len(labels) <= MOST_LABELS:
            raise JudgeSenseError(
                f"{verdicts.source}: {len(labels)} labels, such as {', '.join(labels[:3])}; choose "
                f"2 to {MOST_LABELS} with --answers A,B"
            )
        self.labels, self.out, self.source = tuple(labels), out, verdicts.source
        self.rubric, self.positive = rubric, None
        try:
            outputs = outputs_of(verdicts)
        except JudgeSenseError:
            # Of labels of which none is known to be good, the first counts as good.
            self.positive = verdicts.labels[0]
            outputs = outputs_of(verdicts, self.positive)
        self._outputs = outputs
        self._texts = [
            {
                name: str(text)
                for name, text in texts[row].items()
                if (name in show if show else not _is_hidden(name))
            }
            for row in outputs.rows
        ]
        is_judged = not np.isnan(outputs.means).all()
        self._strata = strata_of(outputs).astype(str) if is_judged else np.full(len(outputs), "")
        self.total = min(limit or len(outputs), len(outputs))
        self._seed, self._order = seed, list[int]()
        self._drawn = np.full(len(outputs), np.nan)
        self._rows: dict[tuple[str, int], _Row] = {}
        self._lock = RLock()
        self.names: dict[str, None] = {}
        """Everyone who labels now."""
        self._read()

    def state(self, name: str, at: int | None = None) -> dict[str, Any]:
        """What a person sees: the item at a place of the order, by default the next to label."""
        with self._lock:
            self.names[name] = None
            done = min(self.total, self.counts().get(name, 0))
            goal = goal_after(done, self.total, len(self._outputs))
            if at is None and done < self.total:
                labelled = {
                    output for (who, output), row in self._rows.items() if who == name and row.label
                }
                at = next((p for p in range(self.total) if self._output(p) not in labelled), None)
            if at is None or not 0 <= at < self.total:
                return {"done": done, "total": self.total, "at": None, "item": None, "goal": goal}
            row = self._rows.get((name, self._output(at)), _Row())
            return {
                "done": done,
                "total": self.total,
                "at": at,
                "item": self._texts[self._output(at)],
                "label": row.label,
                "comment": row.comment,
                "goal": goal,
            }

    def put(self, name: str, at: int, label: str | None, comment: str) -> None:
        """Save a person's label and comment; when this returns, they are on disk.

        Raises OSError if they cannot be written; they are not kept then.
        """
        with self._lock:
            rows, key = dict(self._rows), (name, self._output(at))
            # The last one given is the last row, which undo takes away.
            old = rows.pop(key, _Row())
            rows[key] = _Row(old.label if label is None else label, comment, now())
            self._save(rows)

    def undo(self, name: str) -> int | None:
        """Take away a person's last label; returns its place in the order, None without one."""
        with self._lock:
            keys = [key for key, row in self._rows.items() if key[0] == name and row.label]
            if not keys:
                return None
            self._save({**self._rows, keys[-1]: replace(self._rows[keys[-1]], label=None)})
            return next((p for p in range(self.total) if self._output(p) == keys[-1][1]), None)

    def is_finished(self) -> bool:
        """Whether everyone who labels now has labelled all items."""
        with self._lock:
            counts = self.counts()
            return bool(self.names) and all(counts.get(n, 0) >= self.total for n in self.names)

    def counts(self) -> dict[str, int]:
        """The number of labels of each person in the file."""
        counts: dict[str, int] = {}
        for (name, _), row in self._rows.items():
            counts[name] = counts.get(name, 0) + bool(row.label)
        return counts

    def _output(self, place: int) -> int:
        """The output at a place of the order, which is drawn as far as it is needed."""
        while len(self._order) <= place:
            systems = range(len(self._outputs.systems))
            size, seed = max(_AT_ONCE, len(self._order) // 4), self._seed + len(self._order)
            drawn, *_ = pick(self._outputs, self._drawn, systems, size, seed)
            self._drawn[drawn] = 0.0
            self._order += drawn.tolist()
        return self._order[place]

    def _id(self, output: int) -> tuple[str, str]:
        outputs = self._outputs
        system = outputs.systems[outputs.system[output]]
        if outputs.flipped[output]:
            system = "|".join(reversed(system.split("|")))
        return str(outputs.items[output]), "" if outputs.systems == (ALL,) else system

    def _read(self) -> None:
        if not self.out.exists():
            return
        outputs = {self._id(output): output for output in range(len(self._outputs))}
        for row, record in typed_rows(self.out, LabelFileRow, {}, "--columns"):
            output = outputs.get((row.item_id, row.system_id or ""))
            if output is None or (row.stratum or "") != self._strata[output]:
                raise JudgeSenseError(
                    f"{record.place}: item {row.item_id!r} is not in {self.source}, or its "
                    "verdicts have changed; name another file with --out"
                )
            key = row.rater or "", output
            self._rows[key] = _Row(row.label, row.comment or "", row.labelled_at or "")

    def _save(self, rows: dict[tuple[str, int], _Row]) -> None:
        labelled = {output for (_, output), row in rows.items() if row.label}
        n_labelled = Counter(self._strata[output] for output in labelled)
        sizes = Counter(self._strata.tolist())
        lines = []
        for (name, output), row in rows.items():
            stratum = self._strata[output]
            share = round(n_labelled[stratum] / sizes[stratum], 6) if row.label else ""
            cells = [
                *self._id(output),
                row.label or "",
                name,
                stratum,
                share,
                row.comment,
                row.labelled_at,
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


def goal_after(done: int, most: int, population: int) -> tuple[int, int] | None:
    """How many more labels give the next of `GOALS`, and which; None if ``most`` gives no other.

    For a share near one half of ``population`` outputs; nearer to 0 or 1 fewer would do.

    >>> goal_after(57, 200, 10_000), goal_after(0, 60, 60), goal_after(12, 12, 12)
    ((39, 10), (18, 20), None)
    """
    for points in GOALS:
        n = (0.98 / (points / 100)) ** 2
        needed = math.ceil(n / (1 + (n - 1) / population))
        if done < needed <= most:
            return needed - done, points
    return None


def open_labelling(
    source: Path,
    out: Path | None = None,
    *,
    verdict: str | None = None,
    answers: Sequence[str] | None = None,
    show: Sequence[str] = (),
    judge: str | None = None,
    task: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    rubric: Path | None = None,
) -> tuple[Labelling, dict[str, str]]:
    """The items to label in a table of verdicts, a table of items (with ``answers``), or a run's
    folder; and the columns under which ``estimate`` reads the file.

    The labels go to ``out``: by default ``SOURCE.labels.csv``, or ``labels.csv`` in the folder. The
    column ``verdict`` picks the items. The page shows the text of ``rubric``, by default the first
    wording of a run. Raises JudgeSenseError as `read_verdicts`, without labels to
    choose from, and for a file of labels of other items.
    """
    labels: Sequence[str]
    columns: dict[str, str] = {}
    asked = "" if rubric is None else read_text(rubric).strip()
    if source.is_dir():
        verdicts = read_verdicts(source, judge=judge, task=task)
        run = read_run(source)
        of_item = _texts_of(run, verdicts.task)
        asked = asked or next(
            iter(wording_texts(run.record, run.prompts).get(verdicts.task, {}).values()), ""
        )
        texts = [of_item.get(item, {}) for item in verdicts.item]
        labels = verdicts.labels
        target = source / "labels.csv"
    elif source.suffix.lower() in SUFFIXES:
        verdicts, texts, labels, columns = _of_table(source, verdict, answers, show, judge, task)
        target = source.with_name(f"{source.stem}.labels.csv")
    else:
        raise JudgeSenseError(
            f"{source}: label reads tables ({', '.join(SUFFIXES)}) and folders of runs. For a log "
            f"of another tool: judgesense check {source} --out DIR, then judgesense label DIR"
        )
    labelling = Labelling(
        verdicts,
        answers or labels,
        out or target,
        texts=texts,
        show=show,
        seed=seed,
        limit=limit,
        rubric=asked,
    )
    return labelling, columns


def _texts_of(run: Run, task: str) -> dict[str, dict[str, Any]]:
    """What a run has on each item: the other columns of an imported file, or its first prompt."""
    texts: dict[str, dict[str, Any]] = dict(columns_of_items(run.items, task))
    if run.items is None and run.prompts is not None:
        for row in run.prompts.select(["item_id", "text"]).to_pylist():
            texts.setdefault(row["item_id"], {"prompt": row["text"]})
    return texts


def _of_table(
    source: Path,
    verdict: str | None,
    answers: Sequence[str] | None,
    show: Sequence[str],
    judge: str | None,
    task: str | None,
) -> tuple[Verdicts, list[dict[str, Any]], Sequence[str], dict[str, str]]:
    """A table's verdicts, what to show beside each, the labels to choose from, and the columns
    under which ``estimate`` reads the table."""
    held, _ = columns_of(read_table_rows(source))
    try:
        understood = understand(lambda: read_table_rows(source), str(source), labels=answers)
        roles, people = dict(understood.columns), understood.people
        labels = understood.labels or ()
    except JudgeSenseError:
        if answers is None:
            raise
        ids = next((name for name in ("item_id", "id") if name in held), ROW)
        roles, people, labels = {"item_id": ids}, (), tuple(answers)
    require_columns(held, str(source), [verdict] if verdict else [], "--verdict")
    require_columns(held, str(source), show, "--show")
    judged = roles["raw_decision"].split(",") if "raw_decision" in roles else []
    columns = columns_by_name(roles)
    if verdict or judged:
        if (named := verdict or judged[0]) in held:
            columns["verdict"] = named
        if len(judged) > 1:
            columns.pop("judge", None)
        verdicts = read_verdicts(source, judge=judge, task=task, columns=columns)
    else:
        verdicts = _items_alone(source, held, columns["item_id"], labels)
    hidden = {*judged, *people, *roles.get("raw_text", "").split(","), *SCHEMA.names}
    hidden |= {*columns.values()}
    vocabulary = {word.casefold() for word in (*verdicts.labels, *labels)}
    hidden |= {
        name for name, column in held.items() if column.labels and {*column.words} <= vocabulary
    }
    names = {*show} or held.keys() - hidden
    records = [record.values for record in read_table(source)]
    if len(records) != len(verdicts):
        # A judge's rows may be some of the file's.
        of_item = {str(values.get(columns["item_id"])): values for values in reversed(records)}
        records = [of_item.get(item, {}) for item in verdicts.item]
    texts = [
        {name: value for name, value in values.items() if name in names and value not in (None, "")}
        for values in records
    ]
    choices = verdicts.labels if len(verdicts.labels) <= MOST_LABELS else labels
    return verdicts, texts, choices or verdicts.labels, columns


def _items_alone(source: Path, held: Columns, ids: str, labels: tuple[str, ...]) -> Verdicts:
    """A table of items without verdicts: each is as doubtful as any other."""
    if ids != ROW and not held[ids].unique:
        raise JudgeSenseError(f"{source}: {ids!r} repeats an id or lacks one; keep one row per id")
    roles = {
        "item_id": ids,
        "raw_decision": f":{UNCLEAR}",
        "judge": ":none",
        "task": ":items",
        "template_id": ":none",
    }
    verdicts = verdicts_in(import_table(source, roles, labels), source, None, None)
    return replace(verdicts, labels=labels, is_stated=True)
