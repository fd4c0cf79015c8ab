"""The checks on rewording: `steady` (the same question) and `responsive` (another question)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from judgesense.decisions.stream import Stream, distinct
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.crossed import (
    RepeatDifference,
    delta_jss,
    missed_wording,
    two_way_interval,
)
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.kappa import contingency, kappa_from_table
from judgesense.statistics.ratios import rate_ratio
from judgesense.text import brackets, number, percent
from judgesense.trust.card import Check, State, no_interval
from judgesense.trust.settle import steady_plan
from judgesense.trust.thresholds import FEWEST_RANDOM, IGNORED_CONTRAST, LEAST_COVERAGE


def steady(
    stream: Stream,
    threshold: float,
    mislabelled: Collection[str] = (),
    confidence_level: float = 0.95,
) -> Check:
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
    clusters, items = pairs.cluster[decided], pairs.item[decided]
    fixed = wilson_cluster(agree, clusters, confidence_level)
    ends = fixed
    about = f"for these {n_wordings} wordings only"
    if n_wordings >= FEWEST_RANDOM:
        random = two_way_interval(agree, clusters, one, two, confidence_level)
        if random.low is not None:
            ends, about = random, f"for wordings like these {n_wordings}"
    jss = float(agree.mean())
    text = (
        f"rewording changes {percent(1 - jss)} of its verdicts (JSS {number(jss)} "
        f"{brackets(ends.low, ends.high)} {about})"
    )
    again = repeated(stream, "mapped", decided)
    found = Check.of(
        jss,
        ends.low,
        ends.high,
        threshold=threshold,
        n_items=n_items,
        text=text,
        n_wordings=n_wordings,
        missed=missed_wording(n_wordings),
        ci_low_fixed=fixed.low,
        ci_high_fixed=fixed.high,
        kappa=kappa_from_table(
            contingency(stream.mapped_a[decided], stream.mapped_b[decided], len(log.labels))
        ),
        jss_repeat=again.jss_repeat,
        delta_jss=again.delta,
        delta_ci_low=again.ci_low,
        delta_ci_high=again.ci_high,
    )
    if found.state != "open":
        return found
    if ends.low is None:
        return replace(found, text=f"{text}; {no_interval(n_items)}")
    plan = steady_plan(
        agree, clusters, items, one, two, threshold=threshold, confidence_level=confidence_level
    )
    text += f", and the interval includes {threshold:g}"
    if plan is None:
        return replace(found, text=text)
    return replace(
        found,
        text=f"{text}; {plan.text(n_items)}",
        details={**found.details, **plan.to_dict()},
    )


def repeated(stream: Stream, labels: str, decided: Bools) -> RepeatDifference:
    """JSS at the pairs of a mask against the same prompt asked again, by clusters of both.

    ``decided`` are pairs with a decision on both sides, ``labels`` is ``raw`` or ``mapped``.
    """
    if stream.reruns is None or stream.row_a is None or not decided.any():
        return RepeatDifference(None, None, None, None)
    log, (first, later) = stream.log, stream.reruns
    orders = np.unique(stream.pairs.order[decided])
    said = log.raw if labels == "raw" else log.decision
    kept = ~(log.undecided[said[first]] | log.undecided[said[later]])
    kept &= np.isin(log.order[first], orders)
    first, later = first[kept], later[kept]
    one, two = (side[decided] for side in stream.sides(labels))
    # Clusters of pairs are coded apart from those of rows.
    own = log.cluster[stream.row_a[decided]]
    return delta_jss(one == two, own, said[first] == said[later], log.cluster[first])


def _why_no_pairs(stream: Stream, used: Bools, judged: Bools) -> str:
    if judged.any():
        return "no pair of wordings has two readable verdicts: see readable"
    if used.any() and stream.pairs.planned:
        return "no pair of wordings is judged on both sides: rerun to finish the run"
    if stream.known.any():
        return "no two wordings of one polarity share an item: add an equivalent wording"
    return "no item was judged under two wordings: add a second wording"


def responsive(stream: Stream, threshold: float, mislabelled: Collection[str] = ()) -> Check:
    """How often the answer follows a contrast, against how often it moves under rewording.

    Contrasts are the pairs with exactly one inverted wording, where the raw answer should change,
    and the contrast variants of the log. The estimate is the ratio of the two rates, with half a
    flip in place of none. It passes if the ratio reaches the threshold and the interval of the
    difference lies above zero. It fails if the whole interval of the ratio lies below the
    threshold. It also fails if the difference may be zero and most inverted wordings, whose answer
    should always change, are ignored; and so for contrasts, if the ratio is below the threshold.
    Contrasts that show another item of another gold label are no other question; the check fails if
    most of these are ignored.
    """
    log, pairs = stream.log, stream.pairs
    follows, follow_clusters, n_inverted, n_items = _contrasts(stream, mislabelled)
    used = same_polarity(stream, mislabelled) & stream.known
    used &= ~(log.undecided[stream.mapped_a] | log.undecided[stream.mapped_b])
    items_followed = _item_contrasts(stream)
    details = {} if items_followed is None else {"follows_item": float(items_followed[0].mean())}
    item_ignored = items_followed is not None and _ignored(*items_followed)
    item_text = (
        f"an item with another gold label hardly changes its answer "
        f"({percent(details.get('follows_item'))})"
    )
    if item_ignored and not (len(follows) and used.any()):
        return Check("fail", None, None, None, threshold, n_items, item_text, details=details)
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
    mostly_ignored = not above and (
        _ignored(follows[:n_inverted], follow_clusters[:n_inverted])
        or (found.ratio < threshold and _ignored(follows, follow_clusters))
    )
    state: State
    if found.ratio >= threshold and above:
        state, text = "pass", f"another question changes its answer ({figures})"
    elif (found.high is not None and found.high < threshold) or mostly_ignored:
        state, text = "fail", f"another question hardly changes its answer ({figures})"
    else:
        state = "open"
        text = f"whether another question changes its answer is not settled ({figures}): add items"
    if item_ignored and state != "fail":
        state, text = "fail", item_text
    details = {"follows": found.rate, "moves": found.other, **details}
    return Check(
        state, found.ratio, found.low, found.high, threshold, n_items, text, details=details
    )


def _ignored(follows: Bools, clusters: Codes) -> bool:
    high = wilson_cluster(follows, clusters).high if len(follows) else None
    return high is not None and high < IGNORED_CONTRAST


def _contrasts(stream: Stream, mislabelled: Collection[str]) -> tuple[Bools, Codes, int, int]:
    """Whether the raw answer changed at each contrast, and its cluster.

    Also how many of them, the first ones, are inverted wordings, and the number of items.
    """
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
        return follows, clusters, len(follows), len(items)
    base, changed = answered(stream, *contrast)
    items |= {log.items[code] for code in np.unique(log.item[base])}
    # The clusters of pairs and of the log are coded apart: keep them apart.
    offset = int(pairs.cluster.max(initial=-1)) + 1
    return (
        np.concatenate([follows, log.raw[base] != log.raw[changed]]),
        np.concatenate([clusters, log.cluster[base] + offset]),
        len(follows),
        len(items),
    )


def _item_contrasts(stream: Stream) -> tuple[Bools, Codes] | None:
    """Whether the raw answer changed with the item, at each contrast of items, and its cluster."""
    log = stream.log
    if stream.item_contrast is None:
        return None
    base, changed = answered(stream, *stream.item_contrast)
    return (log.raw[base] != log.raw[changed], log.cluster[base]) if len(base) else None


def answered(stream: Stream, base: Codes, changed: Codes) -> tuple[Codes, Codes]:
    """The contrasts with two readable answers, where a judge that reads them answers otherwise."""
    log = stream.log
    both = ~(log.undecided[log.raw[base]] | log.undecided[log.raw[changed]])
    turned = np.unique(log.variant[changed][both & (log.raw != log.decision)[changed]])
    # An inverted variant leaves the middle of a scale.
    middle = np.isin(log.variant[changed], turned) & (log.raw == log.decision)[changed]
    both &= ~(middle & (log.raw[base] == log.raw[changed]))
    return base[both], changed[both]


def same_polarity(stream: Stream, mislabelled: Collection[str] = ()) -> Bools:
    """The pairs of equivalent wordings of one polarity, without the mislabelled wordings."""
    kept: Bools = ~stream.with_inverted
    if mislabelled:
        for side in stream.templates:
            kept &= ~np.isin(side, list(mislabelled))
    return kept
