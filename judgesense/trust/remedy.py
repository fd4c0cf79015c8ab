"""A remedy: a change of asking or reading, fitted to a log's answers and applied to them.

Every remedy is a set of rules (:mod:`judgesense.trust.rules`). What a rule learns (offsets, the
best wording) is learned on some clusters and applied to the others, so no figure is about items
that the rule was fitted to. :mod:`judgesense.trust.remedies` makes a report's rows of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from judgesense.decisions import CONTRAST, EQUIVALENT
from judgesense.decisions.streams import Stream
from judgesense.statistics.calibration import (
    UNDECIDED,
    Gain,
    batch_offsets,
    calibrated,
    majority,
    paired_gain,
)
from judgesense.tasks import is_scale
from judgesense.trust.card import TrustCard
from judgesense.trust.checks import trust_card
from judgesense.trust.grid import NOT_ASKED, Grid, Unit, stream_of
from judgesense.trust.rules import AS_ASKED, OTHER_WORDINGS, Decided, Rule
from judgesense.trust.thresholds import DEFAULTS, Thresholds

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_PANELS = 10
"""Panels of the same size whose verdicts are averaged for a panel's accuracy."""


@dataclass(frozen=True)
class Remedy:
    """A change of asking or reading, or a combination.

    ``panel`` is the number of wordings behind a verdict; ``chosen`` takes the wording that was best
    on other items; ``repeats`` takes the majority of the answers to the same prompt.

    >>> Remedy(calibrated=True, panel=3).name
    'calibrated, panel of 3'
    """

    calibrated: bool = False
    expected: bool = False
    panel: int = 1
    chosen: bool = False
    both: bool = False
    repeats: int = 1

    @property
    def name(self) -> str:
        """The remedy in words, as ``--remedy`` takes it."""
        parts = [
            "calibrated" if self.calibrated else "",
            "expected score" if self.expected else "",
            f"panel of {self.panel}" if self.panel > 1 else "",
            "another wording" if self.chosen else "",
            "both orders" if self.both else "",
            f"majority of {self.repeats} repeats" if self.repeats > 1 else "",
        ]
        return ", ".join(part for part in parts if part) or AS_ASKED

    @property
    def prompts(self) -> int:
        """Prompts behind one verdict."""
        return self.panel * (2 if self.both else 1) * self.repeats


@dataclass(frozen=True)
class Measured:
    """A remedy's effect on a log: see :func:`measured`."""

    remedy: Remedy
    gain: Gain | None
    card: TrustCard | None
    readable: float | None
    n_items: int
    accuracy_decided: float | None = None

    def figure(self, check: str) -> float | None:
        """The estimate of one of the card's checks."""
        return None if self.card is None else self.card.checks[check].estimate


def candidates(grid: Grid) -> list[Remedy]:
    """The remedies that the log can measure, by the prompts that they cost.

    Combinations are included where both parts can add something: averaging both orders already
    removes a prior that is the same in both, so a two-way choice is not calibrated as well.
    """
    wordings = len(grid.of(EQUIVALENT))
    scale = is_scale(grid.labels) and len(grid.labels) > 2 and grid.has_probabilities
    orders = [False, True] if grid.both_orders else [False]
    found = []
    for panel in _panel_sizes(wordings, grid.has_probabilities):
        for both in orders:
            plain = Remedy(panel=panel, both=both)
            found.append(plain)
            prior = grid.has_probabilities and not (both and len(grid.labels) == 2)
            found += [replace(plain, calibrated=True)] * prior
            found += [replace(plain, expected=True)] * scale
            found += [replace(plain, calibrated=True, expected=True)] * (scale and prior)
    if wordings > 1:
        found += [Remedy(chosen=True, both=both) for both in orders]
    if grid.repeats is not None and grid.repeats.shape[3] > 2:
        found.append(Remedy(repeats=grid.repeats.shape[3]))
    found.remove(Remedy())
    return sorted(found, key=lambda remedy: remedy.prompts)


