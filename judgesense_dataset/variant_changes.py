"""Apply a variant to a template and to an item.

A change that does not fit a task (option labels where there are no options) gives None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.folder import VARIANT_SCHEMA
from judgesense.tasks import Item, Prompt, Task, Template, render
from judgesense.text import sentences
from judgesense_dataset.pairing import JUDGED
from judgesense_dataset.polarity import INVERTED, names_answer, polarity_cue
from judgesense_dataset.recognition import known_tasks
from judgesense_dataset.templates import (
    EMBEDDED_SOURCE,
    LANGUAGE_FILES,
    TaskTemplates,
    load_items,
    load_templates,
)
from judgesense_dataset.variants import Variant

EXAMPLES = "variant_examples"
"""The field that few-shot examples are shown as."""

_LAYOUT_KEYS = {"fields_order", "separator", "spacing", "casing", "enumeration", "sampled"}
_SHOWN = re.compile(r"(\s*)([^\s{}:][^{}:\n]*)(:[ \t]*)\{(\w+)\}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_SPACE = tuple(
    product((": ", " - ", ":: ", ":\n"), ("\n", "\n\n", " ; "), ("", "upper", "lower"), ("", "- "))
)
"""Separator, spacing, casing and enumeration mark: the formats that ``sampled`` draws from."""


@dataclass(frozen=True)
class VariantMaker:
    """Applies variants to the base wording of a task and to its items.

    Examples and opposite items are drawn from ``pool``, the task's items, by ``seed``, which also
    fixes which formats ``sampled`` draws.
    """

    entry: TaskTemplates
    pool: Sequence[Item] = ()
    seed: int = 0

    @property
    def task(self) -> Task:
        """The task."""
        return self.entry.task

    @property
    def base(self) -> Template:
        """The wording that variants start from: the first one that is not inverted."""
        return next((t for t in self.entry.templates if not t.inverted), self.entry.templates[0])

    def template(self, variant: Variant) -> Template | None:
        """The base wording changed by a variant; None if the variant does not fit the task.

        The template keeps the base's id.

        >>> from judgesense_dataset.embedded import embedded_templates
        >>> from judgesense_dataset.variants import load_variants
        >>> maker = VariantMaker(embedded_templates()["relevance"])
        >>> changed = maker.template(load_variants()["labels-digits"])
        >>> changed.text, dict(changed.label_map)
        ('Which passage is more relevant to the query? Answer 1 or 2.', {'1': 'A', '2': 'B'})
        """
        task, base = self.task, self.base
        changed: Template | None = base
        if variant.language:
            changed = _translate(variant.language, base)
        elif variant.without:
            changed = _without(base, variant.without)
        elif variant.texts:
            if (wording := variant.texts.get(base.task)) is None:
                return None
            label_map = wording.label_map or {label: label for label in task.labels}
            changed = replace(base, text=wording.text, label_map=MappingProxyType(label_map))
        if changed and variant.option_labels:
            changed = _relabel(changed, task, variant.option_labels)
        if changed and (_LAYOUT_KEYS & variant.model_fields_set or variant.instruction == "last"):
            changed = _lay_out(changed, task, variant, self.seed)
        if changed is None:
            return None
        if (
            variant.instruction == "system"
            and not changed.layout.replace("{instruction}", "").strip()
        ):
            return None  # Nothing would be left for the user message.
        if variant.guard:
            names = list(task.options.values()) or [_single(changed.placeholders)]
            for name in names:
                guarded = changed.layout.replace(f"{{{name}}}", f"{{{name}|{variant.guard}}}")
                changed = replace(changed, layout=guarded)
        text = " ".join(part for part in (variant.before, changed.text, variant.after) if part)
        layout = changed.layout
        if variant.few_shot:
            layout = layout.replace("{instruction}", f"{{instruction}}\n\n{{{EXAMPLES}}}", 1)
        return replace(changed, text=text, layout=layout)

    def item(self, variant: Variant, item: Item, order: str) -> Item | None:
        """The item as a variant shows it in an option order; None if it does not fit the item."""
        if variant.few_shot:
            shots = self._shots(variant.few_shot, item)
            if len(shots) < variant.few_shot:
                return None
            if variant.examples == "reversed":
                shots.reverse()
            text = "\n\n".join(
                f"Example {number}:\n{self._example(shot)}" for number, shot in enumerate(shots, 1)
            )
            return replace(item, fields={**item.fields, EXAMPLES: text})
        if variant.language:
            fields = _translations(variant.language, item.task).get(item.item_id)
            return _with(item, fields) if fields and item.source == EMBEDDED_SOURCE else None
        if variant.item:
            return self._opposite(item)
        if variant.append or variant.keep:
            name = judged_field(self.task, item, order)
            text = item.fields[name]
            if variant.append:
                text = f"{text} {variant.append}"
            else:
                parts = _SENTENCE_END.split(text)
                text = " ".join(parts[: max(1, int(len(parts) * variant.keep))])
            return None if text == item.fields[name] else _with(item, {name: text})
        return item

    def _opposite(self, item: Item) -> Item | None:
        """The same item with its options exchanged, or what another item of opposite gold shows.

        On a scale, opposite means at least two levels away. An item that shares every field but the
        judged one is preferred.
        """
        task = self.task
        if item.gold is None:
            return None
        if task.comparative:
            first, second = (task.options[label] for label in task.labels)
            swapped = {first: item.fields[second], second: item.fields[first]}
            gold = task.labels[1 - task.labels.index(item.gold)]
            return replace(_with(item, swapped), gold=gold)
        place, distance = task.labels.index(item.gold), 2 if task.ordinal else 1
        candidates = [
            other
            for other in self.pool
            if other.gold is not None and abs(task.labels.index(other.gold) - place) >= distance
        ]
        if not candidates:
            return None
        field = judged_field(task, item, "-")

        def same(other: Item) -> bool:
            return len(item.fields) > 1 and all(
                other.fields.get(name) == text
                for name, text in item.fields.items()
                if name != field
            )

        candidates = [other for other in candidates if same(other)] or candidates
        rng = np.random.default_rng([self.seed, 7, *item.item_id.encode()])
        donor = candidates[int(rng.integers(len(candidates)))]
        return replace(item, fields=donor.fields, gold=donor.gold)

    def _shots(self, k: int, item: Item) -> list[Item]:
        rng = np.random.default_rng([self.seed, 29, *self.task.name.encode()])
        able = [self.pool[n] for n in rng.permutation(len(self.pool)).tolist()]
        able = [o for o in able if o.gold is not None and o.cluster_id != item.cluster_id]
        groups = [[o for o in able if o.gold == label] for label in self.task.labels]
        first = [group[0] for group in groups if group]
        if self.task.ordinal and k <= len(first):
            # Two examples from a scale of five show its ends, not its first two levels.
            return [
                first[n] for n in np.linspace(0, len(first) - 1, k).round().astype(int).tolist()
            ]
        turns = range(max(map(len, groups), default=0))
        return [group[turn] for turn in turns for group in groups if turn < len(group)][:k]

    def _example(self, shot: Item) -> str:
        """An item as the base shows it, without the instruction, and its right answer."""
        layout = self.base.layout.replace("{instruction}", "").strip()
        bare = replace(self.base, text="", layout=layout)
        prompt = render(self.task, bare, shot, self.task.orders[0])
        raw = next(raw for raw, label in self.base.label_map.items() if label == shot.gold)
        return f"{prompt.text}\nAnswer: {raw}"


def _without(base: Template, n: int) -> Template | None:
    """The template without its nth sentence; None where an answer or a field would be lost."""
    parts = sentences(base.text)
    if not 1 <= n <= len(parts) or len(parts) < 2:
        return None
    text = "".join(parts[: n - 1] + parts[n:]).strip()
    shorter = replace(base, text=text)
    before, after = (f"{each.text}\n{each.layout}" for each in (base, shorter))
    lost = [raw for raw in base.label_map if names_answer(before, raw) > names_answer(after, raw)]
    labels = tuple(dict.fromkeys(base.label_map.values()))
    cues = [polarity_cue(each.text, labels) == INVERTED for each in (shorter, base)]
    if lost or shorter.placeholders != base.placeholders or cues[0] != cues[1]:
        return None
    return shorter


def _translate(language: str, base: Template) -> Template | None:
    """The template of the same id in the package's file of a language; None for one of your own."""
    package = known_tasks().get(base.task)
    if package is None or base.text not in {template.text for template in package.templates}:
        return None
    entry = load_templates(LANGUAGE_FILES[language])[base.task]
    return next(t for t in entry.templates if t.template_id == base.template_id)


