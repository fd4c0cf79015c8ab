"""The five checks of a trust card, from a judge's decisions on one task.

Each check takes a stream of `judgesense.decisions.streams.view`; `trust_card` makes all five.
Prompts of contrast and intervention variants count for `responsive` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from judgesense.decisions.frames import Codes, Words
from judgesense.decisions.streams import Mask, Stream, distinct
from judgesense.statistics.bias import position_bias
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.kappa import contingency, kappa_from_table, wilson_kappa
from judgesense.statistics.ratios import rate_ratio
from judgesense.tasks import ERROR, NO_ORDER, UNCLEAR
from judgesense.text import join, number, percent
from judgesense.trust.card import Check, State, TrustCard, conclude
from judgesense.trust.conclusion import items_to_settle
from judgesense.trust.thresholds import (
    DEFAULTS,
    IGNORED_CONTRAST,
    LEAST_COVERAGE,
    Thresholds,
)

Bools = npt.NDArray[np.bool_]


def trust_card(
    stream: Stream,
    *,
    thresholds: Thresholds = DEFAULTS,
    mislabelled: Collection[str] = (),
) -> TrustCard:
    """The trust card of a judge on a task.

    Args:
        stream: a judge's decisions (not a baseline's).
        thresholds: what each check is compared with.
        mislabelled: templates whose answers mean the opposite of what their label map says. They
            are left out of `steady`, `responsive` and `right`: they tell of the wording, not of
            the judge.

    >>> import pyarrow as pa
    >>> from judgesense.decisions import SCHEMA
    >>> from judgesense.decisions.streams import view
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "status": "ok"}
    >>> said = [{**row, "template_id": t, "item_id": f"i{n}", "decision": "YES", "gold": g}
    ...         for t in "12" for n, g in enumerate(["YES", "NO"] * 75)]
    >>> (stream,) = view(pa.Table.from_pylist(said, schema=SCHEMA)).judged
    >>> card = trust_card(stream)
    >>> card.trust, card.because, card.checks["steady"].state
    ('avoid', ('right',), 'pass')
    """
    return conclude({
        "readable": readable(stream, thresholds.readable),
        "steady": steady(stream, thresholds.steady, mislabelled),
        "responsive": responsive(stream, thresholds.responsive, mislabelled),
        "right": right(stream, thresholds.right, mislabelled),
        "fair": fair(stream, thresholds.fair),
    })  # fmt: skip


def readable(stream: Stream, threshold: float) -> Check:
    """Prompts with a verdict among those that got an answer; failed requests do not count."""
    log = stream.log
    answered = ~_is(stream, ERROR)
    rows, decision = stream.rows[answered], stream.decision[answered]
    if not len(rows):
        return Check.unmeasured(threshold, "no prompt got an answer: rerun to ask again")
    decided = ~log.undecided[decision]
    ends = wilson_cluster(decided, log.cluster[rows])
    share = float(decided.mean())
    text = f"{percent(share)} of its answers can be read as verdicts {_brackets(ends, percent)}"
    found = Check.of(
        share,
        ends.low,
        ends.high,
        threshold=threshold,
        n_items=distinct(log.item[rows]),
        text=text,
    )
    return found if found.state == "pass" else _with_unreadable(found, stream, rows, decided)


def _with_unreadable(found: Check, stream: Stream, rows: Codes, decided: Bools) -> Check:
    """Name the wordings that alone keep the share below the threshold."""
    templates = stream.log.template[rows]
    shown = np.bincount(templates)
    share = np.bincount(templates, decided) / np.maximum(shown, 1)
    bad = np.flatnonzero((shown > 0) & (share < 1 - LEAST_COVERAGE))
    others = decided[~np.isin(templates, bad)]
    if not len(bad) or not len(others) or others.mean() <= found.threshold:
        return found
    names = join([stream.log.templates[code] for code in bad])
    more = f", and {percent(float(others.mean()))} without the wording{_s(bad)} {names}: leave "
    more += "it out" if len(bad) == 1 else "them out"
    return replace(found, text=f"{found.text}{more}")


def steady(stream: Stream, threshold: float, mislabelled: Collection[str] = ()) -> Check:
    """JSS over equivalent wordings of one polarity.

    From `FEWEST_RANDOM` wordings on, the interval is that for wordings like these; with fewer, it
    is about these wordings only.
    """
    log, pairs = stream.log, stream.pairs
    used = same_polarity(stream, mislabelled)
    judged = used & stream.known
    decided = judged & ~(log.undecided[stream.mapped_a] | log.undecided[stream.mapped_b])
    if not decided.any():
        return Check.unmeasured(threshold, _why_no_pairs(stream, used, judged))
    n_items = distinct(pairs.item[decided])
    if pairs.planned and judged.sum() < LEAST_COVERAGE * used.sum():
        text = (
            f"only {int(judged.sum())} of {int(used.sum())} pairs of wordings are judged: rerun "
            "the same command to finish the run"
        )
        return Check.unmeasured(threshold, text, n_items=n_items)
    agree = stream.mapped_a[decided] == stream.mapped_b[decided]
    one, two = pairs.template_a[decided], pairs.template_b[decided]
    n_wordings = len(np.union1d(one, two))
    ends = wilson_cluster(agree, pairs.cluster[decided])
    about = f"about these {n_wordings} wordings only"
    jss = float(agree.mean())
    text = (
        f"rewording changes {percent(1 - jss)} of its verdicts (JSS {number(jss)} "
        f"{_brackets(ends)}, {about})"
    )
    found = Check.of(
        jss,
        ends.low,
        ends.high,
        threshold=threshold,
        n_items=n_items,
        text=text,
        n_wordings=n_wordings,
        kappa=kappa_from_table(
            contingency(stream.mapped_a[decided], stream.mapped_b[decided], len(log.labels))
        ),
        jss_repeat=_repeat(stream),
    )
    if found.state != "open":
        return found
    if ends.low is None:
        return replace(found, text=f"{text}; a single item has no interval: add items")
    items = items_to_settle(agree, pairs.cluster[decided], pairs.item[decided], threshold=threshold)
    more = (
        "more items are unlikely to settle it"
        if items is None
        else f"about {items} items will settle it (now {n_items})"
    )
    return replace(found, text=f"{text}; the interval includes {threshold:g}: {more}")


def _repeat(stream: Stream) -> float | None:
    """JSS of the same prompt asked again; None without repeats."""
    if stream.reruns is None:
        return None
    log, (first, later) = stream.log, stream.reruns
    decided = ~(log.undecided[log.raw[first]] | log.undecided[log.raw[later]])
    same = log.raw[first[decided]] == log.raw[later[decided]]
    return float(same.mean()) if len(same) else None


def _why_no_pairs(stream: Stream, used: Mask, judged: Mask) -> str:
    if judged.any():
        return "no pair of wordings has two readable verdicts: see readable"
    if used.any():
        return "no pair of wordings is judged on both sides: rerun to finish the run"
    if len(stream.pairs):
        return "no two wordings of one polarity share an item: add an equivalent wording"
    return "no item was judged under two wordings: add a second wording"


def responsive(stream: Stream, threshold: float, mislabelled: Collection[str] = ()) -> Check:
    """How often the answer follows a contrast, against how often it moves under rewording.

    Contrasts are the pairs with exactly one inverted wording, where the raw answer should change,
    and the contrast variants of the log. The estimate is the ratio of the two rates, with half a
    flip in place of none. It passes if the ratio reaches the threshold and the interval of the
    difference lies above zero. It fails if the whole interval of the ratio lies below the
    threshold; and if the ratio is below it, the difference is not above zero, and most contrasts
    are ignored.
    """
    log, pairs = stream.log, stream.pairs
    follows, follow_clusters, n_items = _contrasts(stream, mislabelled)
    used = same_polarity(stream, mislabelled) & stream.known
    used &= ~(log.undecided[stream.mapped_a] | log.undecided[stream.mapped_b])
    if not len(follows):
        text = (
            "not measured whether another question gets another answer: add an inverted or a "
            "contrast wording"
        )
        return Check.unmeasured(threshold, text)
    if not used.any():
        text = "no rewording to compare contrasts with: add an equivalent wording"
        return Check.unmeasured(threshold, text, n_items=n_items)
    moves = stream.mapped_a[used] != stream.mapped_b[used]
    found = rate_ratio(follows, follow_clusters, moves, pairs.cluster[used])
    figures = f"{percent(found.rate)} of contrasts, {percent(found.other)} of rewordings"
    above = found.difference_low is not None and found.difference_low > 0
    ignored = found.rate_high is not None and found.rate_high < IGNORED_CONTRAST
    state: State
    if found.ratio >= threshold and above:
        state, text = "pass", f"another question changes its answer ({figures})"
    elif (found.high is not None and found.high < threshold) or (
        found.ratio < threshold and not above and ignored
    ):
        state, text = "fail", f"another question hardly changes its answer ({figures})"
    else:
        state = "open"
        text = f"whether another question changes its answer is not settled ({figures}): add items"
    details = {"follows": found.rate, "moves": found.other}
    return Check(
        state, found.ratio, found.low, found.high, threshold, n_items, text, details=details
    )


def _contrasts(stream: Stream, mislabelled: Collection[str]) -> tuple[Bools, Codes, int]:
    """Whether the raw answer changed at each contrast, its cluster, and the number of items."""
    log, pairs = stream.log, stream.pairs
    keep = stream.with_inverted & stream.known
    for side in stream.templates:
        keep &= ~np.isin(side, list(mislabelled))
    keep &= ~(log.undecided[stream.raw_a] | log.undecided[stream.raw_b])
    index = np.flatnonzero(keep)
    # An answer that both label maps read alike (the middle of a scale) need not change.
    meant = pairs.inverse[pairs.map_b[index], stream.mapped_a[index]]
    index = index[meant != stream.raw_a[index]]
    items = {pairs.items[code] for code in np.unique(pairs.item[index])}
    follows, clusters = stream.raw_a[index] != stream.raw_b[index], pairs.cluster[index]
    if (contrast := stream.contrast) is None:
        return follows, clusters, len(items)
    base, changed = contrast
    both = ~(log.undecided[log.raw[base]] | log.undecided[log.raw[changed]])
    base, changed = base[both], changed[both]
    items |= {log.items[code] for code in np.unique(log.item[base])}
    # The clusters of pairs and of the log are coded apart: keep them apart.
    offset = int(pairs.cluster.max(initial=-1)) + 1
    return (
        np.concatenate([follows, log.raw[base] != log.raw[changed]]),
        np.concatenate([clusters, log.cluster[base] + offset]),
        len(items),
    )


def right(stream: Stream, threshold: float, mislabelled: Collection[str] = ()) -> Check:
    """Kappa with the gold labels; an answer without a verdict is wrong.

    Failed requests do not count. Without two gold labels of the task's own there is no kappa.
    """
    log = stream.log
    names = np.array(log.templates, dtype=object)[log.template[stream.rows]]
    gold = log.gold[stream.rows]
    kept = (gold >= 0) & ~_is(stream, ERROR) & ~np.isin(names, list(mislabelled))
    rows, decision, gold = stream.rows[kept], stream.decision[kept], gold[kept]
    n_items = distinct(log.item[rows])
    if not len(rows):
        text = "not measured whether it agrees with people: add gold labels"
        return Check.unmeasured(threshold, text)
    wanted = [str(log.labels[code]) for code in np.unique(gold)]
    if foreign := [label for label in wanted if label not in stream.task.labels]:
        text = (
            f"the gold labels {join(foreign[:5])} are not among the verdicts "
            f"{join(stream.task.labels)}: rename them"
        )
        return Check.unmeasured(threshold, text, n_items=n_items)
    return _right(stream, rows, decision, gold, threshold)


def _right(stream: Stream, rows: Codes, decision: Codes, gold: Codes, threshold: float) -> Check:
    log = stream.log
    n_items = distinct(log.item[rows])
    counts = np.bincount(gold)
    top, share = str(log.labels[counts.argmax()]), float(counts.max() / counts.sum())
    accuracy = float((decision == gold).mean())
    if share == 1:
        text = (
            f"every gold label is {top}, so its accuracy of {percent(accuracy)} says nothing: add "
            "items with other gold labels"
        )
        return Check.unmeasured(threshold, text, n_items=n_items)
    kappa = kappa_from_table(contingency(decision, gold, len(log.labels)))
    ends = wilson_kappa(decision, gold, log.cluster[rows])
    if kappa is None:
        return Check.unmeasured(threshold, "kappa with the gold labels is undefined: add items")
    figures = (
        f"κ {number(kappa, 2)} {_brackets(ends, lambda end: number(end, 2))}; right on "
        f"{percent(accuracy)} of prompts, always answering {top} on {percent(share)}"
    )
    found = Check.of(
        kappa,
        ends.low,
        ends.high,
        threshold=threshold,
        n_items=n_items,
        text="",
        accuracy=accuracy,
        constant_label=top,
        constant_accuracy=share,
    )
    if found.state == "pass":
        text = f"it agrees with the gold labels ({figures})"
    elif found.state == "open":
        text = f"its agreement with the gold labels is not settled ({figures}): add items"
    elif ends.low is not None and ends.low > 0:
        text = f"it agrees with the gold labels only a little more than by chance ({figures})"
    elif ends.high is not None and ends.high < 0:
        text = f"it contradicts the gold labels ({figures})"
    else:
        text = f"it agrees with the gold labels no more than by chance ({figures})"
    return replace(found, text=text)


def fair(stream: Stream, threshold: float) -> Check:
    """Prompts with the same choice in both option orders."""
    if not stream.task.comparative:
        text = "the task shows no options in an order"
        return Check.unmeasured(threshold, text, applies=False)
    ab, ba = both_orders(stream)
    if not len(ab):
        orders = [stream.log.orders[code] for code in np.unique(stream.log.order[stream.rows])]
        shown = join([order for order in orders if order != NO_ORDER] or ["-"])
        text = f"only order {shown} was judged, so position bias is unknown: add --orders AB,BA"
        return Check.unmeasured(threshold, text)
    log = stream.log
    found = position_bias(
        chosen_options(stream, stream.decision[ba]),
        chosen_options(stream, stream.decision[ab]),
        item_ids=log.cluster[stream.rows][ab],
        options=stream.task.labels[:2],
    )
    n_items = distinct(log.item[stream.rows[ab]])
    if found.position_consistency is None:
        text = "no item has a choice in both orders: see readable"
        return Check.unmeasured(threshold, text, n_items=n_items)
    low, high = found.position_consistency_ci_low, found.position_consistency_ci_high
    text = (
        f"it makes the same choice in both orders on {percent(found.position_consistency)} of "
        f"items {_brackets(Interval(low, high), percent)}"
    )
    check = Check.of(
        found.position_consistency, low, high, threshold=threshold, n_items=n_items, text=text
    )
    if check.state == "pass" or found.first_position_rate is None:
        return check
    first = found.first_position_rate
    place, rate = ("first", first) if first >= 0.5 else ("second", 1 - first)
    return replace(check, text=f"{text} and takes the {place} option {percent(rate)} of the time")


def both_orders(stream: Stream) -> tuple[Codes, Codes]:
    """Places in ``stream.rows`` of the prompts judged in both orders: in AB, and in BA."""
    log, rows = stream.log, stream.rows
    if len(stream.task.labels) < 2 or not {"AB", "BA"} <= set(log.orders):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    key = log.item[rows] * len(log.templates) + log.template[rows]
    sides = []
    for order in ("AB", "BA"):
        index = np.flatnonzero(log.order[rows] == log.orders.index(order))
        keys, at = np.unique(key[index], return_index=True)
        sides.append((keys, index[at]))
    (ab_keys, ab), (ba_keys, ba) = sides
    _, in_ab, in_ba = np.intersect1d(ab_keys, ba_keys, assume_unique=True, return_indices=True)
    return ab[in_ab], ba[in_ba]


def chosen_options(stream: Stream, decision: Codes) -> Words:
    """Decisions as words, UNCLEAR for one that names neither option (a tie, a foreign label)."""
    options = stream.task.labels[:2]
    known = [word if word in options else UNCLEAR for word in stream.log.labels]
    words: Words = np.array(known, dtype=object)[decision]
    return words


def same_polarity(stream: Stream, mislabelled: Collection[str] = ()) -> Mask:
    """The pairs of equivalent wordings of one polarity, without the mislabelled wordings."""
    kept: Mask = ~stream.with_inverted
    if mislabelled:
        for side in stream.templates:
            kept &= ~np.isin(side, list(mislabelled))
    return kept


def _is(stream: Stream, label: str) -> Mask:
    found: Mask = stream.log.labels[stream.decision] == label
    return found


def _brackets(ends: Interval, form: Callable[[float | None], str] = number) -> str:
    low, high = ends.low, ends.high
    return "[–]" if low is None and high is None else f"[{form(low)}, {form(high)}]"


def _s(names: Collection[object] | npt.NDArray[np.int64]) -> str:
    return "" if len(names) == 1 else "s"
