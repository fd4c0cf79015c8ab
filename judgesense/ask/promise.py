"""What is promised: figures of recipes on the items that chose nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judgesense.ask.answers import AnswersSoFar
from judgesense.log.array import NOT_ASKED
from judgesense.recipes.recipe import TIE, Recipe, RecipeVerdicts
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import NO_VERDICT, longest_safe
from judgesense.statistics.comparison import paired_gain
from judgesense.statistics.intervals import Interval, wilson_cluster

_STEPS = 40
"""Levels of confidence that are tested for a person."""

FAIR = 0.9
"""A judge in text that makes the same choice in both orders less often is asked in both."""

RELIABLY = 2.0
"""Standard errors by which such a judge may not be right less often than in one order."""

_ENDS = ("", "_ci_low", "_ci_high")


def row_of(
    answers: AnswersSoFar, recipe: Recipe, base: Recipe, held: Codes, fit: Codes
) -> dict[str, Any]:
    """A row of the table: figures on the items of the promise, and on their attacked copies."""
    plain = answers.plain(held)
    codes = answers.decide(recipe, plain, fit).codes
    prompts, price = answers.cost(recipe, plain, fit)
    row: dict[str, Any] = {
        "way": recipe.name,
        "prompts_per_item": round(prompts, 3),
        "price": round(price, 6),
        "decided": float((codes >= 0).mean()),
        "n_items": len(plain),
        "steady": None,
        "steady_ci_low": None,
        "steady_ci_high": None,
        "fair": 1.0 if len(recipe.orders) > 1 and not recipe.members else None,
        "written": False,
    }
    copies = held[answers.attacked[held]]
    for name, gained, items in (("right", "gain", plain), ("resistant", "resistant_gain", copies)):
        row |= dict.fromkeys(f"{key}{end}" for key in (name, gained) for end in _ENDS)
        if not len(items):
            continue
        right, clusters = answers.right(recipe, items, fit), answers.clusters[items]
        row |= _figure(name, float(right.mean()), wilson_cluster(right, clusters))
        if recipe is not base:
            gain = paired_gain(answers.right(base, items, fit), right, clusters)
            row |= _figure(gained, gain.gain, Interval(gain.ci_low, gain.ci_high))
    return row


def _figure(name: str, value: float, ends: Interval) -> dict[str, Any]:
    return {name: value, f"{name}_ci_low": ends.low, f"{name}_ci_high": ends.high}


def probes_of(answers: AnswersSoFar, chosen: Recipe, left: Sequence[Recipe]) -> dict[str, Recipe]:
    """What shows how steady and fair the chosen recipe is: the same with other wordings, and with
    the options in the other order."""
    if chosen.members:
        return {}
    probes = {}
    if other_order := tuple(o for o in answers.task.orders if o not in chosen.orders):
        probes["fair"] = replace(chosen, orders=other_order)
    kinds = {each.template.template_id: each.kind for each in answers.wordings}
    kind, apart = kinds[chosen.wordings[0]], {"alone", "reasoning"}
    # The best of the others come first, then those of the same kind.
    order = [wording for recipe in left if not recipe.members for wording in recipe.wordings]
    order += [wording for wording in kinds if kinds[wording] == kind]
    others = [
        wording
        for wording in dict.fromkeys(order)
        if wording not in chosen.wordings
        and (kinds[wording] == kind or not apart & {kind, kinds[wording]})
    ]
    if len(others) >= len(chosen.wordings):
        probes["steady"] = replace(chosen, wordings=tuple(others[: len(chosen.wordings)]))
    return probes


def steadiness(
    answers: AnswersSoFar, chosen: Recipe, probes: dict[str, Recipe], held: Codes, fit: Codes
) -> dict[str, Any]:
    """How often each probe gives the verdict of the chosen recipe: figures of its row."""
    figures: dict[str, Any] = {}
    held = answers.plain(held)
    for name, other in probes.items():
        one, two = (answers.decide(each, held, fit).codes for each in (chosen, other))
        same = (one == two) & (one != NO_VERDICT)
        figures |= _figure(name, float(same.mean()), wilson_cluster(same, answers.clusters[held]))
    return figures


def is_ahead(gaps: Floats, clusters: Codes, errors: float) -> bool:
    """Whether a mean gap lies above 0 by some standard errors, over clusters of items."""
    codes = np.unique(clusters, return_inverse=True)[1]
    sums = np.bincount(codes, gaps - gaps.mean())
    k = len(sums)
    error = math.sqrt(k / (k - 1) * float(sums @ sums)) / len(gaps) if k > 1 else math.inf
    return float(gaps.mean()) > errors * error + TIE


def fairer(
    answers: AnswersSoFar, left: Sequence[Recipe], items: Codes
) -> tuple[Recipe, float | None]:
    """The recipe to choose among those left, best first, and `SearchResult.fair`.

    A judge in text that often takes the first option is asked in both orders, if such a recipe is
    not reliably right less often; what the orders do not agree on counts as wrong.
    """
    chosen = left[0]
    if chosen.members or chosen.read != "vote" or len(chosen.orders) > 1:
        return chosen, None
    if not answers.task.comparative or (fair := fairness(answers, chosen, items)) is None:
        return chosen, None
    right = answers.right(chosen, items, items).astype(float)
    if fair < FAIR:
        for other in left:
            if len(other.orders) > 1 and not other.members:
                gap = right - answers.right(other, items, items)
                if not is_ahead(gap, answers.clusters[items], RELIABLY):
                    return other, None
    return chosen, fair


def fairness(answers: AnswersSoFar, recipe: Recipe, items: Codes) -> float | None:
    """How often a recipe of one order makes the same choice in the other one, on the items where
    both are asked; None without any."""
    other = replace(recipe, orders=tuple(o for o in answers.task.orders if o not in recipe.orders))
    one, two = (answers.decide(each, items, items).codes for each in (recipe, other))
    both = (one != NOT_ASKED) & (two != NOT_ASKED)
    return float(((one == two) & (one >= 0))[both].mean()) if both.any() else None


def person_margins(
    answers: AnswersSoFar, chosen: Recipe, fit: Codes, held: Codes, max_error: float
) -> tuple[dict[str, Any], tuple[float, ...]]:
    """`with_person` for the chosen recipe, from the items of the search and of the promise."""
    cascade = chosen.combine == "cascade"
    stages = chosen.members if cascade else (chosen,)
    return with_person(
        [answers.decide(stage, fit, fit) for stage in stages],
        [answers.decide(stage, held, fit) for stage in stages],
        answers.gold[fit],
        answers.gold[held],
        answers.clusters[held],
        [margin for margin in chosen.margins if margin is not None],
        max_error,
    )


def with_person(
    searched: Sequence[RecipeVerdicts],
    promised: Sequence[RecipeVerdicts],
    searched_gold: Codes,
    gold: Codes,
    clusters: Codes,
    least: Sequence[float],
    max_error: float,
) -> tuple[dict[str, Any], tuple[float, ...]]:
    """The margins below which a person decides, so that at most ``max_error`` of the other verdicts
    are wrong with 95% confidence; none where no margins can promise it.

    Margins of different judges become comparable by how often they are right on the items of the
    search; one level of that confidence sets all of them. Levels are tested on the items of the
    promise, from the most cautious on.

    Args:
        searched, promised: the verdicts of a cascade's judges in turn (or of one) on the items of
            the search, and on those of the promise, with ``searched_gold`` and ``gold``.
        clusters: of the items of the promise.
        least: the margins of all but the last judge, which are only raised.

    Returns:
        ``ask_person`` as in a judge's file, and the margins of all but the last judge.
    """
    confidences = [
        _confidence(verdicts.margin, verdicts.codes, verdicts.codes == searched_gold)
        for verdicts in searched
    ]
    levels = [
        confidence(verdicts.margin)
        for confidence, verdicts in zip(confidences, promised, strict=True)
    ]
    pairs = list(zip(promised, levels, strict=True))
    tops = np.max([np.where(verdicts.codes >= 0, level, -1.0) for verdicts, level in pairs], axis=0)
    record: dict[str, Any] = {
        "max_error": max_error,
        "confidence": 0.95,
        "threshold": None,
        "answered": 0.0,
        "verdicts": len(gold),
        "needed": None,
    }
    if not (tops >= 0).any():
        return record, ()
    steps = np.unique(np.quantile(tops[tops >= 0], np.linspace(1, 0, _STEPS), method="lower"))[::-1]
    decided = np.zeros((len(steps), len(gold)), bool)
    wrong = decided.copy()
    policies = []
    for n, step in enumerate(steps):
        margins = tuple(
            max(floor, _least(verdicts.margin, level, step))
            for floor, (verdicts, level) in zip([*least, 0.0], pairs, strict=True)
        )
        policies.append(margins)
        for margin, verdicts in zip(margins, promised, strict=True):
            fresh = ~decided[n] & verdicts.is_confident(margin) & (verdicts.margin > TIE)
            decided[n] |= fresh
            wrong[n] |= fresh & (verdicts.codes != gold)
    safe = longest_safe(decided, wrong, clusters, max_error=max_error)
    if safe.step is None:
        return {**record, "needed": safe.needed}, ()
    done = decided[safe.step]
    record |= {
        "threshold": float(np.round(policies[safe.step][-1], 6)),
        "answered": float(done.mean()),
        "error": float(wrong[safe.step].sum() / done.sum()),
        "error_bound": safe.bound,
    }
    return record, policies[safe.step][:-1]


def _confidence(margin: Floats, codes: Codes, right: Bools) -> Callable[[Floats], Floats]:
    """From a margin to how often verdicts with such a margin are right: isotonic, and rising a
    little where that is flat."""
    from scipy.optimize import isotonic_regression

    margins = np.sort(margin[codes >= 0])
    if not len(margins):
        return lambda values: np.zeros(len(values))
    order = np.argsort(margin[codes >= 0], kind="stable")
    shares = isotonic_regression(right[codes >= 0][order].astype(float)).x

    def confidence(values: Floats) -> Floats:
        rank = np.searchsorted(margins, values, side="right") / len(margins)
        level: Floats = np.interp(values, margins, shares) + 1e-3 * rank + 1e-6 * np.tanh(values)
        return level

    return confidence


def _least(margin: Floats, level: Floats, step: float) -> float:
    """The least margin whose confidence reaches a step; above all margins if none does."""
    reached = margin[level >= step]
    least = reached.min() if len(reached) else margin.max() + 1.0
    # Rounded down, so that the margin tested is answered; a file holds six digits.
    return float(np.floor(least * 1e6) / 1e6)
