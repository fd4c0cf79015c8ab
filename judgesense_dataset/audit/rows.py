"""A dataset's rows for an audit: what the file says, kept apart from what is derived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.tasks import dump_label_map, is_scale, load_label_map
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.folder import is_hub_folder
from judgesense_dataset.load import data_files, jsonl_pairs, load_pairs, locate
from judgesense_dataset.polarity import INVERTED, cue, inverted_map
from judgesense_dataset.recognition import OPTIONS, known_tasks, recognise, wording_of
from judgesense_dataset.verdicts import read_verdicts, verdict_column

LabelMap = Mapping[str, str]
_Known = tuple[LabelMap, Mapping[str, str]]
_Rows = Iterable[Mapping[str, Any]]
_NEARBY = 4096
"""What is remembered of the last texts: the pairs of an item lie together in most files."""


@dataclass(frozen=True, slots=True)
class PromptSide:
    """One prompt of a pair.

    ``recorded`` is the file's label map, if any; ``map`` is that or else the known template's;
    ``truth`` is the meaning of the wording, whatever the file says.
    """

    prompt: str
    wording: str
    known: bool
    recorded: LabelMap | None
    map: LabelMap
    truth: LabelMap
    asks: str | None

    def answer(self, label: str) -> str:
        """The raw answer that means ``label`` under this wording."""
        return next((raw for raw, meant in self.truth.items() if meant == label), label)

    def decision(self, raw: str) -> str:
        """The raw answer mapped through the file's label map."""
        return self.map.get(raw, raw)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One pair, as a row of the dataset."""

    number: int
    pair_id: str
    a: PromptSide
    b: PromptSide
    order: str
    gold: str | None
    item_id: str
    cluster_id: str
    judged: str | None
    fields: Mapping[str, str]
    license: str
    valid: bool | None
    by_system: bool
    systems: tuple[str, ...] = ()
    source: str = ""
    revision: str = ""

    @property
    def sides(self) -> tuple[PromptSide, PromptSide]:
        """Both prompts."""
        return self.a, self.b

    @property
    def options(self) -> tuple[str, str] | None:
        """The two options as shown, of a comparative task."""
        return _options(self.judged or "")


@lru_cache(maxsize=_NEARBY)
def _options(judged: str) -> tuple[str, str] | None:
    found = OPTIONS.match(judged)
    return (found.group(1), found.group(2)) if found else None


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task, its labels, and the verdict files beside it.

    ``raters`` names the people behind the verdicts, by file, joined where a file has several.
    """

    name: str
    labels: tuple[str, ...]
    comparative: bool
    rows: tuple[AuditRow, ...]
    verdicts: Mapping[str, Mapping[str, bool | None]] = field(default_factory=dict)
    left_out: tuple[AuditRow, ...] = ()
    raters: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def distinct(self) -> Sequence[AuditRow]:
        """The first row of every pair of prompts, in either order."""
        return distinct_pairs(self.rows)

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """By item, its first twin; see `content_roots`."""
        return content_roots(self.rows)

    @cached_property
    def wordings(self) -> frozenset[str]:
        """The wordings of all prompts."""
        return frozenset(side.wording for row in self.rows for side in row.sides)


