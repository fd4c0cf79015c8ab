"""The server's endpoints (`router`) and what they share (`Service`)."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.pipeline.events import emit_verdicts
from judgesense.serve.batching import Batcher, QueueFullError
from judgesense.serve.gate import error_reply
from judgesense.serve.reply_forms import content_of, form_of
from judgesense.serve.served_judge import Ask, ServedJudge, Verdict
from local_judges.api.systemone import SystemOneRequest
from local_judges.protocol import Answer

try:
    from fastapi import APIRouter, HTTPException, Request
    from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "serve", "judgesense serve") from error

PLACES = 1024
"""Messages that may wait."""

router = APIRouter()


@dataclass
class Service:
    """A loaded judge, its queue and its counters: the state behind the endpoints.

    ``places`` is the most messages that may wait.
    """

    served: ServedJudge
    places: int = PLACES
    counts: Counter[str] = field(default_factory=Counter)
    batcher: Batcher[Ask, Answer] = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = Batcher(self.served.answer, self.places)

    async def verdicts(self, request: Request, asks: list[Ask]) -> list[Verdict]:
        """The verdicts, or why there are none; a client that leaves frees its places."""
        if len(asks) > self.places:
            raise HTTPException(
                413, f"the request has {len(asks)} messages; send at most {self.places}"
            )

        async def left() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        work, gone = asyncio.ensure_future(self.batcher.ask(asks)), asyncio.ensure_future(left())
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
        verdicts = [self.served.verdict(*both) for both in zip(asks, answers, strict=True)]
        emit_verdicts(
            (verdict.verdict, self.served.signature(ask.item.task), request.headers)
            for ask, verdict in zip(asks, verdicts, strict=True)
        )
        for verdict in verdicts:
            self.counts[f'verdicts_total{{judged="{verdict.judged}"}}'] += 1
        return verdicts

    def require_model(self, model: str) -> None:
        """Raises HTTPException (404) for a model that this server does not have."""
        if model not in (self.served.name, "judge"):
            known = self.served.name
            raise HTTPException(404, f"unknown model {model!r}; this server has {known!r}")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


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


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
async def docs(request: Request) -> str:
    """What can be asked here."""
    name = escape(_service(request).served.name)
    rows = "".join(
        f"<dt><code>{method.upper()} {path}</code><dd>{escape(operation['description'])}"
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in methods.items()
    )
    return f'<h1>{name}</h1><dl>{rows}</dl><a href="openapi.json">Fields</a>'


@router.get("/health")
async def health(request: Request) -> Any:
    """Whether the judge answers."""
    service = _service(request)
    if service.batcher.failing is not None:
        return error_reply(503, f"the last batches failed: {service.batcher.failing}")
    waiting = service.batcher.waiting
    return {"status": "ok", "model": service.served.name, "waiting": waiting}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> str:
    """Counters for Prometheus."""
    service = _service(request)
    queue = {
        "batches_total": service.batcher.batches,
        "batched_messages_total": service.batcher.asked,
        "queue_waiting": service.batcher.waiting,
        "queue_places": service.places,
    }
    counters = sorted((service.counts | queue).items())
    return "".join(f"judgesense_{name} {n:.10g}\n" for name, n in counters)


@router.get("/v1/models")
async def models(request: Request) -> Any:
    """The judge, as OpenAI's clients and those of /v1/systemone list models."""
    served = _service(request).served
    signatures = "; ".join(map(served.signature, served.judges))
    card = {"id": served.name, "object": "model", "created": 0, "owned_by": "judgesense"}
    named = {"name": served.name, "description": signatures, "release_date": "1970-01-01"}
    return {"object": "list", "data": [card], "models": [named]}