def _panel_sizes(wordings: int, probabilities: bool) -> list[int]:
    """1, and the sizes of panels worth a look: at most half of the wordings (two disjoint panels
    show how steady a panel is), or 3. Two votes that differ decide nothing."""
    sizes = (2, 3, 5) if probabilities else (3, 5)
    return [1, *(k for k in sizes if k <= wordings / 2 or (k == 3 and wordings >= 3))]


def remedy_named(name: str, grid: Grid) -> Remedy:
    """The remedy of that name among those the log can measure, or as asked.

    Raises ValueError that lists the names.
    """
    known = {remedy.name: remedy for remedy in [Remedy(), *candidates(grid)]}
    if name not in known:
        raise ValueError(f"unknown remedy {name!r}: choose one of {'; '.join(known)}")
    return known[name]


def panels(grid: Grid, remedy: Remedy) -> list[tuple[int, ...]]:
    """The panels of wordings of a remedy: first disjoint ones, then others up to MOST_PANELS.

    Each is a tuple of indices of the grid's wordings.
    """
    pool = grid.of(EQUIVALENT)
    k = remedy.panel
    if k == 1:
        return [(n,) for n in pool]
    disjoint = [tuple(pool[at : at + k]) for at in range(0, len(pool) - k + 1, k)]
    others = [each for each in combinations(pool, k) if each not in disjoint]
    rng = np.random.default_rng(0)
    rng.shuffle(others)
    return disjoint + others[: max(0, MOST_PANELS - len(disjoint))]


def n_disjoint(grid: Grid, remedy: Remedy) -> int:
    """How many of a remedy's panels, from the first on, share no wording."""
    return len(grid.of(EQUIVALENT)) // remedy.panel


def fit(grid: Grid, remedy: Remedy, panel: Sequence[int], orders: tuple[str, ...]) -> Rule:
    """The rule of a remedy for a panel of wordings, fitted to all items of the grid.

    Without an answer to learn from, the offsets are zero.
    """
    names = tuple(grid.wordings[n].name for n in panel)
    offsets: dict[str, dict[str, float]] = {}
    if remedy.calibrated:
        rows = np.stack([_offsets(grid, n) for n in panel])
        for name, row in zip((*names, OTHER_WORDINGS), (*rows, rows.mean(axis=0)), strict=True):
            offsets[name] = dict(zip(grid.labels, row.tolist(), strict=True))
    return Rule(
        remedy.name,
        names,
        orders,
        grid.labels,
        "vote"
        if not grid.has_probabilities
        else "expected score"
        if remedy.expected
        else "most probable",
        offsets,
    )


def _offsets(grid: Grid, wording: int) -> Floats:
    told = grid.logprobs[:, wording].reshape(-1, len(grid.labels))
    if np.isnan(told).any(axis=1).all():
        return np.zeros(len(grid.labels))
    return batch_offsets(told)


def decide(grid: Grid, panel: Sequence[int], rule: Rule) -> Decided:
    """A rule's verdicts on the items of a grid; NOT_ASKED where a prompt of it was not asked."""
    places = [grid.orders.index(order) for order in rule.orders]
    told = grid.logprobs[:, list(panel)][:, :, places]
    asked = grid.verdicts[:, list(panel)][:, :, places] != NOT_ASKED
    decided = rule.decide(told)
    missing = ~asked.reshape(len(grid), -1).all(axis=1)
    return replace(decided, codes=np.where(missing, NOT_ASKED, decided.codes))


def crossfitted(grid: Grid, folds: Codes) -> Grid:
    """The grid with each wording's prior taken out, as the other folds show it."""
    told = grid.logprobs.copy()
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        training = grid.take(outside)
        offsets = np.stack([_offsets(training, n) for n in range(len(grid.wordings))])
        told[inside] = calibrated(told[inside], offsets[:, None, :])
    return replace(grid, logprobs=told)


