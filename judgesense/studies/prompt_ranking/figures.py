"""The figures of prompt-ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judgesense.reporting.figures import INK, LINE, SOFT, plain
from judgesense.statistics.selection import selection_gain
from judgesense.studies.common.figures import CYCLE, LINES, MARKERS, slopes

if TYPE_CHECKING:
    from judgesense.studies.prompt_ranking.tables import Measured


def ranks(cell: Measured) -> Any:
    """Ranks of the prompts over the seeds: 1 at the top, ties share their mean rank."""
    from scipy.stats import rankdata

    table = rankdata(-cell.scores, axis=1)
    winners = {cell.grid.prompts[at] for at in cell.scores.argmax(axis=1)}
    by_name = dict(zip(cell.grid.prompts, table.T.tolist(), strict=True))
    ordered = sorted(by_name, key=lambda name: (name not in winners, by_name[name][-1]))
    figure = slopes(
        {name: by_name[name] for name in ordered},
        [f"seed {number}" for number in range(1, len(table) + 1)],
        ylabel="rank of the prompt",
        highlight=[name for name in ordered if name in winners],
    )
    axes = figure.axes[0]
    axes.set_ylim(len(by_name) + 0.7, 0.3)
    axes.set_yticks([1, *range(5, len(by_name) + 1, 5)])
    return figure


def by_size(cells: Sequence[Measured]) -> Any:
    """Spearman's rho and the share of seed pairs with the same winner, by subset size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6))
    panels = (
        ("spearman_mean", "Spearman's ρ between seeds"),
        ("top1_pairwise_mean", "seed pairs with the same winner"),
    )
    for place, (field, label) in enumerate(panels, 1):
        axes = _axes(figure, 1, 2, place)
        for index, own in enumerate(_series(cells)):
            values = [getattr(cell.stability, field) for cell in own]
            shown = [(c.size, v) for c, v in zip(own, values, strict=True) if v is not None]
            axes.plot([x for x, _ in shown], [y for _, y in shown], **_style(index),
                      label=_label(own[0]))  # fmt: skip
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.02)
        axes.set_xticks(sorted({cell.size for cell in cells}))
        axes.set_xlabel("items of a subset", color=SOFT, size=9)
        axes.set_ylabel(label, color=SOFT, size=9)
    _legend(figure, len(list(_series(cells))))
    return figure


def flips(cells: Sequence[Measured]) -> Any:
    """Every pair of prompts as a point: its gap against how often it flips."""
    from matplotlib.figure import Figure

    columns = min(3, len(cells))
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(3.1 * columns + 0.4, 2.7 * rows + 0.5), layout="constrained")
    largest = max(float(cell.flips.flips.max()) for cell in cells)
    widest = max(float(cell.flips.gap.max()) for cell in cells)
    for place, cell in enumerate(cells, 1):
        axes = _axes(figure, rows, columns, place)
        near = cell.flips.near_tied
        for inside, colour, marker, label in (
            (near, CYCLE[1], "o", "not told apart by all items"),
            (~near, CYCLE[0], "^", "told apart"),
        ):
            axes.scatter(
                cell.flips.gap[inside], cell.flips.flips[inside], c=colour, marker=marker, s=16,
                alpha=0.75, edgecolors="white", linewidths=0.4, label=label,
            )  # fmt: skip
        axes.set_title(plain(_label(cell)), size=9, color=INK, loc="left")
        axes.set_ylim(-0.02, largest * 1.08 + 0.01)
        axes.set_xlim(-0.02 * widest, widest * 1.05 + 1e-3)
        axes.set_xlabel("gap between the means", color=SOFT, size=8)
        axes.set_ylabel("share of seed pairs that flip", color=SOFT, size=8)
        if place == 1:
            axes.legend(fontsize=7.5, frameon=False)
    return figure


def sweep(cells: Sequence[Measured], weights: Sequence[float]) -> Any:
    """The expected gain of LCB over the mean by z; one panel for each size."""
    sizes = sorted({cell.size for cell in cells})
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.0 * len(sizes) + 0.6, 3.3))
    gains = {
        id(cell): [100 * selection_gain(cell.redrawn, z).gain for z in weights] for cell in cells
    }
    low = min(min(values) for values in gains.values())
    high = max(max(values) for values in gains.values())
    margin = max(0.08 * (high - low), 0.05)
    for place, size in enumerate(sizes, 1):
        axes = _axes(figure, 1, len(sizes), place)
        axes.axhline(0, color=SOFT, lw=0.9, ls=(0, (4, 3)))
        for index, own in enumerate(_series(cells)):
            for cell in own:
                if cell.size == size:
                    axes.plot(weights, gains[id(cell)], **_style(index), label=_label(cell))
        axes.set_ylim(low - margin, high + margin)
        axes.set_title(f"{size} items", size=9, color=INK, loc="left")
        axes.set_xlabel("z", color=SOFT, size=9)
        if place == 1:
            axes.set_ylabel("gain over the mean, points", color=SOFT, size=9)
    _legend(figure, len(list(_series(cells))))
    return figure


def _series(cells: Sequence[Measured]) -> list[list[Measured]]:
    groups: dict[tuple[str, str], list[Measured]] = {}
    for cell in cells:
        groups.setdefault(cell.key[:2], []).append(cell)
    return list(groups.values())


def _label(cell: Measured) -> str:
    return f"{cell.model}, {cell.grid.name}"


def _style(index: int) -> dict[str, Any]:
    return {
        "color": CYCLE[index % len(CYCLE)], "marker": MARKERS[index % len(MARKERS)],
        "ls": LINES[index % len(LINES)], "lw": 1.8, "ms": 6, "mec": "white",
    }  # fmt: skip


def _axes(figure: Any, rows: int, columns: int, place: int) -> Any:
    axes = figure.add_subplot(rows, columns, place)
    axes.tick_params(colors=SOFT, labelsize=8, length=3)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=LINE, lw=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(LINE)
    return axes


def _legend(figure: Any, n: int) -> None:
    """One legend for all panels, below them."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = 1 if max(map(len, labels)) > 60 else 2
    height = 0.02 + 0.055 * -(-n // columns)
    figure.tight_layout(rect=(0, height, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8, frameon=False)
