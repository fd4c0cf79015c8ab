"""Are labels a random part of what was judged? What the verdicts show of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from judgesense.statistics.inputs import cluster_codes

NOT_RANDOM = 0.01
"""A p value below which labels are said not to be at random."""


_MOST_LEVELS, _DRAWS = 20, 9_999

_LEAST_ASSOCIATION = 0.1
"""Cramér's V below which raters and systems go together too little to matter."""


def raters_differ(counts: Any) -> bool:
    """Whether some raters labelled one system more often than others did, from a table of labels by
    rater and system: who is stricter then makes a system look worse.

    >>> raters_differ([[70, 10], [20, 20], [10, 70]]), raters_differ([[40, 40], [30, 31]])
    (True, False)
    """
    table = np.asarray(counts, np.float64)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return False
    from scipy.stats import chi2_contingency

    test = chi2_contingency(table, correction=False)
    strength = np.sqrt(test.statistic / (table.sum() * (min(table.shape) - 1)))
    return bool(test.pvalue < NOT_RANDOM and strength >= _LEAST_ASSOCIATION)


def labelled_p(verdicts: Any, labelled: Any, clusters: Any = None) -> float | None:
    """The p value of labels being picked without regard to the verdicts.

    Fisher's exact test of two verdicts by labelled where no rows share a cluster, and a permutation
    test of the mean of the labelled where verdicts have few values. Otherwise a score test of equal
    means of the labelled and of the others, with the clusters' sums as the sample.

    Args:
        verdicts: numbers, shape (n,); NaN without a verdict, which leaves the row out.
        labelled: which rows have a label, shape (n,).
        clusters: one id per row; None for independent rows.

    Returns:
        The p value; None where all rows or none are labelled, or all verdicts are the same.

    >>> labelled_p([1.0] * 30 + [0.0] * 70, [False] * 30 + [True] * 40 + [False] * 30) < 0.001
    True
    """
    values, mask = np.asarray(verdicts, np.float64), np.asarray(labelled, bool)
    has_value = ~np.isnan(values)
    codes, k = cluster_codes(clusters, len(values))
    values, mask, codes = values[has_value], mask[has_value], codes[has_value]
    if not 0 < mask.sum() < len(mask) or np.ptp(values) == 0:
        return None
    if k == len(has_value) and len(np.unique(values)) == 2:
        from scipy.stats import fisher_exact

        high = values == values.max()
        table = [[int((row & column).sum()) for column in (mask, ~mask)] for row in (high, ~high)]
        return float(fisher_exact(table)[1])
    levels, counts = np.unique(values, return_counts=True)
    if k == len(has_value) and len(levels) <= _MOST_LEVELS:
        # Where nearly all verdicts are one value, no mean is normal.
        centred, rng = levels - values.mean(), np.random.default_rng(0)
        drawn = rng.multivariate_hypergeometric(counts, int(mask.sum()), _DRAWS) @ centred
        observed = abs(float((values[mask] - values.mean()).sum()))
        return (1 + int((np.abs(drawn) >= observed - 1e-9).sum())) / (1 + _DRAWS)
    from scipy.special import stdtr

    sides = mask / mask.sum() - ~mask / (~mask).sum()
    gap = float((values * sides).sum())
    sums = np.bincount(codes, (values - values.mean()) * sides, minlength=k)
    n_clusters = len(np.unique(codes))
    if n_clusters < 2 or not sums.any():
        return None
    error = float(np.sqrt(n_clusters / (n_clusters - 1) * (sums**2).sum()))
    return float(2 * stdtr(n_clusters - 1, -abs(gap) / error))
