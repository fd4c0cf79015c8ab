"""Recover the templates and items behind a dataset of prompts, which variants are made from.

A Hub dataset holds rendered prompts. Where their wordings are in a known template file, each
item's fields can be read back from one of its prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item, Task, Template
from judgesense_dataset.templates import (
    DATA,
    LANGUAGE_FILES,
    TaskTemplates,
    load_templates,
    patterns_of,
)

KNOWN_FILES = (
    *(DATA / name for name in ("templates.yaml", "published_templates.yaml")),
    *LANGUAGE_FILES.values(),
    DATA / "scale_templates.yaml",
)
"""The template files of the package, in the order in which they are tried."""


def language_of(entries: Mapping[str, TaskTemplates]) -> str:
    """The language of templates: that of the package's file which has them, else English.

    >>> language_of(load_templates(LANGUAGE_FILES["de"]))
    'de'
    """
    for language, path in LANGUAGE_FILES.items():
        known = {t.text for entry in _file(path).values() for t in entry.templates}
        if any(t.text in known for entry in entries.values() for t in entry.templates):
            return language
    return "en"


def recover_parts(
    benchmark: Benchmark, templates: str | Path | None = None
) -> tuple[dict[str, TaskTemplates], list[Item]]:
    """The templates by task, and the items of all tasks, that a benchmark's prompts were made from.

    An item whose text looks like the layout can be read in two ways. It is left out here, so that
    the benchmark's variants leave it out too.

    Args:
        benchmark: the prompts.
        templates: the template file of the dataset; by default the files of the package.

    Raises:
        JudgeSenseError: for a task whose prompts follow none of the templates, and an item that
            has no readable prompt.

    >>> from judgesense_dataset.embedded import embedded_items, load_embedded
    >>> _, items = recover_parts(load_embedded().select(["relevance"]))
    >>> items[0].fields == next(i for i in embedded_items() if i.task == "relevance").fields
    True
    """
    files = KNOWN_FILES if templates is None else (Path(templates),)
    entries: dict[str, TaskTemplates] = {}
    items: list[Item] = []
    for name, task in benchmark.tasks.items():
        rows = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name)).to_pylist()
        entry = _entry(name, task, rows, files)
        if entry is None:
            tried = "the package's templates" if templates is None else str(templates)
            raise JudgeSenseError(
                f"variants need the wordings of task {name!r}, and its prompts follow none of "
                f"{tried}: add --templates FILE, the template file that the dataset was built from"
            )
        entries[name] = entry
        items += _items(entry, rows, str(benchmark.source.get("name", "the dataset")))
    return entries, items


@lru_cache(maxsize=8)
def _file(path: Path) -> Mapping[str, TaskTemplates]:
    return load_templates(path)


def _entry(
    name: str, task: Task, rows: Sequence[Mapping[str, Any]], files: Sequence[Path]
) -> TaskTemplates | None:
    """The first entry of that name whose templates all prompts of the first item follow."""
    first = [row for row in rows if row["item_id"] == rows[0]["item_id"]]
    for path in files:
        entry = _file(path).get(name)
        if entry is None or set(entry.task.labels) != set(task.labels):
            continue
        by_id = {template.template_id: template for template in entry.templates}
        if all(row["template_id"] in by_id for row in first) and any(
            _read(by_id[row["template_id"]], row["text"]) for row in first
        ):
            return entry
    return None


def _items(entry: TaskTemplates, rows: Sequence[Mapping[str, Any]], where: str) -> list[Item]:
    by_id = {template.template_id: template for template in entry.templates}
    found: dict[str, Item | None] = {}
    for row in rows:
        identity = row["item_id"]
        if found.get(identity) is not None or row["template_id"] not in by_id:
            continue
        readings = _read(by_id[row["template_id"]], row["text"])
        found[identity] = _item(entry.task, row, readings[0]) if len(readings) == 1 else None
        if not readings:
            raise JudgeSenseError(
                f"{where}: the prompt {row['prompt_id']} of item {identity!r} does not follow its "
                f"template {row['template_id']!r}, so no variants can be made of it: add "
                "--templates FILE, the template file that the dataset was built from"
            )
    return [item for item in found.values() if item is not None]


def _read(template: Template, text: str) -> list[dict[str, str]]:
    """The fields in a prompt, once for each way to read them; nothing for another template's."""
    found = [pattern.fullmatch(text) for pattern in patterns_of(template)]
    readings = [match.groupdict() for match in found if match is not None]
    return readings[:1] if all(reading == readings[0] for reading in readings) else readings


def _item(task: Task, row: Mapping[str, Any], fields: dict[str, str]) -> Item:
    gold = row["gold"]
    if row["order"] == "BA":
        first, second = (task.options[label] for label in task.labels)
        fields[first], fields[second] = fields[second], fields[first]
    return replace(
        Item(row["item_id"], task.name, fields, task.gold_as_shown(gold, row["order"])),
        cluster_id=row["cluster_id"],
        system_id=row["system_id"] or "",
    )
