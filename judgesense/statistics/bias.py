"""Whether a verdict follows the item or its position."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from judgesense.statistics.inputs import (
    OPTIONS,
    UNDECIDED,
    check_labels,
    check_level,
    cluster_codes,
    encode_pair,
    label_text,
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
    in_ab, in_ba, names = encode_pair(references, predictions)
    if len(check_labels(options, "options")) != 2 or len(options) != 2 or isinstance(options, Set):
        raise ValueError(f"options is {options!r}: pass two different labels, such as ('A', 'B')")
    options = tuple(label_text(option, "a label of options") for option in options)
    left_out = check_labels(ties, "ties") | check_labels(undecided, "undecided")
    place = {**dict.fromkeys(left_out, -1), options[0]: 0, options[1]: 1}
    side = np.array([place.get(label, -2) for label in names])
    clusters, _ = cluster_codes(item_ids, len(in_ab))
    ab, ba = side[in_ab], side[in_ba]
    for name, stream, codes in (("references", ab, in_ab), ("predictions", ba, in_ba)):
        if len(rows := np.flatnonzero(stream == -2)):
            raise ValueError(
                f"{name}[{rows[0]}] is {names[codes[rows[0]]]!r}: pass {options[0]!r} or "
                f"{options[1]!r}, a tie ({', '.join(ties)}) or {', '.join(undecided)}; name other "
                "labels with options= and ties="
            )
    is_chosen = (ab >= 0) & (ba >= 0)
    n = int(is_chosen.sum())
    if not n:
        reason = "no pair has a choice in both orders"
        return PositionBias.undefined(n=0, n_items=0, n_excluded=len(is_chosen), degenerate=reason)
    first_ab, first_ba = ab[is_chosen] == 0, ba[is_chosen] == 0
    if labels == "item":
        first_ba = ~first_ba
    clusters = clusters[is_chosen]
    # A consistent choice takes the first position in one order and the second in the other.
    consistent = first_ab != first_ba
    always_first, always_second = first_ab & first_ba, ~first_ab & ~first_ba
    lean = always_second.astype(np.float64) - always_first
    n_items = len(np.unique(clusters))
    first = wilson_cluster(np.concatenate([first_ab, first_ba]), np.tile(clusters, 2), level)
    consistency = wilson_cluster(consistent, clusters, level)
    fair = mean_t_cluster(lean, clusters, level).within(-1.0, 1.0)
    return PositionBias(
        position_consistency=float(consistent.mean()),
        **consistency.fields("position_consistency"),
        first_position_rate=float((first_ab.mean() + first_ba.mean()) / 2),
        **first.fields("first_position_rate"),
        consistent_first=float(always_first.mean()),
        consistent_second=float(always_second.mean()),
        preference_fairness=float(lean.mean()),
        **fair.fields("preference_fairness"),
        n=n,
        n_items=n_items,
        n_excluded=len(is_chosen) - n,
        degenerate=None if n_items > 1 else "one item: no interval",
    )


@dataclass(frozen=True)
class BothOrders:
    """Whether the same thing is chosen in both option orders.

    `same_choice` is the share of the `n` pairs of judgements (an item and a wording, in both
    orders) with the same verdict on the items: the same choice, or a tie both times. A choice in
    one order and a tie in the other is a change. `first_position_rate` is the share of their
    choices that took the option shown first; a tie took none. `n_items` have such a pair, of
    `n_asked` that were judged in both orders: the others have no verdict in one of them. Without a
    pair, every figure is None; the interval is None with a single cluster.
    """

    same_choice: float | None = None
    same_choice_ci_low: float | None = None
    same_choice_ci_high: float | None = None
    first_position_rate: float | None = None
    n: int = 0
    n_items: int = 0
    n_asked: int = 0
    n_templates: int = 0


def both_orders(
    decisions: Any,
    item_ids: Any,
    orders: Any,
    template_ids: Any,
    *,
    cluster_ids: Any,
    options: Sequence[str] = OPTIONS,
    ties: Collection[str] = TIES,
) -> BothOrders:
    """Measure from rows of a log whether the same thing is chosen in both option orders.

    Rows of one item and wording are paired, AB with BA; the first row of each counts (later ones
    are repeats). A wording that was asked in one order only is left aside, so one wording in both
    orders suffices. The interval is `intervals.wilson_cluster`'s.

    Args:
        decisions: one label per row, shape (n,), strings, as shown. Pairs with another label than
            `options` and `ties` (no decision) are left out.
        item_ids, template_ids, cluster_ids: one id per row; clusters are what is independent.
        orders: "AB" or "BA" per row; rows with another value are left aside.
        options: the two labels.
        ties: labels that prefer neither; one that is an option is an option.

    >>> orders, items = ["AB", "BA"] * 3, [1, 1, 2, 2, 3, 3]
    >>> verdicts = ["A", "B", "A", "TIE", "TIE", "TIE"]
    >>> result = both_orders(verdicts, items, orders, [1] * 6, cluster_ids=items)
    >>> round(result.same_choice, 3), round(result.first_position_rate, 3), result.n
    (0.667, 0.667, 3)
    """
    answers, order_names = np.asarray(decisions, object), np.asarray(orders, object)
    item, cluster, template = (
        cluster_codes(ids, len(answers))[0] for ids in (item_ids, cluster_ids, template_ids)
    )
    place = item * (int(template.max()) + 1) + template
    rows = []
    for order in ("AB", "BA"):
        of_order = np.flatnonzero(order_names == order)
        rows.append(of_order[np.unique(place[of_order], return_index=True)[1]])
    _, *places = np.intersect1d(place[rows[0]], place[rows[1]], True, return_indices=True)
    ab, ba = rows[0][places[0]], rows[1][places[1]]
    n_templates, n_asked = len(np.unique(template[ab])), len(np.unique(item[ab]))
    chose = np.isin(answers, options)
    tied = np.isin(answers, list(ties)) & ~chose
    is_read = (chose | tied)[ab] & (chose | tied)[ba]
    ab, ba = ab[is_read], ba[is_read]
    if not len(ab):
        return BothOrders(n_asked=n_asked, n_templates=n_templates)
    # The same choice has another name in each order; a tie has the same.
    is_same_choice = (chose[ab] & chose[ba] & (answers[ab] != answers[ba])) | (tied[ab] & tied[ba])
    ends = wilson_cluster(is_same_choice, cluster[ab], 0.95)
    choices = answers[np.concatenate([ab, ba])]
    choices = choices[np.isin(choices, options)]
    return BothOrders(
        same_choice=float(is_same_choice.mean()),
        **ends.fields("same_choice"),
        first_position_rate=float((choices == options[0]).mean()) if len(choices) else None,
        n=len(ab),
        n_items=len(np.unique(item[ab])),
        n_asked=n_asked,
        n_templates=n_templates,
    )
