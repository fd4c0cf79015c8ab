"""What a remedy gains on a log, cross-fitted, and the trust card of its verdicts.

:mod:`judgesense.trust.fitting` has what a remedy is and how it is fitted to some clusters and
applied to the others; :mod:`judgesense.trust.remedies` makes a report's rows of what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from judgesense.decisions import CONTRAST, EQUIVALENT
from judgesense.decisions.stream import Stream
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import UNDECIDED, Gain, majority, paired_gain
from judgesense.statistics.choosing import choice_error
from judgesense.trust.card import TrustCard
from judgesense.trust.checks import trust_card
from judgesense.trust.fitting import (
    Remedy,
    best_of,
    best_wording,
    candidates,
    crossfitted,
    decide,
    fit,
    n_disjoint,
    order_groups,
    panels,
    remedy_named,
    verdicts_by_wording,
)
from judgesense.trust.grid import NOT_ASKED, Grid
from judgesense.trust.rules import TIE
from judgesense.trust.thresholds import DEFAULTS, Thresholds
from judgesense.trust.units import Unit, stream_of

__all__ = [
    "Measured", "Remedy", "best_wording", "candidates", "crossfitted", "decide", "fit",
    "measured", "n_disjoint", "order_groups", "panels", "remedied", "remedy_named", "units_of",
]  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A remedy's effect on a log: see :func:`measured`."""

    remedy: Remedy
    gain: Gain | None
    card: TrustCard | None
    readable: float | None
    n_items: int
    accuracy_decided: float | None = None
    ties: float | None = None

    def figure(self, check: str) -> float | None:
        """The estimate of one of the card's checks."""
        return None if self.card is None else self.card.checks[check].estimate


