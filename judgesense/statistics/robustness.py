"""How far scores move when the instruction is paraphrased (Bhat & Varma, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import check_level, check_number, cluster_codes, numbers
from judgesense.statistics.intervals import Interval, mean_t_cluster, wilson_from_sums
from judgesense.statistics.resampling import percentile_ends, resampled_sums
from judgesense.statistics.result import ResultMapping

TOLERANCES = (0.25, 0.5, 1.0)
"""The paper's tolerances, in units of the score scale (section 5.1 and appendix D)."""

STABLE_BELOW = 0.15
"""A configuration is stable if its win-rate gap and its sensitivity are both below this."""

_SLACK = 1e-9
"""Slack for rounding: 4.4 - 3.9 is 0.5000000000000004 as a float, 0.7 - 0.55 is below 0.15."""


@dataclass(frozen=True, eq=False)
class Robustness(ResultMapping):
    """Scores of N items under k paraphrases, compared with human scores.

    `accuracy` and `accuracy_tolerance` are means over all N * k scores; `accuracy_per_paraphrase`
    has k values and `win_rate_gap` is their largest difference. `win_rate_gap_chance` is the gap
    expected if each item's k scores had been dealt to the paraphrases at random; a gap near it
    does not show that one wording is better. `sensitivity` is the coefficient of variation of an
    item's scores, averaged over items; `consistency` the share of items with k equal scores;
    `stable` whether gap and sensitivity are both below 0.15. Gap, sensitivity, consistency and
    stable are None for a single paraphrase, sensitivity also if no item defines it, and interval
    ends for a single cluster; `degenerate` then says why, and is None otherwise.
    """

    labels: ClassVar = {
        "accuracy": "accuracy",
        "accuracy_tolerance": "accuracy within the tolerance",
        "win_rate_gap": "best minus worst paraphrase",
        "win_rate_gap_chance": "that gap by chance",
        "sensitivity": "sensitivity (coefficient of variation)",
        "consistency": "same score under all paraphrases",
        "stable": "stable",
        "n_items": "items",
        "n_paraphrases": "paraphrases",
        "degenerate": "note",
    }
    accuracy: float
    accuracy_ci_low: float | None
    accuracy_ci_high: float | None
    accuracy_tolerance: float
    accuracy_tolerance_ci_low: float | None
    accuracy_tolerance_ci_high: float | None
    accuracy_per_paraphrase: list[float]
    win_rate_gap: float | None
    win_rate_gap_ci_low: float | None
    win_rate_gap_ci_high: float | None
    win_rate_gap_chance: float | None
    sensitivity: float | None
    sensitivity_ci_low: float | None
    sensitivity_ci_high: float | None
    n_sensitivity_undefined: int
    consistency: float | None
    consistency_ci_low: float | None
    consistency_ci_high: float | None
    stable: bool | None
    n_rows: int
    n_items: int
    n_paraphrases: int
    degenerate: str | None


