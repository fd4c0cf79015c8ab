"""What changes of asking and reading buy: the list ``remedies`` of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense.decisions.log import EQUIVALENT
from judgesense.decisions.view import Stream
from judgesense.statistics.selection import folds_of
from judgesense.text import number, percent, s
from judgesense.trust.card import CHECKS, TRUST
from judgesense.trust.fitting import (
    Remedy,
    candidates,
)
from judgesense.trust.gains import Measured, measured, units_of
from judgesense.trust.grid import NOT_ASKED, Grid, grid_of
from judgesense.trust.thresholds import DEFAULTS, FEWEST_FOR_REMEDIES, Thresholds

MOST_ITEMS = 2_000
"""Remedies are measured on at most this many items, drawn at random: enough for 2 points."""

_SHOWN_UNDECIDED = 0.02
"""With more verdicts undecided, or tied, a remedy's text says how many."""

PASSING = ("use", "care")
"""The values of ``trust`` with which a remedy can be recommended, if it is right as well."""


def remedies(
    stream: Stream,
    thresholds: Thresholds = DEFAULTS,
    mislabelled: Collection[str] = (),
) -> list[dict[str, Any]]:
    """What each remedy buys a judge on a task: rows of report.json's list ``remedies``.

    The first row is ``as asked``; the others follow by the prompts that a verdict costs. Figures
    are cross-fitted over clusters, on the items that both ways of asking share; ``accuracy`` counts
    an undecided verdict as wrong and averages wordings (and panels) per item;
    ``accuracy_decided`` leaves undecided verdicts out. ``ties`` is the share of verdicts between
    equally probable labels, which take the first. ``jss`` compares
    wordings of one polarity, or disjoint panels. ``trust``, ``because`` and ``checks`` are the
    card of the remedied verdicts. What the log cannot measure has a row without figures whose text
    says what to run.

    Args:
        stream: a judge's stream.
        thresholds: of the trust card.
        mislabelled: templates to leave out, before and after.
    """
    if len(stream.task.labels) < 2:
        return []
    grid = grid_of(stream, frozenset(mislabelled))
    if len(np.unique(grid.clusters)) < FEWEST_FOR_REMEDIES or (grid.verdicts == NOT_ASKED).all():
        return []
    if not grid.of(EQUIVALENT):
        return []
    if len(grid) > MOST_ITEMS:
        rng = np.random.default_rng(0)
        grid = grid.take(np.sort(rng.choice(len(grid), MOST_ITEMS, replace=False)))
    folds = folds_of(grid.clusters)
    before = units_of(grid, Remedy(), folds)
    plain = measured(grid, Remedy(), folds, thresholds, before)
    rows = [_row(grid, plain, plain)]
    for remedy in candidates(grid):
        rows.append(_row(grid, measured(grid, remedy, folds, thresholds, before), plain))
    absent = {}
    if grid.comparative and not grid.both_orders:
        absent["both orders"] = "add --orders AB,BA"
    if not grid.has_probabilities:
        absent["calibrated"] = "add --scoring options, with a judge that gives probabilities"
    if len(grid.of(EQUIVALENT)) < 2:
        absent["panel of 3"] = "judge the items under three wordings or more"
    for name, run in absent.items():
        row: dict[str, Any] = {
            **dict.fromkeys(rows[0]),
            "remedy": name,
            "n_items": 0,
            "because": [],
        }
        rows.append({**row, "text": f"{name}: not measured; {run}"})
    return rows


def _row(grid: Grid, found: Measured, plain: Measured) -> dict[str, Any]:
    gain, remedy, card = found.gain, found.remedy, found.card
    change = gain if remedy != Remedy() else None
    return {
        "remedy": remedy.name,
        "prompts_per_item": remedy.prompts,
        "usd_per_item": None if grid.mean_cost is None else grid.mean_cost * remedy.prompts,
        "accuracy_before": gain.before if gain else None,
        "accuracy": gain.after if gain else None,
        "accuracy_decided": found.accuracy_decided,
        "gain": change.gain if change else None,
        "gain_ci_low": change.ci_low if change else None,
        "gain_ci_high": change.ci_high if change else None,
        "jss_before": plain.figure("steady"),
        "jss": found.figure("steady"),
        "same_choice_before": plain.figure("fair"),
        "same_choice": found.figure("fair"),
        "readable": found.readable,
        "ties": found.ties,
        "n_items": found.n_items,
        "trust": card.trust if card else None,
        "because": list(card.because) if card else [],
        "checks": {name: card.checks[name].to_dict() for name in CHECKS} if card else None,
        "text": _text(found, plain),
    }


