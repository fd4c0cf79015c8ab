"""The kinds of figures that studies declare: points, heatmaps and lines.

A kind names the columns of the records that it draws. Colours are Okabe and Ito's
(`judgesense.reporting.plots`); every series also differs in marker or line, so the
figures work in black and white.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from judgesense.reporting import plots
from judgesense.reporting.palette import (
    DIVERGING,
    INK,
    LINE,
    LINES,
    SOFT,
    UNDEFINED,
)
from judgesense.reporting.plots import ForestRow, canvas, look, new_figure, panel, plain
from judgesense.text import number

Row = Mapping[str, Any]

Of = str | Callable[[Row], Any] | None
"""A column, or a function of a record; None for nothing."""

PANELS = 3
"""Panels beside each other."""

MOST_TICKS, LONG_NAME = 12, 7
"""More numbers than this are not all ticks; longer names of ticks are turned."""


class Kind(Protocol):
    """How a figure draws its records."""

    def draw(self, rows: Sequence[Row]) -> Any:
        """The matplotlib figure."""


def _get(row: Row, column: Of) -> Any:
    return row[column] if isinstance(column, str) else column and column(row)


def _values(rows: Sequence[Row], column: Of) -> list[Any]:
    """The distinct values of a column, in the order of the rows."""
    return list(dict.fromkeys(_get(row, column) for row in rows))


@dataclass(frozen=True, kw_only=True)
class Points:
    """Values with intervals, a line each, in groups (a forest plot).

    ``values`` maps a label to the columns of value, low and high; a label is added to the name.
    ``hollow`` is a second value. ``limits`` grow until they hold all values.
    """

    group: Of
    name: Of
    values: Mapping[str, tuple[Of, Of, Of]]
    xlabel: str
    hollow: Of = None
    threshold: float | None = None
    limits: tuple[float, float] = (0.0, 1.0)

    def draw(self, rows: Sequence[Row]) -> Any:
        """The matplotlib figure."""
        lines = [
            ForestRow(
                str(_get(row, self.group)),
                f"{_get(row, self.name)}: {label}" if label else str(_get(row, self.name)),
                *(_get(row, column) for column in (*columns, self.hollow)),
            )
            for row in rows
            for label, columns in self.values.items()
        ]
        order = list(dict.fromkeys(line.group for line in lines))
        lines.sort(key=lambda line: order.index(line.group))
        numbers = [value for line in lines for value in line[2:6] if value is not None]
        limits = min(self.limits[0], *numbers, 1.0), max(self.limits[1], *numbers, 0.0)
        return plots.forest(lines, xlabel=self.xlabel, threshold=self.threshold, xlim=limits)


@dataclass(frozen=True, kw_only=True)
class Heatmap:
    """A value per row and column of a grid, written in its cell; cells without one are grey.

    ``limits`` are the ends of the colours; None for ends that lie symmetrically about 0.
    ``hatched`` says which records to read with care.
    """

    row: Of
    column: Of
    value: Of
    label: str
    limits: tuple[float, float] | None = (0.0, 1.0)
    hatched: Callable[[Row], bool] = lambda row: False

    def draw(self, rows: Sequence[Row]) -> Any:
        """The matplotlib figure."""
        import numpy as np
        from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
        from matplotlib.patches import Rectangle

        names, columns = _values(rows, self.row), _values(rows, self.column)
        cells = {(_get(row, self.row), _get(row, self.column)): row for row in rows}
        values = [
            [_get(cells[at, of], self.value) if (at, of) in cells else None for of in columns]
            for at in names
        ]
        hatched = [
            (names.index(at), columns.index(of))
            for (at, of), row in cells.items()
            if self.hatched(row)
        ]
        peak = max((abs(v) for line in values for v in line if v is not None), default=0.0) or 1.0
        width = 1.6 + 0.62 * len(columns) + 0.07 * max(len(str(name)) for name in names)
        figure, axes = canvas(width, 1.1 + 0.38 * len(names))
        low, high = self.limits or (-peak, peak)
        table = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
        image = axes.imshow(
            np.ma.masked_invalid(table),
            aspect="auto",
            cmap=LinearSegmentedColormap.from_list("share", DIVERGING),
            norm=TwoSlopeNorm((low + high) / 2, low, high),
        )
        axes.set_facecolor(UNDEFINED)
        axes.set_xticks(range(len(columns)), [plain(name) for name in columns], size=8)
        axes.set_yticks(range(len(names)), [plain(name) for name in names], size=8)
        if max(map(len, columns)) > LONG_NAME:
            axes.tick_params(axis="x", labelrotation=35)
            for tick in axes.get_xticklabels():
                tick.set_ha("right")
        axes.tick_params(length=0, colors=SOFT)
        axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", lw=1.5)
        axes.tick_params(which="minor", length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        for y, x in np.argwhere(np.isfinite(table)):
            tone = "white" if table[y, x] < low + 0.15 * (high - low) else INK
            text = number(table[y, x], 2)
            axes.text(x, y, text, ha="center", va="center", size=8, color=tone)
        for y, x in hatched:
            axes.add_patch(
                Rectangle(
                    (x - 0.5, y - 0.5), 1, 1, fill=False, hatch="///", ec=SOFT, lw=0, alpha=0.6
                )
            )
        bar = figure.colorbar(image, ax=axes, shrink=0.9, aspect=22, pad=0.02)
        bar.set_label(self.label, size=9, color=SOFT)
        bar.outline.set_edgecolor(LINE)
        bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
        return figure


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A line per series over x, in a panel per value of ``panel``; records without y are left out.

    x may be text. Not ``joined``, each record is a point.
    """

    x: Of
    y: Of
    series: Of
    xlabel: str
    ylabel: str
    panel: Of = None
    joined: bool = True

    def draw(self, rows: Sequence[Row]) -> Any:
        """The matplotlib figure."""
        drawable = [row for row in rows if _get(row, self.y) is not None]
        names = _values(drawable, self.series)
        places = _values(drawable, self.x)
        has_names = any(isinstance(place, str) for place in places)
        figure, panels = _panels(drawable, self.panel)
        for axes, panel_rows in panels:
            for name in _values(panel_rows, self.series):
                line = [row for row in panel_rows if _get(row, self.series) == name]
                x = [_get(row, self.x) for row in line]
                x = [places.index(place) for place in x] if has_names else x
                colour, marker = look(index := names.index(name))
                axes.plot(
                    x,
                    [_get(row, self.y) for row in line],
                    color=colour,
                    marker=marker,
                    ls=LINES[index % len(LINES)] if self.joined else "",
                    lw=1.8,
                    ms=6,
                    mec="white",
                    label=plain(name),
                )
            if has_names:
                is_turned = max(map(len, places)) > LONG_NAME
                axes.set_xticks(
                    range(len(places)),
                    [plain(place) for place in places],
                    size=8,
                    rotation=30 if is_turned else 0,
                    ha="right" if is_turned else "center",
                )
            elif self.joined and len(places) <= MOST_TICKS:
                axes.set_xticks(sorted(places))
        return _finish(figure, self.xlabel, self.ylabel)


