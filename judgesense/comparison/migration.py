"""What an update of a judge changes: verdicts moved by it, by rewording and by asking again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesense.comparison.paired import grouped, most_frequent
from judgesense.comparison.verdict_changes import (
    EXIT_CODES,
    PromptChanges,
    VerdictChanges,
    notes_on,
    prompt_changes,
    read_tasks,
    require_rules,
    worst,
)
from judgesense.measure.thresholds import NO_DIFFERENCE, SIGNIFICANT
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.planning import Pilot
from judgesense.statistics.result import TextResult, data_frame
from judgesense.statistics.updates import Excess
from judgesense.tasks import ORDERS, UNDECIDED
from judgesense.text import brackets, join, percent, sentence, signed

Claim = Literal["no more", "more", "cannot tell"]

_SHOWN = 10
"""Items that the text lists for each task."""

_CAUSES = {
    "open": "there are too few items",
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
"""What keeps a claim from being told."""


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

    @property
    def is_clear(self) -> bool:
        """Whether the share has clearly changed."""
        return self.p_holm is not None and self.p_holm < SIGNIFICANT

    def __str__(self) -> str:
        ends = brackets(self.ci_low, self.ci_high, signed)
        shares = f"{percent(self.old)} before, {percent(self.new)} after"
        return f"{self.label}: {shares} ({signed(self.difference)} {ends})"


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

    def __str__(self) -> str:
        change = f"mostly {self.old}" if self.old == self.new else f"{self.old} to {self.new}"
        return f"{self.item_id} ({change}, {self.moved} of {self.prompts})"


@dataclass(frozen=True)
class TaskMigration(VerdictChanges):
    """What an update changes on one task and scoring.

    ``claim`` is about ``excess``: the share of verdicts that the update moves minus the share that
    rewording moves. ``more`` says that it lies above 0, ``no more`` that it lies below
    ``tolerance``; each is wrong in at most ``error`` of runs, which is what its ends ``ci_low`` and
    ``ci_high`` are made for. ``about`` names its condition: from four wordings on, it is about
    ``wordings like these``, and ``claim_these``, with its ends ``these_ci_low`` and
    ``these_ci_high``, about these alone; with fewer, it is about ``these wordings`` itself, and
    other paraphrases may move more or less. ``cause`` names what keeps the claim from being told,
    one of ``open`` (too few items), ``few wordings`` (which differ so much that more items would
    not tell), ``noise`` (repeats of the old prompts change as much), ``no repeats`` (noise was not
    measured and could be as large), ``one wording``, ``one label`` and ``one cluster``.
    ``asked_again`` is the share that the old judge moves on the same prompt. ``items_needed``
    settles an open claim with 80% probability. UNCLEAR and REFUSED count as verdicts of their own.
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

    @property
    def details(self) -> Iterator[str]:
        """The figures that are not in the ``text``, a line each."""
        if self.asked_again is not None:
            ends = brackets(self.excess_again_ci_low, self.excess_again_ci_high, signed)
            yield (
                f"repeating the prompts changes {percent(self.asked_again)} of the old judge's "
                f"verdicts, and the update {signed(self.excess_again)} more {ends}"
            )
        shifts = [str(shift) for shift in self.direction if shift.is_clear]
        if self.direction:
            yield from shifts or ["no label is clearly more frequent than before"]
        if self.accuracy_difference is not None:
            ends = brackets(self.accuracy_ci_low, self.accuracy_ci_high, signed)
            yield (
                f"matches gold: {percent(self.accuracy_old)} before, {percent(self.accuracy_new)} "
                f"after ({signed(self.accuracy_difference)} {ends})"
            )
        if self.items:
            shown = [str(item) for item in self.items[:_SHOWN]]
            if rest := len(self.items) - len(shown):
                shown.append(f"{rest} more (--format json lists all)")
            yield f"items with changed verdicts: {join(shown)}"


@dataclass(frozen=True, eq=False)
class Migration(TextResult):
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
        return data_frame(
            [{k: v for k, v in vars(task).items() if k not in lists} for task in self.tasks]
        )

    def __str__(self) -> str:
        lines = [*(task.text for task in self.tasks), *(f"Note: {note}." for note in self.notes)]
        for task in self.tasks:
            heading = f"{task.task} ({task.scoring})" if task.scoring else task.task
            lines += ["", heading, *(f"  - {line}" for line in task.details)]
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