@router.post("/v1/judge")
async def judge(body: JudgeRequest, request: Request) -> Any:
    """Judge an item, or several in ``items``."""
    service = _service(request)
    served = service.served
    task, items = body.task, [body.model_extra or {}] if body.items is None else body.items
    fields = served.judges[served.one].improved.fields if served.one else ()
    if body.items is None and "task" in fields:
        task, items = None, [{**items[0], "task": body.task}]  # A column of the rubric.
    asks = [served.of_item(item, task, n) for n, item in enumerate(items, 1)]
    verdicts = await service.verdicts(request, asks)
    rows = [
        _row(verdict, served.signature(ask.item.task))
        for verdict, ask in zip(verdicts, asks, strict=True)
    ]
    return rows[0] if body.items is None else {"results": rows}


@router.post("/v1/systemone")
async def systemone(body: SystemOneRequest, request: Request) -> Any:
    """Answer typed questions about a state with probabilities."""
    service = _service(request)
    service.require_model(body.model)
    asks = [service.served.of_question(body.state, each) for each in body.questions.values()]
    answers, used = {}, Counter(input_tokens=0, output_tokens=0)
    verdicts = await service.verdicts(request, asks)
    for (name, question), verdict in zip(body.questions.items(), verdicts, strict=True):
        if verdict.options is None:
            raise JudgeSenseError(f"{name}: the judge gave no probabilities: {verdict.note}")
        answers[name] = question.answer(list(verdict.options.values()))
        used["input_tokens"] += verdict.answer.input_tokens or 0
        used["output_tokens"] += verdict.answer.output_tokens or 0
    return {"model": service.served.name, "answers": answers, "usage": used}


@router.post("/v1/chat/completions")
async def chat(body: ChatRequest, request: Request) -> Any:
    """Judge a rendered prompt."""
    service = _service(request)
    service.require_model(body.model)
    system = "\n\n".join(each.text for each in body.messages if each.role != "user")
    text = "\n\n".join(each.text for each in body.messages if each.role == "user")
    if not text:
        raise JudgeSenseError("no user message has text")
    ask, wording = service.served.of_message(text, system)
    (verdict,) = await service.verdicts(request, [ask])
    task = service.served.task(ask)
    form = form_of(body.response_format, task, wording, system, template=ask.template)
    content = None if verdict.answer.refused else content_of(verdict, form, task)
    reply = _completion(service.served, ask, verdict, content, bool(body.logprobs))
    if not body.stream:
        return reply
    usage = bool((body.stream_options or {}).get("include_usage"))
    return StreamingResponse(_chunks(reply, usage), media_type="text/event-stream")


def _row(answered: Verdict, signature: str) -> dict[str, Any]:
    """A verdict as /v1/judge replies it."""
    verdict = answered.verdict
    return {
        "item_id": verdict.item_id,
        "verdict": verdict.verdict,
        "probabilities": answered.probabilities,
        "probability": verdict.probability,
        "margin": verdict.margin,
        "score": verdict.score,
        "ask_person": verdict.ask_person,
        "votes": answered.votes,
        "judged": answered.judged,
        "reason": answered.reason,
        "note": answered.note,
        "cost_usd": verdict.cost_usd,
        "error": verdict.error,
        "signature": signature,
    }


def _completion(
    served: ServedJudge, ask: Ask, verdict: Verdict, content: str | None, logprobs: bool
) -> dict[str, Any]:
    """A chat completion; its ``judgesense`` is the row of /v1/judge."""
    shown = None
    if logprobs and verdict.options:
        top = [
            {"token": option, "logprob": math.log(max(share, 1e-304)), "bytes": [*option.encode()]}
            for option, share in sorted(verdict.options.items(), key=lambda each: -each[1])
        ]
        chosen = next((each for each in top if each["token"] == verdict.raw), top[0])
        shown = {"content": [{**chosen, "top_logprobs": top}], "refusal": None}
    refusal = (verdict.answer.text or "refused") if verdict.answer.refused else None
    read, written = verdict.answer.input_tokens or 0, verdict.answer.output_tokens or 0
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
        "judgesense": _row(verdict, served.signature(task)),
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
