"""Whether a task tells judges apart: its best judge must be more right than a constant answer.

On a task that no judge can do, judges differ by what they do instead, such as always taking the
first option. A rank by such a task ranks nothing that a user wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judgesense.run_folder.report import Key, identity, main_cells, task_rank
from judgesense.text import brackets, number
from judgesense.trust.thresholds import DISCRIMINATING_KAPPA

YES, NO, OPEN, UNMEASURED = "yes", "no", "open", "unmeasured"
"""States of a task; judges are ranked by one that is ``yes``, or ``unmeasured``."""

_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")


@dataclass(frozen=True)
class Discrimination:
    """What the best judge of a task achieves; a constant answer has a kappa of 0.

    ``state`` is ``yes`` if the best judge's whole interval lies above ``DISCRIMINATING_KAPPA``,
    ``no`` if every judge's whole interval lies below it, ``open`` if the items do not settle it,
    and ``unmeasured`` without gold labels. ``n_judges`` counts judges with a kappa.
    """

    state: str
    judge: str | None
    scoring: str | None
    kappa: float | None
    ci_low: float | None
    ci_high: float | None
    n_judges: int

    @property
    def ranks(self) -> bool:
        """Whether judges may be ranked by the task."""
        return self.state in (YES, UNMEASURED)

    @property
    def text(self) -> str:
        """The best judge's kappa, and what follows from it."""
        if self.kappa is None:
            return "no judge is compared with gold labels"
        ends = brackets(self.ci_low, self.ci_high, lambda end: number(end, 2))
        best = f"best κ with gold {number(self.kappa, 2)} {ends}"
        return {
            YES: f"tells judges apart ({best})",
            NO: f"non-discriminating: no judge beats a constant answer by a margin ({best})",
            OPEN: f"not shown to tell judges apart ({best}): add items",
        }[self.state]


def discrimination(cards: Iterable[Mapping[str, Any]]) -> Discrimination:
    """Whether a task tells judges apart, from their trust cards (rows of ``trust``) on one set.

    Cards without a kappa, and judges that fail for another reason, count like the others: the
    question is about the task. Raises KeyError for a row without the check ``right``.

    >>> right = {"estimate": 0.5, "ci_low": 0.3, "ci_high": 0.7}
    >>> card = {"judge": "a", "scoring": "options", "checks": {"right": right}}
    >>> discrimination([card]).state
    'yes'
    """
    found = [(card, card["checks"]["right"]) for card in cards]
    known = [(card, right) for card, right in found if right["estimate"] is not None]
    if not known:
        return Discrimination(UNMEASURED, None, None, None, None, None, 0)
    card, best = max(known, key=lambda one: (_low(one[1]), one[1]["estimate"]))
    highs = [right["ci_high"] for _, right in known]
    if _low(best) > DISCRIMINATING_KAPPA:
        state = YES
    elif all(high is not None and high < DISCRIMINATING_KAPPA for high in highs):
        state = NO
    else:
        state = OPEN
    return Discrimination(
        state, card["judge"], card["scoring"], best["estimate"], best["ci_low"], best["ci_high"],
        len({card["judge"] for card, _ in known}),
    )  # fmt: skip


def by_task(report: Mapping[str, Any]) -> list[tuple[str, Discrimination]]:
    """The tasks of a report on which two judges or more were judged, each with what it tells.

    Cards of a task belong together if they are from one run or from the same pairs.
    """
    cells = main_cells(report)
    groups: list[tuple[set[str], list[Mapping[str, Any]]]] = []
    for card in report["trust"]:
        task = card["task"]
        keys = {f"{task} run {card['run_id']}", f"{task} data {_data(cells, identity(card))}"}
        cards = [card]
        for group in [group for group in groups if group[0] & keys]:
            groups.remove(group)
            keys |= group[0]
            cards = [*group[1], *cards]
        groups.append((keys, cards))
    several = [cards for _, cards in groups if len({card["judge"] for card in cards}) > 1]
    found = [(str(cards[0]["task"]), discrimination(cards)) for cards in several]
    return sorted(found, key=lambda one: task_rank(one[0]))


def _low(right: Mapping[str, Any]) -> float:
    """The lower end; without an interval, nothing is known."""
    low = right["ci_low"]
    return -1.0 if low is None else float(low)


def _data(cells: Mapping[Key, Mapping[str, Mapping[str, Any]]], key: Key) -> str:
    signature = cells.get(key, {}).get("mapped", {}).get("signature") or ""
    found = _DATA.search(signature)
    return found[1] if found else ""
