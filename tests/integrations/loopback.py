"""A server on the loopback: an OpenAI-compatible judge by a rule."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from judgesense.recipes.recipe import Recipe
from judgesense_dataset.embedded import embedded_templates
from local_judges.improved_judge import ImprovedJudge
from local_judges.registry import resolve


class Loopback:
    """Answers chat completions by ``rule``."""

    def __init__(self, rule: Callable[[str], str] = lambda _: "YES") -> None:
        self.rule = rule
        self.asked = 0
        self.url = ""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/chat/completions"):
            self.asked += 1
            said = self.rule(body["messages"][-1]["content"])
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": said},
                "finish_reason": "stop",
            }
            return 200, {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "rule",
                "choices": [choice],
            }
        return 404, {"message": "Not Found"}


@contextlib.contextmanager
def serving(loopback: Loopback) -> Iterator[str]:
    """The server's URL, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            status, told = loopback.answer(self.command, self.path, body)
            text = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _do

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
    """An improved judge: the loopback, asked in three wordings of factuality."""
    entry = embedded_templates()["factuality"]
    recipe = Recipe(
        "panel of 3",
        ("factuality-1", "factuality-2", "factuality-3"),
        ("-",),
        entry.task.labels,
        "vote",
    )
    judge = {"judge": "rule", "engine": "api", "model": "rule", "options": {"base_url": url}}
    judge["name"] = resolve("rule", base_url=url).load().name
    asks = {"max_error": 0.1, "threshold": 0.5, "confidence": 0.95}
    ImprovedJudge((judge,), entry, recipe, asks).write(path)
    return path


def section(title: str) -> str:
    """The part of docs/integrations.md on one tool."""
    page = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
    return page.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
