"""The change of a figure between two measurements of the same items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes

Conclusion = Literal["better", "worse", "no worse", "cannot tell"]

ERROR_RATE = 0.03
"""The most often that an unchanged figure is called worse, over all figures of a comparison."""

ERROR = 0.0275
"""The nominal chance of calling an unchanged figure worse, over all figures of a comparison.

Counts of items are whole, so the chance varies around it; it stays at or below 3%.
"""

_CHANCE = 0.8
"""The chance with which a loss of the stated size is found."""

_FEWEST = 10

_GAINED = 0.02
"""The share of items that get better although the judge got worse."""


@dataclass(frozen=True)
class Change:
    """The mean difference per item, after minus before, and its interval.

    ``level`` is that of the two-sided interval. ``n_changed`` counts the items that differ.
    """

    before: float
    after: float
    difference: float
    ci_low: float
    ci_high: float
    level: float
    n_items: int
    n_changed: int
    smallest_loss: float | None
    """The loss that is called worse in 80% of comparisons like this one (`smallest_loss`)."""

    def conclusion(self, margin: float) -> Conclusion:
        """``better``, ``worse``, ``no worse`` (than by the margin) or ``cannot tell``."""
        if self.ci_high < 0:
            return "worse"
        if self.ci_low > 0:
            return "better"
        return "no worse" if self.ci_low > -margin else "cannot tell"


def item_change(
    before: Any,
    after: Any,
    clusters: Any = None,
    *,
    figures: int = 1,
    chances: Any = None,
) -> Change:
    """The change of a share between two measurements of the same items, shape (n,), n at least 1.

    The interval is that of Bonett and Price (2012) for paired proportions: one item more that
    gained and one that lost, then the normal interval; here for shares per item in [0, 1] and with
    the clusters' sums as the sample. With items that share clusters, the quantile is Student's. The
    error is divided among the `figures` that the comparison has. With the `chances` with which the
    items were picked, each counts 1 / chance.

    >>> change = item_change([1] * 50, [0] * 5 + [1] * 45)
    >>> round(change.difference, 2), round(change.ci_high, 4) < 0
    (-0.1, True)
    """
    from scipy.special import ndtri, stdtrit

    x, y = np.asarray(before, np.float64), np.asarray(after, np.float64)
    codes, k = cluster_codes(clusters, len(x))
    weights = np.ones(len(x)) if chances is None else 1 / np.asarray(chances, np.float64)
    weights *= len(x) / weights.sum()
    gaps = np.bincount(codes, weights * (y - x), minlength=k)
    sizes = np.bincount(codes, weights, minlength=k)
    mean_size = float(sizes.mean())
    total = float(sizes.sum()) + 2 * mean_size
    mean = float(gaps.sum()) / total
    residuals, degrees = gaps - mean * sizes, float(k - 1)
    if sizes.max() > sizes.min():
        # Large clusters draw the mean to themselves and hide how much they vary: the jackknife puts
        # that back, and the clusters count as fewer (Kish's effective number).
        residuals *= total / (total - sizes)
        degrees = float(sizes.sum() ** 2 / (sizes**2).sum()) - 1
    square = float((residuals**2).sum()) + 2 * mean_size**2 * (1 + mean**2)
    tail = ERROR / figures
    reach = ndtri(1 - tail) if sizes.max() == 1 else stdtrit(max(1.0, degrees), 1 - tail)
    half = float(reach) * math.sqrt(square) / total
    low, high = mean - half, mean + half
    if sizes.max() == 1 and np.isin(np.abs(gaps), (0, 1)).all() and mean <= 0:
        # A share that is lost is a binomial proportion at least: Wilson's bound of it.
        z = float(reach) ** 2
        half = math.sqrt(z**2 - 4 * z * total * mean - 4 * z * total * mean**2)
        low = min(low, (2 * total * mean - z - half) / (2 * (total + z)))
    elif sizes.max() > 1:
        # Between the mean cluster and the cluster of a mean item.
        mean_item_share = math.sqrt(float((sizes**2).mean())) / float(sizes.sum())
        low = min(low, _after_losses(gaps / sizes.sum(), mean_item_share, tail, float(reach)))
    return Change(
        before=float((weights * x).mean()),
        after=float((weights * y).mean()),
        difference=float((weights * (y - x)).mean()),
        ci_low=max(-1.0, low),
        ci_high=min(1.0, high),
        level=1 - 2 * tail,
        n_items=len(x),
        n_changed=int((np.abs(y - x) > 1e-9).sum()),
        smallest_loss=smallest_loss(int(degrees) + 1, square / total**2, float(reach)),
    )


def _after_losses(shares: Floats, item_share: float, tail: float, reach: float) -> float:
    """The lower end of a change to which few whole clusters contribute their losses.

    Their sum is one of Poisson events of unequal weight, for which Fay and Feuer's (1997) limit
    holds its level however few they are; one of the weight ``item_share`` may have been missed.
    Gains are taken off by square and add. ``shares`` are the clusters' parts of the change.
    """
    from scipy.special import gammaincinv

    losses, gains = np.maximum(-shares, 0.0), np.maximum(shares, 0.0)
    loss, largest = float(losses.sum()), max(item_share, float(losses.max()))
    worth = (loss + largest) ** 2 / (float((losses**2).sum()) + largest**2)
    above = (loss + largest) / worth * float(gammaincinv(worth, 1 - tail)) - loss
    spread = float((gains**2).sum())
    return float(shares.sum()) - math.sqrt(above**2 + reach**2 * spread)


def smallest_loss(n_items: int, variance: float = 0.0, reach: float | None = None) -> float | None:
    """The smallest loss, in steps of one point, that is called worse in 80% of comparisons.

    From the normal limit, for n independent items (or clusters), of which 2% get better and 2% get
    worse besides, or as many more as the ``variance`` of the mean difference shows that change
    anyway. ``reach`` is the quantile of the interval. None for fewer than 10 items, of which hardly
    any loss shows.

    >>> smallest_loss(100), smallest_loss(3)
    (0.1, None)
    """
    from scipy.special import ndtri

    reach = float((ndtri(1 - ERROR) if reach is None else reach) + ndtri(_CHANCE))
    base_variance = max(variance, 2 * _GAINED / max(n_items, 1))
    for points in range(1, 98 if n_items >= _FEWEST else 1):
        loss = points / 100
        if loss >= reach * math.sqrt(base_variance + (loss - loss**2) / n_items):
            return loss
    return None
