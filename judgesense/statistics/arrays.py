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
