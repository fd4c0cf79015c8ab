"""Decisions and pairs to report.json; from there to terminal, Markdown, LaTeX, HTML and figures.

The package can be called: ``judgesense.report(dir)`` measures a run and writes its report, whether
or not ``judgesense.report`` has been imported as a package before.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that is also the function of its name."""

    def __call__(self, *run_dirs: str | Path) -> dict[str, Any]:
        """Measure runs anew, write each one's report, and return ``report.json`` (of all).

        Args:
            run_dirs: folders of runs (``--out``), one or several.

        Returns:
            The contents of ``report.json``; of several runs, their cells one after another.

        Raises:
            JudgeSenseError: a folder without decisions, an unreadable part, or a report that a
                newer version wrote.
        """
        from judgesense.report.build import report_runs

        return report_runs(*run_dirs)


sys.modules[__name__].__class__ = _CallablePackage

report = sys.modules[__name__]
