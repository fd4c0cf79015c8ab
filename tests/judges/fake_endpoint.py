"""A fake OpenAI-compatible endpoint: it knows no language, only how endpoints misbehave.

Real servers with real models are tested elsewhere; this one exists because no real one resets
connections, stalls, or answers 429 on demand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import ClientSession, web

FAULTS = (
    "429",
    "429-retry-after",
    "500",
    "502",
    "reset",
    "stall",
    "drip",
    "truncated",
    "malformed",
    "empty",
    "page",
)


class FakeEndpoint:
    """Answers YES or NO by a rule of the message, after ``delay_s``, failing as told.

    A message that it ``spurns`` is a bad request whenever it is asked; the error quotes the key.
    """

    def __init__(
        self,
        rule: Callable[[str], str],
        *,
        delay_s: float = 0.0,
        fault_rate: float = 0.0,
        key: str | None = None,
        seed: int = 0,
        stall_s: float = 3.0,
        counts_tokens: bool = True,
        spurns: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.stall_s, self.counts_tokens, self.spurns = stall_s, counts_tokens, spurns
        self.rule, self.delay_s, self.fault_rate, self.key = rule, delay_s, fault_rate, key
        self.calls: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict[str, object]] = []
        self._random = random.Random(seed)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/{prefix:.*}/chat/completions", self.complete)]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            given = request.headers.get("Authorization", "")
            message = {"error": {"message": f"Incorrect API key provided: {given}"}}
            return web.json_response(message, status=401)
        self.bodies.append(body)
        text = body["messages"][-1]["content"]
        if self.spurns(text):
            said = f"too long; you sent {request.headers.get('Authorization')}"
            return web.json_response({"error": {"message": said}}, status=400)
        if self._random.random() < self.fault_rate:
            fault = self._random.choice(FAULTS)
            self.faults[fault] += 1
            return await self._fail(fault, request)
        await asyncio.sleep(self.delay_s)
        self.calls[text] += 1
        return await self.answer(body)

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        text = body["messages"][-1]["content"]
        return web.json_response(self.reply(text, body.get("logprobs", False)))

    def reply(self, text: str, logprobs: bool) -> dict[str, object]:
        return self.completion(self.rule(text), logprobs)

    def completion(self, said: str, logprobs: bool = False) -> dict[str, object]:
        choice: dict[str, object] = {
            "index": 0,
            "message": {"role": "assistant", "content": said},
            "finish_reason": "stop",
        }
        if logprobs:
            other = "NO" if said == "YES" else "YES"
            top = [
                {"token": token, "logprob": math.log(p), "bytes": None}
                for token, p in ((said, 0.7), (other, 0.2), ("the", 0.05))
            ]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}], "refusal": None}
        whole: dict[str, object] = {
            "id": "fake",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [choice],
        }
        if self.counts_tokens:
            whole["usage"] = {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52}
        return whole

    async def _fail(self, fault: str, request: web.Request) -> web.StreamResponse:
        if fault == "429":
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        if fault == "429-retry-after":
            headers = {"Retry-After": "0.02"}
            return web.json_response({"error": {"message": "slow"}}, status=429, headers=headers)
        if fault in ("500", "502"):
            return web.Response(text="<html>bad gateway</html>", status=int(fault))
        if fault == "stall":
            await asyncio.sleep(self.stall_s)
            return web.Response(status=504)
        if fault == "page":
            return web.Response(text="<html>Please sign in</html>", content_type="text/html")
        if fault == "malformed":
            return web.Response(text="{not json", content_type="application/json")
        if fault == "empty":
            whole = {**self.completion(""), "choices": []}
            return web.json_response(whole)
        assert request.transport is not None
        if fault == "reset":
            request.transport.abort()
            return web.Response()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = 400
        await response.prepare(request)
        if fault == "drip":
            with contextlib.suppress(ConnectionError):
                for _ in range(20):
                    await response.write(b" ")
                    await asyncio.sleep(self.stall_s / 20)
            return response
        await response.write(json.dumps(self.completion("x")).encode()[:60])
        request.transport.close()
        return response


class FaultProxy(FakeEndpoint):
    """Stands before a real server: passes calls on, but for those that it spoils, and refuses
    what the provider refuses whenever it is asked. ``began`` is set with the first call."""

    def __init__(
        self, upstream: str, *, refuses: Callable[[str], bool] = lambda _: False, **options: Any
    ) -> None:
        super().__init__(lambda _: "", **options)
        self.upstream, self.refuses = upstream, refuses
        self.began = threading.Event()

    def routes(self) -> list[web.RouteDef]:
        others = web.route("*", "/{path:.*}", self.pass_on)
        return [*super().routes(), others]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.began.set()
        return await super().complete(request)

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """A call that is no chat: the list of models, the tokenizer, plain completions."""
        if self._random.random() < self.fault_rate:
            fault = self._random.choice([each for each in FAULTS if each != "empty"])
            self.faults[fault] += 1
            return await self._fail(fault, request)
        place = f"{self.upstream.removesuffix('/v1')}/{request.match_info['path']}"
        async with (
            ClientSession() as session,
            session.request(
                request.method,
                place,
                data=await request.read(),
                headers={"Content-Type": "application/json"},
            ) as reply,
        ):
            return web.Response(
                body=await reply.read(), status=reply.status, content_type=reply.content_type
            )

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        if self.refuses(body["messages"][-1]["content"]):
            whole = self.completion("")
            message = {"role": "assistant", "content": None, "refusal": "I must decline."}
            whole["choices"][0]["message"] = message  # type: ignore[index]
            return web.json_response(whole)
        async with (
            ClientSession() as session,
            session.post(f"{self.upstream}/chat/completions", json=body) as reply,
        ):
            return web.Response(
                body=await reply.read(), status=reply.status, content_type="application/json"
            )


@contextlib.contextmanager
def serving(endpoint: FakeEndpoint) -> Iterator[str]:
    """The endpoint's base URL on the loopback, while the block runs."""
    up = threading.Event()
    stop: list[Callable[[], object]] = []
    port: list[int] = []

    async def serve() -> None:
        down = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(down.set))
        app = web.Application()
        app.add_routes(endpoint.routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.append(runner.addresses[0][1])
        up.set()
        await down.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert up.wait(10), "the fake endpoint did not come up"
    try:
        yield f"http://127.0.0.1:{port[0]}/v1"
    finally:
        stop[0]()
        thread.join(10)
