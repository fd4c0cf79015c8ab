"""The change of a judge's mean between two results, whose it was, and how that reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from judgesense.comparison.baseline_result import ChangedVerdict
from judgesense.comparison.selection import Chosen
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.statistics.attribution import FEWEST_ANCHORS, Attribution
from judgesense.text import brackets, join, number, p_value, percent, plural_s, signed

Cause = Literal["judge", "system", "failed call", "cannot tell"]
"""Whose change of a verdict it is: the judge's where the output is the same; the system's where it
is another one and the judge has not changed."""

Unit = Literal["passed", "win rate", "score"]

_CONCLUSIONS = {
    "judge": "It was the judge.",
    "system": "It was the system.",
    "both": "Both the judge and the system changed it.",
    "noise": "No change of the judge or of the system can be told from noise.",
    "cannot tell": "",
}

_MOST_NAMES = 5
"""Groups that are named."""


@dataclass(frozen=True)
class Split:
    """A change of a mean, and the judge's and the system's part of it, which add up to it.

    The intervals are 95%, for all tasks together. ``n_anchors`` are the items on which the later
    judge saw the earlier output, ``n_items`` all that both results have.
    """

    change: float
    judge: float
    judge_ci_low: float
    judge_ci_high: float
    system: float
    system_ci_low: float
    system_ci_high: float
    n_anchors: int
    n_items: int

    @classmethod
    def of(cls, found: Attribution) -> Split:
        """The split with each part's figures side by side."""
        judge, system = found.judge, found.system
        return cls(
            found.change.estimate,
            *(judge.estimate, judge.ci_low, judge.ci_high),
            *(system.estimate, system.ci_low, system.ci_high),
            n_anchors=found.n_anchors,
            n_items=found.n_items,
        )


@dataclass(frozen=True)
class GroupNoise:
    """A group of items whose outputs are the same in both results.

    ``moves_by`` is how far its mean moves by noise alone in 95% of repetitions; it ``decides`` if
    that is less than the smallest change that counts. ``repeats_needed`` are the verdicts on each
    item, in each result, with which it would; None where only more items help.
    """

    name: str
    n_items: int
    old: float
    new: float
    n_flipped: int
    moves_by: float
    decides: bool
    repeats_needed: int | None


@dataclass(frozen=True)
class Noise:
    """How often one judge contradicts itself on the same outputs, and what that leaves to decide.

    ``flipped`` is the share of items whose verdict is another one. ``moves_by`` is as in
    `GroupNoise`. A change of ``change`` shows in 80% of comparisons with ``items_needed`` items, or
    with ``repeats_needed`` verdicts on each of the ``n_items`` (None: these are too few). ``by`` is
    the column of ``groups``.
    """

    n_items: int
    n_flipped: int
    flipped: float
    ci_low: float | None
    ci_high: float | None
    moves_by: float
    change: float
    items_needed: int
    repeats_needed: int | None
    by: str | None
    groups: tuple[GroupNoise, ...]


_CHOSEN: Mapping[Chosen, str] = {
    "missing": "The items of OLD that NEW lacks had other scores than the rest",
    "unchanged": "At one end of OLD's scores none has changed, and the others moved both ways",
}


