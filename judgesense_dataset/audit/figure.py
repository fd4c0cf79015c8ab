"""The audit as a figure: the counts, the gold labels, and the score of an oracle.

Blues and oranges are Okabe and Ito's (colour-blind safe). Shares are printed in the bars, so that
the figure reads the same in black and white.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense_dataset.audit import Audit

BLUE, SKY, ORANGE, INK, SOFT = "#0072B2", "#56B4E9", "#D55E00", "#1c1e21", "#5c6166"


def draw_audit(audit: Audit, path: Path) -> None:
    """Write the figure as a PNG: the same bytes for the same audit and matplotlib.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing the audit") from error
    height = 1.1 + 0.62 * len(audit.tasks)
    figure = Figure(figsize=(10, height), layout="constrained")
    size, gold, scores = figure.subplots(1, 3, sharey=True, width_ratios=[1.1, 1.2, 0.9])
    _size(size, audit)
    _gold(gold, audit)
    _scores(scores, audit)
    size.set_yticks(range(len(audit.tasks)), list(audit.tasks))
    size.set_ylim(len(audit.tasks) - 0.5, -0.5)
    for axes in (size, gold, scores):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.tick_params(axis="x", colors=SOFT, labelsize=8)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def _size(axes: Any, audit: Audit) -> None:
    axes.set_title("rows, distinct pairs, distinct items", fontsize=10, loc="left", color=INK)
    for at, task in enumerate(audit.tasks.values()):
        counts = ((task.rows, SOFT), (task.pairs, SKY), (task.items, BLUE))
        for place, (count, colour) in enumerate(counts):
            y = at + 0.25 * (place - 1)
            axes.barh(y, count, height=0.22, color=colour)
            axes.annotate(f"{count:,}", (count, y), xytext=(3, 0), textcoords="offset points",
                          va="center", fontsize=8, color=INK)  # fmt: skip
    axes.margins(x=0.18)


def _gold(axes: Any, audit: Audit) -> None:
    axes.set_title("gold labels, share of rows", fontsize=10, loc="left", color=INK)
    shades = (BLUE, SKY, "#B9DDF3", "#F4C7A0", ORANGE)
    for at, task in enumerate(audit.tasks.values()):
        total, left = sum(task.gold.values()), 0.0
        for place, (label, count) in enumerate(task.gold.items()):
            if not count:
                continue
            share, shade = count / total, shades[place % len(shades)]
            axes.barh(at, share, left=left, height=0.5, color=shade, edgecolor="white")
            ink = "white" if shade in (BLUE, ORANGE) else INK
            axes.text(left + share / 2, at, f"{label}\n{share:.0%}", ha="center", va="center",
                      fontsize=8, color=ink, linespacing=1.0)  # fmt: skip
            left += share
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _scores(axes: Any, audit: Audit) -> None:
    axes.set_title("a perfect judge's JSS here", fontsize=10, loc="left", color=INK)
    for at, task in enumerate(audit.tasks.values()):
        raw, mapped = task.oracle_jss_raw, task.oracle_jss_mapped
        if raw is None or mapped is None:
            axes.text(0.5, at, "no gold labels", ha="center", va="center", fontsize=8, color=SOFT)
            continue
        axes.plot([raw, mapped], [at, at], color=SOFT, linewidth=1, zorder=1)
        label = {"raw": "raw", "mapped": "mapped"} if at == 0 else {"raw": None, "mapped": None}
        axes.scatter(raw, at, marker="s", color=ORANGE, s=46, zorder=2, label=label["raw"])
        axes.scatter(mapped, at, marker="o", color=BLUE, s=46, zorder=3, label=label["mapped"])
        axes.annotate(f"{raw:.2f}", (raw, at), xytext=(0, 7), textcoords="offset points",
                      ha="center", fontsize=8, color=INK)  # fmt: skip
    axes.set_xlim(0, 1.08)
    axes.legend(loc="lower left", fontsize=8, frameon=False)
