"""A dataset's rows for an audit: what the file says, kept apart from what is derived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.tasks import dump_label_map, is_scale, load_label_map
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.folder import is_hub_folder
from judgesense_dataset.load import data_files, jsonl_pairs, load_pairs, locate
from judgesense_dataset.polarity import INVERTED, cue, inverted_map
from judgesense_dataset.recognition import OPTIONS, known_tasks, recognise, wording_of
from judgesense_dataset.verdicts import VerdictFile, read_verdicts, verdict_column

LabelMap = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditPrompt:
    """One prompt of a pair.

    ``recorded`` is the file's label map, if any; ``map`` is that or else the known template's;
    ``truth`` is the meaning of the wording, whatever the file says, and ``asks`` its cue.
    """

    text: str
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
    """One pair, as a row of the dataset.

    ``texts`` are the judged texts: two options as shown, one text, or none. ``systems`` wrote them,
    in the same order.
    """

    number: int
    pair_id: str
    a: AuditPrompt
    b: AuditPrompt
    order: str
    gold: str | None
    item_id: str
    cluster_id: str
    texts: tuple[str, ...]
    fields: Mapping[str, str]
    license: str
    valid: bool | None
    systems: tuple[str, ...]
    source: str
    revision: str

    @property
    def prompts(self) -> tuple[AuditPrompt, AuditPrompt]:
        """Both prompts."""
        return self.a, self.b


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task, its labels, the rows left out, and the verdict files beside it.

    ``verdicts`` has those on the task's pairs, by file.
    """

    name: str
    labels: tuple[str, ...]
    comparative: bool
    rows: tuple[AuditRow, ...]
    left_out: tuple[AuditRow, ...]
    verdicts: Mapping[str, Mapping[str, bool | None]]
    raters: Mapping[str, str]

    @cached_property
    def distinct(self) -> Sequence[AuditRow]:
        """The first row of every pair of prompts, in either order."""
        first: dict[frozenset[str], AuditRow] = {}
        for row in self.rows:
            first.setdefault(frozenset((row.a.text, row.b.text)), row)
        return list(first.values())

    @cached_property
    def one_row_an_item(self) -> Sequence[AuditRow]:
        """The first row of every item."""
        first: dict[str, AuditRow] = {}
        for row in self.rows:
            first.setdefault(row.item_id, row)
        return list(first.values())

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """By item, its first twin; see `content_roots`."""
        return content_roots(self.rows)


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
        fields = tuple(sorted(row.fields.values()))
        for key in (row.a.text, row.b.text, fields):
            if key and (first := owner.setdefault(key, row.item_id)) != row.item_id:
                home[root(row.item_id)] = root(first)
    return {item: root(item) for item in home}


def read_audit_rows(
    dataset: str | Path | None, revision: str | None = None, exclude: Collection[str] = ()
) -> dict[str, TaskRows]:
    """The rows of every task of a Hub dataset, a folder, or the embedded benchmark.

    ``exclude`` are ids of pairs to leave out. Raises JudgeSenseError for unreadable input, naming
    file and row, and for an excluded id that does not exist.
    """
    rows, files = _rows_and_verdicts(dataset, revision)
    if unknown := set(exclude) - {str(row["pair_id"]) for row in rows}:
        raise JudgeSenseError(f"--exclude {min(unknown)}: the dataset has no such pair")
    by_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_task[row["task_type"]].append(row)
    return {
        name: _task_rows(name, of_task, files, frozenset(exclude))
        for name, of_task in by_task.items()
    }


def _rows_and_verdicts(
    dataset: str | Path | None, revision: str | None
) -> tuple[list[dict[str, Any]], dict[str, VerdictFile]]:
    """The completed rows with the label maps that the file records, and the verdict files."""
    if dataset is not None and str(dataset) not in EMBEDDED_SETS:
        folder = locate(dataset, revision).folder
        if not is_hub_folder(folder):
            pairs = list(jsonl_pairs(folder))
            firsts = {path: next(read_table(path)).values for path in data_files(folder)}
            files = {
                path.name: read_verdicts(path)
                for path, first in firsts.items()
                if verdict_column(first) and "prompt_a" not in first
            }
            return [{**row, **_recorded(recorded)} for recorded, row in pairs], files
    rows = load_pairs(dataset, revision).to_pylist()
    return [{**row, **_recorded(row)} for row in rows], {}


