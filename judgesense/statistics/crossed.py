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

MOST_TOLD = 3.0
"""Degrees of freedom that a jackknife over wordings is worth at most, however many there are.

Now and then a wording is far off (heavy tails), and a sample without one shows too little variance.
With more, coverage falls to 0.91 at 26 wordings (`benchmarks/conclusions`, section cards).
"""


def two_way_interval(
    agree: Any,
    clusters: Any,
    template_a: Any,
    template_b: Any,
    confidence_level: float = 0.95,
    *,
    prior: tuple[float, float],
) -> Interval:
    """Interval of JSS for any wordings like these, on items like these.

    Items and wordings are both samples. The variance over items is that of
    `intervals.wilson_cluster`. A pair's agreement is taken as the sum of its wordings' own parts:
    the variance over wordings is that of the parts times the sum of squares of the wordings' shares
    of the pairs (4 / W for all pairs of W wordings). The jackknife over wordings (Arvesen 1969)
    estimates it, less what it owes to the sampling of items, and the prior counts beside it, as in
    a scaled inverse chi-square posterior; two wordings have the prior alone, and the jackknife
    counts for at most `MOST_TOLD` degrees of freedom. Both variances enter
    with Student's t at their own degrees of freedom (square and add, Zou & Donner 2008), in
    Wilson's form. The interval includes that for these wordings alone.

    Args:
        agree: shape (n,), true if the pair's two decisions are equal.
        template_a, template_b: the wordings of each pair, shape (n,), strings or integers.
        prior: standard deviation of a wording's part on the logit scale of JSS, and its degrees of
            freedom.
    """
    from scipy.special import stdtrit

    hits, level = np.asarray(agree, bool), confidence_level
    cluster, k = cluster_codes(clusters, len(hits))
    by_items = wilson_cluster(hits, cluster, level)
    if by_items.low is None or by_items.high is None or by_items.effective_n is None:
        return Interval(None, None)
    names = np.concatenate([np.asarray(template_a), np.asarray(template_b)])
    codes, n_wordings = cluster_codes(names, len(names))
    share, n = float(hits.mean()), by_items.effective_n
    # A share of 1 in a sample does not promise a share of 1.
    centre = (n * share + 0.5) / (n + 1)
    factor, pure, cell = over_wordings(hits, cluster, *np.split(codes, 2))
    sd, worth = prior
    scale = factor * (centre * (1 - centre)) ** 2
    observed, noise = pure / scale, cell / scale
    # The jackknife tells as much as W - 1 wordings where the sampling of items hardly blurs it.
    expected = max(sd**2, observed)
    df = min(MOST_TOLD, (n_wordings - 1) * (expected / (expected + noise)) ** 2)
    if n_wordings < FEWEST_WORDINGS:
        df = 0.0
    # The prior keeps wordings that happen to agree from claiming that all do, not the reverse.
    spread = max((worth * sd**2 + df * observed) / (worth + df), observed)
    tail = (1 + level) / 2
    t_items, t_wordings = float(stdtrit(k - 1, tail)), float(stdtrit(worth + df, tail))
    n_eff = 1 / (1 / n + factor * spread * centre * (1 - centre) * (t_wordings / t_items) ** 2)
    low, high = outer_ends(share, n_eff, t_items, level)
    return Interval(min(low, by_items.low), max(high, by_items.high), n_eff)


