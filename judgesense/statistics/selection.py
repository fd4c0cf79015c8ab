"""Choosing a prompt from noisy scores: subsets of one grid of item-level scores, drawn many times.

Source: "On the Stability of Prompt Ranking in Large Language Model Evaluation", arXiv:2606.24381,
section 3 (conditions are subsets, the same for all prompts; selection is scored on a condition left
out). :mod:`judgesense.statistics.ranking` has the measures of one set of conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.ranking import held_out
from judgesense.statistics.resampling import percentile_ends

_TIE = 1e-12


def seed_scores(scores: Floats, size: int, seeds: Sequence[Sequence[int]]) -> Floats:
    """Mean scores of M prompts on one random subset for each seed, shape (seeds, M).

    ``scores`` has shape (M, N items). A seed's subsets of several sizes are nested.

    Raises ValueError for a size outside 1..N.

    >>> seed_scores(np.array([[1.0, 1.0], [0.0, 0.0]]), 1, [[0], [1]]).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    n_items = scores.shape[1]
    _check_size(size, n_items)
    subsets = [np.random.default_rng(list(s)).permutation(n_items)[:size] for s in seeds]
    means: Floats = np.stack([scores[:, subset].mean(axis=1) for subset in subsets])
    return means


def redrawn_scores(scores: Floats, size: int, k: int, draws: int, seed: int) -> Floats:
    """As :func:`seed_scores`, for many sets of k subsets at once: shape (draws, k, M).

    >>> redrawn_scores(np.eye(3), 2, k=4, draws=5, seed=0).shape
    (5, 4, 3)
    """
    n_prompts, n_items = scores.shape
    _check_size(size, n_items)
    rng = np.random.default_rng(seed)
    means = np.empty((draws, k, n_prompts))
    for draw in range(draws):
        keys = rng.random((k, n_items))
        # The indices of the `size` smallest keys are a subset without repeats.
        subsets = np.argpartition(keys, size - 1, axis=1)[:, :size]
        weights = np.zeros((k, n_items))
        np.put_along_axis(weights, subsets, 1.0 / size, axis=1)
        means[draw] = weights @ scores.T
    return means


@dataclass(frozen=True)
class SelectionGain:
    """What LCB gains over the mean, over many sets of conditions: held-out score differences.

    ``gain`` is the mean difference, ``low`` to ``high`` the middle 95% of the sets' differences;
    ``better``, ``equal`` and ``worse`` are shares of the sets.
    """

    by_mean: float
    by_lcb: float
    gain: float
    low: float
    high: float
    better: float
    equal: float
    worse: float


def selection_gain(scores: Floats, z: float) -> SelectionGain:
    """Compare selection by LCB with selection by the mean over many sets of conditions.

    ``scores`` has shape (draws, K, M), as :func:`redrawn_scores` returns them.

    >>> selection_gain(np.tile([0.5, 0.4], (4, 3, 1)), 1.0).equal
    1.0
    """
    mean, bound = held_out(scores, 0.0).mean(axis=-1), held_out(scores, z).mean(axis=-1)
    gap = bound - mean
    gap[np.abs(gap) < _TIE] = 0.0
    low, high = percentile_ends(gap, 0.95)
    return SelectionGain(
        float(mean.mean()), float(bound.mean()), float(gap.mean()), low, high,
        float((gap > 0).mean()), float((gap == 0).mean()), float((gap < 0).mean()),
    )  # fmt: skip


@dataclass(frozen=True)
class PairFlips:
    """Every pair of prompts (i < j): how far apart they are, and how often their order flips.

    ``gap`` is the absolute difference of their means over all items, ``error`` its standard error
    (paired over items), ``flips`` the share of pairs of conditions that order them oppositely (a
    tie has no order), ``n_items`` the number of items of the means.
    """

    first: np.ndarray[tuple[int], np.dtype[np.intp]]
    second: np.ndarray[tuple[int], np.dtype[np.intp]]
    gap: Floats
    error: Floats
    flips: Floats
    n_items: int

    @property
    def near_tied(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Pairs that all items together cannot separate: the 95% interval of the gap includes 0."""
        near: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.gap <= 1.96 * self.error
        return near

    def share_of_flips(self, pairs: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
        """The share of all flips among these pairs; None if nothing ever flips."""
        total = self.flips.sum()
        return float(self.flips[pairs].sum() / total) if total else None


def pair_flips(scores: Floats, conditions: Floats) -> PairFlips:
    """Gaps and flips of all pairs of prompts.

    ``scores`` has shape (M, N items); ``conditions`` shape (draws, K, M), the means on K subsets.

    >>> found = pair_flips(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    >>> found.gap.tolist(), found.flips.tolist()
    ([0.5], [1.0])
    """
    first, second = np.triu_indices(len(scores), 1)
    gaps = scores[first] - scores[second]
    n_items = scores.shape[1]
    error = gaps.std(axis=1, ddof=1) / np.sqrt(n_items) if n_items > 1 else np.zeros(len(gaps))
    apart = conditions[..., first] - conditions[..., second]
    signs = np.where(np.abs(apart) < _TIE, 0, np.sign(apart))
    k = conditions.shape[-2]
    ups, downs = (signs > 0).sum(axis=-2), (signs < 0).sum(axis=-2)
    flips: Floats = (ups * downs).mean(axis=0) / (k * (k - 1) / 2)
    return PairFlips(first, second, np.abs(gaps.mean(axis=1)), error, flips, n_items)


def _check_size(size: int, n_items: int) -> None:
    if not 1 <= size <= n_items:
        raise ValueError(f"the subset size is {size}: pass 1 to {n_items} items")
