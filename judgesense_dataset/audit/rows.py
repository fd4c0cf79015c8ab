"""A dataset's rows as an audit reads them: what the file says, kept apart from what is derived."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import dump_label_map, is_scale, load_label_map
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.folder import is_hub_folder
from judgesense_dataset.items import read_rows
from judgesense_dataset.load import load_pairs, locate
from judgesense_dataset.polarity import INVERTED, cue, inverted_map, known_map
from judgesense_dataset.published import complete, known_tasks, recognise
from judgesense_dataset.verdicts import read_verdicts, verdict_column

_OPTIONS = re.compile(r"\AA: (.*?)(?: \| |\n)B: (.*)\Z", re.DOTALL)

LabelMap = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Side:
    """One prompt of a pair.

    ``recorded`` is the label map that the file gives, ``map`` that or else the known template's;
    ``truth`` is what the wording means, whatever the file says.
    """

    prompt: str
    wording: str
    known: bool
    recorded: LabelMap | None
    map: LabelMap
    truth: LabelMap
    asks: str | None

    def answer(self, label: str) -> str:
        """What one who thinks ``label`` says to this wording."""
        return next((raw for raw, meant in self.truth.items() if meant == label), label)

    def decision(self, raw: str) -> str:
        """What the raw answer becomes through the file's label map."""
        return self.map.get(raw, raw)


@dataclass(frozen=True, slots=True)
class Row:
    """One pair as a row of the set."""

    number: int
    pair_id: str
    a: Side
    b: Side
    order: str
    gold: str | None
    item_id: str
    cluster_id: str
    judged: str | None
    fields: Mapping[str, str]
    license: str
    valid: bool | None
    by_system: bool

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both prompts."""
        return self.a, self.b

    @property
    def options(self) -> tuple[str, str] | None:
        """The two options as shown, of a comparative task."""
        found = _OPTIONS.match(self.judged or "")
        return (found.group(1), found.group(2)) if found else None


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task, its labels, and the verdict files that lie beside it."""

    name: str
    labels: tuple[str, ...]
    comparative: bool
    rows: tuple[Row, ...]
    verdicts: Mapping[str, Mapping[str, bool | None]] = field(default_factory=dict)
    left_out: tuple[Row, ...] = ()


def read_audit_rows(
    dataset: str | Path | None, revision: str | None = None, exclude: Collection[str] = ()
) -> dict[str, TaskRows]:
    """The rows of every task of a Hub dataset, a folder, or the embedded benchmark.

    ``exclude`` are ids of pairs to leave out. Raises JudgeSenseError for what cannot be read,
    naming file and row, and for an excluded id that is not there.
    """
    full, verdicts = _rows_and_verdicts(dataset, revision)
    known = {str(row["pair_id"]) for row in full}
    if unknown := [pair for pair in exclude if pair not in known]:
        raise JudgeSenseError(f"--exclude names the pair {unknown[0]!r}, which is not in the set")
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in full:
        by_task[row["task_type"]].append(row)
    return {
        name: _task_rows(name, rows, _of_task(verdicts, rows), frozenset(exclude))
        for name, rows in by_task.items()
    }


def _rows_and_verdicts(
    dataset: str | Path | None, revision: str | None
) -> tuple[list[dict[str, Any]], dict[str, dict[str, bool | None]]]:
    if dataset is None or str(dataset) in EMBEDDED_SETS:
        return _recorded(load_pairs(dataset).to_pylist()), {}
    path = Path(dataset)
    if path.suffix == ".jsonl" and path.is_file():
        return _jsonl_rows([path])
    folder = locate(dataset, revision).folder
    if is_hub_folder(folder):
        return _recorded(load_pairs(dataset, revision).to_pylist()), {}
    return _jsonl_rows(sorted(folder.glob("*.jsonl")))


def _recorded(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**row, "recorded_a": row["label_map_a"], "recorded_b": row["label_map_b"]} for row in rows
    ]


def _jsonl_rows(
    paths: Sequence[Path],
) -> tuple[list[dict[str, Any]], dict[str, dict[str, bool | None]]]:
    rows: list[dict[str, Any]] = []
    verdicts: dict[str, dict[str, bool | None]] = {}
    for path in paths:
        numbered = list(read_rows(path))
        if any("prompt_a" in row or "prompt_b" in row for _, row in numbered):
            for (_, own), row in zip(
                numbered, complete(numbered, str(path), path.stem), strict=True
            ):
                recorded = {f"recorded_{side}": _as_text(own, side) for side in "ab"}
                rows.append({**row, **recorded})
        elif numbered and verdict_column(numbered[0][1]):
            verdicts[path.name] = read_verdicts(path)
    if not rows:
        raise JudgeSenseError(
            f"no row with prompt_a and prompt_b in {', '.join(str(path) for path in paths)}"
        )
    return rows, verdicts


