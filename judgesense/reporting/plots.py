"""The drawing that reports and studies share: one style, and one forest plot.

Colours are Okabe and Ito's (colour-blind safe); series and tones also differ in marker, line or
hatching, so that a black-and-white print says the same. matplotlib loads when it draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judgesense.errors import MissingExtraError
from judgesense.files.disk import replacing
from judgesense.reporting.palette import (
    COLOURS,
    CYCLE,
    DASHES,
    INK,
    LINE,
    MARKERS,
    SHAPES,
    SOFT,
)
from judgesense.text import interval, number, shorten

DPI = 200


class ForestRow(NamedTuple):
    """A row of a forest plot: a value with an interval, in a group of rows."""

    group: str
    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    hollow: float | None = None
    """A second value, drawn hollow."""
    tone: str | None = None
    """Gives the row its colour and shape and is printed beside it; ``baseline`` is only drawn."""


def new_figure(width: float, height: float, **options: Any) -> Any:
    """An empty figure of a size in inches; raises MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing figures") from error
    return Figure(figsize=(width, height), **options)


def panel(figure: Any, *place: int) -> Any:
    """Add axes in the common style at a place of a figure: rows, columns, and a number from 1."""
    axes = figure.add_subplot(*place)
    axes.tick_params(colors=SOFT, labelsize=8, length=3)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(LINE)
    return axes


def canvas(width: float, height: float) -> tuple[Any, Any]:
    """An empty figure of a size in inches, and its only axes."""
    figure = new_figure(width, height)
    return figure, panel(figure)


def save(figure: Any, folder: Path, name: str, kinds: Sequence[str] = ("png", "svg")) -> None:
    """Write a figure in each format, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        with replacing(folder / f"{name}.{kind}") as temporary:
            figure.savefig(
                temporary,
                dpi=DPI,
                format=kind,
                bbox_inches="tight",
                facecolor="white",
                metadata={"Date": None} if kind == "svg" else None,
            )


def plain(name: object) -> str:
    """Text that matplotlib does not read as mathematics."""
    return str(name).replace("$", r"\$")


def look(index: int) -> tuple[str, str]:
    """Colour and marker of a series."""
    return CYCLE[index % len(CYCLE)], MARKERS[index % len(MARKERS)]


def forest(
    rows: Sequence[tuple[Any, ...]],
    *,
    xlabel: str,
    threshold: float | None = None,
    xlim: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """Draw values with intervals; each row has the fields of `ForestRow`, groups are adjacent.

    A value that is undefined is printed as a dash; a row without an interval is a mark alone. With
    tones, the zone above the threshold is shaded.
    """
    lines = [ForestRow(*row) for row in rows]
    groups = list(dict.fromkeys(row.group for row in lines))
    judged = any(row.tone for row in lines)
    figure, axes = canvas(8.2 if judged else 7.2, 0.9 + 0.28 * (len(lines) + 1.3 * len(groups)))
    beside = axes.get_yaxis_transform()
    right = 1.46 if judged else 1.0
    if threshold is not None:
        axes.axvline(threshold, color=SOFT, lw=0.9, ls=DASHES)
        if judged:
            axes.axvspan(threshold, 1.0, color=COLOURS["use"], alpha=0.07, lw=0)
    y, before = 0.0, None
    for row in lines:
        if row.group != before:
            before, y = row.group, y + 1.3
            axes.text(
                -0.42, y, plain(row.group), transform=beside, weight="bold", size=10, va="center"
            )
            axes.plot(
                [-0.42, right], [y + 0.45] * 2, transform=beside, color=LINE, lw=0.8, clip_on=False
            )
        y += 1.0
        _forest_row(axes, row, y, look(groups.index(row.group)), beside)
    axes.set_ylim(y + 0.9, 0.4)
    axes.set_xlim(*xlim)
    axes.set_yticks([])
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(xlabel, color=SOFT, size=9)
    # Without it, `savefig` cuts off the names, which lie outside the axes.
    figure.set_layout_engine("constrained")
    for _ in range(3):  # The names' width depends on that of the axes.
        figure.draw_without_rendering()
    return figure


def ways(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The figure of `judgesense improve`: prompts per item against right, with intervals.

    Raises MissingExtraError without matplotlib.
    """
    figure, axes = canvas(6.4, 3.8)
    for row in rows:
        colour = CYCLE[0] if row["pareto"] else SOFT
        x, y = row["prompts_per_item"], 100 * row["right"]
        if row["right_ci_low"] is not None:
            ends = [100 * row["right_ci_low"], 100 * row["right_ci_high"]]
            axes.plot([x, x], ends, color=colour, lw=1)
        axes.plot(x, y, "D" if row["written"] else "o", color=colour, ms=6)
        if row["pareto"] or row["written"]:
            axes.annotate(row["way"][:40], (x, y), (5, 3), textcoords="offset points", fontsize=7)
    axes.set_xlabel("prompts per item")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("right, %")
    return figure


def _forest_row(axes: Any, row: ForestRow, y: float, series: tuple[str, str], beside: Any) -> None:
    colour, marker = series if row.tone is None else (COLOURS[row.tone], SHAPES[row.tone])
    tone = SOFT if row.tone == "baseline" else INK
    name = plain(shorten(row.name))
    axes.text(-0.39, y, name, transform=beside, size=9, va="center", color=tone)
    text = number(row.value)
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [y, y], color=colour, lw=2.2, solid_capstyle="round")
        text += f"  {interval(row.low, row.high, 2)}"
    if row.hollow is not None:
        axes.plot(row.hollow, y, marker, mfc="white", mec=colour, mew=1.2, ms=5.5, zorder=3)
    if row.value is not None:
        axes.plot(
            row.value,
            y,
            marker,
            color=colour,
            mec="white",
            mew=0.8,
            clip_on=False,
            ms=6.5 if row.tone == "baseline" else 7.5,
            zorder=4,
        )
    axes.text(1.03, y, text, transform=beside, size=9, va="center", color=tone)
    if row.tone not in (None, "baseline"):
        axes.text(
            1.46,
            y,
            row.tone,
            transform=beside,
            size=9,
            va="center",
            ha="right",
            color=colour,
            weight="bold",
        )
