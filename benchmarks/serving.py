"""A served judge under load: 50 clients against the same judge called directly.

    python benchmarks/serving.py [--requests 2000] [--clients 50] [--long 20000]

SmolLM2 judges distinct factuality items. The peer is the loaded judge itself on the same items, at
once and in batches of as many items as there are clients. Every answer of the server has to be the
judge's own, and each item has to be judged once. Then clients are killed in the middle of requests,
and more requests are sent than have a place. Memory is measured with a judge by a rule, which is
the server's own: the growth per 1,000 requests after the first tenth.
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
from typing import Any

import aiohttp
import numpy as np
from common import finish, machine

from judgesense import load_judge
from judgesense_dataset.embedded import embedded_items

JUDGE = "smollm2-135m"
RULE = """
import sys
from judgesense import load_judge
from judgesense.serving import server
from judgesense.serving.served_judge import ServedJudge
from local_judges.callable_judge import CallableJudge
def rule(texts):
    return [{"YES": -0.1 - len(text) % 7, "NO": -1.0} for text in texts]
inner = CallableJudge(rule, scoring="options")
server.load_served = lambda judge: ServedJudge(
    {"factuality": load_judge(inner, task="factuality")}, "rule", inner)
server.serve("rule", port=0, places=64, ready=lambda url: print(f"rule at {url}/v1", flush=True))
"""


def items_of(n: int) -> list[dict[str, str]]:
    own = [item.fields for item in embedded_items() if item.task == "factuality"]
    return [
        {"question": own[k % len(own)]["question"],
         "response": own[(k + k // len(own)) % len(own)]["response"] + " " * (k // len(own) ** 2)}
        for k in range(n)
    ]  # fmt: skip


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--long", type=int, default=20000)
    given = parser.parse_args()
    n, clients = given.requests, given.clients
    items = items_of(n)
    results: list[dict[str, Any]] = []

    def told(name: str, ours: float, theirs: float | None, unit: str, n: int, peer: str) -> None:
        ratio = round(ours / theirs, 3) if theirs else None
        results.append({"name": name, "peer": peer, "ratio": ratio, "ours": round(ours, 4),
                        "theirs": None if theirs is None else round(theirs, 4), "unit": unit,
                        "n": n, "machine": machine("torch", "fastapi", "uvicorn")})  # fmt: skip
        print(name, results[-1]["ours"], results[-1]["theirs"], unit, flush=True)

    with load_judge(JUDGE, task="factuality") as judge:
        judge(items[:clients])
        began = time.perf_counter()
        expected = judge(items)
        direct_s = time.perf_counter() - began
        batches = []
        for start in range(0, n, clients):
            began = time.perf_counter()
            judge(items[start : start + clients])
            batches.append(time.perf_counter() - began)

    served = Served("-m", "judgesense", "serve", JUDGE, "--port", "0", "--set", "task=factuality")
    asyncio.run(load(served.url, items[:clients], clients))
    before = served.judged()
    began = time.perf_counter()
    rows, seconds = asyncio.run(load(served.url, items, clients))
    served_s = time.perf_counter() - began
    lost = sum(row is None or row[0] != 200 for row in rows)
    other = sum(row[1]["verdict"] != want.verdict for row, want in zip(rows, expected, strict=True))
    apart = max(abs(row[1]["probability"] - want.probability)
                for row, want in zip(rows, expected, strict=True))  # fmt: skip
    told("requests lost", lost, None, "requests", n, "none")
    told("items judged more than once", served.judged() - before - n, None, "items", n, "none")
    told("verdicts that differ", other, None, "verdicts", n, "the judge itself")
    told("largest difference of a probability", apart, None, "", n, "the judge itself")
    told("throughput", n / served_s, n / direct_s, "items/s", n, "the judge itself, at once")
    told("p95", float(np.quantile(seconds, 0.95)), float(np.quantile(batches, 0.95)), "s", n,
         f"batches of {clients}, directly")  # fmt: skip
    told("p50", float(np.median(seconds)), float(np.median(batches)), "s", n,
         f"batches of {clients}, directly")  # fmt: skip

    fork = multiprocessing.get_context("spawn")
    for k in range(10):
        process = fork.Process(target=client_until_killed, args=(served.url, items[k * 20 :]))
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

    served = Served("-c", RULE)
    crowd, _ = asyncio.run(load(served.url, items_of(600), 300))
    answered = sum(row[0] == 200 or (row[0] == 429 and int(row[2]) >= 1) for row in crowd)
    told("overload: answered with a verdict or 429", answered, 600, "requests", 600, "sent")
    long = items_of(given.long)
    tenth = given.long // 10
    asyncio.run(load(served.url, long[:tenth], clients))
    first = served.rss_mb()
    asyncio.run(load(served.url, long[tenth:], clients))
    growth = (served.rss_mb() - first) / (given.long - tenth) * 1000
    told("memory per 1,000 requests", growth, None, "MB", given.long, f"{first:.0f} MB before")
    served.stop()
    finish(results)


if __name__ == "__main__":
    main()
