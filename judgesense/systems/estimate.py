"""Systems' scores, win rates and differences from many verdicts and some human labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.errors import JudgeSenseError
from judgesense.statistics.comparison import holm
from judgesense.statistics.label_planning import labels_needed
from judgesense.statistics.labels import Codes, check_level
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    Powered,
    combined,
    influence,
    naive_influence,
)
from judgesense.statistics.rogan_gladen import rogan_gladen
from judgesense.systems.estimate_result import Estimate, comparison_text
from judgesense.systems.human_labels import Labels, gold_labels, read_labels
from judgesense.systems.strata import strata_of
from judgesense.systems.units import Units, units_of
from judgesense.systems.verdict_schema import VerdictTable
from judgesense.systems.verdict_table import read_verdicts

Floats = npt.NDArray[np.float64]


def estimate(
    verdicts: str | Path,
    labels: str | Path | Sequence[str | Path] | None = None,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    systems: Sequence[str] | None = None,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    label_columns: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    raters: str = "majority",
    confidence_level: float = 0.95,
    encoding: str = "utf-8",
) -> Estimate:
    """Estimate how good systems are, and which is better, correcting a judge by human labels.

    The corrected figures are prediction-powered (Angelopoulos, Duchi & Zrnic 2023): unbiased
    whatever the judge's errors, as long as the labelled outputs of each system are a random sample
    of its outputs, or were picked by `label_next`. Intervals are over items (clusters) and, with
    three or more wordings, over wordings.

    Args:
        verdicts: a file of ``judgesense judge`` or your own with ``item_id``, ``system_id`` and
            ``verdict``, or a run's folder (see `read_verdicts`). Where ``system_id`` names two
            systems (``A|B``), the figures are win rates.
        labels: people's labels, one or several files (see `read_labels`); None takes the gold
            labels of the verdicts' source.
        judge: a judge of the source, if it has several.
        task: a task of the source, if it has several.
        scoring: ``options`` or ``generate``, for a run with both.
        systems: the systems to compare, at least two; all by default.
        positive: the label that counts as good, where the labels do not show it.
        columns: your names of the verdicts' columns.
        label_columns: your names of the labels' columns.
        mapping: people's labels to the judge's, ``{"acceptable": "YES"}``.
        raters: ``majority`` or ``mean``, for outputs that several people labelled.
        confidence_level: within (0, 1).
        encoding: of CSV and JSONL.

    Returns:
        Scores, differences and decisions.

    Raises:
        JudgeSenseError: bad input; the file, row and field are named.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     said, told = Path(folder, "verdicts.csv"), Path(folder, "labels.csv")
    ...     rows = [f"{n},{s},{'YES' if n % k else 'NO'}" for s, k in (("x", 4), ("y", 2))
    ...             for n in range(40)]
    ...     _ = said.write_text("\\n".join(["item_id,system_id,verdict", *rows]))
    ...     _ = told.write_text("\\n".join(["item_id,system_id,label", *rows[:20], *rows[40:60]]))
    ...     found = estimate(said, told)
    >>> [(each["system"], each["naive"], each["corrected"]) for each in found.systems]
    [('x', 0.75, 0.75), ('y', 0.5, 0.5)]
    """
    level = _level(confidence_level)
    table = read_verdicts(
        verdicts, judge=judge, task=task, scoring=scoring, columns=columns, encoding=encoding
    )
    units = units_of(table, positive)
    given = labels_of_units(
        labels, table, units, positive=positive, columns=label_columns, mapping=mapping,
        raters=raters, encoding=encoding,
    )  # fmt: skip
    return estimate_units(table, units, given, systems=systems, positive=positive, level=level)


def labels_of_units(
    labels: str | Path | Sequence[str | Path] | None,
    table: VerdictTable,
    units: Units,
    **how: Any,
) -> Labels:
    """The labels of files, as in `read_labels`, or the gold labels of the verdicts' source."""
    if labels is None:
        return gold_labels(table, units)
    files = [labels] if isinstance(labels, (str, Path)) else list(labels)
    return read_labels(files, table, units, **how)


def _level(confidence_level: float) -> float:
    try:
        return check_level(confidence_level)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error


@dataclass(frozen=True)
class _System:
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


class _Data:
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

    def system(self, code: int) -> _System:
        """A system's part."""
        units = self.units
        rows = np.flatnonzero(units.of(code))
        predictions = units.predictions[rows]
        if np.isnan(predictions).all():
            raise JudgeSenseError(
                f"{self.table.source}: no output of {units.systems[code]!r} has a verdict"
            )
        cluster = units.cluster[rows]
        return _System(
            units.systems[code],
            rows,
            self.naive(rows, predictions),
            self.powered(rows, self.given.values[rows], predictions),
            cluster,
        )


