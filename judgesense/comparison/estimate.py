"""Systems' scores, win rates and differences from many verdicts and some human labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from judgesense.comparison.estimate_result import Estimate, comparison_text
from judgesense.comparison.human_labels import Labels, read_labels
from judgesense.comparison.units import Units, strata_of, units_of
from judgesense.comparison.verdict_files import read_verdicts
from judgesense.comparison.verdict_table import VerdictTable
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.statistics.comparison import holm
from judgesense.statistics.planning import Pilot
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    Powered,
    combined,
    influence,
    naive_influence,
)
from judgesense.statistics.rogan_gladen import rogan_gladen
from judgesense.text import number

STEPS = 4
"""Steps of a scale of numbers, as on a scale of five points."""


def estimate(
    verdicts: Data,
    labels: Data | None = None,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    systems: Sequence[str] | None = None,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    label_columns: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,
    raters: str = "majority",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate how good systems are, and which is better, correcting a judge by human labels.

    The corrected figures are prediction-powered (Angelopoulos, Duchi & Zrnic 2023): unbiased
    whatever the judge's errors, as long as the labelled outputs of each system are a random sample
    of its outputs, or picked by ``judgesense label``. Intervals are over items (clusters) and,
    with three or more wordings, over wordings.

    Args:
        verdicts: a file of ``judgesense judge`` or your own with ``item_id``, ``system_id`` and
            ``verdict``, the same in memory, or a run's folder (see `read_verdicts`). Where
            ``system_id`` names two systems (``A|B``), the figures are win rates.
        labels: people's labels: one or several files, or in memory (see `read_labels`); None takes
            the gold labels of the verdicts' source.
        judge: a judge of the source, if it has several.
        task: a task of the source, if it has several.
        scoring: ``options`` or ``generate``, for a run with both.
        systems: the systems to compare, at least two; all by default.
        positive: the label that counts as good, where the labels do not show it.
        columns: your names of the verdicts' columns.
        label_columns: your names of the labels' columns.
        map: people's labels to the judge's, ``{"acceptable": "YES"}``.
        raters: ``majority`` or ``mean``, for outputs that several people labelled.
        confidence_level: within (0, 1).

    Raises:
        JudgeSenseError: bad input; the file, row and field are named.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     judged, people = Path(folder, "verdicts.csv"), Path(folder, "labels.csv")
    ...     rows = [f"{n},{s},{'YES' if n % k else 'NO'}" for s, k in (("x", 4), ("y", 2))
    ...             for n in range(40)]
    ...     _ = judged.write_text("\\n".join(["item_id,system_id,verdict", *rows]))
    ...     _ = people.write_text("\\n".join(["item_id,system_id,label", *rows[:20], *rows[40:60]]))
    ...     scores = estimate(judged, people).systems
    >>> [(each["system"], each["naive"], each["corrected"]) for each in scores]
    [('x', 0.75, 0.75), ('y', 0.5, 0.5)]
    """
    if not 0 < confidence_level < 1:
        raise JudgeSenseError(f"confidence_level is {confidence_level}: pass a number such as 0.95")
    table = read_verdicts(verdicts, judge=judge, task=task, scoring=scoring, columns=columns)
    units, level = units_of(table, positive), confidence_level
    given = read_labels(
        labels,
        table,
        units,
        positive=positive,
        columns=label_columns,
        mapping=map,
        raters=raters,
    )
    step, low, high = _scale_of(table, units, given, positive)
    strata = strata_of(units).astype(str) if given.picked else None
    parts = [_system(units, code, given, strata, step) for code in _chosen(units, systems)]
    good = None if units.comparative else table.good(positive)
    rows = [_system_row(part, good is not None, (low, high), level) for part in parts]
    pairs = [(part,) for part in parts] if units.comparative else list(combinations(parts, 2))
    rows.sort(key=lambda row: -(row["naive"] if row["corrected"] is None else row["corrected"]))
    return Estimate(
        systems=rows,
        comparisons=_comparisons(pairs, high - low, level),
        judge=table.judge,
        task=table.task,
        positive=good,
        wordings=list(units.wordings) if len(units.wordings) > 1 else [],
        n_outputs=sum(len(part.labels) for part in parts),
        n_items=len(np.unique(np.concatenate([part.cluster for part in parts]))),
        n_labels=sum(part.n_labels for part in parts),
        n_raters=given.raters,
        alpha=given.alpha,
        n_ties=given.ties,
        picked=given.picked,
        confidence_level=level,
        sources=[table.source, *given.sources],
        notes=table.recognised + _notes(given, len(units.wordings), rows),
    )


