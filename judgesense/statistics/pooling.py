"""Pool one figure over judges: is its mean beyond a floor, with judges or their vendors as sample?

A judge's figure is ΔJSS: what rewording does beyond asking again (negative: less steady).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

NORMAL_95, POWER_80 = 1.96, 0.8416
"""The normal quantiles of a 95% interval and of 80% power, with the digits that v2 uses."""


Pooled = dict[str, Any]
"""The figures of `pooled`, by name."""


def pooled(values: Sequence[float], vendors: Sequence[str | None], floor: float) -> Pooled:
    """Pool the figures of judges, shape (n,), with each judge's vendor (None: unknown).

    The unweighted mean is tested under three assumptions on what is drawn independently: ``judges``
    is a z test on ``se`` = ``sd`` / sqrt(n); ``vendors`` the same mean with the sandwich error CR1
    over vendors, ``vendor_se``, and a t test on n - 1 degrees of freedom; ``vendor_means`` the t
    test of the vendors' own means. CR1 over few vendors rejects a true null in 6 to 8% of runs at
    5% (6 to 8 vendors, as in v2), the z test in up to 28%; vendor means keep 5%.

    Returns:
        These and ``mean``; of each test, ``*_p`` two-sided against 0 and ``*_p_floor`` one-sided
        against ``-floor``; ``judges`` and ``vendors`` are their numbers (0 vendors if one is
        unknown); ``detectable`` is the smallest mean found with 80% power. Undefined is None.

    >>> one = pooled([-0.1, -0.2, -0.3], ["a", "a", "b"], 0.02)
    >>> round(one["mean"], 3), one["vendors"], round(one["vendors_p_floor"], 3)
    (-0.2, 2, 0.113)
    """
    y = np.asarray(values, dtype=np.float64)
    n, k = len(y), 0
    mean = float(y.mean()) if n else None
    sd = float(y.std(ddof=1)) if n > 1 else None
    error = None if sd is None else sd / n**0.5
    vendor_mean: float | None = None
    cr1: float | None = None
    spread: float | None = None
    if n and None not in vendors:
        _, codes = np.unique(np.array(vendors, dtype=str), return_inverse=True)
        k = int(codes.max()) + 1
        means = np.bincount(codes, y) / np.bincount(codes)
        vendor_mean = float(means.mean())
        if k > 1:
            sums = np.bincount(codes, y - y.mean())
            cr1 = float(np.sqrt(k / (k - 1) * (sums**2).sum())) / n
            spread = float(means.std(ddof=1)) / k**0.5
    return {
        "judges": n,
        "mean": mean,
        "sd": sd,
        "se": error,
        "vendors": k,
        "vendor_se": cr1,
        "detectable": None if error is None else (NORMAL_95 + POWER_80) * error,
        **_test("judges", mean, error, floor, stats.norm),
        **_test("vendors", mean, cr1, floor, stats.t(k - 1)),
        **_test("vendor_means", vendor_mean, spread, floor, stats.t(k - 1)),
    }


def _test(
    name: str, mean: float | None, error: float | None, floor: float, drawn: Any
) -> dict[str, float | None]:
    names = f"{name}_p", f"{name}_p_floor"
    if mean is None or not error:
        return dict.fromkeys(names)
    p, p_floor = 2 * drawn.sf(abs(mean) / error), drawn.cdf((mean + floor) / error)
    return dict(zip(names, (float(p), float(p_floor)), strict=True))
