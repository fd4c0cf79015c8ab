"""Shift rate: how often, and which way, an intervention moves verdicts. It is no agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.statistics.result import ResultMapping


@dataclass(frozen=True, eq=False)
class Shift(ResultMapping):
    """How verdicts moved from a base to a changed prompt.

    ``shift_rate`` is the share of verdicts that changed, with its interval. ``net_shift`` is for
    each label its share afterwards minus its share before; the values sum to 0. ``score_shift`` is
    the mean change on a scale, in levels, None for nominal labels. Ends of intervals are None with
    a single cluster.
    """

    shift_rate: float | None
    ci_low: float | None
    ci_high: float | None
    net_shift: dict[str, float]
    score_shift: float | None
    score_shift_ci_low: float | None
    score_shift_ci_high: float | None
    n_pairs: int


def shift(
    base: Sequence[str],
    changed: Sequence[str],
    labels: Sequence[str],
    clusters: Any = None,
    *,
    ordinal: bool = False,
    confidence_level: float = 0.95,
) -> Shift:
    """Compare verdicts before and after an intervention.

    The rate has Wilson's clustered interval (`intervals.wilson_cluster`), the mean change of the
    level a t interval over clusters (`intervals.mean_t_cluster`).

    Args:
        base: shape (n,), the verdicts on the base prompts, each one of ``labels``.
        changed: shape (n,), the verdicts on the changed prompts of the same items.
        labels: the task's labels, in order if ``ordinal``.
        clusters: one id per row, or None.
        ordinal: whether the labels are a scale.
        confidence_level: within (0, 1).

    Returns:
        The shift; every figure is None, and `net_shift` empty, without rows.

    Raises:
        ValueError: sides of different length, or a verdict that is not a label.

    >>> found = shift(["NO", "NO", "YES", "NO"], ["YES", "NO", "YES", "YES"], ["YES", "NO"])
    >>> found.shift_rate, found.net_shift
    (0.5, {'YES': 0.5, 'NO': -0.5})
    """
    if len(base) != len(changed):
        raise ValueError(f"base has {len(base)} verdicts and changed {len(changed)}: pair them up")
    place = {label: code for code, label in enumerate(labels)}
    for name, side in (("base", base), ("changed", changed)):
        for row, said in enumerate(side):
            if said not in place:
                raise ValueError(
                    f"{name}[{row}] is {said!r}, not one of {list(labels)}: leave out the pairs "
                    "without a verdict"
                )
    if not len(base):
        return Shift(None, None, None, {}, None, None, None, 0)
    one = np.array([place[said] for said in base])
    two = np.array([place[said] for said in changed])
    moved = wilson_cluster(one != two, clusters, confidence_level)
    sizes = (np.bincount(side, minlength=len(labels)) for side in (two, one))
    after, before = (size / len(one) for size in sizes)
    mean = low = high = None
    if ordinal:
        change = (two - one).astype(float)
        ends = mean_t_cluster(change, clusters, confidence_level)
        mean, low, high = float(change.mean()), ends.low, ends.high
    return Shift(
        shift_rate=float((one != two).mean()),
        ci_low=moved.low,
        ci_high=moved.high,
        net_shift={label: float(gain) for label, gain in zip(labels, after - before, strict=True)},
        score_shift=mean,
        score_shift_ci_low=low,
        score_shift_ci_high=high,
        n_pairs=len(one),
    )
