"""Cohen's kappa, plain and weighted, with its two intervals, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import Labels, cluster_codes, encode_pair
from judgesense.statistics.intervals import Interval, outer_ends, wilson_cluster
from judgesense.statistics.resampling import percentile_ends, resampled_sums


def cohen_kappa(a: Labels, b: Labels) -> float | None:
    """Cohen's kappa (1960) of two raters' labels, strings of shape (n,).

    None if it is undefined (both streams are one and the same label). Raises ValueError for labels
    that are not strings, and for unequal lengths.

    >>> cohen_kappa(["A", "A", "B", "B"], ["A", "B", "B", "B"])
    0.5
    """
    first, second, labels = encode_pair(a, b)
    return kappa_of_codes(first, second, len(labels))


def disagreement_weights(n_labels: int, ordinal: bool = False) -> Floats:
    """Cost of confusing label i with label j, shape (L, L): 0/1, on a scale (i - j) squared."""
    steps = np.subtract.outer(np.arange(n_labels), np.arange(n_labels)).astype(float)
    return steps**2 if ordinal else (steps != 0).astype(float)


def kappa_of_codes(first: Codes, second: Codes, n_labels: int) -> float | None:
    """Cohen's kappa of two streams of label codes, shape (n,) each; None if it is undefined."""
    flat = np.bincount(first * n_labels + second, minlength=n_labels * n_labels)
    table = flat.reshape(n_labels, n_labels).astype(np.float64)
    return kappa_from_table(table, 1.0 - np.eye(n_labels))


def kappa_from_table(table: Floats, weights: Floats) -> float | None:
    """Kappa of a contingency table, shape (L, L): 1 - observed / expected disagreement."""
    expected = float((weights * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    if expected == 0:
        return None
    return 1 - float((weights * table).sum()) * float(table.sum()) / expected


def wilson_kappa(
    first: Codes, second: Codes, clusters: Any = None, confidence_level: float = 0.95
) -> Interval:
    """Interval of Cohen's kappa from Wilson's clustered interval of the agreement behind it.

    kappa = 1 - (1 - p) / (1 - c) for agreement p and chance agreement c. The ends come from
    `intervals.wilson_cluster` for p, at the observed c. If the linearised cluster variance of
    kappa, which accounts for c being estimated, exceeds Wilson's, the effective sample size
    shrinks by their ratio. The interval keeps a width at perfect agreement, where a bootstrap has
    none; `docs/metrics/intervals.md` has its coverage. Label codes are 0..L-1, shape (n,); the ends
    are None with a single cluster or if kappa is undefined.
    """
    from scipy.special import stdtrit

    a, b = np.asarray(first), np.asarray(second)
    n = len(a)
    codes, k = cluster_codes(clusters, n)
    agree = a == b
    share = float(agree.mean())
    spread = wilson_cluster(agree, codes, confidence_level)
    n_labels = int(max(a.max(), b.max())) + 1
    row, column = np.bincount(a, minlength=n_labels) / n, np.bincount(b, minlength=n_labels) / n
    chance = float(row @ column)
    if spread.effective_n is None or chance > 1 - 1e-12:
        return Interval(None, None)
    room = 1 - chance
    influence = (agree - share) / room - (1 - share) / room**2 * (column[a] + row[b] - 2 * chance)
    linear = k / (k - 1) * float((np.bincount(codes, influence, minlength=k) ** 2).sum()) / n**2
    score = share * (1 - share) / spread.effective_n / room**2
    n_eff = spread.effective_n * (score / max(score, linear) if score > 0 else 1.0)
    quantile = float(stdtrit(k - 1, (1 + confidence_level) / 2))
    ends = outer_ends(share, n_eff, quantile, confidence_level)
    low, high = (1 - (1 - end) / room for end in ends)
    return Interval(max(-1.0, low), high, n_eff)


def bootstrap_kappa(
    first: Codes,
    second: Codes,
    clusters: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of Cohen's kappa over clusters; arguments as in `wilson_kappa`.

    Only each cluster's observed disagreement and label counts are resampled. Resamples with an
    undefined kappa (one label throughout) are left out; the ends are None if those are at least
    half. The interval is weak at 25 clusters: see `docs/metrics/intervals.md`.
    """
    a, b = np.asarray(first), np.asarray(second)
    codes, k = cluster_codes(clusters, len(a))
    if k < 2:
        return Interval(None, None)
    labels = int(max(a.max(), b.max())) + 1
    counts: Codes | None = None
    if clusters is None:
        # Single rows have at most L * L different statistics: one per cell of the table.
        counts = np.bincount(a * labels + b, minlength=labels * labels)
        cells = np.flatnonzero(counts)
        counts, a, b = counts[cells], cells // labels, cells % labels
        codes, k = np.arange(len(cells), dtype=np.intp), len(cells)
    statistics = np.column_stack(
        [
            np.bincount(codes, a != b, minlength=k),
            np.bincount(codes * labels + a, minlength=k * labels).reshape(k, labels),
            np.bincount(codes * labels + b, minlength=k * labels).reshape(k, labels),
        ]
    )
    sums = resampled_sums(statistics, n_resamples, seed, counts)
    rows, columns = sums[:, 1 : 1 + labels], sums[:, 1 + labels :]
    n = rows.sum(axis=1)
    expected = n - (rows * columns).sum(axis=1) / n
    defined = expected > 1e-12 * n
    replicates = 1 - sums[defined, 0] / expected[defined]
    if 2 * len(replicates) <= n_resamples:
        return Interval(None, None)
    return Interval(*percentile_ends(replicates, confidence_level))


def krippendorff_alpha(
    ratings: Sequence[Sequence[str | None]], level: str, labels: Sequence[str]
) -> float | None:
    """Krippendorff's alpha = 1 - observed / expected disagreement, with missing ratings.

    Computed from the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability"). None if it is undefined (no unit with two ratings, or one label
    throughout).

    Args:
        ratings: shape (raters, units); None, or what is none of `labels`, if there is no rating.
        level: "nominal" or "ordinal".
        labels: the labels, for "ordinal" in the order of the scale.

    >>> ratings = [["A", "B", "A", None], ["A", "B", "B", "A"]]
    >>> round(krippendorff_alpha(ratings, "nominal", ["A", "B"]), 3)
    0.444
    """
    table = np.array(ratings, dtype=object)
    counts = np.stack([(table == label).sum(axis=0) for label in labels], axis=1).astype(float)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return None
    raters = counts.sum(axis=1)
    scaled = counts / (raters - 1)[:, None]
    coincidence = counts.T @ scaled - np.diag(scaled.sum(axis=0))
    totals = counts.sum(axis=0)
    n = float(totals.sum())
    n_labels = len(totals)
    if level == "ordinal":
        upto = np.cumsum(totals)
        middle = upto - totals / 2
        distance = np.subtract.outer(middle, middle) ** 2
    else:
        distance = 1.0 - np.eye(n_labels)
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1)
    if expected == 0:
        return None
    return 1 - float((coincidence * distance).sum()) / expected
