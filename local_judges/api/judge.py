"""Judges behind an OpenAI-compatible endpoint or a Hugging Face inference provider."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.api.call import (
    FatalError,
    Retry,
    ask,
    body_of,
    require_loggable,
    without_secrets,
)
from local_judges.distributed.ranks import processes
from local_judges.options import MAX_TOKENS, SYSTEM_PROMPT, ApiOptions, made
from local_judges.plan import plan_by_count
from local_judges.protocol import Answer, Request

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_KEY = "none"
TIMEOUT_S = 60.0
_GATHER_S = 0.01
"""How long answers are gathered before the runner gets them."""
_HOPELESS = 3
"""So many prompts without an answer before the first answer end a run."""
_T = TypeVar("_T")


class ApiJudge:
    """A model that is asked over HTTP, many questions at a time.

    Args:
        model: the endpoint's name of the model.
        name: what logs call the judge; by default ``model``.
        retry: the backoff, where ``retry_budget_s`` does not say enough.
        options: see :class:`~local_judges.options.ApiOptions`. The key is read once from the
            environment and appears in no log and no error; an endpoint on this machine needs none.
            With ``max_cost`` the judge stops before the budget is exceeded, counting every answer
            still to come at its full length, and an answer without token counts at its most.

    Raises JudgeSenseError for an unknown or wrong option, a missing key (names the variable), a
    ``max_cost`` without ``price``, a ``timeout_s`` above the retry budget, and for a limit that
    several processes would have to share.
    """

    def __init__(
        self, model: str, *, name: str | None = None, retry: Retry | None = None, **options: Any
    ) -> None:
        own = made(ApiOptions, options)
        self.model, self.options = model, own
        self.provider = own.provider
        self.base_url = own.base_url
        if own.provider is None and own.base_url is None:
            self.base_url = os.environ.get("OPENAI_BASE_URL") or None
        if self.base_url:
            require_loggable(self.base_url, own.key_variable)
        self._key = _key(own.key_variable, self.base_url)
        self._retry = retry or (Retry.within(own.retry_budget_s) if own.retry_budget_s else Retry())
        budget_s = self._retry.budget_s
        self._timeout_s = own.timeout_s or min(TIMEOUT_S, budget_s)
        if self._timeout_s > budget_s:
            raise JudgeSenseError(
                f"timeout_s is {self._timeout_s:g} for one request, but all tries of a prompt may "
                f"take {budget_s:g} s; set retry_budget_s to {self._timeout_s:g} or more"
            )
        self._limits = (own.requests_per_minute, own.tokens_per_minute)
        if processes() > 1 and (any(self._limits) or own.max_cost is not None):
            raise JudgeSenseError(
                "requests_per_minute, tokens_per_minute and --max-cost cannot be shared by "
                f"{processes()} processes; start one process and raise concurrency instead"
            )
        self.price = own.price
        if own.max_cost is not None and own.price is None:
            raise JudgeSenseError(
                f"--max-cost needs the price of {model!r}: --set price=INPUT,OUTPUT, in US dollars "
                "per million tokens"
            )
        self.spent = 0.0
        self._admitted = 0.0
        self._proven, self._unanswered = False, 0
        self.scorings = frozenset({"generate", "options"} if own.logprobs else {"generate"})
        described = json.dumps(self._fixed(), sort_keys=True).encode()
        self.name = f"{name or model}@{hashlib.sha256(described).hexdigest()[:8]}"

    def _fixed(self) -> dict[str, Any]:
        return {
            "engine": "api",
            "model": self.model,
            "endpoint": self.provider or self.base_url or "default",
            "system_prompt": self.options.system_prompt,
            "decoding": {
                "max_tokens": self.options.max_tokens,
                "temperature": self.options.temperature,
                "seed": self.options.seed,
            },
            "style": {
                **vars(self.options.style),
                "extra_body": dict(self.options.style.extra_body),
            },
        }

    def describe(self) -> Mapping[str, Any]:
        """Model, endpoint, system prompt, decoding, style and the client's version; never a key.

        An endpoint's weights cannot be hashed: ``floating`` says that the name is an alias which
        the provider may point elsewhere.
        """
        client = "huggingface_hub" if self.provider else "openai"
        return {
            **self._fixed(),
            "options": "first token's best 20 alternatives; option_mass is a lower bound",
            "floating": self.options.floating,
            "client": f"{client} {metadata.version(client)}",
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """One question a batch: shapes do not matter here, order does not either."""
        return plan_by_count(len(requests), 1)

    def estimate(self, requests: Sequence[Request]) -> float | None:
        """As :func:`most_cost`."""
        return most_cost(
            requests,
            {
                "price": self.price,
                "system_prompt": self.options.system_prompt,
                "max_tokens": self.options.max_tokens,
            },
        )

    def admit(self, requests: Sequence[Request]) -> str | None:
        """Why these requests must not be begun, or None: they would exceed ``max_cost``."""
        if self.options.max_cost is None:
            return None
        cost = self.estimate(requests) or 0.0
        if self.spent + self._admitted + cost > self.options.max_cost:
            return (
                f"the next {len(requests)} prompts can cost ${cost:.4f} and ${self.spent:.4f} is "
                f"spent: --max-cost {self.options.max_cost:g} would be exceeded"
            )
        self._admitted += cost
        return None

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answers as they come in, ``concurrency`` in flight.

        Raises JudgeSenseError, naming the endpoint, when no prompt can be answered.
        """
        with _event_loop() as run:
            session = _Session(self, iter(batches), "options" in scorings)
            try:
                run(session.open())
                while finished := run(session.some()):
                    yield from finished
            except FatalError as error:
                where = self.provider or self.base_url or "the default endpoint"
                raise JudgeSenseError(self.hide(f"{self.model} at {where}: {error}")) from None
            finally:
                run(session.close())

    def close(self) -> None:
        """Connections are closed when a judging ends; nothing else is held."""

    def __reduce__(self) -> NoReturn:
        raise JudgeSenseError(
            f"{self.name} holds its key, so it is not sent to other processes: give the judge's "
            "name and options, and each process will read the key in its own environment"
        )

    def hide(self, text: str) -> str:
        """The text without the key and without whatever looks like one."""
        return without_secrets(text if self._key == _NO_KEY else text.replace(self._key, "***"))

    def client(self) -> Any:
        """The asynchronous client of the endpoint."""
        if self.provider:
            try:
                from huggingface_hub import AsyncInferenceClient
            except ImportError as error:
                raise MissingExtraError(
                    "huggingface_hub", "api", "an inference provider"
                ) from error
            return AsyncInferenceClient(
                provider=self.provider, api_key=self._key, timeout=self._timeout_s
            )
        try:
            from openai import AsyncOpenAI, DefaultAioHttpClient
        except ImportError as error:
            raise MissingExtraError("openai", "api", "an API judge") from error
        if importlib.util.find_spec("aiohttp") is None:
            raise MissingExtraError("aiohttp", "api", "an API judge")
        # Over aiohttp a question takes two thirds of the processor time that it takes over httpx.
        return AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=self._timeout_s,
            max_retries=0,
            http_client=DefaultAioHttpClient(),
        )


