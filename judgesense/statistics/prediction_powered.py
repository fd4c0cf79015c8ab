"""Means and differences from many predictions and some labels: prediction-powered inference.

A judge's verdicts on all units carry the precision, people's labels on some remove the judge's
bias. Source: Angelopoulos, Duchi & Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference"
(arXiv:2311.01453); strata: Fisch et al. 2024, "Stratified Prediction-Powered Inference"
(arXiv:2406.04291). With one wording, no clusters and no strata, estimates equal those of the
package ``ppi_py``, whose variances are divided by n and whose quantiles are normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.crossed import FEWEST_WORDINGS
from judgesense.statistics.inputs import cluster_codes

FEWEST_LABELS = 2
"""With fewer labels nothing shows how far the judge is off."""


@dataclass(frozen=True)
class Influence:
    """An estimate, and how much each unit moves it: what means and differences are made of.

    ``units`` is each unit's influence, shape (n,), summing to about 0; ``labels`` the part of it
    that rests on its label, which more labels shrink (all of it for a naive mean). ``without`` is
    the estimate without each wording, shape (T,), None with fewer than three. ``floor`` is the
    least variance that the labels may show. ``n_labels`` counts labelled units. ``freedom`` is that
    of the labels, or of the predictions of a naive mean: the clusters behind them, less one per
    stratum; 0 shows no spread.
    """

    estimate: float
    units: Floats
    labels: Floats
    without: Floats | None
    lam: float
    n_labels: int
    freedom: float
    floor: float = 0.0


@dataclass(frozen=True)
class Powered:
    """An estimate from verdicts and labels.

    ``error`` is the standard error, ``p_value`` that of the hypothesis that the truth is 0.
    ``label_error`` is the part of the error that more labels shrink, ``wording_error`` that of
    wordings as a sample (0 with fewer than three). An undefined figure is None.
    """

    estimate: float
    n_labels: int
    n_units: int
    ci_low: float | None = None
    ci_high: float | None = None
    error: float | None = None
    p_value: float | None = None
    label_error: float | None = None
    wording_error: float = 0.0


def influence(
    labels: Any,
    predictions: Any,
    *,
    clusters: Any = None,
    strata: Any = None,
    lam: float | None = None,
    step: float | None = None,
) -> Influence:
    """The mean label over units of which all have predictions and some a label.

    `combined` makes a figure with an interval of it, over units (clusters) and, with three or more
    wordings, over wordings: their jackknife variance is added, as in `crossed.two_way_interval`.

    Args:
        labels: shape (n,), NaN where there is none, at least `FEWEST_LABELS` of them. Labelled
            units must be drawn at random, within each stratum if there are any.
        predictions: shape (n,), or (n, T) with a column per wording, NaN where there is none. The
            mean over wordings predicts; a unit without any is predicted by the others' mean.
        strata: one id per unit, or None; labels were drawn at another rate in each.
        lam: weight of the predictions, in [0, 1]: 1 is classical prediction-powered inference, 0
            uses labels alone. None chooses the weight of least variance (power tuning).
        step: how far a label is off when it is off: 1 for two labels, a step of a scale. The
            labels' error is then at least `least_error`: a judge without an error on a few labels
            is not known to make none.

    >>> found = influence([1.0, 0.0, float("nan")], [1.0, 0.0, 1.0], lam=0.0)
    >>> found.estimate, found.n_labels
    (0.5, 2)
    """
    y, table = np.asarray(labels, dtype=np.float64), _table(predictions)
    given = ~np.isnan(y)
    n, size = int(given.sum()), len(y)
    codes, _ = cluster_codes(clusters, size)
    stratum = _stratum_codes(strata, given)
    parts = _StratumMeans(y, given, stratum, codes, grouped=clusters is not None)
    f = _filled(table)
    most = size / max(1, size - n)
    if n == size:
        beta = 0.0
    elif lam is not None:
        beta = lam * most
    elif len(parts.share) == 1:
        beta = _tuned_weight(y, f, given) * most
    else:
        beta = parts.best(f, codes, most)
    estimate, units, own = parts.at(f, beta)
    without = None
    if table.shape[1] >= FEWEST_WORDINGS:
        left = [np.delete(table, t, axis=1) for t in range(table.shape[1])]
        without = np.array([parts.at(_filled(each), beta)[0] for each in left])
    floor = 0.0 if step is None else least_error(step, parts.n_clusters) ** 2
    return Influence(estimate, units, own, without, beta / most, n, max(1.0, parts.freedom), floor)


def naive_influence(
    predictions: Any, *, clusters: Any = None, step: float | None = None
) -> Influence:
    """The mean of the predictions themselves, as if they were true: what labels correct.

    Args:
        predictions: shape (n,) or (n, T); a unit without any is left out.
        step: as in `influence`.

    >>> naive_influence([1.0, 0.0, float("nan"), 1.0]).estimate.__round__(3)
    0.667
    """
    table = _table(predictions)
    known = ~np.isnan(table).all(axis=1)
    codes, _ = cluster_codes(clusters, len(table))
    f = _filled(table)
    units = np.where(known, f - f[known].mean(), 0.0) / known.sum()
    k = len(np.unique(codes[known]))
    units = units * math.sqrt(k / max(1, k - 1))
    without = None
    if table.shape[1] >= FEWEST_WORDINGS:
        left = [row_means(np.delete(table, t, axis=1)) for t in range(table.shape[1])]
        if all(np.isfinite(means).any() for means in left):
            without = np.array([float(np.nanmean(means)) for means in left])
    floor = least_error(step or 0.0, k) ** 2
    return Influence(float(f[known].mean()), units, units, without, 1.0, 0, k - 1.0, floor)


def least_error(step: float, n: float) -> float:
    """The standard error of a mean that n units leave however much they agree: 2 step / (n + 4).

    Where all n units are alike, the interval is then about as wide as Wilson's for a share of 0 or
    1 (1927): z^2 / (n + z^2).

    >>> least_error(1.0, 36)
    0.05
    """
    return 2 * step / (n + 4)


def combined(
    parts: Sequence[tuple[float, Influence, Codes]],
    confidence_level: float = 0.95,
) -> Powered:
    """A sum of estimates, such as the difference of two means, with one interval.

    Args:
        parts: sign or factor, influence, and each unit's cluster code; a code means the same
            cluster in every part, so that what systems share on an item cancels.

    Returns:
        The estimate, with Student's t at Satterthwaite's degrees of freedom; without an interval if
        a part rests on a single cluster.

    >>> y = [1.0, 0.0, 1.0, 1.0]
    >>> one, codes = influence(y, y, lam=0.0), np.arange(4)
    >>> combined([(1.0, one, codes), (-1.0, one, codes)]).estimate
    0.0
    """
    from scipy.special import stdtr, stdtrit

    size = max(int(codes.max()) for _, _, codes in parts) + 1
    total, own = np.zeros(size), np.zeros(size)
    freedom = 0.0
    for factor, part, codes in parts:
        total += factor * np.bincount(codes, part.units, minlength=size)
        mine = np.bincount(codes, part.labels, minlength=size)
        own += factor * mine
        if part.freedom > 0:
            freedom += (factor**2 * max(float((mine**2).sum()), part.floor)) ** 2 / part.freedom
    variance, of_labels = float((total**2).sum()), float((own**2).sum())
    short = sum(f**2 * max(0.0, p.floor - float((p.labels**2).sum())) for f, p, _ in parts)
    of_labels += short
    rest = max(0.0, variance + short - of_labels)
    of_wordings, n_wordings = _wording_variance(parts)
    variance += short + of_wordings
    estimate = float(sum(factor * part.estimate for factor, part, _ in parts))
    n_clusters = len(np.unique(np.concatenate([codes for _, _, codes in parts])))
    n_labels = sum(part.n_labels for _, part, _ in parts)
    n_units = sum(len(part.units) for _, part, _ in parts)
    if any(part.freedom <= 0 or len(np.unique(codes)) < 2 for _, part, codes in parts):
        return Powered(estimate, n_labels, n_units)
    freedom += rest**2 / (n_clusters - 1)
    if n_wordings:
        freedom += of_wordings**2 / (n_wordings - 1)
    df = variance**2 / freedom if freedom > 0 else float(n_clusters - 1)
    error = math.sqrt(variance)
    half = error * float(stdtrit(df, (1 + confidence_level) / 2))
    return Powered(
        estimate,
        n_labels,
        n_units,
        ci_low=estimate - half,
        ci_high=estimate + half,
        error=error,
        p_value=None if error == 0 else 2 * float(stdtr(df, -abs(estimate) / error)),
        label_error=math.sqrt(of_labels),
        wording_error=math.sqrt(of_wordings),
    )


def _wording_variance(parts: Sequence[tuple[float, Influence, Codes]]) -> tuple[float, int]:
    """Jackknife variance of a sum of estimates over wordings, and the number of wordings."""
    left = [(factor, part.without) for factor, part, _ in parts if part.without is not None]
    if len(left) < len(parts) or len({len(each) for _, each in left}) != 1:
        return 0.0, 0
    sums = np.sum([factor * each for factor, each in left], axis=0)
    n = len(sums)
    return float((n - 1) / n * ((sums - sums.mean()) ** 2).sum()), n


def _table(predictions: Any) -> Floats:
    table = np.asarray(predictions, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


def row_means(table: Floats) -> Floats:
    """Mean over the columns (wordings) that a row has, shape (n,); NaN if it has none.

    >>> row_means(np.array([[1.0, np.nan, 3.0]])).tolist()
    [2.0]
    """
    known = ~np.isnan(table)
    count = known.sum(axis=1)
    sums = np.where(known, table, 0.0).sum(axis=1)
    means: Floats = np.divide(sums, count, out=np.full(len(table), np.nan), where=count > 0)
    return means


def _filled(table: Floats) -> Floats:
    """Mean over wordings; units without any get the others' mean."""
    means = row_means(table)
    known = ~np.isnan(means)
    if not known.any():
        return np.zeros(len(table))
    return np.where(known, means, means[known].mean())


