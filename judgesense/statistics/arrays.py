"""The types of the arrays that figures are computed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Bools = npt.NDArray[np.bool_]

Codes = npt.NDArray[np.integer[Any]]
"""Whole numbers, mostly indices into a list of labels, items or clusters."""

Words = npt.NDArray[Any]
"""Strings, as objects."""


def row_means(table: Floats) -> Floats:
    """Mean of the known values of each row, shape (n,); NaN for a row of NaN."""
    is_defined = ~np.isnan(table)
    count = is_defined.sum(axis=1)
    sums = np.where(is_defined, table, 0.0).sum(axis=1)
    means: Floats = np.divide(sums, count, out=np.full(len(table), np.nan), where=count > 0)
    return means
