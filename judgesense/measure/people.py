"""A judge beside people.

Each record compares a judge's verdicts on a task with one person's labels, with the gold labels, or
with the majority of several people; the entry of the majority also says how people agree with each
other, and has the alternative annotator test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.answers import Answers, distinct
from judgesense.measure.agreement import gold_figures
from judgesense.measure.figures import (
    AltTest,
    BetweenPeople,
    CorrectedShare,
    HumanAgreement,
    LabelFigures,
    PairOfPeople,
)
from judgesense.statistics.alternative_annotator import (
    EPSILON,
    FEWEST_PEOPLE,
    alternative_annotator,
)
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.gold import weighted_mean
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import share_fields
from judgesense.statistics.kappa import disagreement_weights, kappa_from_table, krippendorff_alpha
from judgesense.statistics.labelled import NOT_RANDOM, labelled_p
from judgesense.tasks import ERROR, is_scale

GOLD, MAJORITY = "gold", "majority"
"""The names of labels that are not one person's."""


class JudgedRows(NamedTuple):
    """A judge's verdicts that got an answer, row by row: shape (n,) each."""

    answers: Answers
    rows: Codes
    verdict: Words
    gold: Words
    """The gold label, "" without one."""
    parts: Floats | None = None
    """How much of a row each label counts, where people tie on some; None for whole rows."""

    def with_ties(self, labels: pa.Table | None) -> JudgedRows:
        """The rows, and those on which people tie once for each of the k labels, as 1 / k."""
        given = {} if labels is None or (self.gold != "").all() else by_person(self, labels)
        rows: list[int] = []
        tied: list[str] = []
        parts: list[float] = []
        for row in np.flatnonzero(self.gold == "") if len(given) > 1 else ():
            counts = Counter(column[row] for column in given.values() if column[row])
            most = [label for label, n in counts.items() if n == max(counts.values())]
            if len(most) < 2:
                continue
            rows += [int(row)] * len(most)
            tied += most
            parts += [1 / len(most)] * len(most)
        if not rows:
            return self
        of = np.concatenate([np.flatnonzero(~np.isin(np.arange(len(self.rows)), rows)), rows])
        gold = np.concatenate([self.gold[of[: -len(rows)]], np.array(tied, dtype=object)])
        whole = np.concatenate([np.ones(len(of) - len(rows)), parts])
        return JudgedRows(self.answers, self.rows[of], self.verdict[of], gold, whole)


def gold_of(answers: Answers, labels: pa.Table | None) -> str:
    """What the gold labels of a task are, in words: of several people they are the majority, on the
    items that have one."""
    if labels is None:
        return "the gold labels"
    of_task = labels.filter(pc.equal(labels["task"], answers.task.name))
    names = set(of_task["human"].to_pylist())
    if len(names) < 2:
        return "people's labels"
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in of_task.to_pylist():
        if row["label"]:
            counts.setdefault((row["item_id"], row["order"]), Counter())[row["label"]] += 1
    if all(each.total() == 1 for each in counts.values()):
        return "people's labels"
    most = [[n for _, n in each.most_common(2)] for each in counts.values()]
    clear = sum(len(each) == 1 or each[0] > each[1] for each in most)
    where = f" where there is one ({clear} of {len(counts)} items)" if clear < len(counts) else ""
    return f"the majority of {len(names)} people{where}"


def people(
    answers: Answers,
    labels: pa.Table | None = None,
    mislabelled: Collection[str] = (),
    epsilon: float = EPSILON,
) -> tuple[HumanAgreement, ...]:
    """A judge on a task beside people; nothing without labels of the task's own.

    Args:
        answers: a judge's decisions.
        labels: people's labels, one row each (`judgesense.log.folder.PEOPLE`); without it
            the gold labels of the log are compared.
        mislabelled: templates that are left out, as in the `right` check.
        epsilon: of the alternative annotator test.
    """
    judged = judged_rows(answers, mislabelled)
    given = {} if labels is None else by_person(judged, labels)
    several = len(given) > 1
    first = _compared(judged, MAJORITY if several else next(iter(given), GOLD), judged.gold)
    if not several:
        return () if first is None else (first,)
    alone = [_compared(judged, name, column) for name, column in given.items()]
    if first is not None:
        first = _with_others(first, judged, given, epsilon)
        first = _of_all_labelled(first, judged.with_ties(labels))
    return tuple(entry for entry in (first, *alone) if entry is not None)


