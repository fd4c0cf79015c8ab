"""Camps of wordings: groups that agree among themselves and not with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats

_MOST_CAMPS = 4


@dataclass(frozen=True)
class Rules:
    """When `judgesense.statistics.wordings.screen` flags a wording.

    `unreadable`: share of answers without a decision above which it is unreadable. `opposite`:
    how far below 0 the association of an inverted wording is. `lower`: how much lower than the
    others' median the accuracy (without gold, the agreement) of an outlier is, at least, and how
    much less often camps agree with each other than within; less hardly moves JSS, and in large
    runs any difference is significant. `significant`: corrected p-value below which a wording is
    inverted or an outlier. `fewest`: clusters needed to say so.
    """

    unreadable: float = 0.5
    opposite: float = 0.2
    lower: float = 0.1
    significant: float = 0.05
    fewest: int = 10


def camps_of(
    codes: Codes, clusters: Codes, n_labels: int, rules: Rules | None = None
) -> list[list[int]]:
    """The camps of some wordings, as lists of rows, largest first; empty if there are none.

    Wordings are grouped by how often two of them decide differently. With `rules`, the two halves
    of the clusters form groups of at least two, and each half tests the groups of the other: pairs
    within a group must agree more often than pairs across, significantly and by ``rules.lower``.
    Without `rules` the likeliest groups are returned, also of one.

    Args:
        codes: label codes, negative where undecided, shape (wordings, cells).
        clusters: codes from 0, shape (cells,).
    """
    is_label = np.stack([codes == label for label in range(n_labels)])
    groups = _groups(is_label)
    if groups is None and rules is None:
        groups = _groups(is_label, fewest=1)
    if groups is None:
        return []
    if rules is not None:
        order = np.random.default_rng(0).permutation(clusters.max() + 1)
        half = order[clusters] % 2 == 0
        gaps = np.zeros(len(half))
        for tested, half_grouped in ((half, ~half), (~half, half)):
            half_groups = _groups(is_label[:, :, half_grouped])
            if half_groups is None:
                return []
            gaps[tested] = _within_less_between(is_label[:, :, tested], half_groups)
        if gaps.mean() < rules.lower or p_above(gaps, clusters) >= rules.significant / 2:
            return []
    camps = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
    return sorted(camps, key=lambda camp: (-len(camp), camp))


def p_above(values: Floats, clusters: Codes) -> float:
    """One-sided p-value of "the mean is not above 0", by Student's t over clusters."""
    from scipy.special import stdtr

    if not len(values):
        return 0.5
    _, codes = np.unique(clusters, return_inverse=True)
    sizes, sums = np.bincount(codes), np.bincount(codes, values)
    k, mean = len(sizes), values.mean()
    if k < 2:
        return 0.5
    error = float(np.sqrt(k / (k - 1) * ((sums - sizes * mean) ** 2).sum()))
    if error < 1e-9:
        return 0.5 - 0.5 * float(np.sign(mean))
    return float(stdtr(k - 1, -sums.sum() / error))


def _groups(is_label: Any, fewest: int = 2) -> Codes | None:
    """The group of each wording, by average linkage of how often two decide differently.

    The number of groups is that with the highest mean silhouette among those where two groups have
    at least the `fewest` members; None if there is none.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    table = is_label.astype(np.float32)
    any_label = table.sum(axis=0)
    n_both = any_label @ any_label.T
    agree = np.einsum("lic,ljc->ij", table, table, optimize=True)
    if not n_both.all():
        return None
    distance = 1 - agree / n_both
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    highest, likeliest = 0.0, None
    for n in range(2, min(_MOST_CAMPS, len(distance) - 1) + 1):
        groups = fcluster(tree, n, "maxclust")
        member = groups[:, None] == np.unique(groups)
        sizes = member.sum(axis=0)
        if (sizes >= fewest).sum() < 2:
            continue
        sums = distance @ member
        inner = sums[member] / np.maximum(sizes - 1, 1)[member.argmax(axis=1)]
        outer = np.where(member, np.inf, sums / sizes).min(axis=1)
        width = np.where(
            sizes[member.argmax(axis=1)] > 1,
            (outer - inner) / np.maximum(np.maximum(outer, inner), 1e-9),
            0,
        )
        if width.mean() > highest:
            highest, likeliest = float(width.mean()), groups
    return likeliest


def _within_less_between(is_label: Any, groups: Codes) -> Floats:
    """Agreement of two wordings of one group less that of two groups, by cell."""
    within = groups[:, None] == groups
    np.fill_diagonal(within, False)
    between = groups[:, None] != groups
    weights = (within / max(within.sum(), 1) - between / between.sum()).astype(np.float32)
    table = is_label.astype(np.float32)
    agree = (table * (weights @ table)).sum(axis=(0, 1))
    decided = table.sum(axis=0)
    # Pairs that are not both decided count as the mean pair.
    pairs = (np.abs(weights) @ decided * decided).sum()
    mean_agreement = (table * (np.abs(weights) @ table)).sum() / max(float(pairs), 1e-9)
    gaps: Floats = agree - (decided * (weights @ decided)).sum(axis=0) * mean_agreement
    return gaps
