"""Intervals for figures in which wordings or repeats vary besides the items.

An interval over items alone describes these wordings on other items. `two_way_interval` describes
wordings like these, and `delta_jss` what rewording does beyond asking the same prompt again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import (
    Interval,
    difference_interval,
    outer_ends,
    residual_correlation,
    wilson_cluster,
)

FEWEST_WORDINGS = 3
"""With fewer wordings there is one pair of them, and nothing to see of how wordings vary."""


def two_way_interval(
    agree: Any,
    clusters: Any,
    template_a: Any,
    template_b: Any,
    confidence_level: float = 0.95,
) -> Interval:
    """Interval of JSS for wordings like these, on items like these.

    Items and wordings are both samples. The variance over clusters is that of
    `intervals.wilson_cluster`. The variance over wordings is the jackknife's (Arvesen 1969, for a
    mean over pairs): leave out each wording with all its pairs. Their sum counts the variance of
    single cells twice (Cameron, Gelbach & Miller 2011 subtract it once), which is kept as a margin
    for few wordings. The interval is Wilson's at the sample size that has this variance, with
    Student's t at Satterthwaite's degrees of freedom.

    Args:
        agree: shape (n,), true if the pair's two decisions are equal.
        template_a: the wording of each pair's first prompt, shape (n,), strings or integers.
        template_b: the wording of the second, shape (n,).

    Returns:
        The interval. Its ends are None with fewer than three wordings, a single cluster, or if
        every pair includes the same wording.

    >>> agree, items = [1, 1, 1, 1, 0, 0] * 20, np.repeat(np.arange(40), 3)
    >>> ends = two_way_interval(agree, items, ["x", "x", "y"] * 40, ["y", "z", "z"] * 40)
    >>> ends.low < wilson_cluster(agree, items).low
    True
    """
    from scipy.special import stdtrit

    hits, level = np.asarray(agree, bool), confidence_level
    fixed = wilson_cluster(hits, clusters, level)
    _, k = cluster_codes(clusters, len(hits))
    names = np.concatenate([np.asarray(template_a), np.asarray(template_b)])
    codes, n_wordings = cluster_codes(names, len(names))
    one, two = np.split(codes, 2)
    if fixed.low is None or fixed.high is None or fixed.effective_n is None:
        return Interval(None, None)
    over_wordings = _leave_one_out(hits, one, two, n_wordings)
    if n_wordings < FEWEST_WORDINGS or over_wordings is None:
        return Interval(None, None)
    share = float(hits.mean())
    spread = share * (1 - share)
    over_items = spread / fixed.effective_n
    if spread == 0 or over_wordings == 0:
        return Interval(fixed.low, fixed.high, fixed.effective_n, fixed.icc)
    total = over_items + over_wordings
    df = total**2 / (over_wordings**2 / (n_wordings - 1) + over_items**2 / (k - 1))
    n_eff = spread / total
    low, high = outer_ends(share, n_eff, float(stdtrit(df, (1 + level) / 2)), level)
    # With few clusters, more degrees of freedom must not make this the narrower interval.
    return Interval(min(low, fixed.low), max(high, fixed.high), n_eff, fixed.icc)


def _leave_one_out(hits: Bools, one: Codes, two: Codes, n: int) -> float | None:
    """Jackknife variance of the share of hits over n wordings; None if one is in all pairs."""
    # A pair counts once for each of its wordings, and once if they are the same.
    apart = one != two
    wording, agree = np.append(one, two[apart]), np.append(hits, hits[apart])
    left = len(hits) - np.bincount(wording, minlength=n)
    if (left == 0).any():
        return None
    shares = (hits.sum() - np.bincount(wording, agree, minlength=n)) / left
    return float((n - 1) / n * ((shares - shares.mean()) ** 2).sum())


class RepeatDifference(NamedTuple):
    """How often the same prompt gets the same verdict again, and JSS minus that.

    All are None without repeats, the ends also with a single cluster.
    """

    jss_repeat: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None


def delta_jss(
    agree: Any,
    clusters: Any,
    repeat_agree: Any,
    repeat_clusters: Any,
) -> RepeatDifference:
    """JSS minus JSS_repeat: what rewording does beyond asking the same prompt again.

    Negative: the judge is less steady under rewording. Pairs and repeats of one cluster are
    correlated, so the interval is Newcombe's for paired shares (1998, method 10) on the clustered
    Wilson ends of both, with the correlation of the clusters' linearised residuals.

    Args:
        agree: shape (n,), true if the two decisions of a pair are equal.
        repeat_agree: shape (r,), true if the first and a later decision on one prompt are equal.
        repeat_clusters: one id per row, of the same kind as `clusters`; None if those are None.

    Returns:
        JSS_repeat, the difference and its interval.

    >>> result = delta_jss([1, 0, 1, 1], [1, 1, 2, 2], [1, 1, 1], [1, 2, 3])
    >>> result.jss_repeat, result.delta
    (1.0, -0.25)
    """
    if not len(agree) or not len(repeat_agree):
        return RepeatDifference(None, None, None, None)
    hits, again = np.asarray(agree, bool), np.asarray(repeat_agree, bool)
    shares = float(hits.mean()), float(again.mean())
    delta = shares[0] - shares[1]
    one: Codes
    two: Codes
    if clusters is None:
        one, two = np.arange(len(hits)), np.arange(len(hits), len(hits) + len(again))
    else:
        joined, _ = cluster_codes([*clusters, *repeat_clusters], len(hits) + len(again))
        one, two = joined[: len(hits)], joined[len(hits) :]
    k = int(max(one.max(), two.max())) + 1
    residuals = [
        np.bincount(codes, rows - share, minlength=k)
        for rows, codes, share in zip((hits, again), (one, two), shares, strict=True)
    ]
    ends = difference_interval(
        (shares[1], wilson_cluster(again, two)),
        (shares[0], wilson_cluster(hits, one)),
        residual_correlation(*residuals),
    )
    return RepeatDifference(shares[1], delta, ends.low, ends.high)


def missed_wording(n_wordings: int, confidence: float = 0.95) -> float:
    """How rare a kind of wording must be for a run to have missed it: 1 - (1 - confidence)^(1/k).

    If a larger share of all wordings were of that kind, k wordings would include one of them with
    at least the given confidence.

    Args:
        n_wordings: number of wordings in the run, at least 1.
        confidence: within (0, 1).

    Returns:
        The share of all wordings.

    >>> round(missed_wording(5), 2), round(missed_wording(26), 2)
    (0.45, 0.11)
    """
    return float(1 - (1 - confidence) ** (1 / n_wordings))