def _as_text(row: Mapping[str, Any], side: str) -> str | None:
    """The recorded label map; a JSON object in the file is as good as a JSON string."""
    given = row.get(f"label_map_{side}")
    return dump_label_map(given) if isinstance(given, dict) else given


def _of_task(
    verdicts: Mapping[str, Mapping[str, bool | None]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, bool | None]]:
    """The verdicts on these rows' pairs, of the files that have any."""
    ids = [str(row["pair_id"]) for row in rows]
    found = {name: {i: said[i] for i in ids if i in said} for name, said in verdicts.items()}
    return {name: said for name, said in found.items() if said}


def _task_rows(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    verdicts: Mapping[str, Mapping[str, bool | None]],
    exclude: frozenset[str],
) -> TaskRows:
    labels, comparative = _labels(name, rows)
    wordings = _instructions(rows)
    kept: list[Row] = []
    left_out: list[Row] = []
    sides: dict[tuple[str, str, str | None], Side] = {}
    for number, row in enumerate(rows, 1):
        found = recognise(name, row["prompt_a"]) or recognise(name, row["prompt_b"])
        pair = []
        for letter in "ab":
            key = (row[f"prompt_{letter}"], wordings[number - 1, letter], row[f"recorded_{letter}"])
            if key not in sides:
                sides[key] = _side(name, labels, row, letter, key[1])
            pair.append(sides[key])
        item = str(row["item_id"] or f"row-{number}")
        read = Row(
            number=number,
            pair_id=str(row["pair_id"]),
            a=pair[0],
            b=pair[1],
            order=str(row["order"]),
            gold=row["ground_truth_label"],
            item_id=item,
            cluster_id=str(row["cluster_id"] or item),
            judged=row["response_being_judged"],
            fields=found[1] if found else {},
            license=row["license"] or "",
            valid=row["valid"],
            by_system=bool(row["system_id"]),
        )
        (left_out if read.pair_id in exclude else kept).append(read)
    if not kept:
        raise JudgeSenseError(f"task {name!r}: no row is left after --exclude")
    return TaskRows(name, labels, comparative, tuple(kept), verdicts, tuple(left_out))


def _labels(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], bool]:
    """The decision space: the known task's, else that of the label maps and the gold labels."""
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


def _instructions(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str], str]:
    """The name of the wording of each prompt: its template id, else its first line."""
    return {
        (at, letter): row[f"template_{letter}"] or row[f"prompt_{letter}"].split("\n", 1)[0]
        for at, row in enumerate(rows)
        for letter in "ab"
    }


def _side(
    task: str, labels: tuple[str, ...], row: Mapping[str, Any], letter: str, wording: str
) -> Side:
    prompt = row[f"prompt_{letter}"]
    recorded = row[f"recorded_{letter}"]
    stated = _parsed(row, letter) if recorded else None
    truth = known_map(task, prompt)
    known, asks = truth is not None, None
    if truth is None:
        asks = cue(wording_of(prompt, row["response_being_judged"]), labels) if labels else None
        truth = inverted_map(labels) if asks == INVERTED else {x: x for x in labels}
        if asks is None and stated is not None:
            truth = stated
    # A set without label maps is measured with the known templates' maps, else as it stands.
    applied = stated or (truth if known else {label: label for label in labels})
    return Side(prompt, wording, known, stated, applied, truth, asks)


def _parsed(row: Mapping[str, Any], letter: str) -> LabelMap:
    text = row[f"label_map_{letter}"]
    try:
        return load_label_map(text)
    except ValueError as error:
        raise JudgeSenseError(
            f"pair {row['pair_id']!r} of task {row['task_type']!r}, column label_map_{letter}: "
            f"must be a JSON object from raw answers to labels, got {text!r}"
        ) from error


def wording_of(prompt: str, judged: str | None) -> str:
    """The wording in a prompt of no known template: what stands before what is judged."""
    judged = judged or ""
    found = _OPTIONS.match(judged)
    start = prompt.find((found.group(1) if found else judged)[:200]) if judged else -1
    before = prompt[:start] if start > 0 else prompt
    return before.split("\n\n", 1)[0] or before


def distinct_pairs(rows: Iterable[Row]) -> list[Row]:
    """The first row of every pair of prompts, whichever of the two is called a."""
    seen: set[frozenset[str]] = set()
    first = []
    for row in rows:
        key = frozenset((row.a.prompt, row.b.prompt))
        if key not in seen:
            seen.add(key)
            first.append(row)
    return first


def content_roots(rows: Iterable[Row]) -> dict[str, str]:
    """Every item's first twin: items that show the same prompt or the same fields are the same."""
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
            home[root(row.item_id)] = root(owner.setdefault(key, row.item_id))
    return {item: root(item) for item in home}


def _content_keys(row: Row) -> Iterator[object]:
    """What makes two items the same: a prompt, or the fields shown in whatever order."""
    yield row.a.prompt
    yield row.b.prompt
    if row.fields:
        yield tuple(sorted(row.fields.values()))
