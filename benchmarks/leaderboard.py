"""The leaderboard with 200 judges: seconds to write its pages, and from opening to the first table.

The judges are simulated from an embedded run, with other names, JSS and intervals. The page is
opened as a file by Debian's Chromium (``apt-get install chromium``, ``pip install playwright``).

    python benchmarks/leaderboard.py [--judges 200] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from common import finish, machine

from hub_scripts.leaderboard.runs import EMBEDDED, report_of
from hub_scripts.leaderboard.site import write_pages

CHROMIUM = "/usr/bin/chromium"
TASKS = ("coherence", "factuality", "preference", "relevance")
SCORINGS = ("generate", "options")


def simulated(judges: int) -> dict[str, dict[str, Any]]:
    """Reports by the name of their run, one per judge, each with four tasks and two scorings."""
    source = report_of(EMBEDDED / "smollm2-135m")
    for key, rows in source.items():
        if key not in ("schema", "runs", "notes", "advice"):
            source[key] = [
                {**row, "task": task, "scoring": scoring if row["scoring"] != "-" else "-"}
                for task in TASKS
                for scoring in SCORINGS
                for row in rows
                if row["task"] == "relevance" and (row["scoring"] != "-" or scoring == "generate")
            ]
    text, rng, reports = json.dumps(source), random.Random(0), {}
    for number in range(judges):
        report = json.loads(text.replace("smollm2-135m@", f"judge-{number:03}@"))
        for card in report["trust"]:
            steady, right = (card["checks"][name] for name in ("steady", "right"))
            jss = 0.3 + 0.69 * rng.random()
            steady.update(estimate=jss, ci_low=jss - 0.06, ci_high=min(1.0, jss + 0.05))
            right["details"]["beats_constant"] = 0.7 * rng.random() - 0.2
        reports[f"run-{number:03}"] = report
    return reports


def first_tables(page_file: Path, judges: int, rounds: int) -> list[float]:
    """Seconds from opening the page to a table of all judges, in a new context each time."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(rounds):
            page = browser.new_context().new_page()
            start = time.perf_counter()
            page.goto(page_file.as_uri(), wait_until="commit")
            page.wait_for_selector(f".count:has-text('{len(SCORINGS) * judges} rows')")
            found.append(time.perf_counter() - start)
            page.context.close()
        browser.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--judges", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    common = {"unit": "s", "n": given.judges, "machine": machine("jinja2", "judgesense")}
    with tempfile.TemporaryDirectory() as folder:
        reports = simulated(given.judges)
        start = time.perf_counter()
        write_pages(reports, Path(folder), "a simulation")
        written = time.perf_counter() - start
        results = [{"name": "leaderboard: pages written", "ours": written, **common}]
        print(f"pages of {given.judges} judges written in {written:.1f} s")
        if Path(CHROMIUM).exists():
            opened = first_tables(Path(folder) / "index.html", given.judges, given.rounds)
            print(f"first table: {', '.join(f'{s:.2f}' for s in opened)} s")
            name = "leaderboard: first table, median"
            results.append({"name": name, "ours": statistics.median(opened), **common})
        else:
            print(f"{CHROMIUM} not found: the first table was not measured")
    finish(results)


if __name__ == "__main__":
    main()
