"""What a remedy gains on a log, cross-fitted, and the trust card of its verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from judgesense.log.array import NOT_ASKED, AnswerArray, Unit, Wording, answers_from
from judgesense.log.schema import CONTRAST, EQUIVALENT
from judgesense.measure.card import CHECKS, Check
from judgesense.measure.checks import trust_card
from judgesense.measure.thresholds import Thresholds
from judgesense.recipes.fitting import (
    Remedy,
    best_of,
    crossfitted,
    decide,
    order_groups,
    panels,
    verdicts_by_wording,
)
from judgesense.recipes.rules import TIE
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import UNDECIDED
from judgesense.statistics.comparison import Gain, paired_gain
from judgesense.statistics.selection import choice_error


def units_of(array: AnswerArray, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The verdicts of a remedy, cross-fitted: one unit per panel and group of orders.

    Panels that share no wording come first; each panel's units lie together.
    """
    if remedy == Remedy():
        return _as_logged(array)
    if remedy.chosen:
        return [_chosen(array, remedy, group, folds) for group in order_groups(array, remedy)]
    return _decided(
        crossfitted(array, folds) if remedy.calibrated else array, remedy, panels(array, remedy)
    )


def _decided(array: AnswerArray, remedy: Remedy, chosen: Iterable[tuple[int, ...]]) -> list[Unit]:
    """The verdicts of some panels, on an array whose priors are out already."""
    found = []
    for panel in chosen:
        name = " + ".join(array.wordings[n].name for n in panel)
        wording = array.wordings[panel[0]] if len(panel) == 1 else Wording(name)
        for group in order_groups(array, remedy):
            decided = decide(array, remedy, panel, group)
            tied = (decided.codes >= 0) & (decided.margin <= TIE)
            found.append(
                Unit(wording, group, decided.codes, tied if array.has_probabilities else None)
            )
    return found


def _chosen(array: AnswerArray, remedy: Remedy, group: tuple[str, ...], folds: Codes) -> Unit:
    # Nothing is calibrated here (`candidates`), so a wording's verdicts are the same in every fold.
    told, pool = verdicts_by_wording(array, remedy, group), array.of(EQUIVALENT)
    codes = np.full(len(array), NOT_ASKED)
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        best = best_of(array.take(outside), told[outside])
        codes[inside] = told[inside, pool.index(best)]
    return Unit(Wording("chosen wording"), group, codes)


def _as_logged(array: AnswerArray) -> list[Unit]:
    """The verdicts as logged: of two options with the same probability the log took the first."""
    turned = np.array([1, 0, *range(2, len(array.labels)), NOT_ASKED, UNDECIDED])
    found = []
    for wording in array.of(EQUIVALENT):
        for place, order in enumerate(array.orders):
            codes = array.verdicts[:, wording, place]
            codes = turned[codes] if order == "BA" else codes
            found.append(Unit(array.wordings[wording], (order,), codes))
    return found


def _contrasts(array: AnswerArray, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The contrast wordings with the same remedy: what `responsive` needs.

    A panel and a chosen wording are compared with each contrast wording by itself, and with each
    inverted one, since they have no opposite question of their own.
    """
    asked = array.of(CONTRAST)
    if remedy.panel > 1 or remedy.chosen:
        asked = [
            *asked,
            *(n for n in array.of(EQUIVALENT) if array.wordings[n].inverts(array.labels)),
        ]
    if remedy.calibrated and asked:
        array = crossfitted(array, folds)
    return [
        replace(
            unit,
            wording=replace(
                unit.wording,
                variant=unit.wording.variant or CONTRAST,
                variant_class=CONTRAST,
            ),
        )
        for unit in _decided(array, remedy, [(n,) for n in asked])
    ]


def measured(
    array: AnswerArray,
    remedy: Remedy,
    folds: Codes,
    thresholds: Thresholds,
    before: list[Unit],
    attacked: Check | None = None,
) -> dict[str, Any]:
    """A remedy's accuracy against asking as before, and the trust card of its verdicts.

    There is no card where nothing shows how steady the remedied verdicts are: one panel, or a
    wording chosen anew for each fold. ``before`` are the units as asked, and ``attacked``
    is their check `resistant`.
    """
    after = units_of(array, remedy, folds)
    told = np.stack([unit.codes for unit in after], axis=1)
    asked = told != NOT_ASKED
    card = None
    disjoint = len(array.of(EQUIVALENT)) // remedy.panel
    if not remedy.chosen and (remedy == Remedy() or disjoint > 1):
        compared = after
        if remedy.panel > 1:
            wordings = list(dict.fromkeys(unit.wording for unit in after))[:disjoint]
            compared = [unit for unit in after if unit.wording in wordings]
        answers = answers_from(array, [*compared, *_contrasts(array, remedy, folds)])
        if answers is not None:
            card = trust_card(answers, thresholds=thresholds, panel=remedy.panel, attacked=attacked)
    one, two = (_share_right(array, units) for units in (before, after))
    both = ~np.isnan(one) & ~np.isnan(two)
    gain = paired_gain(one[both], two[both], array.clusters[both]) if both.any() else None
    if remedy.chosen:
        gain = _widened(array, remedy, folds, gain)
    given = (told >= 0) & (array.gold >= 0)[:, None]
    ties = [unit.tied[unit.codes >= 0] for unit in after if unit.tied is not None]
    change = gain if remedy != Remedy() else None
    checks = card.checks if card else None
    return {
        "remedy": remedy.name,
        "prompts_per_item": remedy.prompts,
        "usd_per_item": None if array.mean_cost is None else array.mean_cost * remedy.prompts,
        "accuracy_before": gain.before if gain else None,
        "accuracy": gain.after if gain else None,
        "accuracy_decided": (
            float((told == array.gold[:, None])[given].mean()) if given.any() else None
        ),
        "gain": change.gain if change else None,
        "gain_ci_low": change.ci_low if change else None,
        "gain_ci_high": change.ci_high if change else None,
        "jss": checks["steady"].estimate if checks else None,
        "same_choice": checks["fair"].estimate if checks else None,
        "readable": float((told[asked] >= 0).mean()) if asked.any() else None,
        "ties": float(np.concatenate(ties).mean()) if ties and sum(map(len, ties)) else None,
        "n_items": int(asked.any(axis=1).sum()),
        "trust": card.trust if card else None,
        "because": list(card.because) if card else [],
        "checks": {name: checks[name].to_dict() for name in CHECKS} if checks else None,
    }


def _widened(array: AnswerArray, remedy: Remedy, folds: Codes, gain: Gain | None) -> Gain | None:
    """The gain of a chosen wording, whose interval allows for choosing another one."""
    from scipy.special import stdtrit

    if gain is None or gain.ci_low is None or gain.ci_high is None:
        return gain
    groups, pool = order_groups(array, remedy), array.of(EQUIVALENT)
    scores = np.full((len(groups), len(array), len(pool)), np.nan)
    for at, group in enumerate(groups):
        codes = verdicts_by_wording(array, remedy, group)
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


def _share_right(array: AnswerArray, units: list[Unit]) -> Floats:
    """The share of right verdicts of each item, shape (n,); NaN without gold or verdicts."""
    codes = np.stack([unit.codes for unit in units], axis=1)
    asked = (codes != NOT_ASKED) & (array.gold >= 0)[:, None]
    hits = ((codes == array.gold[:, None]) & asked).sum(axis=1).astype(float)
    total = asked.sum(axis=1)
    shares: Floats = np.divide(hits, total, out=np.full(len(hits), np.nan), where=total > 0)
    return shares
