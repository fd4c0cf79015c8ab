"""When `judgesense.statistics.wordings.screen` flags a wording; the command line reads it fast."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """When a wording is flagged.

    `unreadable`: share of answers without a decision above which it is unreadable. `opposite`:
    how far below 0 the association of an inverted wording is. `lower`: how much lower than the
    others' median the accuracy (without gold, the agreement) of an outlier is, at least, and how
    much less often camps agree with each other than within. `significant`: corrected p-value
    below which a wording is inverted or an outlier. `fewest`: clusters needed to say so.
    """

    unreadable: float = 0.5
    opposite: float = 0.2
    lower: float = 0.1
    significant: float = 0.05
    fewest: int = 10
