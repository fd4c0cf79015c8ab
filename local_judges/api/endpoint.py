"""An endpoint: its client, the body of a request, and one prompt asked with retries."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.limits import REPLY_BYTES
from judgesense.text import printable
from local_judges.api.keys import NO_KEY, read_key, require_loggable
from local_judges.api.refusals import accepted_body, refused_in
from local_judges.api.replies import FatalError, PageError, answer_of, diagnose, without_secrets
from local_judges.api.token_scoring import Create, TokenScorer, find_scorer
from local_judges.options import KEY_VARIABLE, ApiOptions
from local_judges.protocol import Answer, Request

ROUTER = "https://router.huggingface.co/v1"
"""Where inference providers are asked; a model's name ends in the provider's."""

TOP_LOGPROBS = 20
"""The largest number of alternatives per token that OpenAI-compatible endpoints return."""

TIMEOUT_S = 60.0
LOOK_S = 10.0
"""Seconds per call while looking for what an endpoint can do."""


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with jitter, bounded in tries and in seconds; respects Retry-After."""

    attempts: int = 6
    budget_s: float = 120.0
    first_s: float = 0.5
    most_s: float = 30.0

    def wait(self, attempt: int, retry_after: float | None, noise: float) -> float:
        """Seconds to wait after this attempt (1-based); ``noise`` is uniform on [0, 1).

        >>> Retry().wait(attempt=3, retry_after=None, noise=1.0)
        2.0
        """
        jitter = 0.5 + 0.5 * noise
        if retry_after is not None:
            # An endpoint that says 0 must not be asked without a pause.
            return max(retry_after + 0.1 * noise, self.first_s * jitter)
        # 2.0**1024 overflows a float.
        return min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 60)) * jitter


_NO_API = ("unreachable", "page")
"""The kinds of failure of an address at which there is no API."""


