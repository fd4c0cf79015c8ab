"""A stabilised judge as a judge: it takes a message apart, asks the rule's prompts, and decides.

It needs no more than the messages, so it runs wherever a judge does: in any engine, in Ray's
actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item, Template, prompt_id, render
from judgesense.trust.rules import AS_ASKED, Decided, Rule
from local_judges.parsing import parse
from local_judges.protocol import Answer, Budgeted, Judge, Request
from local_judges.stabilised_file import Stabilised

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Messages per batch: their prompts are asked together."""


_WORDING = "_wording"
"""The field that holds a wording which the file does not have."""


@dataclass(frozen=True)
class _Asked:
    """What one message stands for: the requests behind its verdict, by wording and order."""

    members: tuple[tuple[Request, ...], ...]
    templates: tuple[Template, ...]
    template: Template
    rule: Rule


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
        scoring = "options" if stabilised.rule.needs_probabilities else "generate"
        if scoring not in inner.scorings:
            raise JudgeSenseError(
                f"{stabilised.where} needs {scoring} scoring, and judge {inner.name} offers "
                f"{', '.join(sorted(inner.scorings))}"
            )
        self.stabilised, self.inner = stabilised, inner
        self.scorings = frozenset({scoring})
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
        place: dict[str, int] = {}
        first = []
        for number, request in enumerate(requests):
            keys = [member.prompt_id for member in self._prompts([request])]
            at = min((place[key] for key in keys if key in place), default=number)
            for key in keys:
                place.setdefault(key, at)
            first.append(at)
        order = sorted(range(len(first)), key=lambda number: (first[number], number))
        return [order[at : at + _AT_ONCE] for at in range(0, len(order), _AT_ONCE)]

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """One verdict per message; its tokens and cost are those of all its prompts."""
        for index, requests in batches:
            prompts = self._prompts(requests)
            plan = self.inner.plan(prompts, self.scorings)
            asked = ((n, [prompts[at] for at in batch]) for n, batch in enumerate(plan))
            told: dict[str, Answer] = {}
            for number, answers in self.inner.judge(asked, self.scorings):
                for at, answer in zip(plan[number], answers, strict=True):
                    told[_key(prompts[at])] = answer
            counted: set[str] = set()
            yield index, [self._answer(request, told, counted) for request in requests]

    def close(self) -> None:
        """Free the judge that is asked."""
        self.inner.close()

    def _prompts(self, requests: Sequence[Request]) -> list[Request]:
        """The distinct prompts behind some messages."""
        found: dict[str, Request] = {}
        for request in requests:
            asked = self.asked(request)
            if isinstance(asked, _Asked):
                found.update((_key(m), m) for row in asked.members for m in row)
        return list(found.values())

    def asked(self, request: Request) -> _Asked | str:
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
        template, fields = taken
        templates: tuple[Template, ...] = (template,)
        if len(rule.wordings) > 1:
            by_id = {t.template_id: t for t in self.stabilised.entry.templates}
            templates = tuple(by_id[wording] for wording in rule.wordings)
            shown = frozenset().union(*(own.placeholders for own in templates))
            if lacking := sorted(shown - set(fields)):
                return f"the message does not show {lacking[0]}, which the panel's wordings show"
        # The message shows its options in the order that counts as AB here.
        item = Item("message", task.name, fields)
        members = tuple(
            tuple(
                Request(prompt_id(text), text, tuple(own.label_map), request.repeat)
                for order in rule.orders
                for text in [render(task, own, item, order).text]
            )
            for own in templates
        )
        return _Asked(members, templates, template, self._rule_for(templates))

    def _rule_for(self, templates: Sequence[Template]) -> Rule:
        rule = self.stabilised.rule
        names = tuple(template.template_id for template in templates)
        if names == rule.wordings:
            return rule
        offsets = {name: rule.offsets_for(name) for name in names} if rule.offsets else {}
        return Rule(rule.remedy, names, rule.orders, rule.labels, rule.read, offsets)

    def _taken(self, request: Request) -> tuple[Template, dict[str, str]] | str:
        """The template of a message and the item's fields in it."""
        for template, patterns in self._patterns:
            found = [pattern.fullmatch(request.text) for pattern in patterns]
            if found[0] is None or set(request.options) != set(template.label_map):
                continue
            own = [match.groupdict() for match in found if match is not None]
            instruction = own[0].pop("instruction", None)
            if instruction is not None and own[1].pop("instruction", None) != instruction:
                return _AMBIGUOUS
            if own[0] != own[1]:
                return _AMBIGUOUS
            if instruction is not None:
                if set(request.options) != set(template.label_map.values()):
                    return "a wording that the file does not have must allow the task's own labels"
                # As a field, so that braces in the wording are not read as placeholders.
                own[0][_WORDING] = instruction
                name = f"wording {prompt_id(instruction)}"
                template = replace(template, template_id=name, text=f"{{{_WORDING}}}")
            return template, own[0]
        return (
            f"the message is not laid out as the templates of {self.stabilised.where}; judge items "
            f"of the task {self.stabilised.entry.task.name}"
        )

    @cached_property
    def _patterns(self) -> list[tuple[Template, tuple[re.Pattern[str], re.Pattern[str]]]]:
        """The file's wordings as patterns, then their layouts with any wording.

        Each is there twice, matching as little and as much as possible per field: where the two
        differ, a field's text looks like the layout, and the message cannot be taken apart.
        """
        found = [
            (t, _both_patterns(t.layout.replace("{instruction}", t.text)))
            for t in self.stabilised.entry.templates
        ]
        layouts = {t.layout: t for t in self.stabilised.entry.templates if not t.inverted}
        return found + [(t, _both_patterns(layout)) for layout, t in layouts.items()]

    def _answer(self, request: Request, told: Mapping[str, Answer], counted: set[str]) -> Answer:
        asked = self.asked(request)
        if isinstance(asked, str):
            return Answer(error=asked)
        rows = [[told[_key(member)] for member in row] for row in asked.members]
        answers = [answer for row in rows for answer in row]
        # Several messages share prompts: each prompt's cost counts once.
        new = {_key(m): told[_key(m)] for row in asked.members for m in row}
        fresh = [answer for key, answer in new.items() if key not in counted]
        counted.update(new)
        costs = [answer.cost_usd for answer in fresh if answer.cost_usd is not None]
        common: dict[str, Any] = {
            "input_tokens": sum(answer.input_tokens or 0 for answer in fresh),
            "output_tokens": sum(answer.output_tokens or 0 for answer in fresh),
            "latency_s": sum(answer.latency_s or 0.0 for answer in answers),
            "cost_usd": sum(costs) if costs else None,
        }
        if failed := [answer.error for answer in answers if answer.error is not None]:
            return Answer(error=failed[0], **common)
        if all(answer.refused for answer in answers):
            return Answer(refused=True, **common)
        decided = asked.rule.decide(_told(rows, asked, self.stabilised.rule))
        own = _as_raw(decided, asked.template, self.stabilised.rule.labels, request.options)
        if own is None:
            return Answer(text="", **common)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        return Answer(
            text=request.options[int(np.argmax(own))] if decided.codes[0] >= 0 else "",
            option_logprobs=own if "options" in self.scorings else None,
            option_mass=float(np.mean(masses)) if masses else None,
            **common,
        )


