"""What is said below an estimate: what it assumes, and what its intervals leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgesense.comparison.estimate_result import SystemScore
from judgesense.comparison.human_labels import Labels
from judgesense.comparison.verdicts import Verdicts
from judgesense.measure.agreement import position
from judgesense.statistics.arrays import Floats
from judgesense.text import number, percent

_RARE = 0.03
"""Rarer errors than this move a mean less than the interval is wide."""


def notes_of(people: Labels, n_wordings: int, rows: Sequence[SystemScore]) -> list[str]:
    """What the figures of all systems assume, and why one has none."""
    undecided = sum(row["n_undecided"] for row in rows)
    notes = {
        f"{undecided} outputs have no verdict. The 'judge alone' column leaves them out, and the "
        "correction gives them the mean verdict": undecided,
        f"{len(people.unmatched)} labels match no verdict and were left out. The first is in "
        f"{''.join(people.unmatched[:1])}": people.unmatched,
        f"the raters agree no better than chance (alpha {number(people.alpha)}). Discuss with them "
        "what a label means before you rely on the figures": (
            people.alpha is not None and people.alpha <= 0
        ),
        f"the raters tie on {people.ties} outputs, which count as the mean of the tied labels": (
            people.ties
        ),
        f"the intervals are for these {people.raters} raters; others may be stricter": (
            people.raters > 1
        ),
        "there is one wording, so the intervals say nothing about other wordings": n_wordings < 2,
        "there are two wordings, and the intervals are for these alone. Three or more would show "
        "how much wordings differ": n_wordings == 2,
        "the correction assumes that the labelled outputs are a random sample of each system's "
        "outputs" + ", except those that judgesense label picked" * people.picked: (
            people.sampled and np.isnan(people.values).any()
        ),
    }
    return [note for note, applies in notes.items() if applies] + [
        f"{row['system']}: {row['degenerate']}" for row in rows if row["degenerate"]
    ]


def unseen_errors(name: str, errors: Floats, step: float, width: float) -> Iterator[str]:
    """What a corrected score's interval leaves out: errors of more than a step of the scale, where
    no label shows one. ``errors`` are NaN on outputs without a label or a verdict."""
    off = np.abs(errors[~np.isnan(errors)])
    if width <= step or not len(off) or off.max() > step:
        return
    if (share := 1 - 0.05 ** (1 / len(off))) >= _RARE:
        yield (
            f"{name}: no labelled output is off by more than {number(step, 1)}. Larger errors on "
            f"up to {percent(share)} of the outputs would show in none of {len(off)} labels, and "
            "the interval leaves them out"
        )


def position_bias(read: Verdicts) -> list[str]:
    """What the order of the options does to choices that were asked in both orders."""
    both = position(read.answers) if read.answers.task.comparative else None
    if both is None or both.same_choice is None:
        return []
    first = both.first_position_rate
    takes = "" if first is None else f", and takes the first option {percent(first)} of the time"
    return [
        f"the judge makes the same choice in both orders on {percent(both.same_choice)} of "
        f"{both.n_items} items{takes}"
    ]