class _TryError(Exception):
    """A try that failed and may be worth another."""

    def __init__(self, kind: str, reason: str, retry_after: float | None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.retry_after = kind, reason, retry_after


class Endpoint:
    """A model at an endpoint: a base URL, or an inference provider of Hugging Face.

    ``proven`` becomes true with the first answer: an endpoint that cannot be reached before it is
    given up. ``refused`` are the parameters that the model refuses by name. ``writes`` says whether
    the text is wanted, not only option probabilities. ``scorer`` reads these by token id where the
    endpoint can return them (see :func:`~local_judges.api.token_scoring.find_scorer`). Raises
    JudgeSenseError for a URL that holds a secret, a missing key (names the variable) and a
    ``timeout_s`` above the retry budget.
    """

    path = "/chat/completions"

    def __init__(self, model: str, options: ApiOptions, retry: Retry | None = None) -> None:
        self.model, self.options, self.provider = model, options, options.provider
        self.base_url = options.base_url or os.environ.get("OPENAI_BASE_URL") or None
        if self.provider is not None:
            self.base_url = ROUTER
        if self.base_url:
            require_loggable(self.base_url, options.key_variable or KEY_VARIABLE)
        self._key = read_key(options.key_variable, self.base_url)
        # A budget alone allows as many tries as fit into it.
        budget_s = options.retry_budget_s
        self.retry = retry or (Retry(sys.maxsize, budget_s) if budget_s else Retry())
        self.timeout_s = options.timeout_s or min(TIMEOUT_S, self.retry.budget_s)
        if self.timeout_s > self.retry.budget_s:
            raise JudgeSenseError(
                f"timeout_s is {self.timeout_s:g} for one request, but all tries of a prompt may "
                f"take {self.retry.budget_s:g} s; set retry_budget_s to {self.timeout_s:g} or more"
            )
        self.proven = False
        self.scorer: TokenScorer | None = None
        self.writes = True
        self.complete: Create | None = None
        self._has_looked = False
        self.served: Counter[str] = Counter()
        self._connection_error: FatalError | None = None
        self.refused: frozenset[str] = frozenset()
        self._noise = random.Random(0).random

    def __str__(self) -> str:
        return f"{self.model} at {self.provider or self.base_url or 'the default endpoint'}"

    @property
    def key(self) -> str:
        """The key, for requests to this endpoint alone."""
        return self._key

    def hide(self, text: str) -> str:
        """The text without the key and without anything that looks like one."""
        return without_secrets(text if self._key == NO_KEY else text.replace(self._key, "***"))

    def client(self) -> Any:
        """A new asynchronous client. Raises MissingExtraError if its package is not installed."""
        try:
            import aiohttp  # noqa: F401
            from openai import AsyncOpenAI, DefaultAioHttpClient
        except ImportError as error:
            raise MissingExtraError(error.name or "openai", "api", "an API judge") from error
        # A request over aiohttp takes two thirds of the processor time of one over httpx.
        return AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=self.timeout_s,
            max_retries=0,
            http_client=DefaultAioHttpClient(event_hooks={"response": [_read_limited]}),
        )

    def find_scorer(self, tries: int = 3) -> TokenScorer | None:
        """Look once whether the endpoint returns option probabilities by token id.

        An endpoint with a price or a limit is not asked, because these count one call per prompt.
        Raises FatalError if it cannot be reached, again at each call: what reads the options of a
        run must not change after the run was described.
        """
        if self._connection_error is not None:
            raise self._connection_error
        options = self.options
        limits = (options.requests_per_minute, options.tokens_per_minute, options.batch)
        is_metered = any((options.price, *limits))
        if self._has_looked or not self.base_url or self.provider or is_metered:
            return self.scorer
        try:
            from openai import APIConnectionError, OpenAI
        except ImportError as error:
            raise MissingExtraError("openai", "api", "an API judge") from error
        body = body_of(Request("", "", ()), model=self.model, options=options, logprobs=True)
        # The scorer keeps the client for its tokenizer.
        client = OpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=min(self.timeout_s, LOOK_S),
            max_retries=tries - 1,
        )
        weakref.finalize(client, client._client.close)
        try:
            self.scorer = find_scorer(client, self.model, body)
        except APIConnectionError as error:
            self._connection_error = _unreachable_error(diagnose(error, self.hide)[1])
            raise self._connection_error from None
        self._has_looked = True
        return self.scorer

    def body(self, requests: Sequence[Request], logprobs: bool) -> dict[str, Any]:
        """The body of the HTTP request that asks these prompts."""
        (request,) = requests
        suffix = "" if self.provider in (None, "auto") else f":{self.provider}"
        model = f"{self.model}{suffix}"
        return body_of(request, model=model, options=self.options, logprobs=logprobs)

    def note_model(self, reply: Any) -> None:
        """Count the name under which the endpoint answered: it may be another model's."""
        name = reply.get("model") if isinstance(reply, Mapping) else None
        if isinstance(name, str) and name:
            self.served[printable(name[:200])] += 1

    def answers(self, reply: Any, requests: Sequence[Request]) -> list[Answer]:
        """The answers in a reply to the prompts. Raises ValueError if one is not there."""
        begins_thinking = self.options.style.begins_thinking
        return [answer_of(reply, request, begins_thinking) for request in requests]

    async def ask(
        self, create: Create, requests: Sequence[Request], logprobs: bool
    ) -> list[Answer]:
        """The answers to the prompts of one HTTP request, after as many tries as the retry budget
        allows.

        Raises FatalError for failures that no other try and no other prompt can avoid, and
        JudgeSenseError for options that the endpoint's tokenizer cannot spell.
        """
        from tenacity import (
            AsyncRetrying,
            RetryCallState,
            retry_if_exception_type,
            stop_after_attempt,
            stop_before_delay,
        )

        def error_of(state: RetryCallState) -> Any:
            return state.outcome.exception() if state.outcome else None

        def gives_up(state: RetryCallState) -> bool:
            has_no_api = error_of(state).kind in _NO_API
            return has_no_api and not self.proven and state.attempt_number >= 3

        def wait(state: RetryCallState) -> float:
            retry_after = error_of(state).retry_after
            return self.retry.wait(state.attempt_number, retry_after, self._noise())

        retry, started = self.retry, time.perf_counter()
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_TryError),
            wait=wait,
            stop=stop_after_attempt(retry.attempts) | stop_before_delay(retry.budget_s) | gives_up,  # type: ignore[operator]
            reraise=True,
        )
        try:
            answers: list[Answer] = await tries(self._try, create, requests, logprobs, started)
        except _TryError as error:
            if not self.proven and error.kind in _NO_API:
                raise _unreachable_error(error.reason) from None
            elapsed_s = time.perf_counter() - started
            n_tries = tries.statistics["attempt_number"]
            reason = f"{error.reason} ({n_tries} tries in {elapsed_s:.0f} s)"
            answers = [Answer(error=reason) for _ in requests]
        for answer in answers:
            answer.latency_s = time.perf_counter() - started
        return answers

    async def _try(
        self,
        create: Create,
        requests: Sequence[Request],
        logprobs: bool,
        started: float,
        refused: frozenset[str] = frozenset(),
    ) -> list[Answer]:
        """One try. Raises _TryError if another may succeed, FatalError if no prompt can.

        A parameter that the endpoint refuses by name is left out of a second try and, if that
        succeeds, of every later request.
        """
        remaining_s = self.retry.budget_s - (time.perf_counter() - started)
        refused |= self.refused
        body = accepted_body(self.body(requests, logprobs), refused)
        try:
            async with asyncio.timeout(max(min(remaining_s, self.timeout_s), 0.001)):
                if logprobs and self.scorer is not None:
                    assert self.complete is not None
                    begins_thinking, (request,) = self.options.style.begins_thinking, requests
                    answers = [
                        await self.scorer.ask(
                            create, self.complete, body, request, begins_thinking, self.writes
                        )
                    ]
                else:
                    reply = await create(**body)
                    answers = self.answers(reply, requests)
                    self.note_model(reply)
                self.refused = refused
                return answers
        except JudgeSenseError:
            raise
        except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
            kind, reason, retry_after = diagnose(error, self.hide)
        if kind == "fatal":
            raise FatalError(reason)
        if kind == "refused":
            return [Answer(text="", refused=True) for _ in requests]
        if kind == "bad request":
            if (in_reason := refused_in(reason, body)) - refused:
                return await self._try(create, requests, logprobs, started, refused | in_reason)
            return [Answer(error=reason) for _ in requests]
        raise _TryError(kind, reason, retry_after)


