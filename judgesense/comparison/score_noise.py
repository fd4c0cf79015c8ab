"""Two results of one judge on the same outputs: its noise, and what that leaves to decide."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from judgesense.comparison.paired import grouped
from judgesense.comparison.score_change_result import GroupNoise, Noise
from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.attribution import FEWEST_ANCHORS
from judgesense.statistics.intervals import wilson_cluster

SMALLEST_CHANGE = 0.1
"""The change that a gate should see, as a share of the range of values."""

_TWO_SIDED, _POWER = 1.96, 0.84
"""Normal quantiles of a 95% interval and of a chance of 80%."""

_MOST_REPEATS = 1_000


def noise_of(
    old: Floats,
    new: Floats,
    flipped: Bools,
    clusters: Sequence[str],
    span: float,
    groups: tuple[str, Sequence[str]] | None = None,
) -> Noise | None:
    """What asking a judge again changes on items whose output is the same; None with too few.

    ``old`` and ``new`` are the items' values, which have the range ``span``; ``flipped`` says whose
    verdict is another one. ``groups`` has a column and the group of each item.
    """
    n = len(old)
    if n < FEWEST_ANCHORS:
        return None
    ends = wilson_cluster(flipped, clusters)
    # Between two results of one judge the mean change is noise; around 0 it is what is known best.
    spread, change = float(np.sqrt(((new - old) ** 2).mean())), SMALLEST_CHANGE * span
    moves = np.abs(new - old)[new != old]
    step = max(float(moves.mean()) if len(moves) else 0.0, change)

    def needed(noise: float) -> int:
        return _items_needed(noise, step, change) if change else FEWEST_ANCHORS

    def repeats(n: int) -> int | None:
        if needed(0.0) > n:
            return None
        return (
            bisect_left(range(1, _MOST_REPEATS), True, key=lambda k: needed(spread**2 / k) <= n) + 1
        )

    by, names = groups or (None, ())
    return Noise(
        n_items=n,
        n_flipped=int(flipped.sum()),
        flipped=float(flipped.mean()),
        ci_low=ends.low,
        ci_high=ends.high,
        moves_by=_TWO_SIDED * spread / math.sqrt(n),
        change=change,
        items_needed=needed(spread**2),
        repeats_needed=repeats(n),
        by=by,
        groups=tuple(
            GroupNoise(
                name=name,
                n_items=len(rows),
                old=float(old[rows].mean()),
                new=float(new[rows].mean()),
                n_flipped=int(flipped[rows].sum()),
                moves_by=_TWO_SIDED * spread / math.sqrt(len(rows)),
                decides=needed(spread**2) <= len(rows),
                repeats_needed=repeats(len(rows)),
            )
            for name, rows in grouped(names, range(len(names))).items()
        ),
    )


def _items_needed(noise: float, step: float, change: float) -> int:
    """The items with which `attribute` shows a change of the mean with a chance of 80%.

    ``noise`` is the mean square of an item's move without any change. The change itself is moves of
    ``step`` on some items, and which are in the sample varies, too: repeats do not help with that.
    Two more moves are what `attribute` adds for those that nobody saw.
    """
    from scipy.special import stdtrit

    spread, unseen, n = noise + change * (step - change), 2 * step**2, float(FEWEST_ANCHORS)
    for _ in range(4):
        reach = (change / (float(stdtrit(max(n, FEWEST_ANCHORS) - 1, 0.975)) + _POWER)) ** 2
        n = (spread + math.sqrt(spread**2 + 4 * reach * unseen)) / (2 * reach)
    return max(FEWEST_ANCHORS, math.ceil(n))


def groups_of(
    items: pa.Table | None, task: str, names: Sequence[str]
) -> tuple[str, Sequence[str]] | None:
    """The first column of a file by which items form groups, and the group of each item."""
    columns: dict[str, dict[str, str]] = {}
    for row in [] if items is None else items.to_pylist():
        if row.get("task") in (None, task):
            columns.setdefault(row["column"], {})[row["item_id"]] = row["text"]
    for column, texts in columns.items():
        groups = [texts[name] for name in names if name in texts]
        if len(groups) == len(names) and 1 < len({*groups}) <= len(names) / 2:
            return column, groups
    return None
