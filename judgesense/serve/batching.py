"""Requests that arrive together share batches: a bounded queue in front of one judge."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Generic, TypeVar

from judgesense.errors import JudgeSenseError

_PATIENCE, _MOST_S = 0.2, 0.5
"""A batch waits for the clients that were just answered: at most this share of the time that it
takes, and at most these seconds."""

A = TypeVar("A")
B = TypeVar("B")


class QueueFullError(JudgeSenseError):
    """The queue is full; ask again after ``retry_after`` seconds."""

    def __init__(self, waiting: int, retry_after: int) -> None:
        super().__init__(f"{waiting} requests are waiting; ask again in {retry_after} s")
        self.retry_after = retry_after


class Batcher(Generic[A, B]):
    """Collects what is asked at the same time, and asks it in one thread, batch by batch.

    Args:
        answer: the answers to a batch, in its order; called in a thread of its own.
        places: the most that may wait.
        at_once: the most in a batch.
    """

    def __init__(
        self, answer: Callable[[Sequence[A]], Sequence[B]], places: int = 1024, at_once: int = 128
    ) -> None:
        self._answer, self.places, self._at_once = answer, places, at_once
        self._waiting: dict[asyncio.Future[B], A] = {}
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "judge")
        self._each_s = 0.05
        self.batches = self.asked = 0
        self._failures: list[str] = []

    @property
    def waiting(self) -> int:
        """How many wait for a batch."""
        return len(self._waiting)

    @property
    def failing(self) -> str | None:
        """The kind of error of which the last three batches failed; None if one of them did not."""
        return self._failures[-1] if len(self._failures) >= 3 else None

    async def ask(self, asks: Sequence[A]) -> list[B]:
        """The answers, once their batches are done; a caller that leaves frees its places.

        Raises QueueFullError at once if there is no place for all of them, and what the judge
        raises for their batch.
        """
        if len(self._waiting) + len(asks) > self.places:
            wait = math.ceil(len(self._waiting) * self._each_s)
            raise QueueFullError(len(self._waiting), min(max(wait, 1), 60))
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in asks]
        self._waiting.update(zip(futures, asks, strict=True))
        self._arrived.set()
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                self._waiting.pop(future, None)

    async def run(self) -> None:
        """Answer batches until cancelled."""
        likely = 0
        while True:
            # Clients ask again once they are answered; those who come in time share a batch.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_PATIENCE * self._each_s * likely, _MOST_S)):
                    await self._until(likely)
            await self._until(1)
            batch = dict(islice(self._waiting.items(), self._at_once))
            for future in batch:
                del self._waiting[future]
            await self._ask(batch)
            likely = min(len(batch) + len(self._waiting), self._at_once)

    async def _until(self, waiting: int) -> None:
        while len(self._waiting) < waiting:
            self._arrived.clear()
            await self._arrived.wait()

    async def _ask(self, batch: dict[asyncio.Future[B], A]) -> None:
        loop, began = asyncio.get_running_loop(), time.monotonic()
        try:
            answers = await loop.run_in_executor(self._thread, self._answer, list(batch.values()))
            replies = list(zip(batch, answers, strict=True))
        except Exception as error:  # noqa: BLE001 - each caller gets it; the server lives on
            # Anybody may ask whether the judge answers: its error may quote what it judged.
            self._failures = [*self._failures[-2:], type(error).__name__]
            # One request may be what the judge dies of: it must not take the others with it.
            if len(batch) > 1 and not isinstance(error, JudgeSenseError):
                items = list(batch.items())
                for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                    await self._ask(dict(half))
                return
            for future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        self._failures.clear()
        self.batches, self.asked = self.batches + 1, self.asked + len(batch)
        taken = (time.monotonic() - began) / len(batch)
        self._each_s += 0.3 * (taken - self._each_s)
        for future, answer in replies:
            if not future.done():
                future.set_result(answer)

    def close(self) -> None:
        """Wait for the batch in progress, and stop the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)
