"""Comparing two judges on the same pairs; corrections over a family of comparisons."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import (
    Interval,
    booleans,
    cluster_codes,
    difference_interval,
    residual_correlation,
    wilson_from_sums,
)
from judgesense.statistics.labels import (
    Labels,
    check_labels,
    check_level,
    check_resamples,
    check_seed,
    encode_pair,
)
from judgesense.statistics.resampling import percentile_ends, resampled_sums
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.tables import numbers

_FEWEST_BOOTSTRAPPED = 20
"""Clusters from which the bootstrap-t holds its level better than sign flips."""


@dataclass(frozen=True, eq=False)
class PairedDifference(ResultMapping):
    """Difference between two judges' shares on the same pairs, second minus first.

    `n_undecided` counts the pairs left out because a judge gave no decision on a side. Interval and
    p-value are None with a single item or without pairs.
    """

    difference: float | None
    first: float | None
    second: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    method: str
    n_pairs: int
    n_items: int
    n_undecided: int = 0


NOTHING_COMPARED = PairedDifference(None, None, None, None, None, None, "permutation", 0, 0)
"""The difference of two judges without a row that both decided."""


def compare_jss(
    first: tuple[Labels, Labels],
    second: tuple[Labels, Labels],
    item_ids: Any = None,
    *,
    undecided: Collection[str] = UNDECIDED,
    **options: Any,
) -> PairedDifference:
    """Compare the JSS of two judges on the same pairs.

    Args:
        first: the first judge's decisions under the pairs' two prompts, shape (n,) each.
        second: the second judge's, for the same pairs in the same order.
        item_ids: one id per pair, or None.
        undecided: labels without a decision; pairs with one from either judge are left out.
        **options: of `paired_test`.

    Returns:
        The paired difference in JSS, second minus first.

    Raises:
        ValueError: as `agreement.jss`; also judges with unequal numbers of pairs.

    >>> compare_jss((["A", "B"], ["A", "A"]), (["A", "B"], ["A", "B"])).difference
    0.5
    """
    undecided = check_labels(undecided, "undecided")
    agree, decided = [], []
    for name, (one, two) in (("first", first), ("second", second)):
        names = (f"one stream of the {name} judge", f"the other of the {name} judge")
        a, b, labels = encode_pair(one, two, names)
        empty = [code for code, label in enumerate(labels) if label in undecided]
        agree.append(a == b)
        decided.append(~(np.isin(a, empty) | np.isin(b, empty)))
    if len(agree[0]) != len(agree[1]):
        raise ValueError(
            f"the first judge has {len(agree[0])} pairs and the second {len(agree[1])}: pass the "
            "pairs that both judged, in the same order"
        )
    clusters, _ = cluster_codes(item_ids, len(agree[0]))
    both = decided[0] & decided[1]
    left_out = int((~both).sum())
    if not both.any():
        method = str(options.get("method", "permutation"))
        return PairedDifference(None, None, None, None, None, None, method, 0, 0, left_out)
    result = paired_test(agree[0][both], agree[1][both], clusters[both], **options)
    return PairedDifference(**{**result.to_dict(), "n_undecided": left_out})


def paired_test(
    first: Any,
    second: Any,
    clusters: Any = None,
    *,
    method: str = "permutation",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Test whether two judges agree with themselves (or are right) equally often.

    "permutation" swaps the two judges' results within whole clusters (sign flips; all of them if
    they number at most `n_resamples`, otherwise drawn). The statistic is the cluster-robust t of
    the difference, so that clusters of unequal size or spread keep the level (wild cluster
    bootstrap, Cameron, Gelbach & Miller 2008; with one row per cluster, McNemar's exact test).
    Flips assume a symmetric difference per cluster, which clusters of several rows need not have:
    from 20 of those on, the p-value is the symmetric bootstrap-t's over clusters (Hall 1988). The
    interval is Newcombe's for paired shares (1998, method 10) on the clustered Wilson ends.
    "bootstrap" resamples clusters and gives the percentile interval and twice the smaller tail.

    Args:
        first: shape (n,), true if the first judge's two decisions are equal.
        second: shape (n,), the same pairs for the second judge.
        clusters: one id per pair, or None.
        method: "permutation" or "bootstrap".
        confidence_level: within (0, 1).
        n_resamples: number of resamples, or of sign flips.
        seed: seed for `numpy.random.default_rng`.

    Returns:
        The difference second - first and its two-sided p-value; a drawn p-value is never 0:
        (1 + hits) / (1 + B).

    Raises:
        ValueError: bad booleans, unequal lengths, or a bad option.

    >>> result = paired_test([1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0])
    >>> round(result.difference, 3), result.p_value
    (0.5, 0.25)
    """
    if method not in ("permutation", "bootstrap"):
        raise ValueError(f"method is {method!r}: pass 'permutation' or 'bootstrap'")
    a, b = booleans(first, "first"), booleans(second, "second")
    if len(a) != len(b):
        raise ValueError(f"first has {len(a)} rows and second {len(b)}: pass the same pairs")
    level, n_resamples = check_level(confidence_level), check_resamples(n_resamples)
    check_seed(seed)
    codes, k = cluster_codes(clusters, len(a))
    sizes = np.bincount(codes, minlength=k).astype(np.float64)
    hits = np.stack([np.bincount(codes, a, minlength=k), np.bincount(codes, b, minlength=k)])
    gaps = hits[1] - hits[0]
    interval, p_value = Interval(None, None), None
    if k > 1 and method == "bootstrap":
        sums = resampled_sums(np.column_stack([gaps, sizes]), n_resamples, seed)
        drawn = sums[:, 0] / sums[:, 1]
        interval = Interval(*percentile_ends(drawn, level))
        tail = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
        p_value = min(1.0, 2 * (1 + tail) / (1 + n_resamples))
    elif k > 1:
        interval = _newcombe(hits, sizes, level)
        p_value = _clustered_p(gaps, sizes, n_resamples, seed)
    return PairedDifference(
        difference=float(gaps.sum()) / len(a),
        first=float(a.mean()),
        second=float(b.mean()),
        ci_low=interval.low,
        ci_high=interval.high,
        p_value=p_value,
        method=method,
        n_pairs=len(a),
        n_items=k,
    )


