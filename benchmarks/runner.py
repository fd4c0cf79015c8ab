"""A million prompts through the runner with an in-process judge: prompts/s, memory, resuming.

    python benchmarks/runner.py [--prompts 1000000]

The peer is a bare loop: the same judge over the same messages, without parsing or writing. The time
covers the whole call: planning, judging and writing every part.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.log.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.log.run_folder import RunFolder
from judgesense.tasks import Task, prompt_id
from local_judges.callable_judge import CallableJudge
from local_judges.runner import run_judge

LABEL_MAPS = ('{"YES":"YES","NO":"NO"}', '{"YES":"NO","NO":"YES"}')


def grid(n: int) -> Benchmark:
    """n distinct prompts of 300 characters, in chunks as read from a dataset's Parquet file."""
    tables = []
    for start in range(0, n, 50_000):
        rows = range(start, min(start + 50_000, n))
        texts = [f"Is statement {row // 2} right? YES or NO. ".ljust(300, "x") for row in rows]
        texts = [text + str(row % 2) for text, row in zip(texts, rows, strict=True)]
        columns = {
            "prompt_id": [prompt_id(text) for text in texts],
            "text": texts,
            "task": ["factuality"] * len(texts),
            "item_id": [f"item-{row // 2}" for row in rows],
            "cluster_id": [f"item-{row // 2}" for row in rows],
            "template_id": [f"factuality-{row % 2}" for row in rows],
            "order": ["-"] * len(texts),
            "label_map": [LABEL_MAPS[row % 2] for row in rows],
            "gold": ["YES"] * len(texts),
            "system_id": [""] * len(texts),
        }
        tables.append(pa.table(columns, schema=PROMPT_SCHEMA))
    task = Task("factuality", ("YES", "NO"))
    return Benchmark(
        {"factuality": task}, pa.concat_tables(tables), PAIR_SCHEMA.empty_table(), {"name": "grid"}
    )


def answers(messages: list[str]) -> list[str]:
    return ["Yes." if len(message) % 3 else "NO" for message in messages]


def resident_mb() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


class Watch(threading.Thread):
    """Samples resident memory ten times per second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[float] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.1):
            self.samples.append(resident_mb())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=1_000_000)
    n = parser.parse_args().prompts
    benchmark = grid(n)
    judge = CallableJudge(answers)

    started = time.perf_counter()
    texts = benchmark.prompts["text"]
    for start in range(0, n, 256):
        answers(texts.slice(start, 256).to_pylist())
    bare = time.perf_counter() - started
    before = resident_mb()

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        run = RunFolder(out, {})
        watch = Watch()
        watch.start()
        started = time.perf_counter()
        outcome = run_judge(judge, benchmark, out, ["generate"])
        seconds = time.perf_counter() - started
        watch.stop.set()
        watch.join()
        assert outcome.judged == n
        started = time.perf_counter()
        run_judge(judge, benchmark, out, ["generate"])
        resume = time.perf_counter() - started
        run.finish()
        started = time.perf_counter()
        assert run.is_finished()
        finished = time.perf_counter() - started
    rate = n / seconds
    tenths = [max(tenth) for tenth in np.array_split(watch.samples, 10) if len(tenth)]
    print(f"{n} prompts: {rate:,.0f} prompts/s through the runner, {n / bare:,.0f} in a bare loop")
    print(
        f"memory: {before:.0f} MiB before (the table itself), peak {max(watch.samples):.0f}; "
        f"peak in each tenth of the time: {' '.join(f'{most:.0f}' for most in tenths)}"
    )
    print(
        f"all parts checked and kept in {resume:.1f} s; finished run recognised in {finished:.1f} s"
    )
    result = {
        "name": "runner prompts per second",
        "peer": "bare loop over the same judge",
        "ratio": round(rate / (n / bare), 3),
        "ours": round(rate),
        "theirs": round(n / bare),
        "unit": "prompts/s",
        "n": n,
        "peak_mib": round(max(watch.samples)),
        "table_mib": round(before),
        "mib_by_tenth": [round(most) for most in tenths],
        "resume_s": round(resume, 2),
        "finished_s": round(finished, 2),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {sys.version.split()[0]}",
    }
    print(json.dumps([result]))


if __name__ == "__main__":
    main()
