"""What a request to ``judgesense serve`` asks of a judge, and what its answer says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgesense.answers.fields import reasoning_in
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.item_verdicts import verdict_in
from judgesense.pipeline.verdict_files import ItemVerdict
from judgesense.pipeline.verdicts import (
    ItemJudge,
    load_judge,
    scoring_of,
    signature_of,
)
from judgesense.recipes.recipe import AS_ASKED
from judgesense.tasks import Item, Task, Template, prompt_id, render
from judgesense_dataset.recognition import known_tasks, recognise
from judgesense_dataset.templates import TaskTemplates, layout_patterns
from local_judges import registry
from local_judges.api.systemone import Question, plain
from local_judges.improved_judge import ImprovedJudge
from local_judges.messages import Members, Messages
from local_judges.protocol import Answer, Judge, Request
from local_judges.rows import decide
from local_judges.runner import ask_all

NAMES = {
    "question": ("input", "inputs", "query", "prompt"),
    "query": ("input", "inputs", "question", "prompt"),
    "response": ("output", "outputs", "actual_output", "answer", "completion"),
    "summary": ("output", "outputs", "actual_output"),
}
"""The names that tools give to a field of an item."""

_WORDING = "_wording"


@dataclass(frozen=True)
class Ask:
    """One message for a judge.

    ``read`` has the template that the message's options belong to and the recipe that decides; it
    is None for a message that is asked as it was sent. ``template`` is that of a client's own
    prompt, in whose words the verdict is given; ``is_edited`` says that its wording is none of the
    file's.
    """

    request: Request
    judge: Judge
    scoring: str
    item: Item
    read: ImprovedJudge | None = None
    template: Template | None = None
    is_edited: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a message.

    ``options`` are the probabilities (or shares of votes) of the message's own options,
    ``probabilities`` those of the labels, ``votes`` the wordings for each label where they are read
    as text; None where there are none.
    ``judged`` is "as the file says", "as asked" (in one wording, once), "in its own wording" (one
    that the file does not have) or "as sent".
    """

    verdict: ItemVerdict
    raw: str
    options: Mapping[str, float] | None
    probabilities: Mapping[str, float] | None
    votes: Mapping[str, int] | None
    answer: Answer
    judged: str

    @property
    def reason(self) -> str | None:
        """What the judge wrote to explain its verdict; None where it wrote nothing."""
        return self.verdict.reasoning

    @property
    def note(self) -> str:
        """One line: the verdict, its figures, and whether a person should look."""
        return self.verdict.note


