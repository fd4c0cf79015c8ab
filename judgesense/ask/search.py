"""The search: a race on one half of the items, and a promise measured on the other half.

The race chooses; the items of the promise choose nothing, so the accuracy that is promised is not
selected. Only answers are needed: :mod:`judgesense.ask.prompt_store` gets them from judges, the
benchmarks from logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.ask.answers import AnswersSoFar, Column
from judgesense.ask.candidates import combined_recipes, first_recipes, style_of
from judgesense.ask.promise import (
    fairer,
    is_ahead,
    person_margins,
    probes_of,
    row_of,
    steadiness,
)
from judgesense.errors import JudgeSenseError
from judgesense.recipes.recipe import Recipe
from judgesense.statistics.arrays import Codes, Floats

FEWEST, FEWEST_INDEPENDENT = 20, 10
"""Labelled items that a search needs, and clusters of them."""

RIVALS = 12
"""At most so many rows are measured for the table, beside the two that the promise needs."""

FOR_PROMISE = 0.35
"""The share of the budget that is kept for the promise, unless a single way needs more."""

MOST_PROMPTS = 6.0
"""Prompts per item of the promise that the race leaves unspent, at most; for each order in which a
judge that answers in text chooses between two."""

FIRST = 8
"""Items of the race's first round, at least."""

FINAL = 4
"""With at most so many recipes left, all go to the end."""

EVIDENCE = 0.5
"""Standard errors by which a recipe must be ahead of the first one to be chosen over it."""

MANY = 30
"""With more wordings than these, each is first tried on a few items of its own."""

FIRST_SHARE = 0.4
"""The share of the race's budget for that."""

_RIDGE = 1.0
_TIE = 1e-9

Ask = Callable[[Mapping[Column, Codes]], None]
"""Gets the answers to columns, each on some items. A batch API may take a day for each call, so
what is known to be needed is asked together."""


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    ``chosen`` is the recipe to write, with the items ``fit`` that its offsets are learned from.
    ``rows`` are those of the table, ``entered`` how many recipes took part, ``raced`` the items
    that the finalists were tried on, ``held_out`` those of the promise, both without attacked
    copies. ``ask_person`` is as in a judge's file, ``margins`` are those of the chosen recipe's
    judges with a person behind them. ``constant`` is the most frequent label of the items held out
    and its share. ``fair`` is how often a judge in text, asked in one order, makes the same choice
    in the other one; None where that is not asked, or where the chosen recipe asks both.
    """

    chosen: Recipe
    fit: Codes
    rows: list[dict[str, Any]]
    entered: int
    raced: int
    held_out: Codes
    spent: float
    ask_person: dict[str, Any]
    margins: tuple[float, ...]
    constant: tuple[str, float]
    fair: float | None = None


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
    # The first two clusters of each label are dealt to both halves before the others are.
    two = [n for label in np.unique(labels) for n in np.flatnonzero(labels == label)[:2]]
    order = np.concatenate([shuffled[two], np.delete(shuffled, two)])
    held = np.isin(clusters, names[order[1::2]])
    search, promise = np.flatnonzero(~held), np.flatnonzero(held)
    return rng.permutation(search), rng.permutation(promise)


def least_budget(answers: AnswersSoFar) -> float:
    """The least budget: the judge as asked, and one other way, on every item."""
    prices = [answers.price(recipe) for recipe in first_recipes(answers)[:8]]
    return len(answers.gold) * (prices[0] + min(prices))


def abilities(scores: Floats, styles: Codes) -> Floats:
    """How good each recipe is (log-odds) where each is tried on other items: a two-way logistic
    model of recipes and items.

    Abilities are drawn towards the mean of their style, items towards 0.

    Source: Polo et al. 2024, "Efficient multi-prompt evaluation of LLMs" (PromptEval).

    Args:
        scores: from 0 to 1, shape (recipes, items); NaN where not tried.
        styles: a number per recipe.

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
    answers: AnswersSoFar, pool: list[Recipe], items: Codes, budget: float, ask: Ask
) -> tuple[list[Recipe], float]:
    """The better quarter of recipes of many wordings, best first but the first of all in front, and
    what this cost.

    Every wording is tried on a few items, other wordings on other items. ``pool`` loses what the
    budget does not allow.
    """
    by_wording: dict[tuple[int, str], list[Recipe]] = {}
    for recipe in pool:
        by_wording.setdefault((recipe.judge, recipe.wordings[0]), []).append(recipe)
    groups = list(by_wording.values())
    few = min(len(items), max(2, int(FIRST_SHARE * budget / max(answers.price(*pool), _TIE))))
    while len(groups) > 1 and answers.price(*pool) * few > budget / 2 + _TIE:
        dropped = groups.pop()
        pool[:] = [recipe for recipe in pool if recipe not in dropped]
    blocks = len(items) // few
    scores = {recipe.name: np.full(len(items), np.nan) for recipe in pool}
    parts, grid = list[tuple[slice, list[Recipe]]](), dict[Column, Codes]()
    for block in range(min(blocks, len(groups))):
        part = slice(block * few, (block + 1) * few)
        parts.append((part, [recipe for group in groups[block::blocks] for recipe in group]))
        for column in sorted(answers.columns(*parts[-1][1])):
            grid[column] = np.append(grid.get(column, items[:0]), items[part])
    ask(grid)
    for part, recipes in parts:
        for recipe in recipes:
            scores[recipe.name][part] = answers.scores(recipe, items[part])
    numbers: dict[object, int] = {}
    styles = [numbers.setdefault(style_of(recipe), len(numbers)) for recipe in pool]
    table = np.stack([scores[recipe.name] for recipe in pool])
    ability = abilities(table, np.array(styles)).round(9)
    order = sorted(range(len(pool)), key=lambda n: (-ability[n], answers.price(pool[n]), n))
    best = [pool[n] for n in order[: max(FINAL, math.ceil(len(pool) / 4))] if n]
    return [pool[0], *best], few * answers.price(*pool)


