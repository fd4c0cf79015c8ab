"""Several judges on the same prompts: the pairs they flip on together, and how far they agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.intervals import cluster_codes, mean_t_cluster
from judgesense.statistics.labels import Labels, check_labels, encode, encode_pair
from judgesense.statistics.reliability import alpha_from_counts
from judgesense.statistics.result import ResultMapping


@dataclass(frozen=True, eq=False)
class FlipOverlap(ResultMapping):
    """The pairs on which several judges flip.

    Lists follow the order of `pair_ids`: `flip_count` of the `judged_count` judges with a decision
    on both sides flipped, namely `flipping_judges`. `jaccard[a][b]` is, among the pairs decided by
    both judges and flipped by either, the share that both flipped; None if neither flips.
    `all_flip` and `none_flip` count the pairs on which every judge with decisions, or none, flips.
    """

    judges: list[str]
    pair_ids: list[Any]
    flip_count: list[int]
    judged_count: list[int]
    flipping_judges: list[list[str]]
    jaccard: list[list[float | None]]
    all_flip: int
    none_flip: int


def flip_overlap(
    decisions: Mapping[str, tuple[Labels, Labels]],
    pair_ids: Sequence[Any],
    undecided: Collection[str] = UNDECIDED,
) -> FlipOverlap:
    """Count, for each pair, the judges that flip on it (JudgeSense, section 5.3).

    If every judge flips on a pair, the wording is the likelier cause, not the judges.

    Args:
        decisions: judge -> (decisions under one prompt, under the other), shape (n,) each, the
            same pairs for all judges.
        pair_ids: one id per pair, shape (n,).
        undecided: labels without a decision.

    Returns:
        The overlap.

    Raises:
        ValueError: no judge, or a judge whose number of rows differs from `pair_ids`.

    >>> streams = {"one": (["A", "A"], ["B", "A"]), "two": (["A", "A"], ["B", "B"])}
    >>> flip_overlap(streams, ["p1", "p2"]).flip_count
    [2, 1]
    """
    if not decisions:
        raise ValueError("decisions is empty: pass at least one judge")
    undecided = check_labels(undecided, "undecided")
    judges, n = list(decisions), len(pair_ids)
    flips = np.zeros((len(judges), n), dtype=bool)
    judged = np.zeros((len(judges), n), dtype=bool)
    for row, judge in enumerate(judges):
        names = (f"references of {judge!r}", f"predictions of {judge!r}")
        first, second, labels = encode_pair(*decisions[judge], names)
        if len(first) != n:
            raise ValueError(f"{names[0]} has {len(first)} rows and pair_ids {n}: pass the same")
        empty = [code for code, label in enumerate(labels) if label in undecided]
        judged[row] = ~(np.isin(first, empty) | np.isin(second, empty))
        flips[row] = judged[row] & (first != second)
    both, seen = flips.astype(float), judged.astype(float)
    common = both @ both.T
    either = both @ seen.T + seen @ both.T - common
    jaccard = [
        [float(c / e) if e else None for c, e in zip(one, two, strict=True)]
        for one, two in zip(common, either, strict=True)
    ]
    count, total = flips.sum(axis=0), judged.sum(axis=0)
    return FlipOverlap(
        judges=judges,
        pair_ids=list(pair_ids),
        flip_count=count.tolist(),
        judged_count=total.tolist(),
        flipping_judges=[[judges[j] for j in np.flatnonzero(flips[:, i])] for i in range(n)],
        jaccard=jaccard,
        all_flip=int(((count == total) & (total > 0)).sum()),
        none_flip=int(((count == 0) & (total > 0)).sum()),
    )


@dataclass(frozen=True, eq=False)
class Consensus(ResultMapping):
    """Agreement of several judges under the same prompts.

    `agreement` is the share of judge pairs that agree, averaged over the `n_prompts` prompts with
    at least two decisions. `alpha` is Krippendorff's nominal alpha. `pairwise[a][b]` is the
    agreement of judges a and b on the prompts that both decided, or None without one.
    """

    agreement: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float | None
    judges: list[str]
    pairwise: list[list[float | None]]
    n_prompts: int
    n_items: int


def consensus(
    decisions: Mapping[str, Labels],
    item_ids: Any = None,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
) -> Consensus:
    """Agreement between judges under matched prompts (JudgeSense, section 7, fourth extension).

    Args:
        decisions: judge -> decisions, shape (n,), the same prompts in the same order for all.
        item_ids: one id per prompt; None makes every prompt an item of its own.
        undecided: labels without a decision.
        confidence_level: within (0, 1).

    Returns:
        The consensus with its cluster-robust t interval, clipped to [0, 1].

    Raises:
        ValueError: fewer than two judges, or judges with unequal numbers of rows.

    >>> consensus({"one": ["A", "B", "A"], "two": ["A", "B", "B"]}).agreement.__round__(3)
    0.667
    """
    if len(decisions) < 2:
        raise ValueError(f"decisions holds {len(decisions)} judge(s): pass at least two")
    undecided = check_labels(undecided, "undecided")
    table: dict[str, int] = {}
    streams = [encode(rows, f"decisions of {judge!r}", table) for judge, rows in decisions.items()]
    judges, n = list(decisions), len(streams[0])
    for judge, stream in zip(judges, streams, strict=True):
        if len(stream) != n or not n:
            raise ValueError(
                f"decisions of {judge!r} has {len(stream)} rows and {judges[0]!r} {n}: pass the "
                "same prompts for all, at least one"
            )
    codes = np.stack(streams)
    decided = ~np.isin(codes, [code for label, code in table.items() if label in undecided])
    clusters, _ = cluster_codes(item_ids, n)
    counts = np.stack([((codes == code) & decided).sum(axis=0) for code in range(len(table))], 1)
    voters = counts.sum(axis=1)
    used = voters >= 2
    pairwise: list[list[float | None]] = []
    for one in range(len(judges)):
        shared = decided[one] & decided
        same = ((codes == codes[one]) & shared).sum(axis=1)
        totals = shared.sum(axis=1)
        pairwise.append([float(s / t) if t else None for s, t in zip(same, totals, strict=True)])
    low = high = mean = None
    if used.any():
        agreeing = (counts * (counts - 1)).sum(axis=1)[used] / (voters * (voters - 1))[used]
        mean = float(agreeing.mean())
        spread = mean_t_cluster(agreeing, clusters[used], confidence_level).within(0.0, 1.0)
        low, high = spread.low, spread.high
    return Consensus(
        agreement=mean,
        ci_low=low,
        ci_high=high,
        alpha=alpha_from_counts(counts.astype(np.float64)),
        judges=judges,
        pairwise=pairwise,
        n_prompts=int(used.sum()),
        n_items=len(np.unique(clusters[used])),
    )
