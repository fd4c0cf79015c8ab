"""Where the variance of a verdict comes from: item, wording, format, order or rerun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.result import ResultMapping

FACTORS = ("item", "template", "order")

Bounds = tuple[float | None, float | None]

ITEM, RERUN = "item", "rerun"

LEVERS: Mapping[str, str] = {
    "wording": "average several wordings",
    "format": "keep one format, or average several",
    "order": "average both option orders",
    RERUN: "ask each prompt several times",
}
"""What reduces each source of noise."""


def label_components(labels: npt.ArrayLike) -> dict[str, float]:
    """Variance components of nominal decisions: those of each label's 0/1 column, summed.

    All factors are random. Analysis-of-variance estimates from expected mean squares (Brennan 2001,
    "Generalizability Theory", section 3.3): the variance of a source is the alternating sum of the
    mean squares of the sources that contain it, divided by the number of scores that a level of it
    averages over. The total is the Gini-Simpson index of the labels (Light & Margolin 1971,
    CATANOVA), so a share of it is a share of the chance that two decisions differ.

    Args:
        labels: strings, shape (items, templates) or (items, templates, orders), at least two items
            and two templates.

    Returns:
        Source -> variance, 0 in place of a negative estimate: `item`, `template`, `order`, their
        pairs (`item:template`, ...) if the grid separates them, and `residual`, the highest
        interaction.

    >>> label_components([["A", "B"], ["A", "B"]])
    {'item': 0.0, 'template': 1.0, 'residual': 0.0}
    """
    grid = np.asarray(labels, dtype=object)
    scores = np.stack([grid == name for name in sorted(set(grid.ravel()))], -1).astype(float)
    size = {name: n for name, n in zip(FACTORS, grid.shape, strict=False) if n > 1}
    axes = {name: axis for axis, name in enumerate(FACTORS[: grid.ndim])}
    sources = [s for r in range(1, len(size) + 1) for s in combinations(size, r)]
    means = {
        source: scores.mean(axis=tuple(axes[n] for n in axes if n not in source), keepdims=True)
        for source in [(), *sources]
    }
    averaged = {
        source: int(np.prod([n for name, n in size.items() if name not in source]))
        for source in sources
    }
    square: dict[tuple[str, ...], float] = {}
    for source in sources:
        effect = sum(
            (-1) ** (len(source) - len(part)) * means[part]
            for r in range(len(source) + 1)
            for part in combinations(source, r)
        )
        degrees = int(np.prod([size[name] - 1 for name in source]))
        square[source] = float((effect**2).sum()) * averaged[source] / degrees
    found = {}
    for source in sources:
        value = sum(
            (-1) ** (len(wider) - len(source)) * square[wider]
            for wider in sources
            if set(source) <= set(wider)
        )
        name = "residual" if len(source) == len(size) else ":".join(source)
        found[name] = max(0.0, value / averaged[source])
    return found


@dataclass(frozen=True, eq=False)
class VarianceBudget(ResultMapping):
    """Where the variance of a verdict comes from.

    ``variances`` maps each source to its estimate, 0 in place of a negative one: ``item`` (what
    should decide), the sources that were paired, and ``rerun``; ``unbiased`` has the negative ones
    too. ``intervals`` has the ends of each,
    (None, None) with a single cluster. ``shares`` are parts of the noise, which is all but the
    item; None without any noise. ``lever`` is the largest of them. Nominal verdicts: the unit is
    the chance that two verdicts differ; scales: squared levels. Without reruns, ``rerun`` is None
    and every source includes its noise.
    """

    variances: dict[str, float | None]
    unbiased: dict[str, float]
    intervals: dict[str, Bounds]
    shares: dict[str, float | None]
    lever: str | None
    n_clusters: int


def variance_budget(
    base: Any,
    clusters: Any,
    pairs: Mapping[str, tuple[Any, Any, Any]],
    *,
    ordinal: bool = False,
) -> VarianceBudget:
    """Split the variance of verdicts asked in a star design: one source changed at a time.

    The model is y = item + wording + format + order + rerun, every effect random and specific to
    the item. Two answers that differ in one source alone have an expected half squared difference
    of that source plus the rerun noise (the semivariance; Matheron 1963), and two items that of all
    sources. So each component is a difference of means, unbiased whatever the distribution.
    Nominal verdicts count as 0/1 for each label, so the half squared difference is 1 if they differ
    (Light & Margolin 1971).

    Intervals: each mean has a clustered Wilson interval (nominal) or, on scales, that of a variance
    with degrees of freedom from a delete-one-cluster jackknife; those of a component are combined
    by MOVER (Zou & Donner 2008). The item's is a jackknife, on scales that of the logarithm.

    Args:
        base: shape (n,), the verdict on the base prompt of each item, as numbers: codes of nominal
            labels or levels.
        clusters: shape (n,), what is independent.
        pairs: source -> (one, other, clusters), shape (m,) each: verdicts that differ in the source
            alone. ``rerun`` is the same prompt asked again.
        ordinal: whether the numbers are levels.

    Returns:
        The budget.

    >>> y, c = [0, 1, 0, 1], ["a", "b", "c", "d"]
    >>> found = variance_budget(y, c, {"wording": (y, [1, 1, 0, 1], c), "rerun": (y, y, c)})
    >>> found.variances["wording"], found.variances["rerun"], found.lever
    (0.25, 0.0, 'wording')
    """
    values = np.asarray(base, np.float64)
    sides = {}
    for source, (one, other, own) in pairs.items():
        if len(one):
            gap = np.asarray(one, np.float64) - np.asarray(other, np.float64)
            sides[source] = (gap**2 / 2 if ordinal else (gap != 0).astype(float), list(own))
    ids = [*clusters, *(cluster for _, own in sides.values() for cluster in own)]
    codes, k = cluster_codes(ids, len(ids))
    at = len(values)
    levels = values[:, None] if ordinal else values[:, None] == np.unique(values)
    sums = {ITEM: _sums(levels.astype(float), codes[:at], k)}
    for source, (apart, own) in sides.items():
        sums[source] = _sums(apart[:, None], codes[at : at + len(own)], k)
        at += len(own)
    whole = {source: total.sum(0) for source, total in sums.items()}
    # All estimates with one cluster left out, then with all of them, shape (k + 1,) each.
    parts = {s: np.vstack([whole[s] - total, whole[s]]) for s, total in sums.items()}
    found = _components(parts)
    intervals = {
        source: _interval(source, estimates, parts, sides, ordinal)
        for source, estimates in found.items()
    }
    variances: dict[str, float | None] = {
        source: max(0.0, float(estimates[-1])) for source, estimates in found.items()
    }
    noise = {s: v for s, v in variances.items() if s != ITEM and v is not None}
    total = sum(noise.values())
    shares: dict[str, float | None] = {s: v / total if total else None for s, v in noise.items()}
    if RERUN not in variances:
        variances[RERUN], intervals[RERUN] = None, (None, None)
    lever = max(noise, key=lambda source: noise[source]) if total else None
    unbiased = {source: float(estimates[-1]) for source, estimates in found.items()}
    return VarianceBudget(variances, unbiased, intervals, shares, lever, k)


def _sums(values: Floats, codes: Any, k: int) -> Floats:
    """By cluster: the rows, then each column's sum and sum of squares."""
    columns = [np.ones(len(values)), *values.T, *(values.T**2)]
    return np.stack([np.bincount(codes, column, minlength=k) for column in columns], 1)


