"""Systems' scores, win rates and differences from many verdicts and some human labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.prediction_powered import FEWEST_LABELS, combined
from judgesense.statistics.rogan_gladen import rogan_gladen
from judgesense.systems.estimate_pairs import Data, System, comparisons
from judgesense.systems.estimate_result import Estimate
from judgesense.systems.human_labels import Labels, read_labels
from judgesense.systems.units import Units, units_of
from judgesense.systems.verdict_files import read_verdicts
from judgesense.systems.verdict_table import VerdictTable
from judgesense.text import number


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

    Returns:
        Scores, differences and decisions.

    Raises:
        JudgeSenseError: bad input; the file, row and field are named.

    >>> import tempfile
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
    units = units_of(table, positive)
    given = read_labels(
        labels, table, units,
        positive=positive, columns=label_columns, mapping=mapping, raters=raters,
    )  # fmt: skip
    return estimate_units(
        table, units, given, systems=systems, positive=positive, level=confidence_level
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
    data = Data(table, units, given, positive)
    codes = chosen_systems(units, systems)
    parts = [data.system(code) for code in codes]
    good = None if units.comparative else table.good(positive)
    rows = [_system_row(data, part, good is not None, level) for part in parts]
    pairs = [(part,) for part in parts] if units.comparative else list(combinations(parts, 2))
    rows.sort(key=lambda row: -(row["naive"] if row["corrected"] is None else row["corrected"]))
    return Estimate(
        systems=rows,
        comparisons=comparisons(data, pairs, level),
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
    """The codes of some systems, all by default.

    Raises JudgeSenseError for a system without verdicts.
    """
    known = list(units.systems)
    if systems is None:
        return list(range(len(known)))
    if units.comparative and len(systems) == 2 and "|" not in "".join(systems):
        systems = ["|".join(sorted(systems))]
    for name in systems:
        if name not in known:
            raise JudgeSenseError(f"no verdicts on system {name!r}; choose from {', '.join(known)}")
    return [known.index(name) for name in dict.fromkeys(systems)]


def _system_row(data: Data, part: System, binary: bool, level: float) -> dict[str, Any]:
    labels, means = data.given.values[part.rows], data.units.means[part.rows]
    count = int((~np.isnan(labels)).sum())
    naive = combined([(1.0, part.naive, part.cluster)], level)
    tuned = None if part.powered is None else combined([(1.0, part.powered, part.cluster)], level)
    row: dict[str, Any] = {
        "system": part.name,
        "n_outputs": len(part.rows),
        "n_labels": count,
        "n_undecided": int(np.isnan(means).sum()),
        "naive": naive.estimate,
        "naive_ci_low": data.inside(naive.ci_low),
        "naive_ci_high": data.inside(naive.ci_high),
        "corrected": tuned and tuned.estimate,
        "ci_low": tuned and data.inside(tuned.ci_low),
        "ci_high": tuned and data.inside(tuned.ci_high),
        "weight": part.powered and part.powered.lam,
        "labels_only": float(np.nanmean(labels)) if count and not data.given.picked else None,
        **dict.fromkeys(("rogan_gladen", "rg_ci_low", "rg_ci_high", "sensitivity", "specificity")),
    }
    reasons = []
    if tuned is None:
        reasons.append(f"too few labels ({count}): a correction needs at least {FEWEST_LABELS}")
    elif tuned.error is None:
        reasons.append("no interval: its outputs, or those with labels, share one cluster_id")
    if binary and count:
        rate = rogan_gladen(
            np.where(np.isin(labels, (0.0, 1.0)), labels, np.nan),
            _halved(means),
            clusters=part.cluster,
            weights=_weights(data, part.rows),
            confidence_level=level,
        )
        row |= {"rogan_gladen": rate.rate, "rg_ci_low": rate.ci_low, "rg_ci_high": rate.ci_high,
                "sensitivity": rate.sensitivity, "specificity": rate.specificity}  # fmt: skip
        if rate.degenerate:
            reasons.append(f"Rogan-Gladen: {rate.degenerate}")
    row["degenerate"] = "; ".join(reasons) or None
    return row


def _halved(means: Floats) -> Floats:
    """The majority of wordings: 1, 0, or NaN for a tie or no verdict."""
    return np.where(np.isnan(means) | (means == 0.5), np.nan, (means > 0.5).astype(np.float64))


def _weights(data: Data, rows: Codes) -> Floats | None:
    """Units of its stratum per label, for labels picked by a plan; None for random labels."""
    if data.strata is None:
        return None
    _, codes = np.unique(data.strata[rows], return_inverse=True)
    labelled = ~np.isnan(data.given.values[rows])
    count = np.bincount(codes[labelled], minlength=int(codes.max()) + 1)
    weights: Floats = (np.bincount(codes) / np.maximum(count, 1))[codes]
    return weights


def _notes(data: Data, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    given, n_wordings = data.given, len(data.units.wordings)
    lost = sum(row["n_undecided"] for row in rows)
    notes = {
        f"{lost} outputs have no verdict: left out of the judge alone, and predicted by the mean "
        "verdict in the correction": lost,
        f"{len(given.unmatched)} labels match no verdict and were left out; the first is in "
        f"{''.join(given.unmatched[:1])}": given.unmatched,
        f"raters agree no better than chance (alpha {number(given.alpha)}): agree with them what a "
        "label means before you rely on the figures": given.alpha is not None and given.alpha <= 0,
        f"raters tie on {given.ties} outputs, which count as the mean of the tied labels": (
            given.ties
        ),
        "one wording: the intervals say nothing about other wordings": n_wordings < 2,
        "two wordings: the intervals are for these; three or more show how they vary": (
            n_wordings == 2
        ),
        "the correction takes the labelled outputs as a random sample of each system's": (
            not given.picked and np.isnan(given.values).any()
        ),
    }
    return [note for note, applies in notes.items() if applies] + [
        f"{row['system']}: {row['degenerate']}" for row in rows if row["degenerate"]
    ]
