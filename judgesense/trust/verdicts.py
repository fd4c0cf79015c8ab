"""The checks on single verdicts: `readable`, `right` and `fair`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from judgesense.decisions.stream import Stream, distinct
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.bias import BothOrders, both_orders
from judgesense.statistics.gold import GoldAgreement, gold_agreement
from judgesense.statistics.intervals import wilson_cluster
from judgesense.tasks import ERROR, NO_ORDER, ORDERS, is_scale
from judgesense.text import brackets, join, number, percent, s
from judgesense.trust.card import Check, no_interval
from judgesense.trust.thresholds import EVEN_FIRST, LEAST_COVERAGE

_RIGHT_DETAILS = (
    "accuracy", "accuracy_ci_low", "accuracy_ci_high", "balanced_accuracy",
    "balanced_accuracy_ci_low", "balanced_accuracy_ci_high", "gwet_ac1", "gwet_ac1_ci_low",
    "gwet_ac1_ci_high", "constant_label", "constant_accuracy", "beats_constant",
    "beats_constant_ci_low", "beats_constant_ci_high", "undecided_share",
)  # fmt: skip


def readable(stream: Stream, threshold: float) -> Check:
    """Prompts with a verdict among those that got an answer; failed requests do not count.

    With `options` scoring the verdict is the most probable option, so every prompt has one by
    construction: there is nothing to estimate, and the interval is [1, 1]. Where an endpoint hid
    the options' probabilities for some prompts, the share is estimated as for text.
    """
    log = stream.log
    answered = ~_is(stream, ERROR)
    rows, decision = stream.rows[answered], stream.decision[answered]
    if not len(rows):
        return Check.unmeasured(threshold, "no prompt got an answer: rerun to ask again")
    decided = ~log.undecided[decision]
    n_items = distinct(log.item[rows])
    if stream.scoring == "options" and decided.all():
        text = "every answer has a verdict: it is read off the options' probabilities"
        return Check.of(1.0, 1.0, 1.0, threshold=threshold, n_items=n_items, text=text)
    ends = wilson_cluster(decided, log.cluster[rows])
    share = float(decided.mean())
    figures = f"{percent(share)} of its answers {brackets(ends.low, ends.high, percent)}"
    text = f"{figures} can be read as verdicts"
    found = Check.of(
        share,
        ends.low,
        ends.high,
        threshold=threshold,
        n_items=n_items,
        text=text,
    )
    if found.state == "pass":
        return found
    return _with_unreadable(_if_open(found), stream, rows, decided)


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
    more = f", and {percent(float(others.mean()))} without the wording{s(len(bad))} {names}: leave "
    more += "it out" if len(bad) == 1 else "them out"
    return replace(found, text=f"{found.text}{more}")


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
        if (log.gold[stream.rows] >= 0).any():
            text = "no prompt with a gold label has a verdict: see readable"
        return Check.unmeasured(threshold, text)
    if reason := _why_not_comparable(stream, gold, decision):
        return Check.unmeasured(threshold, reason, n_items=n_items)
    words = log.labels
    found = gold_agreement(
        words[decision],
        words[gold],
        log.cluster[rows],
        labels=stream.task.labels,
        ordinal=stream.task.ordinal,
    )
    return _right(found, threshold, n_items)


def has_foreign_gold(stream: Stream) -> bool:
    """Whether a log has gold labels, but those of another vocabulary than its verdicts."""
    gold = stream.log.gold[stream.rows]
    known = gold >= 0
    return bool(known.any()) and _apart(*_vocabularies(stream, gold[known], stream.decision[known]))


def _vocabularies(stream: Stream, gold: Codes, decision: Codes) -> tuple[list[str], ...]:
    """The gold labels, the verdicts and the task's labels."""
    log = stream.log
    wanted = [str(log.labels[code]) for code in np.unique(gold)]
    said = [str(log.labels[code]) for code in np.unique(decision) if not log.undecided[code]]
    return wanted, said, list(stream.task.labels)


def _apart(wanted: list[str], said: list[str], labels: list[str]) -> bool:
    if len(said) > 1 and not set(wanted) & set(said) and not is_scale([*wanted, *said]):
        return True
    return not set(wanted) & set(labels)