def judged_rows(answers: Answers, mislabelled: Collection[str] = ()) -> JudgedRows:
    """A judge's verdicts beside the gold labels, without mislabelled templates."""
    log = answers.log
    wrong = np.isin(log.templates, list(mislabelled))[log.template[answers.rows]]
    used = (log.labels[answers.decision] != ERROR) & ~wrong
    rows = answers.rows[used]
    gold = np.append(log.labels, "")[log.gold[rows]]
    return JudgedRows(answers, rows, log.labels[answers.decision[used]], gold)


def by_person(judged: JudgedRows, labels: pa.Table) -> dict[str, Words]:
    """Each person's label at the rows, "" where there is none."""
    log = judged.answers.log
    of_task = labels.filter(pc.equal(labels["task"], judged.answers.task.name)).to_pylist()
    label_of = {(row["item_id"], row["order"], row["human"]): row["label"] for row in of_task}
    items = [log.items[code] for code in log.item[judged.rows]]
    orders = [log.orders[code] for code in log.order[judged.rows]]
    return {
        name: np.array(
            [
                label_of.get((item, order, name), "")
                for item, order in zip(items, orders, strict=True)
            ],
            dtype=object,
        )
        for name in dict.fromkeys(row["human"] for row in of_task)
    }


def _compared(judged: JudgedRows, human: str, column: Words) -> HumanAgreement | None:
    """The verdicts beside one label a row; None without a label of the task's own."""
    answers, task = judged.answers, judged.answers.task
    labelled: Bools = np.isin(column, task.labels)
    if not labelled.any() or len(task.labels) < 2:
        return None
    clusters = answers.log.cluster[judged.rows]
    verdicts, truth, codes = judged.verdict[labelled], column[labelled], clusters[labelled]
    figures = gold_figures(answers, judged.rows[labelled], verdicts, truth)
    chances = answers.log.chances_of(judged.rows[labelled])
    weighted = chances is not None
    counts = Counter(zip(verdicts, truth, strict=True))
    confusion, per_label = {}, {}
    for verdict in dict.fromkeys([*task.labels, *sorted(set(verdicts))]):
        if verdict in verdicts:
            confusion[str(verdict)] = {label: counts[verdict, label] for label in task.labels}
    for label in task.labels:
        mine, called = truth == label, verdicts == label
        per_label[label] = LabelFigures(
            n=int(mine.sum()),
            **_share("recall", called, mine, codes, chances),
            **_share("precision", mine, called, codes, chances),
        )
    if not figures.n:
        return None
    return HumanAgreement(
        human=human,
        n=figures.n,
        kappa=figures.kappa,
        kappa_ci_low=figures.kappa_ci_low,
        kappa_ci_high=figures.kappa_ci_high,
        accuracy=figures.accuracy,
        accuracy_ci_low=figures.accuracy_ci_low,
        accuracy_ci_high=figures.accuracy_ci_high,
        constant_label=figures.constant_label,
        constant_accuracy=figures.constant_accuracy,
        n_items=distinct(answers.log.item[judged.rows[labelled]]),
        confusion=confusion,
        per_label=per_label,
        weighted=weighted,
        # Where every answer has a gold label, there is nothing to correct; labels that were picked
        # are no random part, as the correction takes them.
        corrected={}
        if weighted or (human == GOLD and labelled.all())
        else _corrected(judged, np.where(labelled, column, "")),
        alt_test_reason=f"the test needs {FEWEST_PEOPLE} people who labelled the same items",
    )


