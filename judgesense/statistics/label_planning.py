"""How many more labels decide, and which units to label next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.labels import check_level, check_seed
from judgesense.statistics.prediction_powered import Powered
from judgesense.statistics.settling import PROBABILITY, Needed

_DRAWS = 400
_RANGE = (0.1, 0.9)


def labels_needed(
    found: Powered,
    *,
    threshold: float = 0.0,
    confidence_level: float = 0.95,
    probability: float = PROBABILITY,
    seed: int = 0,
) -> Needed:
    """How many labels in all decide on which side of a threshold the truth lies.

    More labels shrink ``found.label_error`` with the root of their number and leave the rest of the
    error, which only more units shrink. The range follows from the errors of the estimate and of
    its error, as in `settling.items_for_estimate`.

    Args:
        found: the estimate so far.
        threshold: what the interval must exclude.
        confidence_level: of the two-sided interval.
        probability: with which that many labels decide.
        seed: of the draws behind the range.

    Returns:
        Numbers of labels in all, those so far included; None where not even labels on every unit
        suffice.

    Raises:
        ValueError: a level or probability outside (0, 1), or a seed that is no integer.

    >>> nan = float("nan")
    >>> from judgesense.statistics.prediction_powered import powered_mean
    >>> some = powered_mean([1, 0, 1, 1] * 5 + [nan] * 400, [1, 0, 1, 0] * 105)
    >>> labels_needed(some, threshold=0.9)
    Needed(clusters=51, low=18, high=None)
    """
    check_level(confidence_level)
    check_level(probability)
    n = found.n_labels
    if found.error is None or found.label_error is None or n < 2:
        return Needed(None, None, None)

    def needed(gap: Floats, own: Floats, rest: float) -> Floats:
        """Labels at which (t + z) * error is the gap; infinite beyond the units."""
        more = np.full(len(gap), float(n))
        for _ in range(20):
            room = gap / _reach(more, confidence_level, probability) ** 2 - rest
            wanted = np.maximum(2.0, n * own / np.where(room > 0, room, np.inf))
            more = np.where(room > 0, wanted, np.inf)
            more = np.minimum(more, 1e9)
        return np.where(more <= found.n_units, more, np.inf)

    gap = found.estimate - threshold
    own, rest = found.label_error**2, max(0.0, found.error**2 - found.label_error**2)
    best = float(needed(np.array([gap**2]), np.array([own]), rest)[0])
    rng = np.random.default_rng(check_seed(seed))
    gaps = gap + found.error * rng.standard_normal(_DRAWS)
    df = max(1, n - 1)
    drawn = needed(gaps**2, own * df / rng.chisquare(df, _DRAWS), rest)
    low, high = np.quantile(drawn, _RANGE, method="nearest")
    return Needed(*(_whole(float(v)) for v in (best, min(low, best), max(high, best))))


def _whole(value: float) -> int | None:
    return None if math.isinf(value) else math.ceil(value)


def _reach(n: Floats, level: float, probability: float) -> Floats:
    from scipy.special import ndtri, stdtrit

    reach: Floats = stdtrit(np.maximum(1.0, n - 1), (1 + level) / 2) + ndtri(probability)
    return reach


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
