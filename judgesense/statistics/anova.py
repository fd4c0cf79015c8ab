"""One-way analysis of variance: classic, Welch's, and the interval of η²."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Anova:
    """A one-way ANOVA of g groups with n numbers in all; None where a figure is undefined.

    ``eta_squared`` is SSB / SST, with a 95% interval. The ``welch_`` figures do not assume that the
    groups have one variance; they need two numbers that differ in every group.
    """

    n: int | None = None
    f: float | None = None
    df: tuple[int, int] | None = None
    p: float | None = None
    eta_squared: float | None = None
    eta_low: float | None = None
    eta_high: float | None = None
    welch_f: float | None = None
    welch_df: float | None = None
    welch_p: float | None = None


def one_way_anova(groups: Sequence[Sequence[float]]) -> Anova:
    """The ANOVA of some groups of numbers.

    Every figure is None with fewer than two groups, or without more numbers than groups.

    Source: Welch (1951), *On the comparison of several mean values*.

    >>> one_way_anova([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]).f
    1.5
    """
    from scipy.stats import f as f_distribution

    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    g, n = len(groups), len(values)
    if g < 2 or n <= g:
        return Anova()
    if np.ptp(values) == 0:
        return Anova(n)
    total = float(((values - values.mean()) ** 2).sum())
    within = sum(float(((np.array(group) - np.mean(group)) ** 2).sum()) for group in groups)
    eta = 1 - within / total
    if not any(np.ptp(group) > 0 for group in groups):
        return Anova(n, eta_squared=eta)
    f = (total - within) / (g - 1) / (within / (n - g))
    p = float(f_distribution.sf(f, g - 1, n - g))
    low, high = eta_squared_interval(f, g - 1, n - g)
    welch: tuple[float | None, ...] = (None, None, None)
    if all(np.ptp(group) > 0 for group in groups):
        sizes = np.array([len(group) for group in groups])
        weights = sizes / np.array([np.var(group, ddof=1) for group in groups])
        shares, means = weights / weights.sum(), np.array([np.mean(group) for group in groups])
        spread = float(((1 - shares) ** 2 / (sizes - 1)).sum())
        between = float((weights * (means - shares @ means) ** 2).sum()) / (g - 1)
        welch_f = between / (1 + 2 * (g - 2) / (g**2 - 1) * spread)
        degrees = (g**2 - 1) / (3 * spread)
        welch = welch_f, degrees, float(f_distribution.sf(welch_f, g - 1, degrees))
    return Anova(n, float(f), (g - 1, n - g), p, eta, low, high, *welch)


def eta_squared_interval(
    f: float, df_between: int, df_within: int, level: float = 0.95
) -> tuple[float, float]:
    """The interval of η² that belongs to an F statistic.

    It holds the η² of the noncentral F distributions of which ``f`` is no extreme value.

    Source: Smithson (2001), *Correct confidence intervals for various regression effect sizes*.

    >>> low, high = eta_squared_interval(143.76, 3, 353)
    >>> round(low, 3), round(high, 3)
    (0.482, 0.601)
    """
    from scipy.optimize import brentq
    from scipy.stats import ncf

    def end(tail: float) -> float:
        def excess(noncentrality: float) -> float:
            return float(ncf.cdf(f, df_between, df_within, noncentrality)) - tail

        # F's distribution moves right as the noncentrality grows, so its value at f falls.
        if excess(0.0) <= 0:
            return 0.0
        most = 1.0
        while excess(most) > 0:
            most *= 2
        ncp = float(brentq(excess, 0.0, most))
        return ncp / (ncp + df_between + df_within + 1)

    return end((1 + level) / 2), end((1 - level) / 2)
