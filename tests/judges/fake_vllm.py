"""A fake vLLM server: a token is a character, and the next one has a made-up distribution.

It exists because a real one takes a minute to start; test_vllm_server.py asks a real one.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from aiohttp import web
from fake_endpoint import FakeEndpoint

END = "■"
"""Ends a turn."""

VOCABULARY = string.printable + END


def encoded(text: str) -> list[int]:
    return [VOCABULARY.find(each) if each in VOCABULARY else 0 for each in text]


def logprobs_after(tokens: Sequence[int]) -> np.ndarray:
    """The log-probability of each token of the vocabulary after these."""
    logits = np.random.default_rng([len(tokens), *tokens[-12:]]).normal(0, 2, len(VOCABULARY))
    return logits - math.log(np.exp(logits).sum())


def conversation(messages: Sequence[dict[str, str]], prompts_answer: bool = True) -> str:
    turns = "".join(f"[{each['role']}]{each['content']}{END}" for each in messages)
    return turns + ("[assistant]" if prompts_answer else "")


class FakeVllm(FakeEndpoint):
    """Has the routes of a vLLM server that option scoring uses.

    ``by_id`` is False for an older server, which ignores the ids that it is asked for.
    """

    def __init__(self, said: str = "YES", *, by_id: bool = True) -> None:
        super().__init__(lambda _: said)
        self.by_id = by_id
        self.continued: list[dict[str, Any]] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/v1/models", self.models),
            web.post("/v1/completions", self.completions),
            web.post("/tokenize", self.tokenize),
            web.post("/detokenize", self.detokenize),
        ]

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "fake", "owned_by": "vllm"}]})

    async def tokenize(self, request: web.Request) -> web.Response:
        asked = await request.json()
        text = asked.get("prompt")
        if text is None:
            text = conversation(asked["messages"], asked.get("add_generation_prompt", True))
        return web.json_response({"tokens": encoded(text)})

    async def detokenize(self, request: web.Request) -> web.Response:
        tokens = (await request.json())["tokens"]
        return web.json_response({"prompt": "".join(VOCABULARY[token] for token in tokens)})

    async def completions(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.continued.append(asked)
        choices = [
            {"index": at, "text": "", "logprobs": {"top_logprobs": [self.shown(tokens, asked)]}}
            for at, tokens in enumerate(asked["prompt"])
        ]
        return web.json_response({"choices": choices[::-1]})

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        whole = self.completion(self.rule(""))
        tokens = encoded(conversation(body["messages"]))
        whole["prompt_token_ids"] = tokens
        if body.get("logprobs"):
            top = [{"token": t, "logprob": p} for t, p in self.shown(tokens, body).items()]
            whole["choices"][0]["logprobs"] = {"content": [{"top_logprobs": top}]}  # type: ignore[index]
        return web.json_response(whole)

    def shown(self, tokens: Sequence[int], asked: dict[str, Any]) -> dict[str, float]:
        values = logprobs_after(tokens)
        best = np.argsort(-values)[: asked.get("top_logprobs") or asked["logprobs"]].tolist()
        wanted = asked.get("logprob_token_ids") if self.by_id else None
        named = asked.get("return_tokens_as_token_ids")
        return {
            f"token_id:{token}" if named else VOCABULARY[token]: float(values[token])
            for token in wanted or best
        }
