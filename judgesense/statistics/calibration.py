"""Remedies on arrays: a judge's prior taken out, orders and wordings averaged, repeats voted.

Log-probabilities are in nats, one column per option; NaN marks an answer that was not given. The
functions know nothing of judges or files: :mod:`judgesense.trust.remedies` applies them to a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.intervals import cluster_codes

UNDECIDED = -1
"""The code of a verdict that cannot be read, or of a tie."""

_FLOOR = 1e-12
"""The least probability whose logarithm is taken: an option that never gets any has a finite
offset."""

_IMPOSSIBLE = -700.0
"""The log-probability in place of minus infinity, so that a mean over members stays a number."""


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

    Subtract it from log-probabilities to calibrate them. The offsets sum to zero. It assumes that
    the options are right about equally often: a batch with skewed gold labels gets offsets that
    are too strong.

    Source: Zhou et al., "Batch Calibration: Rethinking Calibration for In-Context Learning and
    Prompt Engineering", arXiv:2309.17249, equations 4 and 5.

    Args:
        logprobs: shape (n, L); rows with NaN are left out.

    Raises:
        ValueError: no row has log-probabilities.

    >>> batch_offsets(np.log([[0.8, 0.2], [0.8, 0.2]])).round(3).tolist()
    [0.693, -0.693]
    """
    shares = np.exp(log_shares(logprobs))
    known = ~np.isnan(shares).any(axis=-1)
    if not known.any():
        raise ValueError("no row has log-probabilities: pass at least one answer to learn from")
    return _centred(np.log(np.maximum(shares[known].mean(axis=0), _FLOOR)))


def contextual_offsets(content_free: npt.ArrayLike) -> Floats:
    """A judge's prior from content-free inputs ("N/A", an empty text), shape (L,).

    Source: Zhao et al., "Calibrate Before Use: Improving Few-Shot Performance of Language Models",
    arXiv:2102.09690, section 5 (the mean over several content-free inputs, diagonal weights).

    Args:
        content_free: log-probabilities on the content-free inputs, shape (n, L).

    Raises:
        ValueError: no row has log-probabilities.

    >>> contextual_offsets(np.log([[0.5, 0.5]])).tolist()
    [0.0, 0.0]
    """
    return batch_offsets(content_free)


def permutation_offsets(logprobs: npt.ArrayLike) -> Floats:
    """A judge's prior for each option's name, from the same options in several orders, shape (L,).

    For every item the prior is the softmax over names of the mean log-probability over the orders;
    the offsets are the log of its mean over items. The orders should show every option under every
    name equally often (for two options: both orders).

    Source: Zheng et al., "Large Language Models Are Not Robust Multiple Choice Selectors" (PriDe),
    arXiv:2309.03882, equations 6 to 8.

    Args:
        logprobs: shape (n items, orders, L), by option name as shown; items with NaN are left out.

    Raises:
        ValueError: no item has log-probabilities in all orders.

    >>> permutation_offsets(np.log([[[0.9, 0.1], [0.5, 0.5]]])).round(3).tolist()
    [0.549, -0.549]
    """
    return batch_offsets(log_shares(logprobs).mean(axis=1))


def _centred(offsets: Floats) -> Floats:
    centred: Floats = offsets - offsets.mean(axis=-1, keepdims=True)
    return centred


def calibrated(logprobs: npt.ArrayLike, offsets: npt.ArrayLike) -> Floats:
    """Log-probabilities minus the offsets, normalised again; same shape.

    >>> np.exp(calibrated(np.log([[0.8, 0.2]]), [0.6931, -0.6931])).round(3).tolist()
    [[0.5, 0.5]]
    """
    return log_shares(np.asarray(logprobs, dtype=np.float64) - np.asarray(offsets))


def mean_log_odds(logprobs: npt.ArrayLike) -> Floats:
    """The mean over the members of a panel (wordings, option orders), normalised: shape (n, L).

    The log-odds between any two options are the mean of the members' log-odds. An item that lacks a
    member's answer is NaN.

    Args:
        logprobs: shape (n, members, L); for option orders, in the columns of one order.

    >>> np.exp(mean_log_odds(np.log([[[0.9, 0.1], [0.4, 0.6]]]))).round(2).tolist()
    [[0.71, 0.29]]
    """
    shares = np.maximum(log_shares(logprobs), _IMPOSSIBLE)
    return log_shares(shares.mean(axis=1))


def most_probable(logprobs: npt.ArrayLike) -> Codes:
    """The most probable option of each row, the first of a tie; UNDECIDED for NaN, shape (n,).

    >>> most_probable([[-1.0, -0.5], [np.nan, np.nan]]).tolist()
    [1, -1]
    """
    values = np.asarray(logprobs, dtype=np.float64)
    unknown = np.isnan(values).any(axis=-1)
    chosen: Codes = np.where(unknown, -np.inf, values.T).T.argmax(axis=-1)
    return np.where(unknown, UNDECIDED, chosen)


