"""Judges asked several times: agreement over all draws, and how much of it is noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import cluster_codes, mean_t_cluster, wilson_from_sums
from judgesense.statistics.labels import check_level
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.tables import numbers


@dataclass(frozen=True, eq=False)
class SampledAgreement(ResultMapping):
    """JSS over draws, the noise floor of the same prompts, and their difference.

    ``jss`` is the share of agreeing pairs of draws, one of each prompt, averaged over pairs;
    ``noise_floor`` the share of differing pairs of draws of the *same* prompt;
    ``net_flip_rate`` = (1 - jss) - noise_floor, the flips that only the wording explains, over
    the pairs with at least two draws of both prompts. By chance it can fall below 0.
    """

    jss: float | None
    ci_low: float | None
    ci_high: float | None
    noise_floor: float | None
    net_flip_rate: float | None
    net_ci_low: float | None
    net_ci_high: float | None
    n_pairs: int
    n_items: int


def sampled_jss(
    draws_a: npt.ArrayLike,
    draws_b: npt.ArrayLike,
    clusters: Any = None,
    confidence_level: float = 0.95,
) -> SampledAgreement:
    """Agreement of two prompts whose decisions were drawn several times each.

    Pair i agrees with the frequency sum_l a_il b_il / (a_i b_i); a prompt flips on its own with
    1 - sum_l c_l (c_l - 1) / (c (c - 1)). Both are unbiased for a further draw (Rao 1982,
    diversity between and within).

    Args:
        draws_a: count of each label drawn under the first prompt, shape (n, L), labels mapped,
            undecided draws left out. A pair without draws on a side is left out.
        draws_b: the same under the second prompt.
        clusters: one id per pair, or None.
        confidence_level: within (0, 1).

    Returns:
        JSS with Wilson's interval on the effective sample size (wide rather than narrow, because a
        frequency varies less than a single agreement); the net flip rate with a cluster-robust t
        interval.

    Raises:
        ValueError: unequal shapes, or counts that are not integers of at least 0.

    >>> sampled_jss([[2, 0], [1, 1]], [[2, 0], [0, 2]]).jss
    0.75
    """
    first, second = numbers(draws_a, "draws_a", 2), numbers(draws_b, "draws_b", 2)
    level = check_level(confidence_level)
    if first.shape != second.shape:
        raise ValueError(
            f"draws_a has shape {first.shape} and draws_b {second.shape}: pass one row per "
            "pair and one column per label in both"
        )
    for name, table in (("draws_a", first), ("draws_b", second)):
        bad = np.flatnonzero(((table < 0) | (table != np.floor(table))).any(axis=1))
        if len(bad):
            raise ValueError(f"{name}[{bad[0]}] is {table[bad[0]].tolist()}: pass counts of draws")
    codes, _ = cluster_codes(clusters, len(first))
    n_a, n_b = first.sum(axis=1), second.sum(axis=1)
    used = (n_a > 0) & (n_b > 0)
    if not used.any():
        return SampledAgreement(None, None, None, None, None, None, None, 0, 0)
    agree = (first * second).sum(axis=1)[used] / (n_a * n_b)[used]
    _, own = np.unique(codes[used], return_inverse=True)
    spread = wilson_from_sums(np.bincount(own, agree), np.bincount(own), level)
    twice = used & (n_a > 1) & (n_b > 1)
    noise = net = low = high = None
    if twice.any():
        within = (_differ(first[twice]) + _differ(second[twice])) / 2
        excess = 1 - agree[twice[used]] - within
        net_spread = mean_t_cluster(excess, codes[twice], level)
        noise, net = float(within.mean()), float(excess.mean())
        low, high = net_spread.low, net_spread.high
    return SampledAgreement(
        jss=float(agree.mean()),
        ci_low=spread.low,
        ci_high=spread.high,
        noise_floor=noise,
        net_flip_rate=net,
        net_ci_low=low,
        net_ci_high=high,
        n_pairs=int(used.sum()),
        n_items=int(own.max()) + 1,
    )


def _differ(counts: Floats) -> Floats:
    """The share of differing pairs of draws of one prompt; each row has at least two draws."""
    n = counts.sum(axis=1)
    same: Floats = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    return 1 - same
