"""Scores: columns of numbers, their distance from people's, and the cut that makes them labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from judgesense.files.tables import Rows
from judgesense.importers.column_names import Column, Columns, header_key
from judgesense.importers.columns import ROW, ColumnMap
from judgesense.importers.rows import cells_in, texts_of
from judgesense.importers.values import NUMBER, SAME, fold, number_in, place_of, word_of
from judgesense.statistics.scores import ScoreAgreement, score_agreement
from judgesense.text import number

_MOST_LEVELS = 11
_SCALES = (0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 2, 4, 5, 10, 20, 100)


@dataclass(frozen=True)
class ScoresOfJudge:
    """A judge's scores on a task beside people's; the task is "" in a file of one.

    Where people said yes or no (``binary``), these are 1 and 0.
    """

    column: str
    judge: str
    task: str
    figures: ScoreAgreement
    binary: bool
    tops: tuple[float, float]
    """The greatest score of the usual scales on which the judge's and people's are."""
    within_half: float | None = None
    """The share of scores within a half of people's, where some scores are halves."""

    @property
    def scale(self) -> float | None:
        """How many times people's scores the judge's are, if it is on another scale and its ranks
        agree."""
        figures, tops = self.figures, self.tops
        if self.binary or figures.factor is None or (figures.spearman or 0) < 0.5:
            return None
        if 1 / 3 < figures.factor < 3 and 1 / 1.9 < tops[0] / tops[1] < 1.9:
            return None
        return min(_SCALES, key=lambda scale: abs(math.log(scale / float(figures.factor or 1))))

    @property
    def is_opposite(self) -> bool:
        """Whether people reliably say yes to what the judge scores low."""
        return self.binary and (self.figures.spearman_ci_high or 0) < 0

    @property
    def text(self) -> str:
        """The figures in one sentence."""
        f = self.figures
        ranks = [] if f.spearman is None else [f"ranks agree with ρ {_shown(f, 'spearman')}"]
        if self.scale is None:
            ranks += [f"mean absolute error {_shown(f, 'mae')}, bias {_shown(f, 'bias')}"]
        if self.within_half is not None and self.scale is None:
            ranks.append(f"{self.within_half:.0%} within a half")
        what = "labels, 1 and 0," if self.binary else "scores"
        whose = f"{self.judge} on {self.task}" if self.task else self.judge
        text = f"{whose} against people's {what} on {f.n} outputs: {', '.join(ranks)}"
        if self.scale is not None:
            text += (
                f". Its scores are about {self.scale:g} times people's: another scale, not another "
                "judgement"
            )
        return text

    def to_dict(self) -> dict[str, object]:
        """The figures for ``run.json``: no distance between two scales."""
        figures = asdict(self.figures)
        if self.scale is not None:
            figures |= {name: None for name in figures if name.startswith(("mae", "bias"))}
        known = {"judge": self.judge, "task": self.task, "scale": self.scale, **figures}
        return known | ({} if self.within_half is None else {"within_half": self.within_half})


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
    """Each judge's scores on each task beside the mean of people's; none where one side is no
    scores. People's yes and no are scores to a judge with scores from 0 to 1."""
    ours = [name for name in judged if name in found and found[name].numeric]
    theirs = [name for name in people if name in found]
    binary = all(found[name].sides is not None for name in theirs)
    if binary:
        ours = [name for name in ours if found[name].is_share]
    elif not all(found[name].numeric for name in theirs):
        return []
    if not ours or len(theirs) < len(people) or not theirs:
        return []
    columns, size = ColumnMap(roles), 0
    by_key: dict[tuple[str, str, str], list[tuple[float, float, str]]] = {}
    for rows in blocks:
        given = np.array([_numbers(rows, name, binary) for name in theirs])
        known = ~np.isnan(given)
        with np.errstate(invalid="ignore"):
            means = np.where(known, given, 0).sum(axis=0) / known.sum(axis=0)
        ids = None if roles.get("item_id", ROW) == ROW else columns.column(rows, "item_id")
        items = list(map(str, ids or range(size, size + len(rows))))
        size += len(rows)
        tasks = texts_of(columns.column(rows, "task")) or [""] * len(rows)
        for name in ours:
            named = columns.column(rows, "judge") if len(judged) == 1 else None
            judges = texts_of(named) or [name] * len(rows)
            numbers = _numbers(rows, name)
            cells = zip(numbers, means.tolist(), items, strict=True)
            for judge, task, cell in zip(judges, tasks, cells, strict=True):
                key = (name, str(judge or name), str(task or ""))
                by_key.setdefault(key, []).append(cell)
    several = len({task for *_, task in by_key}) > 1
    scored = []
    for (name, judge, task), each in by_key.items():
        said, true, outputs = zip(*each, strict=True)
        if binary and {*said} <= {0.0, 1.0, math.nan}:
            continue  # These are labels.
        figures = score_agreement(said, true, outputs)
        tops = (top_of(said), top_of(true))
        of = task if several else ""
        half = None if binary else _within_half(said, true)
        scored.append(ScoresOfJudge(name, judge, of, figures, binary, tops, half))
    return [scores for scores in scored if scores.figures.n > 1]


