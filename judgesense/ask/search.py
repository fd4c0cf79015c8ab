"""The search: a race on one half of the items, and a promise measured on the other half.

The race chooses; the items of the promise choose nothing, so the accuracy that is promised is not
selected. Only answers are needed: :mod:`judgesense.ask.asking` gets them from judges, the
benchmarks from logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.ask.candidates import (
    Answers,
    Candidate,
    Column,
    combinations_of,
    first_candidates,
)
from judgesense.ask.promise import probes_of, row_of, steadiness, with_person
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Codes, Floats

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

MANY = 30
"""With more wordings than these, each is first tried on a few items of its own."""

FIRST_SHARE = 0.4
"""The share of the race's budget for that."""

_RIDGE = 1.0
_TIE = 1e-9

Ask = Callable[[Sequence[Column], Codes], None]


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    ``chosen`` is the candidate to write, with the items ``fit`` that its offsets are learned from.
    ``rows`` are those of the table, ``entered`` how many candidates took part, ``raced`` the items
    that the finalists were tried on, ``held_out`` those of the promise, both without attacked
    copies. ``ask_person`` is as in a judge's file, ``margins`` are those of the chosen candidate's
    judges with a person behind them. ``constant`` is the most frequent label of the items held out
    and its share.
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
    constant: tuple[str, float]


def halves(gold: Codes, clusters: Codes, seed: int) -> tuple[Codes, Codes]:
    """The items to search on and those of the promise, each in random order: whole clusters, with
    every label in both.

    Beyond that, chance decides: halves with equal shares of the labels are both off in the same
    direction, and a way that fits the search's shares would be promised too much.
    """
    rng = np.random.default_rng(seed)
    names, first = np.unique(clusters, return_index=True)
    shuffled = rng.permutation(len(names))
    labels = gold[first][shuffled]
    two = [n for label in np.unique(labels) for n in np.flatnonzero(labels == label)[:2]]
    order = np.concatenate([shuffled[two], np.delete(shuffled, two)])
    held = np.isin(clusters, names[order[1::2]])
    search, promise = np.flatnonzero(~held), np.flatnonzero(held)
    return rng.permutation(search), rng.permutation(promise)


def least_budget(answers: Answers) -> float:
    """The least budget: the judge as asked, and one other way, on every item."""
    prices = [answers.price(each) for each in first_candidates(answers)[:8]]
    return len(answers.gold) * (prices[0] + min(prices))


def abilities(scores: Floats, styles: Codes) -> Floats:
    """How good each candidate is (log-odds) where each is tried on other items: a two-way logistic
    model of candidates and items.

    Abilities are drawn towards the mean of their style, items towards 0.

    Source: Polo et al. 2024, "Efficient multi-prompt evaluation of LLMs" (PromptEval).

    Args:
        scores: from 0 to 1, shape (candidates, items); NaN where not tried.
        styles: a number per candidate.

    >>> nan = float("nan")
    >>> tried = np.array([[1.0, 1.0, nan, nan], [nan, 1.0, 0.0, nan], [nan, nan, 0.0, 0.0]])
    >>> abilities(tried, np.zeros(3, int)).argsort().tolist()
    [2, 1, 0]
    """
    from scipy.special import expit

    tried = ~np.isnan(scores)
    ability, ease = np.zeros(len(scores)), np.zeros(scores.shape[1])
    members = np.bincount(styles)
    for step in range(100):
        gap = np.where(tried, scores - expit(ability[:, None] + ease), 0.0)
        # A quarter is the most that a logistic curve can bend: no step goes too far.
        if step % 2:
            ease += (gap.sum(0) - _RIDGE * ease) / (tried.sum(0) / 4 + _RIDGE)
        else:
            drawn = ability - (np.bincount(styles, ability) / members)[styles]
            ability += (gap.sum(1) - _RIDGE * drawn) / (tried.sum(1) / 4 + _RIDGE)
    return ability


