"""Systems' scores, win rates and differences from many verdicts and some human labels."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from judgesense.comparison.estimate_result import (
    Estimate,
    SystemComparison,
    SystemScore,
    comparison_text,
    notes_of,
    position_bias,
    unseen_errors,
)
from judgesense.comparison.estimate_systems import SystemPair, SystemParts, Systems
from judgesense.comparison.human_labels import Labels, read_labels
from judgesense.comparison.outputs import Outputs, outputs_of, strata_of
from judgesense.comparison.verdicts import Verdicts, read_verdicts
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data
from judgesense.statistics.comparison import holm
from judgesense.statistics.labelled import raters_differ
from judgesense.statistics.planning import Pilot
from judgesense.statistics.prediction_powered import (
    FEWEST_LABELS,
    Influence,
    Powered,
    combined,
)
from judgesense.statistics.rogan_gladen import RoganGladen, rogan_gladen
from judgesense.text import join, number

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
    read = read_verdicts(verdicts, judge=judge, task=task, scoring=scoring, columns=columns)
    outputs, level = outputs_of(read, positive), confidence_level
    people = read_labels(
        labels,
        read,
        outputs,
        positive=positive,
        columns=label_columns,
        mapping=map,
        raters=raters,
    )
    step, low, high = _scale_of(read, outputs, people, positive)
    strata = strata_of(outputs).astype(str) if people.picked else None
    codes = _codes(outputs, systems)
    systems_of = Systems(outputs, people, strata, step, len(codes))
    parts = [systems_of.of(code) for code in codes]
    good = None if outputs.is_comparison else read.good(positive)
    rows = [_system_score(part, good is not None, (low, high), level) for part in parts]
    pairs = [SystemPair((part,)) for part in parts]
    if not outputs.is_comparison:
        pairs = [systems_of.paired(one, two) for one, two in combinations(codes, 2)]
    rows.sort(key=lambda row: -(row["naive"] if row["corrected"] is None else row["corrected"]))
    return Estimate(
        systems=rows,
        comparisons=_comparisons(
            pairs, high - low, level, _confounded(outputs, codes, people), people
        ),
        judge=read.judge,
        task=read.task,
        positive=good,
        wordings=list(outputs.wordings) if len(outputs.wordings) > 1 else [],
        n_outputs=sum(len(part.labels) for part in parts),
        n_items=len(np.unique(np.concatenate([part.cluster for part in parts]))),
        n_labels=sum(part.n_labels for part in parts),
        n_raters=people.raters,
        alpha=people.alpha,
        n_ties=people.ties,
        picked=people.picked,
        confidence_level=level,
        sources=[read.source, *people.sources],
        notes=[
            *read.notes,
            *notes_of(people, len(outputs.wordings), rows),
            *(
                note
                for part in parts
                if part.powered is not None
                for note in unseen_errors(part.name, part.means - part.labels, step, high - low)
            ),
            *position_bias(read),
        ],
    )


def _codes(outputs: Outputs, systems: Sequence[str] | None) -> list[int]:
    """The codes of some systems, all by default."""
    names = list(outputs.systems)
    if systems is None:
        return list(range(len(names)))
    if outputs.is_comparison and len(systems) == 2 and "|" not in "".join(systems):
        systems = ["|".join(sorted(systems))]
    for name in systems:
        if name not in names:
            raise JudgeSenseError(f"no verdicts on system {name!r}; choose from {', '.join(names)}")
    return [names.index(name) for name in dict.fromkeys(systems)]


def _scale_of(
    verdicts: Verdicts, outputs: Outputs, people: Labels, positive: str | None
) -> tuple[float, float, float]:
    """How far a label is off when it is off, and the ends of the scale.

    A label is off by 1 for two labels, else by a quarter of the scale, which is what the source
    states, or what verdicts and labels show. A scale that only shows has no ends.
    """
    if outputs.is_comparison or verdicts.good(positive) is not None:
        return 1.0, 0.0, 1.0
    if verdicts.is_stated:
        scale = [float(label) for label in verdicts.labels]
        return (max(scale) - min(scale)) / STEPS, min(scale), max(scale)
    values = np.concatenate([outputs.predictions.ravel(), people.values])
    return float(np.nanmax(values) - np.nanmin(values)) / STEPS, -math.inf, math.inf


def _within(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else min(high, max(low, value))


def _system_score(
    part: SystemParts, is_binary: bool, scale: tuple[float, float], level: float
) -> SystemScore:
    labels, means, count = part.labels, part.means, part.n_labels
    naive = combined([(1.0, part.naive, part.cluster)], level)
    tuned = None if part.powered is None else combined([(1.0, part.powered, part.cluster)], level)
    reasons = []
    if not part.is_random:
        is_labelled = ~np.isnan(labels)
        shares = [number(float(np.nanmean(means[mask]))) for mask in (is_labelled, ~is_labelled)]
        reasons.append(
            f"nothing is corrected, because the mean verdict is {shares[0]} on labelled outputs "
            f"and {shares[1]} on the others, so the labels are no random part. Label a random "
            "part, or pick outputs with judgesense label"
        )
    elif tuned is None:
        reasons.append(f"a correction needs at least {FEWEST_LABELS} labels; there are {count}")
    elif tuned.error is None:
        reasons.append("there is no interval, because all (labelled) outputs share one cluster_id")
    rate = _rogan_gladen(part, level) if is_binary and count and part.is_random else RoganGladen()
    if rate.degenerate:
        reasons.append(f"Rogan-Gladen: {rate.degenerate}")
    return {
        "system": part.name,
        "n_outputs": len(labels),
        "n_labels": count,
        "n_undecided": int(np.isnan(means).sum()),
        "naive": naive.estimate,
        "naive_ci_low": _within(naive.ci_low, *scale),
        "naive_ci_high": _within(naive.ci_high, *scale),
        "corrected": None if tuned is None else tuned.estimate,
        "ci_low": None if tuned is None else _within(tuned.ci_low, *scale),
        "ci_high": None if tuned is None else _within(tuned.ci_high, *scale),
        "weight": None if tuned is None else tuned.weight,
        "labels_only": float(np.nanmean(labels)) if count and part.strata is None else None,
        "rogan_gladen": rate.rate,
        "rg_ci_low": rate.ci_low,
        "rg_ci_high": rate.ci_high,
        "sensitivity": rate.sensitivity,
        "specificity": rate.specificity,
        "degenerate": "; ".join(reasons) or None,
    }


def _rogan_gladen(part: SystemParts, level: float) -> RoganGladen:
    """The share of good outputs, corrected for the judge's errors on the labelled ones."""
    labels, means, weights = part.labels, part.means, None
    if part.strata is not None:
        # Outputs of its stratum per label.
        _, codes = np.unique(part.strata, return_inverse=True)
        n_labels = np.bincount(codes[~np.isnan(labels)], minlength=int(codes.max()) + 1)
        weights = (np.bincount(codes) / np.maximum(n_labels, 1))[codes]
    return rogan_gladen(
        np.where(np.isin(labels, (0.0, 1.0)), labels, np.nan),
        np.where(np.isnan(means) | (means == 0.5), np.nan, (means > 0.5).astype(np.float64)),
        clusters=part.cluster,
        weights=weights,
        confidence_level=level,
    )


