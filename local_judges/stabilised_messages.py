"""The prompts behind a message to a stabilised judge: the message is taken apart by its layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from re import Pattern

from judgesense.tasks import Item, Prompt, Template, prompt_id, render
from judgesense.trust.rules import Rule
from judgesense_dataset.templates import layout_patterns, patterns_of
from local_judges.protocol import Request
from local_judges.stabilised_file import Stabilised

_ITEM = "judgesense_item"
"""The key of a message that holds an item's fields as JSON."""

_WORDING = "_wording"
"""The field that holds a wording which the file does not have."""

_AMBIGUOUS = (
    "a field of the item contains text that looks like the layout, so the message cannot be taken "
    "apart; change that text"
)


@dataclass(frozen=True)
class Asked:
    """What one message stands for: the requests behind its verdict, by wording and order."""

    members: tuple[tuple[Request, ...], ...]
    templates: tuple[Template, ...]
    template: Template
    rule: Rule


class Messages:
    """Takes messages apart, and renders the prompts of the rule from their fields.

    A message is one of the file's wordings, or another wording in one of its layouts.
    """

    def __init__(self, stabilised: Stabilised) -> None:
        self.stabilised = stabilised
        wanted = stabilised.rule.wordings[0]
        self.base = next(t for t in stabilised.entry.templates if t.template_id == wanted)
        """The template that items are rendered with."""

    def of_item(self, item: Item) -> Prompt:
        """The message for an item: the rule's first wording.

        Where that cannot be taken apart because a field looks like the layout, the message is the
        fields as JSON, which stands for the same prompts.

        Raises JudgeSenseError if the item lacks a field.
        """
        task = self.stabilised.entry.task
        prompt = render(task, self.base, item, task.orders[0])
        request = Request(prompt.prompt_id, prompt.text, tuple(self.base.label_map))
        if isinstance(self.asked(request), Asked):
            return prompt
        shown = {name: item.fields[name] for name in sorted(self.stabilised.fields)}
        text = json.dumps({_ITEM: shown}, ensure_ascii=False)
        return replace(prompt, text=text, prompt_id=prompt_id(text))

    def asked(self, request: Request) -> Asked | str:
        """The prompts behind a message, or why it cannot be judged."""
        task, rule = self.stabilised.entry.task, self.stabilised.rule
        if set(request.options) != set(task.labels) and not any(
            set(request.options) == set(t.label_map) for t in self.stabilised.entry.templates
        ):
            return (
                f"the message allows {', '.join(request.options)}, and the task {task.name} of "
                f"{self.stabilised.where} has the labels {', '.join(task.labels)}"
            )
        taken = self._taken(request)
        if isinstance(taken, str):
            return taken
        template, readings = taken
        templates: tuple[Template, ...] = (template,)
        if len(rule.wordings) > 1:
            by_id = {t.template_id: t for t in self.stabilised.entry.templates}
            templates = tuple(by_id[wording] for wording in rule.wordings)
            shown = frozenset().union(*(own.placeholders for own in templates))
            if lacking := sorted(shown - set(readings[0])):
                return f"the message does not show {lacking[0]}, which the panel's wordings show"
        members = [self._members(templates, fields, request.repeat) for fields in readings]
        # Fields can be split in two ways that give the same prompts.
        if any(other != members[0] for other in members):
            return _AMBIGUOUS
        return Asked(members[0], templates, template, self._rule_for(templates))

    def _members(
        self, templates: tuple[Template, ...], fields: Mapping[str, str], repeat: int
    ) -> tuple[tuple[Request, ...], ...]:
        task = self.stabilised.entry.task
        # The message shows its options in the order that counts as AB here.
        item = Item("message", task.name, fields)
        return tuple(
            tuple(
                Request(prompt_id(text), text, tuple(own.label_map), repeat)
                for order in self.stabilised.rule.orders
                for text in [render(task, own, item, order).text]
            )
            for own in templates
        )

    def _rule_for(self, templates: tuple[Template, ...]) -> Rule:
        rule = self.stabilised.rule
        names = tuple(template.template_id for template in templates)
        if names == rule.wordings:
            return rule
        offsets = {name: rule.offsets_for(name) for name in names} if rule.offsets else {}
        return Rule(rule.remedy, names, rule.orders, rule.labels, rule.read, offsets)

    def _taken(self, request: Request) -> tuple[Template, list[dict[str, str]]] | str:
        """The template of a message and the item's fields in it, in every way they can be split."""
        if (fields := self._as_json(request.text)) is not None:
            return self.base, [fields]
        for template, patterns in self._patterns:
            found = [pattern.fullmatch(request.message) for pattern in patterns]
            if found[0] is None or set(request.options) != set(template.label_map):
                continue
            own = [match.groupdict() for match in found if match is not None]
            if "instruction" in own[0]:
                wordings = [reading.pop("instruction") for reading in own]
                if len(set(wordings)) > 1:
                    return _AMBIGUOUS
                if set(request.options) != set(template.label_map.values()):
                    return "a wording that the file does not have must allow the task's own labels"
                # As a field, so that braces in the wording are not read as placeholders.
                own = [{**reading, _WORDING: wordings[0]} for reading in own]
                name = f"wording {prompt_id(wordings[0])}"
                template = replace(template, template_id=name, text=f"{{{_WORDING}}}")
            return template, own
        return (
            f"the message is not laid out as the templates of {self.stabilised.where}; judge items "
            f"of the task {self.stabilised.entry.task.name}"
        )

    def _as_json(self, text: str) -> dict[str, str] | None:
        """The fields of a message of :meth:`of_item` in JSON; None for any other message."""
        if not text.startswith(f'{{"{_ITEM}": '):
            return None
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return None
        fields = held[_ITEM] if held.keys() == {_ITEM} else None
        if not isinstance(fields, dict) or fields.keys() != self.stabilised.fields:
            return None
        return {name: str(value) for name, value in fields.items()}

    @cached_property
    def _patterns(self) -> list[tuple[Template, tuple[Pattern[str], Pattern[str]]]]:
        """The file's wordings as patterns, then their layouts with any wording.

        Each is there twice, matching as little and as much as possible per field: where the two
        differ, a field's text looks like the layout.
        """
        found = [(t, patterns_of(t)) for t in self.stabilised.entry.templates]
        layouts = {t.layout: t for t in self.stabilised.entry.templates if not t.inverted}
        return found + [(t, layout_patterns(layout)) for layout, t in layouts.items()]


def key_of(request: Request) -> str:
    """What tells requests apart: the same prompt with the same options is asked once."""
    return f"{request.prompt_id} {request.options} {request.repeat}"
