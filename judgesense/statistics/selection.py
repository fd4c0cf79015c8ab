"""Choosing the best of several options on a sample: does any differ, which may be best, how good?

The best of several equally good options looks better on the items that chose it. Here the quoted
accuracy is that of the *procedure*: choose on some clusters, score on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import wilson, wilson_from_sums

_TIE = 1e-9

_MANY_CLUSTERS = 1_000
"""Above this many informative clusters signs are flipped instead: the same limit, much faster."""

_AT_ONCE = 4_000_000

_ERROR = 1 - 0.95

_PARTITIONS = 20

_NARROW = 1.25
"""By how much the variance of a cross-validated score exceeds that of a score on new items."""

FOLDS, REPEATS = 5, 10

LEAST_CLUSTERS = 10
"""With fewer clusters, leaving some out changes what is left too much."""

Choose = Callable[[Codes], int]


@dataclass(frozen=True)
class Choice:
    """What a table of scores says about its options.

    `p_any_difference` tests that all options have the same mean score. `best` are the options that
    cannot be told from the best one: all of them where no difference is shown. `score` is the mean
    held-out score of "take the option with the highest mean", with its interval; undefined figures
    are None (a single cluster).
    """

    p_any_difference: float | None
    best: tuple[int, ...]
    score: float | None
    ci_low: float | None
    ci_high: float | None


def choose(scores: Any, clusters: Any = None, *, family: int = 1) -> Choice:
    """Test for any difference, form the set of options that may be best, and score the choice.

    All tests permute options within clusters (`gaps_between`). Unless the
    first finds a difference, the set holds every option. Otherwise those that lie significantly
    below another one are eliminated, and the rest compared again (multiple comparisons with the
    best, Hsu 1984, stepped down). An option that is better than all others stays in the set with
    95% confidence. The held-out score is the mean over 20 random partitions of the clusters into
    five folds. Its interval allows for the choice, which varies with the folds, since
    intervals of cross-validated scores are too narrow otherwise (Bates, Hastie & Tibshirani 2023).
    With one option, `p_any_difference` is None and `best` that option.

    Args:
        scores: from 0 (wrong) to 1 (right), shape (options, cells), the same cells for all.
        family: the number of choices that are reported together. Each may err with a probability of
            5% divided by it (Bonferroni), so that the chance of a false elimination in any of them
            is 5%, whether or not all options of a choice are alike.

    >>> good, bad = [1.0] * 40, [1.0, 0.0] * 20
    >>> result = choose([good, bad, bad])
    >>> result.best, result.score
    ((0,), 1.0)
    """
    from scipy.special import stdtrit

    table = np.asarray(scores, dtype=np.float64)
    codes, k = cluster_codes(clusters, table.shape[1])
    sums = np.zeros((k, len(table)))
    np.add.at(sums, codes, table.T)
    rng = np.random.default_rng(0)
    candidates = list(range(len(table)))
    p_any: float | None = None
    error, n_resamples = _ERROR / family, max(999, 100 * family)
    while len(candidates) > 1 and k > 1:
        p, p_behind = gaps_between(sums[:, candidates], rng, n_resamples)
        p_any = p if p_any is None else p_any
        # One at a time: beside a much worse option, equal ones are not exchangeable.
        behind = np.flatnonzero(p_behind < error)
        if p >= error or not len(behind):
            break
        del candidates[int(behind[sums[:, candidates].sum(axis=0)[behind].argmin()])]
    sizes = np.bincount(codes, minlength=k)
    if k < 2:
        return Choice(p_any, tuple(candidates), None, None, None)
    folds = min(FOLDS, k)
    scored, choice_shares = np.zeros(k), np.zeros(len(table))
    for _ in range(_PARTITIONS):
        fold = rng.permutation(np.arange(k) % folds)
        parts, part_sizes = np.zeros((folds, len(table))), np.bincount(fold, sizes)
        np.add.at(parts, fold, sums)
        other_sums = parts.sum(axis=0) - parts
        is_best = other_sums >= other_sums.max(axis=1, keepdims=True) - _TIE
        weights = is_best / is_best.sum(axis=1, keepdims=True)
        scored += (sums * weights[fold]).sum(axis=1)
        choice_shares += part_sizes @ weights / sizes.sum() / _PARTITIONS
    scored /= _PARTITIONS
    score = min(1.0, float(scored.sum() / sizes.sum()))
    spread = wilson_from_sums(scored, sizes)
    assert spread.effective_n is not None
    means = sums.sum(axis=0) / sizes.sum()
    by_choice = float(choice_shares @ (means - choice_shares @ means) ** 2)
    variance = max(score * (1 - score), _TIE)
    n = 1 / (_NARROW / spread.effective_n + 2 * by_choice / variance)
    low, high = wilson(score, n, float(stdtrit(k - 1, 0.975)))
    # Four fifths of the clusters may choose worse than all: on all, the chosen is no better than
    # it looks.
    best_means = sums[:, means >= means.max() - _TIE].mean(axis=1)
    high = max(high, wilson_from_sums(best_means, sizes).high or 0.0)
    return Choice(p_any, tuple(candidates), score, low, high)


def lower_than_rest(sums: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Adjusted p-values of "this column's mean is no lower than the others'", shape (columns,).

    Single-step max-T over the columns (Westfall & Young 1993, section 2.3), one-sided; ``sums`` are
    sums per cluster and column, shape (clusters, columns >= 2).
    """
    tables = _permutations(sums, rng, n_resamples)
    observed, _ = next(tables)
    hits = np.zeros(sums.shape[1])
    for deviations, _ in tables:
        lowest = deviations.min(axis=1)
        hits += (lowest[:, None] <= observed[None] + _TIE).sum(axis=0)
    p_values: Floats = (1 + hits) / (1 + n_resamples)
    return p_values