class _StratumMeans:
    """Stratum means and influences as functions of the weight beta of the predictions.

    In a stratum with M units, n of them labelled, the estimate is mean(y) + lam * (mean of f on
    unlabelled units - mean of f on labelled ones), with lam = beta * (M - n) / M.
    """

    def __init__(
        self,
        y: Floats,
        given: Bools,
        stratum: Codes,
        codes: Codes,
        *,
        grouped: bool,
    ) -> None:
        self.y, self.given, self.stratum = np.where(given, y, 0.0), given, stratum
        self.size = len(y)
        units, labelled = np.bincount(stratum), np.bincount(stratum[given])
        self.share, self.rest = units / self.size, (units - labelled) / units
        self.scale = self.share / labelled
        clusters = labelled.astype(float)
        if grouped:
            pairs = np.unique(np.column_stack([stratum[given], codes[given]]), axis=0)
            clusters = np.bincount(pairs[:, 0], minlength=len(units)).astype(float)
        self.n_clusters = float(clusters.sum())
        self.freedom = self.n_clusters - len(clusters)
        # One labelled cluster in a stratum shows no spread; it keeps the factor of two.
        self.inflate = np.sqrt(clusters / np.maximum(clusters - 1, 0.5))

    def _mean(self, x: Floats, mask: Bools) -> Floats:
        """Mean of x on the units of the mask in each stratum; 0 where there are none."""
        k = len(self.share)
        count = np.bincount(self.stratum[mask], minlength=k)
        sums = np.bincount(self.stratum[mask], x[mask], minlength=k)
        return np.asarray(sums / np.maximum(count, 1), dtype=np.float64)

    def _linear(self, f: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Estimates by stratum and units' influences: (a, b, A, B) of a - beta b, A - beta B."""
        h, given = self.stratum, self.given
        labelled, rest = self._mean(f, given), self._mean(f, ~given)
        own = self._mean(self.y, given)
        gap = self.rest * (labelled - rest)
        scale = (self.scale * self.inflate)[h]
        one = np.where(given, scale * (self.y - own[h]), 0.0)
        two = np.where(given, scale * self.rest[h] * (f - labelled[h]), -(f - rest[h]) / self.size)
        one = one + (own - self.share @ own)[h] / self.size
        two = two + (gap - self.share @ gap)[h] / self.size
        return own, gap, one, two

    def best(self, f: Floats, codes: Codes, most: float) -> float:
        """The weight of least variance over clusters, within [0, most]."""
        _, _, one, two = self._linear(f)
        a, b = np.bincount(codes, one), np.bincount(codes, two)
        spread = float(b @ b)
        return min(most, max(0.0, float(a @ b) / spread)) if spread > 0 else 0.0

    def at(self, f: Floats, beta: float) -> tuple[float, Floats, Floats]:
        """The estimate, each unit's influence, and the part of it that rests on labels."""
        own, gap, one, two = self._linear(f)
        residual = self.y - beta * f
        centred = residual - self._mean(residual, self.given)[self.stratum]
        labels = np.where(self.given, (self.scale * self.inflate)[self.stratum] * centred, 0.0)
        return float(self.share @ (own - beta * gap)), one - beta * two, labels


def _tuned_weight(y: Floats, f: Floats, given: Bools) -> float:
    """The weight of least variance, in [0, 1] (Angelopoulos, Duchi & Zrnic 2023, section 6)."""
    n, rest = int(given.sum()), int((~given).sum())
    spread = float(f.var(ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((y[given] - y[given].mean()) * (f[given] - f[given].mean())))
    return min(1.0, max(0.0, shared / ((1 + n / rest) * spread)))


def _stratum_codes(strata: Any, given: Bools) -> Codes:
    """Codes of strata, of which those with fewer than two labels are joined to a neighbour."""
    if strata is None:
        return np.zeros(len(given), dtype=np.intp)
    _, codes = np.unique(np.asarray(strata), return_inverse=True)
    while (count := np.bincount(codes[given], minlength=int(codes.max()) + 1)).min() < 2:
        if len(count) == 1:
            break
        short = int(count.argmin())
        other = short - 1 if short else 1
        codes = np.where(codes == short, other, codes)
        _, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.intp)
