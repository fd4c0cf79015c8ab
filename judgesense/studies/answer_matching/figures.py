"""The figures of answer-matching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from judgesense.reporting.palette import INK, SOFT
from judgesense.reporting.plots import plain
from judgesense.studies.answer_matching.measures import PAPERS_TEMPLATES, Cell, text_heuristic
from judgesense.studies.answer_matching.scoring import JUDGE, RIGHT, BenchmarkAnswers
from judgesense.studies.common.drawing import (
    CYCLE,
    forest,
    legend_below,
    line_style,
    new_figure,
    panel,
)
from judgesense.studies.common.result import Picture


def pictures(cells: Sequence[Cell], found: Sequence[BenchmarkAnswers]) -> Iterator[Picture]:
    """The study's figures; nothing is drawn before a picture's ``draw`` is called."""
    yield Picture(
        "accuracy",
        "Accuracy of each model by each matcher: mean over templates, plus and minus one standard "
        "deviation",
        partial(accuracy, list(cells)),
    )
    for answers in found:
        own = [cell for cell in cells if cell.answers is answers]
        if any(cell.no_verdict < 1 for cell in own):
            yield Picture(
                f"templates-{answers.benchmark}",
                f"{answers.benchmark}: accuracy of the models under each template, by matcher",
                partial(by_template, own),
            )
    if read := [answers for answers in found if text_heuristic(answers) is not None]:
        yield Picture(
            "missed",
            "Answers that the text heuristic could not read, by template, and those that only the "
            "judge counts as right",
            partial(missed, read),
        )


def accuracy(cells: Sequence[Cell]) -> Any:
    """Mean ± std over templates, a row per model and matcher."""
    rows = []
    for cell in cells:
        s = cell.spread
        low, high = (None, None) if s is None else (s.mean - s.std, s.mean + s.std)
        mean = None if s is None else s.mean
        rows.append((cell.answers.benchmark, f"{cell.model}, {cell.matcher}", mean, low, high))
    return forest(rows, xlabel="accuracy, mean ± std over templates")


def by_template(cells: Sequence[Cell]) -> Any:
    """How the models' accuracies change over templates; a panel per matcher."""
    matchers = list(dict.fromkeys(cell.matcher for cell in cells if cell.no_verdict < 1))
    n = len(cells[0].scores)
    tall = n > PAPERS_TEMPLATES
    columns = 1 if tall else min(len(matchers), 3)
    places = (-(-len(matchers) // columns), columns)
    size = (9.0, 2.1 * len(matchers) + 0.9) if tall else (4.2 * columns, 3.2 * places[0] + 0.4)
    figure = new_figure(*size)
    for place, matcher in enumerate(matchers, 1):
        axes = panel(figure, *places, place, grid=True)
        own = [cell for cell in cells if cell.matcher == matcher]
        for index, cell in enumerate(own):
            known = ~np.isnan(cell.scores)
            sums = np.where(known, cell.scores, 0.0).sum(axis=1)
            means = np.where(known.any(axis=1), sums / np.maximum(known.sum(axis=1), 1), np.nan)
            style = line_style(index) | {"ms": 5 if n <= 24 else 2.5, "lw": 1.6, "mew": 0.5}
            axes.plot(range(1, n + 1), means, **style, clip_on=False, label=plain(cell.model))
        axes.set_ylim(0, 1)
        axes.set_xticks(_ticks(n))
        if tall:
            axes.axvline(PAPERS_TEMPLATES + 0.5, color=SOFT, lw=0.9, ls=(0, (4, 3)))
        axes.set_title(f"matched by {plain(matcher)}", size=9, color=INK, loc="left")
        if place > len(matchers) - columns:
            axes.set_xlabel("template", color=SOFT, size=9)
        if place % columns == 1 or columns == 1:
            axes.set_ylabel("accuracy", color=SOFT, size=9)
    legend_below(figure)
    return figure


def missed(found: Sequence[BenchmarkAnswers]) -> Any:
    """Bars by template: unread answers, and those that only the judge counts as right."""
    figure = new_figure(4.4 * len(found) + 0.4, 3.5)
    labels = ["unread by the text heuristic", "read as wrong, right by the judge"]
    for place, answers in enumerate(found, 1):
        axes = panel(figure, 1, len(found), place, grid=True)
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
    legend_below(figure)
    return figure


def _ticks(n: int) -> range:
    return range(1, n + 1) if n <= PAPERS_TEMPLATES else range(12, n + 1, 12)
