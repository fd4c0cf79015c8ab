"""Comparisons of two systems: differences, win rates and what they decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.comparison import holm
from judgesense.statistics.planning import labels_needed
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    Powered,
    combined,
    influence,
    naive_influence,
)
from judgesense.systems.estimate_result import comparison_text
from judgesense.systems.human_labels import Labels
from judgesense.systems.units import Units, strata_of
from judgesense.systems.verdict_table import VerdictTable

STEPS = 4
"""Steps of a scale of numbers, as on a scale of five points."""


@dataclass(frozen=True)
class System:
    """A system's units and what its score is made of; ``powered`` is None with too few labels."""

    name: str
    rows: Codes
    naive: Influence
    powered: Influence | None
    cluster: Codes


class Data:
    """Verdicts and labels as arrays, in the shape that the statistics take."""

    def __init__(
        self, table: VerdictTable, units: Units, given: Labels, positive: str | None
    ) -> None:
        self.units, self.given = units, given
        self.strata = strata_of(units).astype(str) if given.picked else None
        self.step, self.low, self.high = scale_of(table, units, given, positive)

    def system(self, code: int) -> System:
        """A system. Raises JudgeSenseError if none of its outputs has a verdict."""
        rows = np.flatnonzero(self.units.of(code))
        name, predictions = self.units.systems[code], self.units.predictions[rows]
        if np.isnan(predictions).all():
            raise JudgeSenseError(f"no output of {name!r} has a verdict; judge some")
        cluster, labels, powered = self.units.cluster[rows], self.given.values[rows], None
        if (~np.isnan(labels)).sum() >= FEWEST_LABELS:
            strata = None if self.strata is None else self.strata[rows]
            powered = influence(
                labels, predictions, clusters=cluster, strata=strata, step=self.step
            )
        return System(name, rows, self.naive(rows, predictions), powered, cluster)

    def naive(self, rows: Codes, predictions: Floats) -> Influence:
        """The mean verdict on some units."""
        return naive_influence(predictions, clusters=self.units.cluster[rows], step=self.step)

    def inside(self, value: float | None) -> float | None:
        """An end of an interval, kept on the scale."""
        return None if value is None else min(self.high, max(self.low, value))


def scale_of(
    table: VerdictTable, units: Units, given: Labels, positive: str | None
) -> tuple[float, float, float]:
    """How far a label is off when it is off, and the ends of the scale.

    A label is off by 1 for two labels, else by a quarter of the scale, which is what the source
    states, or what verdicts and labels show. A scale that only shows has no ends.
    """
    if units.comparative or table.good(positive) is not None:
        return 1.0, 0.0, 1.0
    if table.stated:
        scale = [float(label) for label in table.labels]
        return (max(scale) - min(scale)) / STEPS, min(scale), max(scale)
    shown = np.concatenate([units.predictions.ravel(), given.values])
    return float(np.nanmax(shown) - np.nanmin(shown)) / STEPS, -math.inf, math.inf


def comparisons(
    data: Data, pairs: Sequence[tuple[System, ...]], level: float
) -> list[dict[str, Any]]:
    """A row for each pair of systems, or for each system that is a comparison itself (``x|y``).

    Decisions are over all comparisons as one family (Holm); ``labels_needed`` says what would still
    decide.
    """
    rows = [_row(data, systems, level) for systems in pairs]
    naive_p = holm([naive.p_value for _, naive, _ in rows])
    corrected_p = holm([found.p_value if found else None for _, _, found in rows])
    for (row, naive, found), p_naive, p in zip(rows, naive_p, corrected_p, strict=True):
        row["p_holm"] = p
        row["decision_naive"] = _winner(row, naive, p_naive, level)
        row["decision"] = None if found is None else _winner(row, found, p, level)
        row["changed"] = None if found is None else row["decision"] != row["decision_naive"]
        needed = None
        if (
            found is not None
            and row["decision"] is None
            and found.error is not None
            and found.label_error is not None
        ):
            # Bonferroni's level is the most that Holm's asks of a comparison.
            needed = labels_needed(
                found.estimate, found.error, found.label_error, found.n_labels, found.n_units,
                confidence_level=1 - (1 - level) / len(pairs),
            )  # fmt: skip
        row["labels_needed"] = needed and needed.clusters
        row["labels_needed_low"] = needed and needed.low
        row["labels_needed_high"] = needed and needed.high
        row["text"] = comparison_text(row)
    return [row for row, _, _ in rows]


def _row(
    data: Data, systems: tuple[System, ...], level: float
) -> tuple[dict[str, Any], Powered, Powered | None]:
    """A comparison's figures, and its naive and its corrected estimate less the threshold.

    The estimate is the difference of two systems' means, or a comparison's win rate less a half.
    """
    wins = len(systems) == 1
    names = tuple(systems[0].name.split("|")) if wins else tuple(each.name for each in systems)
    threshold = 0.5 if wins else 0.0

    def less_threshold(parts: Sequence[Influence]) -> Powered:
        moved = [
            replace(
                part,
                estimate=part.estimate - threshold,
                without=None if part.without is None else part.without - threshold,
            )
            for part in parts
        ]
        signs = zip((1.0, -1.0), moved, systems, strict=False)
        return combined([(sign, part, each.cluster) for sign, part, each in signs], level)

    def shown(value: float | None) -> float | None:
        if value is None:
            return None
        if wins:
            return min(1.0, max(0.0, value + threshold))
        most = data.high - data.low
        return min(most, max(-most, value))

    naive = less_threshold([each.naive for each in systems])
    powered = [each.powered for each in systems if each.powered is not None]
    found = less_threshold(powered) if len(powered) == len(systems) else None
    row: dict[str, Any] = {
        "system_a": names[0],
        "system_b": names[1],
        "measure": "win_rate" if wins else "difference",
        "naive": shown(naive.estimate),
        "naive_ci_low": shown(naive.ci_low),
        "naive_ci_high": shown(naive.ci_high),
        "corrected": found and shown(found.estimate),
        "ci_low": found and shown(found.ci_low),
        "ci_high": found and shown(found.ci_high),
        "p_value": found and found.p_value,
    }
    labels = np.concatenate([data.given.values[each.rows] for each in systems])
    row["n_labels"] = int((~np.isnan(labels)).sum())
    return row, naive, found


def _winner(row: Mapping[str, Any], found: Powered, p: float | None, level: float) -> str | None:
    # No error at all leaves p undefined: the units are then all alike.
    sure = p <= 1 - level if p is not None else found.error == 0 and found.estimate != 0
    if not sure:
        return None
    return str(row["system_a"] if found.estimate > 0 else row["system_b"])
