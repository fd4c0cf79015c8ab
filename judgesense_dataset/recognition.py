"""Recognise the wording and the item in a rendered prompt.

A dataset holds prompts, and the earlier benchmark's rows hold little else. Where a prompt's wording
is in a known template file, its template, label map and the item's fields can be read back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record
from judgesense.tasks import NO_ORDER, Item, Task, Template, dump_label_map
from judgesense_dataset.folder import PAIR_ROWS
from judgesense_dataset.templates import (
    DATA,
    LANGUAGE_FILES,
    LayoutPattern,
    TaskTemplates,
    load_templates,
    patterns_of,
)

PUBLISHED_TEMPLATES = DATA / "published_templates.yaml"
KNOWN_FILES = (
    PUBLISHED_TEMPLATES,
    DATA / "templates.yaml",
    *LANGUAGE_FILES.values(),
    DATA / "scale_templates.yaml",
)
"""The template files of the package, in the order in which they are tried."""

OPTIONS = re.compile(r"\AA: (.*?)(?: \| |\n)B: (.*)\Z", re.DOTALL)
"""The two options in a text of ``pairing.judged_text``."""

_QUERIES = ("query", "question")
_load = lru_cache(maxsize=32)(load_templates)


def known_tasks() -> dict[str, TaskTemplates]:
    """The four tasks, with the templates of the paper's Appendix A."""
    return _load(DATA / "templates.yaml")


def recognise(task: str, prompt: str) -> tuple[Template, dict[str, str]] | None:
    """The known template that a prompt was rendered from, and the item's fields in it."""
    for template, pattern in _known_patterns(task):
        if (fields := pattern.fullmatch(prompt)) is not None:
            return template, fields
    return None


@lru_cache(maxsize=64)
def _known_patterns(task: str) -> list[tuple[Template, LayoutPattern]]:
    entries = (_load(path).get(task) for path in KNOWN_FILES)
    return [(t, patterns_of(t)[0]) for entry in entries if entry for t in entry.templates]


def wording_of(prompt: str, response: str | None) -> str:
    """The wording in a prompt of no known template: the text before the judged part."""
    response = response or ""
    options = OPTIONS.match(response)
    start = prompt.find((options.group(1) if options else response)[:200]) if response else -1
    before = prompt[:start] if start > 0 else prompt
    return before.split("\n\n", 1)[0] or before


def language_of(entries: Mapping[str, TaskTemplates]) -> str:
    """The language of templates: that of the package's file which has them, else English.

    >>> language_of(load_templates(LANGUAGE_FILES["de"]))
    'de'
    """
    texts = {template.text for entry in entries.values() for template in entry.templates}
    for language, path in LANGUAGE_FILES.items():
        if any(t.text in texts for entry in _load(path).values() for t in entry.templates):
            return language
    return "en"


def complete_pairs(records: Iterable[Record], default_task: str) -> Iterator[dict[str, Any]]:
    """Rows of the earlier benchmark's schema with every column of ``folder.PAIR_ROWS``.

    Missing columns are derived: templates and label maps from the wording, the item from the
    judged text and the query, the gold label in canonical form (``accurate`` becomes YES,
    ``score_3`` becomes 3). Columns that cannot be derived are null. Raises JudgeSenseError naming
    the row for one without two prompts of text.
    """
    for number, record in enumerate(records, 1):
        row = record.values
        for column in ("prompt_a", "prompt_b"):
            text = row.get(column)
            if not isinstance(text, str) or not text.strip():
                raise JudgeSenseError(
                    f"{record.place}, column {column}: must be non-empty text, got {text!r}; the "
                    f"row's columns are {', '.join(row)}"
                )
        yield _complete(row, number, str(row.get("task_type") or default_task))


def _complete(row: Mapping[str, Any], number: int, task: str) -> dict[str, Any]:
    full = {name: row.get(name) for name in PAIR_ROWS.names}
    full["task_type"] = task
    full["pair_id"] = str(row.get("pair_id") or f"{task}-row-{number}")
    fields: dict[str, str] = {}
    for side in "ab":
        template_column, map_column = f"template_{side}", f"label_map_{side}"
        if full[template_column] and full[map_column]:
            continue
        if match := recognise(task, row[f"prompt_{side}"]):
            template, fields = match
            full[template_column] = full[template_column] or template.template_id
            full[map_column] = full[map_column] or dump_label_map(template.label_map)
    entry = known_tasks().get(task)
    full["order"] = row.get("order") or ("AB" if entry and entry.task.comparative else NO_ORDER)
    if (gold := row.get("ground_truth_label")) is not None:
        score = re.fullmatch(r"score_(\d+)", str(gold))
        published = {"accurate": "YES", "inaccurate": "NO"}
        full["ground_truth_label"] = score[1] if score else published.get(str(gold), str(gold))
    full["item_id"] = row.get("item_id") or _content_id(task, full, fields)
    full["cluster_id"] = row.get("cluster_id") or full["item_id"]
    full["system_id"] = row.get("system_id") or ""
    if isinstance(score := row.get("semantic_equivalence_score"), int):
        full["semantic_equivalence_score"] = float(score)
    return full


