"""Racing: which of many candidates is best, for fewer trials than trying all on everything.

Paired successive halving: all candidates still in the race are tried on the same items, the worse
half leaves, and the rest goes on to more items (Karnin, Koren & Somekh 2013; Jamieson & Talwalkar
2016, "Non-stochastic best arm identification").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes

FIRST = 8
"""Items of the first round, at least."""

FINAL = 4
"""With at most so many candidates left, all go to the end."""

EVIDENCE = 0.5
"""Standard errors by which a candidate must be ahead of the first one to be chosen over it."""

_TIE = 1e-9

Ask = Callable[[Sequence[int], int, int], None]
Score = Callable[[Sequence[int], int], Floats]
Grow = Callable[[Sequence[int], int], Sequence[frozenset[int]]]


@dataclass(frozen=True)
class Race:
    """The outcome: the candidate ``chosen``, those ``left`` at the end (best first), the number of
    ``items`` that these were tried on, and how many candidates took part (``entered``)."""

    chosen: int
    left: tuple[int, ...]
    items: int
    entered: int


def race(
    columns: Sequence[frozenset[int]],
    prices: Sequence[float],
    n_items: int,
    budget: float,
    ask: Ask,
    score: Score,
    grow: Grow | None = None,
    rank: Score | None = None,
    clusters: Any = None,
) -> Race:
    """Find the best candidate within a budget.

    A candidate needs some columns (prompts per item), which candidates can share; a column is asked
    once on an item. The first candidate is what others must beat: it stays to the end, and another
    one is chosen only if it is ahead by `EVIDENCE` standard errors, over clusters of items. The
    rounds before keep the better half by its mean, which needs no error. Ties go to the cheaper.

    Args:
        columns: the columns of each candidate; those listed first enter if the budget is short.
        prices: of each column on an item, in the budget's unit.
        n_items: how many items there are, in random order.
        budget: what may be spent in all; never exceeded.
        ask: called with columns, and the first item and the end of the items to ask them on.
        score: from candidates and a number of items to their scores from 0 to 1, shape
            (candidates, items), for the items from the first on.
        grow: from the candidates still in the race and a number of items to the columns of new
            candidates that combine them; they are numbered on, and race from the next round on.
        rank: as ``score``, what candidates are ranked by; ``score`` decides whether the best one
            is ahead of the first. By default ``score`` does both.
        clusters: of the items, shape (n_items,); each is its own by default.

    >>> import numpy as np
    >>> truth = np.array([[0, 1] * 20, [1] * 40, [0] * 40])
    >>> found = race([frozenset({n}) for n in range(3)], [1, 1, 1], 40, 90,
    ...              lambda columns, start, stop: None, lambda c, n: truth[list(c), :n])
    >>> found.chosen, found.items
    (1, 30)
    """
    known, rank = list(columns), rank or score

    def cost(candidates: Sequence[int]) -> float:
        union = frozenset().union(*(known[n] for n in candidates))
        return sum(prices[column] for column in union)

    alive = list(range(len(known)))
    first = min(FIRST, n_items)
    while len(alive) > 1 and cost(alive) * first > budget / (2 if len(alive) > FINAL else 1):
        alive.pop()
    entered, tried, spent = len(alive), 0, 0.0
    while tried < n_items:
        rounds = max(1, math.ceil(math.log2(len(alive) / FINAL)) + 1 if len(alive) > FINAL else 1)
        each = max(cost(alive), _TIE)
        more = min(int((budget - spent) / rounds / each + _TIE), n_items - tried)
        if more == 0 and tried:
            break
        stop = tried + more
        union = sorted(frozenset().union(*(known[n] for n in alive)))
        ask(union, tried, stop)
        spent += each * more
        tried = stop
        if grow is not None:
            added = grow(alive, tried)
            fresh = [own for own in added if own <= set(union)]
            alive += range(len(known), len(known) + len(fresh))
            known += fresh
            entered += len(fresh)
        if rounds == 1 or tried == n_items:
            break
        ranked = _ranked(alive, rank(alive, tried), [cost([n]) for n in alive])
        kept = ranked[: max(FINAL, math.ceil(len(ranked) / 2))]
        alive = [0, *(n for n in kept if n != 0)]
    ranked = _ranked(alive, rank(alive, tried), [cost([n]) for n in alive])
    best = ranked[0]
    first_right, best_right = score([0, best], tried)
    gap = best_right - first_right
    codes, k = cluster_codes(None if clusters is None else clusters[:tried], tried)
    sums = np.bincount(codes, gap - gap.mean(), minlength=k)
    error = math.sqrt(k / (k - 1) * float(sums @ sums)) / tried if k > 1 else math.inf
    chosen = best if float(gap.mean()) > EVIDENCE * error + _TIE else 0
    return Race(chosen, tuple(ranked), tried, entered)


def _ranked(candidates: Sequence[int], scores: Floats, costs: Sequence[float]) -> list[int]:
    """The candidates by score, best first; ties by cost, then by number."""
    means = scores.mean(axis=1).round(9).tolist()
    order = sorted(range(len(candidates)), key=lambda n: (-means[n], costs[n], candidates[n]))
    return [candidates[n] for n in order]
