"""Whether more items may settle on which side of the threshold a JSS lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