def migration(
    old: str | Path,
    new: str | Path,
    *,
    judge: str | Sequence[str] | None = None,
    task: str | None = None,
    tolerance: float = NO_DIFFERENCE,
    error: float = 0.05,
) -> Migration:
    """Does an update of a judge move more verdicts than a paraphrase of its prompt does?

    The verdicts of both on the same prompts are compared. What rewording moves comes from the old
    judge's verdicts under its other wordings; what asking again moves, from its repeats. With fewer
    than four wordings, the claim is about rewording between these alone. ``more`` is claimed only
    beyond noise: beyond what the repeats change or, without repeats, beyond twice what rewording
    changes, which is the most that noise alone can change.

    Args:
        old: folder of a run before the update, or a file of verdicts. Rewording is measured here,
            so it needs at least two wordings.
        new: the same after the update; the wordings that you use are enough.
        judge: the judge, if a source has several; two names if they differ.
        task: one task; None for all.
        tolerance: ``no more`` allows for this excess over rewording (a share of verdicts).
        error: the chance that any claim is wrong.

    Raises:
        JudgeSenseError: a source that cannot be read or is still being judged, no common task or
            item, other labels, or gold labels that differ.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> def yes(messages):
    ...     return ["YES" for _ in messages]
    >>> def no(messages):
    ...     return ["NO" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, judge in (("old", yes), ("new", no)):
    ...         _ = run(judge, tasks=["factuality"], out=f"{folder}/{name}", note=str)
    ...     update = migration(f"{folder}/old", f"{folder}/new")
    >>> update.claim, update.tasks[0].moved, update.tasks[0].reworded
    ('more', 1.0, 0.0)
    """
    one, two = require_rules(tolerance, error, judge)
    changes = prompt_changes(read_tasks(old, one, task, reference=True), read_tasks(new, two, task))
    tasks = tuple(_task_migration(each, tolerance, error / len(changes)) for each in changes)
    return Migration(
        claim=worst(update.claim for update in tasks),
        tasks=tasks,
        notes=notes_on(changes, same_judge=True),
        sources=(str(old), str(new)),
        error=error,
    )


def _task_migration(changes: PromptChanges, tolerance: float, error: float) -> TaskMigration:
    table, clusters = changes.table, changes.table.column("cluster").tolist()
    excess, noise = changes.beyond_rewording(error), changes.beyond_noise(error)
    beyond_noise = (changes.beyond_any_noise(error).low or 0.0) > 0
    these, is_random = changes.beyond_rewording(error, like_these=False), excess.random
    claim, cause = _claim(changes, excess, tolerance, beyond_noise)
    needed, figures = None, changes.figures(excess)
    if cause == "open":
        needed = _items_needed(excess, these, tolerance, error, figures.n_items)
        cause = "few wordings" if needed is None and is_random else cause
    gold = table.require_gold(changes.task)
    known = table.where(gold != "")
    hits = (known.old == gold[gold != ""], known.new == gold[gold != ""])
    right = paired_test(*hits, known.column("cluster").tolist())
    update = TaskMigration(
        **vars(figures),
        judge_old=table.before.judge,
        judge_new=table.after.judge,
        claim=claim,
        about="wordings like these" if is_random else "these wordings",
        cause=cause,
        text="",
        tolerance=float(tolerance),
        error=error,
        asked_again=noise.other,
        claim_these=_claim(changes, these, tolerance, beyond_noise)[0] if is_random else None,
        these_ci_low=these.low if is_random else None,
        these_ci_high=these.high if is_random else None,
        excess_again=noise.excess,
        excess_again_ci_low=noise.low,
        excess_again_ci_high=noise.high,
        n_clusters=len({*clusters}),
        n_wordings=len({*table.column("wording"), *changes.pair_wording}),
        items_needed=needed,
        direction=_direction(changes),
        accuracy_old=right.first,
        accuracy_new=right.second,
        accuracy_difference=right.difference,
        accuracy_ci_low=right.ci_low,
        accuracy_ci_high=right.ci_high,
        items=_changed_items(changes),
    )
    return replace(update, text=_text(update))


def _claim(
    changes: PromptChanges, excess: Excess, tolerance: float, beyond_noise: bool
) -> tuple[Claim, str | None]:
    """The claim, and what keeps it from being told."""
    if changes.is_one_label:
        return "cannot tell", "one label"
    if not len(changes.pair_row):
        return "cannot tell", "one wording"
    if excess.low is None or excess.high is None:
        return "cannot tell", "one cluster"
    if excess.high < tolerance or excess.high <= 0:
        return "no more", None
    if excess.low <= 0:
        return "cannot tell", "open"
    if not beyond_noise:
        # A wording may be noisier than the others it is compared with.
        return "cannot tell", "noise" if len(changes.repeats[0]) else "no repeats"
    return "more", None


