"""The figures of a report and of a monitored judge."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting import plots
from judgesense.reporting.palette import COLOURS, CYCLE, DASHES, INK, LOWEST_AGREEMENT, SOFT
from judgesense.reporting.plots import new_figure, panel, plain, save
from judgesense.reporting.tables import Row, rows
from judgesense.text import short_names, short_templates
from judgesense.trust.thresholds import STEADY_JSS

if TYPE_CHECKING:
    from judgesense.systems.monitor import Monitoring, TaskMonitoring


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


KINDS = (".png", ".svg", ".pdf")


def plot_monitoring(found: Monitoring, path: str | Path) -> Path:
    """Draw a column for each task: verdicts moved by look, and the evidence of a change.

    Args:
        found: what `judgesense.monitor` returns.
        path: the file to write, .png, .svg or .pdf.

    Returns:
        The path.

    Raises:
        JudgeSenseError: another suffix, or a folder that cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    target = require_kind(Path(path))
    n = len(found.tasks)
    figure = new_figure(max(6.4, 4.4 * n), 4.8, layout="constrained")
    for place, task in enumerate(found.tasks, 1):
        _moves(panel(figure, 2, n, place, grid=True), task)
        _evidence(panel(figure, 2, n, n + place, grid=True), task)
    try:
        save(figure, target.parent, target.stem, [target.suffix[1:].lower()])
    except OSError as error:
        raise JudgeSenseError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def require_kind(path: Path) -> Path:
    """The path. Raises JudgeSenseError unless its suffix names a format that can be drawn."""
    if path.suffix.lower() not in KINDS:
        raise JudgeSenseError(f"{path}: name a file that ends in {', '.join(KINDS)}")
    return path


def _moves(axes: Any, task: TaskMonitoring) -> None:
    looks = [look.look for look in task.looks]
    heading = f"{task.task} ({task.scoring})" if task.scoring else task.task
    axes.set_title(plain(heading), size=10, color=INK, loc="left", weight="bold")
    axes.plot(looks, [100 * look.moved for look in task.looks], "o-", color=CYCLE[0], ms=4.5,
              lw=1.2, mec="white", mew=0.6, clip_on=False, zorder=3,
              label="moved since the baseline")  # fmt: skip
    axes.plot(looks, [100 * look.reworded for look in task.looks], color=SOFT, lw=1.2, ls=DASHES,
              label="moved by rewording" if task.allow is None else "allowed")  # fmt: skip
    axes.set_ylabel("verdicts (%)", size=9, color=SOFT)
    axes.set_ylim(0, None)
    axes.margins(y=0.15)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="upper left")
    _looks(axes, task)


def _evidence(axes: Any, task: TaskMonitoring) -> None:
    looks = [look.look for look in task.looks]
    values = [look.log10_evidence for look in task.looks]
    limit = task.log10_limit
    axes.plot(looks, values, "o-", color=CYCLE[1], ms=4.5, lw=1.2, mec="white", mew=0.6)
    axes.axhline(limit, color=SOFT, lw=0.9, ls=DASHES)
    axes.annotate("alarm", (0.995, limit), (0, 3), xycoords=axes.get_yaxis_transform(),
                  textcoords="offset points", ha="right", size=8, color=SOFT)  # fmt: skip
    axes.set_ylabel("evidence (log10)", size=9, color=SOFT)
    axes.set_xlabel("look", size=9, color=SOFT)
    low, high = min(*values, 0.0, limit), max(*values, limit)
    axes.set_ylim(low - 0.08 * (high - low), high + 0.16 * (high - low))
    _looks(axes, task)


def _looks(axes: Any, task: TaskMonitoring) -> None:
    from matplotlib.ticker import MaxNLocator

    first, last = task.looks[0].look, task.looks[-1].look
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    if task.alarm_look is not None:
        axes.axvspan(task.alarm_look - 0.5, last + 0.5, color=COLOURS["avoid"], alpha=0.09, lw=0)