def _content_id(task: str, row: Mapping[str, Any], fields: Mapping[str, str]) -> str | None:
    """An item id derived from the judged text and the query; None if the row shows neither."""
    response = row["response_being_judged"]
    if response is None:
        response = "\n".join(text for name, text in fields.items() if name not in _QUERIES)
    if not response:
        return None
    query = next((fields[name] for name in _QUERIES if name in fields), "")
    digest = hashlib.sha256(f"{query}\n{response}".encode()).hexdigest()
    return f"{task}-{digest[:12]}"


def recover_parts(
    benchmark: Benchmark, templates: str | Path | None = None
) -> tuple[dict[str, TaskTemplates], list[Item]]:
    """The templates by task, and the items of all tasks, that a benchmark's prompts were made from.

    An item whose text looks like the layout can be read in two ways. It is left out here, so that
    the benchmark's variants leave it out too. ``templates`` is the dataset's file; by default those
    of the package are tried. Raises JudgeSenseError for a task whose prompts follow none of them,
    and an item that has no readable prompt.

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
        entry = next((e for path in files if (e := _entry_of(path, task, rows))), None)
        if entry is None:
            source = "the package's templates" if templates is None else str(templates)
            raise JudgeSenseError(
                f"variants need the wordings of task {name!r}, but its prompts match none in "
                f"{source}: add --templates FILE, the file that the dataset was built from"
            )
        entries[name] = entry
        items += _items(entry, rows, str(benchmark.source.get("name", "the dataset")))
    return entries, items


def _entry_of(path: Path, task: Task, rows: Sequence[Mapping[str, Any]]) -> TaskTemplates | None:
    """The file's entry of a task, if all prompts of the first item have its template ids and one
    follows its template.
    """
    entry = _load(path).get(task.name)
    if entry is None or set(entry.task.labels) != set(task.labels):
        return None
    by_id = {template.template_id: template for template in entry.templates}
    first = [row for row in rows if row["item_id"] == rows[0]["item_id"]]
    if any(row["template_id"] not in by_id for row in first):
        return None
    follows = any(_readings(by_id[row["template_id"]], row["text"]) for row in first)
    return entry if follows else None


def _items(entry: TaskTemplates, rows: Sequence[Mapping[str, Any]], source: str) -> list[Item]:
    by_id = {template.template_id: template for template in entry.templates}
    items: dict[str, Item | None] = {}
    for row in rows:
        item_id = row["item_id"]
        if items.get(item_id) is not None or row["template_id"] not in by_id:
            continue
        readings = _readings(by_id[row["template_id"]], row["text"])
        if not readings:
            raise JudgeSenseError(
                f"{source}: the prompt {row['prompt_id']} of item {item_id!r} does not follow its "
                f"template {row['template_id']!r}, so it can have no variants: add --templates "
                "FILE with the template file that the dataset was built from"
            )
        items[item_id] = _item(entry.task, row, readings[0]) if len(readings) == 1 else None
    return [item for item in items.values() if item is not None]


def _readings(template: Template, text: str) -> list[dict[str, str]]:
    """The fields in a prompt, once for each way to read them; nothing for another template's."""
    matches = [pattern.fullmatch(text) for pattern in patterns_of(template)]
    readings = [match for match in matches if match is not None]
    return readings[:1] if all(reading == readings[0] for reading in readings) else readings


def _item(task: Task, row: Mapping[str, Any], fields: dict[str, str]) -> Item:
    if row["order"] == "BA":
        first, second = (task.options[label] for label in task.labels)
        fields[first], fields[second] = fields[second], fields[first]
    return Item(
        item_id=row["item_id"],
        task=task.name,
        fields=fields,
        gold=task.gold_as_shown(row["gold"], row["order"]),
        cluster_id=row["cluster_id"],
        system_id=row["system_id"] or "",
    )
