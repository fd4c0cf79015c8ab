"""Rank the entries of a board, and say why an entry has no rank.

Judges of the same task, scoring and pairs are ranked by their intervals: see
:func:`judgesense.statistics.ranks.interval_ranks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hub_scripts.leaderboard.board import BoardEntry
from judgesense.reporting.summary import reasons
from judgesense.run_folder.report import KAPPA_UNDEFINED, task_rank
from judgesense.statistics.ranks import interval_ranks
from judgesense.trust.card import TRUST
from judgesense.trust.discrimination import discrimination
from judgesense.trust.thresholds import LEAST_COVERAGE


@dataclass(frozen=True)
class Standing:
    """The rank of an entry, or None and the reason why it has none.

    ``last`` is the worst rank that the intervals allow: ``rank`` and ``last`` are its rank's range.
    """

    entry: BoardEntry
    rank: int | None
    why: str | None
    last: int | None = None


def why_unranked(entry: BoardEntry, cell: Mapping[str, Any] | None) -> str | None:
    """Why an entry cannot have a rank; None if it can."""
    if entry.is_baseline:
        return "a baseline, not a judge"
    if cell is None or cell["jss"] is None:
        return "no pair is decided on both sides"
    if cell["degenerate"] is not None:
        return f"says nothing about rewording: {cell['degenerate'].removesuffix(KAPPA_UNDEFINED)}"
    if cell["ci_low"] is None or cell["ci_high"] is None:
        return "no interval"
    if cell["coverage"] is not None and cell["coverage"] < LEAST_COVERAGE:
        return "fewer than half of its pairs are decided"
    return None if entry.trust is None else _why_not_trusted(entry)


def _why_not_trusted(entry: BoardEntry) -> str | None:
    """Why a judge has no place among the others.

    A rank compares how steady judges are. It presumes that each is right and fair, and that its
    own steadiness is settled.
    """
    card, checks = entry.trust or {}, entry.checks
    failed = [name for name in card["because"] if name != "steady"]
    if card["trust"] == "avoid" and failed:
        return reason(entry)
    if not checks:
        return None
    right, fair = checks["right"], checks["fair"]
    if right["estimate"] is None:
        return "no gold labels, so it is not compared with a constant answer"
    if (right["details"].get("beats_constant_ci_low") or 0) <= 0:
        short = "not shown to be more right than a constant answer"
        beyond = "agrees with people beyond chance, but is "
        return beyond + short if right["state"] == "pass" else short
    if fair["applies"] and fair["state"] != "pass":
        return "not shown to choose the same in both orders"
    if card["trust"] == "unknown":
        return reason(entry)
    return None


def reason(entry: BoardEntry) -> str | None:
    """The two worst reasons of its trust card; None if it has none."""
    return "; ".join(islice(reasons(entry.trust or {"because": ()}), 2)) or None


def _tells_apart(members: Iterable[BoardEntry]) -> str | None:
    """Why the task of these entries, which judged the same pairs, ranks nobody; None if it does."""
    cards = [
        {"judge": entry.judge, "scoring": entry.scoring, "checks": entry.checks}
        for entry in members
        if entry.checks
    ]
    found = discrimination(cards)
    return None if found.ranks else found.text


def standings(entries: Iterable[BoardEntry], labels: str) -> list[list[Standing]]:
    """Entries in comparable groups: the same task, scoring and pairs.

    ``labels`` is ``raw`` or ``mapped``. Runs come before published figures, and groups with more
    ranked entries come first. A group has its ranked entries first, by rank and then by JSS, then
    those without a rank by trust, whether a change makes them usable, and how much more often they
    are right than a constant answer, then the baselines of its pairs, each once.
    """
    groups: dict[tuple[str, str, str], list[BoardEntry]] = {}
    baselines: dict[tuple[str, str], dict[str, BoardEntry]] = {}
    for entry in entries:
        if entry.is_baseline:
            shown = baselines.setdefault((entry.task, entry.pairs), {})
            shown.setdefault(entry.judge, entry)
        else:
            groups.setdefault((entry.task, entry.pairs, entry.scoring), []).append(entry)
    found = []
    pairs_of: dict[tuple[str, str], list[BoardEntry]] = {}
    for (task, pairs, _), members in groups.items():
        pairs_of.setdefault((task, pairs), []).extend(members)
    unfit = {key: _tells_apart(members) for key, members in pairs_of.items()}
    for (task, pairs, _), members in groups.items():
        own = baselines.get((task, pairs), {}).values()
        whole = _ranked([*members, *own], labels, unfit[task, pairs])
        found.append(sorted(whole, key=lambda standing: _place(standing, labels)))
    return sorted(
        found,
        key=lambda group: (
            task_rank(group[0].entry.task),
            group[0].entry.is_published,
            -sum(standing.rank is not None for standing in group),
            -len(group),
            group[0].entry.data,
            group[0].entry.pairs,
            group[0].entry.scoring,
        ),
    )


def _ranked(members: Sequence[BoardEntry], labels: str, unfit: str | None = None) -> list[Standing]:
    """``unfit`` is why the task ranks nobody, unless an entry has a reason of its own."""
    reasons = [why_unranked(entry, entry.figure(labels)) or unfit for entry in members]
    able = [entry for entry, why in zip(members, reasons, strict=True) if why is None]
    cells = [entry.figure(labels) or {} for entry in able]
    low, high = ([cell[end] for cell in cells] for end in ("ci_low", "ci_high"))
    names = [entry.judge for entry in able]
    # From the other end: how many lie wholly below.
    below = interval_ranks([-end for end in high], [-end for end in low], names)
    n_judges = len(set(names))
    ranges = iter(zip(interval_ranks(low, high, names).tolist(), below.tolist(), strict=True))
    found = []
    for entry, why in zip(members, reasons, strict=True):
        first, after = next(ranges) if why is None else (None, None)
        last = None if first is None else max(first, n_judges + 1 - after)
        found.append(Standing(entry, first, why, last))
    return found


def _place(standing: Standing, labels: str) -> tuple[Any, ...]:
    entry = standing.entry
    jss = (entry.figure(labels) or {}).get("jss")
    usable: tuple[float, ...] = ()
    if standing.rank is None:
        # The more usable judge first: a constant answer is steady and useless.
        trust = (entry.trust or {}).get("trust", "unknown")
        right = entry.checks["right"]["details"] if entry.checks else {}
        beats = right.get("beats_constant")
        usable = (TRUST.index(trust), entry.change is None, -(-1 if beats is None else beats))
    return (
        entry.is_baseline,
        standing.rank is None,
        standing.rank or 0,
        *usable,
        -(jss if jss is not None else -1),
        entry.judge,
        entry.run,
    )