def most_cost(requests: Sequence[Request], options: Mapping[str, Any]) -> float | None:
    """The most these requests can cost in US dollars at a judge with these options (those of
    :class:`ApiJudge`), or None without a price.

    Counts a token for every 3 bytes of prompt, and every answer at its full length.
    """
    price = options.get("price")
    if price is None:
        return None
    system_prompt = options.get("system_prompt", SYSTEM_PROMPT)
    overhead = len(system_prompt.encode()) + 64
    read = sum((len(request.text.encode()) + overhead) / 3 for request in requests)
    written = len(requests) * options.get("max_tokens", MAX_TOKENS)
    return float((read * price[0] + written * price[1]) / 1e6)


def asker(client: Any) -> Callable[..., Awaitable[Any]]:
    """What asks one question of a client, given the request as ``chat.completions.create`` is."""
    if not hasattr(client, "post"):  # huggingface_hub's

        async def create(**body: Any) -> Any:
            reply = await client.chat.completions.create(**body)
            choices = getattr(reply, "choices", None) or ()
            # As mappings its messages lack what is not in its own list of fields: a refusal.
            return {**reply, "choices": [{**c, "message": vars(c.message)} for c in choices]}

        return create

    async def post(extra_body: Mapping[str, Any] | None = None, **body: Any) -> Any:
        # As create() does, but for its walks through the types of the question and of the reply:
        # four tenths of its time.
        whole = {**body, **(extra_body or {})}
        reply = await client.post("/chat/completions", cast_to=object, body=whole)
        return json.loads(reply) if isinstance(reply, str) else reply

    return post


