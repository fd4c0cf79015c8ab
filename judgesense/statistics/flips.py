"""What flips come from: wording, position or noise, and pairs that many judges flip on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import (
    OPTIONS,
    UNDECIDED,
    Labels,
    cluster_codes,
    encode,
    encode_pair,
)
from judgesense.statistics.intervals import mean_t_cluster
from judgesense.statistics.kappa import alpha_from_counts
from judgesense.statistics.result import ResultMapping


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
    cluster_ids: Any = None,
    options: Sequence[str] = OPTIONS,
) -> FlipSources:
    """Split the flips of a judge into wording, position and rerun noise.

    Every row is one judgement; rows with the same item, template and order are reruns. With d the
    share of differing pairs among judgements of one item, averaged over items, and "t", "o" for
    another template, another order:  rerun = d(same prompt),  wording = d(t, o) - d(o),
    position = d(t, o) - d(t),  interaction = d(t) + d(o) - d(t, o) - d(same prompt).

    Args:
        decisions: one canonical label per row, shape (n,), strings; `inputs.UNDECIDED` ones are
            counted in `n_excluded`.
        item_ids: one id per row.
        template_ids: one per row, strings.
        orders: "AB" or "BA" per row; for tasks without options any single value.
        cluster_ids: one id per row if items share something (a question); the intervals treat
            clusters as independent. None makes every item a cluster.
        options: the two labels of a comparative task, as shown: in order BA they name the other
            item.

    Returns:
        A `FlipSources`; intervals are cluster-robust t intervals.

    >>> result = flip_sources(["A", "A", "B", "B"], [1, 1, 1, 1], ["t1", "t2"] * 2, ["AB"] * 4)
    >>> round(result.flip_rate, 3)
    0.5
    """
    table: dict[str, int] = {}
    decision = encode(decisions, "decisions", table)
    template = encode(template_ids, "template_ids")
    order_names: dict[str, int] = {}
    order = encode(orders, "orders", order_names)
    n = len(decision)
    item, n_items = cluster_codes(item_ids, n)
    cluster_of = np.zeros(n_items, dtype=np.intp)
    cluster_of[item] = item if cluster_ids is None else cluster_codes(cluster_ids, n)[0]
    if "BA" in order_names:
        one, other = (table.setdefault(label, len(table)) for label in options)
        back = np.arange(len(table))
        back[one], back[other] = other, one
        decision = np.where(order == order_names["BA"], back[decision], decision)
    out = np.array([label in UNDECIDED for label in table])[decision]
    item, template, order, decision = (x[~out] for x in (item, template, order, decision))
    rates = _rates(item, template, order, decision)
    return _split(rates, cluster_of[np.unique(item)], int(out.sum()))


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


def _split(rates: Floats, clusters: Codes, n_excluded: int) -> FlipSources:
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
                ends = mean_t_cluster(column_values[whole], clusters[whole])
                result[f"{name}_ci_low"], result[f"{name}_ci_high"] = ends.low, ends.high
    result.update(
        n_items=int(whole.sum()), n_excluded=n_excluded, degenerate="; ".join(reasons) or None
    )
    return FlipSources.undefined(**result)


def flip_overlap(decisions: Mapping[str, tuple[Labels, Labels]]) -> tuple[Codes, Codes]:
    """How many judges flip on each pair of prompts, and how many decided it on both sides.

    If every judge flips on a pair, the wording is the likelier cause, not the judges (JudgeSense,
    section 5.3).

    Args:
        decisions: judge -> (decisions under one prompt, under the other), shape (n,) each, the
            same pairs for all judges.

    Returns:
        Counts of judges, shape (n,) each.

    >>> streams = {"one": (["A", "A"], ["B", "A"]), "two": (["A", "A"], ["B", "B"])}
    >>> flip_overlap(streams)[0].tolist()
    [2, 1]
    """
    flipped, judged = [], []
    for one, two in decisions.values():
        first, second, labels = encode_pair(one, two)
        empty = [code for code, label in enumerate(labels) if label in UNDECIDED]
        judged.append(~(np.isin(first, empty) | np.isin(second, empty)))
        flipped.append(judged[-1] & (first != second))
    return np.sum(flipped, axis=0), np.sum(judged, axis=0)


@dataclass(frozen=True, eq=False)
class Consensus(ResultMapping):
    """Agreement of several judges under the same prompts.

    `agreement` is the share of judge pairs that agree, averaged over the `n_prompts` prompts with
    at least two decisions. `alpha` is Krippendorff's nominal alpha.
    """

    agreement: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float | None
    n_prompts: int


def consensus(decisions: Mapping[str, Labels], item_ids: Any = None) -> Consensus:
    """Agreement between judges under matched prompts (JudgeSense, section 7, fourth extension).

    Args:
        decisions: judge -> decisions, shape (n,), the same prompts in the same order for all;
            `inputs.UNDECIDED` ones are left out.
        item_ids: one id per prompt; None makes every prompt an item of its own.

    Returns:
        The consensus with its cluster-robust t interval, clipped to [0, 1].

    >>> consensus({"one": ["A", "B", "A"], "two": ["A", "B", "B"]}).agreement.__round__(3)
    0.667
    """
    table: dict[str, int] = {}
    codes = np.stack([encode(rows, judge, table) for judge, rows in decisions.items()])
    known = [code for label, code in table.items() if label not in UNDECIDED]
    counts = np.stack([(codes == code).sum(axis=0) for code in known], 1, dtype=np.float64)
    voters = counts.sum(axis=1)
    used = voters >= 2
    low = high = mean = None
    if used.any():
        agreeing = (counts * (counts - 1)).sum(axis=1)[used] / (voters * (voters - 1))[used]
        mean = float(agreeing.mean())
        clusters, _ = cluster_codes(item_ids, codes.shape[1])
        spread = mean_t_cluster(agreeing, clusters[used]).within(0.0, 1.0)
        low, high = spread.low, spread.high
    return Consensus(mean, low, high, alpha_from_counts(counts), int(used.sum()))
