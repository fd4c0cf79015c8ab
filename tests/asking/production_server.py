"""A server as in production: it answers prompts of its user's own in text, and refuses at times."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """Answers a prompt by ``reply``; every ``busy``-th request gets 429, and requests with a
    parameter of ``refuses`` get 400."""

    def __init__(
        self,
        reply: Callable[[str], str],
        busy: int = 0,
        refuses: tuple[str, ...] = (),
        page: str = "",
        finish: str = "stop",
    ) -> None:
        self.reply, self.busy, self.refuses, self.page = reply, busy, refuses, page
        self.finish = finish
        self.bodies: list[dict[str, Any]] = []

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.bodies]

    def respond(self, body: dict[str, Any]) -> tuple[int, str]:
        self.bodies.append(body)
        if self.page:
            return 200, self.page
        if self.busy and len(self.bodies) % self.busy == 0:
            return 429, json.dumps({"error": {"message": "slow down"}})
        for name in self.refuses:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return 400, json.dumps({"error": {"message": message, "param": name}})
        message = {"role": "assistant", "content": self.reply(body["messages"][-1]["content"])}
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        usage = {"prompt_tokens": 90, "completion_tokens": 30, "total_tokens": 120}
        return 200, json.dumps(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            | {"choices": [choice], "usage": usage}
        )


@contextmanager
def serving(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send(404, "{}")

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self.send(*server.respond(json.loads(self.rfile.read(length))))

        def send(self, status: int, text: str) -> None:
            kind = "text/html" if text.startswith("<") else "application/json"
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "0.01")
            self.end_headers()
            self.wfile.write(body)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()


def share(text: str) -> float:
    """A number from 0 to 1 that the text fixes."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1000 / 1000


def is_supported(prompt: str) -> bool:
    """Whether the last answer in a prompt repeats what its context says."""
    fact = re.search(r" is ([^.\n]*(?:\.\d[^.\n]*)?)\. Other rules", prompt)
    claims = re.findall(r"The [a-z ]+ is ([^\n]*?)\.(?:\n|$|\")", prompt)
    return bool(fact and claims and fact[1].strip() == claims[-1].strip())


def facts(n: int) -> Iterator[tuple[dict[str, str], bool]]:
    """Rows of a question, a context and an answer, and whether the context says it."""
    for number in range(n):
        value, is_right = f"{number + 20} EUR", number * 7 % 5 % 2 == 0
        yield (
            {
                "question": f"What is the fee of plan {number}?",
                "context": f"Terms: the fee of plan {number} is {value}. Other rules apply.",
                "answer": f"The fee is {value if is_right else 'nothing'}.",
            },
            is_right,
        )
