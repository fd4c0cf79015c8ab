"""An improved judge as a judge: it asks the prompts of its rules, and gives one verdict.

A file has one judge with its rule, or several that get the same messages and decide together: a
cascade, or a jury. It needs no more than the messages, so it runs wherever a judge does: in any
engine, in Ray's actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.log.array import label_logprobs
from judgesense.recipes.fitting import AS_ASKED
from judgesense.recipes.rules import TIE, Decided, Rule, averaged, sure, voted
from judgesense.statistics.calibration import log_shares
from judgesense.tasks import Template
from local_judges.protocol import Answer, Budgeted, Judge, Request
from local_judges.runner import ask_all
from local_judges.stabilised import Members, Messages, key_of
from local_judges.stabilised_file import Stabilised

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Messages per batch: their prompts are asked together."""


@dataclass(frozen=True)
class Heard:
    """What one judge, or several, say of a message. ``answer`` has the cost, and the reason for a
    missing verdict; ``decided`` is the verdict, if any; ``votes`` is the number of votes behind it,
    0 without a vote; ``template`` is the message's template."""

    answer: Answer
    decided: Decided | None = None
    template: Template | None = None
    votes: int = 0


class Stage:
    """One judge of a file, which is asked several prompts per message and gives one verdict.

    A rule of one wording is applied to the message's own wording; a panel asks its own wordings,
    whatever the message's. A message is taken apart by the layout of the file's templates.
    """

    def __init__(self, stabilised: Stabilised, inner: Judge, same_judge: bool) -> None:
        wanted = str(stabilised.judge.get("name", inner.name))
        if inner.name != wanted:
            differs = (
                f"{stabilised.where} was made with the judge {wanted}, but this is {inner.name}: "
                "its weights, dtype, chat template, system prompt or decoding differ"
            )
            if same_judge:
                raise JudgeSenseError(f"{differs}. Use {wanted}, or improve this judge")
            log.warning("%s; the file's card and expected accuracy do not apply", differs)
        changed = stabilised.rule.remedy != AS_ASKED
        if stabilised.scoring not in inner.scorings and not changed:
            (offered, *_) = sorted(inner.scorings)
            raise JudgeSenseError(
                f"judge {inner.name} has no {stabilised.scoring} scoring; use --scoring {offered}"
            )
        if stabilised.scoring not in inner.scorings:
            raise JudgeSenseError(
                f"{stabilised.where} needs {stabilised.scoring} scoring, but judge {inner.name} "
                f"offers {', '.join(sorted(inner.scorings))}"
            )
        self.stabilised, self.inner, self.messages = stabilised, inner, Messages(stabilised)
        digest = hashlib.sha256(f"{inner.name} {stabilised.digest}".encode()).hexdigest()[:8]
        self.name = f"{inner.name.split('@')[0]}-stabilised@{digest}" if changed else inner.name

    def describe(self) -> dict[str, Any]:
        """The rule, the wordings, and the judge that is asked."""
        return {
            "stabilised": self.stabilised.rule.to_dict(),
            "wordings": {t.template_id: t.text for t in self.stabilised.entry.templates},
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

    def hear(self, requests: Sequence[Request]) -> list[Heard]:
        """One verdict per message; its tokens and cost are those of all its prompts."""
        # Without options it is no verdict: a request for a paraphrase, say.
        plain = [request for request in requests if not request.options]
        replies: dict[str, Answer] = {}
        kinds = (self.stabilised.scoring, self.prompts(requests)), ("generate", plain)
        for scoring, prompts in kinds:
            if prompts:
                given = ask_all(self.inner, prompts, {scoring})
                replies |= zip(map(key_of, prompts), given, strict=True)
        counted: set[str] = set()
        return [self._heard(request, replies, counted) for request in requests]

    def _heard(self, request: Request, replies: Mapping[str, Answer], counted: set[str]) -> Heard:
        """The verdict on a message from the answers behind it; ``counted`` are the prompts whose
        cost is in another message's verdict."""
        if not request.options:
            return Heard(replies[key_of(request)])
        members = self.messages.members(request)
        if isinstance(members, str):
            return Heard(Answer(error=members))
        rows = [[replies[key_of(member)] for member in row] for row in members.requests]
        answers = [answer for row in rows for answer in row]
        fresh = [replies[key] for key in members.by_key if key not in counted]
        counted.update(members.by_key)
        common = {
            **_summed(fresh, "input_tokens", "output_tokens", "cost_usd"),
            **_summed(answers, "latency_s"),
        }
        if failed := [answer.error for answer in answers if answer.error is not None]:
            return Heard(Answer(error=failed[0], **common))
        if all(answer.refused for answer in answers):
            return Heard(Answer(refused=True, **common))
        rule = self.stabilised.rule
        logprobs = _logprobs(rows, members, rule)
        decided = members.rule.decide(logprobs)
        if np.isnan(decided.logprobs).any():
            return Heard(Answer(text="", **common), template=members.template)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        answer = Answer(text="", option_mass=float(np.mean(masses)) if masses else None, **common)
        several = rule.read == "vote" and len(answers) > 1
        votes = int((~np.isnan(logprobs[..., 0])).sum()) if several else 0
        return Heard(answer, decided, members.template, votes)


class StabilisedJudge:
    """The judge of a file: one, or several that give one verdict on each message.

    In a ``cascade`` the next judge is asked where the one before is less sure than its margin, or
    gives no verdict; in a ``jury`` all are asked, and the mean of their log-odds decides, or the
    majority where they give texts.

    Args:
        stabilised: the judge's file, as read.
        inner: the judges that are asked, in the file's order.
        same_judge: refuse a judge whose name (with its fingerprint) is not the file's.

    Raises:
        JudgeSenseError: another judge, or another number of judges, than the file's, or one that
            gives no log-probabilities where the rule needs them.
    """

    def __init__(self, stabilised: Stabilised, *inner: Judge, same_judge: bool = True) -> None:
        files = (replace(stabilised, others=(), combine=None), *stabilised.others)
        if len(inner) != len(files):
            raise JudgeSenseError(
                f"{stabilised.where} asks {len(files)} judges, got {len(inner)}; "
                "pass them as a list in the file's order"
            )
        self.stabilised, self.inner = stabilised, inner
        self.stages = [
            Stage(own, judge, same_judge) for own, judge in zip(files, inner, strict=True)
        ]
        # A verdict read from probabilities can also be given as text.
        self.scorings = frozenset({stabilised.scoring, "generate"})
        self.name = self.stages[0].name
        if stabilised.combine:
            names = " ".join(each.name for each in self.stages)
            digest = hashlib.sha256(f"{names} {stabilised.digest}".encode()).hexdigest()[:8]
            self.name = f"{self.name.split('@')[0]}-{stabilised.combine}@{digest}"

    def describe(self) -> Mapping[str, Any]:
        """How the judges decide together, and each of them; or the one judge."""
        if not self.stabilised.combine:
            return self.stages[0].describe()
        return {
            "combine": self.stabilised.combine,
            "margins": [each.stabilised.margin for each in self.stages],
            "judges": [{"name": each.name, **each.describe()} for each in self.stages],
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
        for index, requests in batches:
            if self.stabilised.combine == "jury":
                each = zip(*(stage.hear(requests) for stage in self.stages), strict=True)
                heard = [self._jury(told) for told in each]
            else:
                heard = self._cascade(requests)
            yield index, [self._answer(*each) for each in zip(requests, heard, strict=True)]

    def _cascade(self, requests: Sequence[Request]) -> list[Heard]:
        """The verdicts of the first judge that is sure enough, or of the last."""
        heard = self.stages[0].hear(requests)
        left: Sequence[int] = range(len(heard))
        for before, stage in zip(self.stages, self.stages[1:], strict=False):
            margin, unsure = before.stabilised.margin, []
            assert margin is not None
            for n in left:
                if (decided := heard[n].decided) is not None and sure(decided, margin).all():
                    heard[n] = self._cleared(heard[n], decided)
                else:
                    unsure.append(n)
            for n, more in zip(unsure, stage.hear([requests[n] for n in unsure]), strict=True):
                heard[n] = _together(more, [heard[n], more])
            left = unsure
        return heard

    def _cleared(self, heard: Heard, decided: Decided) -> Heard:
        """The verdict of a judge that is sure enough, with a margin that asks no person: the file's
        threshold is about the last judge."""
        threshold, own = self.stabilised.threshold, float(decided.margin[0])
        if threshold is None or own >= threshold:
            return heard
        if self.stabilised.scoring == "generate":
            return replace(heard, votes=0)
        stretched = decided.logprobs * ((threshold + 1e-6) / max(own, TIE))
        return replace(heard, decided=replace(decided, logprobs=log_shares(stretched)))

    def _jury(self, told: Sequence[Heard]) -> Heard:
        """The verdict of a jury; an error only if every judge has one."""
        given = [each.decided for each in told if each.decided is not None]
        if not given:
            answered = (h for h in told if h.answer.error is None and not h.answer.refused)
            return _together(next(answered, told[0]), told)
        if self.stabilised.scoring == "options":
            decided = averaged(np.stack([each.logprobs for each in given], axis=1))
            return _together(Heard(Answer(text=""), decided), told)
        codes = np.stack([each.codes for each in given], axis=1)
        decided = voted(codes, len(self.stabilised.rule.labels))
        return _together(Heard(Answer(text=""), decided, votes=int((codes >= 0).sum())), told)

    def _answer(self, request: Request, heard: Heard) -> Answer:
        """A verdict as the answer to a message, by its options.

        Several options of one label share its probability; the runner takes the first of a tie.
        """
        decided, template = heard.decided, heard.template
        if decided is None or template is None:
            return heard.answer
        labels, sharing = self.stabilised.rule.labels, Counter(template.label_map.values())
        values, text = [], ""
        for option in request.options:
            label = template.label_map[option]
            value = decided.logprobs[0, labels.index(label)] - np.log(sharing[label])
            values.append(max(float(value), -700.0))
        if decided.codes[0] >= 0:
            text = request.options[int(np.argmax(values))]
            if heard.votes:
                counts = np.rint(decided.shares[0] * heard.votes)
                listed = [
                    f"{option} {counts[labels.index(label)]:.0f}"
                    for option, label in template.label_map.items()
                ]
                text += f"\n\nvotes: {', '.join(listed)}"
        options = tuple(values) if self.stabilised.scoring == "options" else None
        return replace(heard.answer, text=text, option_logprobs=options)

    @property
    def _paid(self) -> dict[int, Any]:
        """The judges that cost money, once each; all spend from one budget."""
        return {id(each): each for each in self.inner if isinstance(each, Budgeted)}

    def _prompts_to(self, paid: Any, requests: Sequence[Request]) -> list[Request]:
        return [p for each in self.stages if each.inner is paid for p in each.prompts(requests)]

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
        return None if self.stabilised.combine else getattr(self.inner[0], "price", None)

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


def _together(verdict: Heard, asked: Sequence[Heard]) -> Heard:
    """A verdict with the tokens, seconds and cost of all the answers behind it."""
    names = ("input_tokens", "output_tokens", "latency_s", "cost_usd")
    common = _summed((each.answer for each in asked), *names)
    template = next((each.template for each in asked if each.template is not None), None)
    return replace(verdict, answer=replace(verdict.answer, **common), template=template)


def _summed(answers: Iterable[Answer], *names: str) -> dict[str, Any]:
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
