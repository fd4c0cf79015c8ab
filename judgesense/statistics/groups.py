"""Which groups of items fare worse than the rest, corrected for the number of groups."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.comparison import holm
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import Interval, difference_interval, wilson, wilson_cluster

SMALLEST = 10
"""Items that a group needs, and those outside it."""

_ERROR = 1 - 0.95

_MOST_LIKELY = 40.0
"""The quantile beyond which a difference is as good as certain."""


def compare_groups(
    values: npt.ArrayLike, groups: dict[str, npt.NDArray[Any]], clusters: Any = None
) -> list[dict[str, Any]]:
    """Compare each group of items with all items outside it, the worst difference first.

    Newcombe's interval (1998) of two shares, each on its effective size (`wilson_cluster`), with
    Holm's correction over all groups. Two groups that are each other's rest are one comparison;
    the worse one is reported. A group needs `SMALLEST` items, and as many outside. The interval of
    a difference is that of the level at which Holm's procedure tests the group, so that it leaves
    out 0 exactly if ``p_holm`` is at most 0.05.

    Args:
        values: from 0 to 1 for each item, shape (n,), such as whether it is right.
        groups: the name of each item's group by what groups them, shape (n,) each; "" is none.

    >>> right = np.array([1.0] * 40 + [0.0] * 30 + [1.0] * 10)
    >>> (worse,) = compare_groups(right, {"source": np.repeat(["a", "b"], 40)})
    >>> worse["name"], worse["estimate"], worse["rest"], worse["p_holm"] < 0.001
    ('b', 0.25, 1.0, True)
    """
    from scipy.special import stdtr, stdtrit

    shares = np.asarray(values, dtype=float)
    codes, _ = cluster_codes(clusters, len(shares))
    compared = [
        test for by, names in groups.items() for test in _comparisons(by, names, shares, codes)
    ]
    p_values = []
    for _, parts, df in compared:
        # The level at which the interval touches 0.
        low, high = 0.0, _MOST_LIKELY
        for _ in range(40):
            middle = (low + high) / 2
            ends = _gap(parts, middle)
            low, high = (low, middle) if ends[0] <= 0 <= ends[1] else (middle, high)
        p_values.append(float(2 * stdtr(df, -low)))
    adjusted = holm(p_values)
    order = sorted(range(len(compared)), key=p_values.__getitem__)
    results, n_left = [], len(order)
    for rank, at in enumerate(order):
        (names, parts, df), p_holm = compared[at], adjusted[at]
        assert p_holm is not None
        # Holm stops at the first test that does not reject: the others share its level.
        n_left = len(order) - rank if p_holm <= _ERROR or not rank else n_left
        ends = _gap(parts, float(stdtrit(df, 1 - _ERROR / n_left / 2)))
        (rest, _), (share, _) = parts
        results.append(
            {
                **dict(zip(("by", "name", "n"), names, strict=True)),
                "estimate": share,
                "rest": rest,
                "difference": share - rest,
                "ci_low": ends[0],
                "ci_high": ends[1],
                "p_value": p_values[at],
                "p_holm": p_holm,
            }
        )
    return sorted(results, key=operator.itemgetter("difference"))


Parts = tuple[tuple[float, float], tuple[float, float]]
"""The rest's share and effective number of items, and the group's."""


def _gap(parts: Parts, quantile: float) -> tuple[float, float]:
    """The interval of the group's share less the rest's: Newcombe's, on effective sizes."""
    rest, group = ((share, Interval(*wilson(share, n, quantile))) for share, n in parts)
    ends = difference_interval(rest, group, 0.0)
    assert ends.low is not None and ends.high is not None  # noqa: PT018
    return ends.low, ends.high


def _comparisons(
    grouping: str, names: npt.NDArray[Any], shares: Floats, clusters: npt.NDArray[Any]
) -> Iterator[tuple[tuple[str, str, int], Parts, int]]:
    """Each group with its grouping and size, its parts, and the degrees of freedom."""
    distinct = [name for name in dict.fromkeys(names.tolist()) if name != ""]
    means = {name: float(shares[names == name].mean()) for name in distinct}
    if len(distinct) == 2 and "" not in names:
        distinct = [min(distinct, key=means.__getitem__)]
    for name in distinct:
        mask = names == name
        if mask.sum() < SMALLEST or (~mask).sum() < SMALLEST:
            continue
        rest_n, own_n = (
            wilson_cluster(shares[part], clusters[part]).effective_n for part in (~mask, mask)
        )
        if rest_n is not None and own_n is not None:
            df = len(np.unique(clusters[mask])) + len(np.unique(clusters[~mask])) - 2
            parts = (float(shares[~mask].mean()), rest_n), (means[name], own_n)
            yield (grouping, str(name), int(mask.sum())), parts, df
