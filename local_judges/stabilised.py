"""A stabilised judge as a judge: it takes a message apart, asks the rule's prompts, and decides.

It needs no more than the messages, so it runs wherever a judge does: in any engine, in Ray's
actors, in resumed runs.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.tasks import Template
from judgesense.trust.grid import log_of_shares
from judgesense.trust.rules import AS_ASKED, Decided, Rule
from local_judges.protocol import Answer, Budgeted, Judge, Request
from local_judges.stabilised_file import Stabilised
from local_judges.stabilised_messages import Asked, Messages, key_of

log = logging.getLogger(__name__)

_AT_ONCE = 128
"""Messages per batch: their prompts are asked together."""


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
            told = self._told(self._prompts(requests), self.stabilised.scoring)
            # Without options it is no verdict: a request for a paraphrase, say.
            told |= self._told([request for request in requests if not request.options], "generate")
            counted: set[str] = set()
            yield index, [self._answer(request, told, counted) for request in requests]

    def _told(self, prompts: Sequence[Request], scoring: str) -> dict[str, Answer]:
        """The answers of the judge that is asked."""
        told: dict[str, Answer] = {}
        if not prompts:
            return told
        how = frozenset({scoring})
        plan = self.inner.plan(prompts, how)
        asked = ((n, [prompts[at] for at in batch]) for n, batch in enumerate(plan))
        for number, answers in self.inner.judge(asked, how):
            for at, answer in zip(plan[number], answers, strict=True):
                told[key_of(prompts[at])] = answer
        return told

    def close(self) -> None:
        """Free the judge that is asked."""
        self.inner.close()

    def _prompts(self, requests: Sequence[Request]) -> list[Request]:
        """The distinct prompts behind some messages."""
        found: dict[str, Request] = {}
        for request in requests:
            asked = self.asked(request)
            if isinstance(asked, Asked):
                found.update((key_of(m), m) for row in asked.members for m in row)
        return list(found.values())

    def asked(self, request: Request) -> Asked | str:
        """The prompts behind a message, or why it cannot be judged."""
        return self._messages.asked(request)

    def _answer(self, request: Request, told: Mapping[str, Answer], counted: set[str]) -> Answer:
        if not request.options:
            return told[key_of(request)]
        asked = self.asked(request)
        if isinstance(asked, str):
            return Answer(error=asked)
        rows = [[told[key_of(member)] for member in row] for row in asked.members]
        answers = [answer for row in rows for answer in row]
        # Several messages share prompts: each prompt's cost counts once.
        new = {key_of(m): told[key_of(m)] for row in asked.members for m in row}
        fresh = [answer for key, answer in new.items() if key not in counted]
        counted.update(new)
        common: dict[str, Any] = {
            "input_tokens": _total(answer.input_tokens for answer in fresh),
            "output_tokens": _total(answer.output_tokens for answer in fresh),
            "latency_s": _total(answer.latency_s for answer in answers),
            "cost_usd": _total(answer.cost_usd for answer in fresh),
        }
        if failed := [answer.error for answer in answers if answer.error is not None]:
            return Answer(error=failed[0], **common)
        if all(answer.refused for answer in answers):
            return Answer(refused=True, **common)
        told_by = _told(rows, asked, self.stabilised.rule)
        decided = asked.rule.decide(told_by)
        own = _as_raw(decided, asked.template, self.stabilised.rule.labels, request.options)
        if own is None:
            return Answer(text="", **common)
        masses = [answer.option_mass for answer in answers if answer.option_mass is not None]
        said = ""
        if decided.codes[0] >= 0:
            said = request.options[int(np.argmax(own))]
            if asked.rule.read == "vote" and len(answers) > 1:
                said += _votes(decided, told_by, asked.template, asked.rule.labels)
        return Answer(
            text=said,
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


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _told(rows: list[list[Answer]], asked: Asked, rule: Rule) -> np.ndarray:
    """The answers as log-probabilities of the labels as shown, shape (1, wordings, orders, L)."""
    told = np.full((1, len(rows), len(rule.orders), len(rule.labels)), np.nan)
    for w, (row, template) in enumerate(zip(rows, asked.templates, strict=True)):
        options = tuple(template.label_map)
        for o, answer in enumerate(row):
            if rule.read == "vote":
                said = template.label_map.get(parse(answer.text or "", options, template.aliases))
                if said is not None and not answer.refused:
                    told[0, w, o] = -np.inf
                    told[0, w, o, rule.labels.index(said)] = 0.0
            elif answer.option_logprobs is not None:
                shares = np.zeros(len(rule.labels))
                values = np.array(answer.option_logprobs)
                for option, share in zip(options, np.exp(values - values.max()), strict=True):
                    shares[rule.labels.index(template.label_map[option])] += share
                told[0, w, o] = log_of_shares(shares[None])[0]
    return told


def _votes(decided: Decided, told: np.ndarray, template: Template, labels: tuple[str, ...]) -> str:
    """The readable votes by option, in a verdict's text: what :func:`margin_of_votes` reads."""
    readable = int((~np.isnan(told[..., 0])).sum())
    counts = np.rint(decided.shares[0] * readable).astype(int)
    told_by = [
        f"{option} {counts[labels.index(label)]}" for option, label in template.label_map.items()
    ]
    return f"\n\nvotes: {', '.join(told_by)}"


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
