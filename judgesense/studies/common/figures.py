"""The studies' figures: forest plots, heatmaps, slope charts and scatters, for print and screen.

Colours are Okabe and Ito's; every series differs in marker or line as well, so that a
black-and-white print says the same. Each function returns a matplotlib figure.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense.reporting.figures import DPI, INK, LINE, SOFT, plain
from judgesense.text import number

CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07D00", "#56B4E9", "#5c6166")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")


def save(figure: Any, folder: Path, name: str) -> None:
    """Write ``name.png`` and ``name.svg``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        path = folder / f"{name}.{kind}"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            figure.savefig(
                temporary, dpi=DPI, format=kind, bbox_inches="tight", facecolor="white",
                metadata={"Date": None} if kind == "svg" else None,
            )  # fmt: skip
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def forest(
    rows: Sequence[tuple[str, str, float | None, float | None, float | None]],
    *,
    xlabel: str,
    threshold: float | None = None,
    xlim: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """Values with intervals: rows are (group, name, value, low, high), groups in their order.

    A value that is undefined is written as a dash; a row without an interval is a mark alone.
    """
    figure, axes = _canvas(7.2, 0.9 + 0.28 * (len(rows) + 1.3 * len({row[0] for row in rows})))
    left = axes.get_yaxis_transform()
    if threshold is not None:
        axes.axvline(threshold, color=SOFT, lw=0.9, ls=(0, (4, 3)))
    y, before, groups = 0.0, None, list(dict.fromkeys(row[0] for row in rows))
    for group, name, value, low, high in rows:
        if group != before:
            before, y = group, y + 1.3
            axes.text(-0.42, y, plain(group), transform=left, weight="bold", size=10, va="center")
        y += 1.0
        colour, marker = _look(groups.index(group))
        axes.text(-0.39, y, plain(name), transform=left, size=9, va="center", color=INK)
        text = "–" if value is None else f"{value:.3f}"
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], color=colour, lw=2.2, solid_capstyle="round")
            text += f"  [{low:.2f}, {high:.2f}]"
        if value is not None:
            axes.plot(value, y, marker, color=colour, mec="white", mew=0.8, ms=7.5, clip_on=False)
        text = text.replace("-", "−")
        axes.text(1.03, y, text, transform=left, size=9, va="center", color=INK)
    axes.set_ylim(y + 0.9, 0.4)
    axes.set_xlim(*xlim)
    axes.set_yticks([])
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(xlabel, color=SOFT, size=9)
    return figure


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
    """A table in colours with its figures in the cells; undefined cells are grey.

    ``hatched`` are the (row, column) of cells that are to be read with care.
    """
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    table = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
    width = 1.6 + 0.62 * len(columns) + 0.07 * max(map(len, rows))
    figure, axes = _canvas(width, 1.1 + 0.38 * len(rows))
    colours = LinearSegmentedColormap.from_list("share", ["#D55E00", "#F7F7F4", "#3C8FC7"])
    image = axes.imshow(
        np.ma.masked_invalid(table), cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    axes.set_facecolor("#ECECE8")
    axes.set_xticks(range(len(columns)), [plain(name) for name in columns], size=8)
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], size=8)
    if max(map(len, columns)) > 9:
        axes.tick_params(axis="x", labelrotation=35)
        for tick in axes.get_xticklabels():
            tick.set_ha("right")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    reach = limits[1] - limits[0]
    for one, two in np.argwhere(np.isfinite(table)):
        value = table[one, two]
        tone = "white" if value < limits[0] + 0.14 * reach else INK
        axes.text(two, one, number(value, digits), ha="center", va="center", size=8, color=tone)
    for one, two in hatched:
        axes.add_patch(
            Rectangle(
                (two - 0.5, one - 0.5), 1, 1, fill=False, hatch="///", ec=SOFT, lw=0, alpha=0.6
            )
        )
    bar = figure.colorbar(image, ax=axes, shrink=0.9, aspect=22, pad=0.02)
    bar.set_label(label, size=9, color=SOFT)
    bar.outline.set_edgecolor(LINE)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
    return figure


def bars(
    values: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    *,
    xlabel: str,
    threshold: float | None = None,
) -> Any:
    """Shares side by side: for every name one bar a series, its figure at the bar's end.

    The first series is hatched, so that a black-and-white print tells the two apart.
    """
    figure, axes = _canvas(6.4, 0.9 + (0.16 + 0.2 * len(values)) * len(names))
    if threshold is not None:
        axes.axvline(threshold, color=SOFT, lw=0.9, ls=(0, (4, 3)))
    height = 0.8 / len(values)
    for index, (series, own) in enumerate(values.items()):
        places = [row - 0.4 + (index + 0.5) * height for row in range(len(names))]
        axes.barh(
            places, [value or 0.0 for value in own], 0.86 * height, label=plain(series),
            color="white" if index == 0 else CYCLE[index - 1], ec=CYCLE[max(index - 1, 0)],
            hatch="////" if index == 0 else None, lw=0.8,
        )  # fmt: skip
        for place, value in zip(places, own, strict=True):
            text = "–" if value is None else f"{value:.3f}"
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
    """How a ranking changes: one line a name over conditions; names stand at its right end.

    Names in ``highlight`` are coloured, the others grey; with none, all are coloured.
    """
    figure, axes = _canvas(1.6 + 1.1 * len(conditions), 4.2)
    shown = list(highlight) or list(scores)
    for name, values in scores.items():
        chosen = name in shown
        colour, marker = _look(shown.index(name)) if chosen else (LINE, "")
        line = LINES[shown.index(name) // len(CYCLE) % len(LINES)] if chosen else "-"
        axes.plot(range(len(values)), values, line, color=colour, lw=2 if chosen else 1,
                  marker=marker, ms=5, mec="white", zorder=3 if chosen else 1)  # fmt: skip
    ends = sorted((values[-1], name) for name, values in scores.items() if name in shown)
    low, high = axes.get_ylim()
    apart, before = 0.045 * (high - low), low - 1
    for value, name in ends:
        before = max(value, before + apart)
        colour = _look(shown.index(name))[0]
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
    """Points by series, e.g. accuracy against gap; ``labels`` name the points of a series."""
    figure, axes = _canvas(5.4, 4.0)
    for index, (name, own) in enumerate(points.items()):
        colour, marker = _look(index)
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
    colour, marker = _look(index)
    return {
        "color": colour, "marker": marker, "ls": LINES[index % len(LINES)], "lw": 1.8, "ms": 6,
        "mec": "white",
    }  # fmt: skip


def new_figure(width: float, height: float, **options: Any) -> Any:
    """An empty figure of a size in inches; raises MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing figures") from error
    return Figure(figsize=(width, height), **options)


def panel(
    figure: Any, rows: int = 1, columns: int = 1, place: int = 1, *, grid: bool = False
) -> Any:
    """Add axes in the studies' style at a place of a figure, counted from 1; ``grid`` draws
    horizontal lines."""
    axes = figure.add_subplot(rows, columns, place)
    if grid:
        axes.grid(axis="y", color=LINE, lw=0.6)
    axes.tick_params(colors=SOFT, labelsize=8, length=3)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(LINE)
    return axes


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


def _look(index: int) -> tuple[str, str]:
    return CYCLE[index % len(CYCLE)], MARKERS[index % len(MARKERS)]


def _canvas(width: float, height: float) -> tuple[Any, Any]:
    figure = new_figure(width, height)
    return figure, panel(figure)
