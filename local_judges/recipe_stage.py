"""One judge of a recipe: its prompts for a message, and the verdict that their answers give."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.log.array import label_logprobs
from judgesense.recipes.ablation import bounded
from judgesense.recipes.recipe import AS_ASKED, Recipe, RecipeVerdicts
from judgesense.statistics.arrays import Floats
from judgesense.tasks import Template
from judgesense_dataset.reply_labels import field_to_read
from local_judges.improved_judge import ImprovedJudge
from local_judges.journal import Journal, JournalWatch
from local_judges.messages import Members, Messages, request_key
from local_judges.protocol import Answer, Budgeted, Judge, Request, RunContext, Watched
from local_judges.rows import read_reply
from local_judges.runner import ask_all
from local_judges.votes import first_reason

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageAnswer:
    """The answer of one judge, or of several together, to a message.

    ``answer`` has the cost, and the reason for a missing verdict; ``verdict`` is None where none
    could be read; ``votes`` is the number of votes behind it, 0 without a vote; ``template`` is the
    message's template; ``certificate`` is that of `judgesense.recipes.ablation`.
    """

    answer: Answer
    verdict: RecipeVerdicts | None = None
    template: Template | None = None
    votes: int = 0
    certificate: str | None = None


class Stage:
    """One judge of a recipe, which is asked several prompts per message and gives one verdict.

    A recipe of one wording is applied to the message's own wording; a panel asks its own wordings,
    whatever the message's. A message is split by the layouts of the file's templates.
    """

    def __init__(self, improved: ImprovedJudge, place: int, inner: Judge, same_judge: bool) -> None:
        recipe = improved.recipe.leaves[place]
        expected = str(improved.judges[place].get("name", inner.name))
        if inner.name != expected:
            difference = (
                f"{improved.where} was made with the judge {expected}, but this is {inner.name}: "
                "its weights, dtype, chat template, system prompt or decoding differ"
            )
            if same_judge:
                raise JudgeSenseError(f"{difference}. Use {expected}, or improve this judge")
            log.warning("%s; the file's card and expected accuracy do not apply", difference)
        is_as_asked = recipe.name == AS_ASKED
        if improved.scoring not in inner.scorings:
            offered = sorted(inner.scorings)
            if is_as_asked:
                raise JudgeSenseError(
                    f"judge {inner.name} has no {improved.scoring} scoring; use --scoring "
                    f"{offered[0]}"
                )
            advice = "; without ablated, ask it in both orders" if recipe.ablated else ""
            raise JudgeSenseError(
                f"{improved.where} needs {improved.scoring} scoring, but judge {inner.name} "
                f"offers {', '.join(offered)}{advice}"
            )
        self.recipe, self.inner, self.scoring = recipe, inner, improved.scoring
        self.messages = Messages(improved, recipe)
        self._part = f"part-asked-{place}-{os.environ.get('RANK', '0')}"
        self._known: Mapping[str, Answer] = {}
        self._watch: JournalWatch | None = None
        digest = hashlib.sha256(f"{inner.name} {improved.digests[place]}".encode()).hexdigest()[:8]
        # The word of earlier versions: the names of judges in their logs stay what they are.
        self.name = inner.name if is_as_asked else f"{inner.name.split('@')[0]}-stabilised@{digest}"

    def describe(self) -> dict[str, Any]:
        """The recipe, the wordings, and the judge that is asked."""
        templates = self.messages.by_id.values()
        return {
            "stabilised": self.recipe.to_dict(),
            "wordings": {template.template_id: template.text for template in templates},
            "judge": dict(self.inner.describe()),
        }

    def prompts(self, requests: Iterable[Request]) -> list[Request]:
        """The distinct prompts behind some messages."""
        by_key: dict[str, Request] = {}
        for request in requests:
            members = self.messages.members(request)
            if isinstance(members, Members):
                by_key.update(members.by_key)
        return list(by_key.values())

    @contextmanager
    def keeping(self, context: RunContext | None) -> Iterator[Callable[[], None]]:
        """Keep the answers to single prompts in a run's folder, and use those of an earlier start.

        Yields the function that drops the journal, to be called once the verdicts are kept.
        """
        if context is None or not isinstance(self.inner, Watched):
            yield lambda: None
            return
        with Journal(context.folder, self.inner.name, [self.scoring]).open() as journal:
            earlier = journal.read(self._part)
            self._known, self._watch = earlier.answers, JournalWatch(journal, lambda _: self._part)
            if isinstance(self.inner, Budgeted):
                costs = (answer.cost_usd or 0.0 for answer in earlier.answers.values())
                self.inner.spent += earlier.lost_usd + sum(costs)
            yield lambda: journal.drop(self._part)
            self._known, self._watch = {}, None

    def ask(self, requests: Sequence[Request]) -> list[StageAnswer]:
        """One verdict per message; its tokens and cost are those of all its prompts."""
        # A request without options asks for no verdict, but for a paraphrase, say.
        text_requests = [request for request in requests if not request.options]
        replies: dict[str, Answer] = {}
        if prompts := self.prompts(requests):
            # The second answer to a prompt must not be the first one.
            is_first = prompts[0].repeat == 0
            known, watch = (self._known, self._watch) if is_first else ({}, None)
            answers = ask_all(self.inner, prompts, {self.scoring}, known=known, watch=watch)
            replies |= zip(map(request_key, prompts), answers, strict=True)
        if text_requests:
            answers = ask_all(self.inner, text_requests, {"generate"})
            replies |= zip(map(request_key, text_requests), answers, strict=True)
        counted: set[str] = set()
        return [self._answer(request, replies, counted) for request in requests]

    def _answer(
        self, request: Request, replies: Mapping[str, Answer], counted: set[str]
    ) -> StageAnswer:
        """The verdict on a message from the answers behind it; ``counted`` are the prompts whose
        cost is in another message's verdict."""
        if not request.options:
            return StageAnswer(replies[request_key(request)])
        members = self.messages.members(request)
        if isinstance(members, str):
            return StageAnswer(Answer(error=members))
        grid = [
            [[replies[request_key(prompt)] for prompt in texts] for texts in row]
            for row in members.requests
        ]
        answers = [answer for row in grid for texts in row for answer in texts]
        uncounted = [replies[key] for key in members.by_key if key not in counted]
        counted.update(members.by_key)
        costs = {
            **sum_fields(uncounted, "input_tokens", "output_tokens", "cost_usd"),
            **sum_fields(answers, "latency_s"),
        }
        if errors := [answer.error for answer in answers if answer.error is not None]:
            return StageAnswer(Answer(error=errors[0], **costs))
        if all(answer.refused for answer in answers):
            return StageAnswer(Answer(refused=True, **costs))
        logprobs = _label_logprobs(grid, members)
        certificate = None
        if members.recipe.ablated:
            verdict, certificate = bounded(members.recipe, logprobs, members.wins)
        else:
            logprob_array = np.stack([np.stack([texts[0] for texts in row]) for row in logprobs])
            verdict = members.recipe.verdicts(logprob_array[None])
        if np.isnan(verdict.logprobs).any():
            return StageAnswer(Answer(text="", **costs), template=members.template)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        mass = float(np.mean(masses)) if masses else None
        answer = Answer("", option_mass=mass, reason=first_reason(grid, logprobs, verdict), **costs)
        is_vote = self.recipe.read == "vote" and len(answers) > 1
        votes = sum(not np.isnan(texts[0, 0]) for row in logprobs for texts in row)
        return StageAnswer(answer, verdict, members.template, votes if is_vote else 0, certificate)


