"""How an update moves verdicts: direction, items, accuracy, and a threshold that keeps a rate."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Words
from judgesense.statistics.comparison import NOTHING_COMPARED, PairedDifference, holm, paired_test
from judgesense.statistics.intervals import Interval, mean_t_cluster
from judgesense.statistics.updates import KeptRate, keep_pass_rate
from judgesense.systems.migration_result import LabelShift, MovedItem
from judgesense.systems.shared_prompts import SharedPrompts, grouped
from judgesense.systems.verdict_table import number_of
from judgesense.tasks import UNDECIDED, is_scale


def direction(shared: SharedPrompts) -> tuple[LabelShift, ...]:
    """The share of each label before and after; nothing if no verdict moved."""
    if not shared.moved.any():
        return ()
    table = shared.before.table
    labels = [label for label in table.labels if label in shared.labels]
    labels += sorted(shared.labels - set(labels))
    labels += [label for label in UNDECIDED if label in {*shared.old, *shared.new}]
    columns = {label: (shared.old == label, shared.new == label) for label in labels}
    orders = table.column("order")[shared.old_row]
    if {"AB", "BA"} <= set(orders) and len(table.labels) == 2:
        shown = np.where(orders == "BA", table.labels[1], table.labels[0])
        columns = {"first shown": (shared.old == shown, shared.new == shown), **columns}
    clusters = shared.clusters.tolist()
    tests = {label: paired_test(*both, clusters) for label, both in columns.items()}
    adjusted = holm([found.p_value for found in tests.values()])
    return tuple(
        LabelShift(
            label, found.first, found.second, found.difference, found.ci_low, found.ci_high, p
        )
        for (label, found), p in zip(tests.items(), adjusted, strict=True)
    )


def level_shift(shared: SharedPrompts) -> tuple[float | None, Interval]:
    """The mean change on a scale, in levels, over prompts with two readable verdicts."""
    labels = sorted(shared.labels | set(shared.before.table.labels))
    old, new = ([number_of(v) for v in verdicts] for verdicts in (shared.old, shared.new))
    change = np.array(
        [np.nan if None in (a, b) else b - a for a, b in zip(old, new, strict=True)]  # type: ignore[operator]
    )
    both = ~np.isnan(change)
    if not is_scale(labels) or not both.any():
        return None, Interval(None, None)
    return float(change[both].mean()), mean_t_cluster(change[both], shared.clusters[both].tolist())


def accuracy(shared: SharedPrompts) -> PairedDifference:
    """How often the verdicts match gold before and after, on the prompts that have it."""
    one = shared.before.table.column("gold")[shared.old_row]
    two = shared.after.table.column("gold")[shared.new_row]
    for item, a, b in zip(shared.items, one, two, strict=True):
        if None not in (a, b) and a != b:
            raise JudgeSenseError(
                f"{shared.task}: item {item!r} has the gold label {a} in "
                f"{shared.before.table.source} and {b} in {shared.after.table.source}; compare on "
                "the same labels"
            )
    gold = np.where(one == None, two, one)  # noqa: E711
    known = gold != None  # noqa: E711
    if not known.any():
        return NOTHING_COMPARED
    old, new = (verdicts[known] == gold[known] for verdicts in (shared.old, shared.new))
    return paired_test(old, new, shared.clusters[known].tolist())


def kept_rate(
    shared: SharedPrompts, pass_at: float | None, positive: str | None
) -> KeptRate | None:
    """The score that passes as many prompts as before; None without scores or a threshold."""
    try:
        good = shared.before.table.good(positive)
    except JudgeSenseError:
        if pass_at is not None and positive is None:
            raise
        # Another task may have the label; without a threshold nobody asked for one.
        good = None
    before = _scores(shared.before.table, shared.old_row, shared.old, good)
    after = _scores(shared.after.table, shared.new_row, shared.new, good)
    if before is None or after is None:
        return None
    (old, is_share), (new, _) = before, after
    scale = [number_of(label) or 0.0 for label in shared.before.table.labels]
    lowest, highest = (0.0, 1.0) if is_share else (min(scale), max(scale))
    if pass_at is None or not lowest < pass_at <= highest:
        # A threshold of another task's scale.
        pass_at = 0.5 if is_share else None
    if pass_at is None:
        return None
    both = ~(np.isnan(old) | np.isnan(new))
    if not both.any():
        return None
    return keep_pass_rate(old[both], new[both], pass_at, shared.clusters[both].tolist())


def _scores(table: Any, rows: Any, verdicts: Any, good: str | None) -> Any:
    """Scores of prompts (NaN without one), and whether they are probabilities; None if neither."""
    if is_scale(table.labels) and len(table.labels) > 2:
        told = table.column("score")[rows]
        found = [s if s is not None else number_of(v) for s, v in zip(told, verdicts, strict=True)]
        return np.array([np.nan if s is None else s for s in found], dtype=float), False
    if good is None or len(table.labels) != 2:
        return None
    shares = table.column("probability")[rows]
    if all(share is None for share in shares):
        return None
    found = [
        np.nan if p is None or v not in table.labels else p if v == good else 1 - p
        for p, v in zip(shares, verdicts, strict=True)
    ]
    return np.array(found, dtype=float), True


def moved_items(shared: SharedPrompts) -> tuple[MovedItem, ...]:
    """The items that moved, those first that moved most and that rewording moves least."""
    of_item = grouped(shared.items, range(len(shared.items)))
    reworded = grouped(shared.items[shared.pair_row], shared.pair_differs.tolist())
    moved, found = shared.moved, []
    for item, rows in of_item.items():
        if n := int(moved[rows].sum()):
            own = reworded.get(item)
            found.append(
                MovedItem(
                    item_id=item,
                    prompts=len(rows),
                    moved=n,
                    old=_usual(shared.old[rows]),
                    new=_usual(shared.new[rows]),
                    reworded=None if own is None else sum(own) / len(own),
                )
            )
    found.sort(key=lambda e: (-e.moved / e.prompts, e.reworded or 0.0, -e.moved, e.item_id))
    return tuple(found)


def _usual(verdicts: Words) -> str:
    counts = Counter[str](sorted(verdicts))
    return max(counts, key=lambda verdict: counts[verdict])