@lru_cache(maxsize=32)
def _translations(language: str, task: str) -> Mapping[str, Mapping[str, str]]:
    """The fields of the embedded items of a task that are translated, by item."""
    path = LANGUAGE_FILES[language].with_name(f"{task}.jsonl")
    if not path.is_file():
        return {}
    entry = load_templates(LANGUAGE_FILES[language])[task]
    return {item.item_id: item.fields for item in load_items(path, entry.task, entry.fields)}


def _with(item: Item, fields: Mapping[str, str]) -> Item:
    return replace(item, fields=MappingProxyType({**item.fields, **fields}))


def _lay_out(template: Template, task: Task, variant: Variant, seed: int) -> Template | None:
    """The template with another layout of its fields; None if its layout is not a list of them."""
    before, mark, fields_part = template.layout.partition("{instruction}")
    parts = _SHOWN.findall(fields_part)
    if before or not mark or "".join(f"{g}{n}{s}{{{f}}}" for g, n, s, f in parts) != fields_part:
        return None
    if not parts:
        return None
    gap, default = parts[0][0], (parts[1][0] if len(parts) > 1 else "\n")
    separator, spacing = variant.separator, variant.spacing or default
    casing: str = variant.casing
    mark = variant.enumeration
    if variant.sampled:
        rng = np.random.default_rng([seed, 811, *task.name.encode()])
        own_format = (parts[0][2], default, "", "")
        # A format that differs on one axis alone is a variant of its own.
        formats = [
            space
            for space in _SPACE
            if (len(parts) > 1 or space[1] == "\n")
            and sum(a != b for a, b in zip(space, own_format, strict=True)) > 1
        ]
        at = rng.permutation(len(formats))[(variant.sampled - 1) % len(formats)]
        separator, spacing, casing, mark = formats[int(at)]
    if (variant.spacing or variant.fields_order) and len(parts) < 2:
        return None
    order = parts
    if variant.fields_order:
        options = [part for part in parts if part[3] in task.options.values()]
        other_parts = [part for part in parts if part not in options]
        order = [*options, *reversed(other_parts)]
    # The name of an option stays as it is.
    cased = [getattr(n, casing)() if casing and n not in task.labels else n for _, n, _, _ in order]
    lines = [
        f"{mark}{name}{separator or sep}{{{field}}}"
        for name, (_, _, sep, field) in zip(cased, order, strict=True)
    ]
    body = spacing.join(lines)
    layout = f"{{instruction}}{gap}{body}"
    if variant.instruction == "last":
        layout = f"{body}{gap}{{instruction}}"
    return replace(template, layout=layout)


