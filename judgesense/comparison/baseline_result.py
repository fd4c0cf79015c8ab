"""The result of a comparison with a baseline, and how it reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from judgesense.measure.gate import Gate
from judgesense.statistics.change import ERROR_RATE, smallest_loss
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.tasks import ORDERS
from judgesense.text import join, percent, plural_s, sentence

Figure = Literal["right", "steady", "fair", "readable"]
FIGURES: tuple[Figure, ...] = ("right", "steady", "fair", "readable")
"""What is compared, the figure that decides first."""

_MONTH = 30
"""Comparisons in a month with one a day."""
_SHOWN = 3
"""Changed verdicts that a text lists."""


class Conclusion(TypedDict):
    """What changed in one figure of a judge on a task."""

    judge: str
    task: str
    figure: Figure
    conclusion: Literal["better", "worse", "no worse", "cannot tell"]
    before: float
    after: float
    difference: float
    ci_low: float
    ci_high: float
    level: float
    n_items: int
    n_changed: int
    smallest_loss: float | None
    text: str


class ChangedVerdict(TypedDict):
    """An item, in an option order, whose most frequent verdict is another one.

    ``kind`` is by the label ``gold``; without one, a verdict of a lower value is broken. ``cause``
    is a `judgesense.comparison.score_change_result.Cause`.
    """

    task: str
    item_id: str
    order: str
    before: str
    after: str
    gold: str | None
    kind: Literal["fixed", "broken", "changed"]
    cause: NotRequired[str]


def changed_verdict(
    task: str, item: str, order: str, before: str, after: str, gold: str | None, rise: float = 0.0
) -> ChangedVerdict:
    """A verdict that is another one; ``rise`` is how much more its value is, where it has one."""
    kind: Literal["fixed", "broken", "changed"] = (
        "fixed" if rise > 0 else "broken" if rise < 0 else "changed"
    )
    if gold in (before, after):
        kind = "broken" if gold == before else "fixed"
    return {
        "task": task,
        "item_id": item,
        "order": order,
        "before": before,
        "after": after,
        "gold": gold,
        "kind": kind,
    }


@dataclass(frozen=True, eq=False)
class BaselineComparison(ResultMapping):
    """A judge against an earlier result on the same items.

    ``conclusions`` has a `Conclusion` for each judge, task and figure that both results have, and
    ``moved`` a `ChangedVerdict` for each verdict that differs. ``margin`` is the loss that counts
    as no worse, and ``smallest_loss`` the loss of the deciding figures that is found in 80% of
    comparisons with as many labelled items and as many verdicts that change anyway. ``looks`` is
    the number of comparisons that share the error.
    """

    conclusions: list[Conclusion]
    moved: list[ChangedVerdict]
    margin: float
    n_items: int
    smallest_loss: float | None
    notes: list[str]
    looks: int = 1
    bursts: bool = False
    """Whether errors come in bursts along the dates or rows of one of the results."""

    @property
    def gate(self) -> Gate:
        """FAIL if a figure is reliably worse; PASS if the first figure of each task is no worse.

        INCONCLUSIVE otherwise.
        """
        worse = [row for row in self.conclusions if row["conclusion"] == "worse"]
        if worse:
            return Gate("FAIL", worse[0]["figure"], ". ".join(map(_named, worse)))
        firsts = {(row["judge"], row["task"]): row for row in reversed(self.conclusions)}
        rows = [row for row in firsts.values() if row["conclusion"] == "cannot tell"]
        if not rows:
            rows = [*reversed(firsts.values())]
            return Gate("PASS", rows[0]["figure"], ". ".join(map(_named, rows)))
        row = max(rows, key=lambda row: row["smallest_loss"] or 1.0)
        items = f"{row['n_items']} item{plural_s(row['n_items'])}"
        if row["smallest_loss"] is not None:
            items += f", of which {row['n_changed']} changed"
        why = [*map(_named, rows), sentence(_finds(items, row["smallest_loss"]))]
        return Gate("INCONCLUSIVE", rows[0]["figure"], ". ".join(why))

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, and the ``decision``."""
        return {**self, "decision": self.gate.decision}

    def to_pandas(self) -> Any:
        """The conclusions as a `pandas.DataFrame`, one row each."""
        return data_frame(self.conclusions)

    def sentences(self) -> list[str]:
        """The conclusions in sentences, and how many verdicts moved in which direction."""
        lines = [*map(_named, self.conclusions), *self.notes]
        lines.append(_BURSTS if self.bursts else _rates(self.looks))
        if self.moved:
            kinds = Counter(row["kind"] for row in self.moved)
            counts = join([f"{n} {kind}" for kind, n in kinds.items()])
            lines.append(f"{len(self.moved)} verdict{plural_s(len(self.moved))} changed ({counts})")
        return lines

    def __str__(self) -> str:
        lines = self.sentences()
        for row in self.moved[:_SHOWN]:
            order = f" ({row['order']})" if row["order"] in ORDERS else ""
            gold = f", label {row['gold']}" if row["gold"] else ""
            change = f"{row['before']} → {row['after']}{gold}"
            lines.append(f"  {row['kind']}: {row['item_id']}{order}: {change}")
        if (more := len(self.moved) - _SHOWN) > 0:
            lines.append(f"  … and {more} more")
        return "\n".join(lines)


def _named(row: Conclusion) -> str:
    return f"{row['judge'].partition('@')[0]} on {row['task']}: {row['text']}"


def what_it_finds(n_items: int) -> str:
    """What a comparison with a baseline on this many items can find.

    >>> what_it_finds(100)
    'with 100 items, a loss of 10 points is found in 80% of comparisons if little else changes'
    """
    items = f"{n_items} item{plural_s(n_items)}"
    return _finds(items, smallest_loss(n_items), " if little else changes")


def _finds(items: str, loss: float | None, condition: str = "") -> str:
    """The loss that a comparison finds; None for too few items."""
    if loss is None:
        return f"{items} are too few to find any loss"
    points = f"{100 * loss:.0f} points"
    return f"with {items}, a loss of {points} is found in 80% of comparisons{condition}"


_BURSTS = (
    "Errors come in bursts, so a change may be that of good and bad days: no rate is promised with "
    "which an unchanged judge is called worse"
)


def _rates(looks: int) -> str:
    """How often an unchanged judge is called worse, now and in a month of daily comparisons."""
    month = 1 - (1 - ERROR_RATE / looks) ** _MONTH
    these = "comparisons" if looks == 1 else f"series of {looks} comparisons"
    return (
        f"An unchanged judge is called worse in at most {percent(ERROR_RATE)} of {these}, all "
        f"tasks together; with a comparison every day, in at most {percent(month)} of months. This "
        "is not so of a baseline that is the best of several runs, or whose verdicts led to "
        "corrected labels"
    )
