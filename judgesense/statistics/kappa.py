"""Cohen's kappa, plain and weighted, with its two intervals, and Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import (
    UNDECIDED,
    Labels,
    check_labels,
    check_level,
    cluster_codes,
    encode,
    encode_pair,
    is_ordered,
)
from judgesense.statistics.intervals import Interval, outer_ends, wilson_cluster
from judgesense.statistics.resampling import percentile_ends, resampled_sums

Ratings = Sequence[Sequence[str | None]] | npt.NDArray[Any]


def cohen_kappa(
    a: Labels, b: Labels, weights: str | None = None, labels: Sequence[str] | None = None
) -> float | None:
    """Cohen's kappa (Cohen 1960), or weighted kappa (Cohen 1968) for an ordered scale.

    Args:
        a: labels of the first rater, shape (n,), strings.
        b: labels of the second rater, shape (n,), strings.
        weights: None, or "linear" or "quadratic": a disagreement counts by the distance, or squared
            distance, between the labels' places in `labels`.
        labels: the scale in order; None takes the labels seen, as numbers if all are numbers, else
            sorted as text. For a weighted kappa name every step of the scale, used or not.

    Returns:
        Kappa, or None if it is undefined (both streams are one and the same label).

    Raises:
        ValueError: bad labels or lengths, a label missing from `labels`, unknown `weights`.

    >>> cohen_kappa(["A", "A", "B", "B"], ["A", "B", "B", "B"])
    0.5
    """
    first, second, seen = encode_pair(a, b, ("a", "b"))
    scale = ordered(seen) if labels is None else list(labels)
    if len(set(scale)) < len(scale):
        raise ValueError(f"labels={scale!r} names a label twice: name each step once")
    place = {label: code for code, label in enumerate(scale)}
    for label in seen:
        if label not in place:
            raise ValueError(f"the label {label!r} is not in labels={scale!r}: name it there")
    codes = np.array([place[label] for label in seen], dtype=np.intp)
    table = contingency(codes[first], codes[second], len(scale))
    return kappa_from_table(table, disagreement_weights(len(scale), weights))


def disagreement_weights(n_labels: int, weights: str | None) -> Floats:
    """Cost of confusing label i with label j, shape (L, L): 0/1, |i - j| or (i - j) squared.

    >>> disagreement_weights(3, "quadratic")[0].tolist()
    [0.0, 1.0, 4.0]
    """
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"weights is {weights!r}: pass None, 'linear' or 'quadratic'")
    steps = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))).astype(float)
    if weights is None:
        return (steps > 0).astype(float)
    return steps if weights == "linear" else steps**2


def contingency(first: Codes, second: Codes, n_labels: int) -> Floats:
    """Counts of each pair of codes, shape (L, L).

    >>> contingency(np.array([0, 1]), np.array([0, 0]), 2).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    flat = np.bincount(first * n_labels + second, minlength=n_labels * n_labels)
    return flat.reshape(n_labels, n_labels).astype(np.float64)


