"""Bounds on a reply: how many bytes are read of it, and for how long.

A client's own timeouts bound the wait for the next bytes. An endpoint that never stops sending, or
whose compressed reply grows a thousandfold, needs these.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

MOST_BYTES = 64 << 20
"""The largest reply that is read, decompressed; 8,192 tokens with 20 alternatives are 20 MB."""
ENCODING = "utf-8"
"""That of JSON, whatever the reply's header says; some of Python's codecs are not for text."""


class ReplyBoundError(Exception):
    """A reply is too large, or takes too long."""


def bounded_hooks() -> dict[str, list[Any]]:
    """``event_hooks`` of an asynchronous httpx client: no reply above ``MOST_BYTES``.

    Its calls raise ReplyBoundError.
    """

    async def bound(response: Any) -> None:
        chunks = response.aiter_bytes

        async def counted() -> AsyncIterator[bytes]:
            size = 0
            async for chunk in chunks():
                size = _checked(size + len(chunk))
                yield chunk

        response.aiter_bytes = counted
        response.encoding = ENCODING

    return {"response": [bound]}


def bounded_sync_hooks(most_s: float) -> dict[str, list[Any]]:
    """As :func:`bounded_hooks` for a synchronous client, which has no other bound on the time."""

    def bound(response: Any) -> None:
        chunks, started = response.iter_bytes, time.perf_counter()

        def counted() -> Iterator[bytes]:
            size = 0
            for chunk in chunks():
                size = _checked(size + len(chunk))
                if time.perf_counter() - started > most_s:
                    raise ReplyBoundError(f"the reply is not complete after {most_s:g} s")
                yield chunk

        response.iter_bytes = counted
        response.encoding = ENCODING

    return {"response": [bound]}


def _checked(size: int) -> int:
    if size > MOST_BYTES:
        raise ReplyBoundError(f"the reply is larger than {MOST_BYTES >> 20} MiB")
    return size
