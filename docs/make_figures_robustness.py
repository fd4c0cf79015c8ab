"""Draw the pictures of docs/metrics/{robustness,ranking,position_bias,consequence,answer_match}.md.

    python docs/make_figures_robustness.py

The data are simulated from the seeds below, or scored from the responses below. No model runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import judgesense
from judgesense.statistics.consequence import consequence

IMAGES = Path(__file__).parent / "images"
COLOURS = ("#0b5394", "#cc5500", "#3d8168", "#8e5ea2", "#6b6b6b")


def save(figure: Any, name: str) -> None:
    """Write the figure into docs/images and close it."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / name, dpi=150, bbox_inches="tight")
    plt.close(figure)


def chance_gap() -> None:
    """Win-rate gap of a judge that ignores the wording, by number of items."""
    rng = np.random.default_rng(0)
    sizes = np.array([25, 50, 100, 200, 400, 800])
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for k, colour in zip((2, 5, 10), COLOURS, strict=False):
        told, seen = [], []
        for n in sizes:
            right = [rng.random((n, k)) < rng.beta(1, 1, (n, 1)) for _ in range(200)]
            seen.append(np.mean([np.ptp(table.mean(axis=0)) for table in right]))
            one = judgesense.paraphrase_robustness(right[0].astype(int), np.ones(n), n_resamples=10)
            told.append(one["win_rate_gap_chance"])
        axes.plot(sizes, seen, color=colour, label=f"{k} paraphrases")
        axes.plot(sizes, told, "o", color=colour, markersize=5)
    axes.axhline(0.15, color="0.5", linestyle="--", linewidth=1)
    axes.text(800, 0.155, "threshold of “stable”", ha="right", va="bottom", color="0.35")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_xlabel("items")
    axes.set_ylabel("win-rate gap")
    axes.set_ylim(0)
    axes.set_title("Win-rate gap of a judge that ignores the wording", fontsize=11)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "robustness_chance_gap.png")


def ranking_against_choice() -> None:
    """20 prompts, 12 nearly equal: the correlation rises long before the winner is stable."""
    rng = np.random.default_rng(1)
    truth = np.concatenate([np.linspace(0.30, 0.50, 8), np.linspace(0.58, 0.62, 12)])
    sizes = (50, 100, 200, 500, 1000, 5000)
    rows = []
    for size in sizes:
        runs = [
            judgesense.ranking_stability(rng.binomial(size, truth, (5, 20)) / size)
            for _ in range(200)
        ]
        keys = ("spearman_mean", "topk_pairwise_mean", "top1_pairwise_mean")
        rows.append([np.mean([run[key] for run in runs]) for key in keys])
    figure, axes = plt.subplots(figsize=(6, 3.6))
    names = ("Spearman’s ρ", "top-3 overlap", "same winner")
    for values, name, colour in zip(np.array(rows).T, names, COLOURS, strict=False):
        axes.plot(sizes, values, "o-", color=colour, markersize=4, clip_on=False)
        axes.text(5400, values[-1], name, color=colour, va="center")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_xlim(45, 5000)
    axes.set_ylim(0, 1)
    axes.set_xlabel("examples in each of 5 conditions")
    axes.set_ylabel("mean over pairs of conditions")
    axes.set_title("Rankings agree long before the chosen prompt does", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "ranking_against_choice.png")


def four_judges() -> None:
    """Four judges on 400 pairs: three of them have the same first-position rate."""
    rng = np.random.default_rng(2)
    n = 400
    item = rng.choice(["A", "B"], n)
    swapped = np.where(item == "A", "B", "A")
    side = rng.choice(["A", "B"], n)
    judges = {
        "follows the item": (item, swapped),
        "tosses a coin": (rng.choice(["A", "B"], n), rng.choice(["A", "B"], n)),
        "follows a place\n(first or second)": (side, side),
        "always the first": (np.full(n, "A"), np.full(n, "A")),
    }
    figure, axes = plt.subplots(figsize=(7, 3))
    keys = ("position_consistency", "consistent_first", "consistent_second")
    names = ("same item", "first both times", "second both times")
    for y, (first, ba) in enumerate(judges.values()):
        result = judgesense.position_bias(ba, first)
        left = 0.0
        for key, colour in zip(keys, COLOURS, strict=False):
            axes.barh(y, result[key], left=left, color=colour, height=0.6)
            left += result[key]
        axes.text(1.02, y, f"{result['first_position_rate']:.2f}", va="center")
    axes.text(1.02, -0.75, "first-position\nrate", va="center", fontsize=9)
    axes.set_yticks(range(4), list(judges))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of pairs")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS[:3]]
    axes.legend(handles, names, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "position_four_judges.png")


