"""The interface between the runner and a judge: a request, an answer, and the judge itself.

The runner does not know which engine it drives. A judge plans its batches as a pure function of
all requests, and may answer the batches in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from judgesense.tasks import ANSWER


@dataclass(frozen=True, slots=True)
class Request:
    """One distinct user message and the raw answers that it allows, in the task's order.

    ``repeat`` is the number of times it was asked before; it affects only what a judge samples at
    a temperature above 0. ``system`` follows the judge's own system prompt in the system message.
    ``effort`` is the reasoning effort to ask for (``low``, ``medium``, ``high``); "" for the
    judge's own. ``reply_form`` is the whole reply that the message asks for, with ``ANSWER`` for
    the option; a judge that can continue a reply scores the options there. ``schema`` is the JSON
    schema of the reply that the message asks for; a judge that can be held to one is.
    """

    prompt_id: str
    text: str
    options: tuple[str, ...]
    repeat: int = 0
    system: str = ""
    effort: str = ""
    reply_form: str = ""
    schema: str = ""

    @property
    def message(self) -> str:
        """The system part and the user message as one text, for a judge without system messages.

        >>> Request("1", "Is it?", ("YES", "NO"), system="Answer YES or NO.").message
        'Answer YES or NO.\\n\\nIs it?'
        """
        return f"{self.system}\n\n{self.text}" if self.system else self.text

    def system_after(self, prompt: str) -> str:
        """The system message: the judge's system prompt, then the request's part."""
        return "\n\n".join(part for part in (prompt, self.system) if part)


def around_answer(reply_form: str) -> tuple[str, str]:
    """The text before and after the answer in the form of a reply; empty without a form.

    >>> around_answer('{"verdict": "ANSWER"}')
    ('{"verdict": "', '"}')
    """
    before, _, after = reply_form.partition(ANSWER)
    return before, after


@dataclass(slots=True)
class Answer:
    """The answer of a judge to one request.

    ``text`` is the generated text (None if not requested). ``option_logprobs`` is the
    log-probability in nats of each option's whole token sequence, in the order of the request's
    options (None if not requested or not available); ``option_mass`` is the sum of their
    probabilities, or a lower bound where the engine shows only its most probable tokens.
    ``error`` is the reason for a missing answer and never contains a key. ``refused`` marks a
    refusal by the provider itself. ``certificate`` says whether one added sentence can change the
    verdict of an ablated judge (`judgesense.recipes.ablation`). ``reason`` is what the judge
    wrote to explain its verdict, where ``text`` is only the verdict.
    """

    text: str | None = None
    option_logprobs: tuple[float, ...] | None = None
    option_mass: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    truncated: bool = False
    latency_s: float | None = None
    cost_usd: float | None = None
    error: str | None = None
    refused: bool = False
    certificate: str | None = None
    reason: str | None = None


@runtime_checkable
class Judge(Protocol):
    """A model plus everything that fixes its answers."""

    name: str
    """``name@fingerprint``, as in the decision log."""

    scorings: frozenset[str]
    """The scorings it supports: ``generate``, ``options`` or both."""

    def describe(self) -> Mapping[str, Any]:
        """Everything that fixes its answers (revision or weights' hash, dtype, chat template,
        system prompt, decoding, engine, versions), as JSON values for ``run.json``.

        `SCORES_IN_FORM` is true where options are scored inside a request's ``reply_form``.
        """
        ...

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Split the indices of ``requests`` into batches. A pure function of the arguments."""
        ...

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer numbered batches in any order, with the answers in the order of the requests.

        ``batches`` is lazy: a concurrent engine reads ahead as far as it needs. A request that
        cannot be answered yields an Answer with ``error``; raise only what must stop the run.
        """
        ...

    def close(self) -> None:
        """Free the engine (memory, connections)."""
        ...


@runtime_checkable
class Budgeted(Protocol):
    """A judge that costs money; the runner asks it before each part if the budget allows it."""

    spent: float
    """US dollars spent so far, including the parts of earlier starts."""

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The highest possible cost of these requests in US dollars; None without a price."""
        ...

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why the budget does not allow these requests; None if it does."""
        ...


@dataclass(frozen=True)
class RunContext:
    """The run around a judge: the folder of what must outlive the process, whom to tell, and an
    event that Ctrl-C sets."""

    folder: Path
    note: Callable[[str], None]
    stop: threading.Event


@runtime_checkable
class InRun(Protocol):
    """A judge that keeps more in a run's folder than its answers; None outside a run."""

    run_context: RunContext | None


class Watch(Protocol):
    """A listener that hears of each request at once, before the judge returns its answers."""

    def sent(self, index: int, costs: Mapping[str, float]) -> None:
        """A batch is about to be sent; the most that each prompt can cost, by id, if known."""
        ...

    def answered(self, index: int, answers: Sequence[tuple[Request, Answer]]) -> None:
        """A batch is answered."""
        ...


@runtime_checkable
class Watched(Protocol):
    """A judge that has many requests under way, each of which may be paid."""

    watch: Watch | None