def _relabel(template: Template, task: Task, labels: Sequence[str]) -> Template | None:
    """The template with other names of the two options; None without options or their names."""
    if not task.comparative or set(labels) == set(task.labels):
        return None
    first, second = (re.escape(label) for label in task.labels)
    pattern = re.compile(rf"\b{first}(\s*(?:,?\s*(?:or|and)|/|,)\s*){second}\b")
    text, n_named = pattern.subn(
        lambda found: f"{labels[0]}{found.group(1)}{labels[1]}", template.text
    )
    layout, n_shown = template.layout, 0
    for label, new in zip(task.labels, labels, strict=True):
        layout, count = re.subn(
            rf"(?m)^{re.escape(label)}(?=[:.)\s-])", new.replace("\\", r"\\"), layout
        )
        n_shown += count
    if not n_named or n_shown != len(task.labels):
        return None
    meant = {
        template.label_map.get(old, old): new for old, new in zip(task.labels, labels, strict=True)
    }
    label_map = {new: label for label, new in meant.items()}
    return replace(template, text=text, layout=layout, label_map=MappingProxyType(label_map))


def judged_field(task: Task, item: Item, order: str) -> str:
    """The judged field; in a choice between two, the option that is shown second."""
    if task.comparative:
        first, second = (task.options[label] for label in task.labels)
        return first if order == "BA" else second
    return _single(item.fields)


def _single(fields: Iterable[str]) -> str:
    """The judged one of several fields: one of `JUDGED`, or the last."""
    *_, last = names = list(fields)
    return next((name for name in JUDGED if name in names), last)


def row_of(prompt: Prompt, again: bool | None, **more: str) -> dict[str, object]:
    """A prompt's row in the table of prompts; empty values are null."""
    fields = {name: getattr(prompt, name) for name in VARIANT_SCHEMA.names if hasattr(prompt, name)}
    return {**fields, "again": again, **{name: value or None for name, value in more.items()}}


def more_prompts(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The table of a benchmark's prompts and of prompts that an addition asks."""
    rows = [*({"again": False, **row} for row in old), *new]
    return pa.Table.from_pylist(rows, schema=VARIANT_SCHEMA)
