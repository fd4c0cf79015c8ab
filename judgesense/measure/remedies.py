"""What changes of asking and reading buy: the list ``remedies`` of a report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense.log.answers import Answers
from judgesense.log.array import NOT_ASKED, array_of
from judgesense.log.schema import EQUIVALENT
from judgesense.measure.card import CHECKS, TRUST, TrustCard
from judgesense.measure.gains import measured, units_of
from judgesense.measure.thresholds import DEFAULTS, FEWEST_FOR_REMEDIES, Thresholds
from judgesense.recipes.fitting import AS_ASKED, Remedy, candidates
from judgesense.statistics.selection import folds_of
from judgesense.text import join, number, percent, s, signed

MOST_ITEMS = 2_000
"""Remedies are measured on at most this many items, drawn at random: enough for 2 points."""

_SHOWN_UNDECIDED = 0.02
"""With more verdicts undecided, or tied, a remedy's text says how many."""

PASSING = ("use", "care")
"""The values of ``trust`` with which a remedy can be recommended, if it is right as well."""


def remedies(
    stream: Answers,
    card: TrustCard,
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
        card: its trust card, which is that of the first row.
        thresholds: of the trust card.
        mislabelled: templates to leave out, before and after.
    """
    if len(stream.task.labels) < 2:
        return []
    array = array_of(stream, frozenset(mislabelled))
    if len(np.unique(array.clusters)) < FEWEST_FOR_REMEDIES or (array.verdicts == NOT_ASKED).all():
        return []
    if not array.of(EQUIVALENT):
        return []
    if len(array) > MOST_ITEMS:
        rng = np.random.default_rng(0)
        array = array.take(np.sort(rng.choice(len(array), MOST_ITEMS, replace=False)))
    folds = folds_of(array.clusters)
    before = units_of(array, Remedy(), folds)
    rows: list[dict[str, Any]] = []
    for remedy in (Remedy(), *candidates(array)):
        row = measured(array, remedy, folds, thresholds, before, card.checks["resistant"])
        if not rows:
            # As asked, the figures are those of the judge's own card: no page has two of them.
            checks = card.checks
            row |= {
                "trust": card.trust,
                "because": list(card.because),
                "checks": {name: checks[name].to_dict() for name in CHECKS},
                "jss": checks["steady"].estimate,
                "same_choice": checks["fair"].estimate,
            }
        plain = rows[0] if rows else row
        row |= {"jss_before": plain["jss"], "same_choice_before": plain["same_choice"]}
        rows.append({**row, "text": _text(row)})
    absent = {}
    if array.task.comparative and not array.both_orders:
        absent["both orders"] = "add --orders AB,BA"
    if not array.has_probabilities:
        absent["calibrated"] = "add --scoring options with a judge that returns probabilities"
    if len(array.of(EQUIVALENT)) < 2:
        absent["panel of 3"] = "judge the items under at least three wordings"
    for name, run in absent.items():
        row = {**dict.fromkeys(rows[0]), "remedy": name, "n_items": 0, "because": []}
        rows.append({**row, "text": f"{name!r} was not measured: {run}"})
    return rows


def _text(row: Mapping[str, Any]) -> str:
    parts = []
    if row["gain"] is not None:
        ends = [
            signed(100 * row[f"gain_ci_{end}"], 1)
            for end in ("low", "high")
            if row[f"gain_ci_{end}"] is not None
        ]
        shown = f" [{', '.join(ends)}]" if ends else ""
        parts.append(
            f"is right on {percent(row['accuracy'])} of items instead of "
            f"{percent(row['accuracy_before'])} ({signed(100 * row['gain'], 1)}{shown} points)"
        )
    elif row["accuracy"] is not None:
        parts.append(f"is right on {percent(row['accuracy'])} of items")
    if row["readable"] is not None and row["readable"] < 1 - _SHOWN_UNDECIDED:
        parts.append(f"gives no verdict on {percent(1 - row['readable'])}")
    lead = f"{join(parts)}. It " if parts else ""
    cost = f"needs {row['prompts_per_item']} prompt{s(row['prompts_per_item'])} per item"
    if row["jss"] is not None:
        instead = f" instead of {number(row['jss_before'])}" if row["remedy"] != AS_ASKED else ""
        cost = f"has a JSS of {number(row['jss'])}{instead} and {cost}"
    if row["ties"] is not None and row["ties"] > _SHOWN_UNDECIDED:
        cost += f". If labels tie ({percent(row['ties'])} of verdicts), it takes the first one"
    return f"{row['remedy']!r} {lead}{cost}"


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