async def _read_limited(response: Any) -> None:
    """Read a reply, up to a size: a few compressed bytes may stand for gigabytes."""
    # The encoding of JSON, whatever the reply's header says.
    response.encoding = "utf-8"
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > REPLY_BYTES:
            await response.aclose()
            raise ValueError(f"the reply has more than {REPLY_BYTES} bytes")
    response._content = b"".join(chunks)


def _unreachable_error(reason: str) -> FatalError:
    return FatalError(
        f"{reason}; the endpoint has never answered: check that it is up and that the URL is right"
    )


def body_of(request: Request, *, model: str, options: ApiOptions, logprobs: bool) -> dict[str, Any]:
    """The arguments of ``chat.completions.create`` for one prompt."""
    style, system_prompt = options.style, request.system_after(options.system_prompt)
    messages = [{"role": "user", "content": request.text}]
    if system_prompt and style.system_role:
        messages.insert(0, {"role": "system", "content": system_prompt})
    elif system_prompt:
        messages[0]["content"] = f"{system_prompt}\n\n{request.text}"
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        style.token_parameter: options.max_tokens,
    }
    if style.sends_temperature:
        body["temperature"] = max(options.temperature, style.min_temperature)
    if style.sends_seed:
        body["seed"] = options.seed + request.repeat
    if logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    elif request.schema and options.structured:
        schema = {"name": "verdict", "strict": True, "schema": json.loads(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    effort = request.effort or options.reasoning_effort
    effort_field = {"reasoning_effort": effort} if effort else {}
    if extra := {**style.extra_body, **effort_field}:
        body["extra_body"] = extra
    return body


def sender(client: Any, path: str = "/chat/completions") -> Create:
    """The function that sends one request to a path of an endpoint."""

    async def post(extra_body: Mapping[str, Any] | None = None, **body: Any) -> Any:
        # create() without the type checks of request and reply, which take 40% of its time.
        reply = await client.post(path, cast_to=object, body={**body, **(extra_body or {})})
        if isinstance(reply, str) and reply.lstrip().startswith("<"):
            raise PageError(reply)
        return json.loads(reply) if isinstance(reply, str) else reply

    return post