class TableRows:
    """The rows of a table of pairs as mappings, made one at a time; equal texts are one object."""

    def __init__(self, table: pa.Table) -> None:
        self._columns: dict[str, list[Any]] = {}
        for name in table.column_names:
            self._columns[name] = _values(table[name])
            table = table.drop_columns([name])
        for side in "ab":
            self._columns[f"recorded_{side}"] = self._columns[f"label_map_{side}"]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        names = tuple(self._columns)
        for values in zip(*self._columns.values(), strict=True):
            yield dict(zip(names, values, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_string(column.type):
        found: list[Any] = column.to_pylist()
        return found
    found = []
    for chunk in column.dictionary_encode().unify_dictionaries().chunks:
        if not found:
            known = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
        found += known[chunk.indices.fill_null(len(known) - 1).to_numpy()].tolist()
    return found


def read_audit_rows(
    dataset: str | Path | None, revision: str | None = None, exclude: Collection[str] = ()
) -> dict[str, TaskRows]:
    """The rows of every task of a Hub dataset, a folder, or the embedded benchmark.

    ``exclude`` are ids of pairs to leave out. Raises JudgeSenseError for unreadable input, naming
    file and row, and for an excluded id that does not exist.
    """
    by_task, verdicts, raters = _rows_and_verdicts(dataset, revision)
    if exclude:
        known = {str(row["pair_id"]) for rows in by_task.values() for row in rows}
        if unknown := [pair for pair in exclude if pair not in known]:
            raise JudgeSenseError(f"--exclude {unknown[0]}: the dataset has no such pair")
    return {
        name: _task_rows(name, by_task.pop(name), verdicts, frozenset(exclude), raters)
        for name in list(by_task)
    }


def _rows_and_verdicts(
    dataset: str | Path | None, revision: str | None
) -> tuple[dict[str, _Rows], dict[str, dict[str, bool | None]], dict[str, str]]:
    """The completed rows by task, with recorded label maps; the verdict files; their raters."""
    if dataset is not None and str(dataset) not in EMBEDDED_SETS:
        folder = locate(dataset, revision).folder
        if not is_hub_folder(folder):
            by_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
            for own, row in jsonl_pairs(folder):
                recorded = {f"recorded_{side}": _as_text(own, side) for side in "ab"}
                by_task[row["task_type"]].append({**row, **recorded})
            files = {path.name: read_verdicts(path) for path in _verdict_files(folder)}
            raters = {name: ", ".join(sorted(one.raters)) for name, one in files.items()}
            verdicts = {name: one.verdicts for name, one in files.items()}
            return dict(by_task), verdicts, {name: who for name, who in raters.items() if who}
    table = load_pairs(dataset, revision)
    names = table["task_type"].unique().to_pylist()
    if len(names) == 1:
        return {names[0]: TableRows(table)}, {}, {}
    tasks = {name: table.filter(pc.equal(table["task_type"], name)) for name in names}
    return {name: TableRows(tasks.pop(name)) for name in names}, {}, {}


def _verdict_files(folder: Path) -> list[Path]:
    firsts = {path: next(read_table(path)).values for path in data_files(folder)}
    return [path for path, row in firsts.items() if verdict_column(row) and "prompt_a" not in row]


def _as_text(row: Mapping[str, Any], side: str) -> str | None:
    """The recorded label map as text; the file may hold a JSON object or a JSON string."""
    given = row.get(f"label_map_{side}")
    return dump_label_map(given) if isinstance(given, dict) else given


def _of_task(
    verdicts: Mapping[str, Mapping[str, bool | None]], rows: _Rows
) -> dict[str, dict[str, bool | None]]:
    """The verdicts on these rows' pairs, by file."""
    ids = [str(row["pair_id"]) for row in rows] if verdicts else []
    found = {name: {i: said[i] for i in ids if i in said} for name, said in verdicts.items()}
    return {name: said for name, said in found.items() if said}


def _task_rows(
    name: str,
    rows: _Rows,
    verdicts: Mapping[str, Mapping[str, bool | None]],
    exclude: frozenset[str],
    raters: Mapping[str, str],
) -> TaskRows:
    labels, comparative = _labels(name, rows)
    verdicts = _of_task(verdicts, rows)
    known = _recogniser(name)
    kept: list[AuditRow] = []
    left_out: list[AuditRow] = []
    sides: dict[tuple[str, str, str | None], PromptSide] = {}
    for number, row in enumerate(rows, 1):
        found = known(row["prompt_a"]) or known(row["prompt_b"])
        pair = []
        for letter in "ab":
            prompt = row[f"prompt_{letter}"]
            wording = row[f"template_{letter}"] or prompt.split("\n", 1)[0]
            key = (prompt, wording, row[f"recorded_{letter}"])
            if key not in sides:
                sides[key] = _side(known(prompt), labels, row, letter, wording)
            pair.append(sides[key])
        item = str(row["item_id"] or f"row-{number}")
        read = AuditRow(
            number=number,
            pair_id=str(row["pair_id"]),
            a=pair[0],
            b=pair[1],
            order=str(row["order"]),
            gold=row["ground_truth_label"],
            item_id=item,
            cluster_id=str(row["cluster_id"] or item),
            judged=row["response_being_judged"],
            fields=found[1] if found else _NO_FIELDS,
            license=row["license"] or "",
            valid=row["valid"],
            by_system=bool(row["system_id"]),
            systems=_systems(row["system_id"] or "", str(row["order"])),
            source=row["source_benchmark"] or "",
            revision=row["source_revision"] or "",
        )
        (left_out if read.pair_id in exclude else kept).append(read)
    if not kept:
        raise JudgeSenseError(f"task {name!r}: --exclude leaves no row")
    said_by = {file: rater for file, rater in raters.items() if file in verdicts}
    return TaskRows(name, labels, comparative, tuple(kept), verdicts, tuple(left_out), said_by)


_NO_FIELDS: Mapping[str, str] = {}


def _recogniser(task: str) -> Callable[[str], _Known | None]:
    """From a prompt to the label map of the known template it is of, and the item's fields."""
    maps: dict[int, LabelMap] = {}

    @lru_cache(maxsize=_NEARBY)
    def known(prompt: str) -> _Known | None:
        if (found := recognise(task, prompt)) is None:
            return None
        template, fields = found
        return maps.setdefault(id(template), dict(template.label_map)), fields

    return known


def _systems(names: str, order: str) -> tuple[str, ...]:
    """The systems that wrote the judged texts, in the order shown."""
    systems = tuple(names.split("|")) if names else ()
    return systems[::-1] if order == "BA" else systems


def _labels(name: str, rows: _Rows) -> tuple[tuple[str, ...], bool]:
    """The decision space: the known task's, else that of the label maps or the gold labels."""
    if name in known_tasks():
        task = known_tasks()[name].task
        return task.labels, task.comparative
    seen: dict[str, None] = {}
    for row in rows:
        for letter in "ab":
            if row[f"label_map_{letter}"]:
                seen.update(dict.fromkeys(_parsed(row, letter).values()))
    if not seen:
        seen = dict.fromkeys(
            row["ground_truth_label"] for row in rows if row["ground_truth_label"] is not None
        )
    labels = tuple(sorted(seen, key=int) if is_scale(seen) else sorted(seen))
    if set(labels) == {"NO", "YES"}:
        labels = ("YES", "NO")
    return labels, set(labels) == {"A", "B"}


def _side(
    found: _Known | None,
    labels: tuple[str, ...],
    row: Mapping[str, Any],
    letter: str,
    wording: str,
) -> PromptSide:
    prompt = row[f"prompt_{letter}"]
    recorded = row[f"recorded_{letter}"]
    stated = _parsed(row, letter) if recorded else None
    truth = found[0] if found else None
    known, asks = truth is not None, None
    if truth is None:
        asks = cue(wording_of(prompt, row["response_being_judged"]), labels) if labels else None
        truth = inverted_map(labels) if asks == INVERTED else {x: x for x in labels}
        if asks is None and stated is not None:
            truth = stated
    # Without label maps, a dataset is measured with the known templates' maps or unmapped.
    applied = stated or (truth if known else {label: label for label in labels})
    return PromptSide(prompt, wording, known, stated, applied, truth, asks)


def _parsed(row: Mapping[str, Any], letter: str) -> LabelMap:
    text = row[f"label_map_{letter}"]
    try:
        return load_label_map(text)
    except ValueError as error:
        raise JudgeSenseError(
            f"pair {row['pair_id']!r} of task {row['task_type']!r}, column label_map_{letter}: "
            f"must be a JSON object from raw answers to labels, got {text!r}"
        ) from error


def distinct_pairs(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """The first row of every pair of prompts, in either order."""
    seen: set[tuple[str, str]] = set()
    first = []
    for row in rows:
        a, b = row.a.prompt, row.b.prompt
        key = (a, b) if a < b else (b, a)
        if key not in seen:
            seen.add(key)
            first.append(row)
    return first


def content_roots(rows: Iterable[AuditRow]) -> dict[str, str]:
    """By item, its first twin: items that share a prompt or all fields are the same item."""
    home: dict[str, str] = {}

    def root(item: str) -> str:
        while home[item] != item:
            home[item] = home[home[item]]
            item = home[item]
        return item

    owner: dict[object, str] = {}
    for row in rows:
        home.setdefault(row.item_id, row.item_id)
        for key in _content_keys(row):
            if (first := owner.setdefault(key, row.item_id)) != row.item_id:
                home[root(row.item_id)] = root(first)
    return {item: root(item) for item in home}


def _content_keys(row: AuditRow) -> Iterator[object]:
    """Keys that identify an item: either prompt, or the fields in any order."""
    yield row.a.prompt
    yield row.b.prompt
    if row.fields:
        yield tuple(sorted(row.fields.values()))
