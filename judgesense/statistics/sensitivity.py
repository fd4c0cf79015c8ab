"""How accuracies, and rankings by them, vary over prompts, and over templates by chance.

Sensitivity of accuracies to prompts after "Artifact or Flaw?" (section 2.3), beside what the same
answers would show if templates did not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import check_labels, numbers
from judgesense.statistics.intervals import Interval
from judgesense.statistics.ranks import spearman_matrix
from judgesense.statistics.resampling import percentile_ends
from judgesense.statistics.result import ResultMapping, data_frame

_TIE = 1e-12


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
    table = numbers(predictions, "predictions", 2)
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
        rho = off_diagonal(spearman_matrix(table.T))
        pairs = [None if np.isnan(value) else float(value) for value in rho]
        mean = mean_and_std("rho", rho)["rho_mean"]
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
    if models is None:
        return list(values.tolist())
    if not len(check_labels(models, "models")) == len(models) == len(values):
        raise ValueError(
            f"models is {models}: pass {len(values)} different names, one for each row"
        )
    return dict(zip(models, values.tolist(), strict=True))


def off_diagonal(matrix: Floats) -> Floats:
    """The entries above the diagonal, row by row."""
    values: Floats = matrix[np.triu_indices(len(matrix), 1)]
    return values


def mean_and_std(name: str, values: Floats) -> dict[str, Any]:
    """Mean and population standard deviation of the defined values, as fields of a result."""
    defined = values[~np.isnan(values)]
    ends = (float(defined.mean()), float(defined.std())) if len(defined) else (None, None)
    return dict(zip((f"{name}_mean", f"{name}_std"), ends, strict=True))


def template_spread(scores: Floats, seed: int = 0) -> dict[str, float | None]:
    """Spread of one model's accuracy over templates, from scores of shape (templates, items).

    ``std`` is the population's, ``std_by_chance`` its mean when each item's scores are dealt to the
    templates at random; ``p`` is the share of such deals (and the data itself) with at least the
    observed spread. All figures are None if a template has no score at all.

    NaN is an answer without a score: it is left out of its template's mean, and dealt out with the
    others. The permutation test has the null hypothesis "templates are exchangeable on every
    item", as Cochran's Q for large samples.
    """
    names = ("accuracy", "std", "std_by_chance", "p", "accuracy_low", "accuracy_high")
    means = template_means(scores)
    if means is None:
        return dict.fromkeys(names)
    rng = np.random.default_rng(seed)
    std = float(means.std())
    dealt = []
    for _ in range(500):
        dealt_means = template_means(rng.permuted(scores, axis=0))
        if dealt_means is not None:
            dealt.append(dealt_means.std())
    p = (1 + sum(dealt_std >= std - _TIE for dealt_std in dealt)) / (len(dealt) + 1)
    by_chance = float(np.mean(dealt)) if dealt else std
    ends = float(means.min()), float(means.max())
    return dict(zip(names, (float(means.mean()), std, by_chance, p, *ends), strict=True))


def template_means(scores: Floats) -> Floats | None:
    """Means over the last axis without NaN; None if one of them has no score."""
    has_score = ~np.isnan(scores)
    counts = has_score.sum(axis=-1)
    if not counts.all():
        return None
    means: Floats = np.where(has_score, scores, 0.0).sum(axis=-1) / counts
    return means


def rank_agreement_interval(scores: Floats, seed: int = 0) -> Interval:
    """Percentile interval over items of the mean Spearman's rho between templates.

    ``scores`` has shape (models, templates, items), NaN as in :func:`template_spread`; rho ranks
    the models under every two templates. All templates share the resampled items, so with few
    items the interval is wide and may not be centred on rho. The ends are None with fewer than
    three models or two templates, and if no resample has a rho.
    """
    n_models, n_templates, n_items = scores.shape
    if n_models < 3 or n_templates < 2:
        return Interval(None, None)
    rng = np.random.default_rng(seed)
    upper = np.triu_indices(n_templates, 1)
    draws = []
    for _ in range(200):
        means = template_means(scores[:, :, rng.integers(n_items, size=n_items)])
        if means is None:
            continue
        rho = spearman_matrix(means.T)[upper]
        if not np.isnan(rho).all():
            draws.append(float(np.nanmean(rho)))
    if not draws:
        return Interval(None, None)
    return Interval(*percentile_ends(draws))
