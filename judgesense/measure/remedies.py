"""How much each recipe improves a judge on a log, cross-fitted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from judgesense.log.answers import Answers
from judgesense.log.array import NOT_ASKED, AnswerArray, Wording, array_of
from judgesense.log.schema import CONTRAST, EQUIVALENT
from judgesense.measure.assessment import RemedyFigures
from judgesense.measure.card import CHECKS, TRUST, TrustCard
from judgesense.measure.checks import trust_card
from judgesense.measure.thresholds import DEFAULTS, FEWEST_FOR_REMEDIES, Thresholds
from judgesense.recipes.fitting import (
    Panel,
    best_of,
    crossfitted,
    measurable,
    n_panels,
    order_groups,
    panels,
    pool_of,
    verdicts_by_wording,
)
from judgesense.recipes.recipe import AS_ASKED, TIE, Recipe
from judgesense.recipes.units import Unit, answers_from
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import NO_VERDICT
from judgesense.statistics.comparison import Gain, paired_gain
from judgesense.statistics.selection import choice_error, folds_of
from judgesense.text import join, number, percent, plural_s, signed

MOST_ITEMS = 2_000
"""Remedies are measured on at most this many items, drawn at random: enough for 2 points."""

_SHOWN_UNDECIDED = 0.02
"""With more verdicts undecided, or tied, a remedy's text says how many."""


def remedies(
    answers: Answers,
    card: TrustCard,
    thresholds: Thresholds = DEFAULTS,
    mislabelled: Collection[str] = (),
) -> tuple[RemedyFigures, ...]:
    """What each recipe that the log can measure buys a judge on a task.

    The first row is ``as asked``; the others follow by the prompts that a verdict costs.

    Args:
        answers: a judge's answers.
        card: its trust card, which is that of the first row.
        thresholds: of the trust card.
        mislabelled: templates to leave out, before and after.
    """
    if len(answers.task.labels) < 2:
        return ()
    array = array_of(answers, mislabelled)
    wordings = len(array.of(EQUIVALENT))
    independent = len(np.unique(array.clusters))
    if independent < FEWEST_FOR_REMEDIES or (array.verdicts == NOT_ASKED).all() or not wordings:
        return ()
    if len(array) > MOST_ITEMS:
        sample = np.random.default_rng(0).choice(len(array), MOST_ITEMS, replace=False)
        array = array.take(np.sort(sample))
    trial = Trial(array, thresholds, card)
    rows: list[RemedyFigures] = []
    for recipe in measurable(array):
        row = trial.figures(recipe)
        if recipe.name == AS_ASKED:
            # As asked, the figures are those of the judge's own card: no page has two of them.
            row = _with_card(row, card)
        first = rows[0] if rows else row
        row = replace(row, jss_before=first.jss, same_choice_before=first.same_choice)
        rows.append(replace(row, text=_text(row)))
    absent = {}
    if array.task.comparative and not array.both_orders:
        absent["both orders"] = "add --orders AB,BA"
    if not array.has_probabilities:
        absent["calibrated"] = "add --scoring options with a judge that returns probabilities"
    if wordings < 2:
        absent["panel of 3"] = "judge the items under at least three wordings"
    for name, run in absent.items():
        rows.append(RemedyFigures(name, text=f"{name!r} was not measured: {run}"))
    return tuple(rows)


def _with_card(row: RemedyFigures, card: TrustCard) -> RemedyFigures:
    checks = {name: card.checks[name] for name in CHECKS}
    return replace(
        row,
        trust=card.trust,
        because=card.because,
        checks=checks,
        jss=checks["steady"].estimate,
        same_choice=checks["fair"].estimate,
    )


