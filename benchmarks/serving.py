"""A served judge under load: 50 clients against the same judge called directly.

    python benchmarks/serving.py [--requests 2000] [--clients 50] [--long 20000] [--delay S]

SmolLM2 judges distinct factuality items. The peer is the loaded judge itself on the same items, at
once and in batches of as many items as there are clients. Every answer of the server has to be the
judge's own, and each item has to be judged once. Then clients are killed in the middle of requests,
and more requests are sent than have a place. Memory is measured with a judge by a rule, which is
the server's own: the slope over the last nine tenths.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import numpy as np
from common import finish, machine

from judgesense import load_judge
from judgesense_dataset.embedded import embedded_items
from local_judges.callable_judge import CallableJudge

JUDGE = "smollm2-135m"
RULE = """
import sys
from judgesense import load_judge
from judgesense.serve import server
from judgesense.serve.served_judge import ServedJudge
from local_judges.callable_judge import CallableJudge
import time
def rule(texts):
    time.sleep({delay} * len(texts))
    return [{{"YES": -0.1 - len(text) % 7, "NO": -1.0}} for text in texts]
inner = CallableJudge(rule, scoring="options")
server.load_served = lambda judge: ServedJudge(
    {{"factuality": load_judge(inner, task="factuality")}}, "rule", inner)
server.serve("rule", port=0, places={places},
             ready=lambda url: print(f"rule at {{url}}/v1", flush=True))
"""


def items_of(n: int) -> list[dict[str, str]]:
    own = [item.fields for item in embedded_items() if item.task == "factuality"]
    return [
        {
            "question": own[k % len(own)]["question"],
            "response": own[(k + k // len(own)) % len(own)]["response"]
            + " " * (k // len(own) ** 2),
        }
        for k in range(n)
    ]


class Served:
    """A server in a process of its own."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if " at http" in line)
        self.url = line.split(" at ")[1].split("/v1")[0]

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}/{path}") as reply:
            return str(reply.read().decode())

    def judged(self) -> int:
        return int(self.get("metrics").split("batched_messages_total ")[1].split("\n")[0])

    def rss_mb(self) -> float:
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(x.split()[1]) for x in status if x.startswith("VmRSS")) / 1024

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


async def load(
    url: str, items: list[dict[str, str]], clients: int
) -> tuple[list[Any], list[float]]:
    """The rows, in the items' order (None for a lost one), and the seconds of each request."""
    rows: list[Any] = [None] * len(items)
    seconds: list[float] = []
    todo = iter(range(len(items)))

    async def client(session: aiohttp.ClientSession) -> None:
        for at in todo:
            began = time.perf_counter()
            async with session.post(f"{url}/v1/judge", json=items[at]) as reply:
                rows[at] = (reply.status, await reply.json(), reply.headers.get("Retry-After"))
            seconds.append(time.perf_counter() - began)

    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=900)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return rows, seconds


def client_until_killed(url: str, items: list[dict[str, str]]) -> None:
    asyncio.run(load(url, items, 5))


Told = Callable[[str, float, float | None, str, int, str], None]