def _confounded(outputs: Outputs, codes: Sequence[int], people: Labels) -> set[tuple[str, ...]]:
    """The pairs of systems of which raters labelled other shares."""
    rows = [outputs.system[list(each)] for each in people.by_rater.values()]
    counts = np.array([[int((own == code).sum()) for code in codes] for own in rows])
    return {
        (outputs.systems[codes[one]], outputs.systems[codes[two]])
        for one, two in combinations(range(len(codes)), 2)
        if len(rows) > 1 and raters_differ(counts[:, [one, two]])
    }


def _comparisons(
    pairs: Sequence[SystemPair],
    width: float,
    level: float,
    confounded: Collection[tuple[str, ...]],
    people: Labels,
) -> list[SystemComparison]:
    """A row for each pair of systems, or for each system that is a comparison itself (``x|y``).

    Decisions are over all comparisons as one family (Holm); ``labels_needed`` says what would still
    decide. ``width`` is that of the scale. Systems that are ``confounded`` with raters have none.
    """
    rows = []
    gaps = [_gap(pair.systems, level) for pair in pairs]
    naive_p = holm([naive.p_value for naive, _ in gaps])
    corrected_p = holm([powered.p_value if powered else None for _, powered in gaps])
    for pair, (naive, powered), p_naive, p in zip(pairs, gaps, naive_p, corrected_p, strict=True):
        systems = pair.systems
        row = _comparison(systems, naive, powered, width)
        names = row["system_a"], row["system_b"]
        row["p_holm"] = p
        row["decision_naive"] = _winner(names, naive, p_naive, level)
        is_confounded = tuple(system.name for system in systems) in confounded
        if powered is not None and not is_confounded and not pair.is_apart:
            row["decision"] = _winner(names, powered, p, level)
            row["changed"] = row["decision"] != row["decision_naive"]
            if row["decision"] is None:
                # Bonferroni's level is the most that Holm's asks of a comparison.
                row["labels_needed"] = labels_needed(powered, 1 - (1 - level) / len(pairs))
        row["text"] = comparison_text(
            row, _condition(systems, people), pair.n_common, pair.is_apart, is_confounded
        )
        rows.append(row)
    return rows


