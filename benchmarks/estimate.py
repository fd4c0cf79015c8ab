"""Are estimates of systems right, and how many labels does picking them save?

    python benchmarks/estimate.py                    # 1,000 runs a cell, about 6 minutes
    python benchmarks/estimate.py --quick            # 100 runs
    python benchmarks/estimate.py --write-summeval DIR    # summeval.jsonl and what people rated
    judgesense judge DIR/summeval.jsonl --judge JUDGE --task coherence --out DIR/verdicts.parquet
    python benchmarks/estimate.py --sections next --summeval DIR/verdicts.parquet

peers: means, classical and power-tuned, beside ``ppi_py``; Rogan-Gladen beside ``judgy``; on the
logs of RAG-Eval and flakyjudge and on simulated data. The largest difference counts.
coverage: two systems, judged under wordings that each favour one of them by chance. The truth is
the difference of what people would say. Cells are coverage of the 95% interval.
next: interval width with picked and with random labels, on labels that people gave.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import finish, machine
from labelled import HUMAN, LOGS, flakyjudge, rag_eval, rag_units, write_summeval

from judgesense.comparison.estimate import labels_needed
from judgesense.comparison.outputs import Outputs, outputs_of, pick, strata_of
from judgesense.comparison.verdicts import read_verdicts
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.prediction_powered import (
    combined,
    influence,
    naive_influence,
)
from judgesense.statistics.rogan_gladen import rogan_gladen

FOLDER = str(Path(__file__).resolve().parent)


def peers(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Largest differences from ppi_py and judgy."""
    data: dict[str, list[tuple[Floats, Floats]]] = {"simulated": []}
    if LOGS.is_dir():
        data["rag_eval"] = [(found[3], found[4]) for found in rag_eval().values()]
        data["flakyjudge"] = list(flakyjudge().values())
    for _ in range(20):
        y = rng.normal(0.3, 1, 500)
        data["simulated"].append((0.6 * y + rng.normal(0, 0.5, 500), y))
    for name, sets in data.items():
        worst: dict[str, list[float]] = {}
        for f, y in sets:
            order = rng.permutation(len(y))
            f, y = f[order], y[order]
            n = min(100, len(y) // 3)
            for key, gap in beside(f, y, n).items():
                worst.setdefault(key, []).append(gap)
        for key, gaps in worst.items():
            yield {
                "name": f"estimate: {key} on {name}, largest difference",
                "peer": "judgy" if key == "rogan-gladen" else "ppi_py",
                "ours": max(gaps),
                "theirs": 0.0,
                "ratio": None,
                "unit": "score",
                "n": len(gaps),
            }


def packages() -> tuple[Any, Any]:
    """The peers. ppi_py imports numba, which would take coverage.py here for the package."""
    here, sys.path[:] = list(sys.path), [path for path in sys.path if path != FOLDER]
    try:
        return importlib.import_module("judgy"), importlib.import_module("ppi_py")
    finally:
        sys.path[:] = here


def beside(f: Floats, y: Floats, n: int) -> dict[str, float]:
    """Differences from the peers' figures with the first n labelled."""
    judgy, ppi_py = packages()
    told = np.where(np.arange(len(y)) < n, y, np.nan)
    gaps = {}
    for key, lam in (("classical", 1.0), ("power-tuned", None)):
        ours = influence(told, f, lam=lam)
        theirs = ppi_py.ppi_mean_pointestimate(y[:n], f[:n], f[n:], lam=lam)
        gaps[key] = abs(ours.estimate - float(np.squeeze(theirs)))
    good, said = (y > np.median(y)).astype(float), (f > np.median(f)).astype(float)
    found = rogan_gladen(np.where(np.isnan(told), np.nan, good), said)
    if found.rate is not None:
        theirs = judgy.estimate_success_rate(good[:n], said[:n], said[n:], bootstrap_iterations=1)[
            0
        ]
        gaps["rogan-gladen"] = abs(found.rate - theirs)
    return gaps


def outputs(
    rng: np.random.Generator, items: int, wordings: int, tau: float, better: float, levels: int
) -> tuple[Outputs, Floats]:
    """Outputs of two systems on shared items, and what people would say of each.

    The quality of an output is its item's plus its system's plus its own. People see quality;
    the judge sees it with noise, likes a system by chance under each wording (sd ``tau``), and
    likes the first 0.3 more under all. Two ``levels`` are YES and NO, five are ratings.
    """
    item = np.tile(np.arange(items), 2)
    system = np.repeat([0, 1], items)
    quality = rng.normal(0, 1, items)[item] + rng.normal(0, 1, 2 * items)
    quality += np.where(system == 0, better, 0.0)
    cuts = np.array([0.0]) if levels == 2 else np.array([-1.5, -0.5, 0.5, 1.5])
    truth = np.searchsorted(cuts, quality).astype(float)
    liked = rng.normal(0, tau, (2, wordings))[system] + 0.3 * (system == 0)[:, None]
    seen = quality[:, None] + liked + rng.normal(0, 1, (2 * items, wordings))
    said = np.searchsorted(cuts, seen.ravel()).reshape(seen.shape).astype(float)
    nothing = np.full(2 * items, np.nan)
    margin = np.abs(seen[:, :1] - cuts).min(axis=1)
    units = Outputs(
        items=item.astype(str).astype(object),
        system=system,
        systems=("a", "b"),
        cluster=item,
        predictions=said,
        wordings=tuple(map(str, range(wordings))),
        margin=margin,
        gold=nothing,
        flipped=np.zeros(2 * items, bool),
        rows=np.arange(2 * items),
        is_comparison=False,
    )
    return units, truth


def difference(units: Outputs, labels: Floats, step: float, strata: Any = None) -> Any:
    """The corrected difference of the first two systems."""
    parts = []
    for code, sign in ((0, 1.0), (1, -1.0)):
        own = np.flatnonzero(units.of(code))
        found = influence(
            labels[own],
            units.predictions[own],
            clusters=units.cluster[own],
            step=step,
            strata=None if strata is None else strata[own].astype(str),
        )
        parts.append((sign, found, units.cluster[own]))
    return combined(parts)


def naive(units: Outputs, wordings: bool) -> Any:
    """The difference of mean verdicts; without ``wordings``, as if these were all there are."""
    parts = []
    for code, sign in ((0, 1.0), (1, -1.0)):
        own = np.flatnonzero(units.of(code))
        told = units.predictions[own] if wordings else units.predictions[own].mean(axis=1)
        parts.append((sign, naive_influence(told, clusters=units.cluster[own]), units.cluster[own]))
    return combined(parts)


def random_labels(
    rng: np.random.Generator, units: Outputs, truth: Floats, n: int, labels: Floats | None = None
) -> Floats:
    """n more labels, half of each system, drawn at random."""
    found = np.full(len(units), np.nan) if labels is None else labels.copy()
    for code in (0, 1):
        rest = np.flatnonzero(units.of(code) & np.isnan(found))
        drawn = rng.choice(rest, min(len(rest), n // 2), replace=False)
        found[drawn] = truth[drawn]
    return found


def coverage(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of the true difference by corrected and uncorrected intervals."""
    for levels in (2, 5):
        for wordings in (1, 5):
            # The truth: the mean difference over many outputs.
            _, truth = outputs(rng, 1_000_000, 1, 0.0, 0.3, levels)
            real = float(truth[:1_000_000].mean() - truth[1_000_000:].mean())
            hits = dict.fromkeys(("corrected", "picked", "judge alone", "judge, wordings"), 0)
            for _ in range(runs):
                units, truth = outputs(rng, 400, wordings, 0.8, 0.3, levels)
                labels = random_labels(rng, units, truth, 60)
                more = random_labels(rng, units, truth, 60, labels)
                chosen = pick(units, labels, (0, 1), 60, int(rng.integers(1 << 30)))[0]
                labels[chosen] = truth[chosen]
                told = {
                    "corrected": difference(units, more, 1.0),
                    "picked": difference(units, labels, 1.0, strata_of(units)),
                    "judge alone": naive(units, False),
                    "judge, wordings": naive(units, True),
                }
                for key, found in told.items():
                    hits[key] += found.ci_low <= real <= found.ci_high
            design = f"{levels} labels, {wordings} wording{'s' if wordings > 1 else ''}"
            for key, count in hits.items():
                if key == "judge, wordings" and wordings == 1:
                    continue
                yield {
                    "name": f"estimate: coverage of the difference, {design}, {key}",
                    "peer": None,
                    "ours": count / runs,
                    "theirs": None,
                    "ratio": None,
                    "unit": "share",
                    "n": runs,
                }


def decides(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often as many labels as planned decide, and how often a decision is wrong."""
    _, truth = outputs(rng, 1_000_000, 1, 0.0, 0.3, 2)
    real = float(truth[:1_000_000].mean() - truth[1_000_000:].mean())
    plans = []
    for _ in range(20):
        units, truth = outputs(rng, 1_500, 1, 0.3, 0.3, 2)
        found = difference(units, random_labels(rng, units, truth, 200), 1.0)
        plans.append(labels_needed(replace(found, estimate=real), 0.95) or len(units))
    n = int(np.median(plans))
    right = wrong = 0
    for _ in range(runs):
        units, truth = outputs(rng, 1_500, 1, 0.3, 0.3, 2)
        found = difference(units, random_labels(rng, units, truth, n), 1.0)
        right += found.ci_low > 0
        units, truth = outputs(rng, 400, 5, 0.8, 0.0, 2)
        found = difference(units, random_labels(rng, units, truth, 120), 1.0)
        wrong += found.ci_low > 0 or found.ci_high < 0
    for key, count in (
        (f"decided with the {n} labels planned for 80%", right),
        ("decisions between equal systems", wrong),
    ):
        yield {
            "name": f"estimate: {key}",
            "peer": None,
            "ours": count / runs,
            "theirs": None,
            "ratio": None,
            "unit": "share",
            "n": runs,
        }


def saved(
    name: str, units: Outputs, truth: Floats, step: float, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Picked labels against random ones: labels for the same mean width of the interval."""
    strata = strata_of(units)
    pilot, more = 40, 60
    grid = np.arange(20, 241, 20)
    grid = grid[pilot + grid <= min(2 * units.of(code).sum() for code in (0, 1))]
    widths, picked, real = np.zeros(len(grid)), 0.0, 0
    full = difference(units, truth, step).estimate
    for _ in range(runs):
        labels = random_labels(rng, units, truth, pilot)
        for place, n in enumerate(grid.tolist()):
            found = difference(units, random_labels(rng, units, truth, n, labels), step)
            widths[place] += found.label_error
        chosen = pick(units, labels, (0, 1), more, int(rng.integers(1 << 30)))[0]
        labels[chosen] = truth[chosen]
        found = difference(units, labels, step, strata)
        picked += found.label_error
        real += abs(found.estimate - full) <= 1.96 * found.label_error
    widths, picked = widths / runs, picked / runs
    if not widths[-1] <= picked <= widths[0]:
        needed = float(grid[0] if picked > widths[0] else grid[-1])
    else:
        needed = float(np.interp(-picked, -widths, grid))
    return {
        "name": f"estimate: {more} picked labels after {pilot} random ones, {name}",
        "peer": "random labels",
        "ours": more,
        "theirs": round(needed, 1),
        "ratio": round(needed / more, 3),
        "unit": "labels for the same error",
        "n": runs,
        "within": real / runs,
    }


def only(units: Outputs, one: int, two: int) -> tuple[Outputs, Codes]:
    """The units of two systems, coded 0 and 1, and their numbers."""
    rows = np.flatnonzero(np.isin(units.system, (one, two)))
    return Outputs(
        items=units.items[rows],
        system=(units.system[rows] == two).astype(np.intp),
        systems=(units.systems[one], units.systems[two]),
        cluster=units.cluster[rows],
        predictions=units.predictions[rows],
        wordings=units.wordings,
        margin=units.margin[rows],
        gold=units.gold[rows],
        flipped=units.flipped[rows],
        rows=units.rows[rows],
        is_comparison=False,
    ), rows


def next_labels(
    runs: int, rng: np.random.Generator, summeval: Path | None
) -> Iterator[dict[str, Any]]:
    """Picked against random labels on people's labels."""
    for levels, wordings in ((2, 1), (2, 5), (5, 1), (5, 5)):
        units, truth = outputs(rng, 400, wordings, 0.8, 0.3, levels)
        design = f"{levels} labels, {wordings} wording{'s' if wordings > 1 else ''}"
        yield saved(f"simulated, {design}", units, truth, 1.0, runs, rng)
    if LOGS.is_dir():
        results = []
        said = rag_eval()
        panel = {judge: dict(zip(found[0], found[3], strict=True)) for judge, found in said.items()}
        sets = {**{judge: [judge] for judge in said}, "all nine judges": list(said)}
        for judge, judges in sets.items():
            with tempfile.TemporaryDirectory() as folder:
                units, human = rag_units(Path(folder, "verdicts.csv"), said, panel, judges)
            if min(units.of(code).sum() for code in (0, 1)) < 100:
                print(f"rag_eval, {judge}: left out, too few scores")
                continue
            results.append(saved(f"rag_eval, {judge}", units, human, 0.75, runs, rng))
        yield from results
        yield average(f"rag_eval, mean of {len(results) - 1} judges", results[:-1])
    if summeval is None:
        return
    table = read_verdicts(summeval)
    units = outputs_of(table)
    with (summeval.parent / HUMAN).open(encoding="utf-8") as source:
        human_of = {row["item_id"]: float(row["label"]) for row in csv.DictReader(source)}
    human = np.array([human_of[item] for item in units.items])
    results = []
    for one in range(len(units.systems)):
        for two in range(one + 1, len(units.systems)):
            found, rows = only(units, one, two)
            names = f"{units.systems[one]} and {units.systems[two]}"
            told = saved(f"SummEval, {names}", found, human[rows], 1.0, max(1, runs // 5), rng)
            results.append(told)
    yield average(f"SummEval, mean of {len(results)} pairs of systems", results)


def average(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    theirs = float(np.mean([each["theirs"] for each in results]))
    first = results[0]
    return {
        **first,
        "name": f"{first['name'].split(', ')[0]}, {name}",
        "theirs": round(theirs, 1),
        "ratio": round(theirs / first["ours"], 3),
        "within": float(np.mean([each["within"] for each in results])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 runs a cell")
    parser.add_argument("--runs", type=int, help="runs a cell (1,000)")
    parser.add_argument("--summeval", type=Path, help="verdicts on SummEval's summaries")
    parser.add_argument(
        "--sections",
        nargs="+",
        default=["peers", "coverage", "decides", "next"],
        choices=["peers", "coverage", "decides", "next"],
    )
    parser.add_argument("--write-summeval", type=Path, help="write SummEval's items and stop")
    options = parser.parse_args()
    if options.write_summeval:
        write_summeval(options.write_summeval)
        return
    runs = options.runs or (100 if options.quick else 1_000)
    versions = machine("numpy", "scipy", "ppi-python", "judgy")
    rng = np.random.default_rng(0)
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="ppi_py")
    sections = {
        "peers": lambda: peers(rng),
        "coverage": lambda: coverage(runs, rng),
        "decides": lambda: decides(runs, rng),
        "next": lambda: next_labels(max(20, runs // 5), rng, options.summeval),
    }
    results = []
    for name in options.sections:
        start = time.perf_counter()
        for result in sections[name]():
            beside = "" if result["theirs"] is None else f" (peer {result['theirs']:.6g})"
            print(f"{result['name']}: {result['ours']:.6g}{beside}, n = {result['n']}", flush=True)
            results.append({**result, "machine": versions})
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    finish(results)


if __name__ == "__main__":
    main()
