"""Whether more items would settle on which side of the threshold a JSS lies, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.trust.settle import steady_plan
from judgesense.trust.thresholds import LEAST_COVERAGE, STEADY_JSS


def can_be_settled(cell: Mapping[str, Any], threshold: float = STEADY_JSS) -> bool:
    """Whether more items may settle a cell.

    Its interval includes the threshold, and at least half of its pairs are decided.

    >>> can_be_settled({"ci_low": 0.7, "ci_high": 0.9, "coverage": 1.0})
    True
    """
    if cell["ci_low"] is None or cell["coverage"] is None:
        return False
    includes: bool = cell["ci_low"] <= threshold <= cell["ci_high"]
    return includes and cell["coverage"] >= LEAST_COVERAGE


def items_to_settle(
    agree: npt.NDArray[np.bool_],
    clusters: npt.NDArray[Any],
    items: npt.NDArray[Any],
    threshold: float = STEADY_JSS,
) -> int | None:
    """Return how many items settle a JSS over these wordings with 80% probability.

    Args:
        agree: whether the two wordings of each decided pair agree, n values.
        clusters: cluster of each pair, n values.
        items: item of each pair, n values.
        threshold: the JSS to be settled.

    Returns:
        Number of items in total; None above `MOST_ITEMS`, and where one cluster alone gives no
        intra-cluster correlation.
    """
    one_wording = np.zeros(len(agree), np.intp)
    plan = steady_plan(
        agree, clusters, items, one_wording, one_wording, threshold=threshold, with_range=False
    )
    return None if plan is None else plan.items.clusters
