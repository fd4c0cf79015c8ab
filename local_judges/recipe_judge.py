"""An improved judge as a judge: it asks the prompts of its recipe, and gives one verdict.

It needs no more than the messages, so it runs wherever a judge does: in any engine, in Ray's
actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.log.array import label_logprobs
from judgesense.recipes.ablation import bounded
from judgesense.recipes.recipe import AS_ASKED, TIE, Recipe, RecipeVerdicts, jury
from judgesense.statistics.arrays import Floats
from judgesense.statistics.calibration import log_shares
from judgesense.tasks import Template
from judgesense_dataset.reply_labels import field_to_read
from local_judges.improved_judge import ImprovedJudge
from local_judges.journal import Journal, JournalWatch
from local_judges.messages import Members, Messages, request_key
from local_judges.protocol import Answer, Budgeted, InRun, Judge, Request, RunContext, Watched
from local_judges.rows import read_reply
from local_judges.runner import ask_all
from local_judges.votes import VOTES, first_reason

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Messages per batch: their prompts are asked together."""


@dataclass(frozen=True)
class StageAnswer:
    """What one judge, or several, say of a message.

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
    whatever the message's. A message is taken apart by the layout of the file's templates.
    """

    def __init__(self, improved: ImprovedJudge, place: int, inner: Judge, same_judge: bool) -> None:
        stated, recipe = improved.judges[place], improved.recipe.leaves[place]
        wanted = str(stated.get("name", inner.name))
        if inner.name != wanted:
            differs = (
                f"{improved.where} was made with the judge {wanted}, but this is {inner.name}: "
                "its weights, dtype, chat template, system prompt or decoding differ"
            )
            if same_judge:
                raise JudgeSenseError(f"{differs}. Use {wanted}, or improve this judge")
            log.warning("%s; the file's card and expected accuracy do not apply", differs)
        changed = recipe.name != AS_ASKED
        if improved.scoring not in inner.scorings:
            offered = sorted(inner.scorings)
            raise JudgeSenseError(
                f"{improved.where} needs {improved.scoring} scoring, but judge {inner.name} "
                f"offers {', '.join(offered)}"
                + ("; without ablated, ask it in both orders" if recipe.ablated else "")
                if changed
                else f"judge {inner.name} has no {improved.scoring} scoring; use --scoring "
                f"{offered[0]}"
            )
        self.recipe, self.inner, self.scoring = recipe, inner, improved.scoring
        self.messages = Messages(improved, recipe)
        self._part = f"part-asked-{place}-{os.environ.get('RANK', '0')}"
        self._known: Mapping[str, Answer] = {}
        self._watch: JournalWatch | None = None
        digest = hashlib.sha256(f"{inner.name} {improved.digests[place]}".encode()).hexdigest()[:8]
        # The word of earlier versions: the names of judges in their logs stay what they are.
        self.name = f"{inner.name.split('@')[0]}-stabilised@{digest}" if changed else inner.name

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
        distinct: dict[str, Request] = {}
        for request in requests:
            members = self.messages.members(request)
            if isinstance(members, Members):
                distinct.update(members.by_key)
        return list(distinct.values())

    @contextmanager
    def keeping(self, context: RunContext | None) -> Iterator[Callable[[], None]]:
        """Keep the answers to single prompts in a run's folder, and use those of an earlier start.

        Yields the function to call once the verdicts made of them are kept.
        """
        if context is None or not isinstance(self.inner, Watched):
            yield lambda: None
            return
        with Journal(context.folder, self.inner.name, [self.scoring]).open() as journal:
            kept = journal.read(self._part)
            self._known, self._watch = kept.answers, JournalWatch(journal, lambda _: self._part)
            if isinstance(self.inner, Budgeted):
                costs = (answer.cost_usd or 0.0 for answer in kept.answers.values())
                self.inner.spent += kept.lost_usd + sum(costs)
            yield lambda: journal.drop(self._part)
            self._known, self._watch = {}, None

    def ask(self, requests: Sequence[Request]) -> list[StageAnswer]:
        """One verdict per message; its tokens and cost are those of all its prompts."""
        # Without options it is no verdict: a request for a paraphrase, say.
        plain = [request for request in requests if not request.options]
        replies: dict[str, Answer] = {}
        if prompts := self.prompts(requests):
            # The second answer to a prompt must not be the first one.
            once = prompts[0].repeat == 0
            known, watch = (self._known, self._watch) if once else ({}, None)
            answers = ask_all(self.inner, prompts, {self.scoring}, known=known, watch=watch)
            replies |= zip(map(request_key, prompts), answers, strict=True)
        if plain:
            answers = ask_all(self.inner, plain, {"generate"})
            replies |= zip(map(request_key, plain), answers, strict=True)
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
        rows = [
            [[replies[request_key(prompt)] for prompt in texts] for texts in row]
            for row in members.requests
        ]
        answers = [answer for row in rows for texts in row for answer in texts]
        fresh = [replies[key] for key in members.by_key if key not in counted]
        counted.update(members.by_key)
        common = {
            **_summed(fresh, "input_tokens", "output_tokens", "cost_usd"),
            **_summed(answers, "latency_s"),
        }
        if errors := [answer.error for answer in answers if answer.error is not None]:
            return StageAnswer(Answer(error=errors[0], **common))
        if all(answer.refused for answer in answers):
            return StageAnswer(Answer(refused=True, **common))
        logprobs = _logprobs(rows, members)
        certificate = None
        if members.recipe.ablated:
            verdict, certificate = bounded(members.recipe, logprobs, members.wins)
        else:
            whole = np.stack([np.stack([texts[0] for texts in row]) for row in logprobs])
            verdict = members.recipe.verdicts(whole[None])
        if np.isnan(verdict.logprobs).any():
            return StageAnswer(Answer(text="", **common), template=members.template)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        mass = float(np.mean(masses)) if masses else None
        answer = Answer(
            "", option_mass=mass, reason=first_reason(rows, logprobs, verdict), **common
        )
        several = self.recipe.read == "vote" and len(answers) > 1
        votes = sum(not np.isnan(texts[0, 0]) for row in logprobs for texts in row)
        return StageAnswer(answer, verdict, members.template, votes if several else 0, certificate)


