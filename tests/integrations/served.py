"""A judge by a rule, behind a real server on the loopback."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from judgesense.pipeline.verdicts import load_judge
from judgesense.recipes.recipe import Recipe
from judgesense.serve.served_judge import ServedJudge
from judgesense.serve.server import app_of
from judgesense_dataset.embedded import embedded_templates
from judgesense_dataset.recognition import known_tasks
from local_judges.callable_judge import CallableJudge
from local_judges.improved_judge import ImprovedJudge


def rule(messages: Sequence[str]) -> list[dict[str, float]]:
    """Log-probabilities that depend on the whole message, and prefer the first option."""
    found = []
    for message in messages:
        shift = zlib.crc32(message.encode()) % 9973 / 2493 - 2
        one, other = -math.log1p(math.exp(-shift)), -math.log1p(math.exp(shift))
        scale = {str(n): -abs(n - 3 - shift) - 1 for n in range(6)}
        found.append({"A": one, "B": other, "YES": one, "NO": other, **scale})
    return found


def judge_of(function: Callable[..., Any] = rule, scoring: str = "options") -> CallableJudge:
    return CallableJudge(function, name="rule", scoring=scoring)


def file_of(path: Path, task: str, wordings: int, orders: tuple[str, ...]) -> Path:
    """A judge's file: a panel, or both orders."""
    entry = embedded_templates()[task]
    names = tuple(template.template_id for template in entry.templates[:wordings])
    made = Recipe("panel of wordings", names, orders, entry.task.labels, "most probable")
    asks = {"max_error": 0.1, "threshold": 0.5, "confidence": 0.95}
    ImprovedJudge(({"name": "rule@callable"},), entry, made, asks).write(path)
    return path


def served_of(path: Path | None = None, inner: Any = None, task: str = "factuality") -> ServedJudge:
    inner = inner or judge_of()
    if path is not None:
        one = load_judge(path, judge=inner)
        plain = inner[0] if isinstance(inner, list) else inner
        return ServedJudge({one.improved.entry.task.name: one}, path.stem, plain)
    scoring = min(inner.scorings)
    tasks = [task] if task else list(known_tasks())
    judges = {each: load_judge(inner, task=each, scoring=scoring) for each in tasks}
    return ServedJudge(judges, "rule", inner)


@contextlib.contextmanager
def running(served: ServedJudge, **options: Any) -> Iterator[str]:
    """The server's URL, while the block runs."""
    server = uvicorn.Server(uvicorn.Config(app_of(served, **options), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