class Trial:
    """Recipes tried on the answers of a log, each on items that it was not fitted to.

    ``card`` is that of the judge as asked: no recipe is tried on attacks and damage.
    """

    def __init__(self, array: AnswerArray, thresholds: Thresholds, card: TrustCard) -> None:
        self.array, self.thresholds, self.card = array, thresholds, card
        self.folds = folds_of(array.clusters)
        self.before = _share_right(array, _as_logged(array))

    def figures(self, recipe: Recipe) -> RemedyFigures:
        """A recipe's accuracy against asking as before, and the trust card of its verdicts."""
        array, units = self.array, units_of(self.array, recipe, self.folds)
        codes = np.stack([unit.codes for unit in units], axis=1)
        judged, decided = codes != NOT_ASKED, (codes >= 0) & (array.gold >= 0)[:, None]
        after = _share_right(array, units)
        both = ~np.isnan(self.before) & ~np.isnan(after)
        gain = None
        if both.any():
            gain = paired_gain(self.before[both], after[both], array.clusters[both])
            if recipe.best_wording:
                gain = _widened(array, recipe, self.folds, gain)
            elif len(recipe.wordings) > 1:
                gain = _of_sampled_panels(array, recipe, units, gain)
        ties = [unit.tied[unit.codes >= 0] for unit in units if unit.tied is not None]
        prompts, cost = recipe.prompts_per_item, array.mean_cost
        row = RemedyFigures(
            recipe.name,
            prompts_per_item=prompts,
            usd_per_item=None if cost is None else cost * prompts,
            accuracy_before=gain.before if gain else None,
            accuracy=gain.after if gain else None,
            accuracy_decided=(
                float((codes == array.gold[:, None])[decided].mean()) if decided.any() else None
            ),
            readable=float((codes[judged] >= 0).mean()) if judged.any() else None,
            ties=float(np.concatenate(ties).mean()) if ties and sum(map(len, ties)) else None,
            n_items=int(judged.any(axis=1).sum()),
        )
        if gain and recipe.name != AS_ASKED:
            row = replace(row, gain=gain.gain, gain_ci_low=gain.ci_low, gain_ci_high=gain.ci_high)
        card = None if recipe.name == AS_ASKED else self._card(recipe, units)
        return _with_card(row, card) if card else row

    def _card(self, recipe: Recipe, units: list[Unit]) -> TrustCard | None:
        """The card of a recipe's verdicts; None where nothing shows how steady they are: one panel,
        or a wording chosen anew for each fold."""
        size = len(recipe.wordings)
        disjoint = len(self.array.of(EQUIVALENT)) // size
        if recipe.best_wording or disjoint < 2:
            return None
        if size > 1:
            compared = list(dict.fromkeys(unit.wording for unit in units))[:disjoint]
            units = [unit for unit in units if unit.wording in compared]
        answers = answers_from(self.array, [*units, *_contrasts(self.array, recipe, self.folds)])
        if answers is None:
            return None
        checks = self.card.checks
        return trust_card(
            answers,
            thresholds=self.thresholds,
            panel=size,
            attacked=checks["resistant"],
            noticed=checks["notices"],
        )


def units_of(array: AnswerArray, recipe: Recipe, folds: Codes) -> list[Unit]:
    """The verdicts of a recipe, cross-fitted: one unit per panel and group of orders.

    Panels that share no wording come first; each panel's units lie together.
    """
    if recipe.name == AS_ASKED:
        return _as_logged(array)
    if recipe.best_wording:
        return [_best(array, recipe, orders, folds) for orders in order_groups(array, recipe)]
    if recipe.calibrated:
        array = crossfitted(array, folds)
    return _decided(array, recipe, panels(array, recipe))


def _decided(array: AnswerArray, recipe: Recipe, chosen: Iterable[Panel]) -> list[Unit]:
    """The verdicts of some panels, on an array that is calibrated already."""
    units = []
    for panel in chosen:
        single = array.wordings[array.place(panel[0])] if len(panel) == 1 else None
        for orders in order_groups(array, recipe):
            verdicts = replace(recipe, wordings=panel, orders=orders).decide(array)
            tied = (verdicts.codes >= 0) & (verdicts.margin <= TIE)
            units.append(
                Unit(
                    single or Wording(" + ".join(panel)),
                    orders,
                    verdicts.codes,
                    tied if array.has_probabilities else None,
                )
            )
    return units


def _best(array: AnswerArray, recipe: Recipe, orders: tuple[str, ...], folds: Codes) -> Unit:
    # Nothing is calibrated here (`measurable`): a wording's verdicts are the same in every fold.
    by_wording = verdicts_by_wording(array, replace(recipe, orders=orders))
    codes = np.full(len(array), NOT_ASKED)
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        best = best_of(array.take(outside), by_wording[outside])
        codes[inside] = by_wording[inside, best]
    return Unit(Wording("chosen wording"), orders, codes)


def _as_logged(array: AnswerArray) -> list[Unit]:
    """The verdicts as logged: of two options with the same probability the log took the first."""
    other_order = np.array([1, 0, *range(2, len(array.labels)), NOT_ASKED, NO_VERDICT])
    units = []
    for wording in array.of(EQUIVALENT):
        for place, order in enumerate(array.orders):
            codes = array.verdicts[:, wording, place]
            codes = other_order[codes] if order == "BA" else codes
            units.append(Unit(array.wordings[wording], (order,), codes))
    return units


def _contrasts(array: AnswerArray, recipe: Recipe, folds: Codes) -> list[Unit]:
    """The contrast wordings with the same recipe: what `responsive` needs.

    A panel is compared with each contrast wording by itself, and with each inverted one, since it
    has no opposite question of its own.
    """
    wordings = [array.wordings[n] for n in array.of(CONTRAST)]
    if len(recipe.wordings) > 1:
        equivalent = (array.wordings[n] for n in array.of(EQUIVALENT))
        wordings += [wording for wording in equivalent if wording.inverts(array.labels)]
    if recipe.calibrated and wordings:
        array = crossfitted(array, folds)
    units = _decided(array, recipe, [(wording.name,) for wording in wordings])
    return [replace(unit, wording=unit.wording.as_contrast()) for unit in units]


