"""Comparisons of two systems: differences, win rates and what they decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

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
from judgesense.systems.estimate_data import Data, Part
from judgesense.systems.estimate_result import comparison_text
from judgesense.systems.units import Units

Pair = tuple[dict[str, Any], Powered, "Powered | None", float]
"""A comparison's row; its naive and its corrected estimate less the threshold; the threshold."""


def pair_row(data: Data, one: Part, two: Part, level: float) -> Pair:
    """A comparison of two systems that the judge scored: the difference of their means."""

    def difference(a: Influence, b: Influence) -> Powered:
        return combined([(1.0, a, one.cluster), (-1.0, b, two.cluster)], level)

    naive = difference(one.naive, two.naive)
    found = None
    if one.powered is not None and two.powered is not None:
        found = difference(one.powered, two.powered)
    row = _row(data, one.name, two.name, naive, found)
    predictions = data.units.predictions
    row["by_wording"] = [
        _wording_row(
            name,
            difference(
                data.naive(one.rows, predictions[one.rows, t]),
                data.naive(two.rows, predictions[two.rows, t]),
            ),
            (one.name, two.name),
            0.0,
        )
        for t, name in enumerate(data.units.wordings)
        if _known(predictions[one.rows, t]) and _known(predictions[two.rows, t])
    ]
    row["n_labels"] = int((~np.isnan(data.given.values[np.r_[one.rows, two.rows]])).sum())
    row |= _win_rate(data, one, two, level)
    return row, naive, found, 0.0


def _known(values: Floats) -> bool:
    return not bool(np.isnan(values).all())


def win_row(data: Data, part: Part, level: float) -> Pair:
    """A comparison of two systems that the judge made itself: the win rate of the first."""
    one, two = part.name.split("|")

    def less_half(found: Influence) -> Powered:
        moved = replace(
            found,
            estimate=found.estimate - 0.5,
            without=None if found.without is None else found.without - 0.5,
        )
        return combined([(1.0, moved, part.cluster)], level)

    naive = less_half(part.naive)
    found = None if part.powered is None else less_half(part.powered)
    row = _row(data, one, two, naive, found)
    predictions = data.units.predictions[part.rows]
    row["by_wording"] = [
        _wording_row(
            name,
            less_half(data.naive(part.rows, predictions[:, t])),
            (one, two),
            0.5,
        )
        for t, name in enumerate(data.units.wordings)
        if _known(predictions[:, t])
    ]
    row["n_labels"] = int((~np.isnan(data.given.values[part.rows])).sum())
    row |= {"win_rate_naive": row["naive"], "win_rate": row["corrected"],
            "win_rate_ci_low": row["ci_low"], "win_rate_ci_high": row["ci_high"]}  # fmt: skip
    return row, naive, found, 0.5


def _row(data: Data, one: str, two: str, naive: Powered, found: Powered | None) -> dict[str, Any]:
    """A comparison's figures; win rates where verdicts compare two outputs."""
    wins = data.units.comparative

    def moved(value: float | None) -> float | None:
        if value is None:
            return None
        if wins:
            return min(1.0, max(0.0, value + 0.5))
        low, high = data.ends
        most = math.inf if low is None or high is None else high - low
        return min(most, max(-most, value))

    return {
        "system_a": one,
        "system_b": two,
        "measure": "win_rate" if wins else "difference",
        "naive": moved(naive.estimate),
        "naive_ci_low": moved(naive.ci_low),
        "naive_ci_high": moved(naive.ci_high),
        "corrected": found and moved(found.estimate),
        "ci_low": found and moved(found.ci_low),
        "ci_high": found and moved(found.ci_high),
        "p_value": found and found.p_value,
    }