def gaps_between(sums: Floats, rng: np.random.Generator, n_resamples: int) -> tuple[float, Floats]:
    """Test that all columns have the same mean, and each that no other has a higher one.

    The first test takes the largest studentised gap of any two columns (T_R of Hansen, Lunde &
    Nason 2011, section 3.1.2), the second, for each column, the largest gap of another column above
    it (one-sided multiple comparisons with the best, Hsu 1984). ``sums`` as in `lower_than_rest`.

    Returns:
        The p-value of the first test, and those of the second, shape (columns,).
    """
    tables = _permutations(sums, rng, n_resamples)
    deviations, gaps = next(tables)
    behind = gaps.max(axis=0)
    largest = max(behind.max(), np.abs(deviations).max())
    any_hits, hits = 0.0, np.zeros(sums.shape[1])
    for deviations, gaps in tables:
        highest = gaps.max(axis=1)
        hits += (highest >= behind - _TIE).sum(axis=0)
        top = np.maximum(highest.max(axis=1), np.abs(deviations).max(axis=1))
        # Mid-p: with few items many permutations tie with the data.
        any_hits += float((top > largest + _TIE).sum() + (top >= largest - _TIE).sum()) / 2
    p_behind: Floats = (1 + hits) / (1 + n_resamples)
    return (0.5 + any_hits) / (1 + n_resamples), p_behind


