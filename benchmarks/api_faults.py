"""``judgesense run`` against a real server behind a proxy that spoils 30% of calls, with kills.

    python benchmarks/api_faults.py [--url http://127.0.0.1:8000/v1 --model NAME --scoring both]
    python benchmarks/api_faults.py --fake --scoring both [--prompts 192]

The default server is ``transformers serve`` with SmolLM2-135M-Instruct, which answers one question
at a time, about one per second on two cores. ``--url`` takes any OpenAI-compatible server, such as
``vllm serve FOLDER --dtype float32 --max-model-len 1024`` in a separate environment.

The proxy returns 429 (with and without Retry-After), 500 and 502, resets connections, stalls,
drips, sends truncated and invalid JSON, empty choices and an HTML page. It refuses one prompt in 40
and rejects one in 40 as a bad request, always the same ones. Three runs of the same command are
compared:

1. through the proxy without faults: what must come out,
2. with faults, killed with ``kill -9`` at random moments and given again,
3. with faults, each time started twice on one folder, and the two killed at random moments.

Every row must be there once, with the same decision and text. No file may contain the key. There is
no peer: the numbers are counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "judges"))

from common import finish, machine
from fake_endpoint import FaultProxy, serving
from fake_vllm import FakeVllm
from fault_trial import KEY, leaks, local_judge, real_server

from judgesense.cli import main as run_command
from judgesense.log.schema import read_log

FORKS = multiprocessing.get_context("forkserver")
"""Each start is a process of its own, forked from one that has loaded the libraries."""
LIBRARIES = ["__main__", "local_judges.api.judge", "openai", "aiolimiter", "pyarrow.parquet"]
TEMPLATES = """
tasks:
  sums:
    labels: ["YES", "NO"]
    layout: "{instruction} {sum}"
    templates:
      - {id: right, text: "YES or NO: right?"}
      - {id: wrong, text: "YES or NO: wrong?", label_map: {"YES": "NO", "NO": "YES"}}
  size:
    labels: ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
    ordinal: true
    layout: "{instruction} {sum}"
    templates:
      - {id: large, text: "From 1 to 10, how large?"}
      - {id: big, text: "From 1 to 10, how big?"}
