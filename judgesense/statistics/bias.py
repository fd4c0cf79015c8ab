"""Whether a verdict follows the item or its position."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Codes
from judgesense.statistics.inputs import (
    OPTIONS,
    UNDECIDED,
    check_labels,
    check_level,
    cluster_codes,
    encode,
    encode_pair,
)
from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.statistics.result import ResultMapping

LABELS = ("position", "item")
"""What a label of a comparative task names: the option as shown, or the item."""

TIES = ("TIE", "tie", "Tie", "C")
"""Labels that mean a tie; "C" is MT-Bench's."""


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
    fair = mean_t_cluster(lean, clusters, level).within(-1.0, 1.0)
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
        preference_fairness_ci_low=fair.low,
        preference_fairness_ci_high=fair.high,
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
    if (
        len(check_labels(options, "options")) != 2
        or len(options) != 2
        or isinstance(options, (str, Set))
    ):
        raise ValueError(f"options is {options!r}: pass two different labels, such as ('A', 'B')")
    left_out = check_labels(ties, "ties") | check_labels(undecided, "undecided")
    place = dict.fromkeys(left_out, _EXCLUDED)
    place.update({options[0]: 0, options[1]: 1})
    return np.array([place.get(label, _UNKNOWN) for label in seen], dtype=np.int8)


@dataclass(frozen=True, eq=False)
class BothOrders(ResultMapping):
    """Whether the same thing is chosen in both option orders.

    `same_choice` is the share of the `n` pairs of judgements (an item and a wording, in both
    orders) that chose the same thing, `first_position_rate` the share of their 2 n choices that
    took the option shown first. `n_excluded` pairs have a tie or no decision on a side.
    An undefined figure is None, and `degenerate` says why.
    """

    labels: ClassVar = {
        "same_choice": "same choice in both orders",
        "first_position_rate": "takes the first option",
        "n": "pairs",
        "n_items": "items",
        "n_templates": "wordings in both orders",
        "n_excluded": "left out",
        "degenerate": "note",
    }
    same_choice: float | None
    same_choice_ci_low: float | None
    same_choice_ci_high: float | None
    first_position_rate: float | None
    first_position_rate_ci_low: float | None
    first_position_rate_ci_high: float | None
    n: int
    n_items: int
    n_templates: int
    n_excluded: int
    degenerate: str | None


def both_orders(
    decisions: Any,
    item_ids: Any,
    orders: Any,
    template_ids: Any,
    *,
    cluster_ids: Any,
    options: Sequence[str] = OPTIONS,
) -> BothOrders:
    """Measure from rows of a log whether the same thing is chosen in both option orders.

    Rows of one item and wording are paired, AB with BA; the first row of each counts (later ones
    are repeats). A wording that was asked in one order only is left aside, so one wording in both
    orders suffices.

    Args:
        decisions: one label per row, shape (n,), strings, as shown. Pairs with another label than
            `options` (a tie, no decision) are counted in `n_excluded`.
        item_ids: one id per row.
        orders: "AB" or "BA" per row; rows with another value are left aside.
        template_ids: the wording of each row.
        cluster_ids: what is independent, one id per row.
        options: the two labels.

    Returns:
        A `BothOrders`; intervals are `intervals.wilson_cluster`'s.

    >>> orders, items = ["AB", "BA"] * 2, [1, 1, 2, 2]
    >>> found = both_orders(["A", "B", "A", "A"], items, orders, items, cluster_ids=items)
    >>> found.same_choice, found.first_position_rate
    (0.5, 0.75)
    """
    table: dict[str, int] = {}
    decision = encode(decisions, "decisions", table)
    n = len(decision)
    item, cluster, template = (
        cluster_codes(ids, n)[0] for ids in (item_ids, cluster_ids, template_ids)
    )
    order_names: dict[str, int] = {}
    order = encode(orders, "orders", order_names)
    place = item * (int(template.max()) + 1) + template
    first, second = (
        _first_rows(place, np.flatnonzero(order == order_names.get(name, -1)))
        for name in ("AB", "BA")
    )
    _, in_ab, in_ba = np.intersect1d(
        place[first], place[second], assume_unique=True, return_indices=True
    )
    ab, ba = first[in_ab], second[in_ba]
    if not len(ab):
        return BothOrders.undefined(
            n=0, n_items=0, n_templates=0, n_excluded=0,
            degenerate="no item was judged in both orders with one wording",
        )  # fmt: skip
    shown = np.array([options.index(name) if name in options else _EXCLUDED for name in table])
    side = shown[decision]
    kept = (side[ab] >= 0) & (side[ba] >= 0)
    n_excluded = int((~kept).sum())
    n_templates = len(np.unique(template[ab]))
    ab, ba = ab[kept], ba[kept]
    if not len(ab):
        return BothOrders.undefined(
            n=0, n_items=0, n_templates=n_templates, n_excluded=n_excluded,
            degenerate="no pair has a choice in both orders",
        )  # fmt: skip
    first_ab, first_ba = side[ab] == 0, side[ba] == 0
    same_choice = first_ab != first_ba
    same = wilson_cluster(same_choice, cluster[ab])
    shown_first = np.concatenate([first_ab, first_ba])
    first_rate = wilson_cluster(shown_first, np.tile(cluster[ab], 2))
    return BothOrders(
        same_choice=float(same_choice.mean()),
        same_choice_ci_low=same.low,
        same_choice_ci_high=same.high,
        first_position_rate=float(shown_first.mean()),
        first_position_rate_ci_low=first_rate.low,
        first_position_rate_ci_high=first_rate.high,
        n=len(ab),
        n_items=len(np.unique(item[ab])),
        n_templates=n_templates,
        n_excluded=n_excluded,
        degenerate=None if len(np.unique(cluster[ab])) > 1 else "one cluster: no interval",
    )


def _first_rows(keys: Codes, rows: Codes) -> Codes:
    """The first of the given rows with each key."""
    found: Codes = rows[np.unique(keys[rows], return_index=True)[1]]
    return found
