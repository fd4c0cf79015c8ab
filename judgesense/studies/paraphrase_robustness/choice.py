"""The accuracy of choosing a strategy: chosen on some texts, scored on the others.

A strategy that was chosen on the texts it is scored on is flattered. These figures are of the
procedure instead (`judgesense.statistics.crossfit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from judgesense.statistics.crossfit import crossfit_weights
from judgesense.statistics.intervals import Interval
from judgesense.statistics.ranks import chosen
from judgesense.studies.paraphrase_robustness.mitigations import (
    BEST,
    CONSTANT,
    SINGLE,
    Outcome,
    mean_interval,
)

Pick = Callable[[Sequence[Outcome]], int]


def usable(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The strategies that you can use: not the constant score, and the mean over judges only where
    there is a single one."""
    names = {one.strategy for one in outcomes}
    left_out = {CONSTANT, SINGLE} if BEST in names else {CONSTANT}
    return [one for one in outcomes if one.strategy not in left_out]


def by_cost(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The cheapest first: by US dollars if those of all are known, else by tokens."""
    priced = all(one.dollars is not None for one in outcomes)
    return sorted(outcomes, key=lambda one: (one.dollars or 0.0 if priced else 0.0, one.tokens))


def most_accurate(outcomes: Sequence[Outcome]) -> int:
    """The index of the most accurate of strategies on the same items; the first of equals."""
    return int(chosen([one.accuracy for one in outcomes]))


def crossfit_choice(
    outcomes: Sequence[Outcome], pick: Pick = most_accurate
) -> tuple[float, Interval] | None:
    """The accuracy of picking one of several strategies, and its 95% interval over clusters.

    ``pick`` sees the strategies on some of the items that all of them decided, and returns an
    index. None with fewer than ten clusters.
    """
    shared = set.intersection(*(set(one.items) for one in outcomes))
    same = [one.on(shared) for one in outcomes]
    # Every strategy has its items in the grid's order.
    items, clusters = same[0].items, same[0].clusters
    scores = np.stack([one.exact for one in same], axis=1)

    def choose(rows: np.ndarray) -> int:
        if pick is most_accurate:
            return int(chosen(scores[rows].mean(axis=0)))
        kept = [items[row] for row in rows]
        return pick([one.on(kept) for one in same])

    weights = crossfit_weights(clusters, len(same), choose)
    if weights is None:
        return None
    right = (weights * scores).sum(axis=1)
    return float(right.mean()), mean_interval(right, clusters)
