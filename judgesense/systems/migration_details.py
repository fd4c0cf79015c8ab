"""How an update moves verdicts: direction, items, accuracy, and a threshold that keeps a rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.comparison import NOTHING_COMPARED, PairedDifference, holm, paired_test
from judgesense.statistics.intervals import Interval, mean_t_cluster
from judgesense.statistics.updates import KeptRate, keep_pass_rate
from judgesense.systems.sides import Common, grouped, task_name
from judgesense.systems.verdict_schema import number_of
from judgesense.tasks import UNDECIDED, is_scale


@dataclass(frozen=True)
class LabelShift:
    """How the share of one label changed. ``label`` may be ``first shown``, UNCLEAR or REFUSED.

    ``difference`` is new minus old, with an uncorrected 95% interval; ``p_holm`` is corrected over
    the labels of the task.
    """

    label: str
    old: float | None
    new: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_holm: float | None


@dataclass(frozen=True)
class MovedItem:
    """An item with moved verdicts: ``moved`` of its ``prompts``.

    ``old`` and ``new`` are its most frequent verdicts. ``reworded`` is how often the old judge's
    verdict on the item differs between two wordings; None with one wording.
    """

    item_id: str
    prompts: int
    moved: int
    old: str
    new: str
    reworded: float | None


def direction(sides: Common) -> tuple[LabelShift, ...]:
    """The share of each label before and after; nothing if no verdict moved."""
    if not sides.moved.any():
        return ()
    table = sides.old_side.table
    labels = [label for label in table.labels if label in sides.seen]
    labels += sorted(sides.seen - set(labels))
    labels += [label for label in UNDECIDED if label in {*sides.old, *sides.new}]
    columns = {label: (sides.old == label, sides.new == label) for label in labels}
    orders = table.column("order")[sides.old_row]
    if {"AB", "BA"} <= set(orders) and len(table.labels) == 2:
        shown = np.where(orders == "BA", table.labels[1], table.labels[0])
        columns = {"first shown": (sides.old == shown, sides.new == shown), **columns}
    clusters = sides.clusters.tolist()
    tests = {label: paired_test(*both, clusters) for label, both in columns.items()}
    adjusted = holm([found.p_value for found in tests.values()])
    return tuple(
        LabelShift(
            label, found.first, found.second, found.difference, found.ci_low, found.ci_high, p
        )
        for (label, found), p in zip(tests.items(), adjusted, strict=True)
    )


def level_shift(sides: Common) -> tuple[float | None, Interval]:
    """The mean change on a scale, in levels, over prompts with two readable verdicts."""
    labels = sorted(sides.seen | set(sides.old_side.table.labels))
    values = [[number_of(v) for v in side] for side in (sides.old, sides.new)]
    both = [n for n, couple in enumerate(zip(*values, strict=True)) if None not in couple]
    if not is_scale(labels) or not both:
        return None, Interval(None, None)
    change = np.array([(values[1][n] or 0.0) - (values[0][n] or 0.0) for n in both])
    return float(change.mean()), mean_t_cluster(change, sides.clusters[both].tolist())


def accuracy(sides: Common) -> PairedDifference:
    """How often each side matches gold, on the prompts that have it."""
    columns = [
        side.table.column("gold")[rows]
        for side, rows in ((sides.old_side, sides.old_row), (sides.new_side, sides.new_row))
    ]
    for n, (one, two) in enumerate(zip(*columns, strict=True)):
        if None not in (one, two) and one != two:
            raise JudgeSenseError(
                f"{task_name(sides)}: item {sides.items[n]!r} has the gold label {one} in "
                f"{sides.old_side.source} and {two} in {sides.new_side.source}; compare on the "
                "same labels"
            )
    gold = np.array(
        [a if a is not None else b for a, b in zip(*columns, strict=True)] + [None], dtype=object
    )[:-1]
    known = np.array([label is not None for label in gold], dtype=bool)
    if not known.any():
        return NOTHING_COMPARED
    old, new = (side[known] == gold[known] for side in (sides.old, sides.new))
    return paired_test(old, new, sides.clusters[known].tolist())


def kept_rate(sides: Common, pass_at: float | None, positive: str | None) -> KeptRate | None:
    """The score that passes as many prompts as before; None without scores or a threshold."""
    try:
        good = sides.old_side.table.good(positive)
    except JudgeSenseError:
        if pass_at is not None and positive is None:
            raise
        # Another task may have the label; without a threshold nobody asked for one.
        good = None
    columns = [
        _scores(side.table, rows, verdicts, good)
        for side, rows, verdicts in (
            (sides.old_side, sides.old_row, sides.old),
            (sides.new_side, sides.new_row, sides.new),
        )
    ]
    if columns[0] is None or columns[1] is None:
        return None
    (old, is_share), (new, _) = columns
    lowest, highest = (0.0, 1.0) if is_share else _ends(sides.old_side.table.labels)
    if pass_at is None or not lowest < pass_at <= highest:
        # A threshold of another task's scale.
        pass_at = 0.5 if is_share else None
    if pass_at is None:
        return None
    both = ~(np.isnan(old) | np.isnan(new))
    if not both.any():
        return None
    return keep_pass_rate(old[both], new[both], pass_at, sides.clusters[both].tolist())


def _ends(labels: Sequence[str]) -> tuple[float, float]:
    known = [value for value in map(number_of, labels) if value is not None]
    return min(known), max(known)


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


def moved_items(sides: Common) -> tuple[MovedItem, ...]:
    """The items that moved, those first that moved most and that rewording moves least."""
    of_item = grouped(sides.items, range(len(sides.items)))
    reworded = grouped(sides.items[sides.pair_row], sides.pair_differs.tolist())
    moved, found = sides.moved, []
    for item, rows in of_item.items():
        if n := int(moved[rows].sum()):
            own = reworded.get(item)
            found.append(
                MovedItem(
                    item_id=item,
                    prompts=len(rows),
                    moved=n,
                    old=_usual(sides.old[rows].tolist()),
                    new=_usual(sides.new[rows].tolist()),
                    reworded=None if own is None else sum(own) / len(own),
                )
            )
    found.sort(key=lambda e: (-e.moved / e.prompts, e.reworded or 0.0, -e.moved, e.item_id))
    return tuple(found)


def _usual(verdicts: Sequence[str]) -> str:
    counts: Mapping[str, int] = Counter(verdicts)
    return max(sorted(counts), key=lambda verdict: counts[verdict])
