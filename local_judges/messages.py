"""Split the messages of an improved judge, and render the prompts of its recipe for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property

from judgesense.recipes.ablation import ablations
from judgesense.recipes.recipe import Recipe
from judgesense.tasks import Item, Prompt, Template, prompt_id, render
from judgesense_dataset.attacks import Attacks
from judgesense_dataset.reply_labels import reply_schema
from judgesense_dataset.templates import LayoutPattern, is_alone, layout_patterns, patterns_of
from judgesense_dataset.variant_changes import judged_field
from local_judges.improved_judge import ImprovedJudge
from local_judges.protocol import Request

_ITEM = "judgesense_item"
"""The key of a message that holds an item's fields as JSON."""

_AS_JSON = f'{{"{_ITEM}": '

_WORDING = "_wording"
"""The field that holds a wording which the file does not have."""

_AMBIGUOUS = (
    "a field of the item contains text that looks like the layout, so the message cannot be taken "
    "apart; change that text"
)


@dataclass(frozen=True)
class Members:
    """The requests behind the verdict on one message, by wording and order.

    Each wording and order has one request, or if the recipe is ablated one for each of the texts of
    `judgesense.recipes.ablation.ablations`. ``wins`` is the label that the author of a single text
    wants, "" for a choice.
    """

    requests: tuple[tuple[tuple[Request, ...], ...], ...]
    templates: tuple[Template, ...]
    template: Template
    recipe: Recipe
    wins: str = ""

    @cached_property
    def by_key(self) -> dict[str, Request]:
        """The distinct requests: the same prompt with the same options is asked once."""
        return {
            request_key(request): request
            for row in self.requests
            for texts in row
            for request in texts
        }


def request_key(request: Request) -> str:
    """The key of a request; of several with the same key, one is asked."""
    return f"{request.prompt_id} {request.options} {request.repeat}"


def added_text(first: Template, wording: Template) -> str | None:
    """The text that a wording adds to the end of a file's first one; "" if it is the first one.

    None if it begins otherwise, or has another layout or other answers.
    """
    if wording.template_id == first.template_id:
        return ""
    is_alike = wording.layout == first.layout and wording.label_map == first.label_map
    is_longer = is_alike and wording.text.startswith(first.text)
    return wording.text.removeprefix(first.text) if is_longer else None