@dataclass(frozen=True)
class ScoreChange:
    """One task in two results: the mean before and after, whose change it is, and the verdicts
    that changed.

    The means are over the ``n_items`` with a verdict in both results; None where the labels have no
    order. ``cause`` is what the intervals of the ``split`` show. ``flips`` are the items whose
    verdict is another one. ``noise`` is None where the judge changed, and without outputs that are
    the same. ``n_failed`` items have no verdict in one of the results.
    """

    task: str
    judge_old: str
    judge_new: str
    unit: Unit
    positive: str | None
    old: float | None
    new: float | None
    n_items: int
    n_failed: int
    n_same: int | None
    """The items whose output is the same; None where outputs are unknown."""
    cause: Literal["judge", "system", "both", "noise", "cannot tell"]
    split: Split | None
    split_reason: str | None
    flips: tuple[ChangedVerdict, ...]
    noise: Noise | None
    only_better: bool
    """Whether no verdict on the same output got worse, the mean reliably better, and nothing shows
    another judge: so it would be, too, if only what failed was asked again."""
    anchors_differ: float | None
    """The p-value for a difference between the earlier values of anchors and of other items."""
    chosen: Chosen | None = None
    """How the files show that items were asked again by their old value, if nothing shows another
    judge."""
    is_same_judge: bool = False
    """Whether nothing shows another judge."""

    @property
    def text(self) -> str:
        """The conclusion in a sentence or two."""
        if self.old is None or self.new is None:
            changed = f"{self.task}: {len(self.flips)} of {self.n_items} verdicts changed"
            return f"{changed}. There is no mean, because {self.split_reason}"
        form = percent if self.unit != "score" else lambda value: number(value, 2)
        points = self._points(self.new - self.old) + " points" * (self.unit != "score")
        whole = f"{self.task}: {self._head} {form(self.old)} → {form(self.new)}: {points}"
        split = self.split
        if split is None:
            return f"{whole}. Whose change it is: not known, because {self.split_reason}"
        judge = brackets(split.judge_ci_low, split.judge_ci_high, self._points)
        system = brackets(split.system_ci_low, split.system_ci_high, self._points)
        return (
            f"{whole}, of which judge {self._points(split.judge)} {judge} and system "
            f"{self._points(split.system)} {system}"
        )

    @property
    def sentences(self) -> list[str]:
        """The conclusion, its condition, and what changed, one sentence each."""
        conclusion = _CONCLUSIONS[self.cause]
        if self.is_same_judge and self.cause in ("judge", "both"):
            conclusion = f"{conclusion[:-1]}, if no item was chosen by its old score."
        lines = [f"{conclusion} {self.text}.".strip()]
        if self.chosen is not None:
            lines.append(
                f"{_CHOSEN[self.chosen]}, as if NEW asked again what OLD scored low or high. Such "
                "scores move towards the mean by themselves, which shows nothing of the judge. "
                "Judge all outputs of OLD again: judgesense judge OLD --judge JUDGE --out AGAIN, "
                "then judgesense compare OLD AGAIN."
            )
        if self.only_better:
            lines.append(
                "No verdict on the same output got worse, and nothing shows another judge: if NEW "
                "asked again only what OLD failed, this shows nothing of the judge."
            )
        if self.split is not None:
            n, of = self.split.n_anchors, self.split.n_items
            condition = "" if n == of else "; it is taken to be the same on the other items"
            lines.append(
                f"The judge's part is measured on the {n} of {of} items whose old output both "
                f"judged{condition}."
            )
        if self.anchors_differ is not None and self.anchors_differ < SIGNIFICANT:
            lines.append(
                f"These items had other scores before than the others "
                f"({p_value(self.anchors_differ)}), so the judge may have moved differently on the "
                "others: judge some of their old outputs again with the new judge, and name the "
                "result with --anchors."
            )
        if self.n_failed:
            lines.append(
                f"{self.n_failed} item{plural_s(self.n_failed)} without a verdict in one of the "
                "results: left out of the means."
            )
        if n := len(self.flips):
            counts = Counter(row.get("cause", "cannot tell") for row in self.flips)
            causes = join([f"{cause} {count}" for cause, count in counts.most_common()])
            lines.append(f"{n} verdict{plural_s(n)} changed: {causes}.")
        # Where the judge changed, its verdicts on the same output are no measure of noise.
        if self.noise is not None and self.cause not in ("judge", "both"):
            lines += self._noise_lines(self.noise)
        return lines

    def _noise_lines(self, noise: Noise) -> Iterator[str]:
        ends = brackets(noise.ci_low, noise.ci_high, percent)
        yield (
            f"On the same output the judge gives another verdict in {noise.n_flipped} of "
            f"{noise.n_items} ({percent(noise.flipped)} {ends})."
        )
        if not noise.n_flipped:
            return
        again, k = "", noise.repeats_needed
        if k is not None:
            again = f", or with these {noise.n_items} judged {k} time{plural_s(k)} each"
        yield (
            f"This alone moves the mean by up to {self._size(noise.moves_by)}. A change of "
            f"{self._size(noise.change)} shows in 80% of comparisons with {noise.items_needed} "
            f"items judged once{again}."
        )
        if noise.groups:
            able = [group.name for group in noise.groups if group.decides]
            names = f" ({', '.join(able)})" if 0 < len(able) <= _MOST_NAMES else ""
            least = min(noise.groups, key=lambda group: group.n_items)
            needs = "more items"
            if least.repeats_needed is not None:
                needs = f"{least.repeats_needed} verdicts on each item"
            yield (
                f"{len(able) or 'None'} of {len(noise.groups)} groups by {noise.by!r} can show "
                f"such a change{names}: in the smallest, of {least.n_items} items, noise alone "
                f"moves the mean by {self._size(least.moves_by)}; it needs {needs}."
            )

    @property
    def _head(self) -> str:
        if self.unit == "passed":
            word = self.positive or ""
            return "Passed" if word.upper() in ("PASS", "TRUE", "1", "YES") else f"{word!r}"
        return "Win rate (a tie counts half)" if self.unit == "win rate" else "Mean score"

    def _points(self, value: float | None) -> str:
        """A difference of the mean; of shares, in points."""
        if self.unit == "score" or value is None:
            return signed(value, 2)
        return signed(100 * value, int(self.n_items >= 1000))

    def _size(self, value: float) -> str:
        return number(value, 2) if self.unit == "score" else f"{100 * value:.0f} points"


def too_few(n_clusters: int, n_same: int, n_items: int, what: str) -> str:
    """Why a change is not split, and what settles it; ``what`` is the same: output or prompt."""
    if n_items < FEWEST_ANCHORS:
        return f"a split needs {FEWEST_ANCHORS} items with the same {what}, and there are {n_items}"
    return (
        f"{n_same or 'no'} {what}s are the same in both results, and a split needs "
        f"{FEWEST_ANCHORS}; judge {FEWEST_ANCHORS - n_clusters} or more of the old outputs again "
        "with the new judge, and name the result with --anchors"
    )