def units_of(grid: Grid, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The verdicts of a remedy, cross-fitted: one unit per panel and group of orders.

    The first `n_disjoint` panels come first; each panel's units lie together.
    """
    groups = order_groups(grid, remedy)
    if remedy == Remedy():
        return _as_logged(grid, groups)
    if remedy.calibrated:
        grid, remedy = crossfitted(grid, folds, remedy.prior), replace(remedy, calibrated=False)
    if remedy.repeats > 1:
        return _repeated(grid, groups)
    if remedy.chosen:
        return [_chosen(grid, remedy, group, folds) for group in groups]
    found = []
    for panel in panels(grid, remedy):
        name = " + ".join(grid.wordings[n].name for n in panel)
        for group in groups:
            decided = decide(grid, panel, fit(grid, remedy, panel, group))
            tied = (decided.codes >= 0) & (decided.margin <= TIE)
            found.append(
                Unit(
                    name,
                    group,
                    decided.codes,
                    panel[0] if len(panel) == 1 else None,
                    tied=tied if grid.has_probabilities else None,
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


def _as_logged(grid: Grid, groups: list[tuple[str, ...]]) -> list[Unit]:
    """The verdicts as logged: of two options with the same probability the log took the first."""
    found = []
    for wording in grid.of(EQUIVALENT):
        for (order,) in groups:
            codes = grid.verdicts[:, wording, grid.orders.index(order)]
            codes = _turned(codes) if order == "BA" else codes
            found.append(Unit(grid.wordings[wording].name, (order,), codes, wording))
    return found


def _repeated(grid: Grid, groups: list[tuple[str, ...]]) -> list[Unit]:
    assert grid.repeats is not None
    found = []
    for wording in grid.of(EQUIVALENT):
        for (order,) in groups:
            told = grid.repeats[:, wording, grid.orders.index(order)]
            codes = majority(np.maximum(told, UNDECIDED), len(grid.labels))
            if order == "BA":
                codes = _turned(codes)
            codes = np.where((told == NOT_ASKED).any(axis=1), NOT_ASKED, codes)
            found.append(Unit(grid.wordings[wording].name, (order,), codes, wording))
    return found


def _turned(codes: Codes) -> Codes:
    turned: Codes = np.where(codes == 0, 1, np.where(codes == 1, 0, codes))
    return turned


def _contrasts(grid: Grid, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The contrast wordings with the same remedy: what `responsive` needs.

    A panel and a chosen wording are compared with each contrast wording by itself, and with each
    inverted one, since they have no opposite question of their own.
    """
    several = remedy.panel > 1 or remedy.chosen
    asked = grid.of(CONTRAST)
    if several:
        asked = [*asked, *(n for n in grid.of(EQUIVALENT) if _inverted(grid, n))]
    if remedy.repeats > 1 or not asked:
        return []
    if remedy.calibrated:
        grid = crossfitted(grid, folds, remedy.prior)
    remedy = Remedy(expected=remedy.expected, both=remedy.both)
    groups = order_groups(grid, remedy)
    return [
        Unit(
            grid.wordings[n].name,
            group,
            decide(grid, (n,), fit(grid, remedy, (n,), group)).codes,
            n,
            contrast=True,
        )
        for n in asked
        for group in groups
    ]


def _inverted(grid: Grid, wording: int) -> bool:
    """Whether the names of two labels are exchanged under a wording."""
    return any(
        raw != label and raw in grid.labels
        for raw, label in zip(grid.raw[wording], grid.labels, strict=True)
    )


def remedied(grid: Grid, remedy: Remedy, folds: Codes) -> Stream | None:
    """The cross-fitted verdicts as a stream that the trust card's checks take.

    Wordings are the single wordings, or disjoint panels. With both orders averaged, the verdict
    holds for both by construction. None if nothing was asked.
    """
    return _stream(grid, remedy, folds, units_of(grid, remedy, folds))


def _stream(grid: Grid, remedy: Remedy, folds: Codes, units: list[Unit]) -> Stream | None:
    if remedy.panel > 1:
        names = list(dict.fromkeys(unit.name for unit in units))[: n_disjoint(grid, remedy)]
        units = [unit for unit in units if unit.name in names]
    return stream_of(grid, [*units, *_contrasts(grid, remedy, folds)])


def measured(
    grid: Grid,
    remedy: Remedy,
    folds: Codes,
    thresholds: Thresholds = DEFAULTS,
    before: list[Unit] | None = None,
    card: bool = True,
) -> Measured:
    """A remedy's accuracy against asking as before, and the trust card of its verdicts.

    There is no card where nothing shows how steady the remedied verdicts are: one panel, or a
    wording chosen anew for each fold; and none without ``card``. ``before`` are the units as asked,
    if known.
    """
    before = before or units_of(grid, Remedy(), folds)
    after = units_of(grid, remedy, folds)
    told = np.stack([unit.codes for unit in after], axis=1)
    asked = told != NOT_ASKED
    found = None
    if card and not remedy.chosen and (remedy == Remedy() or n_disjoint(grid, remedy) > 1):
        stream = _stream(grid, remedy, folds, after)
        found = None if stream is None else trust_card(stream, thresholds=thresholds)
    gain = _gain(grid, before, after)
    return Measured(
        remedy,
        _widened(grid, remedy, folds, gain) if remedy.chosen else gain,
        found,
        float((told[asked] >= 0).mean()) if asked.any() else None,
        int(asked.any(axis=1).sum()),
        _decided_accuracy(grid, told),
        _ties(after),
    )


def _ties(units: list[Unit]) -> float | None:
    """The share of verdicts that are ties, among those read from probabilities."""
    given = sum(int((unit.codes >= 0).sum()) for unit in units if unit.tied is not None)
    tied = sum(int(unit.tied.sum()) for unit in units if unit.tied is not None)
    return tied / given if given else None


def _decided_accuracy(grid: Grid, told: Codes) -> float | None:
    """The share of right verdicts among those that were given, on items with gold."""
    given = (told >= 0) & (grid.gold >= 0)[:, None]
    return float((told == grid.gold[:, None])[given].mean()) if given.any() else None


def _gain(grid: Grid, before: list[Unit], after: list[Unit]) -> Gain | None:
    """The mean share of right verdicts per item, on items with gold and verdicts of both."""
    shares = [_right(grid, units) for units in (before, after)]
    known = ~np.isnan(shares[0]) & ~np.isnan(shares[1])
    if not known.any():
        return None
    return paired_gain(shares[0][known], shares[1][known], grid.clusters[known])


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


def _right(grid: Grid, units: list[Unit]) -> Floats:
    codes = np.stack([unit.codes for unit in units], axis=1)
    asked = (codes != NOT_ASKED) & (grid.gold >= 0)[:, None]
    hits = ((codes == grid.gold[:, None]) & asked).sum(axis=1).astype(float)
    total = asked.sum(axis=1)
    shares: Floats = np.divide(hits, total, out=np.full(len(hits), np.nan), where=total > 0)
    return shares
