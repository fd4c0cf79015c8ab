"""API throughput: 64 questions in flight against an endpoint that takes 100 ms to answer.

    python benchmarks/api.py [--questions 10000]

The endpoint is a fake in its own process: it has no model, waits, and answers YES. The peer is the
bare ``openai`` client with a semaphore, against the same endpoint in the same run. Its connections
are already open; opening ours is part of the measured time. CPU time is reported too, because it
depends less on other load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import time

from local_judges.api.judge import ApiJudge
from local_judges.protocol import Request

IN_FLIGHT, DELAY_S = 64, 0.1
GENERATE = frozenset({"generate"})

BODY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "YES"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52},
    }
).encode()
REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    + BODY
)


class Endpoint(asyncio.Protocol):
    """Reads only the length of a request, and sends the same bytes after the delay.

    The client runs on the same machine, and a server that parses HTTP would use as much CPU.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.held = transport, b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at:].split(b"\r\n", 1)[0])
            if len(self.held) < end + 4 + length:
                return
            self.held = self.held[end + 4 + length :]
            asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, REPLY)


async def serve() -> None:
    """Serve on a free port until killed; print the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Endpoint, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def bare(url: str, texts: list[str]) -> float:
    from openai import AsyncOpenAI

    gate = asyncio.Semaphore(IN_FLIGHT)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def one(text: str) -> None:
            async with gate:
                messages = [{"role": "user", "content": text}]
                await client.chat.completions.create(
                    model="fake", messages=messages, max_tokens=20, temperature=0.0
                )

        await asyncio.gather(*(one(text) for text in texts[:IN_FLIGHT]))
        started = time.perf_counter()
        await asyncio.gather(*(one(text) for text in texts))
        return len(texts) / (time.perf_counter() - started)


def ours(url: str, texts: list[str]) -> float:
    judge = ApiJudge("fake", base_url=url, concurrency=IN_FLIGHT)
    batches = ((i, [Request(str(i), text, ("YES", "NO"))]) for i, text in enumerate(texts))
    started = time.perf_counter()
    answers = [answer for _, batch in judge.judge(batches, GENERATE) for answer in batch]
    seconds = time.perf_counter() - started
    assert all(answer.text == "YES" for answer in answers)
    assert len(answers) == len(texts)
    return len(texts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    n = given.questions
    texts = [f"Is statement {index} right? YES or NO. ".ljust(300, "x") for index in range(n)]
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        began = time.process_time()
        theirs = asyncio.run(bare(url, texts))
        between = time.process_time()
        rate = ours(url, texts)
        ended = time.process_time()
    finally:
        server.kill()
        server.wait()
    ideal = IN_FLIGHT / DELAY_S
    print(
        f"ideal {ideal:.0f}/s; ours {rate:.0f}/s ({rate / ideal:.0%}); "
        f"bare openai client {theirs:.0f}/s ({theirs / ideal:.0%})"
    )
    result = {
        "name": "questions per second, 64 in flight, 100 ms each",
        "peer": "bare openai client",
        "ratio": round(rate / theirs, 3),
        "ours": round(rate, 1),
        "theirs": round(theirs, 1),
        "ideal": ideal,
        "ours_cpu_ms": round(1000 * (ended - between) / n, 3),
        "theirs_cpu_ms": round(1000 * (between - began) / (n + IN_FLIGHT), 3),
        "unit": "questions/s",
        "n": n,
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {sys.version.split()[0]}",
    }
    print(json.dumps([result]))


if __name__ == "__main__":
    main()
