"""Which number of items or labels settles a trust card, and how a gate behaves at its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

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
    checks: Mapping[str, Mapping[str, Any]], level: float = 0.95, sizes: Sequence[int] = SIZES
) -> dict[str, Any] | None:
    """What settles the open checks of a card: every one of them passes, or one fails.

    The estimates that a larger run would show are drawn from those of this one and their intervals
    (`judgesense.statistics.planning.Pilot`), and the conclusion from each draw. ``checks`` are
    those of a card, as in ``report.json``; ``level`` is the confidence level of `steady`, ``sizes``
    the numbers of items in all.

    Returns:
        ``open`` (the checks), ``n_items`` and ``n_labels`` so far; ``chances``, a row per number of
        items in all with the probability that it settles them (``chance``) and that the judge
        passes (``passes``);
        ``items_needed``, the smallest number with 80% probability, or None; ``labels_needed``, the
        same in labels where only `right` is open and fewer items have labels than verdicts;
        ``wordings_needed``, the wordings that settle `steady` on the largest number of items where
        no number of items does.
        None if no check is open, or one of those that are has no interval.
    """
    known: dict[str, Pilot] = {}
    n_items = 0
    for name, check in checks.items():
        n_items = max(n_items, check["n_items"])
        if check["applies"] and check["state"] == "open":
            if (pilot := _pilot(name, check, level)) is None:
                return None
            known[name] = pilot
    if not known:
        return None
    ladder = [size for size in sizes if size > n_items] or [2 * n_items, 4 * n_items]
    fine = np.unique(np.geomspace(n_items + 1, ladder[-1], 60).astype(int))
    every, rng = np.unique(np.concatenate([fine, ladder])), np.random.default_rng(0)
    drawn = np.stack(
        [
            # Items that a check cannot use (no label, one order) stay as rare as they are.
            pilot.drawn(checks[name]["threshold"], every * (pilot.seen / n_items), rng)
            for name, pilot in known.items()
        ]
    )
    passes = (drawn > 0).all(axis=0).mean(axis=1)
    chance = passes + (drawn < 0).any(axis=0).mean(axis=1)
    enough = every[chance >= PROBABILITY]
    needed = int(enough[0]) if len(enough) else None
    labels = None
    if needed is not None and [*known] == ["right"] and known["right"].seen < n_items:
        labels = int(np.ceil(needed * known["right"].seen / n_items))
        labels = labels if labels <= n_items else None
    wordings = None
    if needed is None and "steady" in known:
        wordings = _wordings_needed(checks["steady"], known["steady"])
    at = np.searchsorted(every, ladder)
    return {
        "open": [*known],
        "n_items": n_items,
        "n_labels": checks["right"]["n_items"],
        "chances": [
            {"items": size, "chance": float(chance[place]), "passes": float(passes[place])}
            for size, place in zip(ladder, at, strict=True)
        ],
        "items_needed": needed,
        "labels_needed": labels,
        "wordings_needed": wordings,
    }


def _pilot(name: str, check: Mapping[str, Any], level: float) -> Pilot | None:
    """What an open check tells of a larger run; None without an interval."""
    if check["estimate"] is None or check["ci_low"] is None or check["n_items"] < 2:
        return None
    details, fixed = check["details"], None
    scale = "share" if check["threshold"] == TURNED else _SCALES.get(name, "share")
    if name == "steady" and details.get("ci_low_fixed") is not None:
        fixed = (details["ci_low_fixed"], details["ci_high_fixed"])
    pilot = Pilot(
        check["estimate"],
        check["ci_low"],
        check["ci_high"],
        check["n_items"],
        scale,
        fixed,
        level if name == "steady" else 0.95,
    )
    if details.get("jss_low_ci_low") is not None:
        # Where pairs lack verdicts, the state is about both bounds of JSS.
        bounds = (details["jss_low"], details["jss_high"])
        low, high = details["jss_low_ci_low"], details["jss_high_ci_high"]
        pilot = replace(pilot, low=low, high=high, bounds=bounds)
    return pilot


def _wordings_needed(check: Mapping[str, Any], pilot: Pilot) -> int | None:
    """The wordings that settle `steady` on many items; None if twice to eight times do not."""
    now, limit = check["details"]["n_wordings"], check["threshold"]
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


def gate_outlook(check: Mapping[str, Any], level: float = 0.95) -> dict[str, float | None] | None:
    """How a gate on `steady`, as in ``report.json``, behaves on as many other items.

    Returns:
        ``passes_from``, the true JSS from which it passes with 80% probability at this size (None
        if no JSS does); ``passes`` and ``fails``, the probabilities of both for this judge. None
        without an interval.
    """
    pilot = _pilot("steady", check, level)
    if pilot is None or not 0 < check["threshold"] < 1:
        return None
    limit, n = check["threshold"], pilot.seen
    (states,) = pilot.drawn(limit, [n], np.random.default_rng(0), fresh=True)
    return {
        "passes_from": passes_from(pilot, limit),
        "passes": float((states > 0).mean()),
        "fails": float((states < 0).mean()),
    }


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


def chances_text(found: Mapping[str, Any]) -> str:
    """The chances of a plan in a sentence: ``The probability is 40% with 100 items, ...``."""
    rows = found["chances"][:SHOWN]
    shown = [f"{percent(row['chance'])} with {row['items']}" for row in rows]
    return f"The probability is {join([f'{shown[0]} items', *shown[1:]])}."
