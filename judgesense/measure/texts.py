"""The texts that a report shows: of prompts, cut to a readable length, and of wordings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.text import same_start

WordingTexts = Mapping[str, Mapping[str, str]]
"""Task -> template -> text."""

LONGEST_TEXT = 4000
"""Characters of a text in a report."""

_KEY = ["task", "template_id"]

_ENOUGH = 200
"""Prompts of a template that are compared with each other."""


def wording_texts(record: Mapping[str, Any], prompts: pa.Table | None = None) -> WordingTexts:
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
    by_task: dict[str, dict[str, str]] = defaultdict(dict)
    if prompts is not None and {"task", "template_id", "text"} <= set(prompts.column_names):
        for key in prompts.select(_KEY).group_by(_KEY).aggregate([]).to_pylist():
            of_key = [pc.equal(prompts[name], key[name]) for name in _KEY]
            texts = prompts["text"].filter(pc.and_(*of_key))[:_ENOUGH].drop_null().to_pylist()
            if text := _in_common(texts):
                by_task[key["task"]][key["template_id"]] = text
    for task, facts in (record.get("tasks") or {}).items():
        by_task[task].update(facts.get("wordings") or {})
    return dict(by_task)


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


class PromptTexts:
    """The texts of prompts by id, cut; none without a table of prompts."""

    def __init__(self, prompts: pa.Table | None = None) -> None:
        self.prompts = prompts

    def of(self, ids: Sequence[str | None], *, whole: bool = False) -> list[str | None]:
        """The text of each id, cut unless ``whole``; None where it is unknown."""
        if self.prompts is None:
            return [None] * len(ids)
        named = pc.is_in(self.prompts["prompt_id"], value_set=pa.array(ids, pa.string()))
        rows = self.prompts.filter(named)
        texts = dict(zip(rows["prompt_id"].to_pylist(), rows["text"].to_pylist(), strict=True))
        return [texts.get(name) if whole else cut(texts.get(name)) for name in ids]


def cut(text: str | None) -> str | None:
    """A text as a report shows it."""
    return None if text is None else text[:LONGEST_TEXT]


def shortest_prompts(prompts: pa.Table | None) -> dict[str, int]:
    """The characters of each item's shortest prompt."""
    if prompts is None or not {"item_id", "text"} <= set(prompts.column_names):
        return {}
    sizes = pa.table({"item": prompts["item_id"], "n": pc.utf8_length(prompts["text"])})
    shortest = sizes.group_by("item").aggregate([("n", "min")])
    return dict(zip(shortest["item"].to_pylist(), shortest["n_min"].to_pylist(), strict=True))
