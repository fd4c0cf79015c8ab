"""People's agreement with each other is the ceiling of a judge's agreement with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers
from judgesense.measure.card import Check, Details
from judgesense.measure.figures import HumanAgreement
from judgesense.measure.people import by_person, judged_rows
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.gold import table_figures
from judgesense.statistics.inputs import cluster_codes
from judgesense.text import number

_DRAWS = 1_000
"""Draws of the clusters behind the interval of a difference."""
_MOST_PEOPLE = 12
"""Of more, the pairs are too many to draw."""


@dataclass(frozen=True)
class Ceiling:
    """Kappa of two people, and of the judge and a person, each the mean over pairs weighted by
    their items; ``gap_low`` and ``gap_high`` are the ends of the 95% interval of their difference
    (the judge's less people's). ``like_judge`` are people who may have copied the judge."""

    between_people: float
    with_people: float
    gap_low: float
    gap_high: float
    like_judge: tuple[str, ...]


def under_ceiling(
    check: Check, answers: Answers, labels: pa.Table | None, mislabelled: Collection[str] = ()
) -> Check:
    """The check `right`; unmeasured if people agree too little to judge this judge.

    A judge that agrees too little with the majority may be as good as a person, where people agree
    as little with each other. It fails only if people agree well enough to pass themselves, or if
    the judge reliably agrees less with a person than people do.
    """
    if check.state != "fail" or labels is None:
        return check
    ceiling = ceiling_of(answers, labels, mislabelled)
    if ceiling is None or ceiling.between_people >= check.threshold or ceiling.gap_high < 0:
        return check
    text = (
        "people agree too little with each other to judge this judge (κ "
        f"{number(ceiling.between_people, 2)} between two people, "
        f"{number(ceiling.with_people, 2)} between the judge and a person): agree on what the "
        "labels mean, then label again"
    )
    details: Details = {"kappa_between_people": ceiling.between_people}
    unmeasured = Check.unmeasured(check.threshold, text, n_items=check.n_items)
    return replace(unmeasured, details=details)


def with_distance(
    rows: tuple[HumanAgreement, ...],
    answers: Answers,
    labels: pa.Table | None,
    mislabelled: Collection[str] = (),
) -> tuple[HumanAgreement, ...]:
    """A judge's agreement with people, with its distance from theirs with each other."""
    between = rows[0].between_people if rows else None
    if between is None or labels is None or between.people > _MOST_PEOPLE:
        return rows
    if (ceiling := ceiling_of(answers, labels, mislabelled)) is None:
        return rows
    between = replace(
        between,
        kappa=ceiling.between_people,
        kappa_with_judge=ceiling.with_people,
        gap=ceiling.with_people - ceiling.between_people,
        gap_ci_low=ceiling.gap_low,
        gap_ci_high=ceiling.gap_high,
        like_judge=ceiling.like_judge,
    )
    return (replace(rows[0], between_people=between), *rows[1:])