def _share(
    name: str, hits: Bools, among: Bools, codes: Codes, chances: Floats | None
) -> dict[str, Any]:
    """The share of hits among some rows, of all items where their chances to be picked differ."""
    if chances is None or not among.any():
        return share_fields(name, hits[among], codes[among])
    value, ends = weighted_mean(hits[among], 1 / chances[among], codes[among])
    return {name: value, **ends.fields(name)}


class _Shares(NamedTuple):
    """The share of each label among the verdicts on an item, and the items' labels."""

    verdicts: Mapping[str, Floats]
    labels: Mapping[str, Floats]
    labelled: Bools
    cluster: Codes
    contested: Bools
    """The items on which verdicts differ, of all judges and wordings."""

    @property
    def at_random(self) -> bool:
        """Whether the verdicts do not show that the labelled items are no random part."""
        shown = [*self.verdicts.values(), self.contested]
        p_values = [labelled_p(each, self.labelled, self.cluster) for each in shown]
        least = min((p for p in p_values if p is not None), default=1.0)
        return least >= NOT_RANDOM / max(len(self.verdicts), 1)


def _shares_of(judged: JudgedRows, labels: Words) -> _Shares:
    """Shares by item, in the item's own order; of labels NaN without one."""
    task, log = judged.answers.task, judged.answers.log
    verdict, label = judged.verdict.copy(), labels.copy()
    if task.comparative and len(task.labels) == 2:
        turned = np.array(log.orders, dtype=object)[log.order[judged.rows]] == "BA"
        other = dict(zip(task.labels, reversed(task.labels), strict=True))
        for column in (verdict, label):
            column[turned] = [other.get(word, word) for word in column[turned]]
    own, first, item = np.unique(log.item[judged.rows], return_index=True, return_inverse=True)
    cluster, _ = cluster_codes(log.cluster[judged.rows][first], len(first))
    parts = np.ones(len(item)) if judged.parts is None else judged.parts
    size, labelled = np.bincount(item, parts), np.bincount(item, (label != "") * parts)
    with np.errstate(invalid="ignore"):
        verdicts, truth = (
            {name: np.bincount(item, (column == name) * parts) / of for name in task.labels}
            for column, of in ((verdict, size), (label, labelled))
        )
    return _Shares(verdicts, truth, labelled > 0, cluster, _contested(judged.answers)[own])


def _contested(answers: Answers) -> Bools:
    """The items of the log on which answers to the same task differ, of any judge and wording."""
    log = answers.log
    same = log.equivalent & (log.task == log.task[answers.rows[0]])
    place = log.item[same] * len(log.orders) + log.order[same]
    n = len(log.items) * len(log.orders)
    counts = np.zeros(n, dtype=np.intp)
    pairs = np.unique(place * len(log.labels) + log.decision[same]) // len(log.labels)
    np.add.at(counts, pairs, 1)
    contested: Bools = np.any(counts.reshape(-1, len(log.orders)) > 1, axis=1)
    return contested


def labels_at_random(judged: JudgedRows) -> bool:
    """Whether labels may be of a random part of the items, or were picked with known chances."""
    is_labelled = judged.gold != ""
    chances = judged.answers.log.chances_of(judged.rows[is_labelled])
    if is_labelled.all() or chances is not None:
        return True
    return _shares_of(judged, judged.gold).at_random


def _corrected(judged: JudgedRows, labels: Words) -> dict[str, CorrectedShare]:
    """The share of each label among all judged items, corrected for the judge's errors.

    Prediction-powered (PPI++): the share of the verdicts, ``verdicts``, moved by how far they are
    off where there are labels, which must be a random part of the items. Empty with too few labels.
    Where the verdicts show that they are no random part (`labelled_p`), no share is corrected.
    """
    from judgesense.statistics.prediction_powered import FEWEST_LABELS, combined, influence

    shares, found = _shares_of(judged, labels), {}
    if shares.labelled.sum() < FEWEST_LABELS:
        return {}
    at_random = shares.at_random
    for name, verdicts in shares.verdicts.items():
        mean = float(verdicts.mean())
        if not at_random:
            found[name] = CorrectedShare(mean, None, None, None)
            continue
        effect = influence(shares.labels[name], verdicts, clusters=shares.cluster, step=1.0)
        powered = combined([(1.0, effect, shares.cluster)])
        figures = (powered.estimate, powered.ci_low, powered.ci_high)
        share, low, high = (None if x is None else min(1.0, max(0.0, x)) for x in figures)
        found[name] = CorrectedShare(mean, share, low, high)
    return found


