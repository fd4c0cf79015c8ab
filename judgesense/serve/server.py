"""``judgesense serve``: a judge at one address, for every tool that speaks HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.serve.batching import Batcher, QueueFullError
from judgesense.serve.reply_forms import content_of, form_of
from judgesense.serve.served_judge import Ask, ServedJudge, Verdict, load_served
from judgesense.version import __version__
from local_judges.api.systemone import SystemOneRequest
from local_judges.protocol import Answer

try:
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse
    from starlette.exceptions import HTTPException as AnyHTTPException
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "serve", "judgesense serve") from error

MOST_BYTES = 8 * 2**20
"""The largest body of a request."""

BODY_S = 30.0
"""Seconds in which a request's body has to arrive."""

PLACES = 1024
"""Messages that may wait."""


class _Message(BaseModel):
    role: Literal["system", "developer", "user"]
    content: str | list[dict[str, Any]]

    @property
    def text(self) -> str:
        parts = self.content
        if isinstance(parts, str):
            return parts
        if any(part.get("type") != "text" for part in parts):
            raise JudgeSenseError("a message has a part that is not text")
        return "".join(str(part.get("text", "")) for part in parts)


class ChatRequest(BaseModel):
    """A request as OpenAI's clients send it. Sampling is the judge's own: temperature and the like
    are ignored."""

    model: str
    messages: list[_Message] = Field(min_length=1)
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    logprobs: bool | None = None
    n: Literal[1] | None = None
    response_format: dict[str, Any] | None = None


class JudgeRequest(BaseModel):
    """An item's fields, or several items. ``task`` is needed only where a server has several."""

    model_config = ConfigDict(extra="allow")

    task: str | None = None
    items: list[dict[str, Any]] | None = Field(None, min_length=1)