@contextmanager
def _event_loop() -> Iterator[Callable[[Coroutine[Any, Any, _T]], _T]]:
    """What runs coroutines one after another on one event loop.

    A notebook's cell is run by an event loop, which cannot run another: then in a thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner() as runner:
            yield runner.run
        return
    with ThreadPoolExecutor(1) as thread:
        runner = thread.submit(asyncio.Runner).result()
        try:
            yield lambda coroutine: thread.submit(runner.run, coroutine).result()
        finally:
            thread.submit(runner.close).result()


class _Session:
    """One judging: workers that draw batches and put answers into a queue."""

    def __init__(
        self, judge: ApiJudge, batches: Iterator[tuple[int, Sequence[Request]]], logprobs: bool
    ) -> None:
        self._judge, self._batches, self._logprobs = judge, batches, logprobs
        self._done: deque[tuple[int, list[Answer]]] = deque()
        self._noise = random.Random(0).random
        self._workers: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        try:
            from aiolimiter import AsyncLimiter
        except ImportError as error:
            raise MissingExtraError("aiolimiter", "api", "an API judge") from error
        judge = self._judge
        self._client = judge.client()
        self._create = asker(self._client)
        self._arrived = asyncio.Event()
        self._limiters = [AsyncLimiter(limit, 60) if limit else None for limit in judge._limits]
        # One worker until the endpoint has answered once: a wrong key costs one call, not 64.
        self._workers = [asyncio.create_task(self._work())]

    async def some(self) -> list[tuple[int, list[Answer]]]:
        """The answers that have come in, at least one; an empty list at the end."""
        while not self._done:
            ended = [worker for worker in self._workers if worker.done()]
            for worker in ended:
                worker.result()  # raises what ended it
            if len(ended) == len(self._workers):
                return []
            self._arrived.clear()
            await self._arrived.wait()
        # Handing over stops the loop; so not for each answer.
        await asyncio.sleep(_GATHER_S)
        finished = list(self._done)
        self._done.clear()
        return finished

    async def close(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if hasattr(self, "_client"):
            await self._client.close()

    async def _work(self) -> None:
        try:
            await self._answer_batches()
        finally:
            self._arrived.set()

    async def _answer_batches(self) -> None:
        judge = self._judge
        for index, requests in self._batches:
            answers = [await self._ask(request) for request in requests]
            self._done.append((index, answers))
            self._arrived.set()
            judge._proven = judge._proven or any(answer.error is None for answer in answers)
            if not judge._proven and answers:
                judge._unanswered += 1
                if judge._unanswered == _HOPELESS:
                    raise FatalError(
                        f"{answers[-1].error}; none of the first {_HOPELESS} prompts got an answer"
                    )
            if judge._proven and len(self._workers) < judge.options.concurrency:
                more = judge.options.concurrency - len(self._workers)
                self._workers += [asyncio.create_task(self._work()) for _ in range(more)]

    async def _ask(self, request: Request) -> Answer:
        judge = self._judge
        most = judge.estimate([request])
        by_request, by_token = self._limiters
        if by_request:
            await by_request.acquire()
        if by_token:
            tokens = len(request.text) / 4 + judge.options.max_tokens
            await by_token.acquire(min(tokens, by_token.max_rate))
        body = body_of(
            request,
            model=judge.model,
            options=judge.options,
            logprobs=self._logprobs,
        )
        answer = await ask(
            self._create,
            body,
            request,
            judge._retry,
            judge._timeout_s,
            self._noise,
            judge._proven,
            judge.options.style.begins_thinking,
            judge.hide,
        )
        if judge.price and answer.error is None:
            read, written = answer.input_tokens, answer.output_tokens
            if read and written is not None:
                answer.cost_usd = (read * judge.price[0] + written * judge.price[1]) / 1e6
            else:
                # Without token counts a budget would never end.
                answer.cost_usd = most
            judge.spent += answer.cost_usd or 0.0
        if most is not None:
            judge._admitted = max(0.0, judge._admitted - most)
        return answer


def _key(variable: str, base_url: str | None) -> str:
    if key := os.environ.get(variable, "").strip():
        if not (key.isascii() and key.isprintable()):
            raise JudgeSenseError(
                f"the environment variable {variable} holds no key: a header cannot carry its "
                "characters; copy the key again"
            )
        return key
    if base_url and urlsplit(base_url).hostname in _LOOPBACK:
        return _NO_KEY
    raise JudgeSenseError(f"no key: set the environment variable {variable}")
