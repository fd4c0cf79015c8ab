"""An improved judge as a judge: it takes a message apart, asks the rule's prompts, and decides.

It needs no more than the messages, so it runs wherever a judge does: in any engine, in Ray's
actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item, Prompt, Template, prompt_id, render
from judgesense.trust.card import AS_ASKED
from judgesense.trust.grid import label_logprobs
from judgesense.trust.rules import Decided, Rule
from judgesense_dataset.templates import LayoutPattern, layout_patterns, patterns_of
from local_judges.protocol import Answer, Judge, Request
from local_judges.runner import ask_all
from local_judges.stabilised_file import Stabilised

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Messages per batch: their prompts are asked together."""

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
    """What one message stands for: the requests behind its verdict, by wording and order."""

    requests: tuple[tuple[Request, ...], ...]
    templates: tuple[Template, ...]
    template: Template
    rule: Rule

    @cached_property
    def by_key(self) -> dict[str, Request]:
        """The distinct requests: the same prompt with the same options is asked once."""
        return {_key(request): request for row in self.requests for request in row}


def _key(request: Request) -> str:
    return f"{request.prompt_id} {request.options} {request.repeat}"


class Messages:
    """Takes messages apart, and renders the prompts of the rule from their fields.

    A message is one of the file's wordings, or another wording in one of its layouts.
    """

    def __init__(self, stabilised: Stabilised) -> None:
        self.stabilised = stabilised
        self.by_id = {template.template_id: template for template in stabilised.entry.templates}

    def of_item(self, item: Item) -> Prompt:
        """The message for an item: the rule's first wording.

        Where that cannot be taken apart because a field looks like the layout, the message is the
        fields as JSON, which stands for the same prompts.

        Raises JudgeSenseError if the item lacks a field.
        """
        task = self.stabilised.entry.task
        prompt = render(task, self.stabilised.base, item, task.orders[0])
        request = Request(prompt.prompt_id, prompt.text, tuple(self.stabilised.base.label_map))
        if not self.stabilised.others and isinstance(self.members(request), Members):
            return prompt
        shown = {name: item.fields[name] for name in sorted(self.stabilised.fields)}
        text = json.dumps({_ITEM: shown}, ensure_ascii=False)
        return replace(prompt, text=text, prompt_id=prompt_id(text))

    def members(self, request: Request) -> Members | str:
        """The prompts behind a message, or why it cannot be judged."""
        task, rule, where = self.stabilised.entry.task, self.stabilised.rule, self.stabilised.where
        known = [set(task.labels), *(set(t.label_map) for t in self.by_id.values())]
        if set(request.options) not in known:
            return (
                f"the message allows {', '.join(request.options)}, and the task {task.name} of "
                f"{where} has the labels {', '.join(task.labels)}"
            )
        taken = self._taken_apart(request)
        if isinstance(taken, str):
            return taken
        template, readings = taken
        templates: tuple[Template, ...] = (template,)
        if self.stabilised.asks_own or request.text.startswith(_AS_JSON):
            templates = tuple(self.by_id[wording] for wording in rule.wordings)
            if lacking := sorted(self.stabilised.fields - set(readings[0])):
                return f"the message does not show {lacking[0]}, which the judge's wordings show"
        rendered = []
        for fields in readings:
            # The message shows its options in the order that counts as AB here.
            item = Item("message", task.name, fields)
            texts = [[render(task, each, item, order).text for order in rule.orders]
                     for each in templates]  # fmt: skip
            rendered.append(texts)
        # Fields can be split in two ways that give the same prompts.
        if any(other != rendered[0] for other in rendered):
            return _AMBIGUOUS
        requests = tuple(
            tuple(Request(prompt_id(text), text, tuple(each.label_map), request.repeat)
                  for text in row)
            for each, row in zip(templates, rendered[0], strict=True)
        )  # fmt: skip
        names = tuple(each.template_id for each in templates)
        if names != rule.wordings:
            offsets = {name: rule.offsets_for(name) for name in names} if rule.offsets else {}
            rule = replace(rule, wordings=names, offsets=offsets)
        return Members(requests, templates, template, rule)

    def _taken_apart(self, request: Request) -> tuple[Template, list[dict[str, str]]] | str:
        """The template of a message and the item's fields in it, in every way they can be split."""
        if (fields := self._as_json(request.text)) is not None:
            own = (self.stabilised.base, *self.by_id.values())
            return next(t for t in own if set(t.label_map) == set(request.options)), [fields]
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
                return "a wording that the file does not have must allow the task's own labels"
            # As a field, so that braces in the wording are not read as placeholders.
            name = f"wording {prompt_id(wording)}"
            template = replace(template, template_id=name, text=f"{{{_WORDING}}}")
            return template, [{**reading, _WORDING: wording} for reading in readings]
        return (
            f"the message is not laid out as the templates of {self.stabilised.where}; judge items "
            f"of the task {self.stabilised.entry.task.name}"
        )

    def _as_json(self, text: str) -> dict[str, str] | None:
        """The fields of a message of :meth:`of_item` in JSON; None for any other message."""
        if not text.startswith(_AS_JSON):
            return None
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return None
        fields = held[_ITEM] if held.keys() == {_ITEM} else None
        if not isinstance(fields, dict) or not fields.keys() >= self.stabilised.fields:
            return None
        return {name: str(value) for name, value in fields.items()}

    @cached_property
    def _patterns(self) -> list[tuple[Template, tuple[LayoutPattern, LayoutPattern]]]:
        """The file's wordings as patterns, then their layouts with any wording.

        Each is there twice, matching as little and as much as possible per field: where the two
        differ, a field's text looks like the layout.
        """
        own = [(template, patterns_of(template)) for template in self.by_id.values()]
        layouts = {t.layout: t for t in self.by_id.values() if not t.inverted}
        return own + [(t, layout_patterns(layout)) for layout, t in layouts.items()]


