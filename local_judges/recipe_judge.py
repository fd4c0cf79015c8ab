"""An improved judge as a judge: it asks the prompts of its recipe, and gives one verdict.

It needs no more than the messages, so it runs wherever a judge does: in any engine, in Ray's
actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.recipes.recipe import TIE, RecipeVerdicts, jury
from judgesense.statistics.calibration import log_shares
from local_judges.improved_judge import ImprovedJudge
from local_judges.protocol import Answer, Budgeted, InRun, Judge, Request, RunContext
from local_judges.recipe_stage import Stage, StageAnswer, sum_fields
from local_judges.votes import VOTES

_BATCH_SIZE = 128
"""Messages per batch: their prompts are asked together."""


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
        for judge in self.inner:
            if isinstance(judge, InRun):
                judge.run_context = context

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
        first_by_prompt: dict[str, int] = {}
        firsts = []
        for number, request in enumerate(requests):
            prompts = [prompt.prompt_id for prompt in self.stages[0].prompts([request])]
            first = min((first_by_prompt.get(prompt, number) for prompt in prompts), default=number)
            for prompt in prompts:
                first_by_prompt.setdefault(prompt, first)
            firsts.append(first)
        order = sorted(range(len(firsts)), key=lambda number: (firsts[number], number))
        return [order[start : start + _BATCH_SIZE] for start in range(0, len(order), _BATCH_SIZE)]

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """One verdict per message; its tokens and cost are those of all judges asked."""
        with ExitStack() as stack:
            drops = [stack.enter_context(stage.keeping(self.run_context)) for stage in self.stages]
            for group in self._group_batches(batches):
                requests = [request for _, batch in group for request in batch]
                if self.improved.recipe.combine == "jury":
                    by_judge = (stage.ask(requests) for stage in self.stages)
                    verdicts = list(map(self._jury_answer, zip(*by_judge, strict=True)))
                else:
                    verdicts = self._cascade_answers(requests)
                answers = map(self._as_answer, requests, verdicts)
                for index, batch in group:
                    yield index, list(islice(answers, len(batch)))
                for drop_journal in drops:
                    drop_journal()

    def _group_batches(
        self, batches: Iterable[tuple[int, Sequence[Request]]]
    ) -> Iterable[list[tuple[int, Sequence[Request]]]]:
        """The batches in groups that are asked together: one each, or for a judge that sends its
        prompts to a batch API all of a repeat."""
        options = (getattr(judge, "options", None) for judge in self.inner)
        if not any(getattr(settings, "batch", False) for settings in options):
            return ([batch] for batch in batches)
        repeats = groupby(batches, key=lambda batch: batch[1][0].repeat)
        return (list(group) for _, group in repeats)

    def _cascade_answers(self, requests: Sequence[Request]) -> list[StageAnswer]:
        """The verdicts of the first judge that is confident enough, or of the last."""
        answers = self.stages[0].ask(requests)
        unsure: Sequence[int] = range(len(answers))
        for margin, stage in zip(self.improved.recipe.margins, self.stages[1:], strict=False):
            assert margin is not None
            asked, unsure = unsure, []
            for n in asked:
                verdict = answers[n].verdict
                if verdict is not None and verdict.is_confident(margin).all():
                    answers[n] = self._with_safe_margin(answers[n], verdict)
                else:
                    unsure.append(n)
            replies = stage.ask([requests[n] for n in unsure])
            for n, reply in zip(unsure, replies, strict=True):
                answers[n] = _with_cost(reply, [answers[n], reply])
        return answers

    def _with_safe_margin(self, answer: StageAnswer, verdict: RecipeVerdicts) -> StageAnswer:
        """The verdict of a judge that is confident enough, with a margin that asks no person: the
        file's threshold is about the last judge."""
        threshold, margin = self.improved.threshold, float(verdict.margin[0])
        if threshold is None or margin >= threshold:
            return answer
        if self.improved.scoring == "generate":
            return replace(answer, votes=0)
        stretched = verdict.logprobs * ((threshold + 1e-6) / max(margin, TIE))
        return replace(answer, verdict=replace(verdict, logprobs=log_shares(stretched)))

    def _jury_answer(self, answers: Sequence[StageAnswer]) -> StageAnswer:
        """The verdict of a jury; an error only if every judge has one."""
        verdicts = [answer.verdict for answer in answers if answer.verdict is not None]
        if not verdicts:
            others = (a for a in answers if a.answer.error is None and not a.answer.refused)
            return _with_cost(next(others, answers[0]), answers)
        by_votes = self.improved.scoring == "generate"
        verdict, votes = jury(verdicts, by_votes=by_votes), 0
        if by_votes:
            votes = sum(int((vote.codes >= 0).sum()) for vote in verdicts)
        majority = (a for a in answers if a.verdict and a.verdict.codes[0] == verdict.codes[0])
        reason = next((a.answer.reason for a in majority if a.answer.reason), None)
        return _with_cost(StageAnswer(Answer("", reason=reason), verdict, votes=votes), answers)

    def _as_answer(self, request: Request, answer: StageAnswer) -> Answer:
        """A verdict as the answer to a message, by its options.

        Several options of one label share its probability; the runner takes the first of a tie.
        """
        verdict, template = answer.verdict, answer.template
        if verdict is None or template is None:
            return answer.answer
        labels = self.improved.recipe.labels
        options_per_label = Counter(template.label_map.values())
        option_logprobs, text = [], ""
        for option in request.options:
            label = template.label_map[option]
            value = verdict.logprobs[0, labels.index(label)] - np.log(options_per_label[label])
            option_logprobs.append(max(float(value), -700.0))
        if verdict.codes[0] >= 0:
            text = request.options[int(np.argmax(option_logprobs))]
            if answer.votes:
                counts = np.rint(verdict.shares[0] * answer.votes)
                votes = [
                    f"{option} {counts[labels.index(label)]:.0f}"
                    for option, label in template.label_map.items()
                ]
                text += f"{VOTES}{', '.join(votes)}"
        logprobs = tuple(option_logprobs) if self.improved.scoring == "options" else None
        # What several judges decide together has no bound.
        certificate = None if self.improved.recipe.members else answer.certificate
        return replace(answer.answer, text=text, option_logprobs=logprobs, certificate=certificate)

    @property
    def _paid_judges(self) -> list[Any]:
        """The judges that cost money, once each; all spend from one budget."""
        judges = {id(judge): judge for judge in self.inner if isinstance(judge, Budgeted)}
        return list(judges.values())

    def _prompts_to(self, judge: Any, requests: Sequence[Request]) -> list[Request]:
        stages = [stage for stage in self.stages if stage.inner is judge]
        return [prompt for stage in stages for prompt in stage.prompts(requests)]

    @property
    def spent(self) -> float:
        """US dollars spent so far by all judges."""
        return float(sum(judge.spent for judge in self._paid_judges))

    @spent.setter
    def spent(self, value: float) -> None:
        if self._paid_judges:
            self._paid_judges[0].spent += value - self.spent

    @property
    def price(self) -> Any:
        """The price of the one judge; None of several."""
        return getattr(self.inner[0], "price", None) if len(self.inner) == 1 else None

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The highest possible cost: every judge is asked. None without a price."""
        costs = [j.estimate(self._prompts_to(j, requests)) for j in self._paid_judges]
        return None if None in costs else float(sum(costs))

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why the budget does not allow these messages; None if it does."""
        judges = self._paid_judges
        prompts = [self._prompts_to(judge, requests) for judge in judges]
        costs = [
            judge.spent + (judge.estimate(batch) or 0.0)
            for judge, batch in zip(judges, prompts, strict=True)
        ]
        for judge, batch, cost in zip(judges, prompts, costs, strict=True):
            # Each judge knows only what it spent itself, but the budget is that of all.
            others = sum(costs) - cost
            judge.spent += others
            reason: str | None = judge.admit(batch)
            judge.spent -= others
            if reason is not None:
                return reason
        return None

    def close(self) -> None:
        """Free the judges."""
        for judge in self.inner:
            judge.close()


def _with_cost(verdict: StageAnswer, answers: Sequence[StageAnswer]) -> StageAnswer:
    """A verdict with the tokens, seconds and cost of all the answers behind it."""
    names = ("input_tokens", "output_tokens", "latency_s", "cost_usd")
    common = sum_fields((a.answer for a in answers), *names)
    template = next((a.template for a in answers if a.template is not None), None)
    return replace(verdict, answer=replace(verdict.answer, **common), template=template)
