"""The checks on pairs of prompts: is a judge steady under rewording, and responsive to a question?

Prompts of contrast and intervention variants count for `responsive` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from judgesense.log.answers import Answers, distinct
from judgesense.measure.agreement import families, repeated, same_polarity, wording_interval
from judgesense.measure.card import STEADY, Check, Details, State
from judgesense.measure.thresholds import LEAST_COVERAGE, NO_DIFFERENCE, OPPOSITE, TURNED
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.crossed import RepeatDifference, missed_wording
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.rates import rate_ratio
from judgesense.tasks import ERROR
from judgesense.text import brackets, number, percent


def steady(
    answers: Answers,
    threshold: float,
    mislabelled: Collection[str] = (),
    confidence_level: float = 0.95,
    panel: int = 1,
) -> Check:
    """JSS over equivalent wordings of one polarity, for any wordings like these.

    ``panel`` is how many wordings decide a verdict together (`wording_interval`).

    Pairs without two verdicts are left out of the estimate, but not of the state: it passes only if
    it would with all of them disagreeing, and fails only if it would with all of them agreeing.
    Failed requests do not count.
    """
    log, pairs = answers.log, answers.pairs
    used = same_polarity(answers, mislabelled)
    judged = used & answers.known
    decided = used & answers.decided()
    if (why := _why_unmeasured(answers, used, judged, decided)) is not None:
        n_items = distinct(pairs.item[decided]) if decided.any() else 0
        return Check.unmeasured(threshold, why, n_items=n_items)
    same = answers.mapped_a == answers.mapped_b
    ends_of = partial(wording_interval, answers, level=confidence_level, panel=panel)
    agreed, ends = answers.agreement("mapped", used, level=confidence_level), ends_of(same, decided)
    wordings = np.union1d(pairs.template_a[decided], pairs.template_b[decided])
    n_wordings, n_texts = len(wordings), distinct(families(answers)[wordings])
    jss = agreed.jss or 0.0
    again = repeated(answers, "mapped", decided)
    noise = _noise(answers, jss, again)
    text = (
        f"{STEADY[noise].format(percent(1 - jss))} (JSS {number(jss)} "
        f"{brackets(ends.low, ends.high)})"
    )
    if n_texts < n_wordings:
        covers = "one text, and this is about such edits alone"
        covers = covers if n_texts == 1 else f"{n_texts} texts, and the interval is for others"
        text += f". Its {n_wordings} wordings are edits of {covers}"
    if again.jss_repeat is not None and again.jss_repeat < 1:
        text += f". Repeating the same prompt changes {percent(1 - again.jss_repeat)}"
    details: Details = {
        "n_wordings": n_wordings,
        "missed": missed_wording(n_texts),
        "ci_low_fixed": agreed.ci_low,
        "ci_high_fixed": agreed.ci_high,
        "kappa": agreed.kappa,
        "jss_repeat": again.jss_repeat,
        "delta_jss": again.delta,
        "delta_ci_low": again.ci_low,
        "delta_ci_high": again.ci_high,
    }
    if n_texts < n_wordings:
        details["n_families"] = n_texts
    if noise != "measured":
        details["noise"] = noise
    n_items = distinct(pairs.item[decided])
    check = Check.of(
        jss, ends.low, ends.high, threshold=threshold, n_items=n_items, text=text, **details
    )
    failed = log.labels == ERROR
    replied = judged & ~(failed[answers.mapped_a] | failed[answers.mapped_b])
    if replied.sum() == decided.sum():
        return check.with_reason()
    bounds = [ends_of(same & decided, replied), ends_of(same | ~decided, replied)]
    return _with_undecided(check, same, decided, replied, bounds)


def _why_unmeasured(answers: Answers, used: Bools, judged: Bools, decided: Bools) -> str | None:
    """What to add where too few of the pairs have two verdicts; None where they are enough."""
    planned = answers.pairs.planned
    if not decided.any():
        if judged.any():
            return "no pair of wordings has two readable verdicts: see the 'readable' check"
        if used.any() and planned:
            return "no item is judged under two wordings yet: rerun the command to finish the run"
        if answers.known.any():
            return "no item was judged under two equivalent wordings: add an equivalent wording"
        return "each item was judged under one wording, so the effect of rewording is unknown"
    if planned and judged.sum() < LEAST_COVERAGE * used.sum():
        return (
            f"only {int(judged.sum())} of {int(used.sum())} pairs of wordings are judged: rerun "
            "the same command to finish the run"
        )
    return None


def _with_undecided(
    check: Check, same: Bools, decided: Bools, replied: Bools, bounds: Sequence[Interval]
) -> Check:
    """The check where some pairs lack a verdict: its state has to hold whatever they would say.

    ``bounds`` are the intervals with all of these pairs disagreeing, and with all agreeing.
    """
    details = check.details.copy()
    details["jss_low"] = float((same & decided)[replied].mean())
    details["jss_high"] = float((same | ~decided)[replied].mean())
    low, high = bounds[0].low, bounds[1].high
    if low is not None and check.ci_low is not None:
        low = min(low, check.ci_low)
    if high is not None and check.ci_high is not None:
        high = max(high, check.ci_high)
    details |= {"jss_low_ci_low": low, "jss_high_ci_high": high}
    state = Check.of(
        check.estimate or 0.0, low, high, threshold=check.threshold, n_items=0, text=""
    ).state
    if state == check.state:
        return replace(check, details=details).with_reason()
    share = percent(1 - decided.sum() / replied.sum())
    text = (
        f"{check.text}. Depending on the {share} of pairs that lack a verdict, JSS could lie "
        f"anywhere from {number(details['jss_low'])} to {number(details['jss_high'])} "
        f"{brackets(low, high)}"
    )
    return replace(check, state=state, text=text, details=details)


def _noise(
    answers: Answers, jss: float, again: RepeatDifference
) -> Literal["measured", "together", "all"]:
    """What is known of noise, a key of `STEADY`."""
    if again.delta is None or again.jss_repeat is None:
        # A probability is hardly another one when it is asked for again.
        return "measured" if answers.scoring == "options" or jss == 1 else "together"
    is_clear = again.ci_high is not None and again.ci_high < 0
    if 1.0 in (jss, again.jss_repeat) or (is_clear and again.delta <= -NO_DIFFERENCE):
        return "measured"
    return "all" if again.delta > -NO_DIFFERENCE else "together"


def responsive(answers: Answers, threshold: float, mislabelled: Collection[str] = ()) -> Check:
    """Whether another question gets another answer.

    Where the right answer turns for sure, the estimate is the share of answers that turn, and
    `TURNED` its threshold: under inverted wordings, and under contrast variants that have inverted
    answers, another gold label, or a name that says that they ask the opposite. Under other
    contrasts the estimate is how many times as often the answer changes as under rewording, with
    half a flip in place of none; it passes if the difference is above zero, too. It also fails if
    the difference may be zero and most of these contrasts are ignored. With both kinds, the worse
    one decides. Contrasts that show another item of another gold label are no other question; the
    check fails if most of these are ignored.
    """
    log = answers.log
    follows, clusters, certain, n_items = _contrasts(answers, mislabelled)
    used = same_polarity(answers, mislabelled) & answers.decided()
    details, checks = Details(), list[Check]()
    moved = ""
    if used.any():
        moves = answers.mapped_a[used] != answers.mapped_b[used]
        details["moves"] = float(moves.mean())
        moved = f". Rewording changes {percent(details['moves'])} of its answers"
    if certain.any():
        turned = follows[certain]
        ends = wilson_cluster(turned, clusters[certain])
        details["turned"] = float(turned.mean())
        text = (
            f"asking the opposite question changes {percent(details['turned'])} of its answers "
            f"{brackets(ends.low, ends.high, percent)}"
        )
        check = Check.of(
            details["turned"], ends.low, ends.high, threshold=TURNED, n_items=n_items, text=text
        ).with_reason()
        checks.append(replace(check, text=f"{check.text}{moved}"))
    if not certain.all() and used.any():
        others, of_others = follows[~certain], clusters[~certain]
        ratio = rate_ratio(others, of_others, moves, answers.clusters[used])
        details["follows"] = ratio.rate
        text = (
            f"asking another question changes {percent(ratio.rate)} of its answers, and rewording "
            f"changes {percent(ratio.other)}"
        )
        above = ratio.difference_low is not None and ratio.difference_low > 0
        most = wilson_cluster(others, of_others).high
        state: State
        if above and ratio.low is not None and ratio.low > threshold:
            state = "pass"
        elif (ratio.high is not None and ratio.high < threshold) or (
            ratio.ratio < threshold and not above and most is not None and most < TURNED
        ):
            state = "fail"
        else:
            state, text = "open", f"{text}. The difference is uncertain"
        checks.append(Check(state, ratio.ratio, ratio.low, ratio.high, threshold, n_items, text))
    if answers.item_contrast is not None:
        base, changed = answered(answers, *answers.item_contrast)
        if len(base):
            turned = log.raw[base] != log.raw[changed]
            share = details["follows_item"] = float(turned.mean())
            ends = wilson_cluster(turned, log.cluster[base])
            text = f"items with another gold label change only {percent(share)} of its answers"
            of_items = Check.of(
                share, ends.low, ends.high, threshold=TURNED, n_items=n_items, text=text
            )
            if of_items.state == "fail":
                checks.insert(0, of_items)
    if not checks:
        text = (
            "to measure whether the judge follows the question, add a wording that asks the "
            "opposite"
        )
        if len(follows):
            text = "contrasts have no rewording to be compared with: add an equivalent wording"
        return Check.unmeasured(threshold, text, n_items=n_items)
    worst = min(checks, key=lambda check: ("fail", "open", "pass").index(check.state))
    return replace(worst, details=details)


def _contrasts(answers: Answers, mislabelled: Collection[str]) -> tuple[Bools, Codes, Bools, int]:
    """Whether the raw answer changed at each contrast, its cluster, and whether it surely should.

    Also the number of items.
    """
    log, pairs = answers.log, answers.pairs
    keep = answers.with_inverted & answers.known
    one, two = answers.under(mislabelled)
    keep &= ~(one | two)
    keep &= ~(log.undecided[answers.raw_a] | log.undecided[answers.raw_b])
    index = np.flatnonzero(keep)
    # An answer that both label maps read alike (the middle of a scale) need not change.
    meant = pairs.inverse[pairs.map_b[index], answers.mapped_a[index]]
    index = index[meant != answers.raw_a[index]]
    items = set(np.array(pairs.items, dtype=object)[np.unique(pairs.item[index])])
    follows = answers.raw_a[index] != answers.raw_b[index]
    certain = np.ones(len(index), bool)
    clusters = answers.clusters[index] if len(index) else index
    if (contrast := answers.contrast) is None:
        return follows, clusters, certain, len(items)
    base, changed = answered(answers, *contrast)
    items |= {log.items[code] for code in np.unique(log.item[base])}
    named = np.array([any(word in name for word in OPPOSITE) for name in log.variants])
    inverted = np.unique(log.variant[changed][(log.raw != log.decision)[changed]])
    other_gold = (log.gold[base] >= 0) & (log.gold[changed] >= 0)
    other_gold &= log.gold[base] != log.gold[changed]
    sure = named[log.variant[changed]] | np.isin(log.variant[changed], inverted) | other_gold
    return (
        np.concatenate([follows, log.raw[base] != log.raw[changed]]),
        np.concatenate([clusters, log.cluster[base]]),
        np.concatenate([certain, sure]),
        len(items),
    )


def answered(answers: Answers, base: Codes, changed: Codes) -> tuple[Codes, Codes]:
    """The contrasts with two readable answers, where a judge that reads them answers otherwise."""
    log = answers.log
    both = ~(log.undecided[log.raw[base]] | log.undecided[log.raw[changed]])
    turned = np.unique(log.variant[changed][both & (log.raw != log.decision)[changed]])
    # An inverted variant leaves the middle of a scale.
    middle = np.isin(log.variant[changed], turned) & (log.raw == log.decision)[changed]
    both &= ~(middle & (log.raw[base] == log.raw[changed]))
    return base[both], changed[both]
