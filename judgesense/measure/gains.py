"""What a remedy gains on a log, cross-fitted, and the trust card of its verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.schema import CONTRAST, EQUIVALENT, SCHEMA, SCORES_IN_FORM
from judgesense.log.view import Stream, view
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
from judgesense.recipes.grid import NOT_ASKED, Grid
from judgesense.recipes.rules import TIE
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import UNDECIDED
from judgesense.statistics.comparison import Gain, paired_gain
from judgesense.statistics.selection import choice_error
from judgesense.tasks import UNCLEAR


@dataclass(frozen=True)
class Unit:
    """What gives one verdict per item after a remedy: the verdicts of one wording or panel.

    ``name`` stands for a template; ``codes`` are verdicts in the items' own order, shape (n,).
    ``orders`` are the option orders that the verdict holds for: one as asked, both if averaged.
    ``contrast`` marks another question than the other units ask. ``tied`` are the items whose two
    best labels are equally probable, so that the verdict is the first; None for votes.
    """

    name: str
    orders: tuple[str, ...]
    codes: Codes
    wording: int | None = None
    contrast: bool = False
    tied: Bools | None = None


def _as_stream(grid: Grid, units: list[Unit]) -> Stream | None:
    """The verdicts of units as a stream, which the trust card's checks take; None without any."""
    gold = np.array([*grid.labels, None], dtype=object)
    words = np.array([*grid.labels, UNCLEAR], dtype=object)
    parts = []
    for unit in units:
        items = np.flatnonzero(unit.codes != NOT_ASKED)
        named: tuple[str, str | None, str] = (unit.name, None, EQUIVALENT)
        raw = words
        if unit.wording is not None:
            wording = grid.wordings[unit.wording]
            named = (wording.template, wording.variant, wording.variant_class)
            raw = np.array([*grid.raw[unit.wording], UNCLEAR], dtype=object)
            if unit.contrast:
                named = (wording.template, wording.variant or CONTRAST, CONTRAST)
        for order in unit.orders if len(items) else ():
            turned = np.arange(len(words))
            if order == "BA":
                turned[:2] = [1, 0]
            codes = turned[unit.codes[items]]
            same = {
                "judge": grid.judge,
                "task": grid.task,
                "scoring": grid.scoring,
                "order": order,
                "template_id": named[0],
                "variant": named[1],
                "variant_class": named[2],
            }
            parts.append(
                pa.table(
                    {
                        "item_id": grid.items[items],
                        "cluster_id": grid.clusters[items].astype(str),
                        "raw_decision": raw[codes],
                        "decision": words[codes],
                        "gold": gold[turned[grid.gold[items]]],
                        **{
                            key: pa.repeat(pa.scalar(value, pa.string()), len(items))
                            for key, value in same.items()
                        },
                    }
                )
            )
    if not parts:
        return None
    table = pa.concat_tables([SCHEMA.empty_table(), *parts], promote_options="permissive")
    record = {
        "tasks": {grid.task: {"labels": grid.labels, "comparative": grid.comparative}},
        # A form of the reply that the grid holds is a rewording.
        "judges": [{"name": grid.judge, "describe": {SCORES_IN_FORM: True}}],
    }
    (stream,) = view(table, None, record).judged
    return stream


