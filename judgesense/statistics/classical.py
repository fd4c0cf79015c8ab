"""Classical tests that the papers report: Wilcoxon, ANOVA, Cohen's d, chi-square, Bonferroni."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judgesense.statistics.result import ResultMapping


@dataclass(frozen=True, eq=False)
class TestResult(ResultMapping):
    """A test: its statistic, p-value, degrees of freedom and effect size.

    `effect_name` names `effect` (eta squared, Cramer's V, the matched-pairs rank-biserial
    correlation). An undefined figure is None, and `degenerate` says why.
    """

    __test__ = False  # not a test of pytest's

    statistic: float | None
    p_value: float | None
    df: tuple[float, ...]
    effect: float | None
    effect_name: str
    n: int
    degenerate: str | None = None


def wilcoxon(first: npt.ArrayLike, second: npt.ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test of paired numbers, such as paraphrase against same-prompt spread.

    Zero differences are dropped. The p-value is two-sided; `scipy.stats.wilcoxon` chooses between
    exact and normal ("All Prompts Created Equal", same-prompt baseline).

    Args:
        first: shape (n,).
        second: shape (n,), paired with `first`.

    Returns:
        The statistic (the smaller rank sum) and the rank-biserial correlation of first - second;
        undefined if all pairs are equal. `n` counts the differing pairs.

    >>> result = wilcoxon([3, 4, 5, 6], [1, 1, 1, 1])
    >>> result.statistic, result.p_value, result.effect
    (0.0, 0.125, 1.0)
    """
    from scipy import stats

    gaps = np.asarray(first, float) - np.asarray(second, float)
    gaps = gaps[gaps != 0]
    name = "rank-biserial"
    if not len(gaps):
        return TestResult(None, None, (), None, name, 0, "all pairs are equal")
    result = stats.wilcoxon(gaps)
    ranks = stats.rankdata(np.abs(gaps))
    effect = float((ranks * np.sign(gaps)).sum() / ranks.sum())
    return TestResult(float(result.statistic), float(result.pvalue), (), effect, name, len(gaps))


def anova(groups: Sequence[npt.ArrayLike], welch: bool = False) -> TestResult:
    """One-way analysis of variance with eta squared = SSB / SST.

    F = (SSB / (g - 1)) / (SSW / (n - g)); Welch's form (1951) weighs groups by n_i / s_i^2 and does
    not assume equal variances.

    Args:
        groups: at least two groups of numbers, more numbers than groups; Welch's form needs two
            numbers in each.
        welch: use Welch's form.

    Returns:
        F, its p-value, degrees of freedom (between, within); undefined without variance within.

    >>> result = anova([[1, 2, 3], [2, 3, 4]])
    >>> result.statistic, result.df
    (1.5, (1.0, 4.0))
    """
    from scipy.special import fdtrc

    data = [np.asarray(group, float) for group in groups]
    sizes = np.array([len(group) for group in data], dtype=float)
    g, n = len(data), int(sizes.sum())
    means = np.array([group.mean() for group in data])
    within_each = np.array([((x - m) ** 2).sum() for x, m in zip(data, means, strict=True)])
    between = float((sizes * (means - np.concatenate(data).mean()) ** 2).sum())
    within = float(within_each.sum())
    constant = np.array([bool((x == x[0]).all()) for x in data])
    name = "eta_squared"
    if constant.all() and len({float(x[0]) for x in data}) == 1:
        return TestResult(None, None, (), None, name, n, "all numbers are equal")
    eta = between / (between + within)
    if constant.all() or (welch and constant.any()):
        return TestResult(None, None, (), eta, name, n, "no variance within a group")
    if welch:
        weight = sizes * (sizes - 1) / within_each
        centre = float(weight @ means / weight.sum())
        spread = float((((1 - weight / weight.sum()) ** 2) / (sizes - 1)).sum())
        top = float((weight * (means - centre) ** 2).sum()) / (g - 1)
        f = top / (1 + 2 * (g - 2) / (g**2 - 1) * spread)
        df = (float(g - 1), (g**2 - 1) / (3 * spread))
    else:
        f = (between / (g - 1)) / (within / (n - g))
        df = (float(g - 1), float(n - g))
    return TestResult(f, float(fdtrc(*df, f)), df, eta, name, n)


def cohens_d(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Cohen's d: the difference of means in pooled standard deviations (Cohen 1988, section 2.2).

    Args:
        first: shape (n,).
        second: shape (m,).

    Returns:
        d of first - second; None if the standard deviation is 0 or cannot be estimated.

    >>> cohens_d([2, 3, 4], [1, 2, 3])
    1.0
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    if len(x) + len(y) < 3 or ((x == x[0]).all() and (y == y[0]).all()):
        return None
    squares = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    return float((x.mean() - y.mean()) / np.sqrt(squares / (len(x) + len(y) - 2)))


def chi_square(table: npt.ArrayLike) -> TestResult:
    """Pearson's chi-square test of independence, without continuity correction.

    Args:
        table: counts, shape (r, c), r and c at least 2.

    Returns:
        The statistic, its p-value and Cramer's V; undefined if fewer than two rows or columns hold
        counts (empty ones are left out of the degrees of freedom).

    >>> result = chi_square([[10, 0], [0, 10]])
    >>> result.statistic, result.effect
    (20.0, 1.0)
    """
    from scipy.stats import chi2_contingency

    counts = np.asarray(table, float)
    kept = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n = float(counts.sum())
    name = "cramers_v"
    if min(kept.shape) < 2:
        return TestResult(None, None, (), None, name, int(n), "one row or column holds all counts")
    found = chi2_contingency(kept, correction=False)
    statistic = float(found.statistic)
    effect = float(np.sqrt(statistic / (n * (min(kept.shape) - 1))))
    return TestResult(statistic, float(found.pvalue), (float(found.dof),), effect, name, int(n))


def bonferroni(p_values: Sequence[float | None]) -> list[float | None]:
    """Multiply each p-value by the number of tests, at most 1; None (no test) stays None.

    >>> bonferroni([0.01, None, 0.75])
    [0.02, None, 1.0]
    """
    size = sum(p is not None for p in p_values)
    return [None if p is None else min(1.0, p * size) for p in p_values]
