"""Scores: columns of numbers, their distance from people's, and the cut that makes them labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.column_names import Column, Columns
from judgesense.importers.columns import ROW, ColumnMap, values_in
from judgesense.importers.rows import texts_of
from judgesense.importers.values import NUMBER, fold, word_of
from judgesense.statistics.scores import ScoreAgreement, score_agreement
from judgesense.text import number

_MOST_LEVELS = 11
_SCALES = (0.01, 0.05, 0.1, 0.2, 0.25, 4, 5, 10, 20, 100)


@dataclass(frozen=True)
class ScoresOfJudge:
    """A judge's scores beside people's."""

    judge: str
    figures: ScoreAgreement

    @property
    def scale(self) -> float | None:
        """How many times people's scores the judge's are, if it is on another scale and its ranks
        agree."""
        figures = self.figures
        if figures.factor is None or (figures.spearman or 0) < 0.5 or 1 / 3 < figures.factor < 3:
            return None
        return min(_SCALES, key=lambda scale: abs(math.log(scale / float(figures.factor or 1))))

    @property
    def text(self) -> str:
        """The figures in one sentence."""
        f = self.figures
        ranks = "" if f.spearman is None else f"ranks agree with ρ {_shown(f, 'spearman')}, "
        text = (
            f"{self.judge} against people's scores on {f.n} outputs: {ranks}mean absolute error "
            f"{_shown(f, 'mae')}, bias {_shown(f, 'bias')}"
        )
        if self.scale is not None:
            text += (
                f". Its scores are about {self.scale:g} times people's: another scale, not another "
                "judgement"
            )
        return text

    def to_dict(self) -> dict[str, object]:
        """The figures for ``run.json``."""
        return {"judge": self.judge, "scale": self.scale, **asdict(self.figures)}


def _shown(figures: ScoreAgreement, name: str) -> str:
    low, high = figures[f"{name}_ci_low"], figures[f"{name}_ci_high"]
    ends = "" if low is None else f" [{number(low, 2)}, {number(high, 2)}]"
    return f"{number(figures[name], 2)}{ends}"


def has_levels(column: Column) -> bool:
    """Whether its numbers are few whole ones, which are labels."""
    return not column.decimals and len(column.words) <= _MOST_LEVELS


def scores_beside(
    blocks: Iterable[Rows],
    found: Columns,
    judged: Sequence[str],
    people: Sequence[str],
    roles: Mapping[str, str],
) -> list[ScoresOfJudge]:
    """Each judge's scores beside the mean of people's; none where one side is no scores."""
    ours = [name for name in judged if name in found and found[name].numeric]
    theirs = [name for name in people if name in found and found[name].numeric]
    if not ours or len(theirs) < len(people) or not theirs:
        return []
    values: dict[str, list[float]] = {name: [] for name in (*ours, *theirs)}
    items: list[str] = []
    for rows in blocks:
        for name, cells in values.items():
            cells += _numbers(rows, name)
        ids = None if roles.get("item_id", ROW) == ROW else ColumnMap(roles).column(rows, "item_id")
        items += map(str, ids or range(len(items), len(items) + len(rows)))
    given = np.array([values[name] for name in theirs])
    known = ~np.isnan(given)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, given, 0).sum(axis=0) / known.sum(axis=0)
    found_scores = [
        ScoresOfJudge(name, score_agreement(values[name], mean, items)) for name in ours
    ]
    return [scores for scores in found_scores if scores.figures.n > 1]


def _numbers(rows: Rows, name: str) -> list[float]:
    cells = [None if value is ABSENT else value for value in values_in(rows, name) or ()]
    words = map(word_of, texts_of(cells) or [None] * len(rows))
    texts = [None if word is None else fold(word) for word in words]
    return [float(text) if text and NUMBER.fullmatch(text) else math.nan for text in texts]


def cut_of(found: Columns, names: Iterable[str]) -> float:
    """A round number in the middle of people's scores."""
    numbers = [
        float(text) for name in names for text in found[name].texts if NUMBER.fullmatch(text)
    ]
    low, high = min(numbers), max(numbers)
    if low >= 0 and high <= 1:
        return 0.5
    step = 10 ** math.floor(math.log10((high - low) / 2)) if high > low else 1
    return float(round((low + high) / 2 / step) * step)
