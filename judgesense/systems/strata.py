"""Strata of outputs on which a judge is alike wrong: what labels are picked from.

A stratum depends on the verdicts alone, so that it can be computed again when the labels are back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes
from judgesense.systems.units import Units

PARTS = 6
"""Strata of a system, at most."""


def strata_of(units: Units) -> npt.NDArray[np.object_]:
    """The stratum of each output, shape (n,): the system's number and the part of its outputs.

    Outputs are ordered from surely bad to surely good and cut into parts of about equal size where
    the order changes: by mean verdict over wordings, then by how sure the judge is (the margin,
    negative below the middle of the scale). Doubtful outputs so have strata of their own.
    """
    found = np.empty(len(units), dtype=object)
    means = units.means
    known = means[~np.isnan(means)]
    middle = (known.max() + known.min()) / 2 if len(known) else 0.0
    sure = np.where(np.isnan(units.margin), 0.0, units.margin)
    sure = np.where(means < middle, -sure, sure)
    for code in range(len(units.systems)):
        own = np.flatnonzero(units.of(code))
        # Outputs without a verdict come first.
        first = np.where(np.isnan(means[own]), -np.inf, means[own])
        keys = np.column_stack([np.round(first, 9), np.round(sure[own], 9)])
        _, rank = np.unique(keys, axis=0, return_inverse=True)
        for row, part in zip(own, _cut(rank.ravel(), PARTS), strict=True):
            found[row] = f"{code}/{part}"
    return found


def _cut(ranks: Codes, parts: int) -> Codes:
    """Codes of up to ``parts`` groups of about equal size, equal ranks together."""
    counts = np.bincount(ranks)
    # A rank belongs to the part in which the middle of its run lies.
    middle = (np.cumsum(counts) - counts / 2) / len(ranks)
    group = np.minimum((middle * parts).astype(np.intp), parts - 1)
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(group[ranks], dtype=np.intp)