class BudgetedStabilisedJudge(StabilisedJudge):
    """A stabilised judge whose inner judge costs money; the budget counts all prompts."""

    inner: Any

    @property
    def spent(self) -> float:
        """US dollars spent so far."""
        return float(self.inner.spent)

    @spent.setter
    def spent(self, value: float) -> None:
        self.inner.spent = value

    @property
    def price(self) -> Any:
        """The inner judge's price."""
        return getattr(self.inner, "price", None)

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The highest possible cost of these messages in US dollars; None without a price."""
        found: float | None = self.inner.estimate(self._prompts(requests))
        return found

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why the budget does not allow these messages; None if it does."""
        found: str | None = self.inner.admit(self._prompts(requests))
        return found


def stabilised_judge(
    stabilised: Stabilised, inner: Judge, *, same_judge: bool = True
) -> StabilisedJudge:
    """The stabilised judge that asks this one; with a budget if it has one."""
    kind = BudgetedStabilisedJudge if isinstance(inner, Budgeted) else StabilisedJudge
    return kind(stabilised, inner, same_judge=same_judge)


_AMBIGUOUS = (
    "a field of the item contains text that looks like the layout, so the message cannot be taken "
    "apart; change that text"
)


def _key(request: Request) -> str:
    return f"{request.prompt_id} {request.options} {request.repeat}"


def _both_patterns(whole: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    parts = re.split(r"\{(\w+)\}", whole)
    made = []
    for much in ("*?", "*"):
        seen: set[str] = set()
        pattern = re.escape(parts[0])
        for name, literal in zip(parts[1::2], parts[2::2], strict=True):
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.{much})"
            pattern += re.escape(literal)
            seen.add(name)
        made.append(re.compile(pattern, re.DOTALL))
    return made[0], made[1]


def _told(rows: list[list[Answer]], asked: _Asked, rule: Rule) -> np.ndarray:
    """The answers as log-probabilities of the labels as shown, shape (1, wordings, orders, L)."""
    told = np.full((1, len(rows), len(rule.orders), len(rule.labels)), np.nan)
    for w, (row, template) in enumerate(zip(rows, asked.templates, strict=True)):
        options = tuple(template.label_map)
        for o, answer in enumerate(row):
            if rule.read == "vote":
                said = template.label_map.get(parse(answer.text or "", options))
                if said is not None and not answer.refused:
                    told[0, w, o] = -np.inf
                    told[0, w, o, rule.labels.index(said)] = 0.0
            elif answer.option_logprobs is not None:
                shares = np.zeros(len(rule.labels))
                values = np.array(answer.option_logprobs)
                for option, share in zip(options, np.exp(values - values.max()), strict=True):
                    shares[rule.labels.index(template.label_map[option])] += share
                with np.errstate(divide="ignore"):
                    told[0, w, o] = np.log(shares)
    return told


def _as_raw(
    decided: Decided, template: Template, labels: tuple[str, ...], options: tuple[str, ...]
) -> tuple[float, ...] | None:
    """The labels' log-probabilities as those of the message's options; None if undecided.

    Several options of one label share its probability; the runner takes the first of a tie.
    """
    values = decided.logprobs[0]
    if np.isnan(values).any():
        return None
    count: dict[str, int] = {}
    for label in template.label_map.values():
        count[label] = count.get(label, 0) + 1
    found = []
    for option in options:
        label = template.label_map[option]
        found.append(float(values[labels.index(label)] - np.log(count[label])))
    return tuple(max(value, -700.0) for value in found)
