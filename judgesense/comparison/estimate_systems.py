"""The systems of an estimate: what their scores are made of, and the prompts that two share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgesense.comparison.human_labels import Labels
from judgesense.comparison.outputs import Outputs
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.statistics.labelled import NOT_RANDOM, labelled_p
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    influence,
    naive_influence,
)

_FEWEST_COMMON = 15
"""Prompts that two systems have to share to be compared on them."""


@dataclass(frozen=True)
class SystemParts:
    """A system's mean verdicts and labels, NaN where unknown, and what its score is made of.

    ``strata`` is None for random labels, ``powered`` with too few labels. ``is_random`` is False
    where the verdicts show that the labels are no random part of the outputs; then nothing is
    corrected.
    """

    name: str
    means: Floats
    labels: Floats
    cluster: Codes
    strata: Words | None
    naive: Influence
    powered: Influence | None
    is_random: bool = True

    @property
    def n_labels(self) -> int:
        """How many outputs have a label."""
        return int((~np.isnan(self.labels)).sum())


@dataclass(frozen=True)
class SystemPair:
    """Two systems on the prompts that both answered, or a comparison of two (``x|y``).

    ``n_common`` is None where they have the same prompts; with fewer than `_FEWEST_COMMON` the
    systems are on all of their own.
    """

    systems: tuple[SystemParts, ...]
    n_common: int | None = None

    @property
    def is_apart(self) -> bool:
        """Whether the systems answered other prompts."""
        return self.n_common is not None and self.n_common < _FEWEST_COMMON


@dataclass(frozen=True)
class Systems:
    """What the systems' scores are made of; ``family`` is how many there are."""

    outputs: Outputs
    people: Labels
    strata: Words | None
    step: float
    family: int

    def of(self, code: int, common: Codes | None = None) -> SystemParts:
        """A system, on the clusters ``common`` if they are given.

        Raises JudgeSenseError if none of its outputs has a verdict.
        """
        outputs, rows = self.outputs, self.outputs.of(code)
        if common is not None:
            rows = rows & np.isin(outputs.cluster, common)
        name, predictions = outputs.systems[code], outputs.predictions[rows]
        if np.isnan(predictions).all():
            raise JudgeSenseError(f"no output of {name!r} has a verdict; judge some")
        cluster, labels, powered = outputs.cluster[rows], self.people.values[rows], None
        strata = None if self.strata is None else self.strata[rows]
        means, p_value = outputs.means[rows], None
        if strata is None:
            p_value = labelled_p(means, ~np.isnan(labels), cluster)
        is_random = p_value is None or p_value >= NOT_RANDOM / self.family
        step = self.step
        if is_random and (~np.isnan(labels)).sum() >= FEWEST_LABELS:
            powered = influence(labels, predictions, clusters=cluster, strata=strata, step=step)
        naive = naive_influence(predictions, clusters=cluster, step=step)
        return SystemParts(name, means, labels, cluster, strata, naive, powered, is_random)

    def paired(self, one: int, two: int) -> SystemPair:
        """Two systems on the prompts with a verdict on both."""
        known = ~np.isnan(self.outputs.means)
        own = [np.unique(self.outputs.cluster[self.outputs.of(c) & known]) for c in (one, two)]
        common = own[0][np.isin(own[0], own[1])]
        if len(common) == len(own[0]) == len(own[1]):
            return SystemPair((self.of(one), self.of(two)))
        shared = common if len(common) >= _FEWEST_COMMON else None
        return SystemPair((self.of(one, shared), self.of(two, shared)), len(common))