def _text(found: Measured, plain: Measured) -> str:
    gain, remedy = found.gain, found.remedy
    cost = f"{remedy.prompts} prompt{s(remedy.prompts)} per item"
    parts = []
    if gain and remedy != Remedy():
        ends = (
            ""
            if gain.ci_low is None or gain.ci_high is None
            else f" [{_points(gain.ci_low)}, {_points(gain.ci_high)}]"
        )
        parts.append(
            f"right on {percent(gain.after)} instead of {percent(gain.before)} "
            f"({_points(gain.gain)}{ends} points)"
        )
    elif gain:
        parts.append(f"right on {percent(gain.after)}")
    if found.readable is not None and found.readable < 1 - _SHOWN_UNDECIDED:
        undecided = f"undecided on {percent(1 - found.readable)}"
        if found.accuracy_decided is not None:
            undecided += f", right on {percent(found.accuracy_decided)} of the others"
        parts.append(undecided)
    if found.ties is not None and found.ties > _SHOWN_UNDECIDED:
        parts.append(f"ties on {percent(found.ties)}, which take the first label")
    jss, before = found.figure("steady"), plain.figure("steady")
    if jss is not None:
        was = "" if remedy == Remedy() or before is None else f", was {number(before)}"
        parts.append(f"JSS {number(jss)}{was}")
    if gain is None:
        parts.append("no gold labels: steadier is not righter")
    return f"{remedy.name} ({cost}): {'; '.join(parts)}"


def _points(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.1f}".replace("-", "−")


def passes(row: Mapping[str, Any]) -> bool:
    """Whether a row's card allows to use the remedy: steady, and in agreement with people.

    Without gold labels nothing passes: steadier is not righter.

    >>> passes({"trust": None, "checks": None})
    False
    """
    return row["trust"] in PASSING and bool(row["checks"]["right"]["state"] == "pass")


def cheapest_that_passes(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The row of the remedy to use: the cheapest whose card passes (see :func:`passes`).

    It has to pass each check that the first row, ``as asked``, fails: a check that a remedy leaves
    unmeasured is not put right. Among equally cheap ones, the better trust and then the higher
    accuracy come first. None if none passes.
    """
    failed = rows[0]["because"] if rows and rows[0]["trust"] == "avoid" else ()
    passing = [
        row
        for row in rows
        if passes(row) and all(row["checks"][name]["state"] == "pass" for name in failed)
    ]
    passing.sort(
        key=lambda row: (
            row["prompts_per_item"],
            TRUST.index(row["trust"]),
            -(row["accuracy"] or 0.0),
            -(row["jss"] or 0.0),
        )
    )
    return passing[0] if passing else None


def first_line(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """How a report begins where a remedy makes a judge usable that is not usable as asked.

    >>> rows = [{"remedy": "as asked", "trust": "avoid", "because": ["right"],
    ...          "prompts_per_item": 1},
    ...         {"remedy": "both orders", "trust": "use", "prompts_per_item": 2, "accuracy": 0.9,
    ...          "jss": 0.95, "checks": {"right": {"state": "pass"}}}]
    >>> first_line(rows)
    'avoid as asked; use with both orders averaged (2 prompts per item)'
    """
    best = cheapest_that_passes(rows)
    if not rows or best is None or rows[0]["trust"] in PASSING:
        return None
    was = {"avoid": "avoid as asked", "unknown": "not known yet as asked"}[rows[0]["trust"]]
    now = "use" if best["trust"] == "use" else "use with care"
    cost = best["prompts_per_item"]
    said = best["remedy"].replace("both orders", "both orders averaged")
    said = said.replace("calibrated", "its prior taken out")
    said = re.sub(r"panel of (\d+)", r"a panel of \1 wordings", said)
    return f"{was}; {now} with {said} ({cost} prompt{s(cost)} per item)"


def with_first_line(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A card's text that begins with :func:`first_line`, where there is one.

    >>> with_first_line("use: it is steady", [])
    'use: it is steady'
    """
    line = first_line(rows)
    return text if line is None else f"{line}: {text.split(': ', 1)[-1]}"