def best_wording(grid: Grid, remedy: Remedy, items: Codes, orders: tuple[str, ...]) -> int:
    """The wording whose verdicts are right most often on these items.

    Without gold labels it is the one that agrees most with the others' majority.
    """
    part = grid.take(items)
    pool = grid.of(EQUIVALENT)
    plain = replace(remedy, chosen=False)
    codes = np.stack([decide(part, (n,), fit(part, plain, (n,), orders)).codes for n in pool], 1)
    gold = part.gold
    if not (gold >= 0).any():
        votes_of = [np.delete(codes, at, axis=1) for at in range(len(pool))]
        aims = np.stack([majority(np.maximum(v, UNDECIDED), len(grid.labels)) for v in votes_of], 1)
    else:
        aims = np.repeat(gold[:, None], len(pool), axis=1)
    counted = (aims >= 0) & (codes != NOT_ASKED)
    hits = ((codes == aims) & counted).sum(axis=0)
    return pool[int(np.argmax(hits / np.maximum(counted.sum(axis=0), 1)))]


def order_groups(grid: Grid, remedy: Remedy) -> list[tuple[str, ...]]:
    """The option orders behind each verdict: all together, or each by itself."""
    return [grid.orders] if remedy.both else [(order,) for order in grid.orders]


def units_of(grid: Grid, remedy: Remedy, folds: Codes) -> list[Unit]:
    """The verdicts of a remedy, cross-fitted: one unit per panel and group of orders.

    The first `n_disjoint` panels come first; each panel's units lie together.
    """
    groups = order_groups(grid, remedy)
    if remedy == Remedy():
        return _as_logged(grid, groups)
    if remedy.calibrated:
        grid, remedy = crossfitted(grid, folds), replace(remedy, calibrated=False)
    if remedy.repeats > 1:
        return _repeated(grid, groups)
    if remedy.chosen:
        return [_chosen(grid, remedy, group, folds) for group in groups]
    return [
        Unit(
            " + ".join(grid.wordings[n].name for n in panel),
            group,
            decide(grid, panel, fit(grid, remedy, panel, group)).codes,
            panel[0] if len(panel) == 1 else None,
        )
        for panel in panels(grid, remedy)
        for group in groups
    ]


def _chosen(grid: Grid, remedy: Remedy, group: tuple[str, ...], folds: Codes) -> Unit:
    codes = np.full(len(grid), NOT_ASKED)
    for fold in np.unique(folds).tolist():
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        panel = (best_wording(grid, remedy, outside, group),)
        rule = fit(grid.take(outside), remedy, panel, group)
        codes[inside] = decide(grid.take(inside), panel, rule).codes
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

    A panel or a chosen wording has no contrast wording of its own.
    """
    if remedy.panel > 1 or remedy.chosen or remedy.repeats > 1 or not grid.of(CONTRAST):
        return []
    if remedy.calibrated:
        grid, remedy = crossfitted(grid, folds), replace(remedy, calibrated=False)
    groups = order_groups(grid, remedy)
    return [
        Unit(
            grid.wordings[n].name,
            group,
            decide(grid, (n,), fit(grid, remedy, (n,), group)).codes,
            n,
        )
        for n in grid.of(CONTRAST)
        for group in groups
    ]


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
    return Measured(
        remedy,
        _gain(grid, before, after),
        found,
        float((told[asked] >= 0).mean()) if asked.any() else None,
        int(asked.any(axis=1).sum()),
        _decided_accuracy(grid, told),
    )


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


def _right(grid: Grid, units: list[Unit]) -> Floats:
    codes = np.stack([unit.codes for unit in units], axis=1)
    asked = (codes != NOT_ASKED) & (grid.gold >= 0)[:, None]
    hits = ((codes == grid.gold[:, None]) & asked).sum(axis=1).astype(float)
    total = asked.sum(axis=1)
    shares: Floats = np.divide(hits, total, out=np.full(len(hits), np.nan), where=total > 0)
    return shares