"""
"""Short prompts, since a CPU reads a hundred tokens a second; on the scale, 1 begins 10."""

KEYS = ("task", "scoring", "template_id", "item_id", "order", "repeat")
SAME = ("status", "decision", "raw_decision", "raw_text")
UNFINISHED = 50
"""Starts after the last kill, at most: a start may end because nothing answered at first."""


def _share(message: str) -> int:
    return sha256(message.encode()).digest()[0] % 40


@dataclass
class Trial:
    """The command of a run, its folder, and what happened to it."""

    command: list[str]
    out: Path
    random: random.Random
    kills: int = 0
    starts: int = 0
    turned_away: int = 0
    """Processes that ended because the other one was writing to the folder."""
    codes: Counter[int] = field(default_factory=Counter)

    def start(self) -> Any:
        self.starts += 1
        command = [*self.command, "--out", str(self.out)]
        process = FORKS.Process(target=judgesense_command, args=(command, str(self._said)))
        process.start()
        return process

    @property
    def _said(self) -> Path:
        return self.out.parent / f"{self.out.name}.txt"

    def kill(self, process: Any, after_s: float) -> None:
        """``kill -9``, unless the process ends before."""
        process.join(self.random.uniform(0, after_s))
        if process.exitcode is None:
            process.kill()
            process.join()
            self.kills += 1
        else:
            self.ended(process)

    def ended(self, process: Any) -> None:
        process.join()
        code = process.exitcode
        self.codes[code] += 1
        assert code in (0, 1, 2), f"exit code {code}: {self.said()[-3000:]}"

    def said(self) -> str:
        return self._said.read_text("utf-8", "replace")

    def finished(self) -> bool:
        record = self.out / "run.json"
        return record.exists() and "finished" in json.loads(record.read_text("utf-8"))

    def finish(self, processes: int) -> None:
        """Give the command again until the run is finished."""
        for _ in range(UNFINISHED):
            for process in [self.start() for _ in range(processes)]:
                self.ended(process)
            if self.finished():
                break
        assert self.finished(), self.said()[-3000:]
        said = self.said()
        assert "Traceback" not in said, said[-5000:]
        self.turned_away = said.count("another process is writing")


def judgesense_command(command: list[str], said: str) -> None:
    """One start of the command, with its output appended to a file."""
    file = os.open(said, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ |= {"OPENAI_API_KEY": KEY, "HF_HUB_OFFLINE": "1"}
    sys.argv = ["judgesense", *command]
    run_command()


def rows(out: Path) -> tuple[Counter[Any], dict[Any, tuple[Any, ...]], dict[Any, dict[str, float]]]:
    """Of a log: how often each row is there, what it says, and its log-probabilities."""
    seen: Counter[Any] = Counter()
    says, logprobs = {}, {}
    for row in read_log(out).to_pylist():
        key = tuple(row[name] for name in KEYS)
        seen[key] += 1
        says[key] = tuple(row[name] for name in SAME)
        logprobs[key] = {e["option"]: e["logprob"] for e in row["option_logprobs"] or ()}
    return seen, says, logprobs


def compared(out: Path, whole: Path, folder: Path) -> dict[str, Any]:
    """The counts of a trial against the undisturbed run."""
    wanted, right, sure = rows(whole)
    seen, says, logprobs = rows(out)
    differing = [
        abs(value - sure[key][option])
        for key in wanted.keys() & seen.keys()
        for option, value in logprobs[key].items()
        if option in sure[key]
    ]
    return {
        "rows lost": (wanted - seen).total(),
        "rows double": (seen - wanted).total(),
        "rows wrong": sum(says[key] != right[key] for key in wanted.keys() & seen.keys()),
        "files with the key": len(set(leaks(folder))),
        "largest difference of a log-probability": max(differing, default=0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a running server; 16 questions in flight instead of 4")
    parser.add_argument("--fake", action="store_true", help="the tests' fake vLLM server, no model")
    parser.add_argument("--model", help="the server's name of its model")
    parser.add_argument("--prompts", type=int, default=160, help="a multiple of 4")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--scoring", default="generate")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model = given.model or ("fake" if given.fake else str(local_judge().folder))
    fake = FakeVllm()
    fake.delay_s = 0.05
    server = (
        serving(fake)
        if given.fake
        else contextlib.nullcontext(given.url)
        if given.url
        else real_server(Path(model))
    )
    FORKS.set_forkserver_preload(LIBRARIES)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, server as upstream:
        trials, results = run_trials(Path(folder), upstream, model, given)
    spent = round(time.perf_counter() - started, 1)
    n = results[0].pop("rows")
    report = [
        {
            "name": f"{what}, {name}",
            "ours": count,
            "unit": "nats" if "log-prob" in what else what.split(" ")[0],
            "n": n,
            "starts": trial.starts,
            "kills": trial.kills,
            "turned away": trial.turned_away,
            "seconds": spent,
            "machine": machine("openai"),
        }
        for (name, trial), counts in zip(trials.items(), results[1:], strict=True)
        for what, count in counts.items()
    ]
    finish(report)
    if any(line["ours"] for line in report if line["unit"] != "nats"):
        sys.exit(1)


def run_trials(
    folder: Path, upstream: str, model: str, given: argparse.Namespace
) -> tuple[dict[str, Trial], list[dict[str, Any]]]:
    """The three runs, and their counts."""
    proxy = FaultProxy(
        upstream,
        key=KEY,
        refuses=lambda message: _share(message) == 0,
        spurns=lambda message: _share(message) == 1,
        stall_s=8.0,
    )
    dice = random.Random(given.seed)
    with serving(proxy) as url:
        (folder / "templates.yaml").write_text(TEMPLATES, "utf-8")
        with (folder / "items.jsonl").open("w", encoding="utf-8") as items:
            for number in range(given.prompts // 4):
                sum_ = {"item_id": f"sum-{number}", "sum": f"{number}+2={number + 2}"}
                for task, gold in (("sums", "YES"), ("size", "5")):
                    items.write(json.dumps({**sum_, "task": task, "gold": gold}) + "\n")
        command = [
            "run",
            "--judge",
            "served",
            "--set",
            f"model={model}",
            "--templates",
            str(folder / "templates.yaml"),
            "--items",
            str(folder / "items.jsonl"),
            "--set",
            f"base_url={url}",
            "--scoring",
            given.scoring,
            "--set",
            "key_variable=OPENAI_API_KEY",
            "--set",
            "timeout_s=6",
            "--set",
            "retry_budget_s=300",
            "--set",
            "max_tokens=4",
            "--set",
            "system_prompt=",
            "--set",
            f"concurrency={16 if given.url or given.fake else 4}",
        ]
        whole = Trial(command, folder / "whole", dice)
        began = time.perf_counter()
        process = whole.start()
        assert proxy.began.wait(120), whole.said()
        start_s = time.perf_counter() - began
        whole.ended(process)
        assert whole.finished(), whole.said()
        judging_s = time.perf_counter() - began - start_s
        print(f"undisturbed: {start_s:.1f} s to start, {judging_s:.1f} s to judge", flush=True)
        proxy.fault_rate = 0.3
        after_s = start_s + judging_s / max(given.kills, 1)

        alone = Trial(command, folder / "alone", dice)
        while alone.kills < given.kills and not alone.finished():
            alone.kill(alone.start(), after_s)
        alone.finish(1)
        print(json.dumps({"faults": proxy.faults, "exit codes": alone.codes}), flush=True)

        twins = Trial(command, folder / "twins", dice)
        while twins.kills < given.kills and not twins.finished():
            for process in [twins.start(), twins.start()]:
                twins.kill(process, after_s)
        twins.finish(2)
        print(json.dumps({"faults": proxy.faults, "exit codes": twins.codes}), flush=True)
    trials = {"kill -9": alone, "two processes on one folder": twins}
    counts = [compared(trial.out, whole.out, folder) for trial in trials.values()]
    return trials, [{"rows": rows(whole.out)[0].total()}, *counts]


if __name__ == "__main__":
    main()