def _components(parts: Mapping[str, Floats]) -> dict[str, Floats]:
    means = {source: _mean(total) for source, total in parts.items() if source != ITEM}
    rerun = means.pop(RERUN, None)
    found = {source: mean - (0 if rerun is None else rerun) for source, mean in means.items()}
    if rerun is not None:
        found[RERUN] = rerun
    n, half = np.maximum(parts[ITEM][:, :1], 1), (parts[ITEM].shape[1] - 1) // 2
    mean, square = parts[ITEM][:, 1 : 1 + half] / n, parts[ITEM][:, 1 + half :] / n
    total = ((square - mean**2) * n / np.maximum(n - 1, 1)).sum(1)
    return {ITEM: total - np.sum(list(found.values()), axis=0), **found}


def _interval(
    source: str,
    estimates: Floats,
    parts: Mapping[str, Floats],
    sides: Mapping[str, tuple[Floats, list[Any]]],
    ordinal: bool,
) -> Bounds:
    if len(estimates) < 3:
        return None, None
    if source == ITEM:
        ends = _jackknife(estimates, log=ordinal)
    else:
        ends = _apart(source, parts, sides, ordinal)
        if source != RERUN and RERUN in sides:
            again, changed = (float(_mean(parts[name])[-1]) for name in (RERUN, source))
            noise = _apart(RERUN, parts, sides, ordinal)
            ends = _difference(again, changed, noise, ends)
    if ends.low is None or ends.high is None:
        return None, None
    return max(0.0, ends.low), max(0.0, ends.high)