def paraphrase_robustness(
    predictions: Any,
    references: Any,
    item_ids: Any = None,
    *,
    tolerance: float = 0.5,
    round_references: bool = False,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Robustness:
    """Measure accuracy and its stability over paraphrases of one instruction.

    Intervals: clustered Wilson for accuracies and consistency; cluster-robust t for sensitivity;
    percentile bootstrap over clusters for the win-rate gap. A largest difference is biased
    upwards, in the estimate and in its interval, so compare it with `win_rate_gap_chance`.

    Args:
        predictions: shape (N, k), the judge's score of each item under each paraphrase.
        references: shape (N,), the human scores.
        item_ids: one id per row if rows share an item; None makes every row an item.
        tolerance: largest distance that counts as right in `accuracy_tolerance`.
        round_references: round the human scores to whole numbers first (halves up), because a mean
            rating such as 3.67 never matches exactly.
        confidence_level: within (0, 1).
        n_resamples: number of bootstrap resamples for the gap.
        seed: seed of the bootstrap.

    Returns:
        A `Robustness`.

    Raises:
        ValueError: ragged rows, unequal lengths, empty input, or a value that is not a finite
            number.

    >>> result = paraphrase_robustness([[4, 4], [2, 3], [5, 5]], [4, 2, 5])
    >>> [round(share, 3) for share in result.accuracy_per_paraphrase]
    [1.0, 0.667]
    """
    table, human = _checked(predictions, references)
    human = np.floor(human + 0.5) if round_references else human
    level = check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, whole=True)
    check_number(seed, "seed", 0, whole=True)
    n, k = table.shape
    clusters, n_items = cluster_codes(item_ids, n)
    is_right = (table == human[:, None]).astype(np.float64)
    is_near = _within(table, human, check_number(tolerance, "tolerance", 0))
    per_paraphrase = is_right.mean(axis=0)

    sizes = np.bincount(clusters, minlength=n_items).astype(np.float64)

    def share(row_sums: Floats, per_row: int) -> Interval:
        sums = np.bincount(clusters, row_sums, minlength=n_items)
        return wilson_from_sums(sums, sizes * per_row, level)

    accuracy_ci = share(is_right.sum(axis=1), k)
    near_ci = share(is_near.sum(axis=1), k)
    reasons = [] if n_items > 1 else ["one item: no interval"]

    gap = chance = sensitivity = consistency = None
    gap_ci = sensitivity_ci = consistency_ci = Interval(None, None)
    n_undefined = 0
    if k == 1:
        reasons.append(
            "one paraphrase: win_rate_gap, sensitivity, consistency and stable are undefined"
        )
    else:
        gap = float(per_paraphrase.max() - per_paraphrase.min())
        if n_items > 1:
            sums = [np.bincount(clusters, column, minlength=n_items) for column in is_right.T]
            draws = resampled_sums(np.column_stack([*sums, sizes]), n_resamples, seed)
            gaps = np.ptp(draws[:, :-1] / draws[:, -1:], axis=1)
            gap_ci = Interval(*percentile_ends(gaps, level)).within(0.0, 1.0)
        chance = _chance_gap(is_right)
        is_constant = (table == table[:, :1]).all(axis=1)
        consistency = float(is_constant.mean())
        consistency_ci = share(is_constant.astype(np.float64), 1)
        variation = coefficients_of_variation(table)
        defined = np.isfinite(variation)
        n_undefined = int(n - defined.sum())
        if defined.any():
            sensitivity = float(variation[defined].mean())
            ends = mean_t_cluster(variation[defined], clusters[defined], level)
            sensitivity_ci = ends.within(0.0, np.inf)
        else:
            reasons.append("sensitivity is undefined: every item varies around a mean of 0 or less")
    is_stable = [value < STABLE_BELOW - _SLACK for value in (gap, sensitivity) if value is not None]
    stable = False if False in is_stable else True if len(is_stable) == 2 else None
    return Robustness(
        accuracy=float(is_right.mean()),
        **accuracy_ci.fields("accuracy"),
        accuracy_tolerance=float(is_near.mean()),
        **near_ci.fields("accuracy_tolerance"),
        accuracy_per_paraphrase=per_paraphrase.tolist(),
        win_rate_gap=gap,
        **gap_ci.fields("win_rate_gap"),
        win_rate_gap_chance=chance,
        sensitivity=sensitivity,
        **sensitivity_ci.fields("sensitivity"),
        n_sensitivity_undefined=n_undefined,
        consistency=consistency,
        **consistency_ci.fields("consistency"),
        stable=stable,
        n_rows=n,
        n_items=n_items,
        n_paraphrases=k,
        degenerate="; ".join(reasons) or None,
    )


def tolerance_accuracies(
    predictions: Any, references: Any, tolerances: Sequence[float] = TOLERANCES
) -> dict[float, float]:
    """Accuracy within each of several tolerances: {tolerance: share of scores within it}.

    Arguments and errors are those of `paraphrase_robustness`.

    >>> tolerance_accuracies([[4], [2], [5]], [4.25, 2.5, 4])[0.5].__round__(3)
    0.667
    """
    table, human = _checked(predictions, references)
    return {
        float(tau): float(_within(table, human, check_number(tau, "tolerances", 0)).mean())
        for tau in tolerances
    }


def coefficients_of_variation(table: Floats) -> Floats:
    """Population standard deviation / mean of each row, shape (N,).

    A constant row has 0; one that varies around a mean of 0 or less has NaN, for the caller to
    count.
    """
    mean = table.mean(axis=1)
    result = np.full(len(table), np.nan)
    np.divide(table.std(axis=1), mean, out=result, where=mean > 0)
    result[(table == table[:, :1]).all(axis=1)] = 0.0
    return result


def _checked(scores: Any, references: Any) -> tuple[Floats, Floats]:
    table = numbers(scores, "predictions", 2)
    human = numbers(references, "references")
    if len(table) != len(human):
        raise ValueError(
            f"predictions has {len(table)} rows and references {len(human)}: "
            "pass one human score for each item"
        )
    return table, human


def _within(table: Floats, human: Floats, tolerance: float) -> Floats:
    distance = np.abs(table - human[:, None])
    return (distance <= tolerance + _SLACK).astype(np.float64)


def _chance_gap(is_right: Floats) -> float:
    """The mean gap if each item's k marks were dealt to the paraphrases at random.

    A row with a share p of right marks gives each paraphrase the variance p (1 - p) and each two
    the covariance -p (1 - p) / (k - 1), so the k accuracies are, in the normal limit, a centred
    independent sample and their range is that of k standard normals, scaled.
    """
    from scipy.special import ndtr

    n, k = is_right.shape
    p = is_right.mean(axis=1)
    spread = np.sqrt(k / (k - 1) * float((p * (1 - p)).sum())) / n
    x = np.linspace(-9.0, 9.0, 3601)
    normal_range = float((1 - ndtr(x) ** k - ndtr(-x) ** k).sum()) * (x[1] - x[0])
    return float(min(1.0, spread * normal_range))