def _newcombe(hits: npt.NDArray[Any], sizes: Floats, level: float) -> Interval:
    """Square-and-add interval of second - first with the correlation of the items' residuals."""
    shares = hits.sum(axis=1) / sizes.sum()
    one, two = (
        (float(share), wilson_from_sums(row, sizes, level))
        for share, row in zip(shares, hits, strict=True)
    )
    return difference_interval(one, two, residual_correlation(*(hits - shares[:, None] * sizes)))


def _clustered_p(gaps: Floats, sizes: Floats, n_resamples: int, seed: int) -> float:
    """Sign flips, or the bootstrap-t for many clusters of several rows."""
    # A difference that is the same in every cluster has no spread to resample.
    constant = np.ptp(gaps / sizes) < 1e-9
    if len(gaps) < _FEWEST_BOOTSTRAPPED or sizes.max() == 1 or constant:
        return _sign_flip_p(gaps, sizes, n_resamples, seed)
    return _bootstrap_t_p(gaps, sizes, n_resamples, seed)


def _squared_t(total: Floats, cross: Floats, gaps: Floats, sizes: Floats) -> Floats:
    """Squared cluster-robust t of the difference, up to a factor: total^2 / sum of residuals^2.

    ``total`` is the sum of the clusters' gaps and ``cross`` the sum of gap times size; both vary
    over the flips, while the sums of gap^2 and size^2 do not.
    """
    square = float((gaps**2).sum())
    mean = total / sizes.sum()
    residual = square - 2 * mean * cross + mean**2 * float((sizes**2).sum())
    t = np.full(np.shape(total), np.inf)
    np.divide(total**2, residual, out=t, where=residual > 1e-9 * square)
    return t


def _sign_flip_p(gaps: Floats, sizes: Floats, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of the robust t if each cluster's gap had the sign of a fair coin."""
    moved = np.column_stack([gaps, sizes])[gaps != 0]
    kinds, counts = np.unique(moved, axis=0, return_counts=True)
    k = len(moved)
    if k == 0:
        return 1.0
    weights = np.column_stack([kinds[:, 0], kinds.prod(axis=1)])
    exact = k < 60 and 2**k <= n_resamples
    if exact:
        signs = 1 - 2 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
        drawn = signs @ np.repeat(weights, counts, axis=0)
    else:
        # Among clusters with one gap and size, the number of plus signs is binomial.
        rng = np.random.default_rng(seed)
        plus = rng.binomial(counts, 0.5, size=(n_resamples, len(counts)))
        drawn = (2 * plus - counts) @ weights
    total, cross = (counts @ weights)[:, None]
    seen = _squared_t(total, cross, gaps, sizes)
    # Flips that tie with what was seen count, whatever the rounding.
    extreme = _squared_t(drawn[:, 0], drawn[:, 1], gaps, sizes) >= seen * (1 - 1e-9)
    return float(extreme.mean()) if exact else (1 + int(extreme.sum())) / (1 + n_resamples)


def _bootstrap_t_p(gaps: Floats, sizes: Floats, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of the robust t by resampling clusters around the difference seen."""
    stats = np.column_stack([gaps, sizes, gaps**2, gaps * sizes, sizes**2])

    def mean_and_spread(sums: Floats) -> tuple[Floats, Floats]:
        gap, size, squares, cross, sizes2 = sums.T
        mean = gap / size
        return mean, np.sqrt(np.maximum(squares - 2 * mean * cross + mean**2 * sizes2, 0)) / size

    mean, spread = mean_and_spread(stats.sum(axis=0)[None])
    drawn, spreads = mean_and_spread(resampled_sums(stats, n_resamples, seed))
    extreme = np.abs(drawn - mean) * spread >= np.abs(mean) * spreads * (1 - 1e-9)
    return (1 + int(extreme.sum())) / (1 + n_resamples)


def bonferroni(p_values: Sequence[float | None]) -> list[float | None]:
    """Multiply each p-value by the number of tests, at most 1; None (no test) stays None.

    Raises:
        ValueError: a p-value that is not a number in [0, 1].

    >>> bonferroni([0.01, None, 0.75])
    [0.02, None, 1.0]
    """
    known = _p_values(p_values)
    size = len(known)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, p in known:
        adjusted[place] = min(1.0, p * size)
    return adjusted


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment (1979), which controls the family-wise error rate.

    Returns:
        Adjusted p-values in the given order; None (no test) stays None and is not counted.

    Raises:
        ValueError: a p-value that is not a number in [0, 1].

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    known = sorted(_p_values(p_values), key=lambda pair: pair[1])
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (place, p) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def _p_values(p_values: Sequence[float | None]) -> list[tuple[int, float]]:
    known = [(place, p) for place, p in enumerate(p_values) if p is not None]
    for place, p in known:
        numbers([p], f"p_values (entry {place})")
        if not 0 <= p <= 1:
            raise ValueError(f"p_values[{place}] is {p}: pass numbers between 0 and 1, or None")
    return known