class ServedJudge:
    """A loaded judge behind a server.

    The file of a judge, or a judge with a task, answers for one task. A plain judge answers for
    the tasks with templates of JudgeSense's own, and any other question as it is sent.

    Args:
        judges: a judge of items per task.
        name: the model's name for clients.
        plain: the judge of prompts that a message is sent to as it is.
        scoring: how it is asked; a typed question asks for probabilities where it gives them.
    """

    def __init__(
        self,
        judges: Mapping[str, ItemJudge],
        name: str,
        plain: Judge,
        scoring: str = "generate",
    ) -> None:
        self.judges, self.name, self.plain = dict(judges), name, plain
        self.scoring = scoring
        self._messages = {task: Messages(each.improved) for task, each in self.judges.items()}
        self.one = next(iter(self.judges)) if len(self.judges) == 1 else None

    def signature(self, task: str) -> str:
        """What fixes the verdicts on a task, in one line; "" for a message asked as it was sent."""
        if task not in self.judges:
            return ""
        return signature_of(self.judges[task].improved, self.judges[task].judge.name)

    def of_item(self, given: Mapping[str, Any], task: str | None, number: int = 1) -> Ask:
        """An item's fields as a message. Raises JudgeSenseError naming a field that is missing."""
        task = task or self.one
        if task not in self.judges:
            what = f"unknown task {task!r}" if task else 'the field "task" is missing'
            raise JudgeSenseError(f"{what}; choose one of {', '.join(self.judges)}")
        own = self.judges[task].improved
        fields = fields_in(given, own.fields)
        if lacking := sorted(own.fields - fields.keys()):
            raise JudgeSenseError(
                f"item {number} has no {lacking[0]!r}, which the wordings show; it has "
                f"{', '.join(map(str, given)) or 'no fields'}"
            )
        item = Item(str(given.get("item_id") or f"{task}-{number}"), task, fields)
        message = self._messages[task].of_item(item)
        request = Request(message.prompt_id, message.text, tuple(own.base.label_map))
        return Ask(request, self.judges[task].judge, own.scoring, item, own)

    def of_message(self, text: str, system: str = "") -> tuple[Ask, str]:
        """A message, and the wording in it: "" if it is asked as it was sent.

        The system message counts only where the user's message alone is not laid out as the
        templates are.
        """
        # A prompt that a program read from a file may end in a line break, or have Windows' breaks.
        plain_text = text.replace("\r\n", "\n").strip()
        texts = dict.fromkeys([text, plain_text])
        for whole in [*texts, *(f"{system}\n\n{each}" for each in texts if system)]:
            for task, messages in self._messages.items():
                if self.one is None and (known := recognise(task, whole)):
                    options = tuple(known[0].label_map)
                    request = Request(prompt_id(whole), whole, options)
                    return self._as_sent(request, self.scoring), known[0].text
                for options in dict.fromkeys(tuple(t.label_map) for t in messages.by_id.values()):
                    request = Request(prompt_id(whole), whole, options)
                    members = messages.members(request) if self.one else ""
                    if isinstance(members, Members):
                        wording = _wording(whole, members.template)
                        if (fields := messages.fields_of(request)) is None:
                            return self._ask(request, task, members), wording
                        item = self.of_item(fields, task)
                        return replace(item, template=members.template), wording
        labels = self.judges[self.one].improved.entry.task.labels if self.one else ()
        request = Request(prompt_id(text), text, labels, system=system)
        return self._as_sent(request, self.scoring if labels else "generate"), ""

    def of_question(self, state: Any, question: Question) -> Ask:
        """A typed question about a state: in the layout of a task whose fields the state has and
        whose labels the question offers, else as text. A task's own wording says what its labels
        mean: descriptions in the criteria are shown in a text alone.

        Raises JudgeSenseError if the only task that is served has other labels or fields.
        """
        wording = plain(question.instructions or "")
        for task, judge in self.judges.items():
            own = judge.improved
            labels, fields = question.labels(own.entry.task), fields_in(state, own.fields)
            if labels is None:
                continue
            texts = [f"{wording}{space}{plain(state)}" for space in ("\n\n", "\n") if wording]
            if fields.keys() == own.fields:
                # As a field, so that braces in the wording are not read as placeholders.
                template = replace(own.base, text=f"{{{_WORDING}}}") if wording else own.base
                item = Item("state", task, {**fields, _WORDING: wording})
                order = own.entry.task.orders[0]
                texts.insert(0, render(own.entry.task, template, item, order).text)
            for text in texts:
                request = Request(prompt_id(text), text, labels)
                members = self._messages[task].members(request)
                if isinstance(members, Members):
                    return self._ask(request, task, members)
        if self.one:
            own = self.judges[self.one].improved
            raise JudgeSenseError(
                f"this server judges only {self.one}; ask for {', '.join(own.entry.task.labels)}, "
                f"with a state that has the fields {', '.join(sorted(own.fields))}"
            )
        text = question.text(state)
        request = Request(prompt_id(text), text, question.options)
        return self._as_sent(request, "options" if question.options else "generate")

    def _ask(self, request: Request, task: str, members: Members) -> Ask:
        own, template = self.judges[task].improved, members.template
        part = own.recipe.leaves[0]
        read = replace(
            own,
            judges=own.judges[:1],
            entry=TaskTemplates(own.entry.task, (template,)),
            recipe=replace(part, wordings=(template.template_id,), offsets={}),
            data={"rule": "edited"} if own.edited else {},
        )
        item = Item("message", task, {})
        known = {each.template_id for each in own.entry.templates}
        is_edited = not any(each.template_id in known for each in members.templates)
        judge = self.judges[task].judge
        return Ask(request, judge, own.scoring, item, read, is_edited=is_edited)

    def _as_sent(self, request: Request, scoring: str) -> Ask:
        if scoring not in self.plain.scorings:
            scoring = scoring_of(self.plain)
        if scoring == "options" and not request.options:
            raise JudgeSenseError("the message names no options, but the judge needs them")
        return Ask(request, self.plain, scoring, Item("message", self.one or "any", {}))

    def answer(self, asks: Sequence[Ask]) -> list[Answer]:
        """The answers to some messages: those of a kind together, and each message once."""
        kinds: dict[tuple[int, str], dict[Any, Ask]] = {}
        for ask in asks:
            kinds.setdefault((id(ask.judge), ask.scoring), {})[_key(ask)] = ask
        answers: dict[Any, Answer] = {}
        for kind, distinct in kinds.items():
            requests = [ask.request for ask in distinct.values()]
            judge = next(iter(distinct.values())).judge
            given = ask_all(judge, requests, {kind[1]})
            answers |= {(kind, key): each for key, each in zip(distinct, given, strict=True)}
        return [answers[(id(ask.judge), ask.scoring), _key(ask)] for ask in asks]

    def verdict(self, ask: Ask, answer: Answer) -> Verdict:
        """What the judge's answer to a message says."""
        options, read = ask.request.options, ask.read
        raw = decide(answer, ask.scoring, options) if options or answer.error else answer.text or ""
        shares: dict[str, float] | None = None
        if answer.option_logprobs is not None:
            most = max(answer.option_logprobs)
            weights = [math.exp(value - most) for value in answer.option_logprobs]
            shares = {o: w / sum(weights) for o, w in zip(options, weights, strict=True)}
        if read is None:
            share = shares.get(raw) if shares else None
            ask_person = True if self.one else None
            verdict = ItemVerdict(
                *("message", raw, share, None, None, ask_person, answer.cost_usd, answer.error),
                reasoning=answer.reason or reasoning_in(answer.text or ""),
            )
            return Verdict(verdict, raw, shares, shares, None, answer, "as sent")
        labels = read.base.label_map
        verdict = verdict_in(read, ask.item, answer, options, ask.scoring, ask.judge.name)
        probabilities, votes = None, None
        if shares is not None and read.recipe.read != "expected score":
            probabilities = dict.fromkeys(read.recipe.labels, 0.0)
            for option, share in shares.items():
                probabilities[labels[option]] += share
        if listed := (answer.text or "").partition("\n\nvotes: ")[2]:
            counts = [each.rpartition(" ") for each in listed.split(", ")]
            votes = {labels[option]: int(n) for option, _, n in counts}
            shares = {option: int(n) / sum(votes.values()) for option, _, n in counts}
        raw = decide(answer, ask.scoring, options, read.base.aliases)
        if ask.template is not None:
            words = {label: word for word, label in ask.template.label_map.items()}
            raw = words.get(verdict.verdict, raw)
            named = {words[labels[option]]: share for option, share in (shares or {}).items()}
            shares = named if len(named) == len(shares or {}) and shares else shares
        judged = "as asked" if read.recipe.name == AS_ASKED else "as the file says"
        judged = "in its own wording" if ask.is_edited else judged
        return Verdict(verdict, raw, shares, probabilities, votes, answer, judged)

    def close(self) -> None:
        """Free the judge."""
        (self.judges[self.one].judge if self.one else self.plain).close()

    def task(self, ask: Ask) -> Task | None:
        """The task of a message; None if it is not known."""
        own = self.judges.get(ask.item.task)
        return own.improved.entry.task if own else None


