"""64 questions in flight against an endpoint that takes 100 ms: how much of the ideal rate?

    python benchmarks/api.py [--questions 3000]

The endpoint is a fake in a process of its own (no model: it sleeps and says YES). The peer is the
bare ``openai`` client with a semaphore, against the same endpoint in the same run.
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

from local_judges.api_judge import ApiJudge
from local_judges.protocol import Request

IN_FLIGHT, DELAY_S = 64, 0.1

SERVER = f"""
import asyncio, json
from aiohttp import web
BODY = json.dumps({{"id": "x", "object": "chat.completion", "created": 0, "model": "fake",
    "choices": [{{"index": 0, "message": {{"role": "assistant", "content": "YES"}},
                 "finish_reason": "stop"}}],
    "usage": {{"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52}}}}).encode()
async def complete(request):
    await request.read()
    await asyncio.sleep({DELAY_S})
    return web.Response(body=BODY, content_type="application/json")
async def serve():
    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.sleep(600)
asyncio.run(serve())
"""


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
    answers = [
        answer for _, batch in judge.judge(batches, frozenset({"generate"})) for answer in batch
    ]
    seconds = time.perf_counter() - started
    assert all(answer.text == "YES" for answer in answers)
    assert len(answers) == len(texts)
    return len(texts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=3000)
    n = parser.parse_args().questions
    texts = [f"Is statement {index} right? YES or NO. ".ljust(300, "x") for index in range(n)]
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        theirs = asyncio.run(bare(url, texts))
        rate = ours(url, texts)
    finally:
        server.kill()
        server.wait()
    ideal = IN_FLIGHT / DELAY_S
    print(f"ideal {ideal:.0f}/s; ours {rate:.0f}/s ({rate / ideal:.0%}); "
          f"bare openai client {theirs:.0f}/s ({theirs / ideal:.0%})")  # fmt: skip
    result = {
        "name": "questions per second, 64 in flight, 100 ms each",
        "peer": "bare openai client",
        "ratio": round(rate / theirs, 3),
        "ours": round(rate, 1),
        "theirs": round(theirs, 1),
        "ideal": ideal,
        "unit": "questions/s",
        "n": n,
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {sys.version.split()[0]}",
    }
    print(json.dumps([result]))


if __name__ == "__main__":
    main()
