"""Where the flips come from: template pairs, items, and judges that flip on the same pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.agreement import UNDECIDED, jss
from judgesense.statistics.intervals import cluster_codes, mean_t_cluster
from judgesense.statistics.labels import Labels, check_labels, encode, encode_pair
from judgesense.statistics.reliability import alpha_from_counts
from judgesense.statistics.result import ResultMapping


def per_template_pair_table(
    template_a: Labels,
    template_b: Labels,
    references: Labels,
    predictions: Labels,
    item_ids: Any = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """JSS of every pair of templates, whichever of the two came first.

    Args:
        template_a: template of the first prompt, shape (n,), strings.
        template_b: template of the second prompt, shape (n,), strings.
        references: decision under the first prompt, shape (n,).
        predictions: decision under the second prompt, shape (n,).
        item_ids: one id a row, or None.
        **options: of `agreement.jss`.

    Returns:
        One dict a template pair, `template_a` <= `template_b` and the fields of `Agreement`, in the
        order of the templates' names.

    Raises:
        ValueError: as `agreement.jss`; also templates of another length.
    """
    first, second, names = encode_pair(template_a, template_b, ("template_a", "template_b"))
    decided = [np.asarray(values, dtype=object) for values in (references, predictions)]
    for name, values in zip(("references", "predictions"), decided, strict=True):
        if len(values) != len(first):
            raise ValueError(
                f"{name} has {len(values)} rows and template_a {len(first)}: pass one row a pair"
            )
    clusters = None if item_ids is None else cluster_codes(item_ids, len(first))[0]
    rank = np.argsort(np.argsort(names))
    low, high = np.minimum(rank[first], rank[second]), np.maximum(rank[first], rank[second])
    by_rank = sorted(names)
    key = low * len(names) + high
    table = []
    for pair in np.unique(key).tolist():
        rows = key == pair
        cell = jss(
            decided[0][rows],
            decided[1][rows],
            None if clusters is None else clusters[rows],
            **options,
        )
        one, two = divmod(pair, len(names))
        table.append({"template_a": by_rank[one], "template_b": by_rank[two], **cell.to_dict()})
    return table


def flips_by_item(
    references: Labels,
    predictions: Labels,
    item_ids: Any,
    undecided: Collection[str] = UNDECIDED,
) -> list[dict[str, Any]]:
    """Count the pairs and flips of every item.

    Args:
        references: decision under the first prompt, shape (n,).
        predictions: decision under the second prompt, shape (n,).
        item_ids: one id a pair.
        undecided: labels that are no decision.

    Returns:
        One dict an item, most flips first, then in order of appearance: `item_id`, `n_pairs` (both
        sides decided), `n_flips`, `n_undecided`, `flip_rate` (None without a decided pair).

    Raises:
        ValueError: as `agreement.jss`.
    """
    undecided = check_labels(undecided, "undecided")
    first, second, labels = encode_pair(references, predictions)
    if item_ids is None:
        raise ValueError("item_ids is None: pass one id a pair, to count its flips by")
    codes, k = cluster_codes(item_ids, len(first))
    ids, names = list(item_ids), [None] * k
    for row in np.unique(codes, return_index=True)[1].tolist():
        name = ids[row]
        names[codes[row]] = name.item() if isinstance(name, np.generic) else name
    empty = [code for code, label in enumerate(labels) if label in undecided]
    left_out = np.isin(first, empty) | np.isin(second, empty)
    pairs = np.bincount(codes[~left_out], minlength=k)
    flips = np.bincount(codes[~left_out & (first != second)], minlength=k)
    undecided_pairs = np.bincount(codes[left_out], minlength=k)
    rows = [
        {
            "item_id": names[item],
            "n_pairs": int(pairs[item]),
            "n_flips": int(flips[item]),
            "n_undecided": int(undecided_pairs[item]),
            "flip_rate": float(flips[item] / pairs[item]) if pairs[item] else None,
        }
        for item in range(k)
    ]
    return sorted(rows, key=lambda row: -int(row["n_flips"]))


@dataclass(frozen=True, eq=False)
class FlipOverlap(ResultMapping):
    """Which pairs several judges flip on.

    Lists run over `pair_ids`, in the order given: `flip_count` judges of `judged_count` that
    decided both sides flipped, namely `flipping_judges`. `jaccard[a][b]` is the share of the pairs
    decided by both judges a and b, and flipped by either, that both flipped; None where neither
    flips. `all_flip` and `none_flip` count the pairs on which every judge that decided, or none,
    flips.
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

    A pair that every judge flips on speaks against its wording, not against the judges.

    Args:
        decisions: judge -> (references, predictions), shape (n,) each, the same pairs for all.
        pair_ids: one id a pair, shape (n,).
        undecided: labels that are no decision.

    Returns:
        The overlap.

    Raises:
        ValueError: no judge, or a judge with another number of rows than `pair_ids`.
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

    `agreement` is the mean, over the `n_prompts` prompts that two judges or more decided, of the
    share of judge pairs that agree; `alpha` is Krippendorff's nominal alpha; `pairwise[a][b]` the
    agreement of judges a and b on the prompts both decided (None without one).
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
        item_ids: one id a prompt; None makes every prompt its own item.
        undecided: labels that are no decision.
        confidence_level: within (0, 1).

    Returns:
        The consensus; its interval is the cluster-robust t interval cut to [0, 1].

    Raises:
        ValueError: fewer than two judges, or judges with unequal numbers of rows.
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
        spread = mean_t_cluster(agreeing, clusters[used], confidence_level)
        if spread.low is not None and spread.high is not None:
            low, high = max(0.0, spread.low), min(1.0, spread.high)
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