def _chosen(units: Units, systems: Sequence[str] | None) -> list[int]:
    """The codes of some systems, all by default."""
    known = list(units.systems)
    if systems is None:
        return list(range(len(known)))
    if units.comparative and len(systems) == 2 and "|" not in "".join(systems):
        systems = ["|".join(sorted(systems))]
    for name in systems:
        if name not in known:
            raise JudgeSenseError(f"no verdicts on system {name!r}; choose from {', '.join(known)}")
    return [known.index(name) for name in dict.fromkeys(systems)]


@dataclass(frozen=True)
class _System:
    """A system's mean verdicts and labels, NaN where unknown, and what its score is made of.

    ``strata`` is None for random labels, ``powered`` with too few labels.
    """

    name: str
    means: Floats
    labels: Floats
    cluster: Codes
    strata: Words | None
    naive: Influence
    powered: Influence | None

    @property
    def n_labels(self) -> int:
        return int((~np.isnan(self.labels)).sum())


def _system(units: Units, code: int, given: Labels, strata: Words | None, step: float) -> _System:
    """A system. Raises JudgeSenseError if none of its outputs has a verdict."""
    rows = units.of(code)
    name, predictions = units.systems[code], units.predictions[rows]
    if np.isnan(predictions).all():
        raise JudgeSenseError(f"no output of {name!r} has a verdict; judge some")
    cluster, labels, powered = units.cluster[rows], given.values[rows], None
    own = None if strata is None else strata[rows]
    if (~np.isnan(labels)).sum() >= FEWEST_LABELS:
        powered = influence(labels, predictions, clusters=cluster, strata=own, step=step)
    naive = naive_influence(predictions, clusters=cluster, step=step)
    return _System(name, units.means[rows], labels, cluster, own, naive, powered)