def ceiling_of(
    answers: Answers, labels: pa.Table, mislabelled: Collection[str] = ()
) -> Ceiling | None:
    """What people's own agreement allows; None without two people who labelled the same items."""
    judged = judged_rows(answers, mislabelled)
    task, given = answers.task, by_person(judged, labels)
    if len(given) < 2 or len(task.labels) < 2:
        return None
    place = {label: code for code, label in enumerate(task.labels)}
    codes = [np.array([place.get(label, -1) for label in column]) for column in given.values()]
    # An answer that is none of the labels is as far from a person's as can be.
    verdict = np.array([place.get(label, len(place)) for label in judged.verdict])
    clusters, k = cluster_codes(answers.log.cluster[judged.rows], len(verdict))
    # An item that was judged several times counts once between people.
    log = answers.log
    _, once = np.unique(
        log.item[judged.rows] * len(log.orders) + log.order[judged.rows], return_index=True
    )
    first = np.isin(np.arange(len(verdict)), once)
    pairs = [(np.where(first, one, -1), two) for one, two in combinations(codes, 2)]
    n_pairs = len(pairs)
    pairs += [(column, verdict) for column in codes]
    tables = np.stack([_tables(one, two, clusters, k, len(place)) for one, two in pairs], axis=1)
    rng = np.random.default_rng(0)
    weights = rng.multinomial(k, np.full(k, 1 / k), _DRAWS).astype(np.float64)
    flat = tables.reshape(k, -1)
    drawn = (weights @ flat).reshape(_DRAWS, *tables.shape[1:])
    kappas, counts = _kappas(tables.sum(axis=0)[None], task.ordinal)
    between, with_judge = _means(kappas, counts, n_pairs)
    if np.isnan(between[0]) or np.isnan(with_judge[0]) or k < 2:
        return None
    kappas, counts = _kappas(drawn, task.ordinal)
    betweens, withs = _means(kappas, counts, n_pairs)
    gaps = withs - betweens
    low, high = map(float, np.nanquantile(gaps, (0.025, 0.975)))
    alike = _like_judge(list(given), kappas[:, :n_pairs], kappas[:, n_pairs:])
    return Ceiling(float(between[0]), float(with_judge[0]), low, high, alike)


def _like_judge(people: Sequence[str], between: Floats, with_judge: Floats) -> tuple[str, ...]:
    """People who agree with the judge far more than with others, and than a common truth explains.

    If only the truth makes two raters agree, kappa is a product of one factor for each, so
    k(person, judge) k(other, third) = k(person, other) k(judge, third): a judge better than people
    agrees with all of them more than they do with each other, and is no sign of copying. The shape
    of ``between`` is (draws, pairs), of ``with_judge`` (draws, people).
    """
    n = len(people)
    of_pair = {frozenset(pair): between[:, at] for at, pair in enumerate(combinations(range(n), 2))}
    found = []
    for person, name in enumerate(people):
        others = [other for other in range(n) if other != person]
        excess = [
            with_judge[:, person] * of_pair[frozenset((other, third))]
            - of_pair[frozenset((person, other))] * with_judge[:, third]
            for other in others
            for third in others
            if third != other
        ]
        if not excess:
            continue
        theirs = np.mean([of_pair[frozenset((person, other))] for other in others], axis=0)
        gaps = np.stack([np.mean(excess, axis=0), with_judge[:, person] - theirs])
        # NaN, where two raters share no varied items in a draw, shows nothing.
        if (np.quantile(gaps, 0.025 / n, axis=1) > 0).all():
            found.append(name)
    return tuple(found)


def _tables(one: Codes, two: Codes, clusters: Codes, k: int, size: int) -> Floats:
    """Counts of two label columns by cluster, shape (k, L, L + 1); -1 is no label."""
    known = (one >= 0) & (two >= 0)
    cells = clusters[known] * size * (size + 1) + one[known] * (size + 1) + two[known]
    counts = np.bincount(cells, minlength=k * size * (size + 1))
    return counts.reshape(k, size, size + 1).astype(np.float64)


def _kappas(tables: Floats, ordinal: bool) -> tuple[Floats, Floats]:
    """Kappa and the number of items of each pair, from tables (draws, pairs, L, L + 1)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return table_figures(tables, ordinal)["kappa"], tables.sum(axis=(2, 3))


def _means(kappas: Floats, counts: Floats, n_pairs: int) -> tuple[Floats, Floats]:
    """Mean kappa of the first pairs and of the others, weighted by their items."""
    counts = np.where(np.isfinite(kappas), counts, 0.0)
    sums = np.where(np.isfinite(kappas), kappas, 0.0) * counts
    with np.errstate(invalid="ignore", divide="ignore"):
        between = sums[:, :n_pairs].sum(axis=1) / counts[:, :n_pairs].sum(axis=1)
        others = sums[:, n_pairs:].sum(axis=1) / counts[:, n_pairs:].sum(axis=1)
    return between, others
