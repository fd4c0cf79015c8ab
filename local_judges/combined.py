"""Several judges that decide together: a cascade, or a jury.

Each is a judge of its own rule (:mod:`local_judges.stabilised`) that gets the same messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.statistics.calibration import mean_log_odds
from judgesense.tasks import Template
from local_judges.protocol import Answer, Budgeted, Judge, Request
from local_judges.runner import ask_all
from local_judges.stabilised import StabilisedJudge, margin_of_votes, summed
from local_judges.stabilised_file import Stabilised


class CombinedJudge:
    """A judge that asks several and gives one verdict on each message.

    In a ``cascade`` the next judge is asked where the one before is less sure than its margin, or
    gives no verdict; in a ``jury`` all are asked, and the mean of their log-odds decides, or the
    majority where they give texts.

    Args:
        stabilised: the file, whose ``others`` are the further judges.
        members: the judges in the file's order, each with its own rule.
    """

    def __init__(self, stabilised: Stabilised, members: Sequence[StabilisedJudge]) -> None:
        self.stabilised, self.members = stabilised, list(members)
        self.margins = [stabilised.margin, *(each.margin for each in stabilised.others)]
        self.scorings = frozenset.intersection(*(each.scorings for each in self.members))
        self.name = self.members[0].name
        if stabilised.others:
            names = " ".join(each.name for each in self.members)
            digest = hashlib.sha256(f"{names} {stabilised.digest}".encode()).hexdigest()[:8]
            self.name = f"{self.name.split('@')[0]}-{stabilised.combine}@{digest}"

    def describe(self) -> Mapping[str, Any]:
        """How the judges decide together, and each of them."""
        if not self.stabilised.others:
            return self.members[0].describe()
        return {
            "combine": self.stabilised.combine,
            "margins": self.margins,
            "judges": [{"name": each.name, **each.describe()} for each in self.members],
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches as the first judge plans them."""
        return self.members[0].plan(requests, scorings)

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """One verdict per message; its tokens and cost are those of all judges asked."""
        if not self.stabilised.others:
            yield from self.members[0].judge(batches, scorings)
            return
        scoring = self.stabilised.scoring
        for index, requests in batches:
            if self.stabilised.combine == "jury":
                told = [ask_all(each, requests, {scoring}) for each in self.members]
                columns = zip(requests, zip(*told, strict=True), strict=True)
                yield index, [self._jury(request, answers) for request, answers in columns]
                continue
            final = ask_all(self.members[0], requests, {scoring})
            left = list(range(len(final)))
            for margin, judge in zip(self.margins, self.members[1:], strict=False):
                assert margin is not None
                clear = {n for n in left if self._margin(requests[n], final[n]) >= margin}
                for n in clear:
                    final[n] = self._cleared(requests[n], final[n])
                left = [n for n in left if n not in clear]
                more = ask_all(judge, [requests[n] for n in left], {scoring}) if left else []
                for n, answer in zip(left, more, strict=True):
                    final[n] = _together(answer, [final[n], answer])
            yield index, final

    def _template(self, request: Request) -> Template:
        """A wording that allows the options of a message."""
        options = set(request.options)
        templates = self.stabilised.entry.templates
        return next((t for t in templates if set(t.label_map) == options), templates[0])

    def _margin(self, request: Request, answer: Answer) -> float:
        """How sure a judge is, in nats or shares of votes; -1 without a verdict."""
        if answer.error is not None or answer.refused:
            return -1.0
        if self.stabilised.scoring == "generate":
            raw = parse(answer.text or "", request.options, {})
            found = margin_of_votes(answer.text or "", self._template(request))
            return found if raw in request.options else -1.0
        if answer.option_logprobs is None:
            return -1.0
        first, second = sorted(answer.option_logprobs, reverse=True)[:2]
        return first - second

    def _cleared(self, request: Request, answer: Answer) -> Answer:
        """The verdict of a judge that is sure enough, with a margin that asks no person: the file's
        threshold is about the last judge."""
        threshold = self.stabilised.threshold
        if threshold is None or (own := self._margin(request, answer)) >= threshold:
            return answer
        if answer.option_logprobs is None or self.stabilised.scoring == "generate":
            return replace(answer, text=(answer.text or "").partition("\n\nvotes: ")[0])
        stretched = np.array(answer.option_logprobs) * ((threshold + 1e-6) / own)
        values = stretched - np.logaddexp.reduce(stretched)
        return replace(answer, option_logprobs=tuple(values.tolist()))

    def _jury(self, request: Request, answers: Sequence[Answer]) -> Answer:
        """The verdict of a jury; an error only if every judge has one."""
        given = [each for each in answers if each.error is None and not each.refused]
        if not given:
            return _together(answers[0], answers)
        if self.stabilised.scoring == "generate":
            counts = dict.fromkeys(request.options, 0)
            for each in given:
                if (raw := parse(each.text or "", request.options, {})) in counts:
                    counts[raw] += 1
            best = max(counts, key=counts.__getitem__)
            clear = sum(count == counts[best] for count in counts.values()) == 1
            listed = ", ".join(f"{option} {count}" for option, count in counts.items())
            return _together(Answer(f"{best if clear else ''}\n\nvotes: {listed}"), answers)
        read = [each.option_logprobs for each in given if each.option_logprobs is not None]
        if not read:
            return _together(Answer(text=""), answers)
        mean = mean_log_odds(np.array([read]))[0]
        text = request.options[int(np.argmax(mean))]
        return _together(Answer(text, tuple(float(value) for value in mean)), answers)

    def close(self) -> None:
        """Free the judges."""
        for each in self.members:
            each.close()


