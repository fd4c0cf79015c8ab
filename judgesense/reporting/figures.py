"""``figures/*.png`` for papers and slides: JSS by task, and template x template agreement.

Colours are Okabe and Ito's (colour-blind safe); verdicts and baselines differ in shape as well, so
that a black-and-white print says the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense.report_file import identity, main_cells
from judgesense.reporting.style import COLOURS, SHAPES
from judgesense.reporting.table import Row, rows
from judgesense.text import number, short_names, short_templates
from judgesense.trust.thresholds import STEADY_JSS

INK, SOFT, LINE = "#1c1e21", "#5c6166", "#d8d8d2"
DPI = 200
LOWEST = 0.5
"""Heatmaps show agreement from here to 1, with white at the threshold."""


def draw(report: Mapping[str, Any], folder: Path) -> list[str]:
    """Draw all figures into a folder; returns their paths relative to the run's folder.

    Heatmaps of judges that the report no longer has are deleted.

    Raises MissingExtraError without matplotlib, OSError if the folder cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing figures") from error

    table = rows(report)
    if not table:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    names = [_save(_forest(Figure, report, table), folder / "jss_by_task.png")]
    pairs = [row for row in report["template_pairs"] if row["labels"] == "mapped"]
    pairs = [row for row in pairs if row["jss"] is not None]
    by_judge: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in pairs:
        by_judge.setdefault((row["judge"], row["scoring"]), []).append(row)
    order = [row.cell["task"] for row in table]
    judges = short_names({judge for judge, _ in by_judge})
    for (judge, scoring), own in by_judge.items():
        figure = _heatmaps(Figure, own, order, f"{judges[judge]}, {scoring} scoring")
        stem = f"templates-{_slug(judge)}-{scoring}"
        taken = sum(name.startswith(stem) for name in names)
        stem += f"-{taken + 1}" if taken else ""
        names.append(_save(figure, folder / f"{stem}.png"))
    for path in folder.glob("templates-*.png"):
        if path.name not in names:
            path.unlink()
    return [f"{folder.name}/{name}" for name in names]


def _save(figure: Any, path: Path) -> str:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        figure.savefig(temporary, dpi=DPI, format="png", bbox_inches="tight", facecolor="white")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return path.name


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "judge"


def plain(name: object) -> str:
    """Text that matplotlib does not read as mathematics."""
    return str(name).replace("$", r"\$")


def _forest(figure_type: Any, report: Mapping[str, Any], table: Sequence[Row]) -> Any:
    cells = main_cells(report)
    groups = [(task, list(group)) for task, group in groupby(table, key=lambda r: r.cell["task"])]
    lines = len(table) + 1.35 * len(groups)
    figure = figure_type(figsize=(8.2, 0.27 * lines + 1.1))
    axes = figure.add_subplot()
    axes.axvspan(STEADY_JSS, 1.0, color=COLOURS["reliable"], alpha=0.07, lw=0)
    axes.axvline(STEADY_JSS, color=SOFT, lw=0.9, ls=(0, (4, 3)))
    y = 0.0
    left, right = axes.get_yaxis_transform(), axes.get_yaxis_transform()
    for task, group in groups:
        y += 1.35
        axes.text(-0.44, y, plain(task), transform=left, weight="bold", size=10, va="center")
        axes.plot([-0.44, 1.46], [y + 0.45] * 2, transform=left, color=LINE, lw=0.8, clip_on=False)
        for row in group:
            y += 1.0
            raw = cells[identity(row.cell)]["raw"]["jss"]
            _forest_row(axes, row, raw, y)
            tone = SOFT if row.is_baseline else INK
            name = (
                row.texts["judge"]
                if row.is_baseline
                else f"{row.texts['judge']} · {row.cell['scoring']}"
            )
            if len(name) > 34:
                name = f"{name[:33]}…"
            axes.text(-0.41, y, plain(name), transform=left, size=9, va="center", color=tone)
            text = number(row.cell["jss"])
            text += "" if row.is_baseline else f"  {row.texts['interval']}"
            axes.text(1.03, y, text, transform=right, size=9, va="center", color=tone)
            if not row.is_baseline:
                verdict = row.cell["verdict"]
                axes.text(
                    1.46, y, verdict, transform=right, size=9, va="center", ha="right",
                    color=COLOURS[verdict], weight="bold",
                )  # fmt: skip
    axes.set_ylim(y + 0.9, 0.4)
    axes.set_xlim(-0.01, 1.01)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axes.set_yticks([])
    axes.tick_params(colors=SOFT, labelsize=9, length=3)
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(LINE)
    axes.set_xlabel("JSS, mapped (hollow: raw), with its 95% interval", color=SOFT, size=9)
    return figure


