"""Workers that ask the prompts of a run at an endpoint, many at a time, on one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from judgesense.errors import MissingExtraError
from local_judges.api.endpoint import Endpoint, sender
from local_judges.api.replies import FatalError
from local_judges.protocol import Answer, Request

_GATHER_S = 0.01
"""How long answers are collected before the runner gets them."""
_MAX_CONNECTIONS = 1000
"""The most that the client opens; further requests would spend their timeout waiting for one."""
_MAX_UNANSWERED = 3
"""The run ends if none of this many first prompts gets an answer."""
_T = TypeVar("_T")


@contextmanager
def event_loop() -> Iterator[Callable[[Coroutine[Any, Any, _T]], _T]]:
    """A function that runs coroutines one after another on one event loop.

    A cell of a notebook is run by an event loop, which cannot run another: then in a thread.
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


class Session:
    """Workers that draw batches, ask them and collect the answers.

    ``requests_per_minute`` and ``tokens_per_minute`` limit all workers together. ``announce`` is
    called with the number of each batch and its requests, ``settle`` with these and their answers.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        batches: Iterator[tuple[int, Sequence[Request]]],
        logprobs: bool,
        announce: Callable[[int, Sequence[Request]], None],
        settle: Callable[[int, Sequence[tuple[Request, Answer]]], None],
    ) -> None:
        self._endpoint, self._batches, self._logprobs = endpoint, batches, logprobs
        self._announce, self._settle = announce, settle
        self._answered: deque[tuple[int, list[Answer]]] = deque()
        self._unanswered = 0
        self._workers: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Connect, and start the first worker. Raises FatalError for an unreachable endpoint."""
        try:
            from aiolimiter import AsyncLimiter
        except ImportError as error:
            raise MissingExtraError("aiolimiter", "api", "an API judge") from error
        options = self._endpoint.options
        self._client = self._endpoint.client()
        self._create = sender(self._client, self._endpoint.path)
        self._endpoint.complete = sender(self._client, "/completions")
        self._arrived = asyncio.Event()
        if self._logprobs and self._endpoint.path == Endpoint.path:
            await asyncio.to_thread(self._endpoint.find_scorer)
        self._limiters = [
            AsyncLimiter(limit, 60) if limit else None
            for limit in (options.requests_per_minute, options.tokens_per_minute)
        ]
        # One worker until the endpoint has answered once: a wrong key costs one call, not 64.
        self._workers = [asyncio.create_task(self._work())]

    async def next_answers(self) -> list[tuple[int, list[Answer]]]:
        """The batches that are answered, at least one; an empty list at the end."""
        while not self._answered:
            done = [worker for worker in self._workers if worker.done()]
            for worker in done:
                worker.result()  # raises the worker's error, if any
            if len(done) == len(self._workers):
                return []
            self._arrived.clear()
            await self._arrived.wait()
        # Returning stops the loop, so wait for a few more.
        await asyncio.sleep(_GATHER_S)
        answers = list(self._answered)
        self._answered.clear()
        return answers

    async def close(self) -> None:
        """Stop the workers and close the connections."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if hasattr(self, "_client"):
            await self._client.close()

    async def _work(self) -> None:
        try:
            for index, requests in self._batches:
                answers = await self._ask(index, requests)
                self._answered.append((index, answers))
                self._arrived.set()
                self._grow_or_give_up(answers)
        finally:
            self._arrived.set()

    def _grow_or_give_up(self, answers: Sequence[Answer]) -> None:
        """Start the other workers after the first answer; give up if there is none."""
        endpoint = self._endpoint
        endpoint.proven = endpoint.proven or any(answer.error is None for answer in answers)
        if not endpoint.proven and answers:
            self._unanswered += 1
            if self._unanswered == _MAX_UNANSWERED:
                none = f"none of the first {_MAX_UNANSWERED} prompts got an answer"
                raise FatalError(f"{answers[-1].error}; {none}")
        if endpoint.proven:
            n_more = min(endpoint.options.concurrency, _MAX_CONNECTIONS) - len(self._workers)
            self._workers += [asyncio.create_task(self._work()) for _ in range(n_more)]

    async def _ask(self, index: int, requests: Sequence[Request]) -> list[Answer]:
        by_request, by_token = self._limiters
        if by_request:
            await by_request.acquire()
        if by_token:
            answer_tokens = self._endpoint.options.max_tokens
            tokens = sum(len(request.message) / 4 + answer_tokens for request in requests)
            await by_token.acquire(min(tokens, by_token.max_rate))
        self._announce(index, requests)
        answers = await self._endpoint.ask(self._create, requests, self._logprobs)
        self._settle(index, list(zip(requests, answers, strict=True)))
        return answers