def kappa_from_table(table: Floats, weights: Floats | None = None) -> float | None:
    """Kappa of a contingency table, shape (L, L): 1 - observed / expected disagreement.

    >>> kappa_from_table(np.array([[2.0, 0.0], [0.0, 3.0]]))
    1.0
    """
    if weights is None:
        weights = disagreement_weights(len(table), None)
    expected = float((weights * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    if expected == 0:
        return None
    return 1 - float((weights * table).sum()) * float(table.sum()) / expected


def ordered(labels: Collection[str]) -> list[str]:
    """Labels sorted as numbers if all are numbers, else as text.

    >>> ordered({"10", "9"}), ordered({"b", "9"})
    (['9', '10'], ['9', 'b'])
    """
    try:
        finite = all(math.isfinite(float(label)) for label in labels)
    except ValueError:
        finite = False
    return sorted(labels, key=float) if finite else sorted(labels)


def wilson_kappa(
    first: Codes, second: Codes, clusters: Any = None, confidence_level: float = 0.95
) -> Interval:
    """Interval of Cohen's kappa from Wilson's clustered interval of the agreement behind it.

    kappa = 1 - (1 - p) / (1 - c) for agreement p and chance agreement c. The ends come from
    `intervals.wilson_cluster` for p, at the observed c. If the linearised cluster variance of
    kappa, which accounts for c being estimated, exceeds Wilson's, the effective sample size
    shrinks by their ratio. The interval keeps a width at perfect agreement, where a bootstrap has
    none; `docs/metrics/intervals.md` has its coverage.

    Args:
        first: label codes 0..L-1, shape (n,).
        second: label codes 0..L-1, shape (n,).
        clusters: one id per row, or None.
        confidence_level: within (0, 1).

    Returns:
        The interval within [-1, 1]; ends None with a single cluster or if kappa is undefined.

    Raises:
        ValueError: clusters of another length, or a level outside (0, 1).

    >>> ends = wilson_kappa(np.array([0, 1] * 20), np.array([0, 1] * 19 + [1, 1]))
    >>> -1 < ends.low < 0.95 < ends.high <= 1
    True
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
    return Interval(max(-1.0, low), high, n_eff, spread.icc)


def bootstrap_kappa(
    first: Codes,
    second: Codes,
    clusters: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of Cohen's kappa over clusters.

    Only each cluster's observed disagreement and label counts are resampled. Resamples with an
    undefined kappa (one label throughout) are left out; the ends are None if those are at least
    half. The interval is weak at 25 clusters: see `docs/metrics/intervals.md`.

    Args:
        first: label codes 0..L-1, shape (n,).
        second: label codes 0..L-1, shape (n,).
        clusters: one id per row, or None.
        confidence_level: within (0, 1).
        n_resamples: number of resamples.
        seed: seed for `numpy.random.default_rng`.

    Returns:
        The interval; ends None with a single cluster or if kappa is mostly undefined.

    Raises:
        ValueError: clusters of another length, level outside (0, 1), bad number of resamples.

    >>> codes = np.array([0, 1] * 20)
    >>> bootstrap_kappa(codes, codes, n_resamples=100).low
    1.0
    """
    level = check_level(confidence_level)
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
    replicates = _kappas(sums)
    replicates = replicates[np.isfinite(replicates)]
    if 2 * len(replicates) <= n_resamples:
        return Interval(None, None)
    return Interval(*percentile_ends(replicates, level))


def _kappas(sums: Floats) -> Floats:
    """Kappa of each row: disagreements, label counts of the first, label counts of the second."""
    labels = sums.shape[1] // 2
    rows, columns = sums[:, 1 : 1 + labels], sums[:, 1 + labels :]
    n = rows.sum(axis=1)
    expected = n - (rows * columns).sum(axis=1) / n
    undefined = expected <= 1e-12 * n
    return np.where(undefined, np.nan, 1 - sums[:, 0] / np.where(undefined, 1, expected))


def krippendorff_alpha(
    ratings: Ratings,
    level: str = "nominal",
    labels: Sequence[str] | None = None,
    missing: Collection[str] = UNDECIDED,
) -> float | None:
    """Krippendorff's alpha = 1 - observed / expected disagreement, with missing ratings.

    Computed from the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability").

    Args:
        ratings: shape (raters, units), strings; None or a label in `missing` if there is no rating.
        level: "nominal" or "ordinal".
        labels: the scale in order, for "ordinal"; None takes the labels seen, as numbers if all
            are numbers, else sorted as text.
        missing: labels that are not ratings.

    Returns:
        Alpha, or None if it is undefined (no unit with two ratings, or one label throughout).

    Raises:
        ValueError: ragged rows, a rating that is neither a string nor None, an unknown level, a
            label missing from `labels`.

    >>> krippendorff_alpha([["A", "B", "A", None], ["A", "B", "B", "A"]]).__round__(3)
    0.444
    """
    if level not in ("nominal", "ordinal"):
        raise ValueError(f"level is {level!r}: pass 'nominal' or 'ordinal'")
    counts, seen = _unit_counts(ratings, check_labels(missing, "missing"))
    scale = ordered(seen) if labels is None else list(labels)
    for label in seen:
        if label not in scale:
            raise ValueError(f"the label {label!r} is not in labels={scale!r}: name it there")
    table = np.zeros((len(counts), len(scale)))
    table[:, [scale.index(label) for label in seen]] = counts
    return alpha_from_counts(table, level)


def alpha_from_counts(counts: Floats, level: str = "nominal") -> float | None:
    """Krippendorff's alpha from the counts of each label per unit, shape (units, L).

    >>> alpha_from_counts(np.array([[2.0, 0.0], [0.0, 2.0]]))
    1.0
    """
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


def _unit_counts(ratings: Ratings, missing: Collection[str]) -> tuple[Floats, list[str]]:
    """The counts of each label per unit, shape (units, L), and the labels."""
    if not is_ordered(ratings) or not len(ratings):
        raise ValueError(f"ratings is {ratings!r}: pass one list of labels per rater")
    for place, row in enumerate(ratings):
        if not is_ordered(row):
            raise ValueError(f"ratings[{place}] is {row!r}: pass a list of labels")
        if len(row) != len(ratings[0]):
            raise ValueError(
                f"ratings[{place}] has {len(row)} units and ratings[0] {len(ratings[0])}: pass "
                "one rating per unit from every rater, None if there is none"
            )
    n_units = len(ratings[0])
    if not n_units:
        raise ValueError("ratings have no units: pass at least one column")
    table: dict[str, int] = {}
    units, codes = [], []
    for number, row in enumerate(ratings):
        rated = [
            i
            for i, rating in enumerate(row)
            if rating is not None and not (isinstance(rating, str) and rating in missing)
        ]
        units.append(np.array(rated, dtype=np.intp))
        codes.append(encode([row[i] for i in rated], f"ratings[{number}]", table))
    flat = np.concatenate(units) * max(1, len(table)) + np.concatenate(codes)
    counts = np.bincount(flat, minlength=n_units * max(1, len(table)))
    return counts.reshape(n_units, -1).astype(np.float64), list(table)