def _forest_row(axes: Any, row: Row, raw: float | None, y: float) -> None:
    cell = row.cell
    tone = "baseline" if row.is_baseline else cell["verdict"]
    colour = COLOURS[tone]
    if cell["jss"] is None:
        return
    if cell["ci_low"] is not None and not row.is_baseline:
        axes.plot([cell["ci_low"], cell["ci_high"]], [y, y], color=colour, lw=2.2,
                  solid_capstyle="round", zorder=2)  # fmt: skip
    if raw is not None and abs(raw - cell["jss"]) > 0.005:
        axes.plot(raw, y, SHAPES[tone], mfc="white", mec=colour, mew=1.2, ms=5.5, zorder=3)
    axes.plot(cell["jss"], y, SHAPES[tone], color=colour, mec="white", mew=0.8,
              ms=6.5 if row.is_baseline else 7.5, zorder=4, clip_on=False)  # fmt: skip


def _heatmaps(
    figure_type: Any, pairs: Sequence[Mapping[str, Any]], order: Sequence[str], title: str
) -> Any:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    colours = LinearSegmentedColormap.from_list("jss", ["#D55E00", "#FFFFFF", "#3C8FC7"])
    norm = TwoSlopeNorm(STEADY_JSS, LOWEST, 1.0)
    tasks = sorted({row["task"] for row in pairs}, key=order.index)
    sizes = [len({row[s] for row in pairs if row["task"] == task
                  for s in ("template_a", "template_b")}) for task in tasks]  # fmt: skip
    side = 0.5 * max(sizes) + 0.9
    columns = int(np.ceil(np.sqrt(len(tasks))))
    lines = -(-len(tasks) // columns)
    figure = figure_type(figsize=(side * columns + 0.9, side * lines + 0.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    figure.suptitle(plain(title), size=11, weight="bold", color=INK)
    grid = figure.subplots(lines, columns, squeeze=False)
    image = None
    for axes in grid.flat[len(tasks) :]:
        axes.axis("off")
    for axes, task in zip(grid.flat, tasks, strict=False):
        own = [row for row in pairs if row["task"] == task]
        image = _heatmap(axes, own, colours, norm)
        axes.set_title(plain(task), size=10, color=INK)
    bar = figure.colorbar(image, ax=grid, shrink=0.7, aspect=24, pad=0.02)
    bar.set_ticks([LOWEST, 0.6, 0.7, STEADY_JSS, 0.9, 1.0])
    bar.ax.set_yticklabels([f"≤{LOWEST}", "0.6", "0.7", "0.8", "0.9", "1.0"])
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
    bar.outline.set_edgecolor(LINE)
    bar.set_label("JSS (mapped)", size=9, color=SOFT)
    return figure


def _heatmap(axes: Any, pairs: Sequence[Mapping[str, Any]], colours: Any, norm: Any) -> Any:
    import numpy as np

    templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
    place = {name: index for index, name in enumerate(templates)}
    short = [plain(name) for name in short_templates(templates).values()]
    table = np.full((len(templates), len(templates)), np.nan)
    for row in pairs:
        one, two = place[row["template_a"]], place[row["template_b"]]
        table[one, two] = table[two, one] = row["jss"]
    image = axes.imshow(np.ma.masked_invalid(table), cmap=colours, norm=norm)
    axes.set_facecolor("#ECECE8")
    axes.set_xticks(range(len(short)), short, size=8)
    axes.set_yticks(range(len(short)), short, size=8)
    if max(map(len, short)) > 3:
        axes.tick_params(axis="x", labelrotation=90)
    axes.tick_params(length=0, colors=SOFT)
    axes.set_xticks(np.arange(len(short) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(short) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", lw=1.5)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_edgecolor(LINE)
    for one, two in np.argwhere(np.isfinite(table)):
        value = table[one, two]
        tone = "white" if value < 0.58 else INK
        axes.text(two, one, f"{value:.2f}", ha="center", va="center", size=9, color=tone)
    return image