def _together(verdict: Answer, asked: Sequence[Answer]) -> Answer:
    """A verdict with the tokens, seconds and cost of all the answers behind it."""
    names = ("input_tokens", "output_tokens", "latency_s", "cost_usd")
    return replace(verdict, **summed(asked, *names))


class BudgetedCombinedJudge(CombinedJudge):
    """Judges of which some cost money (or one that does); all spend from one budget."""

    @property
    def _paid(self) -> dict[int, Any]:
        """The judges that cost money, once each."""
        inner = [each.inner for each in self.members]
        return {id(each): each for each in inner if isinstance(each, Budgeted)}

    def _prompts_to(self, paid: Any, requests: Sequence[Request]) -> list[Request]:
        return [p for each in self.members if each.inner is paid for p in each.prompts(requests)]

    @property
    def spent(self) -> float:
        """US dollars spent so far by all judges."""
        return float(sum(each.spent for each in self._paid.values()))

    @spent.setter
    def spent(self, value: float) -> None:
        next(iter(self._paid.values())).spent += value - self.spent

    @property
    def price(self) -> Any:
        """The price of the one judge; None of several."""
        return None if self.stabilised.others else getattr(self.members[0].inner, "price", None)

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


def stabilised_judge(
    stabilised: Stabilised, inner: Judge, *others: Judge, same_judge: bool = True
) -> Judge:
    """The judge of a file that asks this one, and the ``others`` of a cascade or jury in their
    order; with a budget if one of them has one.

    Raises JudgeSenseError for another number of judges than the file's.
    """
    if len(others) != len(stabilised.others):
        raise JudgeSenseError(
            f"{stabilised.where} asks {1 + len(stabilised.others)} judges, got {1 + len(others)}: "
            "pass a list of them in the file's order"
        )
    first = replace(stabilised, others=(), combine=None)
    stages = zip((first, *stabilised.others), (inner, *others), strict=True)
    members = [StabilisedJudge(each, own, same_judge=same_judge) for each, own in stages]
    if any(isinstance(own, Budgeted) for own in (inner, *others)):
        return BudgetedCombinedJudge(stabilised, members)
    return CombinedJudge(stabilised, members) if others else members[0]
