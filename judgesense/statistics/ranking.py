"""Do scores, and the rankings made from them, survive a change of prompt or of sample?

Sensitivity of accuracies to prompts after "Artifact or Flaw?" (section 2.3); stability of prompt
rankings after "On the Stability of Prompt Ranking" (section 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.labels import check_labels
from judgesense.statistics.ranks import (
    chosen,
    competition_ranks,
    interval_ranks,
    kendall_matrix,
    leaders,
    spearman_matrix,
)
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.statistics.tables import numbers, positive_number

__all__ = [
    "PromptSensitivity",
    "RankingStability",
    "chosen",
    "competition_ranks",
    "held_out",
    "interval_ranks",
    "kendall_matrix",
    "lcb_sweep",
    "leaders",
    "lower_bounds",
    "prompt_sensitivity",
    "ranking_stability",
    "spearman_matrix",
]

_LARGEST = 1e150
"""The squares of larger scores overflow."""


@dataclass(frozen=True, eq=False)
class PromptSensitivity(ResultMapping):
    """Spread of each model's accuracy over prompts, and agreement of the models' rankings.

    `std` (population) and `range` have one value per model, by name if names were passed.
    `spearman_pairs` has one value per pair of prompts in the order (0, 1), (0, 2), ..., (1, 2),
    ...: None if all models tie under a prompt. `mean_spearman` is the mean of the defined ones;
    None under 3 models. `degenerate` says what is undefined and why, and is None otherwise.
    """

    labels: ClassVar = {
        "mean_std": "mean standard deviation over prompts",
        "mean_spearman": "rank correlation between prompts",
        "std": "standard deviation per model",
        "range": "range per model",
        "n_models": "models",
        "n_prompts": "prompts",
        "degenerate": "note",
    }
    std: list[float] | dict[str, float]
    range: list[float] | dict[str, float]
    mean_std: float
    mean_spearman: float | None
    spearman_pairs: list[float | None]
    n_models: int
    n_prompts: int
    degenerate: str | None

    def to_pandas(self) -> Any:
        """`std` and `range` as a `pandas.DataFrame`, one row per model."""
        return data_frame({"std": self.std, "range": self.range})


def prompt_sensitivity(predictions: Any, models: Sequence[str] | None = None) -> PromptSensitivity:
    """Measure how accuracies, and the ranking of models by them, vary over prompts.

    Args:
        predictions: accuracies, shape (models, prompts), at least two prompts.
        models: the models' names, shape (models,); `std` and `range` are then dicts by name.

    Returns:
        A `PromptSensitivity`.

    Raises:
        ValueError: not a table of finite numbers, ragged rows, fewer than two prompts, or names
            that do not match the rows.

    >>> prompt_sensitivity([[0.50, 0.52], [0.61, 0.58], [0.70, 0.73]]).mean_spearman
    1.0
    """
    table = _scores(predictions, "model")
    n_models, n_prompts = table.shape
    if n_prompts < 2:
        raise ValueError(
            "predictions has one accuracy per model: pass each model's accuracy under at least two "
            "prompts"
        )
    std = table.std(axis=1)
    reason = None
    pairs: list[float | None] = []
    mean = None
    if n_models < 3:
        reason = f"mean_spearman needs at least 3 models, got {n_models}"
    else:
        rho = _upper(spearman_matrix(table.T))
        pairs = [None if np.isnan(value) else float(value) for value in rho]
        mean = _mean_std("rho", rho)["rho_mean"]
        if undefined := int(np.isnan(rho).sum()):
            reason = (
                f"{undefined} of {len(rho)} pairs of prompts have no rank correlation: "
                "all models tie under a prompt"
            )
    return PromptSensitivity(
        std=_by_name(std, models),
        range=_by_name(np.ptp(table, axis=1), models),
        mean_std=float(std.mean()),
        mean_spearman=mean,
        spearman_pairs=pairs,
        n_models=n_models,
        n_prompts=n_prompts,
        degenerate=reason,
    )


def _by_name(values: Floats, models: Sequence[str] | None) -> list[float] | dict[str, float]:
    """One value per model: a list, or a dict if the models have names."""
    found: list[float] = values.tolist()
    if models is None:
        return found
    if not len(check_labels(models, "models")) == len(models) == len(found):
        raise ValueError(
            f"models is {models}: pass {len(found)} different names, one for each row of "
            "predictions"
        )
    return dict(zip(models, found, strict=True))


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


def ranking_stability(predictions: Any, *, k: int = 3, z: float = 1.0) -> RankingStability:
    """Measure how stable a ranking of prompts is over conditions (seeds, subsets, judges).

    Args:
        predictions: scores, shape (K conditions, M prompts), higher is better.
        k: size of the top-k sets, 1 to M.
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
    table = _scores(predictions, "condition")
    n_conditions, n_prompts = table.shape
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_prompts:
        raise ValueError(f"k is {k!r}: pass a whole number from 1 to the {n_prompts} prompts")
    z = positive_number(z, "z", "1.0")
    reasons = []
    top = np.argsort(competition_ranks(table), axis=1, kind="stable")[:, : int(k)]
    winners = top[:, 0]
    mean = table.mean(axis=0)

    if n_conditions < 2:
        reasons.append("one condition: no comparison and no lower bound")
        rho = tau = top1 = topk = np.empty(0)
        top1_global = topk_global = None
    else:
        rho, tau = _upper(spearman_matrix(table)), _upper(kendall_matrix(table))
        if undefined := int(np.isnan(rho).sum()):
            reasons.append(
                f"{undefined} of {len(rho)} pairs of conditions have no rank correlation: "
                "all prompts tie in a condition"
            )
        top1 = _upper((winners[:, None] == winners[None, :]).astype(np.float64))
        member = np.zeros(table.shape)
        np.put_along_axis(member, top, 1.0, axis=1)
        topk = _upper(member @ member.T) / k
        top1_global = float(np.bincount(winners).max()) / n_conditions
        modal = _modal_set(top, mean)
        topk_global = float(member[:, modal].sum()) / (n_conditions * k)

    lcb = lower_bounds(table, z) if n_conditions > 1 else None
    if n_conditions == 2:
        reasons.append("two conditions: no lower bound after leaving one out")
    return RankingStability(
        **_mean_std("spearman", rho),
        **_mean_std("kendall", tau),
        **_mean_std("top1_pairwise", top1),
        **_mean_std("topk_pairwise", topk),
        **_mean_std("loso_mean", held_out(table, 0.0) if n_conditions > 1 else np.empty(0)),
        **_mean_std("loso_lcb", held_out(table, z) if n_conditions > 2 else np.empty(0)),
        top1_global=top1_global,
        topk_global=topk_global,
        unique_top1=len(np.unique(winners)),
        selected_mean=int(chosen(mean)),
        selected_lcb=None if lcb is None else int(chosen(lcb)),
        lcb=None if lcb is None else lcb.tolist(),
        k=int(k),
        z=z,
        n_conditions=n_conditions,
        n_prompts=n_prompts,
        degenerate="; ".join(reasons) or None,
    )


