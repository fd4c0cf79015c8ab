"""A judge beside people: the list ``people`` of a report.

Each entry compares a judge's verdicts on a task with one person's labels, with the gold labels, or
with the majority of several people; the entry of the majority also says how people agree with each
other, and has the alternative annotator test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.answers import Answers, distinct
from judgesense.statistics.alternative_annotator import (
    EPSILON,
    FEWEST_PEOPLE,
    alternative_annotator,
)
from judgesense.statistics.arrays import Bools, Codes, Words
from judgesense.statistics.gold import gold_agreement
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import share_fields
from judgesense.statistics.kappa import disagreement_weights, kappa_from_table, krippendorff_alpha
from judgesense.tasks import ERROR

GOLD, MAJORITY = "gold", "majority"
"""The names of labels that are not one person's."""

_AGREEMENT = (
    "n",
    "kappa",
    "kappa_ci_low",
    "kappa_ci_high",
    "accuracy",
    "accuracy_ci_low",
    "accuracy_ci_high",
    "constant_label",
    "constant_accuracy",
)


class Judged(NamedTuple):
    """A judge's verdicts that got an answer, row by row: shape (n,) each."""

    stream: Answers
    rows: Codes
    verdict: Words
    gold: Words
    """The gold label, "" without one."""


def gold_of(stream: Answers, labels: pa.Table | None) -> str:
    """What the gold labels of a task are, in words: of several people they are the majority."""
    if labels is None:
        return "the gold labels"
    names = set(labels.filter(pc.equal(labels["task"], stream.task.name))["human"].to_pylist())
    return f"the majority of {len(names)} people" if len(names) > 1 else "people's labels"


def people(
    stream: Answers,
    labels: pa.Table | None = None,
    mislabelled: Collection[str] = (),
    epsilon: float = EPSILON,
) -> list[dict[str, Any]]:
    """The entries of ``people`` of a judge on a task; none without labels of the task's own.

    Args:
        stream: a judge's decisions.
        labels: people's labels, one row each (`judgesense.log.folder.PEOPLE`); without it
            the gold labels of the log are compared.
        mislabelled: templates that are left out, as in the `right` check.
        epsilon: of the alternative annotator test.
    """
    log = stream.log
    wrong = np.isin(log.templates, list(mislabelled))[log.template[stream.rows]]
    kept = (log.labels[stream.decision] != ERROR) & ~wrong
    rows = stream.rows[kept]
    gold = np.append(log.labels, "")[log.gold[rows]]
    judged = Judged(stream, rows, log.labels[stream.decision[kept]], gold)
    by_person = {} if labels is None else _by_person(judged, labels)
    several = len(by_person) > 1
    first = _compared(judged, MAJORITY if several else next(iter(by_person), GOLD), gold)
    if not several:
        return [first] if first.get("n") else []
    found = [first | _several(judged, by_person, epsilon)]
    found += [_compared(judged, name, given) for name, given in by_person.items()]
    return [entry for entry in found if entry.get("n")]


def _by_person(judged: Judged, labels: pa.Table) -> dict[str, Words]:
    """Each person's label at the rows, "" where there is none."""
    log = judged.stream.log
    own = labels.filter(pc.equal(labels["task"], judged.stream.task.name)).to_pylist()
    known = {(row["item_id"], row["order"], row["human"]): row["label"] for row in own}
    items = [log.items[code] for code in log.item[judged.rows]]
    orders = [log.orders[code] for code in log.order[judged.rows]]
    return {
        name: np.array(
            [known.get((item, order, name), "") for item, order in zip(items, orders, strict=True)],
            dtype=object,
        )
        for name in dict.fromkeys(row["human"] for row in own)
    }


def _compared(judged: Judged, human: str, given: Words) -> dict[str, Any]:
    """The verdicts beside one label a row; an answer without a verdict is wrong."""
    stream, task = judged.stream, judged.stream.task
    known: Bools = np.isin(given, task.labels)
    if not known.any() or len(task.labels) < 2:
        return {}
    clusters = stream.log.cluster[judged.rows]
    said, truth, codes = judged.verdict[known], given[known], clusters[known]
    chances = stream.log.chances_of(judged.rows[known])
    found = gold_agreement(
        said, truth, codes, labels=task.labels, ordinal=task.ordinal, chances=chances
    )
    counts = Counter(zip(said, truth, strict=True))
    confusion, per_label = {}, {}
    for verdict in dict.fromkeys([*task.labels, *sorted(set(said))]):
        if verdict in said:
            confusion[str(verdict)] = {label: counts[verdict, label] for label in task.labels}
    for label in task.labels:
        mine, called = truth == label, said == label
        per_label[label] = {
            "n": int(mine.sum()),
            **share_fields("recall", called[mine], codes[mine]),
            **share_fields("precision", mine[called], codes[called]),
        }
    return {
        "human": human,
        **{name: getattr(found, name) for name in _AGREEMENT},
        "n_items": distinct(stream.log.item[judged.rows[known]]),
        "confusion": confusion,
        "per_label": per_label,
        "weighted": chances is not None,
        # Where every answer has a gold label, there is nothing to correct; labels that were picked
        # are no random part, as the correction takes them.
        "corrected": {}
        if chances is not None or (human == GOLD and known.all())
        else _corrected(judged, np.where(known, given, "")),
        "between_people": None,
        "alt_test": None,
        "alt_test_reason": f"the test needs {FEWEST_PEOPLE} people who labelled the same items",
    }


