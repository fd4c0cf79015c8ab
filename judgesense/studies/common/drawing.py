"""Figures that the studies share: forest plots, heatmaps, bars, slope charts and scatters.

Colours are Okabe and Ito's. Every series also differs in marker, line or hatching, so the figures
work in black and white. Each function returns a matplotlib figure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from judgesense.reporting import plots
from judgesense.reporting.palette import CYCLE, DASHES, INK, LINE, LINES, SOFT
from judgesense.reporting.plots import canvas, forest, look, new_figure, panel, plain, save
from judgesense.text import number

__all__ = [
    "CYCLE",
    "bars",
    "forest",
    "heatmap",
    "legend_below",
    "line_style",
    "new_figure",
    "panel",
    "save",
    "scatter",
    "slopes",
]


def heatmap(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
    digits: int = 2,
    hatched: Collection[tuple[int, int]] = (),
) -> Any:
    """A heatmap with the values in its cells; undefined cells are grey.

    ``hatched`` lists the (row, column) of cells to read with care.
    """
    width = 1.6 + 0.62 * len(columns) + 0.07 * max(map(len, rows))
    figure, axes = canvas(width, 1.1 + 0.38 * len(rows))
    image = plots.heatmap(
        axes, values, rows, columns, limits=limits, digits=digits, hatched=hatched
    )
    plots.colour_bar(figure, image, axes, label)
    return figure


def bars(
    values: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    *,
    xlabel: str,
    threshold: float | None = None,
) -> Any:
    """Grouped bars: one bar per name and series, with its value at the end.

    The first series is hatched.
    """
    figure, axes = canvas(6.4, 0.9 + (0.16 + 0.2 * len(values)) * len(names))
    if threshold is not None:
        axes.axvline(threshold, color=SOFT, lw=0.9, ls=DASHES)
    height = 0.8 / len(values)
    for index, (series, own) in enumerate(values.items()):
        places = [row - 0.4 + (index + 0.5) * height for row in range(len(names))]
        axes.barh(
            places, [value or 0.0 for value in own], 0.86 * height, label=plain(series),
            color="white" if index == 0 else CYCLE[index - 1], ec=CYCLE[max(index - 1, 0)],
            hatch="////" if index == 0 else None, lw=0.8,
        )  # fmt: skip
        for place, value in zip(places, own, strict=True):
            text = number(value)
            axes.text((value or 0.0) + 0.01, place, text, size=7, va="center", color=INK)
    axes.set_yticks(range(len(names)), [plain(name) for name in names], size=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.1)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axes.set_xlabel(xlabel, color=SOFT, size=9)
    axes.legend(
        fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(values)
    )
    return figure


def slopes(
    scores: Mapping[str, Sequence[float]],
    conditions: Sequence[str],
    *,
    ylabel: str,
    highlight: Sequence[str] = (),
) -> Any:
    """A slope chart: one line per name over the conditions, labelled at its right end.

    Names in ``highlight`` are coloured and the others grey; without any, all are coloured.
    """
    figure, axes = canvas(1.6 + 1.1 * len(conditions), 4.2)
    shown = list(highlight) or list(scores)
    for name, values in scores.items():
        chosen = name in shown
        colour, marker = look(shown.index(name)) if chosen else (LINE, "")
        line = LINES[shown.index(name) // len(CYCLE) % len(LINES)] if chosen else "-"
        axes.plot(range(len(values)), values, line, color=colour, lw=2 if chosen else 1,
                  marker=marker, ms=5, mec="white", zorder=3 if chosen else 1)  # fmt: skip
    ends = sorted((values[-1], name) for name, values in scores.items() if name in shown)
    low, high = axes.get_ylim()
    apart, before = 0.045 * (high - low), low - 1
    for value, name in ends:
        before = max(value, before + apart)
        colour = look(shown.index(name))[0]
        axes.annotate(plain(name), (len(conditions) - 1, value), (len(conditions) - 0.9, before),
                      size=8, color=colour, va="center", annotation_clip=False)  # fmt: skip
    axes.set_xticks(range(len(conditions)), [plain(c) for c in conditions], size=8)
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.set_ylabel(ylabel, color=SOFT, size=9)
    return figure


def scatter(
    points: Mapping[str, Sequence[tuple[float, float]]],
    *,
    xlabel: str,
    ylabel: str,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """A scatter plot by series; ``labels`` name the points of a series."""
    figure, axes = canvas(5.4, 4.0)
    for index, (name, own) in enumerate(points.items()):
        colour, marker = look(index)
        axes.scatter([x for x, _ in own], [y for _, y in own], c=colour, marker=marker, s=42,
                     edgecolors="white", linewidths=0.7, label=plain(name), zorder=3)  # fmt: skip
        for text, (x, y) in zip((labels or {}).get(name, ()), own, strict=False):
            axes.annotate(plain(text), (x, y), (4, 4), textcoords="offset points", size=7,
                          color=SOFT)  # fmt: skip
    axes.grid(color=LINE, lw=0.6)
    axes.set_xlabel(xlabel, color=SOFT, size=9)
    axes.set_ylabel(ylabel, color=SOFT, size=9)
    if len(points) > 1:
        axes.legend(fontsize=8, frameon=False, loc="best")
    return figure


def line_style(index: int) -> dict[str, Any]:
    """Colour, marker and line of the series at ``index``, as arguments of ``Axes.plot``."""
    colour, marker = look(index)
    return {
        "color": colour, "marker": marker, "ls": LINES[index % len(LINES)], "lw": 1.8, "ms": 6,
        "mec": "white",
    }  # fmt: skip


def legend_below(figure: Any) -> None:
    """Lay out a figure of several panels with one legend below them."""
    handles, labels = max(
        (axes.get_legend_handles_labels() for axes in figure.axes), key=lambda found: len(found[1])
    )
    fitting = int(13 * figure.get_figwidth() / (max(map(len, labels), default=0) + 8))
    columns = max(1, min(fitting, len(labels)))
    height = 0.02 + 0.26 / figure.get_figheight() * -(-len(labels) // columns)
    figure.tight_layout(rect=(0, height, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8, frameon=False)
