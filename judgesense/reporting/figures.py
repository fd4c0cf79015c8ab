"""The figure of a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting import plots
from judgesense.reporting.tables import rows
from judgesense.trust.thresholds import STEADY_JSS


def forest(report: Mapping[str, Any]) -> Any:
    """JSS by task as a figure. Raises JudgeSenseError for a report without judges, and
    MissingExtraError without matplotlib."""
    lines = []
    for row in rows(report):
        figure, name = row.figure, row.texts["judge"]
        ends = (None, None) if row.is_baseline else (figure["ci_low"], figure["ci_high"])
        name += "" if row.is_baseline else f" · {row.cell['scoring']}"
        lines.append((row.cell["task"], name, figure["jss"], *ends, None, row.tone))
    if not lines:
        raise JudgeSenseError("the report has no judge to draw")
    xlabel = "JSS (same verdict after rewording) with its 95% interval"
    return plots.forest(lines, xlabel=xlabel, threshold=STEADY_JSS, xlim=(-0.01, 1.01))


def draw(report: Mapping[str, Any], folder: Path) -> list[str]:
    """Draw the figure into a folder; returns its path relative to the run's folder.

    Raises as `forest`, and OSError if the folder cannot be written.
    """
    plots.save(forest(report), folder, "jss_by_task", ("png",))
    return [f"{folder.name}/jss_by_task.png"]
