"""How far a judge's scores lie from people's, and whether their ranks agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import spearmanr

from judgesense.statistics.intervals import mean_t_cluster
from judgesense.statistics.resampling import percentile_ends
from judgesense.statistics.result import ResultMapping

_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class ScoreAgreement(ResultMapping):
    """Scores of a judge beside people's on the same outputs, with 95% intervals by cluster.

    `spearman` is the correlation of ranks, `mae` the mean absolute error, `bias` the mean of the
    judge's score minus people's, and `factor` how many times people's scores the judge's are (the
    ratio of the means of the absolute scores). An undefined figure is None.
    """

    labels: ClassVar = {
        "spearman": "ranks agree (Spearman)",
        "mae": "mean absolute error",
        "bias": "judge minus people",
        "factor": "judge over people",
        "n": "outputs",
    }
    spearman: float | None
    spearman_ci_low: float | None
    spearman_ci_high: float | None
    mae: float | None
    mae_ci_low: float | None
    mae_ci_high: float | None
    bias: float | None
    bias_ci_low: float | None
    bias_ci_high: float | None
    factor: float | None
    n: int


def score_agreement(judge: Any, people: Any, clusters: Any = None, seed: int = 0) -> ScoreAgreement:
    """Compare a judge's scores with people's.

    Args:
        judge, people: scores, shape (n,); rows in which one is NaN are left out.
        clusters: what is independent, one id a row, by default the row.
        seed: fixes the resampling of clusters for the interval of `spearman`.

    >>> result = score_agreement([1, 2, 3, 4], [1.5, 2, 3.5, 5])
    >>> round(result.spearman, 2), result.mae, result.bias
    (1.0, 0.5, -0.5)
    """
    x, y = np.asarray(judge, dtype=float), np.asarray(people, dtype=float)
    ids = np.arange(len(x)) if clusters is None else np.asarray(clusters, dtype=object)
    is_complete = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[is_complete], y[is_complete]
    _, codes = np.unique(ids[is_complete].astype(str), return_inverse=True)
    if len(x) < 2:
        return ScoreAgreement.undefined(n=len(x))
    gap = x - y
    mae, bias = mean_t_cluster(np.abs(gap), codes), mean_t_cluster(gap, codes)
    scale = float(np.abs(y).mean())
    rho, low, high = _ranks(x, y, codes, seed)
    return ScoreAgreement(
        spearman=rho,
        spearman_ci_low=low,
        spearman_ci_high=high,
        mae=float(np.abs(gap).mean()),
        **mae.fields("mae"),
        bias=float(gap.mean()),
        **bias.fields("bias"),
        factor=float(np.abs(x).mean()) / scale if scale else None,
        n=len(x),
    )


def _ranks(
    x: Any, y: Any, codes: Any, seed: int
) -> tuple[float | None, float | None, float | None]:
    """Spearman's correlation and its interval by resampled clusters; None for constant scores."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, None, None
    rho = float(spearmanr(x, y).statistic)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    generator = np.random.default_rng(seed)
    draws = []
    for _ in range(_DRAWS if len(rows) > 2 else 0):
        sample = np.concatenate([rows[n] for n in generator.integers(len(rows), size=len(rows))])
        if np.ptp(x[sample]) and np.ptp(y[sample]):
            draws.append(float(spearmanr(x[sample], y[sample]).statistic))
    if not draws:
        return rho, None, None
    low, high = percentile_ends(draws)
    return rho, float(low), float(high)
