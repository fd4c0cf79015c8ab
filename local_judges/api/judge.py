"""A judge at an OpenAI-compatible endpoint or a Hugging Face inference provider."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, NoReturn

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import SCORES_IN_FORM
from local_judges.api.batch_apis import SHARE, BatchApi, find_batch_api
from local_judges.api.batches import Batches, custom_id
from local_judges.api.endpoint import Endpoint, Retry
from local_judges.api.replies import FatalError
from local_judges.api.session import Session, event_loop
from local_judges.options import MAX_TOKENS, SYSTEM_PROMPT, ApiOptions, settings_of
from local_judges.plan import plan_by_count
from local_judges.protocol import Answer, Request, RunContext, Watch
from local_judges.ranks import processes

log = logging.getLogger(__name__)

TOP_TOKENS = "the first token's best 20 alternatives; option_mass is a lower bound"
WHOLE_OPTIONS = "each option's whole token sequence, by token id"
"""How option probabilities are read, as ``run.json`` says it."""
UNREACHED = "an endpoint that cannot be reached yet"

_FIRST_LOOK = 3
"""The prompts of a first look, which are sent directly."""


class ApiJudge:
    """A model behind an HTTP endpoint, asked many prompts at a time.

    Args:
        model: the endpoint's name of the model.
        name: the name in logs; by default ``model``.
        retry: the backoff, if ``retry_budget_s`` does not say enough.
        options: see :class:`~local_judges.options.ApiOptions`. The key is read once from the
            environment and appears in no log and no error; an endpoint on this machine needs none.
            With ``max_cost`` the judge stops before the budget is exceeded; it counts pending
            answers, and answers without token counts, at their maximum length. With ``batch``,
            the prompts of a run go through the provider's batch API; others are sent directly.

    Raises:
        JudgeSenseError: for an unknown or invalid option, a missing key (names the variable), a
            ``max_cost`` without ``price``, a ``timeout_s`` above the retry budget, a limit that
            several processes would have to share, and ``batch`` at an endpoint without it.
    """

    endpoint_class = Endpoint
    answers_alone = True
    """An answer depends on its prompt, not on the prompts in the same batch."""
    watch: Watch | None = None
    run_context: RunContext | None = None

    def __init__(
        self, model: str, *, name: str | None = None, retry: Retry | None = None, **options: Any
    ) -> None:
        settings = settings_of(ApiOptions, options)
        self.options, self.price = settings, settings.price
        self.endpoint = self.endpoint_class(model, settings, retry)
        limits = (settings.requests_per_minute, settings.tokens_per_minute, settings.max_cost)
        if processes() > 1 and (settings.batch or any(limit is not None for limit in limits)):
            raise JudgeSenseError(
                "requests_per_minute, tokens_per_minute, --max-cost and --batch cannot be shared "
                f"by {processes()} processes; start one process and raise concurrency instead"
            )
        if settings.max_cost is not None and settings.price is None:
            raise JudgeSenseError(
                f"--max-cost needs the price of {model!r}: --set price=INPUT,OUTPUT, in US dollars "
                "per million tokens"
            )
        self._batch_api = find_batch_api(self.endpoint) if settings.batch else None
        self.spent = self._admitted = 0.0
        self.scorings = frozenset({"generate", "options"} if settings.logprobs else {"generate"})
        identity = json.dumps(self._identity(), sort_keys=True).encode()
        self.name = f"{name or model}@{hashlib.sha256(identity).hexdigest()[:8]}"

    def _identity(self) -> dict[str, Any]:
        options, endpoint = self.options, self.endpoint
        style = {**vars(options.style), "extra_body": dict(options.style.extra_body)}
        style.pop("reasoning_effort")  # A prompt's effort is part of its id.
        return {
            "engine": "api",
            "model": endpoint.model,
            "endpoint": endpoint.provider or endpoint.base_url or "default",
            "system_prompt": options.system_prompt,
            "decoding": {
                "max_tokens": options.max_tokens,
                "temperature": options.temperature,
                "seed": options.seed,
            },
            "style": style,
            **({} if options.structured else {"structured": False}),
            **({"reasoning_effort": effort} if (effort := options.reasoning_effort) else {}),
        }

    def describe(self) -> Mapping[str, Any]:
        """Model, endpoint, system prompt, decoding, style and the client's version; never a key.

        ``options`` says how option probabilities are read, for which the endpoint is asked.

        The weights of an endpoint cannot be hashed; ``floating`` marks a name that the provider
        may point to another checkpoint.
        """
        source = self._probability_source()
        return {
            **self._identity(),
            "options": source,
            SCORES_IN_FORM: source == WHOLE_OPTIONS,
            "floating": self.options.floating,
            "client": f"openai {metadata.version('openai')}",
        }

    def _probability_source(self) -> str | None:
        if "options" not in self.scorings:
            return None
        try:
            scorer = self.endpoint.find_scorer()
        except FatalError:
            return UNREACHED
        return TOP_TOKENS if scorer is None else WHOLE_OPTIONS

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """One prompt per batch: neither shape nor order matters to an endpoint."""
        return plan_by_count(len(requests), 1)

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """The highest possible cost in US dollars; see :func:`most_cost`."""
        return most_cost(requests, {**vars(self.options), "batch": self._uses_batches})

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why these requests could exceed ``max_cost``; None if they cannot."""
        if self.options.max_cost is None:
            return None
        cost = self.estimate(requests) or 0.0
        if self.spent + self._admitted + cost > self.options.max_cost:
            return (
                f"the next {len(requests)} prompts can cost ${cost:.4f}, and ${self.spent:.4f} is "
                f"spent; --max-cost {self.options.max_cost:g} would be exceeded"
            )
        self._admitted += cost
        return None

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answers in the order of their arrival, with ``concurrency`` requests in flight.

        Raises JudgeSenseError, naming the endpoint, when no prompt can be answered.
        """
        if self._batch_api is not None and self.run_context is not None:
            yield from self._ask_in_batches(self._batch_api, self.run_context, batches, scorings)
            return
        if self.options.batch:
            batches = list(batches)
            if len(batches) > _FIRST_LOOK:
                log.warning(
                    "%s: %d prompts are sent directly, at the full price: only the prompts of run, "
                    "check and improve go in a batch",
                    self.name,
                    len(batches),
                )
        self.endpoint.writes = "generate" in scorings
        with event_loop() as run:
            session = Session(
                self.endpoint, iter(batches), "options" in scorings, self._announce, self._settle
            )
            try:
                run(session.open())
                while answers := run(session.next_answers()):
                    yield from answers
            except FatalError as error:
                raise JudgeSenseError(self.endpoint.hide(f"{self.endpoint}: {error}")) from None
            finally:
                run(session.close())

    @property
    def _uses_batches(self) -> bool:
        # Outside a run, the ids of a batch could not be kept.
        return self.options.batch and self.run_context is not None

    def _ask_in_batches(
        self,
        api: BatchApi,
        context: RunContext,
        batches: Iterable[tuple[int, Sequence[Request]]],
        scorings: frozenset[str],
    ) -> Iterator[tuple[int, list[Answer]]]:
        logprobs = "options" in scorings
        requests: dict[str, Request] = {}
        indices: dict[str, int] = {}
        for index, (request,) in batches:
            prompt = custom_id(self.name, request, logprobs)
            requests[prompt], indices[prompt] = request, index
        sender = Batches(api, self.endpoint, self.name, context, self.estimate)
        for prompt, answer in sender.answers(requests, logprobs):
            self._settle(indices[prompt], [(requests[prompt], answer)])
            yield indices[prompt], [answer]

    def close(self) -> None:
        """Nothing to free: connections are closed at the end of each call of ``judge``."""

    def __reduce__(self) -> NoReturn:
        raise JudgeSenseError(
            f"{self.name} holds its key, so it is not sent to other processes; pass the judge's "
            "name and options instead, and each process reads the key from its own environment"
        )

    def _announce(self, index: int, requests: Sequence[Request]) -> None:
        """Note the highest possible cost of requests before they are sent."""
        if self.watch is not None and self.price is not None:
            costs = {request.prompt_id: self.estimate([request]) or 0 for request in requests}
            self.watch.sent(index, costs)

    def _settle(self, index: int, pairs: Sequence[tuple[Request, Answer]]) -> None:
        """Enter the cost of answers; without token counts it is the highest possible."""
        for request, answer in pairs:
            if (highest := self.estimate([request])) is None:
                continue
            if answer.error is None:
                cost = cost_of(answer, self.price)
                share = SHARE if self._uses_batches else 1.0
                answer.cost_usd = highest if cost is None else cost * share
                self.spent += answer.cost_usd
            self._admitted = max(0.0, self._admitted - highest)
        if self.watch is not None:
            self.watch.answered(index, pairs)


def cost_of(answer: Answer, price: tuple[float, float] | None) -> float | None:
    """The cost of an answer in US dollars; None without a price or without token counts.

    ``price`` is in US dollars per million (input, output) tokens.

    >>> cost_of(Answer(text="YES", input_tokens=500, output_tokens=1), (2.0, 8.0))
    0.001008
    """
    if price is None or not answer.input_tokens or answer.output_tokens is None:
        return None
    return (answer.input_tokens * price[0] + answer.output_tokens * price[1]) / 1e6


def most_cost(requests: Sequence[Request], options: Mapping[str, Any]) -> float | None:
    """The highest possible cost of requests in US dollars; None without a price.

    ``options`` are those of :class:`~local_judges.options.ApiOptions`. Counts one token for every
    3 bytes of a prompt, and every answer at its maximum length; with ``batch`` half of that.

    >>> most_cost([Request("1", "x" * 236, ())], {"price": (10, 10), "system_prompt": ""})
    0.0012
    """
    price = options.get("price")
    if price is None:
        return None
    overhead = len(options.get("system_prompt", SYSTEM_PROMPT).encode()) + 64
    input_tokens = sum((len(request.message.encode()) + overhead) / 3 for request in requests)
    output_tokens = len(requests) * options.get("max_tokens", MAX_TOKENS)
    share = SHARE if options.get("batch") else 1.0
    return float(share * (input_tokens * price[0] + output_tokens * price[1]) / 1e6)
