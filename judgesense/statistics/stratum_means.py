"""Means within strata from labels and predictions: what `prediction_powered` puts together."""

from __future__ import annotations

from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats


class StratumMeans:
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
        normal: bool,
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
        self.inflate = (
            np.ones(len(units)) if normal else np.sqrt(clusters / np.maximum(clusters - 1, 0.5))
        )

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


def tuned_weight(y: Floats, f: Floats, given: Bools) -> float:
    """The weight of least variance, in [0, 1] (Angelopoulos, Duchi & Zrnic 2023, section 6)."""
    n, rest = int(given.sum()), int((~given).sum())
    spread = float(f.var(ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((y[given] - y[given].mean()) * (f[given] - f[given].mean())))
    return min(1.0, max(0.0, shared / ((1 + n / rest) * spread)))


def stratum_codes(strata: Any, given: Bools) -> Codes:
    """Codes of strata, of which those with fewer than two labels are joined to a neighbour."""
    if strata is None:
        return np.zeros(len(given), dtype=np.intp)
    if len(strata) != len(given):
        raise ValueError(f"strata has {len(strata)} rows and labels {len(given)}: pass one each")
    _, codes = np.unique(np.asarray(strata), return_inverse=True)
    while (count := np.bincount(codes[given], minlength=int(codes.max()) + 1)).min() < 2:
        if len(count) == 1:
            break
        short = int(count.argmin())
        other = short - 1 if short else 1
        codes = np.where(codes == short, other, codes)
        _, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.intp)
