"""The recipes that a log can measure, and how they are fitted to its answers.

What a recipe learns (offsets, the best wording) is learned on some clusters and applied to the
others, so no figure is about items that it was fitted to.
:mod:`judgesense.measure.remedies` measures what recipes gain.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED, AnswerArray
from judgesense.log.schema import EQUIVALENT
from judgesense.recipes.recipe import Recipe
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import NO_VERDICT, batch_offsets, calibrated, majority
from judgesense.tasks import is_scale

MOST_PANELS = 10
"""Panels of the same size whose verdicts are averaged for a panel's accuracy."""

MOST_LISTED = 12
"""Wordings of which every panel is listed; of more, panels are drawn."""

Panel = tuple[str, ...]
"""The names of the wordings behind a verdict."""


def pool_of(array: AnswerArray) -> list[str]:
    """The names of the equivalent wordings."""
    return [array.wordings[n].name for n in array.of(EQUIVALENT)]


def measurable(array: AnswerArray) -> list[Recipe]:
    """The recipes that a log can measure: as asked, then the others by the prompts that they cost.

    Each stands for the same recipe with other wordings (`panels`). Combinations are included where
    both parts can add something: averaging both orders already removes a preference for a label
    that is the same in both, so a two-way choice is not calibrated as well.
    """
    pool, labels = pool_of(array), array.labels
    probable = array.has_probabilities
    scale = is_scale(labels) and len(labels) > 2 and probable
    orders = [array.orders[:1], *([array.orders] if array.both_orders else [])]
    plain = Recipe("", tuple(pool[:1]), orders[0], labels, "most probable" if probable else "vote")
    recipes = []
    for size in _panel_sizes(len(pool), probable):
        for recipe_orders in orders:
            recipe = replace(plain, wordings=tuple(pool[:size]), orders=recipe_orders)
            variants = [recipe, replace(recipe, read="expected score")] if scale else [recipe]
            if probable and not (len(recipe_orders) > 1 and len(labels) == 2):
                variants += [replace(v, calibrated=True) for v in variants]
            panel = f"panel of {size}" if size > 1 else ""
            recipes += [variant.named(panel=panel) for variant in variants]
    if len(pool) > 1:
        pool_recipe = replace(plain, wordings=tuple(pool), best_wording=True)
        recipes += [replace(pool_recipe, orders=recipe_orders).named() for recipe_orders in orders]
    return [recipes[0], *sorted(recipes[1:], key=lambda recipe: recipe.prompts_per_item)]


def _panel_sizes(wordings: int, probabilities: bool) -> list[int]:
    """1, and the sizes of panels worth a look: at most half of the wordings (two disjoint panels
    show how steady a panel is), or 3. Two votes that differ decide nothing."""
    sizes = (2, 3, 5) if probabilities else (3, 5)
    return [1, *(k for k in sizes if k <= wordings / 2 or (k == 3 and wordings >= 3))]


def recipe_named(name: str, array: AnswerArray) -> Recipe:
    """The recipe of that name among those the log can measure.

    Raises JudgeSenseError that lists the names.
    """
    recipes = {recipe.name: recipe for recipe in measurable(array)}
    if name not in recipes:
        raise JudgeSenseError(f"unknown remedy {name!r}: choose one of {'; '.join(recipes)}")
    return recipes[name]


def panels(array: AnswerArray, recipe: Recipe) -> list[Panel]:
    """The panels of wordings that a recipe is measured on: first disjoint ones, then others up to
    MOST_PANELS. They are a sample of `n_panels`."""
    pool, k = pool_of(array), len(recipe.wordings)
    if k == 1:
        return [(name,) for name in pool]
    disjoint = [tuple(pool[at : at + k]) for at in range(0, len(pool) - k + 1, k)]
    n_more, rng = MOST_PANELS - len(disjoint), np.random.default_rng(0)
    if n_more <= 0:
        return disjoint
    if len(pool) <= MOST_LISTED:
        candidates = [panel for panel in combinations(pool, k) if panel not in disjoint]
        rng.shuffle(candidates)
        return disjoint + candidates[:n_more]
    sample = dict.fromkeys(disjoint)
    while len(sample) < MOST_PANELS:
        # Of 13 wordings there are so many panels that one is seldom drawn twice.
        sample[tuple(pool[n] for n in np.sort(rng.choice(len(pool), k, replace=False)))] = None
    return list(sample)


def n_panels(array: AnswerArray, recipe: Recipe) -> int:
    """How many panels there are of a recipe's size."""
    return comb(len(pool_of(array)), len(recipe.wordings))


def order_groups(array: AnswerArray, recipe: Recipe) -> list[tuple[str, ...]]:
    """The option orders behind each verdict: all together, or each by itself."""
    return [recipe.orders] if len(recipe.orders) > 1 else [(order,) for order in array.orders]


def offsets_of(array: AnswerArray) -> Floats:
    """The judge's preference for each label under each wording, in nats, shape (wordings, L)."""
    by_wording = array.logprobs.swapaxes(0, 1).reshape(len(array.wordings), -1, len(array.labels))
    return np.stack([batch_offsets(answers) for answers in by_wording])


def crossfitted(array: AnswerArray, folds: Codes) -> AnswerArray:
    """The array corrected for each wording's preference for a label, as the other folds show it."""
    logprobs = array.logprobs.copy()
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        offsets = offsets_of(array.take(outside))
        logprobs[inside] = calibrated(logprobs[inside], offsets[:, None, :])
    return replace(array, logprobs=logprobs)


def verdicts_by_wording(array: AnswerArray, recipe: Recipe) -> Codes:
    """The verdicts of each equivalent wording by itself, shape (n, wordings)."""
    singles = [replace(recipe, wordings=(name,), best_wording=False) for name in pool_of(array)]
    return np.stack([single.decide(array).codes for single in singles], axis=1)


def best_of(array: AnswerArray, codes: Codes) -> int:
    """The place among the equivalent wordings of the one whose verdicts (`verdicts_by_wording`) are
    right most often, or without gold labels agree most with the others' majority."""
    if not (array.gold >= 0).any():
        votes_of = [np.delete(codes, at, axis=1) for at in range(codes.shape[1])]
        majorities = [majority(np.maximum(v, NO_VERDICT), len(array.labels)) for v in votes_of]
        aims = np.stack(majorities, axis=1)
    else:
        aims = np.repeat(array.gold[:, None], codes.shape[1], axis=1)
    counted = (aims >= 0) & (codes != NOT_ASKED)
    hits = ((codes == aims) & counted).sum(axis=0)
    return int(np.argmax(hits / np.maximum(counted.sum(axis=0), 1)))
