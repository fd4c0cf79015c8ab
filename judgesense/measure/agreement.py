"""What checks, cells, wordings and people are measured by: each quantity is computed here alone.

JSS and κ between wordings are :meth:`judgesense.log.answers.Answers.agreement`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from judgesense.answers.space import TIES as TIE_WORDS
from judgesense.log.answers import Answers
from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.bias import TIES, BothOrders, both_orders
from judgesense.statistics.crossed import RepeatDifference, delta_jss, two_way_interval
from judgesense.statistics.gold import GoldAgreement, gold_agreement
from judgesense.statistics.intervals import Interval


def same_polarity(answers: Answers, mislabelled: Collection[str] = ()) -> Bools:
    """The pairs of equivalent wordings of one polarity, without the mislabelled wordings."""
    pairs: Bools = ~answers.with_inverted
    if mislabelled:
        one, two = answers.under(mislabelled)
        pairs &= ~(one | two)
    return pairs


def wording_interval(
    answers: Answers, same: Bools, pairs: Bools, level: float = 0.95, panel: int = 1
) -> Interval:
    """The interval of JSS for wordings like these, on the pairs of a mask; ``same`` are those that
    agree. With both masks of all pairs.

    Verdicts of panels of several wordings differ less: the prior of a wording's part is that of a
    mean over ``panel`` wordings. Where wordings are edits of several texts, the interval is also
    that for other texts: of the pairs of different ones, each text with its edits as one wording.
    """
    if not pairs.any():
        return Interval(None, None)

    def ends(used: Bools, codes: Codes) -> Interval:
        sides = codes[answers.pairs.template_a[used]], codes[answers.pairs.template_b[used]]
        prior = (WORDING_PRIOR[0] / math.sqrt(panel), WORDING_PRIOR[1])
        return two_way_interval(same[used], answers.pairs.cluster[used], *sides, level, prior=prior)

    found = ends(pairs, np.arange(len(answers.log.templates)))
    family = families(answers)
    across = pairs & (family[answers.pairs.template_a] != family[answers.pairs.template_b])
    if not answers.task.families or not across.any():
        return found
    other = ends(across, family)
    if found.low is None or found.high is None or other.low is None or other.high is None:
        return Interval(None, None)
    low, high = min(found.low, other.low), max(found.high, other.high)
    return Interval(low, high, other.effective_n)


def families(answers: Answers) -> Codes:
    """The family of each of the log's templates, shape (templates,): its text before edits."""
    log, known = answers.log, answers.task.families
    base = dict(zip(log.template.tolist(), log.base.tolist(), strict=True))
    names = [known.get(log.bases[base[code]], name) for code, name in enumerate(log.templates)]
    return np.unique(names, return_inverse=True)[1]


def repeated(answers: Answers, labels: str, decided: Bools) -> RepeatDifference:
    """JSS at the pairs of a mask against the same prompt asked again, by clusters of both.

    ``decided`` are pairs with a decision on both sides, ``labels`` is ``raw`` or ``mapped``.
    """
    if answers.reruns is None or answers.row_a is None or not decided.any():
        return RepeatDifference(None, None, None, None)
    log, (first, later) = answers.log, answers.reruns
    orders = np.unique(answers.pairs.order[decided])
    verdicts = log.raw if labels == "raw" else log.decision
    both = ~(log.undecided[verdicts[first]] | log.undecided[verdicts[later]])
    both &= np.isin(log.order[first], orders)
    first, later = first[both], later[both]
    one, two = (side[decided] for side in answers.sides(labels))
    clusters = answers.clusters[decided]
    return delta_jss(one == two, clusters, verdicts[first] == verdicts[later], log.cluster[first])


def right_among_decided(answers: Answers) -> tuple[Bools, Bools]:
    """Which answers have a verdict and a gold label, and which of them are right, shape (m,).

    The check `right` counts an answer without a verdict as wrong: see `gold_figures`.
    """
    gold = answers.log.gold[answers.rows]
    graded: Bools = ~answers.log.undecided[answers.decision] & (gold >= 0)
    return graded, graded & (answers.decision == gold)


def gold_figures(
    answers: Answers, rows: Codes, verdicts: Words, labels: Words, parts: Floats | None = None
) -> GoldAgreement:
    """κ and accuracy of verdicts at some rows of the log with the labels that people gave there.

    An answer without a verdict is wrong. A label that is none of the task's leaves its row out.
    ``parts`` is how much of a row each label counts, where people tie on some; None for whole rows.
    """
    chances = answers.log.chances_of(rows)
    if parts is not None:
        chances = (1.0 if chances is None else chances) / parts
    return gold_agreement(
        verdicts,
        labels,
        answers.log.cluster[rows],
        labels=answers.task.labels,
        ordinal=answers.task.ordinal,
        chances=chances,
    )


def ties_of(labels: Sequence[str]) -> set[str]:
    """The labels that prefer neither option; the third of three does, whatever its name."""
    others = {label for label in labels[2:] if len(labels) == 3 or label.casefold() in TIE_WORDS}
    return ({*TIES} | others) - {*labels[:2]}


def position(answers: Answers) -> BothOrders:
    """What a judge chose in both option orders; a foreign label is no choice."""
    log, rows, labels = answers.log, answers.rows, answers.task.labels
    options = labels[:2]
    if not len(rows) or len(options) < 2:
        return BothOrders()
    return both_orders(
        log.labels[answers.decision],
        log.item[rows],
        np.array(log.orders, dtype=object)[log.order[rows]],
        log.template[rows],
        cluster_ids=log.cluster[rows],
        options=options,
        ties=ties_of(labels),
    )
