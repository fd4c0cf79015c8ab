"""A server on the loopback: an OpenAI-compatible judge by a rule, and GitHub's comments."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from judgesense.trust.rules import Rule
from judgesense_dataset.embedded import embedded_templates
from local_judges.registry import resolve
from local_judges.stabilised_file import Stabilised

COMMENTS = re.compile(r"/repos/me/mine/issues/(\d+)/comments(?:\?per_page=(\d+)&page=(\d+))?")
COMMENT = re.compile(r"/repos/me/mine/issues/comments/(\d+)")


class Loopback:
    """Answers chat completions by ``rule``, and keeps the comments of me/mine.

    ``refuses`` is the status of every change of a comment, if set; ``moved`` redirects them all.
    """

    def __init__(self, rule: Callable[[str], str] = lambda _: "YES") -> None:
        self.rule = rule
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str, str | None]] = []
        self.asked = 0
        self.refuses: int | None = None
        self.moved: str | None = None
        self.url = ""

    def comment(self, body: str, kind: str = "Bot") -> dict[str, Any]:
        number = len(self.comments) + 1
        made = {"id": number, "body": body, "user": {"type": kind}, "html_url": f"u/{number}"}
        self.comments.append(made)
        return made

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/chat/completions"):
            self.asked += 1
            said = self.rule(body["messages"][-1]["content"])
            choice = {"index": 0, "message": {"role": "assistant", "content": said},
                      "finish_reason": "stop"}  # fmt: skip
            return 200, {"id": "x", "object": "chat.completion", "created": 0, "model": "rule",
                         "choices": [choice]}  # fmt: skip
        if method != "GET" and self.refuses:
            return self.refuses, {"message": "Resource not accessible by integration"}
        if (found := COMMENTS.fullmatch(path)) and method == "GET":
            size, page = int(found[2]), int(found[3])
            return 200, self.comments[(page - 1) * size : page * size]
        if COMMENTS.fullmatch(path) and method == "POST":
            return 201, self.comment(body["body"])
        if (found := COMMENT.fullmatch(path)) and method == "PATCH":
            one = self.comments[int(found[1]) - 1]
            one["body"] = body["body"]
            return 200, one
        return 404, {"message": "Not Found"}


@contextlib.contextmanager
def serving(loopback: Loopback) -> Iterator[str]:
    """The server's URL, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            loopback.calls.append((self.command, self.path, self.headers.get("Authorization")))
            if loopback.moved:
                self.send_response(307)
                self.send_header("Location", loopback.moved + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, told = loopback.answer(self.command, self.path, body)
            text = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = _do

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    loopback.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield loopback.url
    finally:
        server.shutdown()
        server.server_close()


def factual(text: str) -> str:
    """Reads the response: Paris is right, Lyon is wrong, Nice depends on the wording, and anything
    else gets no verdict."""
    response = text.rpartition("Response: ")[2]
    if "Nice" in response:
        return "NO" if text.startswith("Fact-check") else "YES"
    verdicts = {"Paris": "YES", "Lyon": "NO"}
    return next((said for name, said in verdicts.items() if name in response), "Hard to say.")


def stable_file(path: Path, url: str) -> Path:
    """A stabilised judge: the loopback, asked in three wordings of factuality."""
    entry = embedded_templates()["factuality"]
    rule = Rule("panel of 3", ("factuality-1", "factuality-2", "factuality-3"), ("-",),
                entry.task.labels, "vote")  # fmt: skip
    judge = {"judge": "rule", "engine": "api", "model": "rule", "options": {"base_url": url}}
    judge["name"] = resolve("rule", base_url=url).load().name
    asks = {"max_error": 0.1, "threshold": 0.5, "confidence": 0.95}
    Stabilised(judge, entry, rule, asks).write(path)
    return path


def section(title: str) -> str:
    """The part of docs/integrations.md on one tool."""
    page = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
    return page.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
