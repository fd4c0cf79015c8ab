"""Which number of items or labels settles a trust card, and how a gate behaves at its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from judgesense.measure.assessment import Chance, GateOutlook, Plan
from judgesense.measure.card import Check
from judgesense.measure.thresholds import DEFAULTS, TURNED, WORDING_PRIOR
from judgesense.statistics.intervals import wilson, wilson_cluster
from judgesense.statistics.planning import PROBABILITY, Pilot
from judgesense.text import join, number, percent

SIZES = (50, 100, 200, 400, 800, 1600, 3200)
"""Numbers of items for which a plan has chances; a larger number is no plan."""

SHOWN = 4
"""Sizes that a sentence names."""

_SCALES = {"right": "correlation", "responsive": "ratio"}


def plan(
    checks: Mapping[str, Check], level: float = 0.95, sizes: Sequence[int] = SIZES
) -> Plan | None:
    """What settles the open checks of a card: every one of them passes, or one fails.

    The estimates that a larger run would show are drawn from those of this one and their intervals
    (`judgesense.statistics.planning.Pilot`), and the conclusion from each draw. ``level`` is the
    confidence level of `steady`, ``sizes`` the numbers of items in all. None if no check is open,
    or one of those that are has no interval.
    """
    pilots: dict[str, Pilot] = {}
    n_items = 0
    for name, check in checks.items():
        n_items = max(n_items, check.n_items)
        if check.applies and check.state == "open":
            if (pilot := _pilot(name, check, level)) is None:
                return None
            pilots[name] = pilot
    if not pilots:
        return None
    ladder = [size for size in sizes if size > n_items] or [2 * n_items, 4 * n_items]
    fine = np.unique(np.geomspace(n_items + 1, ladder[-1], 60).astype(int))
    every, rng = np.unique(np.concatenate([fine, ladder])), np.random.default_rng(0)
    states = np.stack(
        [
            # Items that a check cannot use (no label, one order) stay as rare as they are.
            pilot.drawn(checks[name].threshold, every * (pilot.seen / n_items), rng)
            for name, pilot in pilots.items()
        ]
    )
    passes = (states > 0).all(axis=0).mean(axis=1)
    chance = passes + (states < 0).any(axis=0).mean(axis=1)
    enough = every[chance >= PROBABILITY]
    needed = int(enough[0]) if len(enough) else None
    labels = None
    if needed is not None and [*pilots] == ["right"] and pilots["right"].seen < n_items:
        labels = int(np.ceil(needed * pilots["right"].seen / n_items))
        labels = labels if labels <= n_items else None
    wordings = None
    if needed is None and "steady" in pilots:
        wordings = _wordings_needed(checks["steady"], pilots["steady"])
    at = np.searchsorted(every, ladder)
    return Plan(
        open=(*pilots,),
        n_items=n_items,
        n_labels=checks["right"].n_items,
        chances=tuple(
            Chance(size, float(chance[place]), float(passes[place]))
            for size, place in zip(ladder, at, strict=True)
        ),
        items_needed=needed,
        labels_needed=labels,
        wordings_needed=wordings,
    )


def _pilot(name: str, check: Check, level: float) -> Pilot | None:
    """What an open check tells of a larger run; None without an interval."""
    if check.estimate is None or check.ci_low is None or check.n_items < 2:
        return None
    details, fixed = check.details, None
    scale = "share" if check.threshold == TURNED else _SCALES.get(name, "share")
    ends = details.get("ci_low_fixed"), details.get("ci_high_fixed")
    if name == "steady" and ends[0] is not None and ends[1] is not None:
        fixed = (ends[0], ends[1])
    pilot = Pilot(
        check.estimate,
        check.ci_low,
        check.ci_high,
        check.n_items,
        scale,
        fixed,
        level if name == "steady" else 0.95,
    )
    if (low := details.get("jss_low_ci_low")) is not None:
        # Where pairs lack verdicts, the state is about both bounds of JSS.
        bounds = (details["jss_low"], details["jss_high"])
        pilot = replace(pilot, low=low, high=details["jss_high_ci_high"], bounds=bounds)
    return pilot


def _wordings_needed(check: Check, pilot: Pilot) -> int | None:
    """The wordings that settle `steady` on many items; None if twice to eight times do not."""
    now, limit = check.details["n_wordings"], check.threshold
    if pilot.fixed is None or now < 2:
        return None
    for times in (2, 4, 8):
        # The spread over wordings shrinks with the root of their number.
        share = 1 / np.sqrt(times)
        low, high = pilot.fixed
        wider = replace(
            pilot,
            low=low + (pilot.low - low) * share,
            high=None if pilot.high is None else high + (pilot.high - high) * share,
        )
        states = wider.drawn(limit, [SIZES[-1]], np.random.default_rng(0))
        if (states != 0).mean() >= PROBABILITY:
            return int(now * times)
    return None


def gate_outlook(check: Check, level: float = 0.95) -> GateOutlook | None:
    """How a gate on the check `steady` behaves on as many other items; None without an interval."""
    pilot = _pilot("steady", check, level)
    if pilot is None or not 0 < check.threshold < 1:
        return None
    limit, n = check.threshold, pilot.seen
    (states,) = pilot.drawn(limit, [n], np.random.default_rng(0), fresh=True)
    return GateOutlook(
        passes_from=passes_from(pilot, limit),
        passes=float((states > 0).mean()),
        fails=float((states < 0).mean()),
    )


def passes_from(pilot: Pilot, threshold: float) -> float | None:
    """The true share from which a run like a pilot passes a threshold with 80% probability."""
    from scipy.special import ndtri, stdtrit

    t, n = float(stdtrit(max(1, pilot.seen - 1), (1 + pilot.level) / 2)), pilot.worth
    if n < 1:
        return None
    least = threshold + t * np.sqrt(threshold * (1 - threshold) / n)
    shares = np.linspace(threshold, 1, 1001)
    enough = shares[shares - ndtri(PROBABILITY) * np.sqrt(shares * (1 - shares) / n) >= least]
    return float(enough[0]) if len(enough) else None


def assumed(n_items: int, n_wordings: int, n_orders: int = 1, labelled: int = 0) -> str:
    """What a run of this size can settle, from assumed figures: the plan before there are data.

    The figures are those of an ordinary good judge: JSS 0.92 with an intra-cluster correlation of
    0.3 among the pairs of an item, and kappa 0.6 where items have labels.

    >>> assumed(50, 5).split(",")[0]
    'with 50 items under 5 wordings'
    """
    from scipy.special import ndtr, stdtrit

    text, jss, (sd, worth) = f"{n_items} items under {n_wordings} wordings", 0.92, WORDING_PRIOR
    if n_wordings < 2 or n_items < 2:
        return f"{text} are too few to tell whether a judge is steady"
    pairs = n_wordings * (n_wordings - 1) // 2 * n_orders
    t_items, t_wordings = (float(stdtrit(df, 0.975)) for df in (n_items - 1, worth))
    # As in `judgesense.statistics.crossed.two_way_interval`, before a run tells of its wordings.
    spread = 4 / n_wordings * (sd * t_wordings / t_items) ** 2 * jss * (1 - jss)
    n_eff = 1 / ((1 + (pairs - 1) * 0.3) / (n_items * pairs) + spread)
    pilot = Pilot(jss, *wilson(jss, n_eff, t_items), n_items, "share")
    least = passes_from(pilot, DEFAULTS.steady)
    perfect = wilson_cluster(np.ones(n_items * pairs), np.repeat(np.arange(n_items), pairs))
    if perfect.low is not None and perfect.low <= DEFAULTS.steady:
        least = None
    parts = [
        "no judge is likely to pass the 'steady' check"
        if least is None
        else f"a judge with a JSS of {number(least, 2)} passes the 'steady' check with "
        f"{percent(PROBABILITY)} probability"
    ]
    if labelled > 1:
        error = np.sqrt((1 - 0.6**2) / labelled)
        chance = float(ndtr((0.6 - DEFAULTS.right) / error - stdtrit(labelled - 1, 0.975)))
        parts.append(f"one with a κ of 0.6 passes 'right' with {percent(chance)} probability")
    return f"with {text}, {join(parts)}"


def chances_text(planned: Plan) -> str:
    """The chances of a plan in a sentence: ``The probability is 40% with 100 items, ...``."""
    shown = planned.chances[:SHOWN]
    # A size that settles nothing is no advice.
    likely = [row for row in shown if row.chance >= 0.01] or shown[-1:]
    first, *others = [f"{percent(row.chance)} with {row.items}" for row in likely]
    return f"The probability is {join([f'{first} items', *others])}."