class _Gate:
    """What a request passes before it is read: its key, and the size and speed of its body."""

    def __init__(self, app: Any, key: str | None, local: bool, counts: Counter[str]) -> None:
        self._app, self._local, self._counts = app, local, counts
        self._key = hashlib.sha256(key.encode()).digest() if key else None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 499

        async def sent(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        refused, read = await self._read(scope, receive)
        await (refused or self._app)(scope, read, sent)
        path = getattr(scope.get("route"), "path", "other")
        self._counts[f'requests_total{{path="{path}",status="{status}"}}'] += 1
        self._counts["request_seconds_sum"] += time.monotonic() - began  # type: ignore[assignment]
        self._counts["request_seconds_count"] += 1

    async def _read(self, scope: Any, receive: Any) -> tuple[Any, Any]:
        """What to answer at once, if anything; and the body, read."""
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ").strip()
        wanted = self._key if scope["path"] != "/health" else None
        if wanted and not hmac.compare_digest(hashlib.sha256(given).digest(), wanted):
            return _error(401, "wrong or missing API key"), receive
        asked = headers.get(b"host", b"").decode("latin-1")
        asked = asked[1:].partition("]")[0] if asked[:1] == "[" else asked.partition(":")[0]
        if self._local and not _is_loopback(asked):
            # A page in the browser whose name was made to lead here.
            return _error(403, f"{asked} is not this machine; set --api-key-env to serve"), receive
        body, more = b"", True
        with suppress(TimeoutError):
            async with asyncio.timeout(BODY_S):
                while more and len(body) <= MOST_BYTES:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return _error(413, f"the body is over {MOST_BYTES} bytes"), receive
        if more:
            return _error(408, f"the body did not arrive in {BODY_S:g} s"), receive
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Any:
            return whole.pop() if whole else await receive()

        return None, read


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as OpenAI's clients read it, and (``detail``) as those of /v1/systemone do."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": status}
    return JSONResponse({"error": error, "detail": message}, status, headers)


def app_of(
    served: ServedJudge, *, key: str | None = None, local: bool = False, places: int = PLACES
) -> FastAPI:
    """The server as an ASGI application.

    Args:
        served: the judge, loaded.
        key: the key that requests must have, as a bearer token; None for no key.
        local: answer only requests that name this machine.
        places: the most messages that may wait.
    """
    counts: Counter[str] = Counter()
    batcher: Batcher[Ask, Answer] = Batcher(served.answer, places)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        work = asyncio.create_task(batcher.run())
        yield
        work.cancel()
        batcher.close()

    # FastAPI's own pages load their programs from other machines.
    app = FastAPI(
        title="JudgeSense", version=__version__, lifespan=running, docs_url=None, redoc_url=None
    )
    app.add_middleware(_Gate, key=key, local=local, counts=counts)

    async def failed(request: Request, error: Any) -> JSONResponse:
        if isinstance(error, AnyHTTPException):
            return _error(error.status_code, str(error.detail), error.headers)
        if isinstance(error, RecursionError):
            return _error(400, "the JSON is nested too deeply")
        if isinstance(error, UnicodeError):
            return _error(400, "the text holds half a character (a lone surrogate)")
        if isinstance(error, JudgeSenseError):
            return _error(422, str(error))
        # Any page in a browser may send a body that does not call itself JSON.
        if "json" not in request.headers.get("content-type", ""):
            return _error(415, 'send JSON, with the header "Content-Type: application/json"')
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        return _error(422, f"{place}: {first['msg']}".removeprefix(": "))

    for kind in (
        AnyHTTPException,
        RecursionError,
        UnicodeError,
        JudgeSenseError,
        RequestValidationError,
    ):
        app.add_exception_handler(kind, failed)

    async def verdicts(request: Request, asks: list[Ask]) -> list[Verdict]:
        """The verdicts, or why there are none; a client that leaves frees its places."""
        if len(asks) > places:
            raise HTTPException(413, f"the request has {len(asks)} messages; send at most {places}")

        async def left() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        work, gone = asyncio.ensure_future(batcher.ask(asks)), asyncio.ensure_future(left())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise HTTPException(499, "the client disconnected")
            answers = work.result()
        except HTTPException:
            raise
        except QueueFullError as full:
            raise HTTPException(429, str(full), {"Retry-After": str(full.retry_after)}) from full
        except Exception as error:  # whatever the judge dies of is one clear error
            what = "" if isinstance(error, JudgeSenseError) else f"{type(error).__name__}: "
            raise HTTPException(503, f"the judge failed: {what}{error}") from error
        finally:
            work.cancel()
            gone.cancel()
        if len(asks) == 1 and answers[0].error:
            raise HTTPException(502, f"the judge failed: {answers[0].error}")
        found = [served.verdict(*both) for both in zip(asks, answers, strict=True)]
        for each in found:
            counts[f'verdicts_total{{judged="{each.judged}"}}'] += 1
        return found

    def require_model(model: str) -> None:
        if model not in (served.name, "judge"):
            raise HTTPException(404, f"unknown model {model!r}; this server has {served.name!r}")

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> str:
        """What can be asked here."""
        rows = "".join(
            f"<dt><code>{method.upper()} {path}</code><dd>{escape(own['description'])}"
            for path, methods in app.openapi()["paths"].items()
            for method, own in methods.items()
        )
        return f'<h1>{escape(served.name)}</h1><dl>{rows}</dl><a href="openapi.json">Fields</a>'

    @app.get("/health")
    async def health() -> Any:
        """Whether the judge answers."""
        if batcher.failing is not None:
            return _error(503, f"the last batches failed: {batcher.failing}")
        return {"status": "ok", "model": served.name, "waiting": batcher.waiting}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        """Counters for Prometheus."""
        own = {
            "batches_total": batcher.batches,
            "batched_messages_total": batcher.asked,
            "queue_waiting": batcher.waiting,
            "queue_places": places,
        }
        return "".join(
            f"judgesense_{name} {n:.10g}\n" for name, n in sorted((counts | own).items())
        )

    @app.get("/v1/models")
    async def models() -> Any:
        """The judge, as OpenAI's clients and those of /v1/systemone list models."""
        signatures = "; ".join(map(served.signature, served.judges))
        card = {"id": served.name, "object": "model", "created": 0, "owned_by": "judgesense"}
        named = {"name": served.name, "description": signatures, "release_date": "1970-01-01"}
        return {"object": "list", "data": [card], "models": [named]}

    @app.post("/v1/judge")
    async def judge(body: JudgeRequest, request: Request) -> Any:
        """Judge an item, or several in ``items``."""
        task, given = body.task, [body.model_extra or {}] if body.items is None else body.items
        own = served.judges[served.one].stabilised.fields if served.one else ()
        if body.items is None and "task" in own:
            task, given = None, [{**given[0], "task": body.task}]  # A column of the rubric.
        asks = [served.of_item(each, task, n) for n, each in enumerate(given, 1)]
        found = await verdicts(request, asks)
        rows = [
            _row(each, served.signature(ask.item.task))
            for each, ask in zip(found, asks, strict=True)
        ]
        return rows[0] if body.items is None else {"results": rows}

    @app.post("/v1/systemone")
    async def systemone(body: SystemOneRequest, request: Request) -> Any:
        """Answer typed questions about a state with probabilities."""
        require_model(body.model)
        asks = [served.of_question(body.state, each) for each in body.questions.values()]
        answers, used = {}, Counter(input_tokens=0, output_tokens=0)
        for each, found in zip(body.questions, await verdicts(request, asks), strict=True):
            if found.options is None:
                raise JudgeSenseError(f"{each}: the judge gave no probabilities: {found.reason}")
            answers[each] = body.questions[each].answer(list(found.options.values()))
            used["input_tokens"] += found.answer.input_tokens or 0
            used["output_tokens"] += found.answer.output_tokens or 0
        return {"model": served.name, "answers": answers, "usage": used}

    @app.post("/v1/chat/completions")
    async def chat(body: ChatRequest, request: Request) -> Any:
        """Judge a rendered prompt."""
        require_model(body.model)
        system = "\n\n".join(each.text for each in body.messages if each.role != "user")
        text = "\n\n".join(each.text for each in body.messages if each.role == "user")
        if not text:
            raise JudgeSenseError("no user message has text")
        ask, wording = served.of_message(text, system)
        (found,) = await verdicts(request, [ask])
        task = served.task(ask)
        form = form_of(body.response_format, task, wording, system)
        content = None if found.answer.refused else content_of(found, form, task)
        reply = _completion(served, ask, found, content, bool(body.logprobs))
        if not body.stream:
            return reply
        usage = bool((body.stream_options or {}).get("include_usage"))
        return StreamingResponse(_chunks(reply, usage), media_type="text/event-stream")

    return app


def _row(found: Verdict, signature: str) -> dict[str, Any]:
    own = found.verdict
    return {
        "item_id": own.item_id,
        "verdict": own.verdict,
        "probabilities": found.probabilities,
        "probability": own.probability,
        "margin": own.margin,
        "score": own.score,
        "ask_person": own.ask_person,
        "votes": found.votes,
        "judged": found.judged,
        "reason": found.reason,
        "cost_usd": own.cost_usd,
        "error": own.error,
        "signature": signature,
    }


def _completion(
    served: ServedJudge, ask: Ask, found: Verdict, content: str | None, logprobs: bool
) -> dict[str, Any]:
    """A chat completion; its ``judgesense`` is the row of /v1/judge."""
    shown = None
    if logprobs and found.options:
        top = [
            {"token": option, "logprob": math.log(max(share, 1e-304)), "bytes": [*option.encode()]}
            for option, share in sorted(found.options.items(), key=lambda each: -each[1])
        ]
        own = next((each for each in top if each["token"] == found.raw), top[0])
        shown = {"content": [{**own, "top_logprobs": top}], "refusal": None}
    refusal = (found.answer.text or "refused") if found.answer.refused else None
    read, written = found.answer.input_tokens or 0, found.answer.output_tokens or 0
    task = ask.item.task
    return {
        "id": f"chatcmpl-{time.time_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": served.name,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": shown,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
        "judgesense": _row(found, served.signature(task) if task in served.judges else ""),
    }


async def _chunks(reply: dict[str, Any], usage: bool) -> AsyncIterator[str]:
    """The completion as a stream: the verdict in one piece, as it is known all at once."""
    reply["object"] = "chat.completion.chunk"
    used, (choice,) = reply.pop("usage"), reply.pop("choices")
    first = {**choice, "delta": choice.pop("message"), "finish_reason": None}
    first.pop("message", None)
    parts = [{"choices": [first]}, {"choices": [{**choice, "delta": {}, "logprobs": None}]}]
    for part in [*parts, {"choices": [], "usage": used}] if usage else parts:
        yield f"data: {json.dumps({**reply, **part}, ensure_ascii=False)}\n\n"
    yield "data: [DONE]\n\n"


def serve(
    judge: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    key: str | None = None,
    insecure: bool = False,
    ready: Callable[[str], None] = print,
    places: int = PLACES,
    **options: Any,
) -> None:
    """Serve a judge until the process is told to stop; requests in progress are answered.

    Args:
        judge: a judge's file; or a name, Hub id or path.
        host, port: where to listen; port 0 takes a free one.
        key: the key that clients must send.
        insecure: listen on a public address without a key.
        ready: called with the URL, once the judge is loaded.
        places: the most messages that may wait; further requests get 429.
        options: ``task``, ``wording`` and ``scoring``, and the options of the engine.

    Raises:
        JudgeSenseError: a public address without a key, a port in use, a judge that cannot be
            loaded.
    """
    if not (key or insecure or _is_loopback(host)):
        raise JudgeSenseError(
            f"other machines can reach {host}; name the variable of a key with --api-key-env, "
            "or pass --insecure to serve without one"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            why = error.strerror or error
            raise JudgeSenseError(
                f"cannot listen on {host}:{port}: {why}; choose another --port"
            ) from error
        served = load_served(judge, **options)
        try:
            app = app_of(served, key=key, local=not key and _is_loopback(host), places=places)
            listening.listen(1024)
            ready(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
            with suppress(KeyboardInterrupt):
                uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])
        finally:
            served.close()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
