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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats, row_means
from judgesense.statistics.crossed import FEWEST_WORDINGS
from judgesense.statistics.inputs import cluster_codes

WIDER = 1.02
"""An interval with predictions may be wider than that of the labels alone by this factor: with few
labels, the least error that both may have hides what predictions gain."""

POWERS = (1.0, 0.75, 0.5, 0.25)
"""Shares of the tuned weight of the predictions, of which the first counts that is not wider."""

FEWEST_LABELS = 2
"""With fewer labels nothing shows how far the judge is off."""


@dataclass(frozen=True)
class Influence:
    """A mean as a line in the weight b of the predictions: what figures are combined from.

    Each array has two columns, x and y of x - b y: at b = 0 labels alone count. ``mean`` has shape
    (2,), ``units`` (n, 2) each unit's influence on the mean, ``labels`` (n, 2) the part of it that
    rests on its label, which more labels shrink (all of it for a mean of predictions), and
    ``without`` (T, 2) the mean without each wording, None with fewer than three. The second column
    is 0 where the weight is fixed. ``most`` is the largest weight, ``tuned`` the weight of
    `ppi_py` where it is defined. ``shares`` is each labelled unit's share of the mean, shape (n,),
    ``lost`` the degrees of freedom that the means of the strata take, ``step`` how far a label is
    off when it is off.
    """

    mean: Floats
    units: Floats
    labels: Floats
    without: Floats | None
    most: float
    tuned: float | None
    n_labels: int
    shares: Floats
    lost: int = 1
    step: float = 0.0


@dataclass(frozen=True)
class Powered:
    """An estimate from verdicts and labels.

    ``error`` is the standard error, ``p_value`` that of the hypothesis that the truth is 0.
    ``label_error`` is the part of the error that more labels shrink, ``wording_error`` that of
    wordings as a sample (0 with fewer than three). ``weight`` is that of the predictions, from 0
    (labels alone) to 1. An undefined figure is None.
    """

    estimate: float
    n_labels: int
    n_units: int
    weight: float = 0.0
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
            uses labels alone. None leaves it to `combined`.
        step: how far a label is off when it is off: 1 for two labels, a step of a scale. The
            labels' error is then at least `least_error`: a judge without an error on a few labels
            is not known to make none.
    """
    y, table = np.asarray(labels, dtype=np.float64), _table(predictions)
    is_labelled = ~np.isnan(y)
    n, size = int(is_labelled.sum()), len(y)
    codes, n_clusters = cluster_codes(clusters, size)
    stratum = _stratum_codes(strata, is_labelled)
    parts = _StratumMeans(y, is_labelled, stratum, codes)
    f = _filled(table)
    largest_weight = size / max(1, size - n)
    mean, units, of_labels = parts.lines(f)
    without = None
    if table.shape[1] >= FEWEST_WORDINGS:
        tables = [np.delete(table, t, axis=1) for t in range(table.shape[1])]
        without = np.array([parts.lines(_filled(columns))[0] for columns in tables])
    tuned = None
    plain = lam is None and n_clusters == size and len(parts.share) == 1
    if plain and table.shape[1] < FEWEST_WORDINGS and n < size:
        tuned = _tuned_weight(y, f, is_labelled)
    if lam is not None or n == size:
        line = np.array([[1.0, 0.0], [-(lam or 0.0) * largest_weight, 0.0]])
        mean, units, of_labels = mean @ line, units @ line, of_labels @ line
        without = None if without is None else without @ line
    return Influence(
        mean,
        units,
        of_labels,
        without,
        largest_weight,
        tuned,
        n,
        parts.scale[stratum] * is_labelled,
        len(parts.share),
        step or 0.0,
    )


def naive_influence(
    predictions: Any, *, clusters: Any = None, step: float | None = None
) -> Influence:
    """The mean of the predictions themselves, as if they were true: what labels correct.

    Arguments as in `influence`; a unit without any prediction is left out.
    """
    table = _table(predictions)
    f = row_means(table)
    result = influence(f, np.zeros(len(f)), clusters=clusters, lam=0.0, step=step)
    without = None
    if table.shape[1] >= FEWEST_WORDINGS:
        means_left = [row_means(np.delete(table, t, axis=1)) for t in range(table.shape[1])]
        if all(np.isfinite(means).any() for means in means_left):
            without = np.array([[np.nanmean(means), 0.0] for means in means_left])
    return replace(result, without=without, n_labels=0)


def least_error(step: float, n: float) -> float:
    """The standard error of a mean that n units leave however much they agree: 1.8 step / (n + 3).

    Where all n units are alike, the interval then reaches as far as Clopper & Pearson's one-sided
    95% bound for a share of 0 (1934), 1 - 0.05^(1/n).
    """
    return 1.8 * step / (n + 3)


def combined(
    parts: Sequence[Part],
    confidence_level: float = 0.95,
) -> Powered:
    """A sum of estimates, such as the difference of two means, with one interval.

    One weight of the predictions minimises the variance of the sum over clusters and wordings
    (power tuning on item differences). Its variance is cross-fitted: each cluster is predicted with
    the weight that the others give. Where the interval would be wider than that of the labels alone
    by more than 2%, the weight is lowered in quarters, at last to the labels alone.

    Args:
        parts: sign or factor, influence, and each unit's cluster code; a code means the same
            cluster in every part, so that what systems share on an item cancels.

    Returns:
        The estimate, with Student's t at Satterthwaite's degrees of freedom, which allow for
        clusters of unequal size (Imbens & Kolesár 2016); the interval of a single mean is moved by
        Hall's correction for skewness (1992). It has none if a part rests on a single cluster.
    """
    labels_only, widest = _figure(parts, confidence_level, 0.0)
    for power in POWERS:
        powered, half = _figure(parts, confidence_level, power)
        if half <= WIDER * widest:
            return powered
    return labels_only


Part = tuple[float, Influence, Codes]
"""A sign or factor, the influence of an estimate, and each unit's cluster code."""