def _with_others(
    majority: HumanAgreement, judged: JudgedRows, by_person: Mapping[str, Words], epsilon: float
) -> HumanAgreement:
    """The agreement with a majority, and how people agree with each other, and whether the judge
    could stand in for one."""
    task, log = judged.answers.task, judged.answers.log
    # An item that was judged several times counts once between people.
    place = log.item[judged.rows] * len(log.orders) + log.order[judged.rows]
    _, once = np.unique(place, return_index=True)
    labels = np.stack(list(by_person.values()))
    labels[labels == ""] = None
    counted = (labels[:, once] != np.array(None)).sum(axis=0)
    level = "ordinal" if task.ordinal else "nominal"
    between = BetweenPeople(
        people=len(by_person),
        alpha=krippendorff_alpha(labels[:, once].tolist(), level, task.labels),
        ties=int(((counted > 1) & (judged.gold[once] == "")).sum()),
        pairs=tuple(
            _pair(a, b, by_person[a][once], by_person[b][once], judged.answers)
            for a, b in combinations(by_person, 2)
        ),
    )
    test = alternative_annotator(
        judged.verdict.tolist(),
        labels.tolist(),
        epsilon=epsilon,
        scale=task.labels if task.ordinal else (),
        clusters=log.cluster[judged.rows],
    )
    if test is None:
        return replace(majority, between_people=between)
    outcome = AltTest(
        test.epsilon,
        test.winning_rate,
        test.advantage_probability,
        p_values=dict(zip(by_person, test.p_values, strict=True)),
        p_adjusted=dict(zip(by_person, test.p_adjusted, strict=True)),
        n_items=dict(zip(by_person, test.n_items, strict=True)),
        constant=test.constant,
    )
    return replace(majority, between_people=between, alt_test=outcome, alt_test_reason=None)


def _of_all_labelled(majority: HumanAgreement, judged: JudgedRows) -> HumanAgreement:
    """The agreement with a majority, and what it is on the items, too, on which people tie."""
    if judged.parts is None:
        return majority
    used = judged.gold != ""
    figures = gold_figures(
        judged.answers,
        judged.rows[used],
        judged.verdict[used],
        judged.gold[used],
        judged.parts[used],
    )
    return replace(
        majority,
        accuracy_with_ties=figures.accuracy,
        with_ties_ci_low=figures.accuracy_ci_low,
        with_ties_ci_high=figures.accuracy_ci_high,
        corrected=_corrected(judged, judged.gold) if majority.corrected else {},
    )


def _pair(a: str, b: str, one: Words, two: Words, answers: Answers) -> PairOfPeople:
    """Agreement and Cohen's kappa of two people, with quadratic weights on a scale."""
    labels = answers.task.labels
    cells = Counter(pair for pair in zip(one, two, strict=True) if {*pair} <= {*labels})
    table = np.array([[cells[a, b] for b in labels] for a in labels], dtype=float)
    if not (n := cells.total()):
        return PairOfPeople(a, b, 0, None, None)
    weights = disagreement_weights(len(labels), answers.task.ordinal)
    kappa = kappa_from_table(table, weights)
    return PairOfPeople(a, b, n, float(table.trace() / n), kappa)


def within_one(people: HumanAgreement) -> float | None:
    """The share of verdicts at most one point off, on a scale of three points or more."""
    labels = people.per_label
    if len(labels) < 3 or not is_scale(labels):
        return None
    near = (
        n
        for verdict, row in people.confusion.items()
        if is_scale([verdict])
        for label, n in row.items()
        if abs(int(verdict) - int(label)) < 2
    )
    return float(sum(near) / people.n)