def _panels(rows: Sequence[Row], column: Of) -> tuple[Any, list[tuple[Any, list[Row]]]]:
    """A figure with a panel per value of a column, and each panel's axes with its records."""
    values = [None] if column is None else _values(rows, column)
    columns = min(PANELS, len(values))
    lines = -(-len(values) // columns)
    figure = new_figure(max(5.4, 3.6 * columns), 3.0 * lines + 0.5)
    panels = []
    for place, value in enumerate(values, 1):
        axes = panel(figure, lines, columns, place)
        axes.grid(axis="y", color=LINE, lw=0.6)
        if column is not None:
            axes.set_title(plain(value), size=9, color=INK, loc="left")
        panels.append((axes, [row for row in rows if column is None or _get(row, column) == value]))
    return figure, panels


def _finish(figure: Any, xlabel: str, ylabel: str) -> Any:
    """The figure with one scale of y for all panels, and one legend below them."""
    ends = [end for axes in figure.axes for end in axes.get_ylim()]
    handles, labels = max(
        (axes.get_legend_handles_labels() for axes in figure.axes),
        key=lambda pair: len(pair[1]),
    )
    for axes in figure.axes:
        axes.set_ylim(min(ends), max(ends))
        axes.set_xlabel(xlabel, color=SOFT, size=9)
        axes.set_ylabel(ylabel, color=SOFT, size=9)
    n_fitting = int(13 * figure.get_figwidth() / (max(map(len, labels), default=0) + 8))
    columns = max(1, min(n_fitting, len(labels)))
    height = 0.02 + 0.26 / figure.get_figheight() * -(-len(labels) // columns)
    figure.tight_layout(rect=(0, height, 1, 1))
    if len(labels) > 1:
        figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8, frameon=False)
    return figure
