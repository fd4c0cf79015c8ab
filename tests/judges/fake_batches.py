"""A fake endpoint with the batch APIs of OpenAI and Anthropic, as their documentation has them.

A batch moves one status on with each look, stays in progress while it is ``held``, and returns its
lines in another order than they were sent.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiohttp import web
from fake_endpoint import FakeEndpoint

STATUSES = ("validating", "in_progress", "finalizing", "completed")
EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}


class FakeBatches(FakeEndpoint):
    """``kind`` is the provider.

    ``expires_at`` prompts of a batch are answered, the others expire. A line that ``breaks`` is a
    server error. ``refused`` is a parameter that the model does not take. ``drops_reply`` cuts the
    connection once a batch is created, and ``cuts_results`` the first download half way. The first
    ``fails_looks`` looks meet an overloaded server. A batch ``forgets`` one of its fields. The
    prompts that were answered count in ``paid``.
    """

    def __init__(
        self,
        rule: Callable[[str], str],
        kind: str = "openai",
        *,
        expires_at: int | None = None,
        breaks: Callable[[str], bool] = lambda _: False,
        refused: str = "",
        drops_reply: bool = False,
        invalid: str = "",
        fails_looks: int = 0,
        cuts_results: bool = False,
        forgets: str = "",
        **options: Any,
    ) -> None:
        super().__init__(rule, **options)
        self.kind, self.expires_at, self.breaks = kind, expires_at, breaks
        self.refused, self.drops_reply, self.invalid = refused, drops_reply, invalid
        self.fails_looks, self.cuts_results, self.forgets = fails_looks, cuts_results, forgets
        self.held = False
        self.files: dict[str, str] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.prompts: dict[str, list[dict[str, Any]]] = {}
        self.looks: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()

    def routes(self) -> list[web.RouteDef]:
        if self.kind == "anthropic":
            place = "/v1/messages/batches"
            return [
                *super().routes(),
                web.post(place, self.create_messages),
                web.get(place, self.listed),
                web.get(f"{place}/{{id}}", self.retrieve_messages),
                web.get(f"{place}/{{id}}/results", self.results),
            ]
        return [
            *super().routes(),
            web.post("/v1/files", self.upload),
            web.get("/v1/files/{id}/content", self.content),
            web.post("/v1/batches", self.create),
            web.get("/v1/batches", self.listed),
            web.get("/v1/batches/{id}", self.retrieve),
        ]

    # OpenAI

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        identity = f"file-{len(self.files)}"
        self.files[identity] = form["file"].file.read().decode()  # type: ignore[union-attr]
        return web.json_response({"id": identity, "object": "file", "purpose": "batch"})

    async def content(self, request: web.Request) -> web.StreamResponse:
        return await self._file(request)

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["endpoint"] == "/v1/chat/completions"
        assert body["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert {(line["method"], line["url"]) for line in lines} == {("POST", body["endpoint"])}
        batch = {
            "object": "batch",
            "created_at": int(time.time()),
            "status": "validating",
            "metadata": body["metadata"],
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        return self._created(request, "batch", batch, [(x["custom_id"], x["body"]) for x in lines])

    async def retrieve(self, request: web.Request) -> web.Response:
        batch = self._look(request)
        if batch["status"] == "validating" and self.invalid:
            errors = [{"code": "invalid", "message": self.invalid, "line": 1, "param": None}]
            batch |= {"status": "failed", "errors": {"object": "list", "data": errors}}
        if batch["status"] in STATUSES[:3] and not (self.held and batch["status"] != "validating"):
            batch["status"] = STATUSES[STATUSES.index(batch["status"]) + 1]
        if batch["status"] == "completed" and "output_file_id" not in batch:
            out, failed = [], []
            answered = self._answered(batch["id"])
            for identity, body, status in answered:
                response = {"status_code": status, "request_id": "r", "body": body}
                line = {"id": "x", "custom_id": identity, "response": response, "error": None}
                if status == 0:
                    line |= {"response": None, "error": EXPIRED}
                    batch["status"] = "expired"
                (out if status == 200 else failed).append(json.dumps(line))
            for name, lines in (("output", out), ("error", failed)):
                self.files[f"{batch['id']}-{name}"] = "\n".join(lines)
                batch[f"{name}_file_id"] = f"{batch['id']}-{name}" if lines else None
            batch["request_counts"] |= {"completed": len(out), "failed": len(failed)}
        return web.json_response(batch)

    # Anthropic

    async def create_messages(self, request: web.Request) -> web.Response:
        requests = (await request.json())["requests"]
        batch = {
            "type": "message_batch",
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
            "processing_status": "in_progress",
            "request_counts": self._counts(processing=len(requests)),
            "results_url": None,
        }
        pairs = [(each["custom_id"], each["params"]) for each in requests]
        return self._created(request, "msgbatch", batch, pairs)

    def _counts(self, **known: int) -> dict[str, int]:
        names = ("processing", "succeeded", "errored", "canceled", "expired")
        return {name: known.get(name, 0) for name in names}

    async def retrieve_messages(self, request: web.Request) -> web.Response:
        batch = self._look(request)
        if self.looks[batch["id"]] > 2 and not self.held and batch["results_url"] is None:
            lines = []
            kinds: Counter[str] = Counter()
            for identity, body, status in self._answered(batch["id"]):
                result = self._result(body, status)
                kinds[result["type"]] += 1
                lines.append(json.dumps({"custom_id": identity, "result": result}))
            self.files[batch["id"]] = "\n".join(lines)
            batch |= {
                "processing_status": "ended",
                "request_counts": self._counts(**kinds),
                "results_url": "https://elsewhere.example/results",
            }
        return web.json_response(batch)

    def _result(self, body: dict[str, Any], status: int) -> dict[str, Any]:
        if status == 0:
            return {"type": "expired"}
        if status != 200:
            kind = "invalid_request_error" if status == 400 else "api_error"
            error = {"type": kind, "message": body["error"]["message"]}
            return {"type": "errored", "error": {"type": "error", "error": error}}
        message = {
            "type": "message",
            "model": "fake",
            "content": [{"type": "text", "text": body["choices"][0]["message"]["content"]}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 50, "output_tokens": 2},
        }
        return {"type": "succeeded", "message": message}

    async def results(self, request: web.Request) -> web.StreamResponse:
        self._require_key(request)
        return await self._file(request)

    # Both

    async def _file(self, request: web.Request) -> web.StreamResponse:
        text = self.files[request.match_info["id"]]
        if not self.cuts_results:
            return web.Response(text=text)
        self.cuts_results = False
        response = web.StreamResponse()
        response.content_length = len(text)
        await response.prepare(request)
        await response.write(text[: len(text) // 2].encode())
        assert request.transport is not None
        request.transport.close()
        return response

    def _require_key(self, request: web.Request) -> None:
        if self.kind == "anthropic":
            assert request.headers["anthropic-version"] == "2023-06-01"
            assert request.headers["x-api-key"]

    async def listed(self, request: web.Request) -> web.Response:
        self._require_key(request)
        newest = list(reversed(self.batches.values()))
        return web.json_response({"data": newest, "has_more": False, "last_id": None})

    def _created(
        self, request: web.Request, kind: str, batch: dict[str, Any], pairs: list[tuple[str, Any]]
    ) -> web.Response:
        self._require_key(request)
        assert len(dict(pairs)) == len(pairs)
        assert all(len(identity) <= 64 for identity, _ in pairs)
        batch["id"] = f"{kind}_{len(self.batches)}"
        self.batches[batch["id"]] = batch
        self.prompts[batch["id"]] = [{"id": identity, **body} for identity, body in pairs]
        if self.drops_reply:
            assert request.transport is not None
            self.drops_reply = False
            request.transport.abort()
        return web.json_response(batch)

    def _look(self, request: web.Request) -> dict[str, Any]:
        self._require_key(request)
        identity = request.match_info["id"]
        self.looks[identity] += 1
        if self.looks[identity] <= self.fails_looks:
            raise web.HTTPServiceUnavailable
        batch = self.batches[identity]
        if self.forgets:
            text = json.dumps({name: batch[name] for name in batch if name != self.forgets})
            raise web.HTTPOk(text=text, content_type="application/json")
        return batch

    def _answered(self, batch: str) -> list[tuple[str, dict[str, Any], int]]:
        """(custom id, body, HTTP status) of each prompt, shuffled; 0 for one that expired."""
        lines = []
        for number, prompt in enumerate(self.prompts[batch]):
            text = prompt["messages"][-1]["content"]
            if self.expires_at is not None and number >= self.expires_at:
                lines.append((prompt["id"], {}, 0))
            elif self.refused and self.refused in prompt:
                error = {"message": f"Unsupported parameter: '{self.refused}'", "code": "x"}
                lines.append((prompt["id"], {"error": error}, 400))
            elif self.breaks(text):
                lines.append((prompt["id"], {"error": {"message": "overloaded"}}, 500))
            else:
                self.paid[f"{text} {prompt.get('seed', 0)}"] += 1
                lines.append((prompt["id"], self.reply(text, prompt.get("logprobs", False)), 200))
        random.Random(0).shuffle(lines)
        return lines