def sum_fields(answers: Iterable[Answer], *names: str) -> dict[str, Any]:
    """Sums of fields over answers; None where no answer has the field."""
    records = list(answers)
    sums: dict[str, Any] = {}
    for name in names:
        values = [v for record in records if (v := getattr(record, name)) is not None]
        sums[name] = sum(values) if values else None
    return sums


def _label_logprobs(grid: list[list[list[Answer]]], members: Members) -> list[list[Floats]]:
    """The answers as log-probabilities of the labels as shown, by wording and order: (texts, L)."""
    recipe: Recipe = members.recipe
    return [
        [np.stack([_answer_logprobs(a, template, recipe) for a in texts]) for texts in row]
        for row, template in zip(grid, members.templates, strict=True)
    ]


def _answer_logprobs(answer: Answer, template: Template, recipe: Recipe) -> Floats:
    """One answer as log-probabilities of the labels, NaN where nothing was read."""
    options = tuple(template.label_map)
    if recipe.read == "vote" and not answer.refused:
        raw = read_reply(answer.text or "", options, template.aliases, field_to_read(template))
        return label_logprobs(template.label_map, recipe.labels, verdict=raw)
    if recipe.read != "vote" and answer.option_logprobs is not None:
        logprobs = dict(zip(options, answer.option_logprobs, strict=True))
        return label_logprobs(template.label_map, recipe.labels, logprobs)
    return np.full(len(recipe.labels), np.nan)
