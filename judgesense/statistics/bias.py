"""Whether a verdict follows the item or its position, and what a flip comes from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.intervals import cluster_codes, mean_t_cluster, wilson_cluster
from judgesense.statistics.labels import (
    Codes,
    check_labels,
    check_level,
    encode,
    encode_pair,
)
from judgesense.statistics.result import ResultMapping

OPTIONS = ("A", "B")
TIES = ("TIE", "tie", "Tie", "C")
"""Labels that mean a tie; "C" is MT-Bench's."""

LABELS = ("position", "item")


@dataclass(frozen=True, eq=False)
class PositionBias(ResultMapping):
    """Decisions on the same two options in both orders.

    Of the `n` pairs with a choice in both orders, `position_consistency` is the share that chose
    the same item, `consistent_first` the share that chose the option shown first both times, and
    `consistent_second` the one shown second; the three add up to 1. `first_position_rate` is the
    share of the 2 n choices that took the option shown first. `preference_fairness` =
    consistent_second - consistent_first: -1 always the first, 0 no preference, 1 always the
    second. `n_excluded` pairs have a tie or no decision on a side. An undefined figure is None,
    and `degenerate` says why.
    """

    labels: ClassVar = {
        "position_consistency": "same choice in both orders",
        "first_position_rate": "takes the first option",
        "preference_fairness": "preference (-1 first, 1 second)",
        "n": "pairs",
        "n_items": "items",
        "n_excluded": "left out",
        "degenerate": "note",
    }
    position_consistency: float | None
    position_consistency_ci_low: float | None
    position_consistency_ci_high: float | None
    first_position_rate: float | None
    first_position_rate_ci_low: float | None
    first_position_rate_ci_high: float | None
    consistent_first: float | None
    consistent_second: float | None
    preference_fairness: float | None
    preference_fairness_ci_low: float | None
    preference_fairness_ci_high: float | None
    n: int
    n_items: int
    n_excluded: int
    degenerate: str | None


def position_bias(
    predictions: Any,
    references: Any,
    item_ids: Any = None,
    *,
    labels: str = "position",
    options: Sequence[str] = OPTIONS,
    ties: Collection[str] = TIES,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
) -> PositionBias:
    """Measure position bias from the same pairs judged in both option orders.

    Position consistency and the direction of preference fairness are those of Shi et al. (2024,
    arXiv:2406.07791). Fairness is not rescaled to the range that a dataset can reach, so 0 is fair
    for every dataset.

    Args:
        predictions: decisions with the options swapped (order BA), shape (n,), strings.
        references: decisions in the first order (AB), shape (n,), strings.
        item_ids: one id per row if rows share an item; None makes every row an item.
        labels: "position": options[0] means "the one shown first", as in the decision log;
            "item": options[0] means the same item in both streams.
        options: the two labels.
        ties: labels that prefer neither; such pairs are counted in `n_excluded`.
        undecided: labels without a decision; counted likewise.
        confidence_level: within (0, 1).

    Returns:
        A `PositionBias`.

    Raises:
        ValueError: a label outside options, ties and undecided (names the row), unequal lengths,
            empty input, unknown `labels`.

    >>> result = position_bias(["A", "B", "A"], ["A", "A", "B"])
    >>> round(result.position_consistency, 3), round(result.consistent_first, 3)
    (0.667, 0.333)
    """
    if labels not in LABELS:
        raise ValueError(f"labels is {labels!r}: pass 'position' or 'item'")
    level = check_level(confidence_level)
    in_ab, in_ba, seen = encode_pair(references, predictions)
    side = _sides(seen, options, ties, undecided)
    clusters, _ = cluster_codes(item_ids, len(in_ab))
    ab, ba = side[in_ab], side[in_ba]
    for name, stream, codes in (("references", ab, in_ab), ("predictions", ba, in_ba)):
        if len(wrong := np.flatnonzero(stream == _UNKNOWN)):
            raise ValueError(
                f"{name}[{wrong[0]}] is {seen[codes[wrong[0]]]!r}: pass {options[0]!r} or "
                f"{options[1]!r}, a tie ({', '.join(ties)}) or {', '.join(undecided)}; name other "
                "labels with options= and ties="
            )
    kept = (ab >= 0) & (ba >= 0)
    n = int(kept.sum())
    if not n:
        reason = "no pair has a choice in both orders"
        return PositionBias.undefined(n=0, n_items=0, n_excluded=len(kept), degenerate=reason)
    first_ab, first_ba = ab[kept] == 0, ba[kept] == 0
    if labels == "item":
        first_ba = ~first_ba
    clusters = clusters[kept]
    # A consistent choice takes the first position in one order and the second in the other.
    consistent = first_ab != first_ba
    always_first, always_second = first_ab & first_ba, ~first_ab & ~first_ba
    lean = always_second.astype(np.float64) - always_first
    n_items = len(np.unique(clusters))
    place = wilson_cluster(np.concatenate([first_ab, first_ba]), np.tile(clusters, 2), level)
    same = wilson_cluster(consistent, clusters, level)
    fair = mean_t_cluster(lean, clusters, level)
    return PositionBias(
        position_consistency=float(consistent.mean()),
        position_consistency_ci_low=same.low,
        position_consistency_ci_high=same.high,
        first_position_rate=float((first_ab.mean() + first_ba.mean()) / 2),
        first_position_rate_ci_low=place.low,
        first_position_rate_ci_high=place.high,
        consistent_first=float(always_first.mean()),
        consistent_second=float(always_second.mean()),
        preference_fairness=float(lean.mean()),
        preference_fairness_ci_low=None if fair.low is None else max(-1.0, fair.low),
        preference_fairness_ci_high=None if fair.high is None else min(1.0, fair.high),
        n=n,
        n_items=n_items,
        n_excluded=len(kept) - n,
        degenerate=None if n_items > 1 else "one item: no interval",
    )


