"""The plot of a monitored judge: what moved at each look, and the evidence so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting.plots import CYCLE, DASHES, INK, SOFT, new_figure, panel, plain, save
from judgesense.reporting.style import COLOURS

if TYPE_CHECKING:
    from judgesense.systems.monitor import Monitoring, TaskMonitoring

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