class Messages:
    """Splits messages, and renders the prompts of a recipe of one judge from their fields.

    A message is one of the file's wordings, or another wording in one of its layouts. Without
    ``part``, the recipe is that of the file's first judge, and a message shows what any judge
    needs.
    """

    def __init__(self, improved: ImprovedJudge, part: Recipe | None = None) -> None:
        self.improved, self.recipe = improved, part or improved.recipe.leaves[0]
        self.by_id = {template.template_id: template for template in improved.entry.templates}
        wordings = [self.by_id[name] for name in self.recipe.wordings]
        # A recipe of the file's first wording is applied to the message's own wording; one that
        # only adds something to it (a request for reasons), with what it adds.
        task, self.base = improved.entry.task, wordings[0]
        self.addition = added_text(improved.entry.templates[0], self.base)
        shows_one_option = any(is_alone(task, wording) for wording in wordings)
        self.asks_own = len(wordings) > 1 or self.addition is None or shows_one_option
        self.fields = improved.wordings_of(part).fields if part else improved.fields
        # In the order of the layout, where the judged text is the last of several.
        fields = sorted(self.base.placeholders, key=lambda name: self.base.layout.find(f"{{{name}"))
        self.wins, self.judged = "", Item("judged", task.name, dict.fromkeys(fields, ""))
        if self.recipe.ablated:
            self.wins = Attacks((), {}, improved.where).wanted(task)

    def of_item(self, item: Item) -> Prompt:
        """The message for an item: the recipe's first wording.

        Where that cannot be taken apart because a field looks like the layout, the message is the
        fields as JSON, which stands for the same prompts.

        Raises JudgeSenseError if the item lacks a field.
        """
        task = self.improved.entry.task
        prompt = render(task, self.base, item, task.orders[0])
        request = Request(prompt.prompt_id, prompt.text, tuple(self.base.label_map))
        if not self.improved.recipe.members and isinstance(self.members(request), Members):
            return prompt
        fields = {name: item.fields[name] for name in sorted(self.improved.fields)}
        text = json.dumps({_ITEM: fields}, ensure_ascii=False)
        return replace(prompt, text=text, prompt_id=prompt_id(text))

    def members(self, request: Request) -> Members | str:
        """The prompts behind a message, or why it cannot be judged."""
        task, recipe, where = self.improved.entry.task, self.recipe, self.improved.where
        option_sets = [set(task.labels), *(set(t.label_map) for t in self.by_id.values())]
        if set(request.options) not in option_sets:
            return (
                f"the message allows {', '.join(request.options)}, but the task {task.name} of "
                f"{where} has the labels {', '.join(task.labels)}"
            )
        parts = self._split(request)
        if isinstance(parts, str):
            return parts
        template, readings = parts
        templates: tuple[Template, ...] = (template,)
        if self.asks_own or request.text.startswith(_AS_JSON):
            templates = tuple(self.by_id[wording] for wording in recipe.wordings)
            if missing := sorted(self.fields - set(readings[0])):
                return f"the message does not show {missing[0]}, which the judge's wordings show"
        elif self.addition and not template.text.endswith(self.addition):
            templates = (self._with_addition(template),)
        texts, *other_texts = (self._texts(fields, templates) for fields in readings)
        # Fields can be split in two ways that give the same prompts.
        if any(other != texts for other in other_texts):
            return _AMBIGUOUS
        # The same wording again is another sample of its answer.
        wordings = [(wording.text, wording.layout) for wording in templates]
        samples = [wordings[:n].count(wording) for n, wording in enumerate(wordings)]
        requests = []
        for wording, sample, orders in zip(templates, samples, texts, strict=True):
            repeat = request.repeat * (1 + max(samples)) + sample
            options, schema = tuple(wording.label_map), reply_schema(wording)
            requests.append(
                tuple(
                    tuple(Request(prompt_id(t), t, options, repeat, schema=schema) for t in order)
                    for order in orders
                )
            )
        names = tuple(wording.template_id for wording in templates)
        if names != recipe.wordings:
            offsets = {name: recipe.offsets_for(name) for name in names} if recipe.offsets else {}
            recipe = replace(recipe, wordings=names, offsets=offsets)
        return Members(tuple(requests), templates, template, recipe, self.wins)

    def _texts(
        self, fields: dict[str, str], templates: tuple[Template, ...]
    ) -> list[list[list[str]]]:
        """The prompts for a message's fields by wording and order, several each if ablated."""
        task, orders = self.improved.entry.task, self.recipe.orders
        # The message shows its options in the order that counts as AB here.
        item = Item("message", task.name, fields)
        items = {order: self._ablations(item, order) for order in orders}
        return [
            [
                [render(task, template, shown, order).text for shown in items[order]]
                for order in orders
            ]
            for template in templates
        ]

    def _with_addition(self, template: Template) -> Template:
        """The wording of a message with what the recipe adds; the file's own, where it has that."""
        text = f"{template.text}{self.addition}"
        if text == self.base.text:
            return self.base
        name = f"{template.template_id} with {prompt_id(text)}"
        return replace(template, template_id=name, text=text)

    def _ablations(self, item: Item, order: str) -> list[Item]:
        """The item as the recipe asks for it; if it is ablated, with each text that it needs."""
        if not self.recipe.ablated:
            return [item]
        task = self.improved.entry.task
        # A wording of one option shows the one that stands first.
        field = judged_field(task, self.judged, "AB" if order == "BA" else "BA")
        texts = ablations(item.fields[field], self.recipe.ablated)
        return [replace(item, fields={**item.fields, field: text}) for text in texts]

    def fields_of(self, request: Request) -> dict[str, str] | None:
        """The item's fields in a message of one of the file's wordings.

        None for any other message, for one whose fields can be split in several ways, and for one
        that does not show what the judge's wordings show.
        """
        parts = self._split(request)
        if isinstance(parts, str) or parts[0].template_id not in self.by_id:
            return None
        first, *others = parts[1]
        return first if self.fields <= first.keys() and others in ([], [first]) else None

    def _split(self, request: Request) -> tuple[Template, list[dict[str, str]]] | str:
        """The template of a message and the item's fields in it, in every way to split them.

        Or why it cannot be split.
        """
        if (fields := self._json_fields(request.text)) is not None:
            templates = (self.base, *self.by_id.values())
            return next(t for t in templates if set(t.label_map) == set(request.options)), [fields]
        for template, patterns in self._patterns:
            matches = [pattern.fullmatch(request.message) for pattern in patterns]
            if matches[0] is None or set(request.options) != set(template.label_map):
                continue
            readings = [match for match in matches if match is not None]
            if "instruction" not in readings[0]:
                return template, readings
            wording, *others = {reading.pop("instruction") for reading in readings}
            if others:
                return _AMBIGUOUS
            if set(request.options) != set(template.label_map.values()):
                return "the wording is not in the judge's file, so it must allow the task's labels"
            # As a field, so that braces in the wording are not read as placeholders.
            name = f"wording {prompt_id(wording)}"
            template = replace(template, template_id=name, text=f"{{{_WORDING}}}")
            return template, [{**reading, _WORDING: wording} for reading in readings]
        return (
            f"the message is not laid out as the templates of {self.improved.where}; judge items "
            f"of the task {self.improved.entry.task.name} instead"
        )

    def _json_fields(self, text: str) -> dict[str, str] | None:
        """The fields of a message of :meth:`of_item` in JSON; None for any other message."""
        if not text.startswith(_AS_JSON):
            return None
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return None
        fields = message[_ITEM] if message.keys() == {_ITEM} else None
        if not isinstance(fields, dict) or not fields.keys() >= self.fields:
            return None
        return {name: str(value) for name, value in fields.items()}

    @cached_property
    def _patterns(self) -> list[tuple[Template, tuple[LayoutPattern, LayoutPattern]]]:
        """The file's wordings as patterns, then their layouts with any wording.

        Each is there twice, matching as little and as much as possible per field: where the two
        differ, a field's text looks like the layout.
        """
        wordings = [(template, patterns_of(template)) for template in self.by_id.values()]
        layouts = {t.layout: t for t in self.by_id.values() if not t.inverted}
        return wordings + [(t, layout_patterns(layout)) for layout, t in layouts.items()]
