"""Draw the pictures of docs/metrics/*.md.

    python benchmarks/coverage.py --replicates 10000 --bootstrap-replicates 200 | tail -n 1 \
        > docs/results/coverage.json
    python docs/make_figures_statistics.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from judgesense.reporting.palette import CYCLE
from judgesense.statistics.comparison import paired_test

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"


def save(figure: Any, name: str) -> None:
    """Write the figure into docs/images and close it."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / name, dpi=150, bbox_inches="tight")
    plt.close(figure)


def kappa_against_jss() -> None:
    """Kappa by JSS when a disagreement flips one of two labels at random."""
    figure, axes = plt.subplots(figsize=(6, 3.6))
    jss = np.linspace(0.5, 1, 200)
    for prevalence, colour in zip((0.5, 0.8, 0.95), CYCLE, strict=False):
        other = prevalence * jss + (1 - prevalence) * (1 - jss)
        chance = prevalence * other + (1 - prevalence) * (1 - other)
        axes.plot(
            jss,
            (jss - chance) / (1 - chance),
            color=colour,
            lw=2,
            label=f"{prevalence:.0%} of the decisions are one label",
        )
    axes.axvline(0.8, color="0.6", ls=":", lw=1)
    axes.set(xlabel="JSS", ylabel="Cohen's κ", xlim=(0.5, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    save(figure, "kappa_against_jss.png")


def coverage() -> None:
    """Lowest, mean and highest coverage of every interval of JSS, by number of items."""
    rows = json.loads((DOCS / "results" / "coverage.json").read_text())
    rows = [row for row in rows if row["name"].startswith("JSS: ")]
    split = [row["name"].removeprefix("JSS: ").rsplit(", ", 1) for row in rows]
    methods = list(dict.fromkeys(method for method, _ in split))
    sizes = list(dict.fromkeys(size for _, size in split))
    figure, axes = plt.subplots(1, len(sizes), figsize=(9, 3), sharex=True, sharey=True)
    for place, size in enumerate(sizes):
        axis = axes[place]
        for y, method in enumerate(methods):
            row = rows[split.index([method, size])]
            colour = CYCLE[0] if y == 0 else CYCLE[1]
            axis.plot([row["ours"], row["highest"]], [y, y], color=colour, lw=3, alpha=0.4)
            axis.plot(row["mean"], y, "o", color=colour)
        axis.axvline(0.95, color="0.4", ls=":", lw=1)
        axis.set(title=size, xlabel="coverage", xlim=(0, 1.02))
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].invert_yaxis()
    save(figure, "interval_coverage.png")


def false_alarms() -> None:
    """How often two equally stable judges are called different, by pairs per item."""
    pairs = (1, 2, 4, 8, 16)
    runs, k = 400, 25
    rates: dict[str, list[float]] = {"items permuted": [], "rows permuted": []}
    for m in pairs:
        hits = dict.fromkeys(rates, 0)
        for seed in range(runs):
            rng = np.random.default_rng([m, seed])
            agree = [rng.random((k, m)) < rng.beta(1.6, 0.4, (k, 1)) for _ in range(2)]
            first, second = (part.ravel() for part in agree)
            items = np.repeat(np.arange(k), m)
            for name, clusters in (("items permuted", items), ("rows permuted", None)):
                found = paired_test(first, second, clusters, n_resamples=999, seed=seed)
                hits[name] += found.p_value is not None and found.p_value < 0.05
        for name, count in hits.items():
            rates[name].append(count / runs)
    print("false alarms at p < 0.05, 25 items, pairs per item", pairs, rates)
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for (name, values), colour in zip(rates.items(), CYCLE, strict=False):
        axes.plot(pairs, values, "o-", color=colour, lw=2, label=name)
    axes.axhline(0.05, color="0.4", ls=":", lw=1)
    axes.set(xlabel="pairs per item", ylabel="share of runs with p < 0.05", ylim=(0, None))
    axes.set_xscale("log", base=2)
    axes.set_xticks(pairs, [str(m) for m in pairs])
    axes.legend(frameon=False)
    save(figure, "comparison_false_alarms.png")


if __name__ == "__main__":
    kappa_against_jss()
    false_alarms()
    if (DOCS / "results" / "coverage.json").is_file():
        coverage()