def few_items_each(
    answers: Answers, pool: list[Candidate], items: Codes, budget: float, ask: Ask
) -> tuple[list[Candidate], float]:
    """The better quarter of candidates of many wordings, best first but the first of all in front,
    and what this cost.

    Every wording is tried on a few items, other wordings on other items. ``pool`` loses what the
    budget does not allow.
    """
    wordings: dict[tuple[int, int], list[Candidate]] = {}
    for each in pool:
        wordings.setdefault((each.voice, each.wordings[0]), []).append(each)
    groups = list(wordings.values())
    few = min(len(items), max(2, int(FIRST_SHARE * budget / max(answers.price(*pool), _TIE))))
    while len(groups) > 1 and answers.price(*pool) * few > budget / 2 + _TIE:
        gone = groups.pop()
        pool[:] = [each for each in pool if each not in gone]
    blocks = len(items) // few
    scores = {each.name: np.full(len(items), np.nan) for each in pool}
    for block in range(min(blocks, len(groups))):
        part = slice(block * few, (block + 1) * few)
        own = [each for group in groups[block::blocks] for each in group]
        ask(sorted(answers.columns(*own)), items[part])
        for each in own:
            scores[each.name][part] = answers.scores(each, items[part])
    names: dict[object, int] = {}
    styles = [
        names.setdefault((one.voice, one.orders, one.read, one.calibrated), len(names))
        for one in pool
    ]
    ability = abilities(np.stack([scores[each.name] for each in pool]), np.array(styles)).round(9)
    order = sorted(range(len(pool)), key=lambda n: (-ability[n], answers.price(pool[n]), n))
    best = [pool[n] for n in order[: max(FINAL, math.ceil(len(pool) / 4))] if n]
    return [pool[0], *best], few * answers.price(*pool)


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
    rank by `Answers.scores`, whose mean needs no error; ties go to the cheaper. More than `MANY`
    wordings are first tried on a few items each, which chooses a quarter of them.

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
    base, left = pool[0], pool
    if len({(each.voice, each.wordings) for each in pool}) > MANY:
        left, spent = few_items_each(answers, pool, items, budget, ask)
        budget -= spent
    first = min(FIRST, len(items))
    while len(left) > 1 and answers.price(*left) * first > budget / (1 + (len(left) > FINAL)):
        left.pop()
    left, tried = list(left), 0
    while True:
        rounds = max(1, math.ceil(math.log2(len(left) / FINAL)) + 1 if len(left) > FINAL else 1)
        rest = np.zeros(len(items) - tried)
        for v, w, o in answers.columns(*left):
            rest += answers.voices[v].price * ~answers.asked[v, items[tried:], w, o]
        more = int((rest.cumsum() <= budget / rounds + _TIE).sum())
        if more:
            ask(sorted(answers.columns(*left)), items[tried : tried + more])
            budget, tried = budget - float(rest[:more].sum()), tried + more
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
        note: called with the best way so far.

    Raises:
        JudgeSenseError: too few items, one label only, a budget below one pass.
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
            "verdict looks perfect: also label items with other answers"
        )
    if budget < (least := least_budget(answers)):
        raise JudgeSenseError(
            f"the budget is too small: your wording and one other on {len(answers.gold)} items "
            f"need {least:g}, but only {budget:g} is left. Raise --budget"
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
        fresh = [
            (v, w, o)
            for v, w, o in sorted(answers.columns(candidate))
            if not answers.asked[v, held, w, o].all()
        ]
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
            other["usd_or_prompts"] <= row["usd_or_prompts"]
            and other["right"] >= row["right"]
            and (other["usd_or_prompts"], -other["right"]) != (row["usd_or_prompts"], -row["right"])
            for other in rows
        )
    stages = chosen.members if chosen.combine == "cascade" else (chosen,)
    held = answers.plain(held)
    person, margins = with_person(
        [answers.decided(each, fit, fit) for each in stages],
        [answers.decided(each, held, fit) for each in stages],
        answers.gold[fit],
        answers.gold[held],
        answers.clusters[held],
        chosen.margins,
        max_error,
    )
    counts = np.bincount(answers.gold[held], minlength=len(answers.labels))
    constant = answers.labels[counts.argmax()], float(counts.max() / len(held))
    return Found(
        chosen, fit, rows, len(pool), len(fit), held, spent() - before, person, margins, constant
    )
