"""Published figures, which no run here measured: the second version, then the withdrawn first."""

from __future__ import annotations

from functools import cache
from typing import Any

from hub_scripts.leaderboard.render import render
from hub_scripts.leaderboard.sources import RunSource
from judgesense.published import ROWS, WITHDRAWN, WORDINGS, PublishedFigure, figures, v2_figures
from judgesense.run_folder.report import task_rank


@cache
def published_page() -> str:
    """The page as HTML: v2 with all its figures, v1 below with its withdrawal."""
    return render(
        "published",
        wordings=WORDINGS,
        withdrawn=WITHDRAWN,
        rows=ROWS,
        second=sorted(v2_figures(), key=_place),
        first=sorted(figures(), key=_place),
    )


def _place(figure: PublishedFigure) -> tuple[Any, ...]:
    return task_rank(figure.task), figure.labels, -figure.jss, figure.judge


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio."""
    gr.HTML(published_page(), js_on_load=None, apply_default_css=False, elem_id="published")
