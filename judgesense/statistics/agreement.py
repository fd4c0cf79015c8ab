"""The Judge Sensitivity Score and Cohen's kappa of two streams of decisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.intervals import (
    Interval,
    bootstrap_mean,
    cluster_codes,
    mean_t_cluster,
    wilson_cluster,
)
from judgesense.statistics.kappa import (
    bootstrap_kappa,
    cohen_kappa,
    contingency,
    kappa_from_table,
    wilson_kappa,
)
from judgesense.statistics.labels import (
    Codes,
    Labels,
    check_labels,
    check_level,
    check_resamples,
    check_seed,
    encode_pair,
    numbers,
)

__all__ = ["UNDECIDED", "Agreement", "SoftAgreement", "cohen_kappa", "jss", "soft_jss"]

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
        interval: "wilson" (`intervals.wilson_cluster`, `kappa.wilson_kappa`) or "bootstrap"
            (percentile, over items).
        n_resamples: resamples of the bootstraps.
        seed: of the bootstraps' `numpy.random.default_rng`.
        kappa_interval: pass False to leave out kappa's interval.

    Returns:
        The agreement; with a single item the interval ends are None.

    Raises:
        ValueError: labels that are no strings, unequal lengths, empty input, or a bad option.
    """
    first, second, labels = encode_pair(references, predictions)
    return jss_of_codes(
        first,
        second,
        labels,
        None if item_ids is None else cluster_codes(item_ids, len(first))[0],
        undecided=undecided,
        confidence_level=confidence_level,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        kappa_interval=kappa_interval,
    )


def jss_of_codes(
    first: Codes,
    second: Codes,
    labels: Sequence[str],
    clusters: Codes | None = None,
    *,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
    interval: str = "wilson",
    n_resamples: int = 10_000,
    seed: int = 0,
    kappa_interval: bool = True,
) -> Agreement:
    """`jss` of decisions that are encoded already.

    Args:
        first: decision under the pair's first prompt, places in `labels`, shape (n,), n > 0.
        second: decision under the pair's second prompt, shape (n,).
        labels: what the codes stand for.
        clusters: a code >= 0 for what each pair is about, shape (n,), or None.
        undecided: as `jss`, and so are the others.
        confidence_level: within (0, 1).
        interval: "wilson" or "bootstrap".
        n_resamples: resamples of the bootstraps.
        seed: of the bootstraps.
        kappa_interval: pass False to leave out kappa's interval.

    Returns:
        The agreement.

    Raises:
        ValueError: a bad option.
    """
    if interval not in ("wilson", "bootstrap"):
        raise ValueError(f"interval is {interval!r}: pass 'wilson' or 'bootstrap'")
    undecided = check_labels(undecided, "undecided")
    check_level(confidence_level)
    check_resamples(n_resamples)
    check_seed(seed)
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
        seen = np.bincount(first, minlength=len(labels)) + np.bincount(
            second, minlength=len(labels)
        )
        used = np.flatnonzero(seen)
        if len(used) == 1:
            reason = f"every decision is {labels[used[0]]!r}: kappa is undefined"
        else:
            codes = np.zeros(len(labels), dtype=np.intp)
            codes[used] = np.arange(len(used))
            first, second = codes[first], codes[second]
            value = kappa_from_table(contingency(first, second, len(used)))
            if kappa_interval and interval == "wilson":
                kappa_spread = wilson_kappa(first, second, clusters, confidence_level)
            elif kappa_interval:
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
        n_items=n_pairs if clusters is None else int(np.count_nonzero(np.bincount(clusters))),
        n_unclear=int(left_out[1]),
        n_refused=int(left_out[2]),
        n_error=int(left_out[3]),
        degenerate=reason,
    )


def _rank(label: str, undecided: Collection[str]) -> int:
    if label not in undecided:
        return 0
    return {"REFUSED": 2, "ERROR": 3}.get(label, 1)


@dataclass(frozen=True)
class SoftAgreement:
    """Soft JSS with its interval; `flip_mass` is 1 - soft JSS, the mean total variation."""

    soft_jss: float
    flip_mass: float
    ci_low: float | None
    ci_high: float | None
    n_pairs: int
    n_items: int

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def soft_jss(
    p: npt.ArrayLike, q: npt.ArrayLike, clusters: Any = None, confidence_level: float = 0.95
) -> SoftAgreement:
    """JSS without the argmax: 1 - total variation between the two prompts' option distributions.

    The total variation is the least share of decisions that must differ if each prompt's decision
    is drawn from its distribution: soft JSS is the greatest JSS such a judge can reach.

    Args:
        p: option probabilities under the first prompt, shape (n, L), rows that sum to 1.
        q: the same under the second prompt, options in the same order (label maps applied).
        clusters: one id a pair, or None.
        confidence_level: within (0, 1).

    Returns:
        The mean over pairs and its cluster-robust t interval, cut to [0, 1] (no interval with a
        single cluster).

    Raises:
        ValueError: shapes that differ, a probability outside [0, 1], a row that does not sum to 1
            within 1e-3.
    """
    first, second = numbers(p, "p", 2), numbers(q, "q", 2)
    if first.shape != second.shape:
        raise ValueError(
            f"p has shape {first.shape} and q {second.shape}: pass one row a pair, one column an "
            "option, in both"
        )
    for name, table in (("p", first), ("q", second)):
        bad = np.flatnonzero((table < 0).any(axis=1) | (np.abs(table.sum(axis=1) - 1) > 1e-3))
        if len(bad):
            raise ValueError(
                f"{name}[{bad[0]}] is {table[bad[0]].tolist()}, no probabilities that sum to 1: "
                "divide the options' probabilities by their sum (the option mass)"
            )
    same = 1 - np.abs(first - second).sum(axis=1) / 2
    _, k = cluster_codes(clusters, len(same))
    spread = mean_t_cluster(same, clusters, confidence_level)
    share = float(np.clip(same.mean(), 0, 1))
    return SoftAgreement(
        soft_jss=share,
        flip_mass=1 - share,
        ci_low=None if spread.low is None else max(0.0, spread.low),
        ci_high=None if spread.high is None else min(1.0, spread.high),
        n_pairs=len(same),
        n_items=k,
    )