def _items_needed(
    excess: Excess, these: Excess, tolerance: float, error: float, n_items: int
) -> int | None:
    """Items in all that decide the claim with 80% probability.

    None if no number of items does, because what differs between wordings does not shrink with
    items. ``these`` has the ends for these wordings alone.
    """
    value, low = excess.excess, excess.low
    if value is None or low is None or these.low is None or these.high is None:
        return None
    limit = max(0.0, tolerance, key=lambda end: abs(value - end))
    fixed, clusters = (these.low, these.high), excess.n_clusters
    pilot = Pilot(value, low, excess.high, clusters, fixed=fixed, level=1 - 2 * error)
    needed = pilot.needed(limit)
    return needed and max(2, math.ceil(needed * n_items / clusters))


def _direction(changes: PromptChanges) -> tuple[LabelShift, ...]:
    """The share of each label before and after; nothing if no verdict changed."""
    table, space = changes.table, changes.table.before.labels
    if not table.is_changed.any():
        return ()
    labels = [label for label in space if label in changes.labels]
    labels += sorted(changes.labels - {*labels})
    labels += [label for label in UNDECIDED if label in {*table.old, *table.new}]
    columns = {label: (table.old == label, table.new == label) for label in labels}
    order = table.column("order")
    if {*ORDERS} <= {*order} and len(space) == 2:
        shown = np.where(order == "BA", space[1], space[0])
        columns = {"first shown": (table.old == shown, table.new == shown), **columns}
    clusters = table.column("cluster").tolist()
    tests = {label: paired_test(*sides, clusters) for label, sides in columns.items()}
    adjusted = holm([test.p_value for test in tests.values()])
    return tuple(
        LabelShift(label, test.first, test.second, test.difference, test.ci_low, test.ci_high, p)
        for (label, test), p in zip(tests.items(), adjusted, strict=True)
    )


def _changed_items(changes: PromptChanges) -> tuple[MovedItem, ...]:
    """The items that changed, those first that changed most and that rewording changes least."""
    table, names = changes.table, changes.table.column("item")
    reworded = grouped(names[changes.pair_row], changes.pair_differs.tolist())
    items = []
    for item, rows in grouped(names, range(len(table))).items():
        if moved := int(table.is_changed[rows].sum()):
            usual = most_frequent(table.old[rows]), most_frequent(table.new[rows])
            differs = reworded.get(item)
            share = None if differs is None else sum(differs) / len(differs)
            items.append(MovedItem(item, len(rows), moved, *usual, share))
    items.sort(key=lambda e: (-e.moved / e.prompts, e.reworded or 0.0, -e.moved, e.item_id))
    return tuple(items)


def _text(task: TaskMigration) -> str:
    """The claim on a task in a few sentences, with its figures."""
    than = "than a paraphrase does"
    if task.about == "these wordings":
        than = f"than rewording does between these {task.n_wordings} wordings"
    rising = [each for each in task.direction if each.is_clear and (each.difference or 0.0) > 0]
    if task.claim == "more":
        claim = f"the update changes more verdicts {than}"
    elif task.claim == "no more":
        claim = f"the update changes no more verdicts {than}"
        if task.ci_high is not None and task.ci_high > 0:
            claim += f" by more than {percent(task.tolerance)}"
        claim += ", but in one direction" if rising else ""
    else:
        why = _CAUSES[task.cause or "open"]
        if task.items_needed is not None:
            items = f"about {task.items_needed:,} items"
            why = f"{items} would show it, if the measured difference is true"
        claim = f"it is unclear whether the update changes more verdicts {than}. {sentence(why)}"
    sentences = [f"{task.task}: {claim}.", f"{task.moved_text}."]
    if task.excess is not None:
        sentences.append(task.rewording_text)
    if rising:
        most = max(rising, key=lambda each: each.difference or 0.0)
        shares = f"from {percent(most.old)} to {percent(most.new)}"
        sentences.append(f"The share of {most.label} rose {shares}.")
    if task.claim != "more" and task.claim_these not in (None, task.claim):
        ends = brackets(task.these_ci_low, task.these_ci_high, signed)
        sentences.append(
            "The claim is about wordings like these. For these alone, it is "
            f"'{task.claim_these}' {ends}."
        )
    return " ".join(sentences)