def _mean(total: Floats) -> Floats:
    found: Floats = total[:, 1] / np.maximum(total[:, 0], 1)
    return found


def _apart(
    source: str,
    parts: Mapping[str, Floats],
    sides: Mapping[str, tuple[Floats, list[Any]]],
    ordinal: bool,
) -> Interval:
    """The interval of the mean half squared difference under a source."""
    apart, own = sides[source]
    some = wilson_cluster(apart > 0, own)
    if not ordinal:
        return some
    if not apart.any():
        # Nobody moved: the upper end for one level.
        return Interval(0.0, None if some.high is None else some.high / 2)
    return _chi_square(_mean(parts[source]), len(apart))


def _difference(one: float, two: float, first: Interval, second: Interval) -> Interval:
    """MOVER's two - one, without difference_interval's ends of -1 and 1.

    Both share the base's answers, so to take them as independent is on the safe side.
    """
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(None, None)
    down = np.hypot(two - second.low, first.high - one)
    up = np.hypot(second.high - two, one - first.low)
    return Interval(float(two - one - down), float(two - one + up))


def _chi_square(estimates: Floats, rows: int) -> Interval:
    """The interval of a mean of squares, as that of a variance.

    The degrees of freedom follow from the delete-one-cluster jackknife (Satterthwaite 1946), at
    most one per row, since few clusters show too little of their spread. A mean within two standard
    errors of 0 has Student's t.
    """
    from scipy.special import chdtri

    whole, error = float(estimates[-1]), _error(estimates)
    if whole <= 2 * error:
        return _jackknife(estimates)
    freedom = min(2 * (whole / error) ** 2, rows) if error else rows
    return Interval(*(freedom * whole / float(chdtri(freedom, tail)) for tail in (0.025, 0.975)))


def _error(estimates: Floats) -> float:
    """The standard error by the delete-one-cluster jackknife."""
    leave_out = estimates[:-1]
    k = len(leave_out)
    return float(np.sqrt((k - 1) / k * ((leave_out - leave_out.mean()) ** 2).sum()))


def _jackknife(estimates: Floats, *, log: bool = False) -> Interval:
    """Student's t on the delete-one-cluster jackknife, on the log scale if ``log``.

    Variances are skewed: their logarithm is closer to normal (Bartlett & Kendall 1946). An
    estimate within two standard errors of 0 keeps its own scale.
    """
    from scipy.special import stdtrit

    whole, error = float(estimates[-1]), _error(estimates)
    half = float(stdtrit(len(estimates) - 2, 0.975)) * error
    if log and whole > 2 * error:
        factor = float(np.exp(half / whole))
        return Interval(whole / factor, whole * factor)
    return Interval(whole - half, whole + half)
