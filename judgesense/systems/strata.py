"""Strata of outputs that a judge finds alike hard: what labels are picked from.

A stratum depends on the verdicts alone, so that it can be computed again when the labels are back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judgesense.systems.units import Units
from judgesense.systems.verdict_schema import Floats

BY_VERDICT, BY_DOUBT = 3, 2
"""Strata of a system: thirds by verdict, each cut into halves by how unsure the judge is."""


def strata_of(units: Units) -> npt.NDArray[np.object_]:
    """The stratum of each output, shape (n,): ``system/verdict third/half by doubt``.

    Outputs are ordered by mean verdict and cut where verdicts differ, so that equal verdicts share
    a stratum. Doubt is the spread over wordings, or else a small margin.
    """
    found = np.empty(len(units), dtype=object)
    means, doubt = units.means, doubt_of(units)
    for code in range(len(units.systems)):
        own = np.flatnonzero(units.of(code))
        known = np.where(np.isnan(means[own]), -np.inf, means[own])
        by_verdict = _cut(known, BY_VERDICT)
        for part in np.unique(by_verdict):
            rows = own[by_verdict == part]
            for row, half in zip(rows, _cut(doubt[rows], BY_DOUBT), strict=True):
                found[row] = f"{code}/{part}/{half}"
    return found


def doubt_of(units: Units) -> Floats:
    """How unsure the judge is of each output, shape (n,): larger is less sure; 0 if nothing shows.

    The standard deviation over wordings where there are several, else minus the margin.
    """
    if len(units.wordings) > 1:
        known = ~np.isnan(units.predictions)
        centred = np.where(known, units.predictions - units.means[:, None], 0.0)
        spread = (centred**2).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        return np.asarray(np.sqrt(spread), dtype=np.float64)
    return np.asarray(np.where(np.isnan(units.margin), 0.0, -units.margin))


def _cut(values: Floats, parts: int) -> npt.NDArray[np.intp]:
    """Codes of up to ``parts`` groups of about equal size, equal values together."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    # A value belongs to the part in which the middle of its run lies.
    middle = (np.cumsum(counts) - counts / 2) / len(values)
    group = np.minimum((middle * parts).astype(np.intp), parts - 1)
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(group[place], dtype=np.intp)
