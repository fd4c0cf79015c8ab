"""What a judge is to the runner: three small types.

The runner does not know which engine it drives. A judge plans its batches as a pure function of
all requests, and answers batches in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Request:
    """One distinct user message and the raw answers it admits, in the task's order.

    ``repeat`` counts how often it was asked before: it changes nothing but what a judge draws at
    a temperature above 0.
    """

    prompt_id: str
    text: str
    options: tuple[str, ...]
    repeat: int = 0


@dataclass(slots=True)
class Answer:
    """What a judge said to one request.

    ``text`` is the generated text (None if not asked for). ``option_logprobs`` is the
    log-probability in nats of each option's whole token sequence, in the request's option order
    (None if not asked for or not offered); ``option_mass`` is the sum of their probabilities, or
    a lower bound where the engine shows only its best tokens. ``error`` is set when there is no
    answer; it never holds a key. ``refused`` marks a provider's own refusal.
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


@runtime_checkable
class Judge(Protocol):
    """A model plus everything that fixes its answers."""

    name: str
    """``name@fingerprint``: what the decision log calls it."""

    scorings: frozenset[str]
    """The scorings it offers, of ``generate`` and ``options``."""

    def describe(self) -> Mapping[str, Any]:
        """Everything that fixes its answers (revision or weights' hash, dtype, chat template,
        system prompt, decoding, engine, versions), as JSON values for ``run.json``."""
        ...

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Partition the indices of ``requests`` into batches: a pure function of its arguments."""
        ...

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer numbered batches, in any order, each batch's answers in its requests' order.

        ``batches`` is lazy: an engine that works concurrently draws ahead as far as it needs.
        A request that cannot be answered yields an Answer with ``error``; only what stops the
        whole run is raised.
        """
        ...

    def close(self) -> None:
        """Free the engine (memory, connections)."""
        ...


@runtime_checkable
class Budgeted(Protocol):
    """A judge that costs money: asked before each part, told what was spent before."""

    spent: float
    """US dollars spent so far, the parts kept from an earlier start included."""

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The most these requests can cost in US dollars, or None without a price."""
        ...

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why these requests must not be begun, or None."""
        ...
