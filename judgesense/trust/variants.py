"""The lists ``variants`` and ``variance_budget`` of a report."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from judgesense.decisions.log import CONTRAST, EQUIVALENT, REWORDING, VARIANT_CLASSES
from judgesense.decisions.rows import Log
from judgesense.decisions.view import Stream, distinct
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.rates import rate_ratio, shift
from judgesense.statistics.variance import ITEM, LEVERS, RERUN, variance_budget
from judgesense.tasks import ERROR
from judgesense.text import percent
from judgesense.trust.checks import answered, same_polarity

KEYS = (
    "variant", "variant_class", "n_prompts", "n_items", "unreadable", "unreadable_ci_low",
    "unreadable_ci_high", "jss", "ci_low", "ci_high", "follows", "follows_ci_low",
    "follows_ci_high", "ratio", "ratio_ci_low", "ratio_ci_high", "shift_rate", "shift_ci_low",
    "shift_ci_high", "net_shift", "score_shift", "score_shift_ci_low", "score_shift_ci_high",
    "n_pairs",
)  # fmt: skip
"""Keys of a row; those of another class are None.

``jss`` is the agreement of an equivalent variant with the base wording, ``follows`` how often the
answer follows a contrast and ``ratio`` that rate over the rate of rewording, ``shift_rate`` to
``score_shift`` what an intervention does. ``unreadable`` is the share of prompts that were answered
without a verdict.
"""


def variants(stream: Stream, mislabelled: Collection[str] = ()) -> list[dict[str, Any]]:
    """The figures of each variant of a stream; nothing if it has rewordings alone.

    The first row is that of the rewordings; ``variant`` None pools all equivalent variants with
    them. ``mislabelled`` are wordings to leave out of the rewordings.
    """
    if not stream.variants:
        return []
    log = stream.log
    reworded_code = log.variants.index(REWORDING) if REWORDING in log.variants else -1
    plain = stream.rows[log.variant[stream.rows] == reworded_code]
    pairs = same_polarity(stream, mislabelled) & stream.decided()
    reworded = pairs & ~_of_variants(stream)
    same, clusters = stream.mapped_a == stream.mapped_b, stream.pairs.cluster
    found = [
        {**_row(log, REWORDING, plain), **_jss(same[reworded], clusters[reworded])},
        {**_row(log, None, stream.rows), **_jss(same[pairs], clusters[pairs])},
    ]
    classes = log.variant_class
    by_class = sorted(stream.variants, key=lambda name: classes[stream.variants[name][0][0]])
    for name in by_class:
        rows, base, beside = stream.variants[name]
        row = _row(log, name, rows)
        if row["variant_class"] == EQUIVALENT:
            both = ~(log.undecided[log.decision[base]] | log.undecided[log.decision[beside]])
            one, two = base[both], beside[both]
            kept = log.decision[one] == log.decision[two]
            found.append({**row, **_jss(kept, log.cluster[one])})
        elif row["variant_class"] == CONTRAST:
            found.append({**row, **_followed(stream, base, beside, reworded)})
        else:
            found.append({**row, **_shifted(stream, base, beside)})
    return found


def _of_variants(stream: Stream) -> Bools:
    """The pairs with a variant on either side."""
    log, no = stream.log, np.zeros(len(stream.pairs), bool)
    if stream.row_a is None or stream.row_b is None:
        return no
    own = np.append(np.array([name != REWORDING for name in log.variants])[log.variant], False)
    found: Bools = own[stream.row_a] | own[stream.row_b]
    return found


def _row(log: Log, name: str | None, rows: Codes) -> dict[str, Any]:
    """A row with what every variant has; an error is no answer, so it is not unreadable."""
    kinds = log.variant_class[rows]
    asked = rows[log.labels[log.raw[rows]] != ERROR]
    unread = log.undecided[log.raw[asked]]
    ends = wilson_cluster(unread, log.cluster[asked]) if len(asked) else None
    return {
        **dict.fromkeys(KEYS),
        "variant": name,
        "variant_class": VARIANT_CLASSES[int(kinds[0])] if len(kinds) else EQUIVALENT,
        "n_prompts": len(rows),
        "n_items": distinct(log.item[rows]),
        "unreadable": float(unread.mean()) if len(asked) else None,
        "unreadable_ci_low": ends.low if ends else None,
        "unreadable_ci_high": ends.high if ends else None,
        "n_pairs": 0,
    }


def _jss(same: Bools, clusters: Codes) -> dict[str, Any]:
    if not len(same):
        return {}
    ends = wilson_cluster(same, clusters)
    figures = {"jss": float(same.mean()), "ci_low": ends.low, "ci_high": ends.high}
    return {**figures, "n_pairs": len(same)}


def _followed(stream: Stream, base: Codes, beside: Codes, reworded: Bools) -> dict[str, Any]:
    log = stream.log
    base, beside = answered(stream, base, beside)
    if not len(base):
        return {}
    follows = log.raw[base] != log.raw[beside]
    ends = wilson_cluster(follows, log.cluster[base])
    figures: dict[str, Any] = {
        "follows": float(follows.mean()),
        "follows_ci_low": ends.low,
        "follows_ci_high": ends.high,
        "n_pairs": len(base),
    }
    if reworded.any():
        moves = stream.mapped_a[reworded] != stream.mapped_b[reworded]
        ratio = rate_ratio(follows, log.cluster[base], moves, stream.pairs.cluster[reworded])
        figures |= {"ratio": ratio.ratio, "ratio_ci_low": ratio.low, "ratio_ci_high": ratio.high}
    return figures


def _shifted(stream: Stream, base: Codes, beside: Codes) -> dict[str, Any]:
    log, labels = stream.log, stream.task.labels
    known = np.isin(log.labels, labels)
    both = known[log.decision[base]] & known[log.decision[beside]]
    base, beside = base[both], beside[both]
    found = shift(
        log.labels[log.decision[base]].tolist(),
        log.labels[log.decision[beside]].tolist(),
        labels,
        log.cluster[base],
        ordinal=stream.task.ordinal,
    ).to_dict()
    figures = {"shift_ci_low": found.pop("ci_low"), "shift_ci_high": found.pop("ci_high")}
    return {**figures, **found}


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
