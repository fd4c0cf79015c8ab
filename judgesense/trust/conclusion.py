"""What a cell's interval says about the JSS threshold, and how many items would settle it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.decisions.streams import distinct
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.planning import items_needed
from judgesense.trust.thresholds import LEAST_COVERAGE, MOST_ITEMS, STEADY_JSS


def verdict(cell: Mapping[str, Any]) -> str:
    """``reliable``, ``unstable``, ``undecided`` or ``degenerate``: by the interval.

    Without a JSS (no pairs, or none decided) it is ``undecided``, and ``degenerate`` says why JSS
    is undefined.

    >>> verdict({"jss": 0.9, "ci_low": 0.85, "ci_high": 0.94, "degenerate": None})
    'reliable'
    """
    if cell["jss"] is None:
        return "undecided"
    if cell["degenerate"] is not None:
        return "degenerate"
    if cell["ci_low"] is not None and cell["ci_low"] > STEADY_JSS:
        return "reliable"
    if cell["ci_high"] is not None and cell["ci_high"] < STEADY_JSS:
        return "unstable"
    return "undecided"


def can_be_settled(cell: Mapping[str, Any]) -> bool:
    """Whether more items may settle a cell: it is undecided, and most of its pairs are decided."""
    covered = cell["coverage"] is not None and cell["coverage"] >= LEAST_COVERAGE
    return cell["verdict"] == "undecided" and covered


def items_to_settle(
    agree: npt.NDArray[np.bool_],
    clusters: npt.NDArray[Any],
    items: npt.NDArray[Any],
    threshold: float = STEADY_JSS,
) -> int | None:
    """Return how many items would move the interval off the threshold, all else being equal.

    Args:
        agree: whether the two wordings of each decided pair agree, n values.
        clusters: cluster of each pair, n values.
        items: item of each pair, n values.
        threshold: the JSS to be settled.

    Returns:
        Number of items in total; None above `MOST_ITEMS`, and where one cluster alone gives no
        intra-cluster correlation.
    """
    icc = wilson_cluster(agree, clusters).icc if len(agree) else None
    if icc is None:
        return None
    k = distinct(clusters)
    needed = items_needed(float(agree.mean()), len(agree) / k, icc, threshold=threshold)
    if needed is None or needed > MOST_ITEMS:
        return None
    # Clusters of unequal size are worth less than the equal ones of the plan.
    return int(np.ceil(max(needed, k + 1) * distinct(items) / k))
