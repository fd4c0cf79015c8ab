"""What the flips of a judge come from: wording, position or noise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.intervals import cluster_codes, mean_t_cluster, wilson_cluster
from judgesense.statistics.labels import check_labels, check_level, encode
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.tables import is_ordered

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


@dataclass(frozen=True)
class AnyOf(ResultMapping):
    """How often `k` verdicts on an item are not all the same.

    `rate` is the mean over the items and every choice of `k` of an item's verdicts, with a
    interval over clusters: Wilson's where each item counts whole, as at k = m, or else Student's t
    (ends are None with a single cluster).
    """

    rate: float
    ci_low: float | None
    ci_high: float | None
    k: int
    n_items: int


def any_of(
    decisions: Any, k: int, cluster_ids: Any = None, confidence_level: float = 0.95
) -> AnyOf:
    """How often `k` wordings (or reruns) of an item do not all lead to one verdict.

    The rate grows with `k`, so two conditions are compared at one `k`: that of seven wordings at
    k = 5 with that of five reruns. All choices of `k` columns count, by the hypergeometric
    probability that they agree (flakyjudge's "matched k").

    Args:
        decisions: shape (n, m), the verdicts of each item under m wordings.
        k: from 2 to m.
        cluster_ids: shape (n,), what is independent; the items by default.
        confidence_level: within (0, 1).

    Raises:
        ValueError: without items, and for a `k` below 2 or above m.

    >>> found = any_of([["YES", "YES", "NO"], ["NO", "NO", "NO"]], 2)
    >>> round(found.rate, 3), any_of([["YES", "YES", "NO"]], 3).rate
    (0.333, 1.0)
    """
    table = np.asarray(decisions)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"decisions has shape {table.shape}: pass a row per item")
    n, m = table.shape
    if not 2 <= k <= m:
        raise ValueError(f"k is {k}: pass 2 to {m}, the number of verdicts per item")
    same = np.zeros(n)
    for label in np.unique(table):
        counts = (table == label).sum(1)
        same += np.array([comb(int(count), k) for count in counts]) / comb(m, k)
    apart = 1 - same
    if np.isin(apart, (0, 1)).all():
        ends = wilson_cluster(apart == 1, cluster_ids, confidence_level)
    else:
        ends = mean_t_cluster(apart, cluster_ids, confidence_level).within(0.0, 1.0)
    return AnyOf(float(apart.mean()), ends.low, ends.high, k, n)


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
