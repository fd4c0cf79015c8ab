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


@dataclass(frozen=True)
class FlipSources:
    """Where the disagreement of two judgements of one item comes from.

    `flip_rate` is the share of differing pairs among judgements of one item that differ in both
    template and order. It splits exactly: flip_rate = wording + position + interaction + rerun
    (variance components of the crossed grid, times two; an estimate of a part may be slightly
    negative). `rerun` is the flip rate of the same prompt asked again.

    Without repeats `rerun` is None and `interaction` includes it. With a single order `flip_rate`
    is that of two templates, and `position` and `interaction` are None; with a single template
    `wording` and `interaction` are. All parts are over the `n_items` items that have them all.
    """

    n_items: int = 0
    flip_rate: float | None = None
    wording: float | None = None
    position: float | None = None
    interaction: float | None = None
    rerun: float | None = None
    wording_ci_low: float | None = None
    wording_ci_high: float | None = None
    position_ci_low: float | None = None
    position_ci_high: float | None = None


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
        decisions: one canonical label per row, shape (n,), strings; rows with an
            `inputs.UNDECIDED` one are left out.
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
        first, second = (table.setdefault(label, len(table)) for label in options)
        back = np.arange(len(table))
        back[first], back[second] = second, first
        decision = np.where(order == order_names["BA"], back[decision], decision)
    out = np.array([label in UNDECIDED for label in table])[decision]
    item, template, order, decision = (x[~out] for x in (item, template, order, decision))
    rates = _rates(item, template, order, decision)
    rerun, by_template, by_order, by_both = (~np.isnan(rates).all(axis=0)).astype(bool)
    repeat, other_template, other_order, other_both = rates.T
    parts: dict[str, Floats] = {"rerun": repeat} if rerun else {}
    if by_both:
        parts["flip_rate"] = other_both
        parts["wording"] = other_both - other_order
        parts["position"] = other_both - other_template
        noise = repeat if rerun else 0.0
        parts["interaction"] = other_template + other_order - other_both - noise
    elif by_template or by_order:
        parts["flip_rate"] = other_template if by_template else other_order
        if rerun:
            parts["wording" if by_template else "position"] = parts["flip_rate"] - repeat
    # One set of items for all parts, so that they add up.
    mask = np.array([~np.isnan(part) for part in parts.values()] or [~np.isnan(repeat)]).all(axis=0)
    if not mask.any():
        return FlipSources()
    clusters = cluster_of[np.unique(item)][mask]
    figures: dict[str, Any] = {name: float(part[mask].mean()) for name, part in parts.items()}
    for name in figures.keys() & {"wording", "position"}:
        figures |= mean_t_cluster(parts[name][mask], clusters).fields(name)
    return FlipSources(int(mask.sum()), **figures)


def _rates(item: Codes, template: Codes, order: Codes, decision: Codes) -> Floats:
    """Share of differing pairs of each item, shape (items, 4), NaN where an item has no such pair.

    Columns: same prompt; another template; another order; both.
    """
    items, item = np.unique(item, return_inverse=True)
    k = len(items)

    if not k:
        return np.zeros((0, 4))

    def pairs(*keys: Codes) -> Floats:
        """Pairs of rows equal in all keys, counted for each item."""
        # One number per row sorts many times faster than whole rows; the item is its first digit.
        code, weight = item, 1
        for key in keys:
            size = int(key.max()) + 1
            code, weight = code * size + key, weight * size
        groups, tally = np.unique(code, return_counts=True)
        return np.bincount(groups // weight, tally * (tally - 1) / 2, minlength=k).astype(float)

    def exact(*more: Codes) -> list[Floats]:
        same_prompt, same_order = pairs(template, order, *more), pairs(order, *more)
        same_template, all_pairs = pairs(template, *more), pairs(*more)
        return [
            same_prompt,
            same_order - same_prompt,
            same_template - same_prompt,
            all_pairs - same_order - same_template + same_prompt,
        ]

    total, equal = np.column_stack(exact()), np.column_stack(exact(decision))
    rates = np.full(total.shape, np.nan)
    np.divide(total - equal, total, out=rates, where=total > 0)
    return rates


def flip_overlap(decisions: Mapping[str, tuple[Labels, Labels]]) -> tuple[Codes, Codes]:
    """How many judges flip on each pair of prompts, and how many decided it on both sides.

    If every judge flips on a pair, the wording is the likelier cause, not the judges (JudgeSense,
    section 5.3). ``decisions`` are by judge those under one prompt and those under the other, of
    the same n pairs; the counts of judges have shape (n,) each.
    """
    flips_by_judge, decided_by_judge = [], []
    for references, predictions in decisions.values():
        first, second, labels = encode_pair(references, predictions)
        empty = np.isin(labels, UNDECIDED)
        decided_by_judge.append(~(empty[first] | empty[second]))
        flips_by_judge.append(decided_by_judge[-1] & (first != second))
    return np.sum(flips_by_judge, axis=0), np.sum(decided_by_judge, axis=0)
