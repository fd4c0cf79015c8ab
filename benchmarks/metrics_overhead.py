"""Overhead of `evaluate.load("metrics/jss")` over evaluate's own work and the core's.

    python benchmarks/metrics_overhead.py

One run times three calls on the same million pairs of YES/NO decisions: the module; a module that
takes the same rows and computes nothing (evaluate's own work); and `statistics.agreement.jss` on
the same lists (the core's work). The overhead is the first time minus the other two. Times are CPU
seconds of this process and the minimum of several rounds, so other load matters little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
from common import finish, machine

import judgesense
from judgesense.statistics import agreement

NOTHING = '''
import datasets
import evaluate


class Nothing(evaluate.Metric):
    """Takes two columns of strings and computes nothing."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description="",
            citation="",
            inputs_description="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references):
        return {"n": len(predictions)}
'''


def fastest(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """CPU seconds of the fastest call of each; they take turns, so a slow moment affects all."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    labels = np.array(["NO", "YES"])
    predictions, references = (labels[rng.integers(0, 2, options.rows)].tolist() for _ in range(2))
    item_ids = rng.integers(0, options.items, options.rows).tolist()
    rows = {"predictions": predictions, "references": references}

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "nothing" / "nothing.py"
        script.parent.mkdir()
        script.write_text(NOTHING, encoding="utf-8")
        nothing = evaluate.load(str(script.parent), keep_in_memory=True)
        module = evaluate.load(judgesense.metric_path("jss"))
        seconds = fastest(
            {
                "module": lambda: module.compute(**rows, item_ids=item_ids),
                "evaluate": lambda: nothing.compute(**rows),
                "core": lambda: agreement.jss(predictions, references, item_ids),
            },
            options.rounds,
        )
    added = seconds["module"] - seconds["evaluate"] - seconds["core"]
    per_million = added * 1e6 / options.rows
    print(json.dumps({name: round(value, 3) for name, value in seconds.items()}))
    print(f"metrics/jss adds {per_million:.3f} CPU s per million rows")
    finish(
        [
            {
                "name": "metrics/jss: time added to evaluate's and the core's, a million rows",
                "peer": f"evaluate {version('evaluate')} with an empty module, plus the core",
                "ratio": round(seconds["module"] / (seconds["evaluate"] + seconds["core"]), 3),
                "ours": round(seconds["module"], 3),
                "theirs": round(seconds["evaluate"] + seconds["core"], 3),
                "added_s_per_million": round(per_million, 3),
                "unit": "CPU s",
                "n": options.rows,
                "machine": machine("evaluate", "datasets", "pyarrow", "numpy"),
            }
        ]
    )


if __name__ == "__main__":
    main()