def race(
    answers: AnswersSoFar,
    pool: list[Recipe],
    items: Codes,
    budget: float,
    ask: Ask,
    grow: Callable[[Sequence[Recipe], Codes], list[Recipe]],
    note: Callable[[str], None],
    stays: Sequence[Recipe] = (),
) -> tuple[list[Recipe], int]:
    """Paired successive halving: all recipes left are tried on the same items, the worse half
    leaves, and the rest goes on to more items.

    The first recipe is what others must beat: it stays to the end, and another one wins only if it
    is right more often by `EVIDENCE` standard errors, over clusters of items. The rounds before
    rank by `AnswersSoFar.scores`, whose mean needs no error; ties go to the cheaper. More than
    `MANY` wordings are first tried on a few items each, which chooses a quarter of them.

    Source: Karnin, Koren & Somekh 2013; Jamieson & Talwalkar 2016, "Non-stochastic best arm
    identification".

    Args:
        pool: the recipes, to which new ones are added; those listed first enter if the budget is
            short.
        items: in random order.
        budget: never exceeded.
        grow: from the recipes left and the items so far to new ones that need no other prompts.
        stays: recipes that, like the first one, go to the end.

    Returns:
        The recipes left, the winner first and then by rank, and the number of items that they were
        tried on.
    """
    base, left = pool[0], pool
    if len({(recipe.judge, recipe.wordings) for recipe in pool}) > MANY:
        left, spent = few_items_each(answers, pool, items, budget, ask)
        budget -= spent
    first = min(FIRST, len(items))
    while len(left) > 1 and answers.price(*left) * first > budget / (1 + (len(left) > FINAL)):
        left.pop()
    left, tried = list(left), 0
    while True:
        rounds = max(1, math.ceil(math.log2(len(left) / FINAL)) + 1 if len(left) > FINAL else 1)
        rest = np.zeros(len(items) - tried)
        for column in answers.columns(*left):
            rest += answers.price_of([column]) * answers.unanswered(column, items[tried:])
        more = int((rest.cumsum() <= budget / rounds + _TIE).sum())
        if more:
            ask(dict.fromkeys(sorted(answers.columns(*left)), items[tried : tried + more]))
            budget, tried = budget - float(rest[:more].sum()), tried + more
            combined = grow(left, items[:tried])
            pool += combined
            left += combined
        seen = items[:tried]
        scores = {
            recipe.name: round(float(answers.scores(recipe, seen).mean()), 9) for recipe in left
        }
        places = {recipe.name: place for place, recipe in enumerate(pool)}
        left.sort(key=lambda each: (-scores[each.name], answers.price(each), places[each.name]))
        yours, right = (answers.right(each, seen, seen).astype(float) for each in (base, left[0]))
        note(
            f"after {tried} of {len(items)} items, {len(left)} ways are left; the best is "
            f"{left[0].name!r}, right on {right.mean():.0%} (your wording: {yours.mean():.0%})"
        )
        if rounds == 1 or not more or tried == len(items):
            break
        better = left[: max(FINAL, math.ceil(len(left) / 2))]
        kept = [base, *(recipe for recipe in stays if recipe in left)]
        left = [*kept, *(recipe for recipe in better if recipe not in kept)]
    winner = left[0] if is_ahead(right - yours, answers.clusters[seen], EVIDENCE) else base
    return [winner, *(recipe for recipe in left if recipe is not winner)], tried


