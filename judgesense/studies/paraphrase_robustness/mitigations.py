"""Strategies that ask more than once: panels, self-consistency, a fuser; their gains and costs.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5. The last axis of an array of scores
holds the votes; NaN is a missing vote.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import Interval, mean_t_cluster
from judgesense.statistics.ranks import chosen
from judgesense.statistics.selection import crossfit_weights
from judgesense.studies.paraphrase_robustness.grid import Cost, Grid, Scores
from judgesense.text import join

METHODS = ("majority", "mean", "median")
SINGLE, BEST, SELF, FUSER = "single judge", "best judge", "self-consistency", "fuser"
CONSTANT = "constant score"
"""The strategy that asks no judge: always the most frequent human level."""

_SLACK = 1e-9


def aggregate(votes: Floats, method: str) -> Floats:
    """Combine the votes of the last axis into one score; NaN without any vote.

    Args:
        votes: shape (..., votes), NaN where a vote is missing.
        method: ``majority`` (the most frequent score; of several, the one nearest to the median,
            then the lower), ``mean`` or ``median``; the latter two need not be levels.

    Raises:
        ValueError: an unknown method.

    >>> aggregate(np.array([[1.0, 1.0, 3.0], [2.0, np.nan, 3.0]]), "majority").tolist()
    [1.0, 2.0]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no vote at all: NaN on purpose
        median: Floats = np.nanmedian(votes, axis=-1)
        if method == "median":
            return median
        if method == "mean":
            mean: Floats = np.nanmean(votes, axis=-1)
            return mean
    if method != "majority":
        raise ValueError(f"method is {method!r}: pass one of {', '.join(METHODS)}")
    levels = np.unique(votes[~np.isnan(votes)])
    if not len(levels):
        return median
    counts = (votes[..., None] == levels).sum(axis=-2)
    near = np.abs(levels - median[..., None])
    span = 2 * (np.ptp(levels) + 1)
    # Counts differ by at least 1, so that nearness only decides between equal counts.
    best = np.argmax(counts - np.nan_to_num(near) / span, axis=-1)
    result: Floats = np.where(np.isnan(median), np.nan, levels[best])
    return result


def exact(scores: Floats, gold: Floats) -> Floats:
    """1 where a score, rounded to a level (halves up), is the gold level, else 0.

    ``gold`` has the shape of the first axes of ``scores``.
    """
    rounded = np.floor(scores + 0.5)
    right: Floats = (rounded == _beside(gold, scores)).astype(np.float64)
    return right


def near(scores: Floats, human: Floats, tolerance: float) -> Floats:
    """1 where a score is at most ``tolerance`` from the raters' mean, else 0."""
    close: Floats = (np.abs(scores - _beside(human, scores)) <= tolerance + _SLACK).astype(
        np.float64
    )
    return close


def _beside(values: Floats, scores: Floats) -> Floats:
    return values.reshape(values.shape + (1,) * (scores.ndim - values.ndim))


@dataclass(frozen=True)
class Outcome:
    """A strategy on an attribute: how often it is right on each item, and its cost per item.

    ``items`` (n,) are those it decided. ``exact`` and ``near`` (n,) are shares over the
    paraphrases and judges that a strategy is averaged over; ``gap`` is its win-rate gap, None
    if it uses all paraphrases at once. ``calls``, ``tokens`` and ``dollars`` are per item; dollars
    None without a price. ``judge`` names the best judge on all items; its accuracy is that of
    choosing it on other items, with ten clusters or more (`judgesense.statistics.crossfit`).
    """

    strategy: str
    attribute: str
    kind: str
    exact: Floats
    near: Floats
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    gap: float | None
    calls: float
    tokens: float
    dollars: float | None
    judge: str = ""

    @property
    def accuracy(self) -> float:
        """Exact accuracy."""
        return float(self.exact.mean())

    def interval(self) -> Interval:
        """The 95% interval of exact accuracy over items, within 0 and 1."""
        return mean_interval(self.exact, self.clusters)

    def on(self, items: Collection[str]) -> Outcome:
        """The outcome on some of its items; gap and costs stay those of all items."""
        wanted = set(items)
        rows = [row for row, item in enumerate(self.items) if item in wanted]
        return replace(
            self,
            exact=self.exact[rows],
            near=self.near[rows],
            items=tuple(self.items[row] for row in rows),
            clusters=tuple(self.clusters[row] for row in rows),
        )

    def gain(self, over: Outcome) -> tuple[float, Interval]:
        """The difference of exact accuracies on the items of both, with its 95% interval."""
        own = self.on(over.items)
        difference = own.exact - over.on(self.items).exact
        return float(difference.mean()), mean_interval(difference, own.clusters, -1.0)

    def near_gain(self, over: Outcome) -> float:
        """The difference of the shares within the tolerance on the items of both."""
        return float((self.on(over.items).near - over.on(self.items).near).mean())


def mean_interval(values: Floats, clusters: Sequence[str], low: float = 0.0) -> Interval:
    """The 95% t interval of a mean over clusters, cut off at ``low`` and 1."""
    ends = mean_t_cluster(values, list(clusters))
    if ends.low is None or ends.high is None:
        return ends
    return Interval(max(low, ends.low), min(1.0, ends.high))


def crossfit_accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """The accuracy of choosing the most accurate of several strategies on other items than it is
    scored on; None without a strategy or with fewer than ten clusters."""
    if not outcomes:
        return None
    shared = set.intersection(*(set(one.items) for one in outcomes))
    same = [one.on(shared) for one in outcomes]
    # Every strategy has its items in the grid's order.
    scores = np.stack([one.exact for one in same], axis=1)
    weights = crossfit_weights(
        same[0].clusters, len(same), lambda rows: int(chosen(scores[rows].mean(axis=0)))
    )
    return None if weights is None else float((weights * scores).sum(axis=1).mean())