def _condition(systems: Sequence[SystemParts], people: Labels) -> str:
    """What must be so of the labels, though no file shows it, where a system is better."""
    parts = []
    if {*people.by_rater} <= {""}:
        parts.append("the same people labelled both")
    if not people.picked and any(np.isnan(system.labels).any() for system in systems):
        parts.append("the labels are of a random part of each")
    return f", if {join(parts)}" if parts else ""


def labels_needed(powered: Powered, level: float) -> int | None:
    """Labels in all that decide with 80% probability; None if labels on every output do not.

    Labels shrink their own part of the error; the rest shrinks with more outputs only.
    """
    from scipy.special import stdtrit

    assert powered.error is not None
    assert powered.label_error is not None
    x, n = powered.estimate, powered.n_labels
    t = float(stdtrit(max(1, n - 1), (1 + level) / 2))
    half, fixed = powered.error * t, powered.label_error * t
    pilot = Pilot(x, x - half, x + half, n, fixed=(x - fixed, x + fixed), level=level)
    return pilot.needed(0.0, powered.n_units)


def _threshold(systems: tuple[SystemParts, ...]) -> float:
    """What neither system is better at: a win rate of a half, or a difference of 0."""
    return 0.5 if len(systems) == 1 else 0.0


def _gap(systems: tuple[SystemParts, ...], level: float) -> tuple[Powered, Powered | None]:
    """The naive and the corrected estimate less the threshold.

    The estimate is the difference of two systems' means, or a comparison's win rate.
    """
    shift = np.array([_threshold(systems), 0.0])

    def less_threshold(parts: Sequence[Influence]) -> Powered:
        shifted = [replace(part, mean=part.mean - shift) for part in parts]
        signs = zip((1.0, -1.0), shifted, systems, strict=False)
        return combined([(sign, part, system.cluster) for sign, part, system in signs], level)

    powered = [system.powered for system in systems if system.powered is not None]
    return (
        less_threshold([system.naive for system in systems]),
        less_threshold(powered) if len(powered) == len(systems) else None,
    )


def _comparison(
    systems: tuple[SystemParts, ...], naive: Powered, powered: Powered | None, width: float
) -> SystemComparison:
    """A comparison's figures, without a decision."""
    is_win_rate, threshold = len(systems) == 1, _threshold(systems)
    scale = (0.0, 1.0) if is_win_rate else (-width, width)
    names = systems[0].name.split("|") if is_win_rate else [system.name for system in systems]

    def shown(value: float | None) -> float | None:
        return _within(value if value is None else value + threshold, *scale)

    return {
        "system_a": names[0],
        "system_b": names[1],
        "measure": "win_rate" if is_win_rate else "difference",
        "naive": shown(naive.estimate),
        "naive_ci_low": shown(naive.ci_low),
        "naive_ci_high": shown(naive.ci_high),
        "corrected": None if powered is None else shown(powered.estimate),
        "ci_low": None if powered is None else shown(powered.ci_low),
        "ci_high": None if powered is None else shown(powered.ci_high),
        "p_value": None if powered is None else powered.p_value,
        "n_labels": sum(system.n_labels for system in systems),
        "p_holm": None,
        "decision_naive": None,
        "decision": None,
        "changed": None,
        "labels_needed": None,
        "text": "",
    }


def _winner(names: tuple[str, str], gap: Powered, p: float | None, level: float) -> str | None:
    # No error at all leaves p undefined: the outputs are then all alike.
    is_clear = p <= 1 - level if p is not None else gap.error == 0 and gap.estimate != 0
    return (names[0] if gap.estimate > 0 else names[1]) if is_clear else None