def search(
    answers: AnswersSoFar,
    budget: float,
    ask: Ask,
    *,
    seed: int = 0,
    max_error: float = 0.05,
    combine: bool = True,
    left_out: Codes | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> SearchResult:
    """Race the recipes on half of the items and measure the best ones on the other half.

    Args:
        answers: with the labels of every item; ``ask`` fills in the answers.
        budget: in the unit of the judges' prices, for all items together.
        ask: gets the answers to some columns on some items.
        seed: fixes the halves and the order of the items.
        max_error: the share of wrong verdicts that the threshold for a person allows.
        combine: whether panels, juries and cascades are tried.
        left_out: items of the search that recipes are not tried on: examples in a wording.
        note: called with the best way so far.

    Raises:
        JudgeSenseError: too few items, one label only, a budget below one pass.
    """
    _require_enough(answers, budget)
    items, held = halves(answers.gold, answers.clusters, seed)
    if left_out is not None:
        items = items[~np.isin(items, left_out)]
    pool = first_recipes(answers)
    base, most = pool[0], budget / len(held)
    pool = [base, *(each for each in pool[1:] if answers.price(base, each) <= 0.5 * most + _TIE)]
    # Panels and the like only where the race keeps most of the budget.
    needed = max(answers.price(base, recipe) for recipe in pool)
    dearest = max(judge.price for judge in answers.judges)
    in_text = base.read == "vote"
    many = MOST_PROMPTS * (len(answers.task.orders) if in_text else 1)
    cap = max(needed, min(FOR_PROMISE * most, many * dearest))
    twins = [
        recipe
        for recipe in pool
        if in_text and len(recipe.orders) > 1 and _alike(recipe) == _alike(base)
    ]

    def grow(left: Sequence[Recipe], seen: Codes) -> list[Recipe]:
        if not combine:
            return []
        asked, known = answers.columns(*left), {recipe.name for recipe in pool}
        # The race takes those whose prompts are asked anyway; the promise must afford them.
        return [
            recipe
            for recipe in combined_recipes(answers, left, seen, known)
            if answers.price(base, recipe) <= cap + _TIE and answers.columns(recipe) <= asked
        ]

    before = answers.spent
    left, raced = race(answers, pool, items, budget - cap * len(held), ask, grow, note, twins)
    chosen, fair = fairer(answers, left, items[:raced])
    fit = answers.plain(items[:raced])
    columns, left_over = answers.columns(base, chosen), budget - (answers.spent - before)

    def affordable(recipe: Recipe) -> bool:
        """Whether the budget allows a recipe on the items of the promise, beside those before."""
        nonlocal columns
        more = columns | answers.columns(recipe)
        if answers.price_of(more) * len(held) > left_over + _TIE:
            return False
        columns = more
        return True

    probes = probes_of(answers, chosen, left)
    probes = {name: probe for name, probe in probes.items() if affordable(probe)}
    table = [base, *([chosen] if chosen is not base else [])]
    for recipe in left:
        if recipe not in table and len(table) < RIVALS and affordable(recipe):
            table.append(recipe)
    ask(dict.fromkeys(sorted(columns), held))
    rows = [row_of(answers, recipe, base, held, fit) for recipe in table]
    written = rows[table.index(chosen)]
    written |= {**steadiness(answers, chosen, probes, held, fit), "written": True}
    _mark_pareto(rows)
    held = answers.plain(held)
    person, margins = person_margins(answers, chosen, fit, held, max_error)
    if not answers.labelled:
        # What is wrong on damaged copies says nothing of how often verdicts are.
        person, margins = {}, ()
    counts = np.bincount(answers.gold[held], minlength=len(answers.task.labels))
    return SearchResult(
        chosen=chosen,
        fit=fit,
        rows=rows,
        entered=len(pool),
        raced=len(fit),
        held_out=held,
        spent=answers.spent - before,
        ask_person=person,
        margins=margins,
        constant=(answers.task.labels[counts.argmax()], float(counts.max() / len(held))),
        fair=fair,
    )


def _alike(recipe: Recipe) -> tuple[object, ...]:
    """What a recipe and the same in both orders have in common."""
    return recipe.judge, recipe.wordings, recipe.read, recipe.calibrated


def _mark_pareto(rows: Sequence[dict[str, Any]]) -> None:
    """Mark each row that no other one beats: as right for less, or more right for as much."""
    for row in rows:
        figures = row["price"], -row["right"]
        others = [(other["price"], -other["right"]) for other in rows]
        row["pareto"] = not any(
            other != figures and other[0] <= figures[0] and other[1] <= figures[1]
            for other in others
        )


def _require_enough(answers: AnswersSoFar, budget: float) -> None:
    """Refuse too few items, one label only, and a budget below one pass."""
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
            f"every label is {answers.task.labels[answers.gold[0]]}, so a judge that always gives "
            "this verdict looks perfect: also label items with other answers"
        )
    if budget < (least := least_budget(answers)):
        raise JudgeSenseError(
            f"the budget is too small: your wording and one other on {len(answers.gold)} items "
            f"need {least:g}, but only {budget:g} is left. Raise --budget"
        )
