"""Complete rows in the earlier benchmark's schema to today's columns.

Such rows hold two rendered prompts and little else. Templates, label maps, items and canonical gold
labels are derived by matching the prompts against the known wordings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import NO_ORDER, Template, dump_label_map
from judgesense_dataset.folder import PAIR_ROWS
from judgesense_dataset.items import require_utf8
from judgesense_dataset.templates import (
    DATA,
    LANGUAGE_FILES,
    TaskTemplates,
    load_templates,
    patterns_of,
)

PUBLISHED_TEMPLATES = DATA / "published_templates.yaml"

_GOLD = {"accurate": "YES", "inaccurate": "NO"}
_SCORE = re.compile(r"score_(\d+)")
_QUERIES = ("query", "question")

OPTIONS = re.compile(r"\AA: (.*?)(?: \| |\n)B: (.*)\Z", re.DOTALL)
"""The two options in a text of ``pairing.judged_text``."""


@lru_cache(maxsize=1)
def known_tasks() -> dict[str, TaskTemplates]:
    """The four tasks, with the templates of the paper's Appendix A."""
    return load_templates(DATA / "templates.yaml")


@lru_cache(maxsize=1)
def _wordings() -> dict[str, list[tuple[Template, re.Pattern[str]]]]:
    """The known templates of each task as patterns, those of the published pairs first."""
    found: dict[str, list[tuple[Template, re.Pattern[str]]]] = {}
    files = (*LANGUAGE_FILES.values(), DATA / "scale_templates.yaml")
    others = [load_templates(file) for file in files]
    for tasks in (load_templates(PUBLISHED_TEMPLATES), known_tasks(), *others):
        for name, entry in tasks.items():
            found.setdefault(name, []).extend((t, patterns_of(t)[0]) for t in entry.templates)
    return found


def recognise(task: str, prompt: str) -> tuple[Template, dict[str, str]] | None:
    """The known template that a prompt was rendered from, and the item's fields in it."""
    for template, pattern in _wordings().get(task, []):
        if found := pattern.fullmatch(prompt):
            return template, found.groupdict()
    return None


def wording_of(prompt: str, judged: str | None) -> str:
    """The wording in a prompt of no known template: the text before the judged part."""
    judged = judged or ""
    found = OPTIONS.match(judged)
    start = prompt.find((found.group(1) if found else judged)[:200]) if judged else -1
    before = prompt[:start] if start > 0 else prompt
    return before.split("\n\n", 1)[0] or before


def complete(
    rows: Iterable[tuple[int, Mapping[str, Any]]], where: str, default_task: str
) -> Iterator[dict[str, Any]]:
    """Fill in every column of a pair in numbered rows, and keep what a row says itself.

    Missing columns are derived: templates and label maps from the wording, the item from the
    judged text and the query, the gold label in canonical form (``accurate`` becomes YES,
    ``score_3`` becomes 3). Columns that cannot be derived are null. Raises JudgeSenseError naming
    ``where`` and the row for a row without two prompts of text.
    """
    for number, row in rows:
        for column in ("prompt_a", "prompt_b"):
            text = row.get(column)
            if not isinstance(text, str) or not text.strip():
                raise JudgeSenseError(
                    f"{where}, row {number}, column {column}: must be non-empty text, "
                    f"got {text!r}; the row has {', '.join(row)}"
                )
        for column, text in row.items():
            if isinstance(text, str):
                require_utf8(text, f"{where}, row {number}, column {column}")
        yield _complete(row, number, str(row.get("task_type") or default_task))


def _complete(row: Mapping[str, Any], number: int, task: str) -> dict[str, Any]:
    full = {name: row.get(name) for name in PAIR_ROWS.names}
    full["task_type"] = task
    full["pair_id"] = str(row.get("pair_id") or f"{task}-row-{number}")
    fields: dict[str, str] = {}
    for side in "ab":
        if full[f"template_{side}"] and full[f"label_map_{side}"]:
            continue
        if match := recognise(task, row[f"prompt_{side}"]):
            template, fields = match
            full[f"template_{side}"] = full[f"template_{side}"] or template.template_id
            full[f"label_map_{side}"] = full[f"label_map_{side}"] or dump_label_map(
                template.label_map
            )
    entry = known_tasks().get(task)
    full["order"] = row.get("order") or ("AB" if entry and entry.task.comparative else NO_ORDER)
    if row.get("ground_truth_label") is not None:
        full["ground_truth_label"] = _canonical(str(row["ground_truth_label"]))
    full["item_id"] = row.get("item_id") or _identity(task, full, fields)
    full["cluster_id"] = row.get("cluster_id") or full["item_id"]
    full["system_id"] = row.get("system_id") or ""
    if isinstance(score := row.get("semantic_equivalence_score"), int):
        full["semantic_equivalence_score"] = float(score)
    return full


def _canonical(label: str) -> str:
    if found := _SCORE.fullmatch(label):
        return found.group(1)
    return _GOLD.get(label, label)


def _identity(task: str, row: Mapping[str, Any], fields: Mapping[str, str]) -> str | None:
    """An item id derived from the judged text and the query; None if the row shows neither."""
    judged = row["response_being_judged"]
    if judged is None:
        judged = "\n".join(text for name, text in fields.items() if name not in _QUERIES)
    query = next((fields[name] for name in _QUERIES if name in fields), "")
    if not judged:
        return None
    digest = hashlib.sha256(f"{query}\n{judged}".encode()).hexdigest()
    return f"{task}-{digest[:12]}"