def expected_score(logprobs: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
    """The probability-weighted mean of the scale's values, shape (n,); NaN for NaN.

    Source: Liu et al., "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment",
    arXiv:2303.16634, section 2 (with the options' probabilities themselves, not samples).

    >>> expected_score(np.log([[0.5, 0.25, 0.25]]), [1, 2, 3]).tolist()
    [1.75]
    """
    score: Floats = np.exp(log_shares(logprobs)) @ np.asarray(values, dtype=np.float64)
    return score


def nearest(scores: npt.ArrayLike, values: npt.ArrayLike) -> Codes:
    """The index of the value nearest to each score; UNDECIDED for NaN.

    >>> nearest([1.75, np.nan], [1, 2, 3]).tolist()
    [1, -1]
    """
    scores = np.asarray(scores, dtype=np.float64)
    gaps = np.abs(np.nan_to_num(scores)[:, None] - np.asarray(values, dtype=np.float64))
    found: Codes = gaps.argmin(axis=1)
    return np.where(np.isnan(scores), UNDECIDED, found)


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
    """The label with the most verdicts of each row; UNDECIDED for a tie and without a verdict.

    >>> majority([[0, 1, 1], [0, 1, -1]], 2).tolist()
    [1, -1]
    """
    shares = votes(codes, n_labels)
    best = shares.max(axis=1, keepdims=True)
    tied = (shares == best).sum(axis=1) != 1
    return np.where(tied, UNDECIDED, np.nan_to_num(shares).argmax(axis=1))


def folds_of(clusters: Any, n_folds: int = 10, seed: int = 0) -> Codes:
    """The fold of each row, whole clusters together and folds of nearly equal size, shape (n,).

    With fewer clusters than folds, every cluster is a fold (leave one out).

    Raises:
        ValueError: fewer than two clusters, which leave nothing to learn from.

    >>> sorted(set(folds_of(["a", "a", "b", "c"], 2).tolist()))
    [0, 1]
    """
    codes, k = cluster_codes(clusters, len(clusters))
    if k < 2:
        raise ValueError("all rows are one cluster: pass at least two to cross-fit")
    order = np.random.default_rng(seed).permutation(k)
    fold = np.empty(k, dtype=np.int64)
    fold[order] = np.arange(k) % min(n_folds, k)
    found: Codes = fold[codes]
    return found


@dataclass(frozen=True)
class Gain:
    """What a remedy gains on the same items: ``after - before`` with its interval.

    The ends are None with a single cluster. ``n`` counts rows.
    """

    before: float
    after: float
    gain: float
    ci_low: float | None
    ci_high: float | None
    n: int


def paired_gain(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    clusters: Any = None,
    confidence_level: float = 0.95,
) -> Gain:
    """The mean difference of two scores of the same items, with an interval over clusters.

    Student's t with a cluster-robust error, after adding one cluster that gains and one that loses
    the largest difference seen (1 if none was), in the manner of Bonett & Price (2012) for paired
    proportions: a difference of zero everywhere still has a width.

    Args:
        before, after: shape (n,), such as the share of an item's verdicts that are right.
        clusters: one id per row, or None.
        confidence_level: within (0, 1).

    Raises:
        ValueError: no rows, or arrays of different lengths.

    >>> found = paired_gain([0, 0, 1, 1], [1, 1, 1, 1])
    >>> found.gain, round(found.ci_low, 2)
    (0.5, -0.52)
    """
    from scipy.special import stdtrit

    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if not len(x) or x.shape != y.shape:
        raise ValueError(
            f"before has {len(x)} rows and after {len(y)}: pass the same items in both"
        )
    gap = y - x
    gain = float(gap.mean())
    codes, k = cluster_codes(clusters, len(gap))
    if k < 2:
        return Gain(float(x.mean()), float(y.mean()), gain, None, None, len(gap))
    sizes = np.bincount(codes, minlength=k).astype(np.float64)
    sums = np.bincount(codes, gap, minlength=k)
    most = float(np.abs(gap).max()) or 1.0
    size = float(sizes.mean())
    sums, sizes = np.append(sums, [most * size, -most * size]), np.append(sizes, [size, size])
    centre = float(sums.sum() / sizes.sum())
    residual = sums - centre * sizes
    n_clusters = len(sizes)
    error = np.sqrt(n_clusters / (n_clusters - 1) * float((residual**2).sum())) / sizes.sum()
    half = float(stdtrit(n_clusters - 1, (1 + confidence_level) / 2)) * float(error)
    low, high = min(centre - half, gain), max(centre + half, gain)
    return Gain(float(x.mean()), float(y.mean()), gain, max(-1.0, low), min(1.0, high), len(gap))
