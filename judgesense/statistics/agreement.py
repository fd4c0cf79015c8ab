"""The Judge Sensitivity Score and Cohen's kappa of two streams of decisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.intervals import (
    Interval,
    bootstrap_kappa,
    bootstrap_mean,
    cluster_codes,
    wilson_cluster,
)
from judgesense.statistics.labels import Codes, Labels, check_level, check_resamples, encode_pair

UNDECIDED = ("UNCLEAR", "REFUSED", "ERROR")
"""Decisions that are none: answered but not readable, refused, failed."""


@dataclass(frozen=True)
class Agreement:
    """How often two prompts led to the same decision.

    `jss`, `flip_rate`, `kappa` and their intervals are over the `n_pairs` pairs decided on both
    sides, which come from `n_items` items; the pairs left out are counted once each, by the worst
    of their two sides (`n_error`, then `n_refused`, then `n_unclear`, which also takes any other
    undecided label). `jss_low` and `jss_high` are JSS if all of those had disagreed, or agreed.
    What is undefined is None, and `degenerate` then says why in words.
    """

    jss: float | None
    flip_rate: float | None
    kappa: float | None
    ci_low: float | None
    ci_high: float | None
    kappa_ci_low: float | None
    kappa_ci_high: float | None
    jss_low: float
    jss_high: float
    n_pairs: int
    n_items: int
    n_unclear: int
    n_refused: int
    n_error: int
    degenerate: str | None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def jss(
    references: Labels,
    predictions: Labels,
    item_ids: Any = None,
    *,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
    interval: str = "wilson",
    n_resamples: int = 10_000,
    seed: int = 0,
    kappa_interval: bool = True,
) -> Agreement:
    """Judge Sensitivity Score: the share of pairs on which both prompts got the same decision.

    JSS = mean of [a_i == b_i] (JudgeSense, section 3.1, formula 1), flip rate = 1 - JSS, Cohen's
    kappa over the same pairs (section 3.6). Intervals take the item as the sample.

    Args:
        references: decision under the pair's first prompt, shape (n,), strings.
        predictions: decision under the pair's second prompt, shape (n,), strings.
        item_ids: what each pair is about, shape (n,), strings or integers; rows of one item are not
            independent. None makes every pair its own item.
        undecided: labels that are no decision; pairs with one are left out, counted and bounded.
        confidence_level: of all intervals, within (0, 1).
        interval: "wilson" (`intervals.wilson_cluster`) or "bootstrap" (percentile, over items).
        n_resamples: resamples of the bootstraps (kappa's interval always is one).
        seed: of `numpy.random.default_rng`.
        kappa_interval: leave False to skip kappa's bootstrap.

    Returns:
        The agreement; with a single item the interval ends are None.

    Raises:
        ValueError: labels that are no strings, unequal lengths, empty input, or a bad option.
    """
    if interval not in ("wilson", "bootstrap"):
        raise ValueError(f"interval is {interval!r}: pass 'wilson' or 'bootstrap'")
    if isinstance(undecided, str):
        raise ValueError(f"undecided is the string {undecided!r}: pass a list of labels")
    check_level(confidence_level)
    check_resamples(n_resamples)
    first, second, labels = encode_pair(references, predictions)
    clusters = None if item_ids is None else cluster_codes(item_ids, len(first))[0]

    rank = np.array([_rank(label, undecided) for label in labels], dtype=np.int8)
    worst = np.maximum(rank[first], rank[second])
    left_out = np.bincount(worst, minlength=4)
    n_rows, n_pairs = len(first), int(left_out[0])
    if n_pairs < n_rows:
        keep = worst == 0
        first, second = first[keep], second[keep]
        clusters = None if clusters is None else clusters[keep]
    agree = first == second
    hits = int(agree.sum())

    spread = Interval(None, None)
    kappa_spread = Interval(None, None)
    value: float | None = None
    reason: str | None = None
    if not n_pairs:
        reason = "no pair has a decision on both sides"
    else:
        if interval == "wilson":
            spread = wilson_cluster(agree, clusters, confidence_level)
        else:
            spread = bootstrap_mean(
                agree, clusters, confidence_level, n_resamples=n_resamples, seed=seed
            )
        used = np.unique(np.concatenate([np.unique(first), np.unique(second)]))
        if len(used) == 1:
            reason = f"every decision is {labels[used[0]]!r}: kappa is undefined"
        else:
            codes = np.zeros(len(labels), dtype=np.intp)
            codes[used] = np.arange(len(used))
            first, second = codes[first], codes[second]
            value = kappa_from_table(contingency(first, second, len(used)))
            if kappa_interval:
                kappa_spread = bootstrap_kappa(
                    first, second, clusters, confidence_level, n_resamples, seed
                )
    share = hits / n_pairs if n_pairs else None
    return Agreement(
        jss=share,
        flip_rate=None if share is None else (n_pairs - hits) / n_pairs,
        kappa=value,
        ci_low=spread.low,
        ci_high=spread.high,
        kappa_ci_low=kappa_spread.low,
        kappa_ci_high=kappa_spread.high,
        jss_low=hits / n_rows,
        jss_high=(hits + n_rows - n_pairs) / n_rows,
        n_pairs=n_pairs,
        n_items=n_pairs if clusters is None else len(np.unique(clusters)),
        n_unclear=int(left_out[1]),
        n_refused=int(left_out[2]),
        n_error=int(left_out[3]),
        degenerate=reason,
    )


def _rank(label: str, undecided: Collection[str]) -> int:
    if label not in undecided:
        return 0
    return {"REFUSED": 2, "ERROR": 3}.get(label, 1)


def cohen_kappa(
    a: Labels, b: Labels, weights: str | None = None, labels: Sequence[str] | None = None
) -> float | None:
    """Cohen's kappa (Cohen 1960), or weighted kappa (Cohen 1968) for an ordered scale.

    Args:
        a: labels of the first rater, shape (n,), strings.
        b: labels of the second rater, shape (n,), strings.
        weights: None, or "linear" or "quadratic": disagreements count by the distance, or squared
            distance, of the labels' places in `labels`.
        labels: the scale in order; None takes the labels seen, as numbers where all are numbers,
            else sorted as text. A weighted kappa needs every step of the scale named, also one
            that nobody used.

    Returns:
        Kappa, or None where it is undefined (both streams are one and the same label).

    Raises:
        ValueError: bad labels or lengths, a label missing from `labels`, unknown `weights`.
    """
    first, second, seen = encode_pair(a, b, ("a", "b"))
    scale = ordered(seen) if labels is None else list(labels)
    place = {label: code for code, label in enumerate(scale)}
    for label in seen:
        if label not in place:
            raise ValueError(f"the label {label!r} is not in labels={scale!r}: name it there")
    codes = np.array([place[label] for label in seen], dtype=np.intp)
    table = contingency(codes[first], codes[second], len(scale))
    return kappa_from_table(table, disagreement_weights(len(scale), weights))


def disagreement_weights(n_labels: int, weights: str | None) -> npt.NDArray[np.float64]:
    """Cost of confusing label i with label j, shape (L, L): 0/1, |i - j| or (i - j) squared."""
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"weights is {weights!r}: pass None, 'linear' or 'quadratic'")
    steps = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))).astype(float)
    if weights is None:
        return (steps > 0).astype(float)
    return steps if weights == "linear" else steps**2


def contingency(first: Codes, second: Codes, n_labels: int) -> npt.NDArray[np.float64]:
    """Counts of each pair of codes, shape (L, L)."""
    flat = np.bincount(first * n_labels + second, minlength=n_labels * n_labels)
    return flat.reshape(n_labels, n_labels).astype(np.float64)


def kappa_from_table(
    table: npt.NDArray[np.float64], weights: npt.NDArray[np.float64] | None = None
) -> float | None:
    """Kappa of a contingency table, shape (L, L): 1 - observed / expected disagreement."""
    if weights is None:
        weights = disagreement_weights(len(table), None)
    expected = float((weights * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    if expected == 0:
        return None
    return 1 - float((weights * table).sum()) * float(table.sum()) / expected


def ordered(labels: Collection[str]) -> list[str]:
    """Sort labels as numbers where all are numbers, else as text."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)