def _wording_row(
    wording: str, found: Powered, names: tuple[str, str], threshold: float
) -> dict[str, Any]:
    low, high = found.ci_low, found.ci_high
    winner = None
    if low is not None and high is not None and (low > 0 or high < 0):
        winner = names[0] if low > 0 else names[1]
    return {
        "wording": wording or None,
        "naive": found.estimate + threshold,
        "ci_low": None if low is None else low + threshold,
        "ci_high": None if high is None else high + threshold,
        "decision": winner,
    }


def _win_rate(data: Data, one: Part, two: Part, level: float) -> dict[str, Any]:
    """How often the first system's output beats the second's on the same item, ties half."""
    names = ("win_rate_naive", "win_rate", "win_rate_ci_low", "win_rate_ci_high")
    first, second = _paired(data.units, one.rows, two.rows)
    nothing = dict.fromkeys(names)
    if len(first) < FEWEST_LABELS:
        return nothing

    def wins(a: Floats, b: Floats) -> Floats:
        known = ~np.isnan(a) & ~np.isnan(b)
        return np.where(known, (np.sign(a - b) + 1) / 2, np.nan)

    predicted = wins(data.units.predictions[first], data.units.predictions[second])
    if np.isnan(predicted).all():
        return nothing
    told = wins(data.given.values[first], data.given.values[second])
    cluster = data.units.cluster[first]
    naive = combined([(1.0, naive_influence(predicted, clusters=cluster), cluster)], level)
    row: dict[str, Any] = {**nothing, "win_rate_naive": naive.estimate}
    # Picked labels are of outputs, not of pairs: their rates do not carry over.
    if data.given.picked or (~np.isnan(told)).sum() < FEWEST_LABELS:
        return row
    part = influence(told, predicted, clusters=cluster, step=1.0)
    found = combined([(1.0, part, cluster)], level)
    return row | {
        "win_rate": found.estimate,
        "win_rate_ci_low": None if found.ci_low is None else max(0.0, found.ci_low),
        "win_rate_ci_high": None if found.ci_high is None else min(1.0, found.ci_high),
    }


def _paired(units: Units, one: Codes, two: Codes) -> tuple[Codes, Codes]:
    """Units of two systems on the same item, or alone of their system in the same cluster."""
    items = units.items.astype(str)
    shared, a, b = np.intersect1d(items[one], items[two], return_indices=True)
    if len(shared):
        return one[a], two[b]
    sides = []
    for rows in (one, two):
        _, first, count = np.unique(units.cluster[rows], return_index=True, return_counts=True)
        sides.append(rows[first[count == 1]])
    _, a, b = np.intersect1d(units.cluster[sides[0]], units.cluster[sides[1]], return_indices=True)
    return sides[0][a], sides[1][b]


def decide(pairs: Sequence[Pair], level: float) -> None:
    """Decisions over all comparisons as one family, and what labels would still decide."""
    naive_p = holm([naive.p_value for _, naive, _, _ in pairs])
    corrected_p = holm([found.p_value if found else None for _, _, found, _ in pairs])
    for (row, naive, found, _), p_naive, p_found in zip(pairs, naive_p, corrected_p, strict=True):
        row["p_holm"] = p_found
        row["decision_naive"] = _winner(row, naive, p_naive, level)
        row["decision"] = None if found is None else _winner(row, found, p_found, level)
        row["changed"] = None if found is None else row["decision"] != row["decision_naive"]
        needed = None
        if found is not None and row["decision"] is None:
            # Bonferroni's level is the most that Holm's asks of a comparison.
            needed = labels_needed(found, confidence_level=1 - (1 - level) / len(pairs))
        row["labels_needed"] = needed and needed.clusters
        row["labels_needed_low"] = needed and needed.low
        row["labels_needed_high"] = needed and needed.high
        row["text"] = comparison_text(row)


def _winner(row: Mapping[str, Any], found: Powered, p: float | None, level: float) -> str | None:
    # No error at all leaves p undefined: the units are then all alike.
    sure = p <= 1 - level if p is not None else found.error == 0 and found.estimate != 0
    if not sure:
        return None
    return str(row["system_a"] if found.estimate > 0 else row["system_b"])