def load_served(judge: Any, **options: Any) -> ServedJudge:
    """A judge's file, or another judge, loaded.

    ``task``, ``wording`` and ``scoring`` among the options are those of `load_judge`.
    """
    if isinstance(judge, (str, Path)) and Path(judge).suffix in (".yaml", ".yml"):
        one = load_judge(judge, **options)
        # What is asked as it was sent goes to the first judge of several.
        plain = one.judge.inner[0]  # type: ignore[attr-defined]
        task, scoring = one.improved.entry.task.name, one.improved.scoring
        return ServedJudge({task: one}, Path(judge).stem, plain, scoring)
    task, wording = options.pop("task", None), options.pop("wording", None)
    scoring = options.pop("scoring", None)
    plain = registry.load_judge(judge, **options)
    own: Any = plain
    scoring = scoring or scoring_of(plain)
    judges = {
        name: load_judge(own, task=name, wording=wording, scoring=scoring)
        for name in ([task] if task else known_tasks())
    }
    return ServedJudge(judges, plain.name.split("@")[0], plain, scoring)


def _key(ask: Ask) -> tuple[Any, ...]:
    return ask.request.text, ask.request.system, ask.request.options


def _wording(text: str, template: Template) -> str:
    """The wording in a message of this template."""
    match = layout_patterns(template.layout)[0].fullmatch(text)
    return match["instruction"] if match else template.text


def fields_in(given: Any, wanted: frozenset[str]) -> dict[str, str]:
    """The wanted fields that a mapping has, also one level down, as text.

    A field is looked for by its own name, then by those that tools use (`NAMES`).

    >>> fields_in({"inputs": {"question": "2+2?"}, "outputs": "4"}, frozenset({"response"}))
    {'response': '4'}
    """
    if not isinstance(given, Mapping):
        return {}
    flat = {
        **{k: v for each in given.values() if isinstance(each, Mapping) for k, v in each.items()},
        **given,
    }
    fields = {}
    for name in sorted(wanted):
        for known in (name, *(n for n in NAMES.get(name, ()) if n not in wanted)):
            if flat.get(known) is not None:
                fields[name] = plain(flat[known])
                break
    return fields