def _why_not_comparable(stream: Stream, gold: Codes, decision: Codes) -> str | None:
    """Why the gold labels cannot be compared with the verdicts; None if they can."""
    wanted, said, labels = _vocabularies(stream, gold, decision)
    if _apart(wanted, said, labels):
        return (
            f"the gold labels ({join(wanted[:5])}) are not those of the verdicts "
            f"({join((said or labels)[:5])}): rename them"
        )
    if len(wanted) == 1:
        hits = percent(float((decision == gold).mean()))
        return (
            f"every gold label is {wanted[0]}, so an accuracy of {hits} says nothing: add items "
            "with other gold labels"
        )
    return None


def _right(found: GoldAgreement, threshold: float, n_items: int) -> Check:
    if found.kappa is None:
        return Check.unmeasured(threshold, "no prompt has a verdict: see readable", n_items=n_items)
    low, high = found.kappa_ci_low, found.kappa_ci_high
    figures = (
        f"κ {number(found.kappa, 2)} {brackets(low, high, lambda end: number(end, 2))}; right on "
        f"{percent(found.accuracy)} of prompts, always answering {found.constant_label} on "
        f"{percent(found.constant_accuracy)}"
    )
    check = Check.of(
        found.kappa,
        low,
        high,
        threshold=threshold,
        n_items=n_items,
        text="",
        **{name: found[name] for name in _RIGHT_DETAILS},
    )
    if check.state == "pass":
        text = f"it agrees with the gold labels ({figures})"
    elif check.state == "open":
        text = f"its agreement with the gold labels is not settled ({figures}): add items"
    elif low is not None and low > 0:
        text = f"it agrees with the gold labels only a little more than by chance ({figures})"
    elif high is not None and high < 0:
        text = f"it agrees with the gold labels less than by chance ({figures})"
    else:
        text = f"it agrees with the gold labels no more than by chance ({figures})"
    return replace(check, text=text)


def fair(stream: Stream, threshold: float) -> Check:
    """Prompts with the same choice in both option orders."""
    if not stream.task.comparative:
        text = "the task shows no options in an order"
        return Check.unmeasured(threshold, text, applies=False)
    found = position(stream)
    if found.same_choice is None:
        orders = [stream.log.orders[code] for code in np.unique(stream.log.order[stream.rows])]
        if set(ORDERS) <= set(orders):
            text = "no item has a choice in both orders: see readable"
        else:
            shown = join([order for order in orders if order != NO_ORDER] or ["-"])
            text = f"only order {shown} was judged: rerun with --orders AB,BA to see position bias"
        return Check.unmeasured(threshold, text)
    low, high = found.same_choice_ci_low, found.same_choice_ci_high
    text = (
        f"it makes the same choice in both orders on {percent(found.same_choice)} of items "
        f"{brackets(low, high, percent)}"
    )
    first, (low_first, high_first) = found.first_position_rate, EVEN_FIRST
    check = Check.of(
        found.same_choice,
        low,
        high,
        threshold=threshold,
        n_items=found.n_items,
        text=text,
        first_position_rate=first,
        n_wordings=found.n_templates,
    )
    if check.state != "pass" and first is not None and not low_first <= first <= high_first:
        place, rate = ("first", first) if first >= 0.5 else ("second", 1 - first)
        text += f" and takes the {place} option {percent(rate)} of the time"
    return _if_open(replace(check, text=text))


def position(stream: Stream) -> BothOrders:
    """What a judge chose in both option orders; a tie or a foreign label is no choice."""
    log, rows, options = stream.log, stream.rows, stream.task.labels[:2]
    if not len(rows) or len(options) < 2:
        return BothOrders.undefined(n=0, n_items=0, n_templates=0, n_excluded=0)
    return both_orders(
        log.labels[stream.decision],
        log.item[rows],
        np.array(log.orders, dtype=object)[log.order[rows]],
        log.template[rows],
        cluster_ids=log.cluster[rows],
        options=options,
        ties=(),
    )


def _if_open(check: Check) -> Check:
    """The check, whose text says so if the interval includes the threshold, or is missing."""
    if check.state != "open":
        return check
    if check.ci_low is None:
        return replace(check, text=f"{check.text}; {no_interval(check.n_items)}")
    return replace(check, text=f"{check.text}, and the interval includes {check.threshold:g}")


def _is(stream: Stream, label: str) -> Bools:
    found: Bools = stream.log.labels[stream.decision] == label
    return found
