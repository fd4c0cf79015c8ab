"""Verdicts and labels in the shape that the statistics of systems take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    influence,
    naive_influence,
)
from judgesense.systems.human_labels import Labels
from judgesense.systems.strata import strata_of
from judgesense.systems.units import Units
from judgesense.systems.verdict_schema import VerdictTable


@dataclass(frozen=True)
class Part:
    """A system's units and what its score is made of; ``powered`` is None with too few labels."""

    name: str
    rows: Codes
    naive: Influence
    powered: Influence | None
    cluster: Codes


STEPS = 4
"""Steps of a scale of numbers, as on a scale of five points."""


def step_of(table: VerdictTable, units: Units, given: Labels, positive: str | None = None) -> float:
    """How far a label is off when it is off: 1 for two labels, else a quarter of the scale.

    The scale is what the source states, or what verdicts and labels show.
    """
    low, high = scale_of(table, units, positive)
    if low is None or high is None:
        shown = np.concatenate([units.predictions.ravel(), given.values])
        low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    two = units.comparative or table.good(positive) is not None
    return (high - low) / (1 if two else STEPS)


def scale_of(
    table: VerdictTable, units: Units, positive: str | None
) -> tuple[float | None, float | None]:
    """The ends of the labels' scale; None where the source does not state them."""
    if units.comparative or table.good(positive) is not None:
        return 0.0, 1.0
    if table.stated:
        scale = [float(label) for label in table.labels]
        return min(scale), max(scale)
    return None, None


class Data:
    """Verdicts and labels as arrays, in the shape that the statistics take."""

    def __init__(
        self, table: VerdictTable, units: Units, given: Labels, positive: str | None
    ) -> None:
        self.table, self.units, self.given = table, units, given
        self.strata = strata_of(units) if given.picked else None
        self.step = step_of(table, units, given, positive)
        self.ends = scale_of(table, units, positive)

    def powered(self, rows: Codes, labels: Floats, predictions: Floats) -> Influence | None:
        """The prediction-powered mean on some units; None with too few labels."""
        if (~np.isnan(labels)).sum() < FEWEST_LABELS:
            return None
        return influence(
            labels,
            predictions,
            clusters=self.units.cluster[rows],
            strata=None if self.strata is None else self.strata[rows].astype(str),
            step=self.step,
        )

    def naive(self, rows: Codes, predictions: Floats) -> Influence:
        """The mean verdict on some units."""
        return naive_influence(predictions, clusters=self.units.cluster[rows], step=self.step)

    def inside(self, value: float | None) -> float | None:
        """An end of an interval, kept on the scale."""
        low, high = self.ends
        return value if value is None or low is None or high is None else min(high, max(low, value))

    def system(self, code: int) -> Part:
        """A system's part."""
        units = self.units
        rows = np.flatnonzero(units.of(code))
        predictions = units.predictions[rows]
        if np.isnan(predictions).all():
            raise JudgeSenseError(
                f"{self.table.source}: no output of {units.systems[code]!r} has a verdict"
            )
        cluster = units.cluster[rows]
        return Part(
            units.systems[code],
            rows,
            self.naive(rows, predictions),
            self.powered(rows, self.given.values[rows], predictions),
            cluster,
        )


def chosen_systems(units: Units, systems: Sequence[str] | None) -> list[int]:
    """The codes of the systems asked for, all by default.

    Raises JudgeSenseError for a system without verdicts.
    """
    if systems is None:
        return list(range(len(units.systems)))
    known = list(units.systems)
    if units.comparative and len(systems) == 2 and "|" not in "".join(systems):
        systems = ["|".join(sorted(systems))]
    for name in systems:
        if name not in known:
            raise JudgeSenseError(f"no verdicts on system {name!r}; choose from {', '.join(known)}")
    return [known.index(name) for name in dict.fromkeys(systems)]
