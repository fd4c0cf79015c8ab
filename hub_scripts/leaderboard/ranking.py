"""Shared ranks: a judge stands behind only those that are surely steadier.

Within one task, scoring and set of pairs, a judge's rank is one more than the number of judges
whose whole interval lies above its own. Judges whose intervals overlap are not told apart by
one another: neither counts against the other. Overlap is no equality, so of three judges in a row
the first may overlap the second and the second the third while the first lies above the third; the
second then shares the first's rank and the third stands behind the first alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hub_scripts.leaderboard.board import Entry
from judgesense.trust.thresholds import LEAST_COVERAGE


@dataclass(frozen=True)
class Standing:
    """An entry's rank; None with the reason why it has none."""

    entry: Entry
    rank: int | None
    why: str | None


def why_unranked(entry: Entry, cell: Mapping[str, Any] | None) -> str | None:
    """Why an entry can have no rank; None if it can."""
    if entry.is_baseline:
        return "a baseline, not a judge"
    if cell is None or cell["jss"] is None:
        return "no pair is decided on both sides"
    if cell["degenerate"] is not None or cell["verdict"] == "degenerate":
        return f"degenerate: {cell['degenerate'] or 'one label throughout'}"
    if cell["ci_low"] is None or cell["ci_high"] is None:
        return "no interval"
    if cell["coverage"] is not None and cell["coverage"] < LEAST_COVERAGE:
        return "fewer than half of its pairs are decided"
    return None


def standings(entries: Iterable[Entry], labels: str) -> list[list[Standing]]:
    """Entries in groups that can be compared: one task, scoring and set of pairs each.

    ``labels`` is ``raw`` or ``mapped``. Runs come before published figures, groups with more ranked
    entries first; within a group ranked entries come first, by rank and then by JSS, then those
    without a rank, then baselines. A baseline of a set of pairs is in each of its groups, once.
    """
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    baselines: dict[tuple[str, str], dict[str, Entry]] = {}
    for entry in entries:
        if entry.is_baseline:
            own = baselines.setdefault((entry.task, entry.pairs), {})
            own.setdefault(entry.judge, entry)
        else:
            groups.setdefault((entry.task, entry.pairs, entry.scoring), []).append(entry)
    found = []
    for (task, pairs, _), members in groups.items():
        ranked = _ranked(members, labels)
        ranked += [
            Standing(entry, None, why_unranked(entry, entry.cells.get(labels)))
            for entry in baselines.get((task, pairs), {}).values()
        ]
        found.append(sorted(ranked, key=lambda standing: _place(standing, labels)))
    return sorted(
        found,
        key=lambda group: (
            group[0].entry.task != "coherence",
            group[0].entry.task,
            group[0].entry.is_published,
            -sum(standing.rank is not None for standing in group),
            -len(group),
            group[0].entry.data,
            group[0].entry.pairs,
            group[0].entry.scoring,
        ),
    )


def _ranked(members: Sequence[Entry], labels: str) -> list[Standing]:
    reasons = [why_unranked(entry, entry.cells.get(labels)) for entry in members]
    able = [
        (entry.judge, entry.cells[labels])
        for entry, why in zip(members, reasons, strict=True)
        if why is None
    ]
    found = []
    for entry, why in zip(members, reasons, strict=True):
        rank = None
        if why is None:
            high = entry.cells[labels]["ci_high"]
            # A judge of two runs counts once, and never against itself.
            above = {judge for judge, cell in able if cell["ci_low"] > high}
            rank = 1 + len(above - {entry.judge})
        found.append(Standing(entry, rank, why))
    return found


def _place(standing: Standing, labels: str) -> tuple[Any, ...]:
    cell = standing.entry.cells.get(labels) or {}
    jss = cell.get("jss")
    return (
        standing.entry.is_baseline,
        standing.rank is None,
        standing.rank or 0,
        -(jss if jss is not None else -1),
        standing.entry.judge,
        standing.entry.run,
    )