def _scale_of(
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


def _within(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else min(high, max(low, value))


def _system_row(
    part: _System, binary: bool, scale: tuple[float, float], level: float
) -> dict[str, Any]:
    labels, means, count = part.labels, part.means, part.n_labels
    naive = combined([(1.0, part.naive, part.cluster)], level)
    tuned = None if part.powered is None else combined([(1.0, part.powered, part.cluster)], level)
    row: dict[str, Any] = {
        "system": part.name,
        "n_outputs": len(labels),
        "n_labels": count,
        "n_undecided": int(np.isnan(means).sum()),
        "naive": naive.estimate,
        "naive_ci_low": _within(naive.ci_low, *scale),
        "naive_ci_high": _within(naive.ci_high, *scale),
        "corrected": tuned and tuned.estimate,
        "ci_low": tuned and _within(tuned.ci_low, *scale),
        "ci_high": tuned and _within(tuned.ci_high, *scale),
        "weight": tuned and tuned.weight,
        "labels_only": float(np.nanmean(labels)) if count and part.strata is None else None,
        **dict.fromkeys(("rogan_gladen", "rg_ci_low", "rg_ci_high", "sensitivity", "specificity")),
    }
    reasons = []
    if tuned is None:
        reasons.append(f"a correction needs at least {FEWEST_LABELS} labels; there are {count}")
    elif tuned.error is None:
        reasons.append("there is no interval, because all (labelled) outputs share one cluster_id")
    if binary and count:
        undecided, weights = np.isnan(means) | (means == 0.5), None
        if part.strata is not None:
            # Units of its stratum per label.
            _, codes = np.unique(part.strata, return_inverse=True)
            taken = np.bincount(codes[~np.isnan(labels)], minlength=int(codes.max()) + 1)
            weights = (np.bincount(codes) / np.maximum(taken, 1))[codes]
        rate = rogan_gladen(
            np.where(np.isin(labels, (0.0, 1.0)), labels, np.nan),
            np.where(undecided, np.nan, (means > 0.5).astype(np.float64)),
            clusters=part.cluster,
            weights=weights,
            confidence_level=level,
        )
        row |= {
            "rogan_gladen": rate.rate,
            "rg_ci_low": rate.ci_low,
            "rg_ci_high": rate.ci_high,
            "sensitivity": rate.sensitivity,
            "specificity": rate.specificity,
        }
        if rate.degenerate:
            reasons.append(f"Rogan-Gladen: {rate.degenerate}")
    row["degenerate"] = "; ".join(reasons) or None
    return row


def _comparisons(
    pairs: Sequence[tuple[_System, ...]], width: float, level: float
) -> list[dict[str, Any]]:
    """A row for each pair of systems, or for each system that is a comparison itself (``x|y``).

    Decisions are over all comparisons as one family (Holm); ``labels_needed`` says what would still
    decide. ``width`` is that of the scale.
    """
    rows = [_row(systems, width, level) for systems in pairs]
    naive_p = holm([naive.p_value for _, naive, _ in rows])
    corrected_p = holm([found.p_value if found else None for _, _, found in rows])
    for (row, naive, found), p_naive, p in zip(rows, naive_p, corrected_p, strict=True):
        row["p_holm"] = p
        row["decision_naive"] = _winner(row, naive, p_naive, level)
        row["decision"] = None if found is None else _winner(row, found, p, level)
        row["changed"] = None if found is None else row["decision"] != row["decision_naive"]
        # Bonferroni's level is the most that Holm's asks of a comparison.
        most = 1 - (1 - level) / len(pairs)
        is_open = found is not None and row["decision"] is None
        row["labels_needed"] = labels_needed(found, most) if found and is_open else None
        row["text"] = comparison_text(row)
    return [row for row, _, _ in rows]


def labels_needed(found: Powered, level: float) -> int | None:
    """Labels in all that decide with 80% probability; None if labels on every unit do not.

    Labels shrink their own part of the error; the rest shrinks with more units only.
    """
    from scipy.special import stdtrit

    assert found.error is not None
    assert found.label_error is not None
    x, n = found.estimate, found.n_labels
    t = float(stdtrit(max(1, n - 1), (1 + level) / 2))
    half, own = found.error * t, found.label_error * t
    pilot = Pilot(x, x - half, x + half, n, fixed=(x - own, x + own), level=level)
    return pilot.needed(0.0, found.n_units)


def _row(
    systems: tuple[_System, ...], width: float, level: float
) -> tuple[dict[str, Any], Powered, Powered | None]:
    """A comparison's figures, and its naive and its corrected estimate less the threshold.

    The estimate is the difference of two systems' means, or a comparison's win rate less a half.
    """
    wins = len(systems) == 1
    names = systems[0].name.split("|") if wins else [each.name for each in systems]
    threshold = 0.5 if wins else 0.0
    scale = (0.0, 1.0) if wins else (-width, width)

    def less_threshold(parts: Sequence[Influence]) -> Powered:
        moved = [replace(part, mean=part.mean - np.array([threshold, 0.0])) for part in parts]
        signs = zip((1.0, -1.0), moved, systems, strict=False)
        return combined([(sign, part, each.cluster) for sign, part, each in signs], level)

    def shown(value: float | None) -> float | None:
        return _within(value if value is None else value + threshold, *scale)

    naive = less_threshold([each.naive for each in systems])
    powered = [each.powered for each in systems if each.powered is not None]
    found = less_threshold(powered) if len(powered) == len(systems) else None
    return (
        {
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
            "n_labels": sum(each.n_labels for each in systems),
        },
        naive,
        found,
    )


def _winner(row: Mapping[str, Any], found: Powered, p: float | None, level: float) -> str | None:
    # No error at all leaves p undefined: the units are then all alike.
    sure = p <= 1 - level if p is not None else found.error == 0 and found.estimate != 0
    if not sure:
        return None
    return str(row["system_a"] if found.estimate > 0 else row["system_b"])


def _notes(given: Labels, n_wordings: int, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lost = sum(row["n_undecided"] for row in rows)
    notes = {
        f"{lost} outputs have no verdict. The 'judge alone' column leaves them out, and the "
        "correction gives them the mean verdict": lost,
        f"{len(given.unmatched)} labels match no verdict and were left out. The first is in "
        f"{''.join(given.unmatched[:1])}": given.unmatched,
        f"the raters agree no better than chance (alpha {number(given.alpha)}). Discuss with them "
        "what a label means before you rely on the figures": (
            given.alpha is not None and given.alpha <= 0
        ),
        f"the raters tie on {given.ties} outputs, which count as the mean of the tied labels": (
            given.ties
        ),
        "there is one wording, so the intervals say nothing about other wordings": n_wordings < 2,
        "there are two wordings, and the intervals are for these alone. Three or more would show "
        "how much wordings differ": n_wordings == 2,
        "the correction assumes that the labelled outputs are a random sample of each system's "
        "outputs" + ", except those that judgesense label picked" * given.picked: (
            given.sampled and np.isnan(given.values).any()
        ),
    }
    return [note for note, applies in notes.items() if applies] + [
        f"{row['system']}: {row['degenerate']}" for row in rows if row["degenerate"]
    ]
