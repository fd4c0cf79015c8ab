"""A dataset's rows for an audit: what the file says, kept apart from what is derived."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import is_scale, load_label_map
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.folder import is_hub_folder
from judgesense_dataset.load import jsonl_pairs, load_pairs, locate
from judgesense_dataset.polarity import INVERTED, inverted_map, is_identity, polarity_cue
from judgesense_dataset.recognition import OPTIONS, known_tasks, recognise, wording_of

LabelMap = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditPrompt:
    """One prompt of a pair.

    ``recorded`` is the file's label map, if any; ``map`` is that or else the known template's;
    ``meaning`` is what the wording's answers mean, whatever the file says, None if that is open.
    """

    text: str
    wording: str
    recorded: LabelMap | None
    map: LabelMap
    meaning: LabelMap | None

    @property
    def misread(self) -> bool:
        """Whether the recorded label map, or its absence, contradicts the wording."""
        if self.meaning is None:
            return False
        recorded = dict(self.recorded or {})
        plain = is_identity(recorded) and is_identity(self.meaning)
        return recorded != dict(self.meaning) and not plain

    def answer(self, label: str) -> str:
        """The raw answer that means ``label`` under this wording."""
        meaning = self.meaning or self.map
        return next((raw for raw, meant in meaning.items() if meant == label), label)

    def decision(self, raw: str) -> str:
        """The raw answer mapped through the file's label map."""
        return self.map.get(raw, raw)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One pair, as a row of the dataset.

    ``texts`` are the judged texts: two options as shown, one text, or none; ``fields`` those of the
    item, empty if no wording is known.
    """

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
    source: str
    revision: str

    @property
    def prompts(self) -> tuple[AuditPrompt, AuditPrompt]:
        """Both prompts."""
        return self.a, self.b


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task and its labels."""

    labels: tuple[str, ...]
    comparative: bool
    rows: tuple[AuditRow, ...]

    @cached_property
    def distinct(self) -> Sequence[AuditRow]:
        """The first row of every pair of prompts, in either order."""
        first: dict[frozenset[str], AuditRow] = {}
        for row in self.rows:
            first.setdefault(frozenset((row.a.text, row.b.text)), row)
        return list(first.values())

    @cached_property
    def clusters(self) -> Mapping[str, str]:
        """The cluster of every item."""
        return {row.item_id: row.cluster_id for row in self.rows}

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """By item, an earlier item with the same prompt or the same fields."""
        owner: dict[object, str] = {}
        twins: dict[str, str] = {}
        for row in self.rows:
            for content in (row.a.text, row.b.text, tuple(sorted(row.fields.values()))):
                if content and (first := owner.setdefault(content, row.item_id)) != row.item_id:
                    twins.setdefault(row.item_id, first)
        return twins


def read_audit_rows(dataset: str | Path | None, revision: str | None = None) -> dict[str, TaskRows]:
    """The rows of every task of a Hub dataset, a folder, or the embedded benchmark.

    Raises JudgeSenseError for unreadable input, naming file and row.
    """
    folder = None
    if dataset is not None and str(dataset) not in EMBEDDED_SETS:
        folder = locate(dataset, revision).folder
    if folder is not None and not is_hub_folder(folder):
        pairs = list(jsonl_pairs(folder))
    else:
        pairs = [(row, row) for row in load_pairs(dataset, revision).to_pylist()]
    by_task: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = defaultdict(list)
    for recorded, row in pairs:
        by_task[row["task_type"]].append((recorded, row))
    return {name: _task_rows(name, of_task) for name, of_task in by_task.items()}


def _task_rows(name: str, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> TaskRows:
    """The rows of a task; each comes as the file has it, and completed."""
    if name in known_tasks():
        task = known_tasks()[name].task
        labels, comparative = task.labels, task.comparative
    else:
        labels = _labels([row for _, row in pairs])
        comparative = set(labels) == {"A", "B"}
    # The pairs of an item lie together in most files.
    recognised = lru_cache(maxsize=4096)(lambda prompt: recognise(name, prompt))
    prompts: dict[tuple[str, str, str], AuditPrompt] = {}
    rows = []
    for number, (recorded, row) in enumerate(pairs, 1):
        sides = []
        fields: dict[str, str] = {}
        for letter in "ab":
            text, map_column = row[f"prompt_{letter}"], f"label_map_{letter}"
            match = recognised(text)
            fields = fields or (match[1] if match else {})
            wording = row[f"template_{letter}"] or text.split("\n", 1)[0]
            key = (text, wording, str(recorded.get(map_column) or ""))
            if key not in prompts:
                prompts[key] = _prompt(
                    text,
                    wording,
                    _label_map(recorded, map_column) if key[2] else None,
                    labels,
                    match[0].label_map if match else None,
                    wording_of(text, row["response_being_judged"]),
                )
            sides.append(prompts[key])
        item, response = str(row["item_id"] or f"row-{number}"), row["response_being_judged"] or ""
        options = OPTIONS.match(response)
        texts = options.groups() if options else (response,)
        rows.append(
            AuditRow(
                pair_id=str(row["pair_id"]),
                a=sides[0],
                b=sides[1],
                order=str(row["order"]),
                gold=row["ground_truth_label"],
                item_id=item,
                cluster_id=str(row["cluster_id"] or item),
                texts=tuple(text.strip() for text in texts if text.strip()),
                fields=fields,
                license=row["license"] or "",
                source=row["source_benchmark"] or "",
                revision=row["source_revision"] or "",
            )
        )
    return TaskRows(labels, comparative, tuple(rows))


def _prompt(
    text: str,
    wording: str,
    recorded: LabelMap | None,
    labels: Sequence[str],
    template_map: LabelMap | None,
    instruction: str,
) -> AuditPrompt:
    identity_map, meaning = dict(zip(labels, labels, strict=True)), template_map
    if template_map is None and labels and (asks := polarity_cue(instruction, labels)):
        meaning = inverted_map(labels) if asks == INVERTED else identity_map
    # Without label maps, a dataset is measured with the known templates' maps or unmapped.
    return AuditPrompt(text, wording, recorded, recorded or template_map or identity_map, meaning)


def _labels(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    maps = (
        _label_map(row, f"label_map_{letter}")
        for row in rows
        for letter in "ab"
        if row[f"label_map_{letter}"]
    )
    golds = (row["ground_truth_label"] for row in rows)
    labels = {label for label_map in maps for label in label_map.values()} or set(golds) - {None}
    if labels == {"NO", "YES"}:
        return ("YES", "NO")
    return tuple(sorted(labels, key=int) if is_scale(tuple(labels)) else sorted(labels))


def _label_map(row: Mapping[str, Any], column: str) -> LabelMap:
    value = row[column]
    try:
        return load_label_map(value if isinstance(value, str) else json.dumps(value))
    except ValueError as error:
        raise JudgeSenseError(
            f"pair {row.get('pair_id')!r}, column {column}: must be a JSON object from raw answers "
            f"to labels, got {value!r}"
        ) from error
