"""Speed and memory of JSS and kappa with their intervals, against peers in the same run.

    python benchmarks/resampling.py

The peers are a Python loop over resampled rows around scikit-learn's `cohen_kappa_score` (timed on
some of the resamples and scaled to all), and `scipy.stats.bootstrap` of the mean agreement. Neither
supports items, so all three resample rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

MILLION, ITEMS, RESAMPLES = 1_000_000, 10_000, 10_000


def machine() -> str:
    return f"{os.cpu_count()}-core {platform.machine()}, numpy {np.__version__}"


def decisions(n: int, items: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Pairs of YES/NO decisions as lists of strings; items differ in difficulty."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(items), n // items)
    first = rng.random(n) < rng.beta(1, 1, items)[item]
    agree = rng.random(n) < rng.beta(8, 2, items)[item]
    labels = np.array(["NO", "YES"])
    second = np.where(agree, first, ~first)
    names = [f"item-{i}" for i in range(items)]
    return (
        labels[first.astype(int)].tolist(),
        labels[second.astype(int)].tolist(),
        [names[i] for i in item.tolist()],
    )


def best(
    run: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.process_time
) -> float:
    """The minimum of `repeats` times; in CPU seconds by default, for shared machines."""
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def a_million() -> None:
    """Time a million rows; runs in its own process, with nothing else in memory."""
    from judgesense.statistics.agreement import jss

    for kind in ("wilson", "bootstrap"):
        jss(["A", "B"], ["A", "A"], interval=kind, n_resamples=10)  # loads scipy.special
    first, second, items = decisions(MILLION, ITEMS)
    report = {}
    for kind in ("wilson", "bootstrap"):

        def run(kind: str = kind) -> None:
            jss(first, second, items, interval=kind, n_resamples=RESAMPLES)

        cpu, seconds = best(run, 3), best(run, 3, time.perf_counter)
        tracemalloc.start()  # it slows the code, so not while timing
        run()
        extra = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        report[kind] = {"seconds": seconds, "cpu": cpu, "extra_mb": extra}
    print(json.dumps(report))


def against_peers(loops: int) -> list[dict[str, object]]:
    from scipy.stats import bootstrap
    from sklearn.metrics import cohen_kappa_score

    from judgesense.statistics.agreement import jss
    from judgesense.statistics.resampling import bootstrap_mean

    n = 10_000
    first, second, _ = decisions(n, ITEMS)
    a, b = np.array(first), np.array(second)
    agree = a == b

    ours = best(lambda: jss(first, second, interval="bootstrap", n_resamples=RESAMPLES), 5)
    rng = np.random.default_rng(0)

    def loop() -> None:
        for _ in range(loops):
            rows = rng.integers(0, n, n)
            cohen_kappa_score(a[rows], b[rows])

    theirs = best(loop, 1) * RESAMPLES / loops
    mean = best(lambda: bootstrap_mean(agree, n_resamples=RESAMPLES), 5)
    as_float = agree.astype(float)
    scipys = best(
        lambda: bootstrap(
            (as_float,), np.mean, n_resamples=RESAMPLES, method="percentile", batch=500, rng=rng
        ),
        1,
    )
    rows = []
    for name, peer, our_time, their_time in (
        (
            "JSS and kappa with bootstrap intervals",
            f"Python loop around scikit-learn's kappa ({loops} of {RESAMPLES} resamples timed)",
            ours,
            theirs,
        ),
        ("bootstrap interval of JSS", "scipy.stats.bootstrap, percentile", mean, scipys),
    ):
        ratio = their_time / our_time
        print(
            f"{name}, n = {n}: {our_time * 1e3:.1f} ms; {peer}: {their_time:.2f} s "
            f"(of CPU); {ratio:.0f}x"
        )
        rows.append(
            {
                "name": name,
                "peer": peer,
                "ratio": round(ratio, 1),
                "ours": our_time,
                "theirs": their_time,
                "unit": "s of CPU",
                "n": n,
                "machine": machine(),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loops", type=int, default=200, help="resamples of the Python loop timed")
    parser.add_argument("--a-million", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.a_million:
        a_million()
        return
    child = subprocess.run(
        [sys.executable, __file__, "--a-million"], check=True, capture_output=True, text=True
    )
    out: list[dict[str, object]] = []
    for kind, measured in json.loads(child.stdout.splitlines()[-1]).items():
        name = f"JSS and kappa with {kind} intervals, {ITEMS} items"
        print(
            f"{name}, n = {MILLION}: {measured['seconds']:.2f} s "
            f"({measured['cpu']:.2f} s of CPU), "
            f"{measured['extra_mb']:.0f} MB beyond the input"
        )
        for key, unit in (("seconds", "s"), ("cpu", "s of CPU"), ("extra_mb", "MB")):
            out.append(
                {
                    "name": name,
                    "ours": measured[key],
                    "unit": unit,
                    "n": MILLION,
                    "machine": machine(),
                }
            )
    out += against_peers(options.loops)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
