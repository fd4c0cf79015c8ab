"""The judges and people who gave each item of a task a label, and the labels in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.answers import Answers
from judgesense.log.rows import TaskWords
from judgesense.statistics.arrays import Bools, Codes
from judgesense.tasks import is_scale

GOLD = "people"
"""Those whose label is the gold label."""


@dataclass(frozen=True)
class Raters:
    """The verdict of each judge on a task, and each person's label, item by item in the item's own
    order: codes of the task's labels (ranks on a scale), -1 without one, shape (n,)."""

    items: Codes
    clusters: Codes
    labels: Sequence[str]
    ordinal: bool
    judge: str
    judges: Mapping[str, Codes]
    people: Mapping[str, Codes]
    gold: Codes

    @classmethod
    def of(cls, answers: Answers, rows: Codes, people: pa.Table | None) -> Raters:
        """The raters of the items at some rows of the log, which are the judge's on a task."""
        log, task = answers.log, answers.task
        labels = tuple(sorted(task.labels, key=int) if is_scale(task.labels) else task.labels)
        items, first = np.unique(log.item[rows], return_index=True)
        place = np.full(len(log.items), -1)
        place[items] = np.arange(len(items))
        code = log.codes_of(labels)
        judges = {answers.judge: _consensus(answers, rows, place, code, len(items), len(labels))}
        others = log.equivalent & (log.task == log.task[rows[0]]) & (place[log.item] >= 0)
        for at in np.unique(log.judge[others]):
            if (name := log.judges[at]) != answers.judge:
                of_other = np.flatnonzero(others & (log.judge == at))
                judges[name] = _consensus(answers, of_other, place, code, len(items), len(labels))
        gold = np.full(len(items), -1)
        known = rows[log.gold[rows] >= 0][::-1]
        in_order = in_item_order(answers, log.gold[known], log.order[known])
        gold[place[log.item[known]]] = code[in_order]
        given = _given(answers.task, labels, [log.items[at] for at in items], people)
        return cls(
            items,
            log.cluster[rows[first]],
            labels,
            task.ordinal,
            answers.judge,
            judges,
            given or {GOLD: gold},
            gold,
        )

    def at(self, items: Codes) -> Raters:
        """The raters on some of the items."""
        place = np.searchsorted(self.items, items)
        return replace(
            self,
            items=items,
            clusters=self.clusters[place],
            judges={name: codes[place] for name, codes in self.judges.items()},
            people={name: codes[place] for name, codes in self.people.items()},
            gold=self.gold[place],
        )

    def doubted(self) -> Bools:
        """The items with a label against which the judges and all other people agree, shape (n,).

        At least two of them have to, one a judge. On a scale of four or more they have to be at
        least two points off, all in the same direction.
        """
        found = np.zeros(len(self.items), dtype=np.bool_)
        for name, own in self.people.items():
            rest = [codes for other, codes in self.people.items() if other != name]
            others = np.stack([*self.judges.values(), *rest])
            given = others >= 0
            least = np.where(given, others, len(self.labels)).min(axis=0)
            most = np.where(given, others, -1).max(axis=0)
            enough = (own >= 0) & (given.sum(axis=0) > 1) & given[: len(self.judges)].any(axis=0)
            if self.ordinal and len(self.labels) > 3:
                against = (least >= own + 2) | (most <= own - 2)
            else:
                against = (least == most) & (most != own)
            found |= enough & against
        return found


def in_item_order(answers: Answers, labels: Codes, orders: Codes) -> Codes:
    """Labels in the item's own order: in BA the two labels of a comparison change places."""
    log, words = answers.log, answers.task.labels
    if not answers.task.comparative or len(words) != 2:
        return labels
    other = np.arange(len(log.labels) + 1)
    other[-1] = -1
    one, two = (int(np.flatnonzero(log.labels == word)[0]) for word in words)
    other[[one, two]] = two, one
    return np.where((np.array(log.orders) == "BA")[orders], other[labels], labels)


def _consensus(
    answers: Answers, rows: Codes, place: Codes, code: Codes, n: int, n_labels: int
) -> Codes:
    """The commonest verdict on each item over wordings and orders, -1 where none is."""
    log = answers.log
    verdict = code[in_item_order(answers, log.decision[rows], log.order[rows])]
    cells = (place[log.item[rows]] * n_labels + verdict)[verdict >= 0]
    counts = np.bincount(cells, minlength=n * n_labels).reshape(n, n_labels)
    tied = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return np.where(tied, -1, counts.argmax(axis=1))


def _given(
    task: TaskWords, labels: Sequence[str], items: Sequence[str], people: pa.Table | None
) -> dict[str, Codes]:
    """Each person's labels of the items."""
    if people is None:
        return {}
    code, place = {label: n for n, label in enumerate(labels)}, {i: n for n, i in enumerate(items)}
    swapped = dict(code)
    if task.comparative and len(task.labels) == 2:
        one, two = task.labels
        swapped |= {one: code[two], two: code[one]}
    found: dict[str, Codes] = {}
    of_task = people.filter(pc.equal(people["task"], task.name))
    columns = (of_task[name].to_pylist() for name in ("human", "item_id", "order", "label"))
    for human, item, order, label in zip(*columns, strict=True):
        if item in place and label in code:
            column = found.setdefault(human, np.full(len(items), -1))
            column[place[item]] = (swapped if order == "BA" else code)[label]
    return found
