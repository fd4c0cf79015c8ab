"""Which units to label next."""

from __future__ import annotations

from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats


def neyman(sizes: Any, spreads: Any, taken: Any, more: int, *, least: int = 2) -> Codes:
    """How many more units to label in each stratum for the smallest variance of the mean.

    Neyman's (1934) allocation: a stratum's labels are proportional to size times spread. Labels
    that are already there count; none is taken back, and no stratum gets more than it has.

    Args:
        sizes: units per stratum, shape (H,).
        spreads: standard deviation of the labels around the predictions, shape (H,).
        taken: labels per stratum so far, shape (H,).
        more: labels to add in all.
        least: labels that each stratum should have in the end, so that its spread shows.

    Returns:
        Labels to add per stratum, shape (H,), whole numbers that add up to ``more``, or to all
        units left if they are fewer.

    Raises:
        ValueError: shapes that differ, or a negative number of labels.

    >>> neyman([100, 100], [3.0, 1.0], [10, 10], 40).tolist()
    [35, 5]
    """
    size, spread, have = (np.asarray(x, dtype=np.float64) for x in (sizes, spreads, taken))
    if not len(size) == len(spread) == len(have) or more < 0:
        raise ValueError("pass one size, spread and number of labels per stratum, and more >= 0")
    left = (size - have).astype(np.int64)
    added = np.zeros(len(size), dtype=np.int64)
    weight = size * np.maximum(spread, 1e-12)
    for _ in range(min(more, int(left.sum()))):
        total = have + added
        open_ = added < left
        short = open_ & (total < least)
        # The variance falls most where (size * spread)^2 / (n (n + 1)) is largest.
        gain = weight**2 / np.maximum(total * (total + 1), 0.5)
        gain = np.where(short, np.inf, np.where(open_, gain, -np.inf))
        added[int(np.argmax(gain))] += 1
    return added


def spreads_of(
    labels: Floats, predictions: Floats, strata: Codes, pooled_weight: float = 8.0
) -> Floats:
    """Standard deviation of label minus prediction in each stratum, shape (H,).

    Each is drawn towards that of all strata, as if that many labels came from all: with few labels
    in a stratum a spread of 0 is luck.

    Args:
        labels: shape (n,), NaN where there is none.
        predictions: shape (n,).
        strata: codes 0..H-1, shape (n,).
        pooled_weight: labels of all strata that each gets.

    >>> y = np.array([1.0, 0.0, 1.0, 0.0])
    >>> spreads_of(y, np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 0, 1, 1])).round(2).tolist()
    [0.77, 0.9]
    """
    given = ~np.isnan(labels)
    n_strata = int(strata.max()) + 1
    gaps = (labels - predictions)[given]
    own = strata[given]
    if len(gaps) < 2:
        return np.ones(n_strata)
    count = np.bincount(own, minlength=n_strata)
    centre = np.bincount(own, gaps, minlength=n_strata) / np.maximum(count, 1)
    squares = np.bincount(own, (gaps - centre[own]) ** 2, minlength=n_strata)
    overall = float(gaps.var(ddof=1))
    return np.asarray(
        np.sqrt((squares + pooled_weight * overall) / (np.maximum(count - 1, 0) + pooled_weight))
    )
