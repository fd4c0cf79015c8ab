"""What a request passes before it is read: its key, and the size and speed of its body."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense.files.limits import BODY_S, HELD_BYTES, REQUEST_BYTES

try:
    from fastapi.responses import JSONResponse
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "serve", "judgesense serve") from error


class Gate:
    """The middleware that refuses a request, or reads its whole body and passes it on.

    ``key`` is the bearer token that requests must have, if any; with ``local``, they must name this
    machine as their host. ``counts`` are the server's counters.
    """

    def __init__(self, app: Any, key: str | None, local: bool, counts: Counter[str]) -> None:
        self._app, self._local, self._counts = app, local, counts
        self._key = hashlib.sha256(key.encode()).digest() if key else None
        self._held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer an ASGI request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 499

        async def sent(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        held = [0]
        try:
            refused, read = await self._read(scope, receive, held)
            await (refused or self._app)(scope, read, sent)
        finally:
            self._held -= held[0]
        path = getattr(scope.get("route"), "path", "other")
        self._counts[f'requests_total{{path="{path}",status="{status}"}}'] += 1
        self._counts["request_seconds_sum"] += time.monotonic() - began  # type: ignore[assignment]
        self._counts["request_seconds_count"] += 1

    async def _read(self, scope: Any, receive: Any, held: list[int]) -> tuple[Any, Any]:
        """What to answer at once, if anything; and the body, read. ``held`` are its bytes."""
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ").strip()
        wanted = self._key if scope["path"] != "/health" else None
        if wanted and not hmac.compare_digest(hashlib.sha256(given).digest(), wanted):
            return error_reply(401, "wrong or missing API key"), receive
        asked = headers.get(b"host", b"").decode("latin-1")
        asked = asked[1:].partition("]")[0] if asked[:1] == "[" else asked.partition(":")[0]
        if self._local and not is_loopback(asked):
            # A page in the browser whose name was made to lead here.
            return error_reply(
                403, f"{asked} is not this machine; set --api-key-env to serve"
            ), receive
        body, more = b"", True
        with suppress(TimeoutError):
            async with asyncio.timeout(BODY_S):
                while more and len(body) <= REQUEST_BYTES and self._held <= HELD_BYTES:
                    message = await receive()
                    body += (part := message.get("body", b""))
                    held[0] += len(part)
                    self._held += len(part)
                    more = message.get("more_body", False)
        if len(body) > REQUEST_BYTES:
            return error_reply(413, f"the body is over {REQUEST_BYTES} bytes"), receive
        if self._held > HELD_BYTES:
            wait = {"Retry-After": "1"}
            said = "the requests that wait are too large together; ask again"
            return error_reply(429, said, wait), receive
        if more:
            return error_reply(408, f"the body did not arrive in {BODY_S:g} s"), receive
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Any:
            return whole.pop() if whole else await receive()

        return None, read


def error_reply(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An error as OpenAI's clients read it, and (``detail``) as those of /v1/systemone do."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": status}
    return JSONResponse({"error": error, "detail": message}, status, headers)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
