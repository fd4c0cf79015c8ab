"""The Judge Sensitivity Score of two streams of decisions, hard, soft and over several draws."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import (
    UNDECIDED,
    Labels,
    check_labels,
    check_level,
    check_number,
    cluster_codes,
    encode_pair,
)
from judgesense.statistics.intervals import (
    Interval,
    mean_t_cluster,
    wilson_cluster,
    wilson_from_sums,
)
from judgesense.statistics.kappa import bootstrap_kappa, kappa_of_codes, wilson_kappa
from judgesense.statistics.resampling import bootstrap_mean
from judgesense.statistics.result import ResultMapping, signature
from judgesense.version import __version__


@dataclass(frozen=True, eq=False)
class Agreement(ResultMapping):
    """How often two prompts lead to the same decision.

    `jss`, `flip_rate`, `kappa` and their intervals cover the `n_pairs` pairs with a decision on
    both sides, which come from `n_items` items. Every other pair is counted once, by the worse of
    its two sides: `n_error`, then `n_refused`, then `n_unclear`, which also takes any other
    undecided label. The JSS would be `jss_low` if all of those had disagreed, `jss_high` if agreed.
    An undefined figure is None, and `degenerate` says why. `signature` says in one line how the
    figures were made; None from `jss_of_codes`.
    """

    labels: ClassVar = {
        "jss": "same verdict after rewording (JSS)",
        "flip_rate": "flip rate",
        "kappa": "Cohen's kappa",
        "n_pairs": "pairs",
        "n_items": "items",
        "n_unclear": "unclear",
        "n_refused": "refused",
        "n_error": "failed",
        "degenerate": "note",
        "signature": "signature",
    }

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
    signature: str | None = None


def jss(
    predictions: Labels,
    references: Labels,
    item_ids: Any = None,
    *,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
    interval: str = "wilson",
    n_resamples: int = 10_000,
    seed: int = 0,
    kappa_interval: bool = True,
) -> Agreement:
    """Judge Sensitivity Score: the share of pairs with the same decision under both prompts.

    JSS = mean of [a_i == b_i] (JudgeSense, section 3.1, formula 1), flip rate = 1 - JSS, Cohen's
    kappa over the same pairs (section 3.6). Intervals treat each item, not each pair, as the unit.

    Args:
        predictions: decision under each pair's second prompt, shape (n,), strings or whole
            numbers; 4 is the same decision as "4".
        references: decision under each pair's first prompt, likewise.
        item_ids: the item of each pair, shape (n,), strings or integers; pairs of one item are not
            independent. None makes every pair an item of its own.
        undecided: labels without a decision; only the bounds of JSS cover their pairs.
        confidence_level: of all intervals, within (0, 1).
        interval: "wilson" (`intervals.wilson_cluster`, `kappa.wilson_kappa`) or "bootstrap"
            (percentile, over items).
        n_resamples: number of bootstrap resamples.
        seed: seed of the bootstraps, for `numpy.random.default_rng`.
        kappa_interval: False leaves out kappa's interval.

    Returns:
        The agreement with its signature; a single item has no interval, as `degenerate` says.

    Raises:
        ValueError: labels that are neither strings nor whole numbers, unequal lengths, empty input,
            or a bad option; names the argument and the row.

    >>> result = jss(["YES", "NO", "NO"], ["YES", "YES", "NO"], ["q1", "q2", "q3"])
    >>> round(result.jss, 3), result.n_pairs
    (0.667, 3)
    """
    if interval not in ("wilson", "bootstrap"):
        raise ValueError(f"interval is {interval!r}: pass 'wilson' or 'bootstrap'")
    check_level(confidence_level)
    check_number(n_resamples, "n_resamples", 1, whole=True)
    check_number(seed, "seed", 0, whole=True)
    first, second, labels = encode_pair(references, predictions)
    result = jss_of_codes(
        first,
        second,
        labels,
        None if item_ids is None else cluster_codes(item_ids, len(first))[0],
        undecided=check_labels(undecided, "undecided"),
        confidence_level=confidence_level,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        kappa_interval=kappa_interval,
    )
    reasons = [result.degenerate, "one item: no interval" if result.n_items == 1 else None]
    return replace(
        result,
        degenerate="; ".join(filter(None, reasons)) or None,
        signature=signature(
            n=result.n_pairs,
            items=result.n_items,
            undecided="excluded",
            templates="fixed",
            ci=f"{interval}-cluster" + ("" if confidence_level == 0.95 else f"-{confidence_level}"),
            seed=seed if interval == "bootstrap" else None,
            v=__version__,
        ),
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
    """`jss` of encoded decisions, without a signature; the other arguments are those of `jss`.

    `first` and `second` index `labels`, shape (n,), n > 0; `clusters` are the items as codes >= 0.

    >>> jss_of_codes(np.array([0, 0, 1]), np.array([0, 1, 1]), ["NO", "YES"]).flip_rate.__round__(3)
    0.333
    """
    ranks = {"REFUSED": 2, "ERROR": 3}
    rank = np.array([ranks.get(label, 1) if label in undecided else 0 for label in labels], np.int8)
    worst = np.maximum(rank[first], rank[second])
    left_out = np.bincount(worst, minlength=4)
    n_rows, n_pairs = len(first), int(left_out[0])
    if n_pairs < n_rows:
        keep = worst == 0
        first, second = first[keep], second[keep]
        clusters = None if clusters is None else clusters[keep]
    agree = first == second
    hits = int(agree.sum())

    draws = () if interval == "wilson" else (n_resamples, seed)
    spread = kappa_spread = Interval(None, None)
    share: float | None = None
    value: float | None = None
    reason: str | None = "no pair has a decision on both sides"
    if n_pairs:
        share, reason = hits / n_pairs, None
        of_share = bootstrap_mean if draws else wilson_cluster
        spread = of_share(agree, clusters, confidence_level, *draws)
        label_codes = np.flatnonzero(np.bincount(np.concatenate([first, second])))
        first, second = np.searchsorted(label_codes, first), np.searchsorted(label_codes, second)
        if len(label_codes) == 1:
            reason = f"every decision is {labels[label_codes[0]]!r}: kappa is undefined"
        else:
            value = kappa_of_codes(first, second, len(label_codes))
            if kappa_interval:
                of_kappa = bootstrap_kappa if draws else wilson_kappa
                kappa_spread = of_kappa(first, second, clusters, confidence_level, *draws)
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


def soft_jss(p: Floats, q: Floats) -> float:
    """JSS of option probabilities: 1 - total variation between the two prompts' distributions.

    The total variation is the smallest share of decisions that must differ if each prompt's
    decision is drawn from its distribution, so soft JSS is the highest JSS such a judge can reach.
    `p` and `q` have shape (n, L), rows that sum to 1, options in the same order (label maps
    applied).

    >>> soft_jss(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.7, 0.3], [0.5, 0.5]]))
    0.9
    """
    return float(np.clip((1 - np.abs(p - q).sum(axis=1) / 2).mean(), 0, 1))


def sampled_jss(
    draws_a: npt.ArrayLike, draws_b: npt.ArrayLike, clusters: Any = None
) -> dict[str, Any]:
    """JSS over draws, the noise floor of the same prompts, and their difference.

    Pair i agrees with the frequency sum_l a_il b_il / (a_i b_i); a prompt flips on its own with
    1 - sum_l c_l (c_l - 1) / (c (c - 1)). Both are unbiased for a further draw (Rao 1982,
    diversity between and within).

    Args:
        draws_a: count of each label drawn under the first prompt, shape (n, L), labels mapped,
            undecided draws left out. A pair without draws on a side is left out.
        draws_b: the same under the second prompt.

    Returns:
        ``jss``, the share of agreeing pairs of draws, one of each prompt, averaged over the
        ``n_pairs`` pairs of ``n_items`` items, with Wilson's interval on the effective sample size,
        ``ci_low`` to ``ci_high`` (wide rather than narrow, because a frequency varies less than a
        single agreement); ``noise_floor``, the share of differing pairs of draws of the *same*
        prompt; ``net_flip_rate`` = (1 - jss) - noise_floor, the flips that only the wording
        explains, over the pairs with at least two draws of both prompts, with a cluster-robust t
        interval, ``net_ci_low`` to ``net_ci_high``. By chance it can fall below 0.

    >>> sampled_jss([[2, 0], [1, 1]], [[2, 0], [0, 2]])["jss"]
    0.75
    """
    first, second = np.asarray(draws_a, np.float64), np.asarray(draws_b, np.float64)
    codes, _ = cluster_codes(clusters, len(first))
    n_a, n_b = first.sum(axis=1), second.sum(axis=1)
    is_drawn, is_repeated = (n_a > 0) & (n_b > 0), (n_a > 1) & (n_b > 1)
    figures = ("jss", "ci_low", "ci_high", "noise_floor", "net_flip_rate")
    result: dict[str, Any] = dict.fromkeys((*figures, "net_ci_low", "net_ci_high"))
    _, items = np.unique(codes[is_drawn], return_inverse=True)
    agree = (first * second).sum(axis=1)[is_drawn] / (n_a * n_b)[is_drawn]
    if is_drawn.any():
        spread = wilson_from_sums(np.bincount(items, agree), np.bincount(items))
        result |= {"jss": float(agree.mean()), "ci_low": spread.low, "ci_high": spread.high}
    if is_repeated.any():
        differ = []
        for counts in (first[is_repeated], second[is_repeated]):
            n = counts.sum(axis=1)
            differ.append(1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))
        within = (differ[0] + differ[1]) / 2
        excess = 1 - agree[is_repeated[is_drawn]] - within
        result |= {"noise_floor": float(within.mean()), "net_flip_rate": float(excess.mean())}
        result |= mean_t_cluster(excess, codes[is_repeated]).fields("net")
    return {**result, "n_pairs": int(is_drawn.sum()), "n_items": int(items.max(initial=-1)) + 1}