def _recorded(row: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded label maps as text; a file may hold a JSON object or a JSON string."""
    maps = {f"recorded_{letter}": row.get(f"label_map_{letter}") for letter in "ab"}
    return {k: dump_label_map(v) if isinstance(v, dict) else v for k, v in maps.items()}


def _task_rows(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    files: Mapping[str, VerdictFile],
    exclude: frozenset[str],
) -> TaskRows:
    labels, comparative = _labels(name, rows)
    # The pairs of an item lie together in most files.
    known = lru_cache(maxsize=4096)(lambda prompt: recognise(name, prompt))
    prompts: dict[tuple[str, ...], AuditPrompt] = {}
    kept: list[AuditRow] = []
    left_out: list[AuditRow] = []
    for number, row in enumerate(rows, 1):
        pair = [_prompt(row, letter, labels, known, prompts) for letter in "ab"]
        match = known(row["prompt_a"]) or known(row["prompt_b"])
        item = str(row["item_id"] or f"row-{number}")
        judged = row["response_being_judged"] or ""
        options = OPTIONS.match(judged)
        systems = tuple(row["system_id"].split("|")) if row["system_id"] else ()
        one = AuditRow(
            number=number,
            pair_id=str(row["pair_id"]),
            a=pair[0],
            b=pair[1],
            order=str(row["order"]),
            gold=row["ground_truth_label"],
            item_id=item,
            cluster_id=str(row["cluster_id"] or item),
            texts=tuple(
                text.strip()
                for text in (options.groups() if options else (judged,))
                if text.strip()
            ),
            fields=match[1] if match else {},
            license=row["license"] or "",
            valid=row["valid"],
            systems=systems[::-1] if row["order"] == "BA" else systems,
            source=row["source_benchmark"] or "",
            revision=row["source_revision"] or "",
        )
        (left_out if one.pair_id in exclude else kept).append(one)
    if not kept:
        raise JudgeSenseError(f"task {name!r}: --exclude leaves no row")
    ids = {str(row["pair_id"]) for row in rows}
    verdicts = {
        file: {pair: verdict for pair, verdict in one.verdicts.items() if pair in ids}
        for file, one in files.items()
    }
    verdicts = {file: on_task for file, on_task in verdicts.items() if on_task}
    raters = {file: ", ".join(sorted(files[file].raters)) for file in verdicts}
    raters = {file: names for file, names in raters.items() if names}
    return TaskRows(name, labels, comparative, tuple(kept), tuple(left_out), verdicts, raters)


def _labels(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], bool]:
    """The decision space, and whether two options are compared: the known task's, else from the
    label maps or the gold labels.
    """
    if name in known_tasks():
        task = known_tasks()[name].task
        return task.labels, task.comparative
    seen: dict[str, None] = {}
    for row in rows:
        for letter in "ab":
            if row[f"label_map_{letter}"]:
                seen.update(dict.fromkeys(_label_map(row, f"label_map_{letter}").values()))
    if not seen:
        golds = (row["ground_truth_label"] for row in rows)
        seen = dict.fromkeys(gold for gold in golds if gold is not None)
    labels = tuple(sorted(seen, key=int) if is_scale(seen) else sorted(seen))
    if set(labels) == {"NO", "YES"}:
        labels = ("YES", "NO")
    return labels, set(labels) == {"A", "B"}


def _prompt(
    row: Mapping[str, Any],
    letter: str,
    labels: tuple[str, ...],
    known: Callable[[str], Any],
    prompts: dict[tuple[str, ...], AuditPrompt],
) -> AuditPrompt:
    """A prompt of a row; equal ones are the same object of ``prompts``."""
    text = row[f"prompt_{letter}"]
    wording = row[f"template_{letter}"] or text.split("\n", 1)[0]
    key = (text, wording, row[f"recorded_{letter}"] or "")
    if key in prompts:
        return prompts[key]
    recorded = _label_map(row, f"recorded_{letter}") if key[2] else None
    same = {label: label for label in labels}
    match, asks = known(text), None
    if match is not None:
        truth = match[0].label_map
    else:
        asks = cue(wording_of(text, row["response_being_judged"]), labels) if labels else None
        truth = inverted_map(labels) if asks == INVERTED else same
        if asks is None and recorded is not None:
            truth = recorded
    # Without label maps, a dataset is measured with the known templates' maps or unmapped.
    applied = recorded or (same if match is None else truth)
    prompts[key] = AuditPrompt(text, wording, match is not None, recorded, applied, truth, asks)
    return prompts[key]


def _label_map(row: Mapping[str, Any], column: str) -> LabelMap:
    try:
        return load_label_map(row[column])
    except ValueError as error:
        raise JudgeSenseError(
            f"pair {row['pair_id']!r} of task {row['task_type']!r}, column "
            f"{column.replace('recorded', 'label_map')}: must be a JSON object from raw answers to "
            f"labels, got {row[column]!r}"
        ) from error
