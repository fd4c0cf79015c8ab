"""The result of ``judgesense compare --migration``, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgesense.comparison.verdict_changes import VerdictChanges
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import brackets, join, percent, sentence, signed

Claim = Literal["no more", "more", "cannot tell"]

EXIT_CODES: dict[Claim, int] = {"more": 1, "cannot tell": 3, "no more": 0}
"""The exit code of each claim, the worst claim first."""

_SHOWN = 10
"""Items that the text lists for each task."""

_CAUSES = {
    "one wording": "the old run asked one wording, so the effect of rewording has not been "
    "measured: judge OLD under at least two wordings",
    "one label": "all verdicts before and after are one label, and a judge that ignores the items "
    "would change as little: add items with another label",
    "few wordings": "the wordings differ too much for more items to help: add wordings",
    "noise": "more verdicts changed than rewording changes, but the old judge's verdicts change as "
    "often when the same prompt is repeated",
    "no repeats": "more verdicts changed than rewording changes, but this may be noise: judge OLD "
    "with --repeats 2 to measure what repeating the prompts changes",
    "one cluster": "a single item, or cluster of items, has no interval: add items",
}


@dataclass(frozen=True)
class LabelShift:
    """How the share of one label changed. ``label`` may be ``first shown``, UNCLEAR or REFUSED.

    ``difference`` is new minus old, with an uncorrected 95% interval; ``p_holm`` is corrected over
    the labels of the task.
    """

    label: str
    old: float | None
    new: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_holm: float | None


@dataclass(frozen=True)
class MovedItem:
    """An item with moved verdicts: ``moved`` of its ``prompts``.

    ``old`` and ``new`` are its most frequent verdicts. ``reworded`` is how often the old judge's
    verdict on the item differs between two wordings; None with one wording.
    """

    item_id: str
    prompts: int
    moved: int
    old: str
    new: str
    reworded: float | None


@dataclass(frozen=True)
class TaskMigration(VerdictChanges):
    """What an update changes on one task and scoring.

    ``claim`` is about ``excess``: the share of verdicts that the update moves minus the share that
    rewording moves. ``more`` says that it lies above 0, ``no more`` that it lies below
    ``tolerance``; each is wrong in at most ``error`` of runs, which is what its ends ``ci_low`` and
    ``ci_high`` are made for. ``about`` names its condition: from four wordings on, it is about
    ``wordings like these``, and ``claim_these``, with its ends ``these_ci_low`` and
    ``these_ci_high``, about these alone; with fewer, it is about ``these wordings`` itself, and
    other paraphrases may move more or less. ``cause`` names what keeps the claim from being told:
    ``open`` (too few items), ``few wordings`` (which differ so much that more items would not
    tell), ``noise`` (repeats of the old prompts change as much), ``no repeats`` (noise was not
    measured and could be as large), ``one wording``, ``one label`` or ``one cluster``; else it is
    None. ``asked_again``
    is the share that the old judge moves on the same prompt. ``items_needed`` settles an open
    claim with 80% probability. UNCLEAR and REFUSED count as verdicts of their own.
    """

    text: str
    tolerance: float
    error: float
    judge_old: str
    judge_new: str
    claim: Claim
    about: Literal["these wordings", "wordings like these"]
    cause: str | None
    asked_again: float | None
    claim_these: Claim | None
    these_ci_low: float | None
    these_ci_high: float | None
    excess_again: float | None
    excess_again_ci_low: float | None
    excess_again_ci_high: float | None
    n_clusters: int
    n_wordings: int
    items_needed: int | None
    direction: tuple[LabelShift, ...]
    accuracy_old: float | None
    accuracy_new: float | None
    accuracy_difference: float | None
    accuracy_ci_low: float | None
    accuracy_ci_high: float | None
    items: tuple[MovedItem, ...]


@dataclass(frozen=True, eq=False)
class Migration(ResultMapping):
    """One judge before and after an update, by task and scoring.

    ``claim`` is the worst of the tasks': ``more``, then ``cannot tell``, then ``no more``. The
    chance that any task's claim is wrong is at most ``error``. ``notes`` say what was left out, and
    if the names are those of two judges. ``sources`` are the old and the new folder or file.
    """

    claim: Claim
    tasks: tuple[TaskMigration, ...]
    notes: tuple[str, ...]
    sources: tuple[str, str]
    error: float

    @property
    def exit_code(self) -> int:
        """0 for ``no more``, 1 for ``more``, 3 for ``cannot tell``."""
        return EXIT_CODES[self.claim]

    def to_pandas(self) -> Any:
        """The tasks as a `pandas.DataFrame`, without their lists of labels and items."""
        lists = ("direction", "items")
        rows = (task.__dict__ for task in self.tasks)
        return data_frame([{k: v for k, v in row.items() if k not in lists} for row in rows])

    def __str__(self) -> str:
        lines = [*(task.text for task in self.tasks), *(f"Note: {note}." for note in self.notes)]
        for task in self.tasks:
            heading = f"{task.task} ({task.scoring})" if task.scoring else task.task
            lines += ["", heading, *(f"  - {line}" for line in details_text(task))]
        lines += [
            "",
            f"{'The claim' if len(self.tasks) == 1 else 'Any of the claims'} is wrong in at most "
            f"{100 * self.error:.3g}% of runs, and each end of an interval in at most "
            f"{100 * self.tasks[0].error:.3g}%, unless OLD's items were chosen by its verdicts, or "
            "its repeats share a seed that NEW's do not. The sample is the items, or the clusters "
            "that they share. With four wordings or more, the wordings are a sample, too. With "
            "fewer, the claim is about these wordings alone.",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table((), [(line,) for line in str(self).splitlines() if line])


def claim_text(task: TaskMigration) -> str:
    """The claim on a task in a sentence or two, with its figures."""
    figures = f"{task.moved_text}."
    if task.excess is not None:
        figures += f" {task.rewording_text}"
    gained = [shift for shift in _clear(task.direction) if (shift.difference or 0.0) > 0]
    if gained:
        most = max(gained, key=lambda shift: shift.difference or 0.0)
        figures += (
            f" The share of {most.label} rose from {percent(most.old)} to {percent(most.new)}."
        )
    than = "than a paraphrase does"
    if task.about == "these wordings":
        than = f"than rewording does between these {task.n_wordings} wordings"
    if task.claim == "more":
        return f"{task.task}: the update changes more verdicts {than}. {figures}"
    alone = ""
    if task.claim_these not in (None, task.claim):
        moves = {
            "more": "the update changes more verdicts than rewording does",
            "no more": "the update changes no more verdicts than rewording does",
        }.get(task.claim_these, "it is unclear")
        ends = brackets(task.these_ci_low, task.these_ci_high, signed)
        alone = f" The claim is about wordings like these. For these alone, {moves} {ends}."
    if task.claim == "no more":
        within = ""
        if task.ci_high is not None and task.ci_high > 0:
            within = f" by more than {percent(task.tolerance)}"
        aside = ", but in one direction" if gained else ""
        return (
            f"{task.task}: the update changes no more verdicts {than}{within}{aside}. {figures}"
            f"{alone}"
        )
    why = _CAUSES.get(task.cause or "", "there are too few items")
    if task.items_needed is not None:
        why = f"about {task.items_needed:,} items would show it, if the measured difference is true"
    return (
        f"{task.task}: it is unclear whether the update changes more verdicts {than}. "
        f"{sentence(why)}. {figures}{alone}"
    )


def details_text(task: TaskMigration) -> Iterator[str]:
    """The other figures of a task, a line each."""
    if task.asked_again is not None:
        ends = brackets(task.excess_again_ci_low, task.excess_again_ci_high, signed)
        yield (
            f"repeating the prompts changes {percent(task.asked_again)} of the old judge's "
            f"verdicts, and the update {signed(task.excess_again)} more {ends}"
        )
    shifts = _clear(task.direction)
    for shift in shifts:
        yield (
            f"{shift.label}: {percent(shift.old)} before, {percent(shift.new)} after "
            f"({signed(shift.difference)} {brackets(shift.ci_low, shift.ci_high, signed)})"
        )
    if task.direction and not shifts:
        yield "no label is clearly more frequent than before"
    if task.accuracy_difference is not None:
        ends = brackets(task.accuracy_ci_low, task.accuracy_ci_high, signed)
        yield (
            f"matches gold: {percent(task.accuracy_old)} before, {percent(task.accuracy_new)} "
            f"after ({signed(task.accuracy_difference)} {ends})"
        )
    if task.items:
        shown = [_item(item) for item in task.items[:_SHOWN]]
        rest = len(task.items) - len(shown)
        yield (
            f"items with changed verdicts: {join(shown) if not rest else ', '.join(shown)}"
            f"{f', and {rest} more (--format json lists all)' if rest else ''}"
        )


def _clear(shifts: Sequence[LabelShift]) -> list[LabelShift]:
    """The labels whose share has clearly changed."""
    return [shift for shift in shifts if shift.p_holm is not None and shift.p_holm < SIGNIFICANT]


def _item(item: MovedItem) -> str:
    of = "" if item.prompts == 1 else f", {item.moved} of {item.prompts}"
    if item.old == item.new:
        return f"{item.item_id} (mostly {item.old}{of})"
    return f"{item.item_id} ({item.old} to {item.new}{of})"
