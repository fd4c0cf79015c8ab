"""The recipes that a search tries: of one wording and judge, and built from the good ones.

`first_recipes` lists the former, `combined_recipes` the latter; a new kind of recipe belongs in one
of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.wordings import WordingToTry
from judgesense.recipes.recipe import AS_ASKED, Recipe
from judgesense.statistics.arrays import Codes
from judgesense.tasks import Task, is_scale

PANELS = (2, 3, 5)
"""Sizes of panels of wordings; two votes that differ decide nothing."""

PASSED_ON = (0.15, 0.3, 0.5)
"""Shares of items that a cascade's first judge passes on."""

_JUDGES = 4
"""The best recipes of so many judges form juries and cascades."""

_TOPS = 3
"""The best recipes that also form cascades, whatever their judges."""

_RANK = {"given": 2, "alone": 2, "examples": 3, "form": 3, "paraphrase": 4, "reasoning": 5}
"""The order in which wordings take part if the budget is short; the base is 0."""


def first_recipes(answers: AnswersSoFar) -> list[Recipe]:
    """The recipes of one wording and one judge; the first one is the judge as it is asked.

    Those listed first take part if the budget is short.
    """
    probable = {each.judge for each in answers.judges if each.scoring == "options"}
    ranked: list[tuple[int, int, Recipe]] = []
    for n, judge in enumerate(answers.judges):
        for w, wording in enumerate(answers.wordings):
            if _is_tried(wording, judge, judge.judge in probable):
                lead = (
                    judge.name if answers.several else "",
                    wording.template.template_id if w else "",
                )
                place = _RANK[wording.kind] if w else 0
                plain = Recipe(
                    "",
                    (wording.template.template_id,),
                    answers.task.orders[:1],
                    answers.task.labels,
                    "most probable" if judge.scoring == "options" else "vote",
                    judge=n,
                )
                for recipe in _of_wording(plain, wording, answers.task):
                    orders = "each option alone" if wording.kind == "alone" else "both orders"
                    later = len(recipe.orders) > 1
                    rank = min(place + 1, 4) if later and w else place + later
                    ranked.append((rank, n, recipe.named(*lead, orders=orders)))
        ranked += [(1, n, recipe) for recipe in _of_samples(answers, n)]
    ranked.sort(key=lambda each: each[:2])
    first, *others = (recipe for _, _, recipe in ranked)
    return [replace(first, name=AS_ASKED), *others]


def _of_samples(answers: AnswersSoFar, number: int) -> list[Recipe]:
    """The majority of several samples of a judge's answer to the base wording, where it has them;
    for a choice between two also over both orders."""
    judge, task = answers.judges[number], answers.task
    again = [each.template.template_id for each in answers.wordings if each.kind == "repeat"]
    if not again or judge.scoring == "options":
        return []
    wordings = (answers.wordings[0].template.template_id, *again)
    panel = f"majority of {len(wordings)} answers"
    return [
        Recipe("", wordings, orders, task.labels, "vote", judge=number).named(
            judge.name if answers.several else "", panel=panel
        )
        for orders in dict.fromkeys((task.orders[:1], task.orders))
    ]


def _is_tried(wording: WordingToTry, judge: JudgeScoring, probable: bool) -> bool:
    """Whether a judge is asked in a wording: reasons need text, and where there are probabilities,
    text is for reasons alone; each option alone needs them."""
    if wording.kind == "repeat":
        return False
    if judge.scoring == "options":
        return wording.kind != "reasoning"
    return wording.kind == "reasoning" or (wording.kind != "alone" and not probable)


def _of_wording(plain: Recipe, wording: WordingToTry, task: Task) -> Iterator[Recipe]:
    """A judge's recipes with one wording; each option alone makes sense in both orders only. Two
    verdicts in text decide where the orders agree."""
    alone, probable = wording.kind == "alone", plain.needs_probabilities
    if not alone:
        yield plain
    if probable and not alone:
        yield replace(plain, calibrated=True)
    if probable and is_scale(task.labels) and len(task.labels) > 2:
        scored = replace(plain, read="expected score")
        yield from (scored, replace(scored, calibrated=True))
    if task.comparative:
        yield replace(plain, orders=task.orders)