def outcomes(grid: Grid, tolerance: float) -> list[Outcome]:
    """Every strategy that needs no further judging, on every attribute.

    All strategies use the same items: those on which every judge decided every paraphrase. An
    attribute without such an item has no outcome. Panels need two judges.
    """
    found = []
    for attribute in grid.plan.attributes:
        cells = aligned(grid.of(attribute))
        if cells and cells[0].items:
            found += _of_attribute(cells, tolerance)
    return found


def lost(grid: Grid) -> list[str]:
    """Sentences on the texts that no strategy is measured on, and the judges that caused it."""
    attributes: dict[tuple[int, int, str], list[str]] = {}
    for name in grid.plan.attributes:
        cells = grid.of(name)
        if not any(cell.left_out for cell in cells):
            continue
        asked, kept = len(cells[0].items) + cells[0].left_out, len(aligned(cells)[0].items)
        by_judge = ", ".join(f"{cell.judge} {cell.left_out}" for cell in cells if cell.left_out)
        attributes.setdefault((asked, kept, by_judge), []).append(name)
    return [
        f"{join(names)}: "
        + (
            f"strategies are compared on {kept} of {asked} texts, those that every judge decided "
            f"under every paraphrase (undecided: {by_judge})"
            if kept
            else f"no panel, self-consistency or fuser is measured, because no text was "
            f"decided by every judge under every paraphrase (undecided of {asked}: {by_judge}); "
            "leave out such a judge, or score by options"
        )
        for (asked, kept, by_judge), names in attributes.items()
    ]


def aligned(cells: Sequence[Scores]) -> list[Scores]:
    """The configurations reduced to the items that all of them have."""
    kept = [item for item in cells[0].items if all(item in cell.items for cell in cells)]
    return [_take(cell, [cell.items.index(item) for item in kept]) for cell in cells]


def _take(cell: Scores, rows: list[int]) -> Scores:
    names = ("scores", "human", "gold", "base")
    return replace(
        cell,
        items=tuple(cell.items[row] for row in rows),
        clusters=tuple(cell.clusters[row] for row in rows),
        shares=None if cell.shares is None else cell.shares[rows],
        **{name: getattr(cell, name)[rows] for name in names},
    )


def _of_attribute(cells: Sequence[Scores], tolerance: float) -> list[Outcome]:
    first = cells[0]
    # Axes: item, paraphrase, judge.
    votes = np.stack([cell.scores for cell in cells], axis=2)
    k, m = votes.shape[1:]
    every = [(cell.tokens, cell.dollars) for cell in cells]

    def outcome(strategy: str, scores: Floats, calls: float, cost: Cost) -> Outcome:
        """From scores of shape (n,), (n, k) or (n, k, judges), averaged over all but items."""
        rest = tuple(range(1, scores.ndim))
        right, close = exact(scores, first.gold), near(scores, first.human, tolerance)
        gap = np.ptp(right.mean(axis=0), axis=0).mean() if rest else None
        return Outcome(
            strategy, first.attribute.name, first.attribute.verifiability,
            right.mean(axis=rest), close.mean(axis=rest), first.items, first.clusters,
            None if gap is None else float(gap), calls, *cost,
        )  # fmt: skip

    levels, counts = np.unique(first.gold, return_counts=True)
    frequent = np.full(len(first.gold), levels[np.argmax(counts)])
    found = [
        outcome(CONSTANT, frequent, 0, (0.0, 0.0)),
        outcome(SINGLE, votes, 1, times(add_costs(every), 1 / m)),
    ]
    if m > 1:
        found.append(_best_judge(cells, votes, tolerance, outcome))
        found += [
            outcome(f"panel, {how}", aggregate(votes, how), m, add_costs(every)) for how in METHODS
        ]
    agreed = np.stack([aggregate(votes[:, :, j], "majority") for j in range(m)], axis=1)
    found.append(replace(outcome(SELF, agreed, k, times(add_costs(every), k / m)), gap=None))
    return found


def _best_judge(
    cells: Sequence[Scores],
    votes: Floats,
    tolerance: float,
    outcome: Callable[[str, Floats, float, Cost], Outcome],
) -> Outcome:
    """The most accurate judge: each item scored by the judge that the other items choose."""
    first = cells[0]
    right = exact(votes, first.gold).mean(axis=1)
    best = int(chosen(right.mean(axis=0)))
    own = outcome(BEST, votes[:, :, best], 1, (cells[best].tokens, cells[best].dollars))
    own = replace(own, judge=cells[best].judge)
    weights = crossfit_weights(
        first.clusters, len(cells), lambda rows: int(chosen(right[rows].mean(axis=0)))
    )
    if weights is None:
        return own
    close = near(votes, first.human, tolerance).mean(axis=1)
    return replace(own, exact=(weights * right).sum(axis=1), near=(weights * close).sum(axis=1))


def add_costs(costs: Sequence[Cost]) -> Cost:
    """The sum of costs; dollars None if one of them is unknown."""
    dollars = [each for _, each in costs if each is not None]
    return sum(tokens for tokens, _ in costs), sum(dollars) if len(dollars) == len(costs) else None


def times(cost: Cost, factor: float) -> Cost:
    """A cost, multiplied."""
    return cost[0] * factor, None if cost[1] is None else cost[1] * factor
