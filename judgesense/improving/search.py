"""The search: a race on one half of the items, and a promise measured on the other half.

The race chooses; the items of the promise choose nothing, so the accuracy that is promised is not
selected. Only answers are needed: :mod:`judgesense.improving.asking` gets them from judges, the
benchmarks from logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.improving.candidates import (
    Answers,
    Candidate,
    Column,
    combinations_of,
    first_candidates,
)
from judgesense.improving.promise import probes_of, row_of, steadiness, with_person
from judgesense.statistics.arrays import Codes

FEWEST, FEWEST_INDEPENDENT = 20, 10
"""Labelled items that a search needs, and clusters of them."""

RIVALS = 12
"""At most so many rows are measured for the table, beside the two that the promise needs."""

FOR_PROMISE = 0.35
"""The share of the budget that is kept for the promise, unless a single way needs more."""

MOST_PROMPTS = 6.0
"""Prompts per item of the promise that the race leaves unspent, at most."""

FIRST = 8
"""Items of the race's first round, at least."""

FINAL = 4
"""With at most so many candidates left, all go to the end."""

EVIDENCE = 0.5
"""Standard errors by which a candidate must be ahead of the first one to be chosen over it."""

_TIE = 1e-9

Ask = Callable[[Sequence[Column], Codes], None]


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    ``chosen`` is the candidate to write, with the items ``fit`` that its offsets are learned from.
    ``rows`` are those of the table, ``entered`` how many candidates took part, ``raced`` the items
    that the finalists were tried on, ``held_out`` those of the promise, both without attacked
    copies. ``ask_person`` is as in a judge's file, ``margins`` are those of the chosen candidate's
    judges with a person behind them.
    """

    chosen: Candidate
    fit: Codes
    rows: list[dict[str, Any]]
    entered: int
    raced: int
    held_out: Codes
    spent: float
    ask_person: dict[str, Any]
    margins: tuple[float, ...]


def halves(gold: Codes, clusters: Codes, seed: int) -> tuple[Codes, Codes]:
    """The items to search on and those of the promise, each in random order: whole clusters, with
    every label in both."""
    rng = np.random.default_rng(seed)
    names, first = np.unique(clusters, return_index=True)
    shuffled = rng.permutation(len(names))
    by_label = shuffled[np.argsort(gold[first][shuffled], kind="stable")]
    held = np.isin(clusters, names[by_label[1::2]])
    search, promise = np.flatnonzero(~held), np.flatnonzero(held)
    return rng.permutation(search), rng.permutation(promise)


def least_budget(answers: Answers) -> float:
    """The least budget: the judge as asked, and one other way, on every item."""
    prices = [answers.price(each) for each in first_candidates(answers)[:8]]
    return len(answers.gold) * (prices[0] + min(prices))


def race(
    answers: Answers,
    pool: list[Candidate],
    items: Codes,
    budget: float,
    ask: Ask,
    grow: Callable[[Sequence[Candidate], Codes], list[Candidate]],
    note: Callable[[str], None],
) -> tuple[list[Candidate], int]:
    """Paired successive halving: all candidates left are tried on the same items, the worse half
    leaves, and the rest goes on to more items.

    The first candidate is what others must beat: it stays to the end, and another one wins only if
    it is right more often by `EVIDENCE` standard errors, over clusters of items. The rounds before
    rank by `Answers.scores`, whose mean needs no error; ties go to the cheaper.

    Source: Karnin, Koren & Somekh 2013; Jamieson & Talwalkar 2016, "Non-stochastic best arm
    identification".

    Args:
        pool: the candidates, to which new ones are added; those listed first enter if the budget
            is short.
        items: in random order.
        budget: never exceeded.
        grow: from the candidates left and the items so far to new ones that need no other prompts.

    Returns:
        The candidates left, the winner first and then by rank, and the number of items that they
        were tried on.
    """
    base = pool[0]
    first = min(FIRST, len(items))
    while len(pool) > 1 and answers.price(*pool) * first > budget / (1 + (len(pool) > FINAL)):
        pool.pop()
    left, tried, spent = list(pool), 0, 0.0
    while True:
        rounds = max(1, math.ceil(math.log2(len(left) / FINAL)) + 1 if len(left) > FINAL else 1)
        each = max(answers.price(*left), _TIE)
        more = min(int((budget - spent) / rounds / each + _TIE), len(items) - tried)
        if more:
            ask(sorted(answers.columns(*left)), items[tried : tried + more])
            spent, tried = spent + each * more, tried + more
            made = grow(left, items[:tried])
            pool += made
            left += made
        seen = items[:tried]
        scores = {one.name: round(float(answers.scores(one, seen).mean()), 9) for one in left}
        places = {one.name: place for place, one in enumerate(pool)}
        left.sort(key=lambda one: (-scores[one.name], answers.price(one), places[one.name]))
        yours, right = (answers.right(one, seen, seen).astype(float) for one in (base, left[0]))
        note(
            f"after {tried} of {len(items)} items, {len(left)} ways are left; the best is "
            f"{left[0].name!r}, right on {right.mean():.0%} (your wording: {yours.mean():.0%})"
        )
        if rounds == 1 or not more or tried == len(items):
            break
        kept = left[: max(FINAL, math.ceil(len(left) / 2))]
        left = [base, *(one for one in kept if one is not base)]
    gap = right - yours
    clusters = np.unique(answers.clusters[seen], return_inverse=True)[1]
    sums = np.bincount(clusters, gap - gap.mean())
    k = len(sums)
    error = math.sqrt(k / (k - 1) * float(sums @ sums)) / tried if k > 1 else math.inf
    chosen = left[0] if float(gap.mean()) > EVIDENCE * error + _TIE else base
    return [chosen, *(one for one in left if one is not chosen)], tried


def search(
    answers: Answers,
    budget: float,
    ask: Ask,
    *,
    seed: int = 0,
    max_error: float = 0.05,
    combine: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> Found:
    """Race the candidates on half of the items and measure the best ones on the other half.

    Args:
        answers: with the labels of every item; ``ask`` fills in the answers.
        budget: in the unit of the voices' prices, for all items together.
        ask: gets the answers to some columns on some items.
        seed: fixes the halves and the order of the items.
        max_error: the share of wrong verdicts that the threshold for a person allows.
        combine: whether panels, juries and cascades are tried.
        note: told the best so far.

    Raises:
        JudgeSenseError: too few items, labels all alike, a budget below one pass.
    """
    labelled = int((~answers.attacked).sum())
    independent = len(np.unique(answers.clusters))
    if labelled < FEWEST or independent < FEWEST_INDEPENDENT:
        raise JudgeSenseError(
            f"{labelled} labelled items ({independent} independent) are too few to search on one "
            f"half and measure on the other: label at least {FEWEST} ({FEWEST_INDEPENDENT} "
            "independent)"
        )
    if len(np.unique(answers.gold)) < 2:
        raise JudgeSenseError(
            f"every label is {answers.labels[answers.gold[0]]}, so a judge that always gives this "
            "verdict looks perfect: label items with other answers, too"
        )
    if budget < (least := least_budget(answers)):
        raise JudgeSenseError(
            f"the budget is below one pass: your wording and one other on {len(answers.gold)} items"
            f" need {least:g}, and {budget:g} is left"
        )
    items, held = halves(answers.gold, answers.clusters, seed)
    pool = first_candidates(answers)
    base, most = pool[0], budget / len(held)
    pool = [base, *(c for c in pool[1:] if answers.price(base, c) <= 0.5 * most + _TIE)]
    # Panels and the like only where the race keeps most of the budget.
    needed = max(answers.price(base, each) for each in pool)
    dearest = max(voice.price for voice in answers.voices)
    cap = max(needed, min(FOR_PROMISE * most, MOST_PROMPTS * dearest))

    def grow(left: Sequence[Candidate], seen: Codes) -> list[Candidate]:
        if not combine:
            return []
        asked, known = answers.columns(*left), {each.name for each in pool}
        # The race takes those whose prompts are asked anyway; the promise must afford them.
        return [
            each
            for each in combinations_of(answers, left, seen, known)
            if answers.price(base, each) <= cap + _TIE and answers.columns(each) <= asked
        ]

    def spent() -> float:
        return float(answers.asked.sum(axis=(1, 2, 3)) @ [voice.price for voice in answers.voices])

    before = spent()
    left, raced = race(answers, pool, items, budget - cap * len(held), ask, grow, note)
    chosen, fit = left[0], answers.plain(items[:raced])
    ask(sorted(answers.columns(base, chosen)), held)

    def affordable(candidate: Candidate) -> bool:
        fresh = [(v, w, o) for v, w, o in sorted(answers.columns(candidate))
                 if not answers.asked[v, held, w, o].all()]  # fmt: skip
        if answers.price_of(fresh) * len(held) > budget - (spent() - before) + _TIE:
            return False
        if fresh:
            ask(fresh, held)
        return True

    table = [base, *([chosen] if chosen is not base else [])]
    probes = probes_of(answers, chosen, left)
    probes = {name: other for name, other in probes.items() if affordable(other)}
    for each in left:
        if each not in table and len(table) < RIVALS and affordable(each):
            table.append(each)
    rows = [row_of(answers, each, base, held, fit) for each in table]
    rows[table.index(chosen)] |= steadiness(answers, chosen, probes, held, fit)
    for row, each in zip(rows, table, strict=True):
        row["written"] = each is chosen
        row["pareto"] = not any(
            other["usd_or_prompts"] <= row["usd_or_prompts"] and other["right"] >= row["right"]
            and (other["usd_or_prompts"], -other["right"]) != (row["usd_or_prompts"], -row["right"])
            for other in rows
        )  # fmt: skip
    stages = chosen.members if chosen.combine == "cascade" else (chosen,)
    held = answers.plain(held)
    person, margins = with_person(
        [answers.decided(each, fit, fit) for each in stages],
        [answers.decided(each, held, fit) for each in stages],
        answers.gold[fit], answers.gold[held], answers.clusters[held], chosen.margins, max_error,
    )  # fmt: skip
    return Found(chosen, fit, rows, len(pool), len(fit), held, spent() - before, person, margins)