class RecipeJudge:
    """The judge of a file: one, or several that give one verdict on each message.

    In a ``cascade`` the next judge is asked where the one before is less confident than its margin,
    or gives no verdict; in a ``jury`` all are asked, and the mean of their log-odds decides, or the
    majority where they give texts.

    Args:
        improved: the judge's file, as read.
        inner: the judges that are asked, in the file's order.
        same_judge: refuse a judge whose name (with its fingerprint) is not the file's.

    Raises:
        JudgeSenseError: another judge, or another number of judges, than the file's, or one that
            gives no log-probabilities where the recipe needs them.
    """

    def __init__(self, improved: ImprovedJudge, *inner: Judge, same_judge: bool = True) -> None:
        if len(inner) != len(improved.judges):
            raise JudgeSenseError(
                f"{improved.where} asks {len(improved.judges)} judges, got {len(inner)}; "
                "pass them as a list in the file's order"
            )
        self.improved, self.inner = improved, inner
        self._run_context: RunContext | None = None
        self.stages = [
            Stage(improved, place, judge, same_judge) for place, judge in enumerate(inner)
        ]
        # A verdict read from probabilities can also be given as text.
        self.scorings = frozenset({improved.scoring, "generate"})
        self.name = self.stages[0].name
        if combine := improved.recipe.combine:
            names = " ".join(stage.name for stage in self.stages)
            digest = hashlib.sha256(f"{names} {improved.digest}".encode()).hexdigest()[:8]
            self.name = f"{self.name.split('@')[0]}-{combine}@{digest}"

    @property
    def run_context(self) -> RunContext | None:
        """Where the answers to single prompts are kept until the verdict is."""
        return self._run_context

    @run_context.setter
    def run_context(self, context: RunContext | None) -> None:
        self._run_context = context
        for each in self.inner:
            if isinstance(each, InRun):
                each.run_context = context

    def describe(self) -> Mapping[str, Any]:
        """How the judges decide together, and each of them; or the one judge."""
        recipe = self.improved.recipe
        if not recipe.members:
            return self.stages[0].describe()
        return {
            "combine": recipe.combine,
            "margins": list(recipe.margins),
            "judges": [{"name": stage.name, **stage.describe()} for stage in self.stages],
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches in which messages that share prompts (both orders of an item) lie together."""
        first_with: dict[str, int] = {}
        first = []
        for number, request in enumerate(requests):
            keys = [prompt.prompt_id for prompt in self.stages[0].prompts([request])]
            at = min((first_with[key] for key in keys if key in first_with), default=number)
            for key in keys:
                first_with.setdefault(key, at)
            first.append(at)
        order = sorted(range(len(first)), key=lambda number: (first[number], number))
        return [order[at : at + _AT_ONCE] for at in range(0, len(order), _AT_ONCE)]

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """One verdict per message; its tokens and cost are those of all judges asked."""
        with ExitStack() as stack:
            folds = [stack.enter_context(each.keeping(self.run_context)) for each in self.stages]
            for group in self._groups(batches):
                requests = [request for _, batch in group for request in batch]
                if self.improved.recipe.combine == "jury":
                    by_judge = (stage.ask(requests) for stage in self.stages)
                    verdicts = list(map(self._jury, zip(*by_judge, strict=True)))
                else:
                    verdicts = self._cascade(requests)
                answers = map(self._as_answer, requests, verdicts)
                for index, batch in group:
                    yield index, list(islice(answers, len(batch)))
                for fold in folds:
                    fold()

    def _groups(
        self, batches: Iterable[tuple[int, Sequence[Request]]]
    ) -> Iterable[list[tuple[int, Sequence[Request]]]]:
        """What is asked together: a batch; for a judge that sends its prompts to a batch API, all
        batches of a repeat."""
        options = (getattr(each, "options", None) for each in self.inner)
        if not any(getattr(each, "batch", False) for each in options):
            return ([each] for each in batches)
        repeats = groupby(batches, key=lambda batch: batch[1][0].repeat)
        return (list(group) for _, group in repeats)

    def _cascade(self, requests: Sequence[Request]) -> list[StageAnswer]:
        """The verdicts of the first judge that is confident enough, or of the last."""
        answers = self.stages[0].ask(requests)
        left: Sequence[int] = range(len(answers))
        for margin, stage in zip(self.improved.recipe.margins, self.stages[1:], strict=False):
            assert margin is not None
            unsure = []
            for n in left:
                verdict = answers[n].verdict
                if verdict is not None and verdict.is_confident(margin).all():
                    answers[n] = self._cleared(answers[n], verdict)
                else:
                    unsure.append(n)
            for n, later in zip(unsure, stage.ask([requests[n] for n in unsure]), strict=True):
                answers[n] = _with_cost(later, [answers[n], later])
            left = unsure
        return answers

    def _cleared(self, answer: StageAnswer, verdict: RecipeVerdicts) -> StageAnswer:
        """The verdict of a judge that is confident enough, with a margin that asks no person: the
        file's threshold is about the last judge."""
        threshold, margin = self.improved.threshold, float(verdict.margin[0])
        if threshold is None or margin >= threshold:
            return answer
        if self.improved.scoring == "generate":
            return replace(answer, votes=0)
        stretched = verdict.logprobs * ((threshold + 1e-6) / max(margin, TIE))
        return replace(answer, verdict=replace(verdict, logprobs=log_shares(stretched)))

    def _jury(self, answers: Sequence[StageAnswer]) -> StageAnswer:
        """The verdict of a jury; an error only if every judge has one."""
        verdicts = [each.verdict for each in answers if each.verdict is not None]
        if not verdicts:
            answered = (a for a in answers if a.answer.error is None and not a.answer.refused)
            return _with_cost(next(answered, answers[0]), answers)
        by_votes = self.improved.scoring == "generate"
        verdict, votes = jury(verdicts, by_votes=by_votes), 0
        if by_votes:
            votes = sum(int((each.codes >= 0).sum()) for each in verdicts)
        alike = (a for a in answers if a.verdict and a.verdict.codes[0] == verdict.codes[0])
        reason = next((a.answer.reason for a in alike if a.answer.reason), None)
        return _with_cost(StageAnswer(Answer("", reason=reason), verdict, votes=votes), answers)

    def _as_answer(self, request: Request, answer: StageAnswer) -> Answer:
        """A verdict as the answer to a message, by its options.

        Several options of one label share its probability; the runner takes the first of a tie.
        """
        verdict, template = answer.verdict, answer.template
        if verdict is None or template is None:
            return answer.answer
        labels, sharing = self.improved.recipe.labels, Counter(template.label_map.values())
        values, text = [], ""
        for option in request.options:
            label = template.label_map[option]
            value = verdict.logprobs[0, labels.index(label)] - np.log(sharing[label])
            values.append(max(float(value), -700.0))
        if verdict.codes[0] >= 0:
            text = request.options[int(np.argmax(values))]
            if answer.votes:
                counts = np.rint(verdict.shares[0] * answer.votes)
                by_option = [
                    f"{option} {counts[labels.index(label)]:.0f}"
                    for option, label in template.label_map.items()
                ]
                text += f"{VOTES}{', '.join(by_option)}"
        options = tuple(values) if self.improved.scoring == "options" else None
        # What several judges decide together has no bound.
        certificate = None if self.improved.recipe.members else answer.certificate
        return replace(answer.answer, text=text, option_logprobs=options, certificate=certificate)

    @property
    def _paid(self) -> dict[int, Any]:
        """The judges that cost money, once each; all spend from one budget."""
        return {id(each): each for each in self.inner if isinstance(each, Budgeted)}

    def _prompts_to(self, paid: Any, requests: Sequence[Request]) -> list[Request]:
        return [
            prompt
            for stage in self.stages
            if stage.inner is paid
            for prompt in stage.prompts(requests)
        ]

    @property
    def spent(self) -> float:
        """US dollars spent so far by all judges."""
        return float(sum(each.spent for each in self._paid.values()))

    @spent.setter
    def spent(self, value: float) -> None:
        if self._paid:
            next(iter(self._paid.values())).spent += value - self.spent

    @property
    def price(self) -> Any:
        """The price of the one judge; None of several."""
        return getattr(self.inner[0], "price", None) if len(self.inner) == 1 else None

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The highest possible cost: every judge is asked. None without a price."""
        costs = [each.estimate(self._prompts_to(each, requests)) for each in self._paid.values()]
        return None if None in costs else float(sum(costs))

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why the budget does not allow these messages; None if it does."""
        prompts = {key: self._prompts_to(each, requests) for key, each in self._paid.items()}
        for key, each in self._paid.items():
            others = sum(
                other.spent + (other.estimate(prompts[name]) or 0.0)
                for name, other in self._paid.items()
                if name != key
            )
            each.spent += others
            reason: str | None = each.admit(prompts[key])
            each.spent -= others
            if reason is not None:
                return reason
        return None

    def close(self) -> None:
        """Free the judges."""
        for each in self.inner:
            each.close()


def _with_cost(verdict: StageAnswer, answers: Sequence[StageAnswer]) -> StageAnswer:
    """A verdict with the tokens, seconds and cost of all the answers behind it."""
    names = ("input_tokens", "output_tokens", "latency_s", "cost_usd")
    common = _summed((each.answer for each in answers), *names)
    template = next((each.template for each in answers if each.template is not None), None)
    return replace(verdict, answer=replace(verdict.answer, **common), template=template)


def _summed(answers: Iterable[Answer], *names: str) -> dict[str, Any]:
    """Sums of fields over answers; None where no answer has the field."""
    rows = list(answers)
    values = {name: [v for row in rows if (v := getattr(row, name)) is not None] for name in names}
    return {name: sum(known) if known else None for name, known in values.items()}


def _logprobs(rows: list[list[list[Answer]]], members: Members) -> list[list[Floats]]:
    """The answers as log-probabilities of the labels as shown, by wording and order: (texts, L)."""
    recipe: Recipe = members.recipe
    return [
        [np.stack([_label_logprobs(each, template, recipe) for each in texts]) for texts in row]
        for row, template in zip(rows, members.templates, strict=True)
    ]


def _label_logprobs(answer: Answer, template: Template, recipe: Recipe) -> Floats:
    """One answer as log-probabilities of the labels, NaN where nothing was read."""
    options = tuple(template.label_map)
    if recipe.read == "vote" and not answer.refused:
        raw = read_reply(answer.text or "", options, template.aliases, field_to_read(template))
        return label_logprobs(template.label_map, recipe.labels, verdict=raw)
    if recipe.read != "vote" and answer.option_logprobs is not None:
        logprobs = dict(zip(options, answer.option_logprobs, strict=True))
        return label_logprobs(template.label_map, recipe.labels, logprobs)
    return np.full(len(recipe.labels), np.nan)