def over_wordings(
    agree: Bools, clusters: Codes, template_a: Codes, template_b: Codes
) -> tuple[float, float, float]:
    """What wordings add to the variance of JSS; codes from 0, shape (n,) each.

    Leaving out a wording changes JSS because the wording differs, and because its answers to these
    items happen to. The second part, seen in how the change varies over clusters, shrinks with more
    items.

    Returns:
        The sum of squares of each wording's share of the pairs, and two jackknife variances over
        wordings: of wordings (by chance below 0), and of the items they were asked on. Both are 0
        with two wordings, or one wording in all pairs.
    """
    n, k = len(agree), int(clusters.max()) + 1
    w = int(max(template_a.max(), template_b.max())) + 1
    gap = agree - agree.mean()
    rows, cell_sums = np.zeros(w), np.zeros(w * k)
    # A pair of one wording twice counts once.
    is_same_wording = template_a == template_b
    for template, weight in ((template_a, gap), (template_b, gap * ~is_same_wording)):
        rows += np.bincount(template, minlength=w)
        cell_sums += np.bincount(template * k + clusters, weight, minlength=w * k)
    rows -= np.bincount(template_a, is_same_wording, minlength=w)
    factor = float(((rows / n) ** 2).sum())
    if w < FEWEST_WORDINGS or (rows == n).any():
        return factor, 0.0, 0.0
    cluster_sums = np.bincount(clusters, gap, minlength=k)
    changes = (cluster_sums - cell_sums.reshape(w, k)) / (n - rows)[:, None] - cluster_sums / n
    changes -= changes.mean(axis=0)
    total = (w - 1) / w * float((changes.sum(axis=1) ** 2).sum())
    cell = (w - 1) / w * float((k * changes.var(axis=1, ddof=1)).sum())
    return factor, total - cell, cell


class RepeatDifference(NamedTuple):
    """How often the same prompt gets the same verdict again, and JSS minus that.

    All are None without repeats, the ends also with a single cluster.
    """

    jss_repeat: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None


def delta_jss(
    agree: Any, clusters: Any, repeat_agree: Any, repeat_clusters: Any
) -> RepeatDifference:
    """JSS minus JSS_repeat: what rewording does beyond asking the same prompt again.

    Negative: the judge is less steady under rewording. Pairs and repeats of one cluster are
    correlated, so the interval is Newcombe's for paired shares (1998, method 10) on the clustered
    Wilson ends of both, with the correlation of the clusters' linearised residuals.

    Args:
        agree: shape (n,), true if the two decisions of a pair are equal.
        repeat_agree: shape (r,), true if the first and a later decision on one prompt are equal.
        repeat_clusters: one id per row, of the same kind as `clusters`; None if those are None.

    >>> result = delta_jss([1, 0, 1, 1], [1, 1, 2, 2], [1, 1, 1], [1, 2, 3])
    >>> result.jss_repeat, result.delta
    (1.0, -0.25)
    """
    if not len(agree) or not len(repeat_agree):
        return RepeatDifference(None, None, None, None)
    hits, repeat_hits = np.asarray(agree, bool), np.asarray(repeat_agree, bool)
    shares = float(hits.mean()), float(repeat_hits.mean())
    delta = shares[0] - shares[1]
    pairs: Codes
    repeats: Codes
    if clusters is None:
        pairs, repeats = np.arange(len(hits)), np.arange(len(hits), len(hits) + len(repeat_hits))
    else:
        joint_codes, _ = cluster_codes([*clusters, *repeat_clusters], len(hits) + len(repeat_hits))
        pairs, repeats = joint_codes[: len(hits)], joint_codes[len(hits) :]
    k = int(max(pairs.max(), repeats.max())) + 1
    residuals = [
        np.bincount(codes, rows - share, minlength=k)
        for rows, codes, share in zip((hits, repeat_hits), (pairs, repeats), shares, strict=True)
    ]
    ends = difference_interval(
        (shares[1], wilson_cluster(repeat_hits, repeats)),
        (shares[0], wilson_cluster(hits, pairs)),
        residual_correlation(*residuals),
    )
    return RepeatDifference(shares[1], delta, ends.low, ends.high)


def missed_wording(n_wordings: int, confidence: float = 0.95) -> float:
    """How rare a kind of wording must be for a run to have missed it: 1 - (1 - confidence)^(1/k).

    If a larger share of all wordings were of that kind, the run's k wordings would include one of
    them with at least the given confidence.
    """
    return float(1 - (1 - confidence) ** (1 / n_wordings))
