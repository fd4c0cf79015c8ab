"""A run against a real server that is spoiled on the way and killed again and again.

Shared by the tests and by ``benchmarks/api_faults.py``, which is the same at its full size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from fake_endpoint import FaultProxy, serving

from judgesense.benchmark import Benchmark, table_of_pairs, table_of_prompts
from judgesense.log.schema import part_files, read_log
from judgesense.tasks import Item, Task, Template, pair_up, render
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.runner import run_judge

if TYPE_CHECKING:
    from local_judges.local.transformers_judge import TransformersJudge

KEY = "sk-trial-0123456789abcdef"
MAX_TOKENS = 2
PART = 64
"""Prompts of a part of a run of this size: what a kill keeps."""

_TASK = Task("factuality", ("YES", "NO"))
_SAME = {"YES": "YES", "NO": "NO"}


def local_judge() -> TransformersJudge:
    """The model that the server serves, in this process; the killed ones need no torch."""
    from local_judges.local.transformers_judge import TransformersJudge

    return TransformersJudge("smollm2-135m", name="local", max_tokens=MAX_TOKENS, system_prompt="")


def sums(n: int) -> Benchmark:
    """n short and distinct prompts, two an item."""
    layout = "{instruction} {sum}"
    templates = [
        Template("right", "factuality", "YES or NO: right?", layout, _SAME),
        Template("true", "factuality", "YES or NO: true?", layout, _SAME),
    ]
    prompts, pairs = [], []
    for number in range(n // 2):
        item = Item(f"sum-{number}", "factuality", {"sum": f"{number}+2={number + 2}"}, "YES")
        both = [render(_TASK, template, item, "-") for template in templates]
        prompts += both
        pairs.append(pair_up(*both))
    return Benchmark(
        {"factuality": _TASK}, table_of_prompts(prompts), table_of_pairs(pairs), {"name": "sums"}
    )


def refuses(message: str) -> bool:
    """The prompts that the provider refuses, whenever it is asked: one in 40."""
    return hashlib.sha256(message.encode()).digest()[0] % 40 == 0


def spurns(message: str) -> bool:
    """The one prompt that is a bad request; not the first of a part, which would stop a start."""
    return message.endswith("true? 7+2=9")


@contextlib.contextmanager
def real_server(folder: Path) -> Iterator[str]:
    """The base URL of ``transformers serve`` with the model of a folder on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("transformers")),
            "serve",
            str(folder),
            "--port",
            str(port),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "transformers serve ended at once"
                time.sleep(0.5)
        else:
            raise AssertionError("transformers serve did not come up in two minutes")
        # The model is loaded with the first question.
        question: dict[str, object] = {"model": str(folder), "max_tokens": 1}
        question["messages"] = [{"role": "user", "content": "Ready?"}]
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(asked, timeout=300).read()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


@dataclass
class Trial:
    """What came of it: decisions by prompt, rows a prompt, the faults, and what was written."""

    decisions: dict[str, str]
    rows: Counter[str]
    faults: Counter[str]
    kills: int
    answered: int
    leaks: list[str]
    seconds: float


def decisions(out: Path) -> dict[str, str]:
    """Raw decision and text of each prompt of a log."""
    return {
        row["prompt_id"]: f"{row['raw_decision']}: {(row['raw_text'] or '').strip()}"
        for row in read_log(out).to_pylist()
    }


def expected(judge: TransformersJudge, data: Benchmark, out: Path) -> dict[str, str]:
    """What the trial must come to: the local judge's decisions, and what the provider refuses."""
    run_judge(judge, data, out, ["generate"])
    found = decisions(out)
    texts = zip(
        data.prompts["prompt_id"].to_pylist(), data.prompts["text"].to_pylist(), strict=True
    )
    known = {refuses: "REFUSED: I must decline.", spurns: "ERROR: "}
    return found | {
        identity: said for identity, text in texts for rule, said in known.items() if rule(text)
    }


def leaks(out: Path) -> list[str]:
    """The files below a folder that hold the key, and those of its log that do when decoded."""
    raw = [str(p) for p in out.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    parts = [str(p) for p in part_files(out) if KEY in str(pq.read_table(p).to_pylist())]
    return raw + parts


def run_trial(server: str, model: Path, n: int, kills: int, out: Path, in_flight: int = 4) -> Trial:
    """Judge n prompts through a proxy that spoils 30% of calls, killed after each share of them.

    A start is killed in the midst of its questions, once it has written its share of the parts;
    the last start ends by itself.
    """
    out.mkdir(parents=True, exist_ok=True)
    proxy = FaultProxy(server, fault_rate=0.3, key=KEY, refuses=refuses, spurns=spurns, stall_s=5.0)
    share = max(1, n // PART // (kills + 1))
    started, done = time.perf_counter(), 0
    with serving(proxy) as url, (out / "said.txt").open("wb") as said:
        command = [sys.executable, __file__, url, str(model), str(n), str(out), str(in_flight)]
        environment = {**os.environ, "OPENAI_API_KEY": KEY}
        for _ in range(kills):
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
            goal = len(part_files(out)) + share
            while len(part_files(out)) < goal and process.poll() is None:
                time.sleep(0.05)
            done += process.poll() is None
            process.kill()
            process.wait()
        ended = subprocess.run(command, stdout=said, stderr=said, env=environment, check=False)
    assert ended.returncode == 0, (out / "said.txt").read_text("utf-8")[-3000:]
    return Trial(
        decisions=decisions(out),
        rows=Counter(read_log(out)["prompt_id"].to_pylist()),
        faults=proxy.faults,
        kills=done,
        answered=proxy.calls.total(),
        leaks=leaks(out),
        seconds=time.perf_counter() - started,
    )


def once(url: str, model: str, n: str, out: str, in_flight: str) -> None:
    """One start of the run, in a process of its own."""
    judge = ApiJudge(
        model,
        base_url=url,
        key_variable="OPENAI_API_KEY",
        logprobs=False,
        concurrency=int(in_flight),
        max_tokens=MAX_TOKENS,
        system_prompt="",
        timeout_s=4.0,
        retry=Retry(attempts=200, budget_s=600, first_s=0.02, most_s=0.5),
    )
    run_judge(judge, sums(int(n)), Path(out), ["generate"])


if __name__ == "__main__":
    once(*sys.argv[1:])