def _permutations(
    sums: Floats, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[Floats, Floats]]:
    """The statistics of a table, then those of its permutations, some tables at a time.

    They are each column against the mean of all, and how far each lies above each other one: sum /
    sqrt(sum of squares) of the clusters' gaps, which grows with Student's t. Whole columns are
    permuted within each cluster, which is exact if the columns (wordings) are exchangeable; the
    statistics are studentised, so that it also holds in large samples if columns have the same mean
    but other variances or correlations.
    """

    def statistics(total: Floats, products: Floats) -> tuple[Floats, Floats]:
        squares_of_columns = np.diagonal(products, axis1=-2, axis2=-1)
        squares = squares_of_columns[..., :, None] + squares_of_columns[..., None, :] - 2 * products
        gaps = total[..., :, None] - total[..., None, :]
        # A ratio of 0 where all gaps are equal.
        deviations, gap_ratios = (
            np.where(square > _TIE, gap / np.sqrt(np.where(square > _TIE, square, 1.0)), 0.0)
            for gap, square in ((total, squares_of_columns), (gaps, squares))
        )
        return deviations, gap_ratios

    # Clusters in which columns do not differ change no statistic.
    clusters_that_differ = sums[np.ptp(sums, axis=1) > _TIE]
    centred = clusters_that_differ - clusters_that_differ.mean(axis=1, keepdims=True)
    k, columns = centred.shape
    products = centred.T @ centred
    yield statistics(centred.sum(axis=0), products)
    step = max(1, _AT_ONCE // max(1, centred.size))
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        if k > _MANY_CLUSTERS:
            # A cluster's sign changes its part in the sums, and none in the sums of products.
            signs = 2.0 * rng.integers(2, size=(size, k)) - 1.0
            yield statistics(signs @ centred, products[None])
        else:
            tables = rng.permuted(np.broadcast_to(centred, (size, k, columns)), axis=2)
            yield statistics(tables.sum(axis=1), np.swapaxes(tables, 1, 2) @ tables)


def choice_error(
    scores: Any,
    folds: Any,
    clusters: Any = None,
    *,
    n_resamples: int = 200,
) -> float | None:
    """The standard error of what choosing an option gains over the mean option, cross-fitted.

    The gain is the held-out score of "in each fold, take the option that was best in the others",
    minus the mean score of all options. It estimates what the option that is best on all cells
    gains on new ones. An interval over cells alone is too narrow, because another sample may choose
    another option (Bates, Hastie & Tibshirani 2023). So clusters are resampled, each within its
    fold, and the choice made again; the error is the root mean square of the gain found minus the
    true gain of the option chosen, with the sample in the place of the population. None with fewer
    than two clusters or folds.

    Args:
        scores: from 0 to 1, shape (tables, cells, options), NaN where an option has no score. An
            option is chosen in each table (one for each option order), and the gains are averaged.
        folds: the fold of each cell, whole clusters together, as `folds_of` gives them.
    """
    tables = np.asarray(scores, dtype=np.float64)
    codes, k = cluster_codes(clusters, tables.shape[1])
    fold_codes, n_folds = cluster_codes(folds, tables.shape[1])
    if k < 2 or n_folds < 2:
        return None
    fold = np.zeros(k, dtype=np.int64)
    fold[codes] = fold_codes
    tallies = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), n_resamples)
    rows = np.arange(n_resamples)
    gaps = np.zeros(n_resamples)
    for table in tables:
        # The sums of scores, and how many there are, by cluster and option.
        totals = np.zeros((2, k, table.shape[1]))
        np.add.at(totals[0], codes, np.nan_to_num(table))
        np.add.at(totals[1], codes, ~np.isnan(table))
        parts = [tallies[:, fold == f] @ totals[:, fold == f] for f in np.unique(fold)]
        totals_drawn = np.sum(parts, axis=0)
        held_out = np.zeros((2, n_resamples))
        for part in parts:
            other_sums, counts = totals_drawn - part
            choices = (other_sums / np.maximum(counts, 1.0)).argmax(axis=1)
            held_out += part[:, rows, choices]
        gains = held_out[0] / np.maximum(held_out[1], 1.0)
        gains -= totals_drawn[0].sum(axis=1) / np.maximum(totals_drawn[1].sum(axis=1), 1.0)
        means = totals[0].sum(axis=0) / np.maximum(totals[1].sum(axis=0), 1.0)
        choices = (totals_drawn[0] / np.maximum(totals_drawn[1], 1.0)).argmax(axis=1)
        gaps += gains - (means[choices] - totals[0].sum() / max(float(totals[1].sum()), 1.0))
    return float(np.sqrt(np.mean((gaps / len(tables)) ** 2)))