class StabilisedJudge:
    """A judge that asks another one several prompts per message and returns one verdict.

    A rule of one wording is applied to the message's own wording; a panel asks its own wordings,
    whatever the message's. A message is taken apart by the layout of the file's templates.

    Args:
        stabilised: the judge's file, as read.
        inner: the judge that is asked.
        same_judge: refuse an inner judge whose name (with its fingerprint) is not the file's.

    Raises:
        JudgeSenseError: the inner judge is another one, or gives no log-probabilities where the
            rule needs them.
    """

    def __init__(self, stabilised: Stabilised, inner: Judge, *, same_judge: bool = True) -> None:
        wanted = str(stabilised.judge.get("name", inner.name))
        if inner.name != wanted:
            differs = (
                f"{stabilised.where} was made with the judge {wanted}, and this is {inner.name}: "
                "its weights, dtype, chat template, system prompt or decoding differ"
            )
            if same_judge:
                raise JudgeSenseError(f"{differs}. Use the same ones, or stabilise this judge")
            log.warning("%s; the file's card and expected accuracy are not about it", differs)
        if stabilised.scoring not in inner.scorings and stabilised.rule.remedy == AS_ASKED:
            (offered, *_) = sorted(inner.scorings)
            raise JudgeSenseError(
                f"judge {inner.name} has no {stabilised.scoring} scoring; set --scoring {offered}"
            )
        if stabilised.scoring not in inner.scorings:
            raise JudgeSenseError(
                f"{stabilised.where} needs {stabilised.scoring} scoring, and judge {inner.name} "
                f"offers {', '.join(sorted(inner.scorings))}"
            )
        self.stabilised, self.inner = stabilised, inner
        self._messages = Messages(stabilised)
        # A verdict read from probabilities can also be given as text.
        self.scorings = frozenset({stabilised.scoring, "generate"})
        digest = hashlib.sha256(f"{inner.name} {stabilised.digest}".encode()).hexdigest()[:8]
        changed = stabilised.rule.remedy != AS_ASKED
        self.name = f"{inner.name.split('@')[0]}-stabilised@{digest}" if changed else inner.name

    def describe(self) -> Mapping[str, Any]:
        """The rule, the wordings, and the judge that is asked."""
        return {
            "stabilised": self.stabilised.rule.to_dict(),
            "wordings": {t.template_id: t.text for t in self.stabilised.entry.templates},
            "judge": dict(self.inner.describe()),
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches in which messages that share prompts (both orders of an item) lie together."""
        first_with: dict[str, int] = {}
        first = []
        for number, request in enumerate(requests):
            keys = [member.prompt_id for member in self.prompts([request])]
            at = min((first_with[key] for key in keys if key in first_with), default=number)
            for key in keys:
                first_with.setdefault(key, at)
            first.append(at)
        order = sorted(range(len(first)), key=lambda number: (first[number], number))
        return [order[at : at + _AT_ONCE] for at in range(0, len(order), _AT_ONCE)]

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """One verdict per message; its tokens and cost are those of all its prompts."""
        for index, requests in batches:
            replies = self._ask(self.prompts(requests), self.stabilised.scoring)
            # Without options it is no verdict: a request for a paraphrase, say.
            plain = [request for request in requests if not request.options]
            replies |= self._ask(plain, "generate")
            counted: set[str] = set()
            yield index, [self._answer(request, replies, counted) for request in requests]

    def _ask(self, prompts: Sequence[Request], scoring: str) -> dict[str, Answer]:
        """The answers of the judge that is asked."""
        answers = ask_all(self.inner, prompts, {scoring}) if prompts else []
        return dict(zip(map(_key, prompts), answers, strict=True))

    def close(self) -> None:
        """Free the judge that is asked."""
        self.inner.close()

    def prompts(self, requests: Sequence[Request]) -> list[Request]:
        """The distinct prompts behind some messages."""
        distinct: dict[str, Request] = {}
        for request in requests:
            members = self._messages.members(request)
            if isinstance(members, Members):
                distinct.update(members.by_key)
        return list(distinct.values())

    def _answer(self, request: Request, replies: Mapping[str, Answer], counted: set[str]) -> Answer:
        """The verdict on a message from the answers behind it; ``counted`` are the prompts whose
        cost is in another message's verdict."""
        if not request.options:
            return replies[_key(request)]
        members = self._messages.members(request)
        if isinstance(members, str):
            return Answer(error=members)
        rows = [[replies[_key(member)] for member in row] for row in members.requests]
        answers = [answer for row in rows for answer in row]
        fresh = [replies[key] for key in members.by_key if key not in counted]
        counted.update(members.by_key)
        common = {
            **summed(fresh, "input_tokens", "output_tokens", "cost_usd"),
            **summed(answers, "latency_s"),
        }
        if failed := [answer.error for answer in answers if answer.error is not None]:
            return Answer(error=failed[0], **common)
        if all(answer.refused for answer in answers):
            return Answer(refused=True, **common)
        logprobs = _logprobs(rows, members, self.stabilised.rule)
        decided = members.rule.decide(logprobs)
        values = _as_options(decided, members.template, members.rule.labels, request.options)
        if values is None:
            return Answer(text="", **common)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        text = ""
        if decided.codes[0] >= 0:
            text = request.options[int(np.argmax(values))]
            if members.rule.read == "vote" and len(answers) > 1:
                text += _votes(decided, logprobs, members)
        return Answer(
            text=text,
            option_logprobs=values if "options" in self.scorings else None,
            option_mass=float(np.mean(masses)) if masses else None,
            **common,
        )


def summed(answers: Iterable[Answer], *names: str) -> dict[str, Any]:
    """Sums of fields over answers; None where no answer has the field."""
    rows = list(answers)
    known = {name: [v for row in rows if (v := getattr(row, name)) is not None] for name in names}
    return {name: sum(values) if values else None for name, values in known.items()}


def _logprobs(rows: list[list[Answer]], members: Members, rule: Rule) -> np.ndarray:
    """The answers as log-probabilities of the labels as shown, shape (1, wordings, orders, L)."""
    values = np.full((1, len(rows), len(rule.orders), len(rule.labels)), np.nan)
    for w, (row, template) in enumerate(zip(rows, members.templates, strict=True)):
        options = tuple(template.label_map)
        for o, answer in enumerate(row):
            if rule.read == "vote" and not answer.refused:
                raw = parse(answer.text or "", options, template.aliases)
                values[0, w, o] = label_logprobs(template.label_map, rule.labels, verdict=raw)
            elif rule.read != "vote" and answer.option_logprobs is not None:
                shown = dict(zip(options, answer.option_logprobs, strict=True))
                values[0, w, o] = label_logprobs(template.label_map, rule.labels, shown)
    return values


def _as_options(
    decided: Decided, template: Template, labels: tuple[str, ...], options: tuple[str, ...]
) -> tuple[float, ...] | None:
    """The labels' log-probabilities as those of the message's options; None if undecided.

    Several options of one label share its probability; the runner takes the first of a tie.
    """
    values = decided.logprobs[0]
    if np.isnan(values).any():
        return None
    sharing = Counter(template.label_map.values())
    by_option = []
    for option in options:
        label = template.label_map[option]
        by_option.append(float(values[labels.index(label)] - np.log(sharing[label])))
    return tuple(max(value, -700.0) for value in by_option)


def _votes(decided: Decided, logprobs: np.ndarray, members: Members) -> str:
    """The readable votes by option, in a verdict's text: what :func:`margin_of_votes` reads."""
    readable = int((~np.isnan(logprobs[..., 0])).sum())
    counts = np.rint(decided.shares[0] * readable).astype(int)
    labels, options = members.rule.labels, members.template.label_map.items()
    listed = [f"{option} {counts[labels.index(label)]}" for option, label in options]
    return f"\n\nvotes: {', '.join(listed)}"


def margin_of_votes(text: str, template: Template) -> float:
    """The share of votes between the two best labels of a vote's text; 1 for a single verdict.

    >>> one = Template("r1", "relevance", "Which?", "{instruction}", {"A": "A", "B": "B"})
    >>> margin_of_votes("A\\n\\nvotes: A 2, B 1", one).__round__(3), margin_of_votes("A", one)
    (0.333, 1.0)
    """
    _, found, listed = text.partition("\n\nvotes: ")
    if not found:
        return 1.0
    counts: dict[str, int] = {}
    for option, label in template.label_map.items():
        if match := re.search(rf"(?:^|, ){re.escape(option)} (\d+)(?=, |$)", listed):
            counts[label] = int(match.group(1))
    ranked = sorted(counts.values(), reverse=True)
    return (ranked[0] - ranked[1]) / sum(ranked)
