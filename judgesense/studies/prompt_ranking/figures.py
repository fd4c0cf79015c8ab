"""The figures of prompt-ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from judgesense.reporting.plots import INK, SOFT, plain
from judgesense.statistics.ranking import selection_gain
from judgesense.statistics.ranks import competition_ranks
from judgesense.studies.common.drawing import (
    CYCLE,
    legend_below,
    line_style,
    new_figure,
    panel,
    slopes,
)
from judgesense.studies.common.result import Picture
from judgesense.studies.prompt_ranking.measures import REDRAWS, Measured, series
from judgesense.studies.prompt_ranking.tables import SWEEP


def pictures(cells: Sequence[Measured]) -> Iterator[Picture]:
    """The study's figures; nothing is drawn before a picture's ``draw`` is called."""
    smallest = min(cell.size for cell in cells)
    small = [cell for cell in cells if cell.size == smallest]
    for cell in small:
        yield Picture(
            _file_name(f"ranks-{cell.grid.name}-{cell.model}"),
            f"{cell.grid.name}, {cell.model}: ranks of the prompts under each seed's {cell.size} "
            "items; prompts that win under some seed are coloured",
            partial(ranks, cell),
        )
    yield Picture(
        "stability-by-size",
        "Agreement between seeds by subset size: rank correlation, and the same winner",
        partial(by_size, list(cells)),
    )
    yield Picture(
        "flips-by-gap",
        f"How often two seeds of {smallest} items order a pair of prompts oppositely, against the "
        "gap between the prompts on all items",
        partial(flips, small),
    )
    yield Picture(
        "lcb-sweep",
        "Gain of LCB over the mean on the seed left out, by its weight z (expectation over "
        f"{REDRAWS} sets of seeds)",
        partial(sweep, list(cells)),
    )


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "-" for c in text).replace("--", "-")


def ranks(cell: Measured) -> Any:
    """Ranks of the prompts over the seeds: 1 at the top, ties share the best of their ranks."""
    table = competition_ranks(cell.scores)
    winners = {cell.grid.prompts[at] for at in cell.winners}
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
    figure = new_figure(8.0, 3.6)
    panels = (
        ("spearman_mean", "Spearman's ρ between seeds"),
        ("top1_pairwise_mean", "seed pairs with the same winner"),
    )
    for place, (field, label) in enumerate(panels, 1):
        axes = panel(figure, 1, 2, place, grid=True)
        for index, own in enumerate(series(cells)):
            values = [getattr(cell.stability, field) for cell in own]
            shown = [(c.size, v) for c, v in zip(own, values, strict=True) if v is not None]
            axes.plot(*zip(*shown, strict=True), **line_style(index), label=own[0].name)
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.02)
        axes.set_xticks(sorted({cell.size for cell in cells}))
        axes.set_xlabel("items of a subset", color=SOFT, size=9)
        axes.set_ylabel(label, color=SOFT, size=9)
    legend_below(figure)
    return figure


def flips(cells: Sequence[Measured]) -> Any:
    """Every pair of prompts as a point: its gap against how often it flips."""
    columns = min(3, len(cells))
    rows = -(-len(cells) // columns)
    figure = new_figure(3.1 * columns + 0.4, 2.7 * rows + 0.5, layout="constrained")
    largest = max(float(cell.flips.flips.max()) for cell in cells)
    widest = max(float(cell.flips.gap.max()) for cell in cells)
    for place, cell in enumerate(cells, 1):
        axes = panel(figure, rows, columns, place, grid=True)
        near = cell.flips.near_tied
        for inside, colour, marker, label in (
            (near, CYCLE[1], "o", "not told apart by all items"),
            (~near, CYCLE[0], "^", "told apart"),
        ):
            axes.scatter(
                cell.flips.gap[inside], cell.flips.flips[inside], c=colour, marker=marker, s=16,
                alpha=0.75, edgecolors="white", linewidths=0.4, label=label,
            )  # fmt: skip
        axes.set_title(plain(cell.name), size=9, color=INK, loc="left")
        axes.set_ylim(-0.02, largest * 1.08 + 0.01)
        axes.set_xlim(-0.02 * widest, widest * 1.05 + 1e-3)
        axes.set_xlabel("gap between the means", color=SOFT, size=8)
        axes.set_ylabel("share of seed pairs that flip", color=SOFT, size=8)
        if place == 1:
            axes.legend(fontsize=7.5, frameon=False)
    return figure


def sweep(cells: Sequence[Measured]) -> Any:
    """The expected gain of LCB over the mean by z, a panel per size."""
    sizes = sorted({cell.size for cell in cells})
    figure = new_figure(3.0 * len(sizes) + 0.6, 3.3)
    gains = {
        id(cell): [100 * selection_gain(cell.redrawn, z).gain for z in SWEEP] for cell in cells
    }
    low = min(min(values) for values in gains.values())
    high = max(max(values) for values in gains.values())
    margin = max(0.08 * (high - low), 0.05)
    for place, size in enumerate(sizes, 1):
        axes = panel(figure, 1, len(sizes), place, grid=True)
        axes.axhline(0, color=SOFT, lw=0.9, ls=(0, (4, 3)))
        for index, own in enumerate(series(cells)):
            for cell in own:
                if cell.size == size:
                    axes.plot(SWEEP, gains[id(cell)], **line_style(index), label=cell.name)
        axes.set_ylim(low - margin, high + margin)
        axes.set_title(f"{size} items", size=9, color=INK, loc="left")
        axes.set_xlabel("z", color=SOFT, size=9)
        if place == 1:
            axes.set_ylabel("gain over the mean, points", color=SOFT, size=9)
    legend_below(figure)
    return figure