def crossfit_weights(clusters: Sequence[Hashable], n_choices: int, choose: Choose) -> Floats | None:
    """How often each item was scored under each choice that the other items made.

    Ten random divisions of the clusters into five folds; ``choose`` gets the rows to choose on
    (indices of items) and returns the index of the alternative. The shares have shape (items,
    alternatives), each row adding up to 1, so that ``(weights * scores).sum(axis=1)`` are the
    cross-fitted scores of the items. None with fewer than ten clusters.
    """
    index = {name: at for at, name in enumerate(dict.fromkeys(clusters))}
    if len(index) < LEAST_CLUSTERS:
        return None
    cluster = np.array([index[name] for name in clusters])
    counts = np.zeros((len(cluster), n_choices))
    rng = np.random.default_rng([0, *b"crossfit"])
    for _ in range(REPEATS):
        fold = (rng.permutation(len(index)) % FOLDS)[cluster]
        for held_fold in range(FOLDS):
            counts[fold == held_fold, choose(np.flatnonzero(fold != held_fold))] += 1
    weights: Floats = counts / REPEATS
    return weights


def folds_of(clusters: Any, n_folds: int = 10, seed: int = 0) -> Codes:
    """The fold of each row, whole clusters together and folds of nearly equal size, shape (n,).

    With fewer clusters than folds, every cluster is a fold (leave one out).

    Raises:
        ValueError: fewer than two clusters, which leave nothing to learn from.

    >>> sorted(set(folds_of(["a", "a", "b", "c"], 2).tolist()))
    [0, 1]
    """
    codes, k = cluster_codes(clusters, len(clusters))
    if k < 2:
        raise ValueError("all rows are in one cluster: pass at least two clusters")
    order = np.random.default_rng(seed).permutation(k)
    fold = np.empty(k, dtype=np.int64)
    fold[order] = np.arange(k) % min(n_folds, k)
    row_folds: Codes = fold[codes]
    return row_folds


@dataclass(frozen=True)
class Largest:
    """The largest of several estimates: its place, and what it truly is, with an interval."""

    place: int
    estimate: float
    ci_low: float
    ci_high: float


def largest(estimates: Any, low: Any, high: Any, correlation: Any) -> Largest:
    """The largest of several estimates, corrected for having been chosen as the largest.

    The best of several judges looks better than it is, the more so the closer they are. The
    corrected estimate is drawn towards the mean of all as far as noise explains how they differ
    (empirical Bayes, Efron 2011). The lower end is that of simultaneous intervals (Bonferroni). The
    upper end is the plain one: if the chosen one lay above it, the truly largest one would, too.
    ``low`` and ``high`` are the ends of the estimates' 95% intervals, ``correlation`` that of their
    errors, shape (n, n), with a diagonal of 1.
    """
    from scipy.special import ndtri

    x, ends = np.asarray(estimates, np.float64), np.asarray([low, high], np.float64)
    place, n, normal = int(x.argmax()), len(x), float(ndtri(0.975))
    errors = (ends[1] - ends[0]) / (2 * normal)
    covariance = np.outer(errors, errors) * np.asarray(correlation, np.float64)
    spread = float(((x - x.mean()) ** 2).sum())
    # What noise adds to the spread: (n - 1) (variance - covariance).
    noise = float(np.trace(covariance) - covariance.sum() / n)
    signal = max(0.0, 1 - noise / spread) if spread > 0 else 0.0
    wider = float(ndtri(1 - 0.025 / n)) / normal
    return Largest(
        place,
        float(x.mean() + signal * (x[place] - x.mean())),
        float(x[place] - wider * (x[place] - ends[0, place])),
        float(ends[1, place]),
    )