def _within_half(said: Iterable[float], true: Iterable[float]) -> float | None:
    pairs = [(a, b) for a, b in zip(said, true, strict=True) if a == a and b == b]
    doubled = {2 * score for pair in pairs for score in pair}
    if not all(score.is_integer() for score in doubled) or not any(d % 2 for d in doubled):
        return None
    return sum(abs(a - b) <= 0.5 for a, b in pairs) / len(pairs)


def _numbers(rows: Rows, name: str, binary: bool = False) -> list[float]:
    words = map(word_of, cells_in(rows, name))
    texts = [None if word is None else fold(word) for word in words]
    if binary:
        places = [place_of(text or "", SAME[0]) for text in texts]
        return [math.nan if place is None else 1.0 - place for place in places]
    numbers = [number_in(text or "") for text in texts]
    return [math.nan if number is None else number for number in numbers]


def top_of(scores: Iterable[float]) -> float:
    """The greatest score of the usual scale on which some are."""
    most = max((score for score in scores if score == score), default=1.0)
    return next((top for top in (1, 5, 7, 10, 100) if most <= top), most)


def cut_of(found: Columns, names: Iterable[str]) -> float:
    """A round number in the middle of people's scores."""
    values = [number_in(text) for name in names for text in found[name].texts]
    numbers = [value for value in values if value is not None]
    low, high = min(numbers), max(numbers)
    if low >= 0 and high <= 1:
        return 0.5
    step = 10 ** math.floor(math.log10((high - low) / 2)) if high > low else 1
    return float(round((low + high) / 2 / step) * step)


def is_range(text: str) -> bool:
    """Whether a text of ``--map`` is a scale, such as ``0..100``."""
    ends = [end.strip() for end in text.split("..")]
    return len(ends) == 2 and all(map(NUMBER.fullmatch, ends)) and float(ends[0]) < float(ends[1])


def rescaled(rows: Rows, names: Iterable[str], scales: Mapping[str, str]) -> Rows:
    """The rows with columns of scores on another scale, in whole numbers unless it is 0 to 1.

    >>> rows = Rows({"j": ["50", "10/100", "n/a"]}, ["1", "2", "3"])
    >>> rescaled(rows, ["j"], {"0..100": "1..5"}).columns["j"]
    ['3', '1', 'n/a']
    """
    columns = dict(rows.columns)
    for source, target in scales.items():
        low, high, least, most = map(float, [*source.split(".."), *target.split("..")])
        step = (most - least) / (high - low)
        for name in names:
            cells = cells_in(rows, name)
            numbers = [number_in(cell or "") for cell in cells]
            values = [None if n is None else least + (n - low) * step for n in numbers]
            columns[name] = [
                cell
                if value is None or not least <= value <= most
                else f"{value:g}"
                if most - least <= 1
                else f"{math.floor(value + 0.5)}"
                for cell, value in zip(cells, values, strict=True)
            ]
    return Rows(columns, rows.places)


def flag_of(found: Columns, name: str) -> tuple[str, str | None] | None:
    """The score beside a flag (``verdict.passed`` and ``verdict.score``) and its threshold."""
    stem, _, last = name.rpartition(".")
    beside = f"{stem}." if stem else ""
    if header_key(last) not in ("passed", "pass", "success") or f"{beside}score" not in found:
        return None
    return f"{beside}score", f"{beside}threshold" if f"{beside}threshold" in found else None


def contradictions(found: Columns, name: str, blocks: Iterable[Rows]) -> str | None:
    """The sentence on flags that say otherwise than their scores; None without any."""
    if (beside := flag_of(found, name)) is None or beside[1] is None:
        return None
    count = size = 0
    for rows in blocks:
        names = [name, beside[0], beside[1]]
        columns = [cells_in(rows, each) for each in names]
        for flag, score, least in zip(*columns, strict=False):
            numbers = [number_in(word_of(each) or "") for each in (score, least)]
            side = place_of(fold(flag or ""), SAME[0])
            if None not in (side, *numbers):
                size += 1
                count += (side == 0) != (numbers[0] >= numbers[1])  # type: ignore[operator]
    if not count:
        return None
    return (
        f"{count} of {size} flags in {name!r} contradict {beside[0]!r} at its threshold; the flags "
        f"are the verdicts. To take the scores, add --verdict {beside[0]} and --map with the "
        "threshold"
    )
