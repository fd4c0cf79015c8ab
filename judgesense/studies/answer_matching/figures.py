"""The figures of answer-matching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from judgesense.reporting.figures import INK, LINE, SOFT, plain
from judgesense.studies.answer_matching.missed import PAPERS_TEMPLATES, RIGHT, text_heuristic
from judgesense.studies.answer_matching.scoring import JUDGE, Answers
from judgesense.studies.common.figures import CYCLE, LINES, MARKERS, forest

if TYPE_CHECKING:
    from judgesense.studies.answer_matching.tables import Cell


def accuracy(cells: Sequence[Cell]) -> Any:
    """Mean ± std over templates, a row a model and matcher."""
    rows = []
    for cell in cells:
        s = cell.spread
        low, high = (None, None) if s is None else (s.mean - s.std, s.mean + s.std)
        mean = None if s is None else s.mean
        rows.append((cell.answers.benchmark, f"{cell.model}, {cell.matcher}", mean, low, high))
    return forest(rows, xlabel="accuracy, mean ± std over templates")


def by_template(cells: Sequence[Cell]) -> Any:
    """How the models' accuracies and their order change over templates; a panel a matcher."""
    from matplotlib.figure import Figure

    matchers = list(dict.fromkeys(cell.matcher for cell in cells if cell.unknown < 1))
    n = len(cells[0].scores)
    tall = n > PAPERS_TEMPLATES
    size = (9.0, 2.1 * len(matchers) + 0.9) if tall else (4.2 * len(matchers), 3.6)
    figure = Figure(figsize=size)
    names: list[str] = []
    for place, matcher in enumerate(matchers, 1):
        axes = _axes(figure, len(matchers), place, tall)
        own = [cell for cell in cells if cell.matcher == matcher]
        names = [cell.model for cell in own]
        for index, cell in enumerate(own):
            known = ~np.isnan(cell.scores)
            sums = np.where(known, cell.scores, 0.0).sum(axis=1)
            means = np.where(known.any(axis=1), sums / np.maximum(known.sum(axis=1), 1), np.nan)
            axes.plot(
                range(1, n + 1), means, color=CYCLE[index % len(CYCLE)],
                ls=LINES[index % len(LINES)], marker=MARKERS[index % len(MARKERS)],
                ms=5 if n <= 24 else 2.5, lw=1.6, mec="white", mew=0.5, clip_on=False,
                label=plain(cell.model),
            )  # fmt: skip
        axes.set_ylim(0, 1)
        axes.set_xticks(_ticks(n))
        if tall:
            axes.axvline(PAPERS_TEMPLATES + 0.5, color=SOFT, lw=0.9, ls=(0, (4, 3)))
        axes.set_title(f"matched by {plain(matcher)}", size=9, color=INK, loc="left")
        if not tall or place == len(matchers):
            axes.set_xlabel("template", color=SOFT, size=9)
        if tall or place == 1:
            axes.set_ylabel("accuracy", color=SOFT, size=9)
    _legend(figure, names)
    return figure


def missed(found: Sequence[Answers]) -> Any:
    """Bars by template: unread answers, and those that only the judge counts as right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(found) + 0.4, 3.5))
    labels = ["unread by the text heuristic", "read as wrong, right by the judge"]
    for place, answers in enumerate(found, 1):
        axes = _axes(figure, len(found), place)
        heuristic = text_heuristic(answers) or ""
        unread = np.array([reading is None for reading in answers.readings]).reshape(answers.shape)
        wrong = answers.scores[heuristic] < RIGHT
        judged = answers.scores.get(JUDGE)
        alone = None
        if judged is not None and not np.isnan(judged).all():
            alone = wrong & ~unread & (judged >= RIGHT)
        x = np.arange(1, len(answers.templates) + 1)
        bottom = unread.mean(axis=(0, 2))
        axes.bar(x, bottom, color=CYCLE[1], width=0.7, label=labels[0])
        if alone is not None:
            axes.bar(
                x, alone.mean(axis=(0, 2)), bottom=bottom, color="white", edgecolor=CYCLE[0],
                hatch="////", width=0.7, label=labels[1],
            )  # fmt: skip
        axes.set_ylim(0, 1)
        axes.set_xticks(_ticks(len(x)))
        axes.set_title(f"{answers.benchmark}, text heuristic: {heuristic}", size=9, color=INK,
                       loc="left")  # fmt: skip
        axes.set_xlabel("template", color=SOFT, size=9)
        if place == 1:
            axes.set_ylabel("share of all models' answers", color=SOFT, size=9)
    _legend(figure, labels)
    return figure


def _ticks(n: int) -> range:
    return range(1, n + 1) if n <= PAPERS_TEMPLATES else range(12, n + 1, 12)


def _axes(figure: Any, panels: int, place: int, stacked: bool = False) -> Any:
    axes = figure.add_subplot(*((panels, 1) if stacked else (1, panels)), place)
    axes.tick_params(colors=SOFT, labelsize=8, length=3)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=LINE, lw=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(LINE)
    return axes


def _legend(figure: Any, labels: Sequence[str]) -> None:
    """One legend below all panels."""
    handles, names = max(
        (axes.get_legend_handles_labels() for axes in figure.axes), key=lambda found: len(found[1])
    )
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.legend(handles, names, loc="lower center", ncols=max(len(labels), 1), fontsize=8,
                  frameon=False)  # fmt: skip
