"""Scores of models under several templates on the same items: chance, and the ranking's certainty.

Compares what :func:`judgesense.statistics.ranking.prompt_sensitivity` measures ("Artifact or
Flaw?", section 2.3) with what the same answers would show if templates did not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import Interval
from judgesense.statistics.ranks import spearman_matrix
from judgesense.statistics.resampling import percentile_ends

_TIE = 1e-12


@dataclass(frozen=True)
class Spread:
    """Spread of one model's accuracy over templates: population ``std``, and under permutation.

    ``by_chance`` is the mean std when each item's scores are dealt to the templates at random;
    ``p`` is the share of such deals (and the data itself) with at least the observed spread.
    """

    mean: float
    std: float
    low: float
    high: float
    by_chance: float
    p: float


def template_spread(scores: Floats, n_permutations: int = 500, seed: int = 0) -> Spread | None:
    """Measure scores of shape (templates, items); None if a template has no score at all.

    NaN is an answer without a score: it is left out of its template's mean, and dealt out with the
    others. The permutation test has the null hypothesis "templates are exchangeable on every
    item", as Cochran's Q for large samples. Raises ValueError for fewer than two templates or no
    items.

    >>> template_spread(np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])).std
    0.25
    """
    if scores.ndim != 2 or len(scores) < 2 or not scores.shape[1]:
        raise ValueError(
            f"scores have shape {scores.shape}: pass at least two templates, and items"
        )
    means = template_means(scores)
    if means is None:
        return None
    rng = np.random.default_rng(seed)
    std = float(means.std())
    dealt = []
    for _ in range(n_permutations):
        again = template_means(rng.permuted(scores, axis=0))
        if again is not None:
            dealt.append(again.std())
    p = (1 + sum(one >= std - _TIE for one in dealt)) / (len(dealt) + 1)
    by_chance = float(np.mean(dealt)) if dealt else std
    return Spread(float(means.mean()), std, float(means.min()), float(means.max()), by_chance, p)


def template_means(scores: Floats) -> Floats | None:
    """Means over the last axis without NaN; None if one of them has no score.

    >>> template_means(np.array([[1.0, np.nan], [0.0, 1.0]])).tolist()
    [1.0, 0.5]
    """
    known = ~np.isnan(scores)
    counts = known.sum(axis=-1)
    if not counts.all():
        return None
    means: Floats = np.where(known, scores, 0.0).sum(axis=-1) / counts
    return means


def rank_agreement_interval(
    scores: Floats, n_resamples: int = 200, seed: int = 0, confidence_level: float = 0.95
) -> Interval:
    """Percentile interval over items of the mean Spearman's rho between templates.

    ``scores`` has shape (models, templates, items), NaN as in :func:`template_spread`; rho ranks
    the models under every two templates. All templates share the resampled items, so with few
    items the interval is wide and may not be centred on rho. The ends are None with fewer than
    three models or two templates, and if no resample has a rho.

    >>> scores = np.array([[[1.0, 1.0]] * 2, [[1.0, 0.0]] * 2, [[0.0, 0.0]] * 2])
    >>> rank_agreement_interval(scores, n_resamples=20).high
    1.0
    """
    n_models, n_templates, n_items = scores.shape
    if n_models < 3 or n_templates < 2:
        return Interval(None, None)
    rng = np.random.default_rng(seed)
    upper = np.triu_indices(n_templates, 1)
    found = []
    for _ in range(n_resamples):
        means = template_means(scores[:, :, rng.integers(n_items, size=n_items)])
        if means is None:
            continue
        rho = spearman_matrix(means.T)[upper]
        if not np.isnan(rho).all():
            found.append(float(np.nanmean(rho)))
    if not found:
        return Interval(None, None)
    return Interval(*percentile_ends(found, confidence_level))