_EXCLUDED, _UNKNOWN = -1, -2


def _sides(
    seen: Sequence[str], options: Sequence[str], ties: Collection[str], undecided: Collection[str]
) -> npt.NDArray[np.int8]:
    """0 or 1 for the options, a negative code for labels that are left out or unknown."""
    _check_options(options)
    left_out = check_labels(ties, "ties") | check_labels(undecided, "undecided")
    place = dict.fromkeys(left_out, _EXCLUDED)
    place.update({options[0]: 0, options[1]: 1})
    return np.array([place.get(label, _UNKNOWN) for label in seen], dtype=np.int8)


def _check_options(options: Sequence[str]) -> None:
    if len(check_labels(options, "options")) != 2 or len(options) != 2:
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
    _check_options(options)
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


def _rates(item: Codes, template: Codes, order: Codes, decision: Codes) -> npt.NDArray[np.float64]:
    """Share of differing pairs of each item, shape (items, 4), NaN where an item has no such pair.

    Columns: same prompt; another template; another order; both.
    """
    items, item = np.unique(item, return_inverse=True)
    k = len(items)

    def pairs(*keys: Codes) -> npt.NDArray[np.float64]:
        """Pairs of rows equal in all keys, counted for each item."""
        if not k:
            return np.zeros(0)
        # One number per row sorts many times faster than whole rows; the item is its first digit.
        code, weight = item, 1
        for key in keys:
            size = int(key.max()) + 1
            code, weight = code * size + key, weight * size
        groups, tally = np.unique(code, return_counts=True)
        counts: npt.NDArray[np.float64] = np.bincount(
            groups // weight, tally * (tally - 1) / 2, minlength=k
        ).astype(np.float64)
        return counts

    def exact(*more: Codes) -> list[npt.NDArray[np.float64]]:
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


def _split(
    rates: npt.NDArray[np.float64], clusters: Codes, n_excluded: int, level: float
) -> FlipSources:
    has = ~np.isnan(rates)
    rerun, by_template, by_order, by_both = (bool(column.any()) for column in has.T)
    values: dict[str, npt.NDArray[np.float64]] = {}
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
