"""The leaderboard with 200 judges: seconds to the first table, and 50 concurrent users.

The judges are simulated from an embedded report, with other names, JSS and intervals.
The server is ``judgesense leaderboard`` in its own process. The browser is Debian's Chromium with
an empty cache each time (``apt-get install chromium``, ``pip install playwright``).

    python benchmarks/leaderboard.py [--judges 200] [--users 50] [--rounds 5]
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import finish, machine

from hub_scripts.leaderboard.sources import DEMO

CHROMIUM = "/usr/bin/chromium"
TASKS = ("coherence", "factuality", "preference", "relevance")
SCORINGS = ("generate", "options")


def make_runs(folder: Path, judges: int) -> None:
    """Write a folder of reports, one per judge, each with four tasks and two scorings."""
    source = json.loads(DEMO.read_text("utf-8"))
    for key, entries in source.items():
        if key not in ("schema", "runs", "notes"):
            own = [entry for entry in entries if entry["task"] == "relevance"]
            source[key] = [
                _as(entry, task, scoring)
                for task in TASKS
                for scoring in SCORINGS
                for entry in own
                if entry["scoring"] != "-" or scoring == SCORINGS[0]
            ]
    old = next(name for name in {c["judge"] for c in source["cells"]} if "@" in name)
    rng = random.Random(0)
    for number in range(judges):
        report = copy.deepcopy(source)
        new = f"judge-{number:03}-{1 + number % 90}b@{number:08x}"
        for entries in report.values():
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict) and entry.get("judge") == old:
                    entry["judge"] = new
        for card in report["trust"]:
            steady, right = (card["checks"][name] for name in ("steady", "right"))
            jss = 0.3 + 0.69 * rng.random()
            steady.update(estimate=jss, ci_low=jss - 0.06, ci_high=min(1.0, jss + 0.05))
            right["details"]["beats_constant"] = 0.7 * rng.random() - 0.2
        for cell in report["cells"]:
            if cell["judge"] == new:
                jss = 0.3 + 0.69 * rng.random()
                cell.update(jss=jss, coverage=1.0, degenerate=None)
                cell.update(ci_low=jss - 0.06, ci_high=min(1.0, jss + 0.05))
        (folder / f"run-{number:03}").mkdir()
        (folder / f"run-{number:03}" / "report.json").write_text(json.dumps(report), "utf-8")


def _as(entry: dict[str, Any], task: str, scoring: str) -> dict[str, Any]:
    """An entry of a report as one of another task and scoring."""
    return {**entry, "task": task, "scoring": "-" if entry["scoring"] == "-" else scoring}


@contextmanager
def served(results: Path) -> Iterator[tuple[str, int]]:
    """Yield the address and the process id of a server that shows a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "judgesense", "leaderboard", "--no-browser"]
    command += ["--results", str(results), "--port", str(port)]
    env = {**os.environ, "no_proxy": "127.0.0.1"}
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield url, server.pid
    finally:
        server.terminate()
        server.wait(20)


def processor_seconds(pid: int) -> float:
    """Processor time that a process has taken; a busy machine changes it less than wall time."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_tables(url: str, rounds: int) -> list[float]:
    """Seconds from requesting the page to a table of all judges, with an empty cache each time."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(rounds):
            context = browser.new_context()
            page = context.new_page()
            start = time.perf_counter()
            page.goto(url, wait_until="commit")
            page.wait_for_selector("#table tr[data-row]")
            found.append(time.perf_counter() - start)
            context.close()
        browser.close()
    return found


def reads(url: str, users: int, each: int) -> tuple[list[float], int]:
    """Seconds of every read of the table by concurrent users, and the number of errors."""
    ready = threading.Barrier(users)

    def user(number: int) -> list[float | None]:
        ready.wait()
        return [read(url, TASKS[(number + turn) % 4]) for turn in range(each)]

    with ThreadPoolExecutor(users) as pool:
        every = [seconds for user_reads in pool.map(user, range(users)) for seconds in user_reads]
    return [seconds for seconds in every if seconds is not None], every.count(None)


def read(url: str, task: str) -> float | None:
    """Seconds for one table, as the page asks for it; None if there is no table."""
    request = f"{url}table.html?task={task}"
    start = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            table = answer.read().decode()
    except OSError:
        return None
    return time.perf_counter() - start if "<table" in table else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--judges", type=int, default=200)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    where = machine("gradio", "judgesense")
    with tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder), asked.judges)
        with served(Path(folder)) as (url, pid):
            before = processor_seconds(pid)
            seconds, errors = reads(url, asked.users, asked.rounds)
            spent = processor_seconds(pid) - before
            ordered = sorted(seconds)
            p95 = ordered[int(0.95 * (len(ordered) - 1))]
            print(
                f"{asked.users} concurrent users, {len(seconds)} reads of {asked.judges} judges: "
                f"median {statistics.median(seconds):.2f} s, p95 {p95:.2f} s, {errors} errors; "
                f"{spent:.2f} s of the server's processor time"
            )
            common = {"unit": "s", "n": asked.judges, "machine": where}
            results = [
                {
                    "name": f"leaderboard: p95 of a read, {asked.users} users at once",
                    "ours": p95,
                    "errors": errors,
                    "server_processor_s": spent,
                    **common,
                }
            ]
            if Path(CHROMIUM).exists():
                opened = first_tables(url, asked.rounds)
                print(f"first table: {', '.join(f'{s:.2f}' for s in opened)} s")
                results.append(
                    {
                        "name": "leaderboard: first table, empty cache, median",
                        "ours": statistics.median(opened),
                        **common,
                    }
                )
            else:
                print(f"{CHROMIUM} not found: the first table was not measured")
    finish(results)


if __name__ == "__main__":
    main()
