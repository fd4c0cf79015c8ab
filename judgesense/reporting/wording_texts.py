"""The full text of each wording of a run: as recorded, or as its prompts show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.text import same_start

Texts = Mapping[str, Mapping[str, str]]
"""Task -> template -> text."""

_KEY = ["task", "template_id"]

_ENOUGH = 200
"""Prompts of a template that are compared with each other."""


def wording_texts(record: Mapping[str, Any], prompts: pa.Table | None = None) -> Texts:
    """The texts of a run's wordings by task and template; those that are not known are left out.

    ``run.json`` has the instructions of runs on template files. For other runs (a dataset), the
    text is what a template's prompts have in common: their beginning up to the last empty line;
    without one, their beginning and end around an ellipsis.

    Args:
        record: the run's record (``run.json``).
        prompts: the run's prompts, with ``task``, ``template_id`` and ``text``.

    >>> rows = [{"task": "t", "template_id": "1", "text": f"Is it polite?\\n\\nText: {text}"}
    ...         for text in ("Thanks.", "Go away.")]
    >>> wording_texts({}, pa.Table.from_pylist(rows))
    {'t': {'1': 'Is it polite?'}}
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    if prompts is not None and {"task", "template_id", "text"} <= set(prompts.column_names):
        for key in prompts.select(_KEY).group_by(_KEY).aggregate([]).to_pylist():
            of_key = [pc.equal(prompts[name], key[name]) for name in _KEY]
            texts = prompts["text"].filter(pc.and_(*of_key))[:_ENOUGH].drop_null().to_pylist()
            if text := _in_common(texts):
                found[key["task"]][key["template_id"]] = text
    for task, facts in (record.get("tasks") or {}).items():
        found[task].update(facts.get("wordings") or {})
    return dict(found)


def _in_common(texts: list[str]) -> str:
    """What the prompts of a template share; "" for a single prompt, which shows no difference."""
    if len(set(texts)) < 2:
        return ""
    start = same_start(min(texts), max(texts))
    if "\n\n" in start:
        return start.rpartition("\n\n")[0].strip()
    left = [text[len(start) :][::-1] for text in texts]
    end = same_start(min(left), max(left))[::-1]
    if not start and "\n\n" in end:
        return end.partition("\n\n")[2].strip()
    return f"{start}…{end}".strip() if start or end else ""