class _ByCluster:
    """The influences of all parts, summed by cluster; of two columns, the second is per unit of the
    weight of the predictions."""

    def __init__(self, parts: Sequence[Part]) -> None:
        size = max(int(codes.max()) for _, _, codes in parts) + 1
        self.mean, self.units, self.labels = np.zeros(2), np.zeros((size, 2)), np.zeros((size, 2))
        self.squares, self.wholes = np.zeros(size), np.zeros(size)
        self.products = np.zeros((size, 2))
        """Products within units: few clusters of unequal size tell less of a weight than these."""
        without = []
        for factor, part, codes in parts:
            scale = factor * np.array([1.0, part.most])
            self.mean = self.mean + scale * part.mean
            units = scale * part.units
            for column in (0, 1):
                add = partial(np.bincount, codes, minlength=size)
                self.units[:, column] += scale[column] * add(part.units[:, column])
                self.labels[:, column] += scale[column] * add(part.labels[:, column])
                self.products[:, column] += add(units[:, column] * units[:, 1])
            self.squares += factor**2 * np.bincount(codes, part.shares**2, minlength=size)
            self.wholes += factor**2 * np.bincount(codes, part.shares, minlength=size) ** 2
            if part.without is not None:
                without.append(scale * part.without)
        self.n_wordings, self.wordings = 0, np.zeros((1, 2))
        if len(without) == len(parts) and len({len(means) for means in without}) == 1:
            sums = np.sum(without, axis=0)
            self.n_wordings = n = len(sums)
            self.wordings = (sums - sums.mean(axis=0)) * math.sqrt((n - 1) / n)

    def weights(self, parts: Sequence[Part]) -> tuple[float, Floats]:
        """The tuned weight of the predictions, and that of all clusters but each."""
        products = np.column_stack([self.units[:, 0] * self.units[:, 1], self.units[:, 1] ** 2])
        if any(len(np.unique(codes)) < len(codes) for _, _, codes in parts):
            products = self.products
        of_wordings = (self.wordings * self.wordings[:, 1:]).sum(axis=0)
        lam, of_each = _weights(products, of_wordings)
        if len(parts) == 1 and parts[0][1].tuned is not None:
            lam = parts[0][1].tuned
        return lam, of_each