def units_of(grid: Grid, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The verdicts of a remedy, cross-fitted: one unit per panel and group of orders.

    Panels that share no wording come first; each panel's units lie together.
    """
    if remedy == Remedy():
        return _as_logged(grid)
    if remedy.chosen:
        return [_chosen(grid, remedy, group, folds) for group in order_groups(grid, remedy)]
    return _decided(
        crossfitted(grid, folds) if remedy.calibrated else grid, remedy, panels(grid, remedy)
    )


def _decided(
    grid: Grid, remedy: Remedy, chosen: Iterable[tuple[int, ...]], contrast: bool = False
) -> list[Unit]:
    """The verdicts of some panels, on a grid whose priors are out already."""
    found = []
    for panel in chosen:
        name = " + ".join(grid.wordings[n].name for n in panel)
        wording = panel[0] if len(panel) == 1 else None
        for group in order_groups(grid, remedy):
            decided = decide(grid, remedy, panel, group)
            tied = (decided.codes >= 0) & (decided.margin <= TIE)
            found.append(
                Unit(
                    name,
                    group,
                    decided.codes,
                    wording,
                    contrast,
                    tied if grid.has_probabilities else None,
                )
            )
    return found


def _chosen(grid: Grid, remedy: Remedy, group: tuple[str, ...], folds: Codes) -> Unit:
    # Nothing is calibrated here (`candidates`), so a wording's verdicts are the same in every fold.
    told, pool = verdicts_by_wording(grid, remedy, group), grid.of(EQUIVALENT)
    codes = np.full(len(grid), NOT_ASKED)
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        best = best_of(grid.take(outside), told[outside])
        codes[inside] = told[inside, pool.index(best)]
    return Unit("chosen wording", group, codes)


def _as_logged(grid: Grid) -> list[Unit]:
    """The verdicts as logged: of two options with the same probability the log took the first."""
    turned = np.array([1, 0, *range(2, len(grid.labels)), NOT_ASKED, UNDECIDED])
    found = []
    for wording in grid.of(EQUIVALENT):
        for place, order in enumerate(grid.orders):
            codes = grid.verdicts[:, wording, place]
            codes = turned[codes] if order == "BA" else codes
            found.append(Unit(grid.wordings[wording].name, (order,), codes, wording))
    return found


def _contrasts(grid: Grid, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The contrast wordings with the same remedy: what `responsive` needs.

    A panel and a chosen wording are compared with each contrast wording by itself, and with each
    inverted one, since they have no opposite question of their own.
    """
    asked = grid.of(CONTRAST)
    if remedy.panel > 1 or remedy.chosen:
        asked = [*asked, *(n for n in grid.of(EQUIVALENT) if _inverted(grid, n))]
    if remedy.calibrated and asked:
        grid = crossfitted(grid, folds)
    return _decided(grid, remedy, [(n,) for n in asked], contrast=True)


def _inverted(grid: Grid, wording: int) -> bool:
    """Whether the names of two labels are exchanged under a wording."""
    return any(
        raw != label and raw in grid.labels
        for raw, label in zip(grid.raw[wording], grid.labels, strict=True)
    )


def measured(
    grid: Grid,
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
    after = units_of(grid, remedy, folds)
    told = np.stack([unit.codes for unit in after], axis=1)
    asked = told != NOT_ASKED
    card = None
    disjoint = len(grid.of(EQUIVALENT)) // remedy.panel
    if not remedy.chosen and (remedy == Remedy() or disjoint > 1):
        compared = after
        if remedy.panel > 1:
            names = list(dict.fromkeys(unit.name for unit in after))[:disjoint]
            compared = [unit for unit in after if unit.name in names]
        stream = _as_stream(grid, [*compared, *_contrasts(grid, remedy, folds)])
        if stream is not None:
            card = trust_card(stream, thresholds=thresholds, panel=remedy.panel, attacked=attacked)
    one, two = (_share_right(grid, units) for units in (before, after))
    both = ~np.isnan(one) & ~np.isnan(two)
    gain = paired_gain(one[both], two[both], grid.clusters[both]) if both.any() else None
    if remedy.chosen:
        gain = _widened(grid, remedy, folds, gain)
    given = (told >= 0) & (grid.gold >= 0)[:, None]
    ties = [unit.tied[unit.codes >= 0] for unit in after if unit.tied is not None]
    change = gain if remedy != Remedy() else None
    checks = card.checks if card else None
    return {
        "remedy": remedy.name,
        "prompts_per_item": remedy.prompts,
        "usd_per_item": None if grid.mean_cost is None else grid.mean_cost * remedy.prompts,
        "accuracy_before": gain.before if gain else None,
        "accuracy": gain.after if gain else None,
        "accuracy_decided": (
            float((told == grid.gold[:, None])[given].mean()) if given.any() else None
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


def _widened(grid: Grid, remedy: Remedy, folds: Codes, gain: Gain | None) -> Gain | None:
    """The gain of a chosen wording, whose interval allows for choosing another one."""
    from scipy.special import stdtrit

    if gain is None or gain.ci_low is None or gain.ci_high is None:
        return gain
    groups, pool = order_groups(grid, remedy), grid.of(EQUIVALENT)
    scores = np.full((len(groups), len(grid), len(pool)), np.nan)
    for at, group in enumerate(groups):
        codes = verdicts_by_wording(grid, remedy, group)
        counted = (codes != NOT_ASKED) & (grid.gold >= 0)[:, None]
        scores[at][counted] = (codes == grid.gold[:, None])[counted]
    error = choice_error(scores, folds, grid.clusters)
    assert error is not None
    half = float(stdtrit(len(np.unique(grid.clusters)) - 1, 0.975)) * error
    return replace(
        gain,
        ci_low=max(-1.0, min(gain.ci_low, gain.gain - half)),
        ci_high=min(1.0, max(gain.ci_high, gain.gain + half)),
    )


def _share_right(grid: Grid, units: list[Unit]) -> Floats:
    """The share of right verdicts of each item, shape (n,); NaN without gold or verdicts."""
    codes = np.stack([unit.codes for unit in units], axis=1)
    asked = (codes != NOT_ASKED) & (grid.gold >= 0)[:, None]
    hits = ((codes == grid.gold[:, None]) & asked).sum(axis=1).astype(float)
    total = asked.sum(axis=1)
    shares: Floats = np.divide(hits, total, out=np.full(len(hits), np.nan), where=total > 0)
    return shares
