"""The true rate behind a judge's two-label verdicts, from its hits and false alarms on some labels.

Source: Rogan & Gladen 1978, "Estimating prevalence from the results of a screening test", American
Journal of Epidemiology 107, 71-76.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.prediction_powered import Influence, Powered, combined


@dataclass(frozen=True)
class RoganGladen:
    """The corrected rate, in [0, 1], and the judge's rates behind it.

    ``sensitivity`` is the share of truly good units that the judge calls good, ``specificity`` that
    of truly bad ones that it calls bad. An undefined figure is None, and ``degenerate`` says why.
    """

    rate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    degenerate: str | None = None


FEWEST_OF_CLASS = 10
"""With fewer labels of a class the rate has no interval: it would cover in 71 to 93% of cases."""

FEW_REST = 5
"""Of fewer units without a label, the observed rate has no interval."""


def rogan_gladen(
    labels: Any,
    predictions: Any,
    *,
    clusters: Any = None,
    weights: Any = None,
    confidence_level: float = 0.95,
) -> RoganGladen:
    """The true share of good units: (observed rate + specificity - 1) / edge.

    The observed rate is that of the units without a label, as in the package ``judgy``. The
    interval is by linearisation (the delta method) over clusters, Student's t; its ends and the
    estimate are kept within [0, 1].

    Args:
        labels: shape (n,), 1 good, 0 bad, NaN where there is none.
        predictions: shape (n,), 1 or 0, NaN where there is none.
        weights: shape (n,), the inverse of each labelled unit's chance to be labelled, or None for
            labels drawn at one rate. With weights the observed rate is that of all units.

    Returns:
        The rate. It is undefined if the labels are of one class, or if the judge is no better than
        chance on them.
    """
    y, f = np.asarray(labels, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    codes, _ = cluster_codes(clusters, len(y))
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    pairs = ~np.isnan(y) & ~np.isnan(f)
    others = ~np.isnan(f) if weights is not None else np.isnan(y) & ~np.isnan(f)
    good, bad = pairs & (y == 1), pairs & (y == 0)

    if not good.any() or not bad.any():
        reason = "all labels are of one class: label outputs of both classes"
        return RoganGladen(degenerate=reason)
    f = np.where(np.isnan(f), 0.0, f)
    sensitivity, of_good = _share(f, good, w)
    specificity, of_bad = _share(1 - f, bad, w)
    edge = sensitivity + specificity - 1  # 0 is chance
    result = RoganGladen(sensitivity=sensitivity, specificity=specificity)
    if edge <= 0:
        reason = "the judge is no better than chance on the labels"
        return replace(result, degenerate=reason)
    if not others.any():
        return replace(result, degenerate="every unit has a label, so no rate needs correction")
    if len(np.unique(codes[others])) < FEW_REST:
        reason = f"fewer than {FEW_REST} units are without a label"
        return replace(result, degenerate=reason)
    observed, of_rest = _share(f, others, np.ones(len(y)))
    rate = (observed + specificity - 1) / edge
    on_labels = (-rate * of_good + (1 - rate) * of_bad) / edge
    n, of_edge, labelled = int(pairs.sum()), of_good + of_bad, w * pairs / w[pairs].sum()

    def figure(value: float, units: Floats, labels: Floats) -> Powered:
        none = np.zeros(len(y))
        part = Influence(
            np.array([value, 0.0]),
            np.column_stack([units, none]),
            np.column_stack([labels, none]),
            None,
            1.0,
            None,
            n,
            labelled,
            lost=2,
        )
        return combined([(1.0, part, codes)], confidence_level)

    fewest = min(int(good.sum()), int(bad.sum()))
    if fewest < FEWEST_OF_CLASS:
        reason = f"an interval needs {FEWEST_OF_CLASS} labels of each class, and one has {fewest}"
        return replace(result, rate=min(1.0, max(0.0, rate)), degenerate=reason)
    ends, at_edge = (
        figure(rate, of_rest / edge + on_labels, on_labels),
        figure(edge, of_edge, of_edge),
    )
    reason = "the labels are too few to show that the judge is better than chance"
    return replace(
        result,
        rate=min(1.0, max(0.0, rate)),
        ci_low=None if ends.ci_low is None else min(1.0, max(0.0, ends.ci_low)),
        ci_high=None if ends.ci_high is None else min(1.0, max(0.0, ends.ci_high)),
        degenerate=reason if at_edge.ci_low is not None and at_edge.ci_low <= 0 else None,
    )


def _share(f: Floats, mask: Bools, w: Floats) -> tuple[float, Floats]:
    """The weighted share of f on the mask, and each unit's influence on it."""
    total = float(w[mask].sum())
    share = float((w[mask] * f[mask]).sum()) / total
    n = int(mask.sum())
    units = np.where(mask, w * (f - share) / total, 0.0) * np.sqrt(n / max(1, n - 1))
    return share, units