def against_the_judge(told: Told, n: int, clients: int, delay: float | None) -> None:
    """The same items through the server and directly, then clients that are killed."""
    items = items_of(n)
    command = ["-m", "judgesense", "serve", JUDGE, "--port", "0", "--set", "task=factuality"]
    own: Any = JUDGE
    if delay is not None:
        command = ["-c", RULE.format(delay=delay, places=1024)]

        def rule(texts: list[str]) -> list[dict[str, float]]:
            time.sleep(delay * len(texts))
            return [{"YES": -0.1 - len(text) % 7, "NO": -1.0} for text in texts]

        own = CallableJudge(rule, scoring="options")
    with load_judge(own, task="factuality") as judge:
        judge(items[:clients])
        began = time.perf_counter()
        expected = judge(items)
        direct_s = time.perf_counter() - began
        batches = []
        for start in range(0, n, clients)[:20]:
            began = time.perf_counter()
            judge(items[start : start + clients])
            batches.append(time.perf_counter() - began)

    served = Served(*command)
    asyncio.run(load(served.url, items[:clients], clients))
    before = served.judged()
    began = time.perf_counter()
    rows, seconds = asyncio.run(load(served.url, items, clients))
    served_s = time.perf_counter() - began
    lost = sum(row is None or row[0] != 200 for row in rows)
    pairs = [(row[1], want) for row, want in zip(rows, expected, strict=True)]
    other = sum(row["verdict"] != want.verdict for row, want in pairs)
    apart = max(
        abs(row["probability"] - want.probability)
        for row, want in pairs
        if row["verdict"] == want.verdict
    )
    told("requests lost", lost, None, "requests", n, "none")
    told("items judged more than once", served.judged() - before - n, None, "items", n, "none")
    told("verdicts that differ", other, None, "verdicts", n, "the judge itself")
    told("largest difference of a probability", apart, None, "", n, "the judge itself")
    told("throughput", n / served_s, n / direct_s, "items/s", n, "the judge itself, at once")
    for name, share in (("p95", 0.95), ("p50", 0.5)):
        ours, theirs = (float(np.quantile(each, share)) for each in (seconds, batches))
        told(name, ours, theirs, "s", n, f"batches of {clients}, directly")

    spawn = multiprocessing.get_context("spawn")
    for k in range(10):
        process = spawn.Process(target=client_until_killed, args=(served.url, items[k * 10 :]))
        process.start()
        while json.loads(served.get("health"))["waiting"] == 0 and process.is_alive():
            time.sleep(0.02)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    after, _ = asyncio.run(load(served.url, items[:clients], clients))
    same = sum(
        row[1]["verdict"] == want.verdict for row, want in zip(after, expected, strict=False)
    )
    told("answered after 10 kill -9 of clients", same, clients, "requests", clients, "sent")
    print("exit code after SIGINT:", served.stop())


def without_a_model(told: Told, n: int, clients: int) -> None:
    """Overload, and memory over many requests."""
    served = Served("-c", RULE.format(delay=0, places=64))
    crowd, _ = asyncio.run(load(served.url, items_of(600), 300))
    answered = sum(row[0] == 200 or (row[0] == 429 and int(row[2]) >= 1) for row in crowd)
    told("overload: answered with a verdict or 429", answered, 600, "requests", 600, "sent")
    told("overload: verdicts", sum(row[0] == 200 for row in crowd), 600, "requests", 600, "sent")
    items, tenth, sizes = items_of(n), n // 10, []
    began = time.perf_counter()
    for start in range(0, n, tenth):
        asyncio.run(load(served.url, items[start : start + tenth], clients))
        sizes.append(served.rss_mb())
    told(
        "requests per second of the server alone",
        n / (time.perf_counter() - began),
        None,
        "requests/s",
        n,
        "none",
    )
    slope = float(np.polyfit(np.arange(1, 10), sizes[1:], 1)[0]) / tenth * 1000
    told("memory per 1,000 requests", slope, None, "MB", n, f"{sizes[0]:.0f} to {sizes[-1]:.0f} MB")
    served.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--long", type=int, default=20000)
    parser.add_argument("--delay", type=float, help="seconds an item, of a judge without a model")
    given = parser.parse_args()
    results: list[dict[str, Any]] = []

    def told(name: str, ours: float, theirs: float | None, unit: str, n: int, peer: str) -> None:
        ratio = round(ours / theirs, 3) if theirs else None
        results.append(
            {
                "name": name,
                "peer": peer,
                "ratio": ratio,
                "ours": round(ours, 6),
                "theirs": None if theirs is None else round(theirs, 6),
                "unit": unit,
                "n": n,
                "machine": machine("torch", "fastapi", "uvicorn"),
            }
        )
        print(name, results[-1]["ours"], results[-1]["theirs"], unit, flush=True)

    if given.long:
        without_a_model(told, given.long, given.clients)
    if given.requests:
        against_the_judge(told, given.requests, given.clients, given.delay)
    finish(results)


if __name__ == "__main__":
    main()