def _figure(parts: Sequence[Part], level: float, power: float) -> tuple[Powered, float]:
    """The figure with a share of the tuned weight (0: labels alone), and half the width."""
    from scipy.special import stdtr, stdtrit

    sums = _ByCluster(parts)
    lam, of_each = sums.weights(parts) if power else (0.0, np.zeros(len(sums.units)))
    lam, of_each = power * lam, power * of_each
    residuals = sums.units[:, 0] - of_each * sums.units[:, 1]
    of_labels = float(((sums.labels[:, 0] - of_each * sums.labels[:, 1]) ** 2).sum())
    of_predictions = max(0.0, float((residuals**2).sum()) - of_labels)
    of_wordings = float(((sums.wordings[:, 0] - lam * sums.wordings[:, 1]) ** 2).sum())
    estimate = float(sums.mean[0] - lam * sums.mean[1])
    n_labels = sum(part.n_labels for _, part, _ in parts)
    n_units = sum(len(part.units) for _, part, _ in parts)
    # A part whose labels, or whose units, share one cluster shows no spread.
    if any(len(np.unique(codes[part.shares > 0])) < 2 for _, part, codes in parts):
        return Powered(estimate, n_labels, n_units, lam), 0.0
    of_labels, freedom = _labels_at_least(of_labels, parts, sums)
    n_clusters = len(np.unique(np.concatenate([codes for _, _, codes in parts])))
    of_freedom = of_labels**2 / max(1.0, freedom) + of_predictions**2 / (n_clusters - 1)
    if sums.n_wordings:
        of_freedom += of_wordings**2 / (sums.n_wordings - 1)
    variance = of_labels + of_predictions + of_wordings
    df = variance**2 / of_freedom if of_freedom > 0 else float(n_clusters - 1)
    error = math.sqrt(variance)
    quantile = float(stdtrit(df, (1 + level) / 2))
    half = error * quantile
    # Hall's correction for skewness: the interval of a share near 1 reaches further down.
    # A difference has little skewness, and it is poorly estimated from few labels.
    shift = 0.0
    if error and len(parts) == 1:
        shift = float((residuals**3).sum()) / (6 * variance) * (1 + 2 * quantile**2)
    shift = min(half / 2, max(-half / 2, shift))
    figure = Powered(
        estimate,
        n_labels,
        n_units,
        lam,
        ci_low=estimate + shift - half,
        ci_high=estimate + shift + half,
        error=error,
        p_value=None if error == 0 else 2 * float(stdtr(df, -abs(estimate + shift) / error)),
        label_error=math.sqrt(of_labels),
        wording_error=math.sqrt(of_wordings),
    )
    return figure, half


def _labels_at_least(
    variance: float, parts: Sequence[Part], sums: _ByCluster
) -> tuple[float, float]:
    """The variance that labels leave, at least that of `least_error`, and its degrees of freedom.

    Labels of one cluster count for as many independent ones as they differ.
    """
    squares, wholes = sums.squares, sums.wholes
    alike = sum(f**2 * float((part.labels[:, 0] ** 2).sum()) for f, part, _ in parts)
    shared, rho = float((wholes - squares).sum()), 1.0
    if shared > 1e-12 * squares.sum() and alike > 0:
        rho = float((sums.labels[:, 0] ** 2).sum()) / alike - 1
        rho = min(1.0, max(0.0, rho * float(squares.sum()) / shared))
    weights = squares + rho * (wholes - squares)
    k = int((squares > 0).sum())
    largest_step = max(abs(factor) * part.step for factor, part, _ in parts)
    floor = least_error(largest_step, k if len(parts) == 1 else len(parts) / float(weights.sum()))
    freedom = float(weights.sum() ** 2 / (weights**2).sum())
    freedom *= 1 - max(part.lost for _, part, _ in parts) / k
    return max(variance, floor**2), freedom


def _weights(products: Floats, of_wordings: Floats) -> tuple[float, Floats]:
    """The weight of least variance, in [0, 1], and that of all clusters but each."""
    totals = products.sum(axis=0) + of_wordings
    above, below = (totals - products).T
    weights_left = np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
    lam = float(totals[0] / totals[1]) if totals[1] > 0 else 0.0
    return min(1.0, max(0.0, lam)), np.clip(weights_left, 0.0, 1.0)


