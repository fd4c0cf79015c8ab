"""The checks of a trust card, from a judge's decisions on one task.

Prompts of contrast and intervention variants count for `responsive` alone, attacked ones for
`resistant` (:mod:`judgesense.measure.resistant`), damaged ones for `notices`
(:mod:`judgesense.measure.notices`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers, distinct, vocabularies
from judgesense.measure.agreement import gold_figures, position
from judgesense.measure.card import Check, TrustCard, conclude
from judgesense.measure.ceiling import under_ceiling
from judgesense.measure.notices import damage
from judgesense.measure.people import judged_rows, labels_at_random
from judgesense.measure.resistant import attacks, resistant
from judgesense.measure.rewording import responsive, steady
from judgesense.measure.thresholds import DEFAULTS, EVEN_FIRST, LOW_KAPPA, Thresholds
from judgesense.statistics.intervals import wilson_cluster, wilson_from_sums
from judgesense.tasks import ERROR, NO_ORDER, ORDERS
from judgesense.text import brackets, join, number, percent

MANY = 2_000
"""With at least this many items, more items would not decide a check that is open."""


def readable(answers: Answers, threshold: float) -> Check:
    """Prompts with a verdict among those that got an answer; failed requests do not count.

    In a file of verdicts they do, and cells without a verdict too: nobody can ask again.
    With `options` scoring the verdict is the most probable option, so every prompt has one by
    construction: there is nothing to estimate, and the interval is [1, 1]. Where an endpoint hid
    the options' probabilities for some prompts, the share is estimated as for text.
    """
    log = answers.log
    answered = (log.labels[answers.decision] != ERROR) | log.is_imported
    rows, decision = answers.rows[answered], answers.decision[answered]
    if not len(rows):
        return Check.unmeasured(
            threshold, "no prompt got an answer: rerun the command to ask again"
        )
    decided = ~log.undecided[decision]
    n_items = distinct(log.item[rows])
    if answers.scoring == "options" and decided.all():
        text = "every answer has a verdict: it is read from the options' probabilities"
        return Check.of(1.0, 1.0, 1.0, threshold=threshold, n_items=n_items, text=text)
    ends = wilson_cluster(decided, log.cluster[rows])
    share = float(decided.mean())
    figures = f"{percent(share)} of its answers {brackets(ends.low, ends.high, percent)}"
    text = f"{figures} can be read as verdicts"
    check = Check.of(share, ends.low, ends.high, threshold=threshold, n_items=n_items, text=text)
    if check.state == "open":
        # The fewest items, all of them readable, whose interval lies above the threshold.
        least = 2
        while least < MANY and (wilson_from_sums([1] * least, [1] * least).low or 0) <= threshold:
            least += 1
        if (k := distinct(log.cluster[rows])) < least < MANY:
            return replace(check, text=f"{text}. {k} items are too few: {least} are needed to pass")
    return check.with_reason()


def right(
    answers: Answers,
    threshold: float,
    mislabelled: Collection[str] = (),
    gold_name: str = "the gold labels",
    people: pa.Table | None = None,
) -> Check:
    """Kappa with the gold labels, named ``gold_name``; an answer without a verdict is wrong.

    Failed requests do not count. Without two gold labels of the task's own there is no kappa, and
    none is told where verdicts show that labels (of several ``people``) are no random part.
    """
    log = answers.log
    gold = log.gold[answers.rows]
    left_out = np.isin(log.templates, list(mislabelled))[log.template[answers.rows]]
    graded = (gold >= 0) & (log.labels[answers.decision] != ERROR) & ~left_out
    rows, decision, gold = answers.rows[graded], answers.decision[graded], gold[graded]
    n_items = distinct(log.item[rows])
    if not len(rows):
        text = "agreement with people has not been measured: add gold labels"
        if (log.gold[answers.rows] >= 0).any():
            text = "no prompt with a gold label has a verdict: see the 'readable' check"
        return Check.unmeasured(threshold, text)
    labels, verdicts, foreign = vocabularies(answers, gold, decision)
    if foreign:
        reason = (
            f"the gold labels ({join(labels[:5])}) and the verdicts "
            f"({join((verdicts or list(answers.task.labels))[:5])}) use different words: "
            "rename them"
        )
        return Check.unmeasured(threshold, reason, n_items=n_items)
    if len(labels) == 1:
        reason = (
            f"agreement with people cannot be measured, because every gold label is {labels[0]}: "
            "add items with other gold labels"
        )
        return Check.unmeasured(threshold, reason, n_items=n_items)
    agreement = gold_figures(answers, rows, log.labels[decision], log.labels[gold])
    if agreement.kappa is None:
        return Check.unmeasured(threshold, "no prompt has a verdict: see readable", n_items=n_items)
    if not labels_at_random(judged_rows(answers, mislabelled).with_ties(people)):
        reason = (
            "the labels tell of the labelled items only, because the judge's verdicts differ "
            "between these and the others: label a random part, or pick items with judgesense label"
        )
        unmeasured = Check.unmeasured(threshold, reason, n_items=n_items)
        return replace(unmeasured, details={"picked_labels": True})
    low, high = agreement.kappa_ci_low, agreement.kappa_ci_high
    details: dict[str, Any] = {}
    for name, value in asdict(agreement).items():
        if name != "n" and not name.startswith("kappa"):
            details[name] = value
    check = Check.of(
        agreement.kappa, low, high, threshold=threshold, n_items=n_items, text="", **details
    )
    ends = "" if low is None else f" {brackets(low, high, lambda end: number(end, 2))}"
    figures = (
        f"(κ {number(agreement.kappa, 2)}{ends}). It is right on "
        f"{percent(agreement.accuracy)} of prompts. Always answering "
        f"{agreement.constant_label!r} would be right on {percent(agreement.constant_accuracy)}"
    )
    if check.state == "open":
        return replace(check, text=f"its agreement with {gold_name} is uncertain {figures}")
    how = ""
    if check.state == "fail":
        how = " no more than by chance"
        if low is not None and high is not None and low > 0:
            how = " only a little more than by chance" if high < LOW_KAPPA else ", but too little"
        elif high is not None and high < 0:
            how = " less than by chance"
    return replace(check, text=f"it agrees with {gold_name}{how} {figures}")


def fair(answers: Answers, threshold: float) -> Check:
    """Prompts with the same choice, or a tie, in both option orders.

    A choice in one order and a tie in the other is a change.
    """
    if not answers.task.comparative:
        text = "the task has no options to order"
        return Check.unmeasured(threshold, text, applies=False)
    choices = position(answers)
    if choices.same_choice is None:
        orders = [answers.log.orders[code] for code in np.unique(answers.log.order[answers.rows])]
        if set(ORDERS) <= set(orders):
            text = "no item has a choice in both orders: see the 'readable' check"
        else:
            judged = join([order for order in orders if order != NO_ORDER] or ["-"])
            text = f"only the order {judged} was judged: rerun with --orders AB,BA"
        return Check.unmeasured(threshold, text)
    low, high = choices.same_choice_ci_low, choices.same_choice_ci_high
    items = "items"
    if choices.n_items < choices.n_asked:
        items = f"the {choices.n_items} of {choices.n_asked} items with a verdict in both"
    text = (
        f"it makes the same choice in both orders on {percent(choices.same_choice)} of {items} "
        f"{brackets(low, high, percent)}"
    )
    if (again := _same_again(answers)) is not None and again < 1:
        than = ", no more often than in the other order" if again <= choices.same_choice else ""
        text += f". In the same order again, it makes the same choice on {percent(again)}{than}"
    first, (low_first, high_first) = choices.first_position_rate, EVEN_FIRST
    check = Check.of(
        choices.same_choice,
        low,
        high,
        threshold=threshold,
        n_items=choices.n_items,
        text=text,
        first_position_rate=first,
        n_wordings=choices.n_templates,
    )
    if check.state != "pass" and first is not None and not low_first <= first <= high_first:
        place, rate = ("first", first) if first >= 0.5 else ("second", 1 - first)
        text += f". It takes the {place} option {percent(rate)} of the time"
    return replace(check, text=text).with_reason()


def _same_again(answers: Answers) -> float | None:
    """How often the same prompt gets the same verdict again; None without repeats."""
    if answers.reruns is None:
        return None
    log, (first, later) = answers.log, answers.reruns
    read = ~(log.undecided[log.raw[first]] | log.undecided[log.raw[later]])
    return float((log.raw[first] == log.raw[later])[read].mean()) if read.any() else None


def trust_card(
    answers: Answers,
    *,
    thresholds: Thresholds = DEFAULTS,
    mislabelled: Collection[str] = (),
    gold: str = "the gold labels",
    panel: int = 1,
    attacked: Check | None = None,
    noticed: Check | None = None,
    people: pa.Table | None = None,
) -> TrustCard:
    """The trust card of a judge (not a baseline) on a task.

    ``mislabelled`` templates, whose answers mean the opposite of what their label map says, are
    left out of `steady`, `responsive` and `right`: they tell of the wording, not of the judge.
    ``gold`` is what the gold labels are, in words, ``panel`` how many wordings decide a verdict
    together, ``attacked`` and ``noticed`` the `resistant` and `notices` checks of answers without
    attacks and damage: those of the judge as asked. ``people`` are the labels of several people,
    whose agreement with each other is the ceiling of the judge's.
    """
    agreement = right(answers, thresholds.right, mislabelled, gold, people)
    return conclude(
        {
            "readable": readable(answers, thresholds.readable),
            "steady": steady(answers, thresholds.steady, mislabelled, thresholds.confidence, panel),
            "responsive": responsive(answers, thresholds.responsive, mislabelled),
            "right": under_ceiling(agreement, answers, people, mislabelled),
            "fair": fair(answers, thresholds.fair),
            "notices": noticed or damage(answers, limits=thresholds)[0],
            "resistant": attacked or resistant(attacks(answers, mislabelled), thresholds.resistant),
        }
    )