def lcb_sweep(
    predictions: Any, z: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0)
) -> list[dict[str, Any]]:
    """Selection by lower confidence bound at several weights z; z = 0 selects by the mean.

    Args:
        predictions: scores, shape (K conditions, M prompts), K >= 3.
        z: weights, each >= 0.

    Returns:
        One dict per weight: `z`, `selected` (prompt index), `loso_mean`, `loso_std`.

    Raises:
        ValueError: as `ranking_stability`; fewer than three conditions.

    >>> rows = lcb_sweep([[0.2, 0.5], [0.3, 0.4], [0.1, 0.6]], z=[0.0, 1.0])
    >>> [row["selected"] for row in rows]
    [1, 1]
    """
    table = _scores(predictions, "condition")
    if len(table) < 3:
        raise ValueError(
            f"predictions has {len(table)} conditions: leaving one out needs at least three"
        )
    rows = []
    for weight in z:
        weight = positive_number(weight, "z", "1.0")
        held = held_out(table, weight)
        rows.append(
            {
                "z": weight,
                "selected": int(chosen(lower_bounds(table, weight))),
                "loso_mean": float(held.mean()),
                "loso_std": float(held.std()),
            }
        )
    return rows


def _scores(values: Any, row_is: str) -> Floats:
    """The table of scores, one column per prompt; refuses those whose squares overflow."""
    table = numbers(values, "predictions", 2)
    if (large := np.abs(table) > _LARGEST).any():
        row, column = (int(axis) for axis in np.argwhere(large)[0])
        raise ValueError(
            f"predictions[{row}][{column}] ({row_is} {row}, prompt {column}) is "
            f"{table[row, column]}: pass scores of at most {_LARGEST} in size"
        )
    return table


def lower_bounds(table: Floats, z: float) -> Floats:
    """LCB of each column: mean - z * sd / sqrt(K), sd with K - 1 (section 3.4); shape (..., K, M).

    >>> lower_bounds(np.array([[1.0, 2.0], [1.0, 4.0]]), 1.0).tolist()
    [1.0, 2.0]
    """
    bounds: Floats = table.mean(axis=-2)
    if z:
        bounds -= z * table.std(axis=-2, ddof=1) / np.sqrt(table.shape[-2])
    return bounds


def held_out(scores: Floats, z: float) -> Floats:
    """Score in each condition of the prompt chosen on all others by LCB; z = 0 chooses by the mean.

    ``scores`` has shape (..., K, M), the result (..., K); K >= 3, or 2 if z = 0. A tie goes to the
    lower prompt index.

    >>> held_out(np.array([[0.5, 0.6], [0.4, 0.7], [0.9, 0.1]]), 0.0).tolist()
    [0.5, 0.4, 0.1]
    """
    k = scores.shape[-2]
    if k < (3 if z else 2):
        raise ValueError(f"scores have {k} conditions: leaving one out needs at least three")
    found = np.empty(scores.shape[:-1])
    for condition in range(k):
        best = chosen(lower_bounds(np.delete(scores, condition, axis=-2), z))
        row = scores[..., condition, :]
        found[..., condition] = np.take_along_axis(row, best[..., None], axis=-1)[..., 0]
    return found


def _upper(matrix: Floats) -> Floats:
    values: Floats = matrix[np.triu_indices(len(matrix), 1)]
    return values


def _mean_std(name: str, values: Floats) -> dict[str, Any]:
    """Mean and population standard deviation of the defined values, as fields of a result."""
    known = values[~np.isnan(values)]
    ends = (float(known.mean()), float(known.std())) if len(known) else (None, None)
    return dict(zip((f"{name}_mean", f"{name}_std"), ends, strict=True))


def _modal_set(top: Codes, mean: Floats) -> list[int]:
    counts = Counter(tuple(row) for row in np.sort(top, axis=1).tolist())
    most = max(counts.values())
    frequent = sorted(prompts for prompts, count in counts.items() if count == most)
    worth = np.array([mean[list(prompts)].mean() for prompts in frequent])
    return list(frequent[int(chosen(worth))])
