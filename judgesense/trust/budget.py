"""The variance budget of a judge and task with variants: the list ``variance_budget``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from judgesense.decisions import EQUIVALENT, REWORDING, VARIANT_CLASSES
from judgesense.decisions.stream import Stream
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.variance_budget import ITEM, LEVERS, RERUN, variance_budget
from judgesense.text import percent
from judgesense.trust.rewording import same_polarity

Values = Codes


def budget(stream: Stream, mislabelled: Collection[str] = ()) -> list[dict[str, Any]]:
    """A row per source of variance of a stream with variants, the item first; else nothing.

    Verdicts are in the item's own order. ``format`` has every equivalent variant of the base
    wording. The row of the item has the sentence on what to do in ``text``.
    """
    log = stream.log
    if not stream.variants or stream.row_a is None or stream.row_b is None:
        return []
    told = _verdicts(stream)
    plain = np.array([name == REWORDING for name in log.variants])[log.variant]
    rows = stream.rows[plain[stream.rows]]
    pairs = same_polarity(stream, mislabelled) & stream.known
    pairs &= plain[stream.row_a] & plain[stream.row_b]
    beside = [
        (base, changed)
        for own, base, changed in stream.variants.values()
        if log.variant_class[own[0]] == VARIANT_CLASSES.index(EQUIVALENT)
    ]
    named = {
        "wording": (stream.row_a[pairs], stream.row_b[pairs]),
        "format": tuple(np.concatenate(side) for side in zip(*beside, strict=True))
        if beside
        else (rows[:0], rows[:0]),
        "order": _orders(stream, rows),
        RERUN: stream.reruns or (rows[:0], rows[:0]),
    }
    sides, paired = {}, []
    for source, (one, two) in named.items():
        both = (told[one] >= 0) & (told[two] >= 0)
        if both.any():
            sides[source] = (told[one[both]], told[two[both]], log.cluster[one[both]])
            paired.append(log.item[one[both]])
    base = rows[_is_base(stream, rows) & (told[rows] >= 0)]
    # Items that were asked in one way alone tell nothing about the noise on the others.
    base = base[np.isin(log.item[base], np.concatenate(paired))] if paired else base
    base = base[np.unique(log.item[base], return_index=True)[1]]
    if not sides or len(base) < 2:
        return []
    found = variance_budget(told[base], log.cluster[base], sides, ordinal=stream.task.ordinal)
    return [
        {
            "source": source,
            "variance": value,
            "ci_low": found.intervals[source][0],
            "ci_high": found.intervals[source][1],
            "noise_share": found.shares.get(source),
            "n_pairs": len(sides[source][0]) if source in sides else 0,
            "n_clusters": found.n_clusters,
            "text": _text(found.lever, found.shares) if source == ITEM else None,
        }
        for source, value in found.variances.items()
    ]


def _text(lever: str | None, shares: dict[str, float | None]) -> str:
    if lever is None:
        return "no verdict changed with the wording, the format, the order or a rerun"
    source = {RERUN: "asking again"}.get(lever, f"the {lever}")
    return f"{percent(shares[lever])} of the noise comes from {source}: first {LEVERS[lever]}"


def _verdicts(stream: Stream) -> Values:
    """The verdict of each row of the log as a number in the item's own order; -1 for none."""
    log, labels = stream.log, stream.task.labels
    place = np.full(len(log.labels), -1)
    for number, label in enumerate(labels):
        place[np.flatnonzero(log.labels == label)] = number
    told: Values = place[log.decision]
    if stream.task.comparative and len(labels) == 2:
        swapped = np.array([order == "BA" for order in log.orders])[log.order] & (told >= 0)
        told = np.where(swapped, 1 - told, told)
    return told


def _orders(stream: Stream, rows: Codes) -> tuple[Codes, Codes]:
    """The rows in the order AB and those of the same item and wording in BA."""
    log = stream.log
    if not {"AB", "BA"} <= set(log.orders):
        return rows[:0], rows[:0]
    key = log.item * len(log.templates) + log.template
    one, two = (rows[log.order[rows] == log.orders.index(order)] for order in ("AB", "BA"))
    _, first, second = np.intersect1d(key[one], key[two], return_indices=True)
    return one[first], two[second]


def _is_base(stream: Stream, rows: Codes) -> Bools:
    """The rows of the wordings that variants change."""
    log = stream.log
    varied = np.unique(np.concatenate([log.base[own] for own, _, _ in stream.variants.values()]))
    found: Bools = np.isin(log.base[rows], varied)
    return found
