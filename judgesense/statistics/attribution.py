"""How much of a change between two runs is the judge's, and how much the judged system's.

An item is an *anchor* if the judge of the later run saw the earlier output: the output did not
change, or it was judged again. On anchors only the judge can have moved the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes, numbers

FEWEST_ANCHORS = 15
"""Clusters with an anchor that a split needs: with fewer, Student's quantile is a guess."""


@dataclass(frozen=True)
class Part:
    """A part of a change of a mean, and its interval, in units of the values."""

    estimate: float
    ci_low: float
    ci_high: float

    @property
    def is_zero_inside(self) -> bool:
        """Whether the interval has 0 inside: the part may be none."""
        return self.ci_low <= 0 <= self.ci_high


@dataclass(frozen=True)
class Attribution:
    """The change of the mean, and its two parts: ``judge`` and ``system`` add up to ``change``.

    ``judge`` is what the later judge would have changed on the earlier outputs; ``system`` is the
    rest, the change of the outputs in the later judge's eyes.
    """

    change: Part
    judge: Part
    system: Part
    n_items: int
    n_anchors: int


def attribute(
    old: Any,
    new: Any,
    again: Any,
    clusters: Any = None,
    confidence_level: float = 0.95,
    step: float = 1.0,
) -> Attribution | None:
    """Split the change of a mean into the judge's and the system's part.

    The judge's part is its mean change on anchors. This holds if the judge moved on the other items
    as it did on anchors; `anchors_differ` says whether these had other values from the start. An
    unchanged judge has a part of 0 whatever the anchors and however noisy its verdicts: weighting
    anchors by their old values would turn regression to the mean into a change of the judge. The
    intervals are those of the jackknife over clusters, with Student's quantile for the number of
    clusters that a part rests on.

    Args:
        old: the value of each item in the earlier run, shape (n,).
        new: its value in the later run, shape (n,).
        again: the later judge's value of the *earlier* output, shape (n,); NaN where the item is
            no anchor. Equal to ``new`` where the output did not change.
        clusters: an id for each item, shape (n,); None for items of their own.
        confidence_level: of the intervals.
        step: the least that a value can change.

    Returns:
        The parts, or None with fewer than `FEWEST_ANCHORS` clusters that have an anchor.

    Raises:
        ValueError: values that are not finite numbers, or of unequal lengths.

    >>> old = [0, 1] * 20
    >>> split = attribute(old, [1] * 40, [1, 1] * 10 + [float("nan")] * 20)
    >>> split.change.estimate, split.judge.estimate, split.system.estimate
    (0.5, 0.5, 0.0)
    """
    from scipy.special import stdtrit

    before, after = numbers(old, "old"), numbers(new, "new")
    anchored = np.asarray(again, dtype=np.float64)
    if not len(before) == len(after) == len(anchored):
        raise ValueError(
            f"old has {len(before)} values, new {len(after)} and again {len(anchored)}: pass one "
            "of each for every item"
        )
    codes, k = cluster_codes(clusters, len(before))
    is_anchor = ~np.isnan(anchored)
    n_clusters = len(np.unique(codes[is_anchor]))
    if n_clusters < FEWEST_ANCHORS:
        return None
    moved = np.where(is_anchor, anchored - before, 0.0)
    sums = np.stack(
        [
            np.bincount(codes, values, minlength=k)
            for values in (np.ones(len(before)), is_anchor, moved, after - before)
        ]
    )
    total = sums.sum(axis=1)
    estimates = _parts(total)
    # Every cluster left out once: its sums are taken from the totals.
    without = _parts(total[:, None] - sums)
    spread = np.sqrt((k - 1) / k * ((without - without.mean(axis=1, keepdims=True)) ** 2).sum(1))
    # The system's part rests on the items that are no anchors, too.
    n_other_clusters = len(np.unique(codes[~is_anchor]))
    degrees = (k - 1, n_clusters - 1, max(1, min(n_other_clusters or k, n_clusters) - 1))
    # Few changes show little of how many there may be: two more, one in each direction, are as
    # many as make the interval agree with a sign test. A change that nobody saw is taken to be as
    # large as the difference of two items.
    one_more = max(step**2, float(before.var() + after.var()))
    unseen = 2 * np.array([_mean_square(sums[3], one_more), _mean_square(sums[2], one_more)])
    unseen /= np.array([total[0], total[1]]) ** 2
    spread = np.sqrt(spread**2 + [*unseen, unseen.sum() if n_other_clusters else 0.0])
    reaches = stdtrit(degrees, (1 + confidence_level) / 2) * spread
    change, judge, system = (
        Part(float(value), float(value - reach), float(value + reach))
        for value, reach in zip(estimates, reaches, strict=True)
    )
    n_anchors = int(is_anchor.sum())
    return Attribution(change, judge, system, len(before), n_anchors)


def _parts(sums: Floats) -> Floats:
    """Change, judge's part and system's part, shape (3, ...), from sums of shape (4, ...)."""
    items, anchors, moved, changed = sums
    change, judge = changed / items, moved / anchors
    return np.stack([change, judge, change - judge])


def _mean_square(sums: Floats, one_more: float) -> float:
    """The mean square of the clusters' sums that are not 0, and of one more."""
    changed = sums[sums != 0]
    return float(((changed**2).sum() + one_more) / (len(changed) + 1))


def anchors_differ(old: Any, is_anchor: Any, clusters: Any = None) -> float | None:
    """The p-value of Welch's t test over clusters: had anchors other values before?

    ``old`` are the values and ``is_anchor`` the mask of anchors, shape (n,) each. None where one
    side has fewer than two clusters.

    >>> anchors_differ([0, 1] * 10, [True] * 10 + [False] * 10)
    1.0
    """
    from scipy.special import stdtr

    values, mask = numbers(old, "old"), np.asarray(is_anchor, dtype=np.bool_)
    codes, _ = cluster_codes(clusters, len(values))
    means = []
    for side in (mask, ~mask):
        sizes = np.bincount(codes[side])
        sums = np.bincount(codes[side], values[side])
        means.append(sums[sizes > 0] / sizes[sizes > 0])
    counts = np.array(list(map(len, means)))
    if counts.min() < 2:
        return None
    squares = np.array([side.var(ddof=1) for side in means]) / counts
    gap = abs(float(means[0].mean() - means[1].mean()))
    if not squares.any() or gap == 0:
        return 1.0 if gap == 0 else 0.0
    degrees = squares.sum() ** 2 / (squares**2 / (counts - 1)).sum()
    return float(2 * stdtr(degrees, -gap / np.sqrt(squares.sum())))
