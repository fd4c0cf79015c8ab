"""What flips come from: wording, position or noise, and pairs that many judges flip on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import (
    UNDECIDED,
    Labels,
    check_labels,
    check_level,
    cluster_codes,
    encode,
    encode_pair,
    is_ordered,
)
from judgesense.statistics.intervals import mean_t_cluster
from judgesense.statistics.kappa import alpha_from_counts
from judgesense.statistics.result import ResultMapping

OPTIONS = ("A", "B")

LABELS = ("position", "item")
"""What a label of a comparative task names: the option as shown, or the item."""


def check_options(options: Sequence[str]) -> None:
    """Raise ValueError unless `options` are two different labels.

    >>> check_options(("A", "B"))
    """
    if len(check_labels(options, "options")) != 2 or len(options) != 2 or not is_ordered(options):
        raise ValueError(f"options is {options!r}: pass two different labels, such as ('A', 'B')")


@dataclass(frozen=True, eq=False)
class FlipSources(ResultMapping):
    """Where the disagreement of two judgements of one item comes from.

    `flip_rate` is the share of differing pairs among judgements of one item that differ in both
    template and order. It splits exactly: flip_rate = wording + position + interaction + rerun
    (variance components of the crossed grid, times two; an estimate of a part may be slightly
    negative). `rerun` is the flip rate of the same prompt asked again.

    Without repeats `rerun` is None and `interaction` includes it. With a single order `flip_rate`
    is that of two templates, and `position` and `interaction` are None; with a single template
    `wording` and `interaction` are. `degenerate` says what could not be separated.
    """

    flip_rate: float | None
    wording: float | None
    position: float | None
    interaction: float | None
    rerun: float | None
    wording_ci_low: float | None
    wording_ci_high: float | None
    position_ci_low: float | None
    position_ci_high: float | None
    rerun_ci_low: float | None
    rerun_ci_high: float | None
    n_items: int
    n_excluded: int
    degenerate: str | None


def flip_sources(
    decisions: Any,
    item_ids: Any,
    template_ids: Any,
    orders: Any,
    *,
    labels: str = "position",
    cluster_ids: Any = None,
    options: Sequence[str] = OPTIONS,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
) -> FlipSources:
    """Split the flips of a judge into wording, position and rerun noise.

    Every row is one judgement; rows with the same item, template and order are reruns. With d the
    share of differing pairs among judgements of one item, averaged over items, and "t", "o" for
    another template, another order:  rerun = d(same prompt),  wording = d(t, o) - d(o),
    position = d(t, o) - d(t),  interaction = d(t) + d(o) - d(t, o) - d(same prompt).

    Args:
        decisions: one canonical label per row, shape (n,), strings.
        item_ids: one id per row.
        template_ids: one per row, strings.
        orders: "AB" or "BA" per row; for tasks without options any single value.
        labels: "position": options are swapped back to items in order BA; "item": labels already
            name items.
        cluster_ids: one id per row if items share something (a question); the intervals treat
            clusters as independent. None makes every item a cluster.
        options: the two labels of a comparative task.
        undecided: labels without a decision; such rows are counted in `n_excluded`.
        confidence_level: within (0, 1).

    Returns:
        A `FlipSources`; intervals are cluster-robust t intervals.

    Raises:
        ValueError: unequal lengths, empty input, a label that is not a string, unknown `labels`,
            several orders of which one is neither AB nor BA, or an item in two clusters.

    >>> result = flip_sources(["A", "A", "B", "B"], [1, 1, 1, 1], ["t1", "t2"] * 2, ["AB"] * 4)
    >>> round(result.flip_rate, 3)
    0.5
    """
    if labels not in LABELS:
        raise ValueError(f"labels is {labels!r}: pass 'position' or 'item'")
    level = check_level(confidence_level)
    undecided = check_labels(undecided, "undecided")
    check_options(options)
    table: dict[str, int] = {}
    decision = encode(decisions, "decisions", table)
    templates: dict[str, int] = {}
    template = encode(template_ids, "template_ids", templates)
    order_names: dict[str, int] = {}
    order = encode(orders, "orders", order_names)
    n = len(decision)
    if not n:
        raise ValueError("decisions is empty: pass at least one row")
    for name, column in (("template_ids", template), ("orders", order)):
        if len(column) != n:
            raise ValueError(f"{name} has {len(column)} rows and decisions {n}: pass one per row")
    item, n_items = cluster_codes(item_ids, n)
    cluster = item if cluster_ids is None else cluster_codes(cluster_ids, n)[0]
    cluster_of = np.zeros(n_items, dtype=np.intp)
    cluster_of[item[::-1]] = cluster[::-1]  # An item's first row sets its cluster.
    if len(wrong := np.flatnonzero(cluster_of[item] != cluster)):
        raise ValueError(
            f"cluster_ids[{wrong[0]}] differs from an earlier row of the same item: "
            "pass one cluster per item"
        )
    strange = [name for name in order_names if name not in ("AB", "BA")]
    if labels == "position" and strange and len(order_names) > 1:
        row = int(np.flatnonzero(order == order_names[strange[0]])[0])
        raise ValueError(
            f"orders[{row}] is {strange[0]!r}: pass 'AB' or 'BA', or labels='item' if the "
            "labels already name items"
        )
    if labels == "position" and "BA" in order_names:
        one, other = (table.setdefault(label, len(table)) for label in options)
        back = np.arange(len(table))
        back[one], back[other] = other, one
        decision = np.where(order == order_names["BA"], back[decision], decision)
    out = np.array([label in undecided for label in table])[decision]
    item, template, order, decision = (x[~out] for x in (item, template, order, decision))
    rates = _rates(item, template, order, decision)
    return _split(rates, cluster_of[np.unique(item)], int(out.sum()), level)


def _rates(item: Codes, template: Codes, order: Codes, decision: Codes) -> Floats:
    """Share of differing pairs of each item, shape (items, 4), NaN where an item has no such pair.

    Columns: same prompt; another template; another order; both.
    """
    items, item = np.unique(item, return_inverse=True)
    k = len(items)

    def pairs(*keys: Codes) -> Floats:
        """Pairs of rows equal in all keys, counted for each item."""
        if not k:
            return np.zeros(0)
        # One number per row sorts many times faster than whole rows; the item is its first digit.
        code, weight = item, 1
        for key in keys:
            size = int(key.max()) + 1
            code, weight = code * size + key, weight * size
        groups, tally = np.unique(code, return_counts=True)
        counts: Floats = np.bincount(groups // weight, tally * (tally - 1) / 2, minlength=k).astype(
            np.float64
        )
        return counts

    def exact(*more: Codes) -> list[Floats]:
        both, same_order = pairs(template, order, *more), pairs(order, *more)
        same_template, every = pairs(template, *more), pairs(*more)
        return [
            both,
            same_order - both,
            same_template - both,
            every - same_order - same_template + both,
        ]

    total, equal = np.column_stack(exact()), np.column_stack(exact(decision))
    rates = np.full(total.shape, np.nan)
    np.divide(total - equal, total, out=rates, where=total > 0)
    return rates


def _split(rates: Floats, clusters: Codes, n_excluded: int, level: float) -> FlipSources:
    has = ~np.isnan(rates)
    rerun, by_template, by_order, by_both = (bool(column.any()) for column in has.T)
    values: dict[str, Floats] = {}
    reasons = []
    if rerun:
        values["rerun"] = rates[:, 0]
    else:
        reasons.append("no prompt was asked twice: rerun noise is not separated")
    if by_both:
        values["flip_rate"] = rates[:, 3]
        values["wording"] = rates[:, 3] - rates[:, 2]
        values["position"] = rates[:, 3] - rates[:, 1]
        noise = rates[:, 0] if rerun else 0.0
        values["interaction"] = rates[:, 1] + rates[:, 2] - rates[:, 3] - noise
    elif by_template or by_order:
        column, name = (1, "wording") if by_template else (2, "position")
        values["flip_rate"] = rates[:, column]
        if rerun:
            values[name] = rates[:, column] - rates[:, 0]
        reasons.append("one order" if by_template else "one template")
    elif not rerun:
        reasons.append("no item was judged twice")

    # One set of items for all parts, so that they add up.
    whole = ~np.isnan(np.column_stack(list(values.values()))).any(axis=1) if values else has[:, 0]
    if len(np.unique(clusters[whole])) == 1:
        reasons.append(f"one {'item' if whole.sum() == 1 else 'cluster'}: no interval")
    if values and not whole.all():
        reasons.append(f"{int((~whole).sum())} items lack some kind of judgement and are left out")
    result: dict[str, Any] = {}
    if whole.any():
        for name, column_values in values.items():
            result[name] = float(column_values[whole].mean())
            if name in ("wording", "position", "rerun"):
                ends = mean_t_cluster(column_values[whole], clusters[whole], level)
                result[f"{name}_ci_low"], result[f"{name}_ci_high"] = ends.low, ends.high
    result.update(
        n_items=int(whole.sum()), n_excluded=n_excluded, degenerate="; ".join(reasons) or None
    )
    return FlipSources.undefined(**result)


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
