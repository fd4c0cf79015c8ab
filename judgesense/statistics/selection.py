"""Choosing the best of several options on a sample: does any differ, which may be best, how good?

The best of several equally good options looks better on the items that chose it. Here the quoted
accuracy is that of the *procedure*: choose on some clusters, score on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import Interval, wilson, wilson_from_sums
from judgesense.statistics.permutation import gaps_between

_TIE = 1e-9

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
    n_cells: int
    n_clusters: int


def choose(
    scores: Any,
    clusters: Any = None,
    *,
    n_resamples: int = 999,
    seed: int = 0,
) -> Choice:
    """Test for any difference, form the set of options that may be best, and score the choice.

    All tests permute options within clusters (`judgesense.statistics.permutation`). Unless the
    first finds a difference, the set holds every option. Otherwise those that lie significantly
    below another one are eliminated, and the rest compared again (multiple comparisons with the
    best, Hsu 1984, stepped down). An option that is better than all others stays in the set with
    95% confidence. The held-out score is the mean over 20 random partitions of the clusters into
    five folds. Its interval allows for the choice, which varies with the folds, since
    intervals of cross-validated scores are too narrow otherwise (Bates, Hastie & Tibshirani 2023).

    Args:
        scores: from 0 (wrong) to 1 (right), shape (options, cells), the same cells for all.

    Returns:
        The `Choice`; with one option, `p_any_difference` is None and `best` that option.

    >>> good, bad = [1.0] * 40, [1.0, 0.0] * 20
    >>> found = choose([good, bad, bad])
    >>> found.best, found.score
    ((0,), 1.0)
    """
    table = np.asarray(scores, dtype=np.float64)
    codes, k = cluster_codes(clusters, table.shape[1])
    sums = np.zeros((k, len(table)))
    np.add.at(sums, codes, table.T)
    rng = np.random.default_rng(seed)
    left = list(range(len(table)))
    p_any: float | None = None
    while len(left) > 1 and k > 1:
        p, p_behind = gaps_between(sums[:, left], rng, n_resamples)
        p_any = p if p_any is None else p_any
        out = p_behind < _ERROR
        if p_any >= _ERROR or not out.any():
            break
        left = [j for j, gone in zip(left, out, strict=True) if not gone]
    sizes = np.bincount(codes, minlength=k)
    score, ends = _held_out(sums, sizes, rng)
    return Choice(p_any, tuple(left), score, ends.low, ends.high, table.shape[1], k)


def _held_out(
    sums: Floats,
    sizes: Codes,
    rng: np.random.Generator,
) -> tuple[float | None, Interval]:
    """The mean held-out score and its interval; options that tie share the choice."""
    from scipy.special import stdtrit

    k, n_options = sums.shape
    if k < 2:
        return None, Interval(None, None)
    folds = min(FOLDS, k)
    scored, chosen = np.zeros(k), np.zeros(n_options)
    for _ in range(_PARTITIONS):
        fold = rng.permutation(np.arange(k) % folds)
        parts, part_sizes = np.zeros((folds, n_options)), np.bincount(fold, sizes)
        np.add.at(parts, fold, sums)
        others = parts.sum(axis=0) - parts
        best = others >= others.max(axis=1, keepdims=True) - _TIE
        weights = best / best.sum(axis=1, keepdims=True)
        scored += (sums * weights[fold]).sum(axis=1)
        chosen += part_sizes @ weights / sizes.sum() / _PARTITIONS
    scored /= _PARTITIONS
    score = min(1.0, float(scored.sum() / sizes.sum()))
    spread = wilson_from_sums(scored, sizes)
    assert spread.effective_n is not None
    means = sums.sum(axis=0) / sizes.sum()
    by_choice = float(chosen @ (means - chosen @ means) ** 2)
    variance = max(score * (1 - score), _TIE)
    n = 1 / (_NARROW / spread.effective_n + 2 * by_choice / variance)
    low, high = wilson(score, n, float(stdtrit(k - 1, 0.975)))
    return score, Interval(low, high, n)


def choice_error(
    scores: Any,
    folds: Any,
    clusters: Any = None,
    *,
    n_resamples: int = 200,
    seed: int = 0,
) -> float | None:
    """The standard error of what choosing an option gains over the mean option, cross-fitted.

    The gain is the held-out score of "in each fold, take the option that was best in the others",
    minus the mean score of all options. It estimates what the option that is best on all cells
    gains on new ones. An interval over cells alone is too narrow, because another sample may choose
    another option (Bates, Hastie & Tibshirani 2023). So clusters are resampled, each within its
    fold, and the choice made again; the error is the root mean square of the gain found minus the
    true gain of the option chosen, with the sample in the place of the population.

    Args:
        scores: from 0 to 1, shape (tables, cells, options), NaN where an option has no score. An
            option is chosen in each table (one for each option order), and the gains are averaged.
        folds: the fold of each cell, whole clusters together, as `folds_of` gives them.
        n_resamples: bootstrap samples.

    Returns:
        The error, on the scores' scale; None with fewer than two clusters or folds.

    >>> good, bad = [1.0] * 40, [0.0] * 40
    >>> choice_error([np.column_stack([good, bad])], [0, 1] * 20)
    0.0
    """
    tables = np.asarray(scores, dtype=np.float64)
    codes, k = cluster_codes(clusters, tables.shape[1])
    fold_codes, n_folds = cluster_codes(folds, tables.shape[1])
    if k < 2 or n_folds < 2:
        return None
    fold = np.zeros(k, dtype=np.int64)
    fold[codes] = fold_codes
    drawn = np.random.default_rng(seed).multinomial(k, np.full(k, 1 / k), n_resamples)
    gaps = [_gaps_of_choice(table, codes, k, fold, drawn) for table in tables]
    return float(np.sqrt(np.mean(np.mean(gaps, axis=0) ** 2)))


def _gaps_of_choice(
    table: Floats,
    codes: Codes,
    k: int,
    fold: Codes,
    drawn: Codes,
) -> Floats:
    """The gain found minus the true one, at each bootstrap sample of clusters."""
    sums, counts = np.zeros((k, table.shape[1])), np.zeros((k, table.shape[1]))
    np.add.at(sums, codes, np.nan_to_num(table))
    np.add.at(counts, codes, ~np.isnan(table))
    parts = [
        (drawn[:, fold == f] @ sums[fold == f], drawn[:, fold == f] @ counts[fold == f])
        for f in np.unique(fold)
    ]
    whole_sums = np.sum([part[0] for part in parts], axis=0)
    whole_counts = np.sum([part[1] for part in parts], axis=0)
    right, asked, rows = np.zeros(len(drawn)), np.zeros(len(drawn)), np.arange(len(drawn))
    for own_sums, own_counts in parts:
        best = _mean(whole_sums - own_sums, whole_counts - own_counts).argmax(axis=1)
        right += own_sums[rows, best]
        asked += own_counts[rows, best]
    found = _mean(right, asked) - _mean(whole_sums.sum(axis=1), whole_counts.sum(axis=1))
    means = _mean(sums.sum(axis=0), counts.sum(axis=0))
    every = sums.sum() / max(float(counts.sum()), 1.0)
    gaps: Floats = found - (means[_mean(whole_sums, whole_counts).argmax(axis=1)] - every)
    return gaps


def _mean(sums: Floats, counts: Floats) -> Floats:
    means: Floats = sums / np.maximum(counts, 1.0)
    return means


def crossfit_weights(
    clusters: Sequence[Hashable], n_choices: int, choose: Choose, seed: int = 0
) -> Floats | None:
    """How often each item was scored under each choice that the other items made.

    Args:
        clusters: one per item; the items of a cluster are in the same fold.
        n_choices: the number of alternatives.
        choose: from the rows to choose on (indices of items) to the index of the alternative.
        seed: fixes the ten random divisions into five folds.

    Returns:
        Shares, shape (items, alternatives), each row adding up to 1; None with fewer than ten
        clusters. ``(weights * scores).sum(axis=1)`` are the cross-fitted scores of the items.

    >>> scores = np.array([[1.0, 0.0]] * 20)
    >>> weights = crossfit_weights(range(20), 2, lambda rows: int(scores[rows].mean(0).argmax()))
    >>> float((weights * scores).sum(axis=1).mean())
    1.0
    """
    names = list(dict.fromkeys(clusters))
    if len(names) < LEAST_CLUSTERS:
        return None
    index = {name: at for at, name in enumerate(names)}
    cluster = np.array([index[name] for name in clusters])
    counts = np.zeros((len(cluster), n_choices))
    rng = np.random.default_rng([seed, *b"crossfit"])
    for _ in range(REPEATS):
        fold = (rng.permutation(len(names)) % FOLDS)[cluster]
        for held in range(FOLDS):
            counts[fold == held, choose(np.flatnonzero(fold != held))] += 1
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
        raise ValueError("all rows are one cluster: pass at least two to cross-fit")
    order = np.random.default_rng(seed).permutation(k)
    fold = np.empty(k, dtype=np.int64)
    fold[order] = np.arange(k) % min(n_folds, k)
    found: Codes = fold[codes]
    return found