def _widened(array: AnswerArray, recipe: Recipe, folds: Codes, gain: Gain) -> Gain:
    """The gain of a chosen wording, whose interval allows for choosing another one."""
    from scipy.special import stdtrit

    if gain.ci_low is None or gain.ci_high is None:
        return gain
    groups = order_groups(array, recipe)
    scores = np.full((len(groups), len(array), len(pool_of(array))), np.nan)
    for at, orders in enumerate(groups):
        codes = verdicts_by_wording(array, replace(recipe, orders=orders))
        counted = (codes != NOT_ASKED) & (array.gold >= 0)[:, None]
        scores[at][counted] = (codes == array.gold[:, None])[counted]
    error = choice_error(scores, folds, array.clusters)
    assert error is not None
    half = float(stdtrit(len(np.unique(array.clusters)) - 1, 0.975)) * error
    return replace(
        gain,
        ci_low=max(-1.0, min(gain.ci_low, gain.gain - half)),
        ci_high=min(1.0, max(gain.ci_high, gain.gain + half)),
    )


def _of_sampled_panels(array: AnswerArray, recipe: Recipe, units: list[Unit], gain: Gain) -> Gain:
    """The gain of a panel of any wordings, whose interval allows for measuring only some panels."""
    by_panel: dict[Wording, list[Unit]] = {}
    for unit in units:
        by_panel.setdefault(unit.wording, []).append(unit)
    from scipy.special import stdtrit

    shares = [_share_right(array, each) for each in by_panel.values()]
    # A panel without a verdict on a labelled item measures nothing.
    rights = [np.nanmean(share) for share in shares if np.isfinite(share).any()]
    measured, there_are = len(rights), n_panels(array, recipe)
    if gain.ci_low is None or gain.ci_high is None or not 1 < measured < there_are:
        return gain
    error = np.std(rights, ddof=1) * np.sqrt((1 / measured) * (1 - measured / there_are))
    half = float(stdtrit(measured - 1, 0.975) * error)
    return replace(
        gain,
        ci_low=max(-1.0, gain.gain - float(np.hypot(gain.gain - gain.ci_low, half))),
        ci_high=min(1.0, gain.gain + float(np.hypot(gain.ci_high - gain.gain, half))),
    )


def _share_right(array: AnswerArray, units: list[Unit]) -> Floats:
    """The share of right verdicts of each item, shape (n,); NaN without gold or verdicts."""
    codes = np.stack([unit.codes for unit in units], axis=1)
    graded = (codes != NOT_ASKED) & (array.gold >= 0)[:, None]
    hits = ((codes == array.gold[:, None]) & graded).sum(axis=1).astype(float)
    total = graded.sum(axis=1)
    shares: Floats = np.divide(hits, total, out=np.full(len(hits), np.nan), where=total > 0)
    return shares


def _text(row: RemedyFigures) -> str:
    parts = []
    if row.gain is not None:
        ends = [
            signed(100 * end, 1) for end in (row.gain_ci_low, row.gain_ci_high) if end is not None
        ]
        interval = f" [{', '.join(ends)}]" if ends else ""
        parts.append(
            f"is right on {percent(row.accuracy)} of items instead of "
            f"{percent(row.accuracy_before)} ({signed(100 * row.gain, 1)}{interval} points)"
        )
    elif row.accuracy is not None:
        parts.append(f"is right on {percent(row.accuracy)} of items")
    if row.readable is not None and row.readable < 1 - _SHOWN_UNDECIDED:
        parts.append(f"gives no verdict on {percent(1 - row.readable)}")
    lead = f"{join(parts)}. It " if parts else ""
    cost = f"needs {row.prompts_per_item} prompt{plural_s(row.prompts_per_item or 0)} per item"
    if row.jss is not None:
        instead = f" instead of {number(row.jss_before)}" if row.remedy != AS_ASKED else ""
        cost = f"has a JSS of {number(row.jss)}{instead} and {cost}"
    if row.ties is not None and row.ties > _SHOWN_UNDECIDED:
        cost += f". If labels tie ({percent(row.ties)} of verdicts), it takes the first one"
    return f"{row.remedy!r} {lead}{cost}"


def cheapest_that_passes(rows: Sequence[RemedyFigures]) -> RemedyFigures | None:
    """The row of the remedy to use: the cheapest whose card passes (`RemedyFigures.passes`).

    It has to pass each check that the first row, ``as asked``, fails: a check that a remedy leaves
    unmeasured is not put right. Among equally cheap ones, the better trust and then the higher
    accuracy come first. None if none passes.
    """
    failed = rows[0].because if rows and rows[0].trust == "avoid" else ()
    passing = [
        row
        for row in rows
        if row.passes and row.checks and all(row.checks[n].state == "pass" for n in failed)
    ]

    def rank(row: RemedyFigures) -> tuple[float, ...]:
        assert row.trust is not None
        cost = row.prompts_per_item or 0
        return cost, TRUST.index(row.trust), -(row.accuracy or 0.0), -(row.jss or 0.0)

    return min(passing, key=rank, default=None)
