"""Recipes on arrays: remove priors, average orders and wordings, vote and abstain.

Log-probabilities are in nats, one column per option; NaN marks an answer that was not given. The
functions know nothing of judges or files: :mod:`judgesense.measure.remedies` applies them to a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import wilson_cluster

NO_VERDICT = -1
"""The code of a verdict that cannot be read, or of a tie."""

_FLOOR = 1e-12
"""The least probability whose logarithm is taken: an option that never gets any has a finite
offset."""

_IMPOSSIBLE = -700.0
"""The log-probability in place of minus infinity, so that a mean over members stays a number."""

_ERROR_CLUSTERS = 10
"""Clusters with an error that show how errors cluster."""

_STARTS = 2
"""Sequences of thresholds that are tested, each with its share of the error."""

_STEPS = 40
"""Thresholds per sequence."""


def log_shares(logprobs: npt.ArrayLike) -> Floats:
    """Log-probabilities normalised over the last axis; NaN rows stay NaN.

    >>> np.exp(log_shares([[np.log(0.2), np.log(0.6)]])).round(2).tolist()
    [[0.25, 0.75]]
    """
    values = np.asarray(logprobs, dtype=np.float64)
    best = values.max(axis=-1, keepdims=True)
    shifted = values - np.where(np.isfinite(best), best, 0.0)
    with np.errstate(divide="ignore"):
        normalised: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised


def batch_offsets(logprobs: npt.ArrayLike) -> Floats:
    """A judge's prior for each option: the log of the mean probability over a batch, shape (L,).

    Subtract it from log-probabilities, shape (n, L), to calibrate them. The offsets sum to zero;
    rows with NaN are left out. It assumes that the options are right about equally often: a batch
    with skewed gold labels gets offsets that are too strong. Without any answer they are zero.

    Source: Zhou et al., "Batch Calibration: Rethinking Calibration for In-Context Learning and
    Prompt Engineering", arXiv:2309.17249, equations 4 and 5.

    >>> batch_offsets(np.log([[0.8, 0.2], [0.8, 0.2]])).round(3).tolist()
    [0.693, -0.693]
    """
    shares = np.exp(log_shares(logprobs))
    is_given = ~np.isnan(shares).any(axis=-1)
    if not is_given.any():
        return np.zeros(shares.shape[-1])
    offsets: Floats = np.log(np.maximum(shares[is_given].mean(axis=0), _FLOOR))
    centred: Floats = offsets - offsets.mean()
    return centred


def calibrated(logprobs: npt.ArrayLike, offsets: npt.ArrayLike) -> Floats:
    """Log-probabilities minus the offsets, normalised again; same shape.

    >>> np.exp(calibrated(np.log([[0.8, 0.2]]), [0.6931, -0.6931])).round(3).tolist()
    [[0.5, 0.5]]
    """
    return log_shares(np.asarray(logprobs, dtype=np.float64) - np.asarray(offsets))


def mean_log_odds(logprobs: npt.ArrayLike) -> Floats:
    """The mean over a panel's members (wordings, option orders), normalised: shape (n, L).

    The log-odds between any two options are the mean of the members' log-odds, which have shape
    (n, members, L). An item that lacks a member's answer is NaN.

    >>> np.exp(mean_log_odds(np.log([[[0.9, 0.1], [0.4, 0.6]]]))).round(2).tolist()
    [[0.71, 0.29]]
    """
    shares = np.maximum(log_shares(logprobs), _IMPOSSIBLE)
    return log_shares(shares.mean(axis=1))


def most_probable(logprobs: npt.ArrayLike) -> Codes:
    """The most probable option of each row, the first of a tie; NO_VERDICT for NaN, shape (n,).

    >>> most_probable([[-1.0, -0.5], [np.nan, np.nan]]).tolist()
    [1, -1]
    """
    values = np.asarray(logprobs, dtype=np.float64)
    unknown = np.isnan(values).any(axis=-1)
    codes: Codes = np.where(unknown, -np.inf, values.T).T.argmax(axis=-1)
    return np.where(unknown, NO_VERDICT, codes)


def expected_score(logprobs: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
    """The probability-weighted mean of the scale's values, shape (n,); NaN for NaN.

    Source: Liu et al., "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment",
    arXiv:2303.16634, section 2 (with the options' probabilities themselves, not samples).

    >>> expected_score(np.log([[0.5, 0.25, 0.25]]), [1, 2, 3]).tolist()
    [1.75]
    """
    score: Floats = np.exp(log_shares(logprobs)) @ np.asarray(values, dtype=np.float64)
    return score


def votes(codes: npt.ArrayLike, n_labels: int) -> Floats:
    """The share of the members' readable verdicts for each label, shape (n, L); NaN without any.

    >>> votes([[0, 1, 1], [-1, -1, -1]], 2).round(2).tolist()
    [[0.33, 0.67], [nan, nan]]
    """
    codes = np.asarray(codes, dtype=np.int64)
    counts = (codes[:, :, None] == np.arange(n_labels)).sum(axis=1).astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    return shares


def majority(codes: npt.ArrayLike, n_labels: int) -> Codes:
    """The label with the most verdicts of each row; NO_VERDICT for a tie and without a verdict.

    >>> majority([[0, 1, 1], [0, 1, -1]], 2).tolist()
    [1, -1]
    """
    shares = votes(codes, n_labels)
    best = shares.max(axis=1, keepdims=True)
    tied = (shares == best).sum(axis=1) != 1
    return np.where(tied, NO_VERDICT, np.nan_to_num(shares).argmax(axis=1))


@dataclass(frozen=True)
class AskThreshold:
    """The margin from which a verdict is given; below it, a person is asked.

    ``threshold`` is None if no margin holds the error: then ``needed`` is the least number of
    independent verdicts that could. ``answered`` is the share of verdicts given, ``error`` the
    share of those that is wrong here, ``error_bound`` its upper confidence bound, ``n`` the
    verdicts looked at.
    """

    threshold: float | None
    answered: float
    error: float | None
    error_bound: float | None
    n: int
    needed: int | None = None


def _verdicts_needed(codes: Codes, max_error: float, confidence: float) -> int:
    """The fewest verdicts, all of them right, for which ``max_error`` can be promised."""
    sizes = np.bincount(codes)
    sizes = sizes[sizes > 0]
    share = max_error * float(sizes.mean()) / float(sizes.max())
    return int(np.ceil(np.log(1 - confidence) / np.log(1 - share) * float(sizes.mean())))


def error_bound(decided: Bools, wrong: Bools, codes: Codes, confidence: float) -> float:
    """The upper bound of the share of decided verdicts that are wrong.

    The exact binomial bound where no decided verdicts share a cluster. Otherwise clusters count:
    all verdicts of one may be wrong together, which a few wrong ones cannot rule out. Their sums,
    as shares of the largest cluster, have the bound of Hoeffding and Bentkus, which for any
    distribution in [0, 1] and n clusters without an error is 1 - (1 - confidence)^(1/n) (Bates et
    al. 2021, "Distribution-free, risk-controlling prediction sets", section 3.1). From
    `_ERROR_CLUSTERS` clusters with an error on, how errors cluster is known, and the verdicts count
    as their effective number (:func:`wilson_cluster`).
    """
    from scipy.optimize import brentq
    from scipy.special import bdtr, betaincinv, xlogy

    sizes, errors = np.bincount(codes[decided]), np.bincount(codes[decided], wrong[decided])
    errors, sizes = errors[sizes > 0], sizes[sizes > 0]
    n, k = len(sizes), float(errors.sum())
    if not n or k >= sizes.sum():
        return 1.0
    largest = int(sizes.max())
    if largest == 1:
        return float(betaincinv(k + 1, n - k, confidence))
    if np.count_nonzero(errors) >= _ERROR_CLUSTERS:
        effective = wilson_cluster(wrong[decided], codes[decided]).effective_n or 1.0
        worth = min(1.0, effective / float(sizes.sum()))
        return float(betaincinv(k * worth + 1, (sizes.sum() - k) * worth, confidence))
    mean = k / (n * largest)

    def excess(rate: float) -> float:
        """Log p of a mean error of at least ``rate``, less log (1 - confidence)."""
        distance = xlogy(mean, mean / rate) + xlogy(1 - mean, (1 - mean) / (1 - rate))
        bentkus = np.e * bdtr(float(np.ceil(k / largest)), n, rate)
        p = min(float(np.exp(-n * distance)), float(bentkus), 1.0)
        return float(np.log(max(p, 1e-300)) - np.log(1 - confidence))

    low, high = max(mean, 1e-12), 1 - 1e-9
    if excess(high) > 0:
        return 1.0
    bound = float(brentq(excess, low, high)) if excess(low) > 0 else low
    return min(1.0, bound * largest / float(sizes.mean()))


def ask_threshold(
    margin: npt.ArrayLike,
    wrong: npt.ArrayLike,
    clusters: Any = None,
    *,
    max_error: float = 0.05,
    confidence: float = 0.95,
) -> AskThreshold:
    """The lowest margin whose verdicts are wrong in at most ``max_error``, with this confidence.

    Thresholds are tested in a fixed order, from the most cautious one that could pass to giving
    every verdict (`longest_safe`); two such sequences, the second starting halfway, share the
    error.

    Args:
        margin: shape (n,), the larger the surer; of verdicts that were not used to fit the margin.
        wrong: shape (n,), true where the verdict is wrong.

    >>> result = ask_threshold([3.0] * 150 + [0.1] * 50, [False] * 150 + [True, False] * 25)
    >>> result.threshold, result.answered, round(result.error_bound, 3)
    (3.0, 0.75, 0.024)
    """
    order = np.argsort(-np.asarray(margin, np.float64), kind="stable")
    falling, is_wrong = -np.asarray(margin, np.float64)[order], np.asarray(wrong, bool)[order]
    n, level = len(order), 1 - (1 - confidence) / _STARTS
    codes = cluster_codes(clusters, n)[0][order]
    first_count = _verdicts_needed(codes, max_error, level) if n else 1
    longest: tuple[int, float] | None = None
    for start in (first_count, (first_count + n) // 2) if first_count <= n else ():
        counts = np.unique(np.linspace(start, n, _STEPS).round().astype(int))
        # Equal margins are answered together.
        ends = np.searchsorted(falling, falling[counts - 1], side="right")
        steps = np.arange(n) < ends[:, None]
        safe = longest_safe(steps, steps & is_wrong, codes, max_error=max_error, confidence=level)
        if safe.step is not None and (longest is None or ends[safe.step] > longest[0]):
            longest = int(ends[safe.step]), safe.bound or 0.0
    if longest is None:
        return AskThreshold(None, 0.0, None, None, n, first_count if first_count > n else None)
    count, bound = longest
    # Everything was good enough: no margin is too small.
    lowest = 0.0 if count == n else float(-falling[count - 1])
    return AskThreshold(lowest, count / n, float(is_wrong[:count].sum()) / count, bound, n)


@dataclass(frozen=True)
class SafeStep:
    """How far a fixed sequence of tests passes: the last ``step`` (None: not the first one), and
    the upper ``bound`` of its error; ``needed`` are the verdicts that the first test needs."""

    step: int | None
    bound: float | None
    needed: int


def longest_safe(
    decided: npt.ArrayLike,
    wrong: npt.ArrayLike,
    clusters: Any = None,
    *,
    max_error: float = 0.05,
    confidence: float = 0.95,
) -> SafeStep:
    """The boldest policy that decides at most ``max_error`` of its items wrongly.

    Policies are tested in their order, from cautious to bold, until one fails.

    Each test compares the bound of the policy's error (`error_bound`) with ``max_error``.

    Source: Angelopoulos et al., "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
    Control", arXiv:2110.01052, sections 2 and 4 (fixed-sequence testing).

    Args:
        decided: whether a policy decides an item, shape (policies, items).
        wrong: whether it decides it wrongly, the same shape.

    >>> decided = np.tril(np.ones((100, 100), bool))
    >>> longest_safe(decided, decided & (np.arange(100) > 80)).step
    80
    """
    policies, errors = np.asarray(decided, bool), np.asarray(wrong, bool)
    codes, k = cluster_codes(clusters, policies.shape[1])
    needed = _verdicts_needed(codes, max_error, confidence) if k else 1
    result = SafeStep(None, None, needed)
    for step, policy in enumerate(policies):
        # A policy that decides too little to pass without an error is no test.
        if error_bound(policy, policy & False, codes, confidence) > max_error:
            continue
        bound = error_bound(policy, errors[step], codes, confidence)
        if bound > max_error:
            break
        result = SafeStep(step, bound, needed)
    return result
