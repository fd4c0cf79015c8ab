"""What an update of a judge changes: verdicts moved by it, by rewording and by asking again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from judgesense.comparison.migration_result import (
    EXIT_CODES,
    Claim,
    LabelShift,
    Migration,
    MovedItem,
    TaskMigration,
    claim_text,
)
from judgesense.comparison.paired import grouped, most_frequent
from judgesense.comparison.verdict_changes import (
    PromptChanges,
    notes_on,
    prompt_changes,
    read_tasks,
    require_rules,
)
from judgesense.measure.thresholds import NO_DIFFERENCE
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.planning import Pilot
from judgesense.statistics.updates import Excess
from judgesense.tasks import ORDERS, UNDECIDED


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
    claims = {update.claim for update in tasks}
    return Migration(
        claim=next(claim for claim in EXIT_CODES if claim in claims),
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
    return replace(update, text=claim_text(update))


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
            differs = reworded.get(item)
            items.append(
                MovedItem(
                    item_id=item,
                    prompts=len(rows),
                    moved=moved,
                    old=most_frequent(table.old[rows]),
                    new=most_frequent(table.new[rows]),
                    reworded=None if differs is None else sum(differs) / len(differs),
                )
            )
    items.sort(key=lambda e: (-e.moved / e.prompts, e.reworded or 0.0, -e.moved, e.item_id))
    return tuple(items)
