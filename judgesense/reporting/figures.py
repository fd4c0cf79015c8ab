"""The figures of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.reporting import plots
from judgesense.reporting.palette import INK, LOWEST_AGREEMENT
from judgesense.reporting.tables import Row, rows
from judgesense.text import short_names, short_templates
from judgesense.trust.thresholds import STEADY_JSS


def draw(report: Mapping[str, Any], folder: Path) -> list[str]:
    """Draw all figures into a folder; returns their paths relative to the run's folder.

    Heatmaps of judges that the report no longer has are deleted.

    Raises MissingExtraError without matplotlib, OSError if the folder cannot be written.
    """
    table = rows(report)
    if not table:
        return []
    names = ["jss_by_task"]
    plots.save(_forest(table), folder, names[0], ("png",))
    by_judge: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in report["template_pairs"]:
        if row["labels"] == "mapped" and row["jss"] is not None:
            by_judge.setdefault((row["judge"], row["scoring"]), []).append(row)
    order = [row.cell["task"] for row in table]
    judges = short_names({judge for judge, _ in by_judge})
    for (judge, scoring), own in by_judge.items():
        stem = f"templates-{_slug(judge)}-{scoring}"
        taken = sum(name.startswith(stem) for name in names)
        names.append(f"{stem}-{taken + 1}" if taken else stem)
        figure = _heatmaps(own, order, f"{judges[judge]}, {scoring} scoring")
        plots.save(figure, folder, names[-1], ("png",))
    for path in folder.glob("templates-*.png"):
        if path.stem not in names:
            path.unlink()
    return [f"{folder.name}/{name}.png" for name in names]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "judge"


def _forest(table: Sequence[Row]) -> Any:
    lines = []
    for row in table:
        cell, figure, name = row.cell, row.figure, row.texts["judge"]
        ends = (None, None) if row.is_baseline else (figure["ci_low"], figure["ci_high"])
        name += "" if row.is_baseline else f" · {cell['scoring']}"
        lines.append((cell["task"], name, figure["jss"], *ends, None, row.tone))
    xlabel = "JSS (same verdict after rewording) with its 95% interval"
    return plots.forest(lines, xlabel=xlabel, threshold=STEADY_JSS, xlim=(-0.01, 1.01))


def _heatmaps(pairs: Sequence[Mapping[str, Any]], order: Sequence[str], title: str) -> Any:
    tasks = sorted({row["task"] for row in pairs}, key=order.index)
    tables = [_agreement([row for row in pairs if row["task"] == task]) for task in tasks]
    side = 0.5 * max(len(names) for names, _ in tables) + 0.9
    columns = math.ceil(math.sqrt(len(tasks)))
    lines = -(-len(tasks) // columns)
    figure = plots.new_figure(side * columns + 0.9, side * lines + 0.6, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    figure.suptitle(plots.plain(title), size=11, weight="bold", color=INK)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(tasks) :]:
        axes.axis("off")
    image = None
    for axes, task, (names, values) in zip(grid.flat, tasks, tables, strict=False):
        limits = (LOWEST_AGREEMENT, 1.0)
        image = plots.heatmap(axes, values, names, names, limits=limits, middle=STEADY_JSS)
        axes.set_title(plots.plain(task), size=10, color=INK)
    plots.colour_bar(figure, image, grid, f"JSS, mapped ({LOWEST_AGREEMENT} and below: one colour)")
    return figure


def _agreement(pairs: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[float | None]]]:
    """The short names of the templates, and the JSS of each pair of them."""
    templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
    jss = {frozenset((row["template_a"], row["template_b"])): row["jss"] for row in pairs}
    values = [[jss.get(frozenset((one, two))) for two in templates] for one in templates]
    return list(short_templates(templates).values()), values
