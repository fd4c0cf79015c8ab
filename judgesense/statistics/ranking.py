"""Does a ranking of prompts survive a change of sample, and which prompt to choose from it?

Source: "On the Stability of Prompt Ranking in Large Language Model Evaluation", arXiv:2606.24381,
section 3 (conditions are subsets, the same for all prompts; selection is scored on a condition left
out).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.inputs import check_number, numbers
from judgesense.statistics.ranks import chosen, competition_ranks, kendall_matrix, spearman_matrix
from judgesense.statistics.resampling import percentile_ends
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.sensitivity import mean_and_std, off_diagonal

_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class RankingStability(ResultMapping):
    """Stability of the ranking of M prompts over K conditions, and of the choice made from it.

    `*_pairwise_*`, `spearman_*` and `kendall_*` are over pairs of conditions; `top1_global` is the
    share of conditions with the most frequent winner, `topk_global` the mean overlap with the most
    frequent top-k set. `selected_*` are prompt indices; `lcb` has M values. `loso_*` are the scores
    in a held-out condition of the prompt chosen on the others. Every `*_std` is a population
    standard deviation. An undefined figure is None, and `degenerate` says why.
    """

    labels: ClassVar = {
        "spearman_mean": "rank correlation between conditions",
        "top1_pairwise_mean": "same best prompt in two conditions",
        "topk_pairwise_mean": "overlap of the top k in two conditions",
        "selected_mean": "best prompt by mean",
        "selected_lcb": "best prompt by lower bound",
        "loso_mean_mean": "held-out score, chosen by mean",
        "loso_lcb_mean": "held-out score, chosen by lower bound",
        "k": "k",
        "n_conditions": "conditions",
        "n_prompts": "prompts",
        "degenerate": "note",
    }
    spearman_mean: float | None
    spearman_std: float | None
    kendall_mean: float | None
    kendall_std: float | None
    top1_pairwise_mean: float | None
    top1_pairwise_std: float | None
    topk_pairwise_mean: float | None
    topk_pairwise_std: float | None
    top1_global: float | None
    topk_global: float | None
    unique_top1: int
    selected_mean: int
    selected_lcb: int | None
    lcb: list[float] | None
    loso_mean_mean: float | None
    loso_mean_std: float | None
    loso_lcb_mean: float | None
    loso_lcb_std: float | None
    k: int
    z: float
    n_conditions: int
    n_prompts: int
    degenerate: str | None


def ranking_stability(
    predictions: Any, *, k: int | None = None, z: float = 1.0
) -> RankingStability:
    """Measure how stable a ranking of prompts is over conditions (seeds, subsets, judges).

    Args:
        predictions: scores, shape (K conditions, M prompts), higher is better.
        k: size of the top-k sets, 1 to M; by default 3, or all prompts if there are fewer.
        z: weight of the standard error in LCB = mean - z * sd / sqrt(K), sd with K - 1.

    Returns:
        A `RankingStability`. Prompts that tie (`competition_ranks`) get average ranks in the
        correlations; in top-k sets and selection the lower prompt index comes first. If several
        top-k sets are the most frequent, the one with the best mean score counts.

    Raises:
        ValueError: not a table of finite numbers, ragged rows, k outside 1..M, z negative.

    >>> scores = [[0.2, 0.5, 0.4], [0.3, 0.4, 0.5], [0.1, 0.6, 0.5]]
    >>> ranking_stability(scores, k=2).selected_mean
    1
    """
    table = numbers(predictions, "predictions", 2)
    n_conditions, n_prompts = table.shape
    k = min(3, n_prompts) if k is None else check_number(k, "k", 1, n_prompts, whole=True)
    z = check_number(z, "z", 0)
    reasons = []
    top = np.argsort(competition_ranks(table), axis=1, kind="stable")[:, :k]
    winners = top[:, 0]
    mean = table.mean(axis=0)

    if n_conditions < 2:
        reasons.append("one condition: no comparison and no lower bound")
        rho = tau = top1 = topk = np.empty(0)
        top1_global = topk_global = None
    else:
        rho, tau = off_diagonal(spearman_matrix(table)), off_diagonal(kendall_matrix(table))
        if undefined := int(np.isnan(rho).sum()):
            reasons.append(
                f"{undefined} of {len(rho)} pairs of conditions have no rank correlation: "
                "all prompts tie in a condition"
            )
        top1 = off_diagonal((winners[:, None] == winners[None, :]).astype(np.float64))
        member = np.zeros(table.shape)
        np.put_along_axis(member, top, 1.0, axis=1)
        topk = off_diagonal(member @ member.T) / k
        top1_global = float(np.bincount(winners).max()) / n_conditions
        modal = _modal_set(top, mean)
        topk_global = float(member[:, modal].sum()) / (n_conditions * k)

    lcb = lower_bounds(table, z) if n_conditions > 1 else None
    if n_conditions == 2:
        reasons.append("two conditions: no lower bound after leaving one out")
    return RankingStability(
        **mean_and_std("spearman", rho),
        **mean_and_std("kendall", tau),
        **mean_and_std("top1_pairwise", top1),
        **mean_and_std("topk_pairwise", topk),
        **mean_and_std("loso_mean", held_out(table, 0.0) if n_conditions > 1 else np.empty(0)),
        **mean_and_std("loso_lcb", held_out(table, z) if n_conditions > 2 else np.empty(0)),
        top1_global=top1_global,
        topk_global=topk_global,
        unique_top1=len(np.unique(winners)),
        selected_mean=int(chosen(mean)),
        selected_lcb=None if lcb is None else int(chosen(lcb)),
        lcb=None if lcb is None else lcb.tolist(),
        k=k,
        z=z,
        n_conditions=n_conditions,
        n_prompts=n_prompts,
        degenerate="; ".join(reasons) or None,
    )


def lower_bounds(table: Floats, z: float) -> Floats:
    """LCB of each column, mean - z * sd / sqrt(K) (section 3.4); ``table`` is (..., K, M)."""
    bounds: Floats = table.mean(axis=-2)
    if z:
        bounds -= z * table.std(axis=-2, ddof=1) / np.sqrt(table.shape[-2])
    return bounds


def held_out(scores: Floats, z: float) -> Floats:
    """Score in each condition of the prompt chosen on all others by LCB; z = 0 chooses by the mean.

    ``scores`` has shape (..., K, M), the result (..., K); K >= 3, or 2 if z = 0. A tie goes to the
    lower prompt index.
    """
    k = scores.shape[-2]
    result = np.empty(scores.shape[:-1])
    for condition in range(k):
        choice = chosen(lower_bounds(np.delete(scores, condition, axis=-2), z))
        row = scores[..., condition, :]
        result[..., condition] = np.take_along_axis(row, choice[..., None], axis=-1)[..., 0]
    return result


def _modal_set(top: Codes, mean: Floats) -> list[int]:
    counts = Counter(tuple(row) for row in np.sort(top, axis=1).tolist())
    highest = max(counts.values())
    frequent = sorted(prompts for prompts, count in counts.items() if count == highest)
    worth = np.array([mean[list(prompts)].mean() for prompts in frequent])
    return list(frequent[int(chosen(worth))])


def seed_scores(scores: Floats, size: int, seeds: Sequence[Sequence[int]]) -> Floats:
    """Mean scores of M prompts on one random subset for each seed, shape (seeds, M).

    ``scores`` has shape (M, N items). A seed's subsets of several sizes are nested.
    """
    subsets = [np.random.default_rng(list(s)).permutation(scores.shape[1])[:size] for s in seeds]
    means: Floats = np.stack([scores[:, subset].mean(axis=1) for subset in subsets])
    return means


def redrawn_scores(scores: Floats, size: int, k: int, draws: int, seed: int) -> Floats:
    """As :func:`seed_scores`, for many sets of k subsets at once: shape (draws, k, M)."""
    n_prompts, n_items = scores.shape
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


def selection_gain(scores: Floats, z: float) -> dict[str, float]:
    """Compare selection by LCB with selection by the mean over many sets of conditions.

    ``scores`` has shape (draws, K, M), as :func:`redrawn_scores` returns them. Of the held-out
    scores' differences, ``gain`` is the mean and ``gain_low`` to ``gain_high`` the middle 95%;
    ``lcb_better``, ``equal`` and ``lcb_worse`` are shares of the sets.
    """
    mean, bound = held_out(scores, 0.0).mean(axis=-1), held_out(scores, z).mean(axis=-1)
    gap = bound - mean
    gap[np.abs(gap) < _TIE] = 0.0
    low, high = percentile_ends(gap, 0.95)
    return {
        "mean_redrawn": float(mean.mean()),
        "lcb_redrawn": float(bound.mean()),
        "gain": float(gap.mean()),
        "gain_low": low,
        "gain_high": high,
        "lcb_better": float((gap > 0).mean()),
        "equal": float((gap == 0).mean()),
        "lcb_worse": float((gap < 0).mean()),
    }


@dataclass(frozen=True)
class PairFlips:
    """Every pair of prompts (i < j): how far apart they are, and how often their order flips.

    ``gap`` is the absolute difference of their means over all items, ``flips`` the share of pairs
    of conditions that order them oppositely (a tie has no order). Pairs that are ``near_tied`` are
    not separated by all items together: the gap's 95% interval, paired over items, includes 0.
    """

    gap: Floats
    flips: Floats
    near_tied: Bools

    def share_of_flips(self, pairs: Bools) -> float | None:
        """The share of all flips among these pairs; None if nothing ever flips."""
        total = self.flips.sum()
        return float(self.flips[pairs].sum() / total) if total else None


def pair_flips(scores: Floats, conditions: Floats) -> PairFlips:
    """Gaps and flips of all pairs of prompts.

    ``scores`` has shape (M, N items); ``conditions`` shape (draws, K, M), the means on K subsets.
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
    gap = np.abs(gaps.mean(axis=1))
    return PairFlips(gap, flips, gap <= 1.96 * error)