def combined_recipes(
    answers: AnswersSoFar, alive: Sequence[Recipe], items: Codes, known: set[str]
) -> list[Recipe]:
    """Panels, juries and cascades of recipes that are still in the race.

    Their parts, and the margins of cascades, are chosen by the items so far. ``known`` are names
    that exist.
    """
    right = {recipe.name: answers.right(recipe, items, items).mean() for recipe in alive}
    best = sorted(alive, key=lambda recipe: (-right[recipe.name], len(recipe.wordings)))
    combined = list(_panels(answers, best))
    tops = [each for each in best if not each.members and each.read != "expected score"]
    by_judge: dict[int, Recipe] = {}
    for recipe in tops:
        by_judge.setdefault(answers.judges[recipe.judge].judge, recipe)
    leaders = list(by_judge.values())[:_JUDGES]
    for size in range(2, len(leaders) + 1):
        for members in combinations(leaders, size):
            votes = {each.read == "vote" for each in members}
            # Two votes that differ decide nothing.
            if len(votes) == 1 and (size > 2 or votes == {False}):
                parts = " + ".join(_label(answers, each) for each in members)
                combined.append(Recipe.together(f"jury ({parts})", "jury", members))
    good = [*leaders, *(each for each in tops[:_TOPS] if each not in leaders)]
    for dear, cheap in product(good, good):
        if answers.cost(cheap, items, items)[1] < answers.cost(dear, items, items)[1] and (
            (cheap.read == "vote") == (dear.read == "vote")
        ):
            combined += _cascades(answers, cheap, dear, items)
    return [recipe for recipe in combined if recipe.name not in known]


def _panels(answers: AnswersSoFar, best: Sequence[Recipe]) -> Iterator[Recipe]:
    """Panels of the best wordings that are asked and read alike."""
    styles: dict[tuple[object, ...], list[Recipe]] = {}
    for recipe in best:
        if not recipe.members and len(recipe.wordings) == 1:
            styles.setdefault(style_of(recipe), []).append(recipe)
    for alike in styles.values():
        first = alike[0]
        lead = answers.judges[first.judge].name if answers.several else ""
        for size in PANELS:
            if size <= len(alike) and (size > 2 or first.read != "vote" or len(first.orders) > 1):
                wordings = tuple(each.wordings[0] for each in alike[:size])
                panel = f"panel of {size} ({'+'.join(wordings)})"
                yield replace(first, wordings=wordings).named(lead, panel=panel)


def style_of(recipe: Recipe) -> tuple[object, ...]:
    """What recipes of other wordings have in common: how one judge is asked and read."""
    return recipe.judge, recipe.orders, recipe.read, recipe.calibrated


def _cascades(answers: AnswersSoFar, cheap: Recipe, dear: Recipe, items: Codes) -> Iterator[Recipe]:
    """Cascades of two recipes, by the share of items that the first passes on."""
    first = answers.decide(cheap, items, items)
    margins = np.where(first.codes >= 0, first.margin, 0.0)
    levels = {float(np.quantile(margins, share).round(6)): share for share in PASSED_ON}
    parts = f"{_label(answers, cheap)} > {_label(answers, dear)}"
    for level, share in levels.items():
        if level > 0:
            name = f"cascade ({parts}), passing on {share:.0%}"
            yield Recipe.together(name, "cascade", (cheap, dear), (level, None))


def _label(answers: AnswersSoFar, recipe: Recipe) -> str:
    judge = answers.judges[recipe.judge].name
    led = not answers.several or recipe.name.startswith(judge)
    return recipe.name if led else f"{judge}, {recipe.name}"