def _corrected(judged: Judged, given: Words) -> dict[str, dict[str, float | None]]:
    """The share of each label among all judged items, corrected for the judge's errors.

    Prediction-powered (PPI++): the share of the verdicts, ``verdicts``, moved by how far they are
    off where there are labels, which must be a random part of the items. Empty with too few labels.
    """
    from judgesense.statistics.prediction_powered import FEWEST_LABELS, combined, influence

    task, log = judged.stream.task, judged.stream.log
    verdict, label = judged.verdict.copy(), given.copy()
    if task.comparative and len(task.labels) == 2:
        turned = np.array(log.orders, dtype=object)[log.order[judged.rows]] == "BA"
        other = dict(zip(task.labels, reversed(task.labels), strict=True))
        for column in (verdict, label):
            column[turned] = [other.get(word, word) for word in column[turned]]
    _, first, item = np.unique(log.item[judged.rows], return_index=True, return_inverse=True)
    cluster, _ = cluster_codes(log.cluster[judged.rows][first], len(first))
    size, labelled = np.bincount(item), np.bincount(item, label != "")
    if (labelled > 0).sum() < FEWEST_LABELS:
        return {}
    found = {}
    for name in task.labels:
        with np.errstate(invalid="ignore"):
            truth = np.bincount(item, label == name) / labelled  # NaN without a label
        said = np.bincount(item, verdict == name) / size
        effect = influence(truth, said, clusters=cluster, step=1.0)
        powered = combined([(1.0, effect, cluster)])
        figures = (powered.estimate, powered.ci_low, powered.ci_high)
        share, low, high = (None if x is None else min(1.0, max(0.0, x)) for x in figures)
        found[name] = {
            "verdicts": float(said.mean()),
            "share": share,
            "ci_low": low,
            "ci_high": high,
        }
    return found


def _several(judged: Judged, by_person: Mapping[str, Words], epsilon: float) -> dict[str, Any]:
    """How people agree with each other, and whether the judge could stand in for one."""
    task, log = judged.stream.task, judged.stream.log
    # An item that was judged several times counts once between people.
    place = log.item[judged.rows] * len(log.orders) + log.order[judged.rows]
    _, once = np.unique(place, return_index=True)
    given = np.stack(list(by_person.values()))
    given[given == ""] = None
    counted = (given[:, once] != np.array(None)).sum(axis=0)
    level = "ordinal" if task.ordinal else "nominal"
    found: dict[str, Any] = {
        "between_people": {
            "people": len(by_person),
            "alpha": krippendorff_alpha(given[:, once].tolist(), level, task.labels),
            "ties": int(((counted > 1) & (judged.gold[once] == "")).sum()),
            "pairs": [
                {"a": a, "b": b, **_pair(by_person[a][once], by_person[b][once], judged.stream)}
                for a, b in combinations(by_person, 2)
            ],
        }
    }
    test = alternative_annotator(
        judged.verdict.tolist(),
        given.tolist(),
        epsilon=epsilon,
        scale=task.labels if task.ordinal else (),
        clusters=log.cluster[judged.rows],
    )
    if test is not None:
        by_name = ("p_values", "p_adjusted", "n_items")
        found |= {
            "alt_test_reason": None,
            "alt_test": {
                name: dict(zip(by_person, value, strict=True)) if name in by_name else value
                for name, value in asdict(test).items()
            },
        }
    return found


def _pair(one: Words, two: Words, stream: Answers) -> dict[str, Any]:
    """Agreement and Cohen's kappa of two people, with quadratic weights on a scale."""
    labels = stream.task.labels
    cells = Counter(pair for pair in zip(one, two, strict=True) if {*pair} <= {*labels})
    table = np.array([[cells[a, b] for b in labels] for a in labels], dtype=float)
    if not (n := cells.total()):
        return {"n": 0, "agreement": None, "kappa": None}
    weights = disagreement_weights(len(labels), stream.task.ordinal)
    kappa = kappa_from_table(table, weights)
    return {"n": n, "agreement": float(table.trace() / n), "kappa": kappa}
