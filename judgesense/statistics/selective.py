"""Selective judging: which verdicts to give, so that the share of wrong ones stays bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Bools
from judgesense.statistics.intervals import Interval, booleans, wilson_cluster
from judgesense.statistics.tables import numbers

_STARTS = 2
"""Sequences of thresholds that are tested, each with its share of the error."""

_STEPS = 40
"""Thresholds per sequence."""


@dataclass(frozen=True)
class AskThreshold:
    """From which margin on a verdict is given; below it, a person is asked.

    ``threshold`` is None if no margin holds the error: then ``needed`` is the least number of
    independent verdicts that could. ``answered`` is the share of verdicts given, ``error`` the
    share of those that is wrong here, ``error_bound`` its upper confidence bound, ``n`` the
    verdicts looked at.
    """

    threshold: float | None
    answered: float
    error: float | None
    error_bound: float | None
    n: int
    needed: int | None = None


def error_bound(wrong: int, n: float, confidence: float = 0.95) -> float:
    """The one-sided upper bound for a share of errors (Clopper & Pearson 1934).

    ``n`` may be an effective number of verdicts; ``wrong`` is then scaled the same way.

    >>> round(error_bound(0, 59), 3)
    0.05
    """
    return _upper(float(wrong), float(n), confidence)


def _upper(wrong: float, n: float, confidence: float) -> float:
    from scipy.special import betaincinv

    return 1.0 if wrong >= n else float(betaincinv(wrong + 1, n - wrong, confidence))


def ask_threshold(
    margin: npt.ArrayLike,
    wrong: npt.ArrayLike,
    clusters: Any = None,
    *,
    max_error: float = 0.05,
    confidence: float = 0.95,
) -> AskThreshold:
    """The lowest margin whose verdicts are wrong in at most ``max_error``, with this confidence.

    Thresholds are tested in a fixed order, from the most cautious one that could pass to giving
    every verdict, until one is not significant; two such sequences, the second starting halfway,
    share the error. Each test compares the exact binomial bound of the error with ``max_error``.
    Clusters count as their effective number of verdicts (:func:`wilson_cluster`).

    Source: Angelopoulos et al., "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
    Control", arXiv:2110.01052, sections 2 and 4 (fixed-sequence testing with several starts).

    Args:
        margin: shape (n,), the larger the surer; of verdicts that were not used to fit the margin.
        wrong: shape (n,), true where the verdict is wrong.
        clusters: one id per verdict, or None.
        max_error: the share of wrong verdicts to stay below, within (0, 1).
        confidence: within (0, 1).

    Raises:
        ValueError: arrays of different lengths, or a share outside (0, 1).

    >>> found = ask_threshold([3.0] * 150 + [0.1] * 50, [False] * 150 + [True, False] * 25)
    >>> found.threshold, found.answered, round(found.error_bound, 3)
    (3.0, 0.75, 0.024)
    """
    for name, value in (("max_error", max_error), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}: pass a share between 0 and 1")
    sure, bad = numbers(margin, "margin"), booleans(wrong, "wrong")
    if len(sure) != len(bad):
        raise ValueError(f"margin has {len(sure)} rows and wrong {len(bad)}: pass one of each")
    n = len(sure)
    shrink = _effective_share(bad, clusters)
    level = 1 - (1 - confidence) / _STARTS
    needed = int(np.ceil(np.log(1 - level) / np.log(1 - max_error)))
    least = int(np.ceil(needed / shrink))
    order = np.argsort(-sure, kind="stable")
    ranked, errors = sure[order], np.cumsum(bad[order])
    best: tuple[int, float] | None = None
    if least <= n:
        for start in (least, (least + n) // 2):
            for count in np.unique(np.linspace(start, n, _STEPS).round().astype(int)).tolist():
                # Equal margins are answered together.
                last = int(np.searchsorted(-ranked, -ranked[count - 1], side="right"))
                bound = _upper(errors[last - 1] * shrink, last * shrink, level)
                if bound > max_error:
                    break
                if best is None or last > best[0]:
                    best = (last, bound)
    if best is None:
        return AskThreshold(None, 0.0, None, None, n, least if least > n else None)
    count, bound = best
    # Everything was good enough: no margin is too small.
    lowest = 0.0 if count == n else float(ranked[count - 1])
    return AskThreshold(lowest, count / n, float(errors[count - 1]) / count, bound, n)


def _effective_share(wrong: Bools, clusters: Any) -> float:
    """Independent verdicts per verdict, at most 1."""
    if clusters is None:
        return 1.0
    found: Interval = wilson_cluster(wrong, clusters)
    if found.effective_n is None:
        return 1.0 / len(wrong)
    return min(1.0, found.effective_n / len(wrong))
