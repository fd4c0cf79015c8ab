"""Do two versions of JudgeSense measure the same figures from the same decisions?

    python benchmarks/same_figures.py measure RUNS STUDIES OUT [--only NAME,NAME]
    python benchmarks/same_figures.py compare OUT_BEFORE OUT_AFTER

RUNS holds folders of runs and imports; `measure` copies each to OUT and makes its report anew.
STUDIES holds finished studies of small models, one folder each with the command that made it in
``command.json``; each is copied and given again, which resumes it without a model. The studies of
logs are made from RUNS. The version that measures is the one on PYTHONPATH.

`compare` lists every number that differs by more than 1e-12 (relative), and every place that one of
the two lacks. Rows of lists are matched by their texts, not by their position.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import finish, machine

LOG_STUDIES: dict[str, list[str]] = {
    "js-demo": ["judge-sensitivity", "--log", "{runs}/demo"],
    "js-llmbar": ["judge-sensitivity", "--log", "{runs}/llmbar"],
    "js-published": ["judge-sensitivity", "--log", "{runs}/published"],
    "pr-llmbar": ["paraphrase-robustness", "--log", "{runs}/llmbar", "--by", "set"],
    "pr-rag": ["paraphrase-robustness", "--log", "{runs}/rag-trec-rag-2024"],
    "rank-llmbar": ["prompt-ranking", "--scores", "{out}/llmbar.csv", "--sizes", "50,100,200"],
}
TIMES = ("seconds", "latency", "created", "path", "duration", "figure", "version")
"""Parts of keys whose values differ from one time to the next."""


def command(*arguments: str) -> None:
    """Run one command of the version on PYTHONPATH; a study's or report's exit code is its own."""
    print("+", *arguments, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "judgesense", *arguments],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"exit {done.returncode}: {done.stderr[-2000:]}")


def llmbar_scores(run: Path, out: Path) -> None:
    """Scores by judge, strategy and item: the share of option orders in which a judge is right."""
    from judgesense.log.schema import read_log

    right: dict[Any, dict[str, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for row in read_log(run).to_pylist():
        if row["item_id"].startswith("LLMBar/"):
            cell = right[row["judge"], row["template_id"]][row["item_id"]]
            cell[row["order"]] = row["decision"] == row["gold"]
    whole = {
        key: {item: sum(orders.values()) / 2 for item, orders in items.items() if len(orders) == 2}
        for key, items in right.items()
    }
    most = max(map(len, whole.values()))
    with out.open("w", newline="") as sink:
        table = csv.writer(sink)
        table.writerow(["model", "prompt", "item", "score"])
        for (judge, strategy), items in whole.items():
            if len(items) == most:
                table.writerows([judge, strategy, item, score] for item, score in items.items())


def measure(runs: Path, studies: Path, out: Path, only: list[str]) -> None:
    """Reports of all runs, and all studies, under OUT; or of those named in ``only``."""
    (out / "runs").mkdir(parents=True)
    for run in sorted(runs.iterdir()):
        shutil.copytree(run, out / "runs" / run.name)
        if not only or run.name in only:
            command("report", str(out / "runs" / run.name))
        else:
            (out / "runs" / run.name / "report.json").unlink(missing_ok=True)
    llmbar_scores(runs / "llmbar", out / "llmbar.csv")
    for name, arguments in LOG_STUDIES.items():
        if only and name not in only:
            continue
        filled = [each.format(runs=out / "runs", out=out) for each in arguments]
        command("study", *filled, "--out", str(out / "studies" / name))
    for study in sorted(studies.iterdir()):
        if only and study.name not in only:
            continue
        own = out / "studies" / study.name
        shutil.copytree(study, own)
        arguments = json.loads((own / "command.json").read_text())
        if arguments[1].endswith(".yaml"):
            # Before 0.4, a study of one's own had no command of its own.
            arguments.insert(1, "run")
        command(*arguments, "--out", str(own))


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, flag and null of a JSON value, with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not any(part in key for part in TIMES):
                yield from leaves(inner, f"{place}.{key}")
    elif isinstance(value, list):
        seen: dict[str, int] = defaultdict(int)
        for at, inner in enumerate(value):
            name = str(at)
            if isinstance(inner, dict):
                texts = [str(v) for k, v in inner.items() if isinstance(v, str) and len(v) < 60]
                name = "/".join(t for t in texts if not any(part in t for part in TIMES))
                seen[name] += 1
                name += f"#{seen[name]}"
            yield from leaves(inner, f"{place}[{name}]")
    elif not isinstance(value, str):
        yield place, value


def figures(folder: Path) -> dict[str, Any]:
    """All figures under a folder that `measure` wrote."""
    found: dict[str, Any] = {}
    for path in sorted([*folder.glob("runs/*/report.json"), *folder.glob("studies/*/study.json")]):
        own = str(path.relative_to(folder))
        found.update(leaves(json.loads(path.read_text("utf-8")), own))
    return found


def differs(one: Any, other: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (one, other))
    return not math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12) if numbers else one != other


def compare(before: Path, after: Path) -> int:
    """Print what differs; the number of figures that do."""
    old, new = figures(before), figures(after)
    if "--only" in sys.argv:
        measured = tuple({place.partition(".json")[0] for place in new})
        old = {place: value for place, value in old.items() if place.startswith(measured)}
    shared = old.keys() & new.keys()
    changed = sorted(place for place in shared if differs(old[place], new[place]))
    for title, places in (
        ("gone", sorted(old.keys() - new.keys())),
        ("new", sorted(new.keys() - old.keys())),
        ("changed", changed),
    ):
        print(f"{title}: {len(places)}")
        for place in places[: None if "--all" in sys.argv else 40]:
            print(f"  {place}: {old.get(place)!r} -> {new.get(place)!r}")
    finish(
        [
            {
                "name": "figures that differ",
                "peer": str(before),
                "ratio": len(changed) / len(shared),
                "ours": len(changed),
                "theirs": len(shared),
                "unit": "figures",
                "n": len(shared),
                "gone": len(old) - len(shared),
                "new": len(new) - len(shared),
                "machine": machine(),
            }
        ]
    )
    return len(changed)


if __name__ == "__main__":
    chosen = sys.argv[-1].split(",") if "--only" in sys.argv else []
    folders = [Path(each) for each in sys.argv[2 : -2 if chosen else None] if each[0] != "-"]
    if sys.argv[1:2] == ["measure"] and len(folders) == 3:
        measure(*folders, chosen)
    elif sys.argv[1:2] == ["compare"] and len(folders) == 2:
        sys.exit(min(compare(*folders), 1))
    else:
        sys.exit(__doc__)
