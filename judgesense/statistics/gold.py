"""Agreement of a judge with gold labels, beside what always giving one answer would reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.inputs import UNDECIDED, Labels, cluster_codes, encode_pair
from judgesense.statistics.intervals import (
    UNEQUAL,
    Interval,
    difference_interval,
    outer_ends,
    residual_correlation,
    wilson_cluster,
)
from judgesense.statistics.resampling import distinct_rows, percentile_ends, weighted_sums

_DRAWS = 4_000
"""Draws of the table of counts behind an interval: an end moves by about 0.03 standard errors."""


@dataclass(frozen=True)
class GoldAgreement:
    """How well decisions agree with gold labels, over the `n` rows whose gold is a known label.

    A row without a decision, or with one outside `labels`, is a wrong answer in every figure:
    `accuracy`, `balanced_accuracy` (the mean over gold labels of the share that is right),
    `kappa` (quadratic weights on an ordinal scale, where such a row is as far from its gold as the
    scale allows; a category of its own otherwise) and `gwet_ac1` (Gwet 2008; unweighted; one more
    category if there is such a row).

    `constant_label` is the commonest gold label, and `constant_accuracy` the accuracy of always
    giving it, on the same rows. `beats_constant` is accuracy - constant_accuracy.
    `undecided_share` is the share of rows without a decision. An undefined figure is None.
    """

    n: int = 0
    accuracy: float | None = None
    accuracy_ci_low: float | None = None
    accuracy_ci_high: float | None = None
    balanced_accuracy: float | None = None
    balanced_accuracy_ci_low: float | None = None
    balanced_accuracy_ci_high: float | None = None
    kappa: float | None = None
    kappa_ci_low: float | None = None
    kappa_ci_high: float | None = None
    gwet_ac1: float | None = None
    gwet_ac1_ci_low: float | None = None
    gwet_ac1_ci_high: float | None = None
    constant_label: str | None = None
    constant_accuracy: float | None = None
    beats_constant: float | None = None
    beats_constant_ci_low: float | None = None
    beats_constant_ci_high: float | None = None
    undecided_share: float | None = None


def gold_agreement(
    decision: Labels,
    gold: Labels,
    clusters: Any = None,
    labels: Sequence[str] = (),
    ordinal: bool = False,
    chances: Floats | None = None,
) -> GoldAgreement:
    """Measure agreement with gold labels; an undecided answer counts as wrong.

    Args:
        decision: canonical decisions, shape (n,), strings; `inputs.UNDECIDED` ones have none.
        gold: gold labels of the same rows, shape (n,), strings. A gold label outside `labels`
            (another vocabulary, or an empty string for none) leaves its row out.
        labels: the task's labels, in the order of the scale if `ordinal`.
        ordinal: whether kappa has quadratic weights.
        chances: with which each row was picked to be labelled, shape (n,), above 0. All figures
            are then those of all items, with each row counting 1 / chance.

    Returns:
        A `GoldAgreement`. Without a row of known gold, or without any decision, every figure is
        None. A single cluster has no intervals, and with fewer than two clusters per label only
        accuracy and `beats_constant` have one.

    >>> result = gold_agreement(["A", "A", "B", "UNCLEAR"], ["A", "A", "B", "B"], labels=["A", "B"])
    >>> result.accuracy, result.balanced_accuracy, result.constant_accuracy
    (0.75, 0.75, 0.5)
    """
    truth, answers, label_names = encode_pair(gold, decision)
    codes, _ = cluster_codes(clusters, len(truth))
    size = len(labels)
    # The last code is for answers, and gold, that are no label of the task.
    places = dict(zip(labels, range(size), strict=True))
    code_of = np.array([places.get(label, size) for label in label_names], dtype=np.intp)
    no_decision = np.isin(label_names, UNDECIDED)[answers]
    truth, answers = code_of[truth], code_of[answers]
    has_gold = truth < size
    truth, answers, no_decision = truth[has_gold], answers[has_gold], no_decision[has_gold]
    codes, k = cluster_codes(codes[has_gold], len(truth))
    if not len(truth):
        return GoldAgreement()
    weights = None if chances is None else 1 / chances[has_gold]
    commonest = int(np.bincount(truth, weights, minlength=size).argmax())
    hits, constant = truth == answers, truth == commonest
    figures: dict[str, Any] = {
        "n": len(truth),
        "constant_label": labels[commonest],
        "constant_accuracy": float(constant.mean()),
        "undecided_share": float(no_decision.mean()),
    }
    if no_decision.all():
        return GoldAgreement(**figures)
    accuracy_interval = wilson_cluster(hits, codes)
    correlation = residual_correlation(
        np.bincount(codes, constant - constant.mean()), np.bincount(codes, hits - hits.mean())
    )
    # These labels chose the commonest, which therefore looks commoner than it is: the end at which
    # the judge would be worse than it has its error divided among the labels.
    lower, upper = (
        difference_interval(
            (float(constant.mean()), wilson_cluster(constant, codes, level)),
            (float(hits.mean()), wilson_cluster(hits, codes, level)),
            correlation,
        )
        for level in (0.95, 1 - 0.05 / size)
    )
    gap = Interval(lower.low, upper.high)
    figures |= {"accuracy": float(hits.mean()), **accuracy_interval.fields("accuracy")}
    figures |= {"beats_constant": float(hits.mean() - constant.mean())}
    figures |= gap.fields("beats_constant")
    if weights is not None:
        figures |= _weighted(hits, constant, weights, codes)
    counts = None if weights is None else weights * len(weights) / weights.sum()
    tally = np.bincount(truth * (size + 1) + answers, counts, minlength=size * (size + 1))
    table = tally.reshape(size, size + 1).astype(np.float64)
    measures = table_figures(table, ordinal)
    if constant.all():
        # With one gold label there is neither kappa nor a mean over labels.
        measures = {"gwet_ac1": measures["gwet_ac1"]}
    draws: dict[str, Any] = {}
    reach = _by_jackknife(truth, answers, codes, table, ordinal, counts)
    if k >= max(2, 2 * size):
        draws = table_figures(_drawn_tables(truth, answers, codes, table, ordinal, counts), ordinal)
    for name, value in measures.items():
        figures[name] = float(value)
        if draws:
            low, high = percentile_ends(draws[name])
            below, above = reach[name]
            low, high = min(low, value - below), max(high, value + above)
            figures |= Interval(low, high).within(-1.0, 1.0).fields(name)
    return GoldAgreement(**figures)


def _weighted(hits: Bools, constant: Bools, weights: Floats, codes: Codes) -> dict[str, Any]:
    """Accuracy over all items, from labels that were picked with other chances in each stratum."""
    accuracy, ends = weighted_mean(hits, weights, codes)
    constant_accuracy, _ = weighted_mean(constant, weights, codes)
    gain, gain_ends = weighted_mean(hits.astype(float) - constant, weights, codes)
    figures: dict[str, Any] = {
        "accuracy": accuracy,
        "constant_accuracy": constant_accuracy,
        "beats_constant": gain,
    }
    return figures | ends.fields("accuracy") | gain_ends.fields("beats_constant")


def weighted_mean(column: Any, weights: Floats, clusters: Any) -> tuple[float, Interval]:
    """The mean of all items of a column in [-1, 1] whose rows were picked with other chances.

    Items of the same weight (1 / chance) are a stratum (Cochran 1977, section 5.3). Where all
    values of one are alike, its spread is that of one more of each kind. A column of booleans is a
    share, with an interval in [0, 1].

    >>> value, ends = weighted_mean(np.array([True, False] * 20), np.repeat([1.0, 3.0], 20), None)
    >>> round(value, 2), round(ends.low, 2), round(ends.high, 2)
    (0.5, 0.33, 0.67)
    """
    from scipy.special import stdtrit

    codes, k = cluster_codes(clusters, len(weights))
    if k < len(weights):
        return _weighted_ratio(column, weights, codes)
    rows = np.bincount(codes)
    weight = np.bincount(codes, weights) / rows
    _, stratum, n = np.unique(weight, return_inverse=True, return_counts=True)
    share = np.bincount(stratum, weight) / weight.sum()
    t = float(stdtrit(max(1, len(rows) - 1), 0.975))
    values = np.bincount(codes, column) / rows
    means = np.bincount(stratum, values) / n
    mean = float(share @ means)
    squares = np.bincount(stratum, (values - means[stratum]) ** 2) / np.maximum(1, n - 1)
    squares = np.where(squares > 0, squares, (n + 1) / (n + 2) ** 2)
    error2 = float((share**2 * squares / n).sum() + share @ (means - mean) ** 2 / weight.sum())
    if np.asarray(column).dtype != bool:
        return mean, Interval(mean - t * error2**0.5, mean + t * error2**0.5).within(-1, 1)
    alike = weight.sum() ** 2 / (weight**2).sum()
    size = mean * (1 - mean) / error2 if 0 < mean < 1 else float(alike)
    return mean, Interval(*outer_ends(mean, size, t, bunched=False))


def _weighted_ratio(column: Any, weights: Floats, codes: Codes) -> tuple[float, Interval]:
    """`weighted_mean` of rows that share clusters: a ratio of the clusters' sums, by the jackknife,
    with as many degrees of freedom as clusters count for (Kish)."""
    from scipy.special import stdtrit

    total, cluster_weights = float(weights.sum()), np.bincount(codes, weights)
    mean, k = float(weights @ column / total), len(cluster_weights)
    if k < 2:
        return mean, Interval(None, None)
    residuals = np.bincount(codes, weights * (column - mean)) * total / (total - cluster_weights)
    t = float(stdtrit(max(1.0, total**2 / float((cluster_weights**2).sum()) - 1), 0.975))
    least_variance = float((cluster_weights**2).mean()) / total**2
    error2 = float((residuals**2).sum()) / total**2
    if np.asarray(column).dtype != bool:
        error2 = max(error2, least_variance)
        return mean, Interval(mean - t * error2**0.5, mean + t * error2**0.5).within(-1, 1)
    alike = total**2 / float((cluster_weights**2).sum())
    size = mean * (1 - mean) / error2 if error2 > 0 and 0 < mean < 1 else alike
    return mean, Interval(*outer_ends(mean, size, t))


def table_figures(table: Floats, ordinal: bool) -> dict[str, Any]:
    """Balanced accuracy, kappa and Gwet's AC1 of tables of counts or shares, shape (...) each.

    A table is gold label x answer, shape (..., L, L + 1); the last answer is no label. Kappa has
    quadratic weights if `ordinal`; it is NaN where gold and answers are one and the same label.
    """
    size = table.shape[-2]
    p = table / table.sum(axis=(-2, -1), keepdims=True)
    gold, answer = p.sum(axis=-1), p.sum(axis=-2)
    diagonal = np.diagonal(p, axis1=-2, axis2=-1)
    present = gold > 0
    recall = np.divide(diagonal, gold, out=np.zeros_like(gold), where=present)
    # The cost of each answer for each gold label; the last answer is no label.
    steps = np.arange(size)
    cost = np.hstack([1.0 - np.eye(size), np.ones((size, 1))])
    if ordinal:
        farthest = np.maximum(steps, size - 1 - steps)
        cost = np.hstack([np.subtract.outer(steps, steps), farthest[:, None]]).astype(float) ** 2
    expected = np.einsum("...i,ij,...j->...", gold, cost, answer)
    observed = (p * cost).sum(axis=(-2, -1))
    hits = diagonal.sum(axis=-1)
    # Gwet (2008), formula for pe, over the labels and "no label" if that occurs.
    share = (np.concatenate([gold, np.zeros_like(gold[..., :1])], axis=-1) + answer) / 2
    categories = size + (answer[..., -1] > 0)
    chance = (share * (1 - share)).sum(axis=-1) / (categories - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = 1 - observed / expected
    return {
        "balanced_accuracy": recall.sum(axis=-1) / present.sum(axis=-1),
        "kappa": kappa,
        "gwet_ac1": (hits - chance) / (1 - chance),
    }


def _drawn_tables(
    truth: Codes,
    answers: Codes,
    codes: Codes,
    table: Floats,
    ordinal: bool,
    counts: Floats | None = None,
) -> Floats:
    """Tables that the data make plausible, shape (draws, L, L + 1).

    Whole clusters are reweighted (the Bayesian bootstrap, Rubin 1981), so that what a cluster's
    answers share, such as the two orders of an item, which stands under both labels, stays
    together. The weights are gamma variables whose shape is the squared ratio of the normal
    quantile to Student's at one less than the clusters of the cluster's rarest label, which widens
    the spread where these are few. To the gold labels' shares, and to the answers to each,
    Jeffreys' prior for right against wrong is added, which counts in independent answers: as many
    rows each as `intervals.wilson_cluster` takes for one. More than two labels share its weight,
    for they would all pull to the same side. ``counts`` are the rows' weights, with mean 1; unequal
    ones make the rows worth fewer (Kish's design effect).
    """
    from scipy.special import ndtri, stdtrit

    rng = np.random.default_rng(0)
    size = len(table)
    cells = size * (size + 1)
    of_cells = codes * cells + truth * (size + 1) + answers
    rows, tally = distinct_rows(
        np.bincount(of_cells, counts, minlength=(codes.max() + 1) * cells).reshape(-1, cells)
    )
    effect = 1.0 if counts is None else float((counts**2).mean())
    labels = np.flatnonzero(table.sum(axis=1))
    has = rows.reshape(-1, size, size + 1)[:, labels].any(axis=2)
    degrees = np.maximum(1, np.where(has, tally @ has, np.inf).min(axis=1) / effect - 1)
    shape = (ndtri(0.975) / stdtrit(degrees, 0.975)) ** 2
    draws = weighted_sums(rows, tally, shape, _DRAWS, rng).reshape(_DRAWS, size, size + 1)
    weight = np.empty(len(labels))
    for at, label in enumerate(labels.tolist()):
        is_label = truth == label
        worth = wilson_cluster(answers[is_label] == label, codes[is_label]).effective_n
        weight[at] = effect * is_label.sum() / (worth or 1.0)
    prior = _wrong_answers(table, ordinal)[labels]
    prior[np.arange(len(labels)), labels] += 1.0
    prior = np.maximum(prior / len(labels), 1e-300)
    gold = draws[:, labels].sum(axis=2) + weight * rng.gamma(1 / size, size=(_DRAWS, len(labels)))
    by_answer = draws[:, labels] + weight[:, None] * rng.gamma(prior, size=(_DRAWS, *prior.shape))
    draws[:, labels] = by_answer * (gold / by_answer.sum(axis=2))[:, :, None]
    return draws


def _by_jackknife(
    truth: Codes, answers: Codes, codes: Codes, table: Floats, ordinal: bool, counts: Floats | None
) -> dict[str, tuple[float, float]]:
    """How far the interval of each figure reaches at least, down and up; 0 for clusters of about
    equal size.

    Few large clusters decide, and draws that keep them all hide it. The jackknife over clusters
    does not; Student's t is at their effective number (Kish), and the interval is moved by Hall's
    correction for skewness (1992).
    """
    from scipy.special import stdtrit

    sizes = np.bincount(codes).astype(float)
    worth = sizes.sum() ** 2 / (sizes**2).sum()
    k, size = len(sizes), len(table)
    if worth >= UNEQUAL * k:
        return dict.fromkeys(table_figures(table, ordinal), (0.0, 0.0))
    cells = codes * table.size + truth * (size + 1) + answers
    cluster_tables = np.bincount(cells, counts, minlength=k * table.size).reshape(k, size, size + 1)
    t = float(stdtrit(max(1.0, worth - 1), 0.975))
    reach = {}
    for name, values in table_figures(table - cluster_tables, ordinal).items():
        defined = values[np.isfinite(values)]
        gaps = defined.mean() - defined if len(defined) else np.zeros(1)
        half = t * float(np.sqrt((k - 1) / k * (gaps**2).sum()))
        shift = float((gaps**3).sum() / max(1e-12, 6 * (gaps**2).sum())) * (1 + 2 * t**2)
        shift = min(half / 2, max(-half / 2, shift))
        reach[name] = (half - shift, half + shift)
    return reach


def _wrong_answers(table: Floats, ordinal: bool) -> Floats:
    """Shares of the answers to each gold label among the wrong ones, shape (L, L + 1).

    On a scale they follow how far off all wrong answers are, with one row more beside the gold
    label; otherwise they are equal, but for answers that are no label.
    """
    size = len(table)
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    off = np.bincount(steps.ravel(), table[:, :size].ravel(), minlength=size)
    off[0] = 0.0
    off[1] += 1.0
    shares = off[steps] / np.bincount(steps.ravel())[steps]
    if not ordinal:
        shares = (1 - np.eye(size)) * (off.sum() / (size * (size - 1)))
    none = np.full((size, 1), table[:, -1].sum() / size)
    columns = np.hstack([shares, none])
    result: Floats = columns / columns.sum(axis=1, keepdims=True)
    return result
