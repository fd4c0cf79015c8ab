"""Labelled examples in the prompt: a wording to try, from items that are then not tried on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from judgesense.ask.search import halves
from judgesense.ask.wordings import WordingToTry
from judgesense.statistics.arrays import Codes
from judgesense.tasks import Item, Template, render, typed_answer
from judgesense_dataset.reply_labels import has_own_form, reply_field
from judgesense_dataset.templates import TaskTemplates

MOST = 4
"""Examples in the wording, shared evenly by the labels."""

FEWEST_LEFT = 30
"""Items of the search that must be left to try recipes on."""

LONGEST = 1500
"""Characters of an example, at most."""


def with_examples(
    entry: TaskTemplates, items: Sequence[Item], gold: Codes, clusters: Codes, seed: int
) -> tuple[WordingToTry | None, Codes]:
    """The base wording with labelled examples, and the items that share a cluster with one.

    The examples are items of the search, never of the promise. None, and no item, where too few
    would be left to try recipes on, or where the wording does not show the items apart from its
    instruction. ``items`` may be followed by copies of items in ``gold`` and ``clusters``.
    """
    task, base, none = entry.task, entry.templates[0], np.zeros(0, np.int64)
    each = MOST // len(task.labels)
    is_whole = base.layout.strip() == "{instruction}"
    # Nothing tells how to state a verdict in a form whose field of the verdict is unknown.
    is_unknown = has_own_form(base) and not reply_field(base)
    if not each or is_whole or is_unknown or len(items) < 2 * FEWEST_LEFT:
        return None, none
    search, _ = halves(gold, clusters, seed)
    chosen: list[int] = []
    examples: list[str] = []
    counts = dict.fromkeys(task.labels, 0)
    for number in search[search < len(items)].tolist():
        label = str(items[number].gold)
        text = _example(entry, items[number])
        # Braces in a template would be read as placeholders.
        fits = len(text) <= LONGEST and not any(
            set("{}") & set(value) for value in items[number].fields.values()
        )
        if counts[label] < each and fits and clusters[number] not in clusters[chosen]:
            counts[label] += 1
            chosen.append(number)
            examples.append(text)
    taken: Codes = search[np.isin(clusters[search], clusters[chosen])]
    if min(counts.values()) < each or len(search) - len(taken) < FEWEST_LEFT:
        return None, none
    text = "\n\n".join(
        [base.text, "Examples with their right verdicts:", *examples, "Now judge this case:"]
    )
    template = replace(base, template_id=f"{base.template_id}+examples", text=text)
    return WordingToTry(template, "examples"), taken


def _example(entry: TaskTemplates, item: Item) -> str:
    """An item as the base wording shows it, without the instruction, and its right answer."""
    task, base = entry.task, entry.templates[0]
    shown = render(task, replace(base, text=""), item, task.orders[0]).text.strip()
    return f"{shown}\n{_answer(base, str(item.gold))}"


def _answer(template: Template, label: str) -> str:
    """The reply that states a label in the form that the wording asks for."""
    raw = next(raw for raw, meaning in template.label_map.items() if meaning == label)
    field = reply_field(template)
    return json.dumps({field: typed_answer(raw)}, ensure_ascii=False) if field else raw