def _table(predictions: Any) -> Floats:
    table = np.asarray(predictions, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


def _filled(table: Floats) -> Floats:
    """Mean over wordings; units without any get the others' mean."""
    means = row_means(table)
    return np.nan_to_num(means, nan=0.0 if np.isnan(means).all() else float(np.nanmean(means)))


class _StratumMeans:
    """The mean over strata and its influences as lines in the weight beta of the predictions.

    In a stratum with M units, n of them labelled, the estimate is mean(y) + lam * (mean of f on
    unlabelled units - mean of f on labelled ones), with lam = beta * (M - n) / M.
    """

    def __init__(self, y: Floats, given: Bools, stratum: Codes, codes: Codes) -> None:
        self.y, self.given, self.stratum = np.where(given, y, 0.0), given, stratum
        self.size = len(y)
        units, labelled = np.bincount(stratum), np.bincount(stratum[given])
        self.share, self.rest = units / self.size, (units - labelled) / units
        self.scale = self.share / labelled
        cells = stratum * (int(codes.max()) + 1) + codes
        in_cell = np.bincount(cells[given], minlength=int(cells.max()) + 1)
        clusters = np.bincount(
            np.flatnonzero(in_cell) // (int(codes.max()) + 1), minlength=len(units)
        )
        # A large cluster draws the mean towards itself and hides its spread (Bell & McCaffrey 2002,
        # CR2). One labelled cluster in a stratum shows none; it keeps the factor of two.
        part = (in_cell[cells] / labelled[stratum])[given]
        least_clusters = np.maximum(clusters, 2)[stratum[given]]
        self.inflate = np.ones(self.size)
        self.inflate[given] = 1 / np.sqrt(np.maximum(1 - part, 1 / least_clusters))

    def _mean(self, x: Floats, mask: Bools) -> Floats:
        """Mean of x on the units of the mask in each stratum; 0 where there are none."""
        k = len(self.share)
        count = np.bincount(self.stratum[mask], minlength=k)
        sums = np.bincount(self.stratum[mask], x[mask], minlength=k)
        return np.asarray(sums / np.maximum(count, 1), dtype=np.float64)

    def lines(self, f: Floats) -> tuple[Floats, Floats, Floats]:
        """The mean, each unit's influence on it, and the part that rests on its label."""
        h, mask = self.stratum, self.given
        labelled, unlabelled = self._mean(f, mask), self._mean(f, ~mask)
        label_means = self._mean(self.y, mask)
        gap = self.rest * (labelled - unlabelled)
        scale = np.where(mask, self.scale[h] * self.inflate, 0.0)
        labels = scale[:, None] * np.column_stack([self.y - label_means[h], f - labelled[h]])
        units = labels.copy()
        units[:, 1] = np.where(mask, self.rest[h] * labels[:, 1], -(f - unlabelled[h]) / self.size)
        means = np.column_stack([label_means, gap])
        mean = self.share @ means
        return mean, units + (means - mean)[h] / self.size, labels


def _tuned_weight(y: Floats, f: Floats, mask: Bools) -> float:
    """The weight of least variance, in [0, 1] (Angelopoulos, Duchi & Zrnic 2023, section 6)."""
    n, n_unlabelled = int(mask.sum()), int((~mask).sum())
    spread = float(f.var(ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((y[mask] - y[mask].mean()) * (f[mask] - f[mask].mean())))
    return min(1.0, max(0.0, shared / ((1 + n / n_unlabelled) * spread)))


def _stratum_codes(strata: Any, is_labelled: Bools) -> Codes:
    """Codes of strata, of which those with fewer than two labels are joined to a neighbour."""
    if strata is None:
        return np.zeros(len(is_labelled), dtype=np.intp)
    _, codes = np.unique(np.asarray(strata), return_inverse=True)
    while (count := np.bincount(codes[is_labelled], minlength=int(codes.max()) + 1)).min() < 2:
        if len(count) == 1:
            break
        stratum = int(count.argmin())
        neighbour = stratum - 1 if stratum else 1
        codes = np.where(codes == stratum, neighbour, codes)
        _, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.intp)
