"""Choosing the best of several options on a sample: does any differ, which may be best, how good?

The accuracy of an option that was chosen on the same items is too high by selection. Here the
quoted accuracy is that of the *procedure*: choose on some clusters, score on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.intervals import cluster_codes, wilson_from_sums
from judgesense.statistics.labels import check_level
from judgesense.statistics.permutation import gaps_between

Floats = npt.NDArray[np.float64]

_TIE = 1e-9


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
    level: float = 0.95,
    significant: float = 0.05,
    set_level: float = 0.9,
    n_resamples: int = 999,
    folds: int = 10,
    repeats: int = 20,
    seed: int = 0,
) -> Choice:
    """Test for any difference, form the set of options that may be best, and score the choice.

    The set is a model confidence set (Hansen, Lunde & Nason 2011): while the largest studentised
    gap between two options is significant by a permutation test within clusters, the option
    furthest below another is eliminated. It contains the best option with the given confidence,
    whatever the number of options, and all of them unless the first test finds a difference. The
    held-out score is the mean over `repeats` random partitions of the clusters into `folds`.

    Args:
        scores: from 0 (wrong) to 1 (right), shape (options, cells), the same cells for all.
        clusters: one id per cell, or None.
        level: confidence of the set and of the interval, within (0, 1).
        n_resamples: number of permutations.
        folds: parts into which the clusters are divided; fewer clusters make fewer parts.
        repeats: number of partitions.
        seed: seed for `numpy.random.default_rng`.

    Returns:
        The `Choice`; with one option, `p_any_difference` is None and `best` that option.

    Raises:
        ValueError: scores that are no finite table within [0, 1], no cells, or clusters of
            another length.

    >>> good, bad = [1.0] * 40, [1.0, 0.0] * 20
    >>> found = choose([good, bad, bad])
    >>> found.best, found.score
    ((0,), 1.0)
    """
    check_level(level)
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not table.size or not ((table >= 0) & (table <= 1)).all():
        raise ValueError("scores: pass numbers from 0 to 1, one row per option and one per cell")
    codes, k = cluster_codes(clusters, table.shape[1])
    sums = np.zeros((k, len(table)))
    np.add.at(sums, codes, table.T)
    rng = np.random.default_rng(seed)
    left = list(range(len(table)))
    p_any: float | None = None
    while len(left) > 1 and k > 1:
        p, p_behind = gaps_between(sums[:, left], rng, n_resamples)
        p_any = p if p_any is None else p_any
        out = p_behind < significant
        if p_any >= significant or not out.any():
            break
        left = [j for j, gone in zip(left, out, strict=True) if not gone]
    held_out = _held_out(sums, np.bincount(codes, minlength=k), rng, folds, repeats)
    sizes = np.bincount(codes, minlength=k)
    ends = wilson_from_sums(held_out, sizes, level) if held_out is not None else None
    return Choice(
        p_any_difference=p_any,
        best=tuple(left),
        score=None if held_out is None else float(held_out.sum() / sizes.sum()),
        ci_low=None if ends is None else ends.low,
        ci_high=None if ends is None else ends.high,
        n_cells=table.shape[1],
        n_clusters=k,
    )


def _held_out(
    sums: Floats, sizes: npt.NDArray[np.intp], rng: np.random.Generator, folds: int, repeats: int
) -> Floats | None:
    """Each cluster's held-out score, a mean over partitions; options that tie share the choice."""
    k = len(sums)
    if k < 2:
        return None
    folds = min(folds, k)
    scored = np.zeros(k)
    for _ in range(repeats):
        fold = rng.permutation(np.arange(k) % folds)
        parts = np.zeros((folds, sums.shape[1]))
        np.add.at(parts, fold, sums)
        others = parts.sum(axis=0) - parts
        best = others >= others.max(axis=1, keepdims=True) - _TIE
        weights = best / best.sum(axis=1, keepdims=True)
        scored += (sums * weights[fold]).sum(axis=1)
    means: Floats = scored / repeats
    return means