def systems_under_wordings() -> None:
    """Four systems judged under five wordings, one of which favours long answers."""
    rng = np.random.default_rng(3)
    systems, wordings, items = list("PQRS"), [f"wording {i}" for i in range(1, 6)], 80
    worth = dict(zip(systems, (3.05, 3.30, 3.40, 3.70), strict=True))
    lean = {("R", "wording 4"): 0.55, ("Q", "wording 4"): 0.3, ("S", "wording 2"): -0.1}
    rows = [(i, s, t) for i in range(items) for s in systems for t in wordings]
    ease = rng.normal(0, 0.5, items)
    scores = [
        float(np.clip(np.rint(worth[s] + lean.get((s, t), 0) + ease[i] + rng.normal(0, 0.6)), 1, 5))
        for i, s, t in rows
    ]
    item, system, template = zip(*rows, strict=True)
    result = consequence(scores, system, template, item)
    table = np.array(result.scores)
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for name, values, colour in zip(result.systems, table.T, COLOURS, strict=False):
        axes.plot(range(5), values, "o-", color=colour)
        axes.text(4.1, values[-1], name, color=colour, va="center", fontweight="bold")
    axes.set_xticks(range(5), wordings)
    axes.set_ylabel("mean score, 80 items")
    axes.set_title(
        f"The winner changes in {result.winner_change_rate:.0%} of the pairs of wordings, "
        f"the ranking in {result.ranking_change_rate:.0%}",
        fontsize=10,
    )
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "consequence_systems.png")
    print("consequence:", result.winner_change_rate, result.ranking_change_rate, result.winners)


RESPONSES = (
    "B",
    "(b)",
    "The answer is B.",
    "B, because the other options contradict the text.",
    "Paris",
    "It is Paris, of course.",
    "Not London: the answer is (B) Paris.",
    "I would say the second option.",
    "A or B",
    "A",
)
"""Answers to a question with the options (A) London (B) Paris; the last two are wrong."""


def matchers_on_phrasings() -> None:
    """Scores of each matcher for ten responses to one question."""
    n = len(RESPONSES)
    columns = {
        "choice": judgesense.answer_match(
            RESPONSES, ["B"] * n, "choice", n_options=2, options=[["London", "Paris"]] * n
        ),
        "exact": judgesense.answer_match(RESPONSES, [["B", "Paris"]] * n, "exact"),
        "f1": judgesense.answer_match(RESPONSES, [["B", "Paris"]] * n, "f1"),
    }
    table = np.array([column["per_example"] for column in columns.values()]).T
    figure, axes = plt.subplots(figsize=(6.2, 3.8))
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
        ink = "white" if value > 0.6 else "black"
        axes.text(column, row, shown, ha="center", va="center", color=ink)
    axes.set_xticks(range(3), list(columns))
    axes.set_yticks(range(n), RESPONSES)
    axes.xaxis.tick_top()
    axes.axhline(n - 2.5, color="0.3", linewidth=1)
    axes.text(2.55, n - 1.5, "wrong", va="center", color="0.3")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    save(figure, "answer_match_phrasings.png")
    print("answer_match:", {name: round(c["score"], 2) for name, c in columns.items()})


if __name__ == "__main__":
    chance_gap()
    ranking_against_choice()
    four_judges()
    systems_under_wordings()
    matchers_on_phrasings()
