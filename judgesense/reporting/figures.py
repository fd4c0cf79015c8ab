"""The figure of a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.reporting import plots
from judgesense.reporting.tables import rows
from judgesense.trust.thresholds import STEADY_JSS


def draw(report: Mapping[str, Any], folder: Path) -> list[str]:
    """Draw JSS by task into a folder; returns the paths relative to the run's folder.

    Raises MissingExtraError without matplotlib, OSError if the folder cannot be written.
    """
    lines = []
    for row in rows(report):
        figure, name = row.figure, row.texts["judge"]
        ends = (None, None) if row.is_baseline else (figure["ci_low"], figure["ci_high"])
        name += "" if row.is_baseline else f" · {row.cell['scoring']}"
        lines.append((row.cell["task"], name, figure["jss"], *ends, None, row.tone))
    if not lines:
        return []
    xlabel = "JSS (same verdict after rewording) with its 95% interval"
    forest = plots.forest(lines, xlabel=xlabel, threshold=STEADY_JSS, xlim=(-0.01, 1.01))
    plots.save(forest, folder, "jss_by_task", ("png",))
    return [f"{folder.name}/jss_by_task.png"]