def estimate_units(
    table: VerdictTable,
    units: Units,
    given: Labels,
    *,
    systems: Sequence[str] | None = None,
    positive: str | None = None,
    level: float = 0.95,
) -> Estimate:
    """The estimate of `estimate` from verdicts and labels that are read already."""
    data = _Data(table, units, given, positive)
    codes = chosen_systems(units, systems)
    parts = [data.system(code) for code in codes]
    good = None if units.comparative else table.good(positive)
    rows = [_system_row(data, part, good is not None, level) for part in parts]
    if units.comparative:
        pairs = [_win_row(data, part, level) for part in parts]
    else:
        pairs = [_pair_row(data, one, two, level) for one, two in combinations(parts, 2)]
    _decide(pairs, level)
    rows.sort(key=lambda row: -(row["naive"] if row["corrected"] is None else row["corrected"]))
    return Estimate(
        systems=rows,
        comparisons=[pair for pair, *_ in pairs],
        judge=table.judge,
        task=table.task,
        positive=good,
        wordings=list(units.wordings) if len(units.wordings) > 1 else [],
        n_outputs=sum(len(part.rows) for part in parts),
        n_items=len(np.unique(np.concatenate([part.cluster for part in parts]))),
        n_labels=int(sum((~np.isnan(given.values[part.rows])).sum() for part in parts)),
        n_raters=given.raters,
        alpha=given.alpha,
        n_ties=given.ties,
        picked=given.picked,
        confidence_level=level,
        sources=[table.source, *given.sources],
        notes=_notes(data, rows),
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


def _system_row(data: _Data, part: _System, binary: bool, level: float) -> dict[str, Any]:
    labels = data.given.values[part.rows]
    count = int((~np.isnan(labels)).sum())
    naive = combined([(1.0, part.naive, part.cluster)], level)
    found = None if part.powered is None else combined([(1.0, part.powered, part.cluster)], level)
    row: dict[str, Any] = {
        "system": part.name,
        "n_outputs": len(part.rows),
        "n_labels": count,
        "n_undecided": int(np.isnan(data.units.means[part.rows]).sum()),
        "naive": naive.estimate,
        "naive_ci_low": data.inside(naive.ci_low),
        "naive_ci_high": data.inside(naive.ci_high),
        "corrected": found and found.estimate,
        "ci_low": found and data.inside(found.ci_low),
        "ci_high": found and data.inside(found.ci_high),
        "weight": part.powered and part.powered.lam,
        "labels_only": float(np.nanmean(labels)) if count and not data.given.picked else None,
        **dict.fromkeys(("rogan_gladen", "rg_ci_low", "rg_ci_high", "sensitivity", "specificity")),
    }
    reasons = []
    if found is None:
        reasons.append(f"too few labels ({count}): a correction needs at least {FEWEST_LABELS}")
    elif found.error is None:
        reasons.append("no interval: its outputs, or those with labels, share one cluster_id")
    if binary and count:
        told = rogan_gladen(
            np.where(np.isin(labels, (0.0, 1.0)), labels, np.nan),
            _halved(data.units.means[part.rows]),
            clusters=part.cluster,
            weights=_weights(data, part.rows),
            confidence_level=level,
        )
        row |= {"rogan_gladen": told.rate, "rg_ci_low": told.ci_low, "rg_ci_high": told.ci_high,
                "sensitivity": told.sensitivity, "specificity": told.specificity}  # fmt: skip
        if told.degenerate:
            reasons.append(f"Rogan-Gladen: {told.degenerate}")
    row["degenerate"] = "; ".join(reasons) or None
    return row


def _halved(means: Floats) -> Floats:
    """The majority of wordings: 1, 0, or NaN for a tie or no verdict."""
    return np.where(np.isnan(means) | (means == 0.5), np.nan, (means > 0.5).astype(np.float64))


def _weights(data: _Data, rows: Codes) -> Floats | None:
    """Units of its stratum per label, for labels picked by a plan; None for random labels."""
    if data.strata is None:
        return None
    _, codes = np.unique(data.strata[rows].astype(str), return_inverse=True)
    labelled = ~np.isnan(data.given.values[rows])
    count = np.bincount(codes[labelled], minlength=int(codes.max()) + 1)
    weights: Floats = (np.bincount(codes) / np.maximum(count, 1))[codes]
    return weights


Pair = tuple[dict[str, Any], Powered, "Powered | None", float]
"""A comparison's row; its naive and its corrected estimate less the threshold; the threshold."""


def _pair_row(data: _Data, one: _System, two: _System, level: float) -> Pair:
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


def _win_row(data: _Data, part: _System, level: float) -> Pair:
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


def _row(data: _Data, one: str, two: str, naive: Powered, found: Powered | None) -> dict[str, Any]:
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


def _win_rate(data: _Data, one: _System, two: _System, level: float) -> dict[str, Any]:
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


def _decide(pairs: Sequence[Pair], level: float) -> None:
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


def _notes(data: _Data, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    units, given = data.units, data.given
    notes = []
    if lost := sum(row["n_undecided"] for row in rows):
        notes.append(
            f"{lost} outputs have no verdict: left out of the judge alone, and predicted by the "
            "mean verdict in the correction"
        )
    if given.unmatched:
        notes.append(f"{given.unmatched} labels match no verdict and were left out")
    if given.ties:
        notes.append(
            f"raters tie on {given.ties} outputs, which count as the mean of the tied labels"
        )
    if len(units.wordings) < 2:
        notes.append("one wording: the intervals say nothing about other wordings")
    elif len(units.wordings) < 3:
        notes.append("two wordings: the intervals are for these; three or more show how they vary")
    if not given.picked and np.isnan(given.values).any():
        notes.append(
            "the correction takes the labelled outputs as a random sample of each system's"
        )
    for row in rows:
        if row["degenerate"]:
            notes.append(f"{row['system']}: {row['degenerate']}")
    return notes
