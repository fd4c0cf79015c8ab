"""What an update of a judge changes: verdicts moved by it, by rewording and by asking again."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Words
from judgesense.statistics.comparison import PairedDifference, holm, paired_test
from judgesense.statistics.planning import Pilot
from judgesense.statistics.updates import Excess
from judgesense.systems.migration_result import (
    Claim,
    LabelShift,
    Migration,
    MovedItem,
    TaskMigration,
    claim_text,
)
from judgesense.systems.shared_prompts import (
    SharedPrompts,
    grouped,
    notes_on,
    read_tasks,
    shared_prompts,
)
from judgesense.tasks import UNDECIDED
from judgesense.trust.thresholds import NO_DIFFERENCE

_NO_EXCESS = Excess(None, None, None, None, None, 0, random=False)

_WORST: tuple[Claim, ...] = ("more", "cannot tell", "no more")


def migration(
    old: str | Path,
    new: str | Path,
    *,
    judge: str | tuple[str, str] | None = None,
    task: str | None = None,
    tolerance: float = NO_DIFFERENCE,
    error: float = 0.05,
) -> Migration:
    """Does an update of a judge move more verdicts than a paraphrase of its prompt does?

    The verdicts of both on the same prompts are compared. What rewording moves comes from the old
    judge's verdicts under its other wordings; what asking again moves, from its repeats. With fewer
    than four wordings, the claim is about rewording between these alone.

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
    if not 0 <= tolerance < 1:
        raise JudgeSenseError(f"tolerance is {tolerance!r}; pass a number from 0 to 1")
    if not 0 < error < 0.5:
        raise JudgeSenseError(f"error is {error!r}; pass a number above 0, such as 0.05")
    names = (judge, judge) if judge is None or isinstance(judge, str) else judge
    shared = shared_prompts(
        read_tasks(old, names[0], task, reference=True), read_tasks(new, names[1], task)
    )
    tasks = tuple(_compare(each, tolerance, error / len(shared)) for each in shared)
    claims = {each.claim for each in tasks}
    return Migration(
        claim=next(claim for claim in _WORST if claim in claims),
        tasks=tasks,
        notes=notes_on(shared, same_judge=True),
        sources=(str(old), str(new)),
        error=error,
    )


def _compare(shared: SharedPrompts, tolerance: float, error: float) -> TaskMigration:
    excess = shared.beyond_rewording(error) or _NO_EXCESS
    noise = shared.beyond_noise(error) or _NO_EXCESS
    claim, cause = _claim(shared, excess, tolerance)
    these, claim_these = _NO_EXCESS, None
    if excess.random:
        these = shared.beyond_rewording(error, like_these=False) or _NO_EXCESS
        claim_these = _claim(shared, these, tolerance)[0]
    needed = None
    if cause == "open":
        needed = _needed(excess, these if excess.random else excess, tolerance, error, shared)
        cause = "few wordings" if needed is None and excess.random else cause
    right = _accuracy(shared)
    update = TaskMigration(
        task=shared.task,
        scoring=shared.scoring,
        judge_old=shared.before.table.judge,
        judge_new=shared.after.table.judge,
        claim=claim,
        about="wordings like these" if excess.random else "these wordings",
        cause=cause,
        text="",
        tolerance=float(tolerance),
        error=error,
        moved=float(shared.moved.mean()),
        reworded=excess.other,
        asked_again=noise.other,
        excess=excess.excess,
        ci_low=excess.low,
        ci_high=excess.high,
        claim_these=claim_these,
        these_ci_low=these.low,
        these_ci_high=these.high,
        excess_again=noise.excess,
        excess_again_ci_low=noise.low,
        excess_again_ci_high=noise.high,
        n_prompts=len(shared.moved),
        n_items=len(set(shared.items)),
        n_clusters=len(set(shared.clusters)),
        n_wordings=len({*shared.wordings, *shared.pair_wording}),
        items_needed=needed,
        direction=_direction(shared),
        accuracy_old=right.first,
        accuracy_new=right.second,
        accuracy_difference=right.difference,
        accuracy_ci_low=right.ci_low,
        accuracy_ci_high=right.ci_high,
        items=_moved_items(shared),
    )
    return replace(update, text=claim_text(update))


def _claim(shared: SharedPrompts, excess: Excess, tolerance: float) -> tuple[Claim, str | None]:
    if shared.one_label:
        return "cannot tell", "one label"
    if not len(shared.pair_row):
        return "cannot tell", "one wording"
    if excess.low is None or excess.high is None:
        return "cannot tell", "one cluster"
    if excess.high < tolerance or excess.high <= 0:
        return "no more", None
    return ("more", None) if excess.low > 0 else ("cannot tell", "open")


def _needed(
    excess: Excess, these: Excess, tolerance: float, error: float, shared: SharedPrompts
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
    return needed and max(2, math.ceil(needed * len(set(shared.items)) / clusters))


def _direction(shared: SharedPrompts) -> tuple[LabelShift, ...]:
    """The share of each label before and after; nothing if no verdict moved."""
    if not shared.moved.any():
        return ()
    table = shared.before.table
    labels = [label for label in table.labels if label in shared.labels]
    labels += sorted(shared.labels - set(labels))
    labels += [label for label in UNDECIDED if label in {*shared.old, *shared.new}]
    columns = {label: (shared.old == label, shared.new == label) for label in labels}
    orders = table.column("order")[shared.old_row]
    if {"AB", "BA"} <= set(orders) and len(table.labels) == 2:
        shown = np.where(orders == "BA", table.labels[1], table.labels[0])
        columns = {"first shown": (shared.old == shown, shared.new == shown), **columns}
    clusters = shared.clusters.tolist()
    tests = {label: paired_test(*both, clusters) for label, both in columns.items()}
    adjusted = holm([test.p_value for test in tests.values()])
    return tuple(
        LabelShift(label, test.first, test.second, test.difference, test.ci_low, test.ci_high, p)
        for (label, test), p in zip(tests.items(), adjusted, strict=True)
    )


def _accuracy(shared: SharedPrompts) -> PairedDifference:
    """How often the verdicts match gold before and after, on the prompts that have it."""
    one = shared.before.table.column("gold")[shared.old_row]
    two = shared.after.table.column("gold")[shared.new_row]
    for item, a, b in zip(shared.items, one, two, strict=True):
        if None not in (a, b) and a != b:
            raise JudgeSenseError(
                f"{shared.task}: item {item!r} has the gold label {a} in "
                f"{shared.before.table.source} and {b} in {shared.after.table.source}; compare on "
                "the same labels"
            )
    gold = np.where(one == None, two, one)  # noqa: E711
    known = gold != None  # noqa: E711
    old, new = (verdicts[known] == gold[known] for verdicts in (shared.old, shared.new))
    return paired_test(old, new, shared.clusters[known].tolist())


def _moved_items(shared: SharedPrompts) -> tuple[MovedItem, ...]:
    """The items that moved, those first that moved most and that rewording moves least."""
    reworded = grouped(shared.items[shared.pair_row], shared.pair_differs.tolist())
    items = []
    for item, rows in grouped(shared.items, range(len(shared.items))).items():
        if moved := int(shared.moved[rows].sum()):
            pairs = reworded.get(item)
            items.append(
                MovedItem(
                    item_id=item,
                    prompts=len(rows),
                    moved=moved,
                    old=_usual(shared.old[rows]),
                    new=_usual(shared.new[rows]),
                    reworded=None if pairs is None else sum(pairs) / len(pairs),
                )
            )
    items.sort(key=lambda e: (-e.moved / e.prompts, e.reworded or 0.0, -e.moved, e.item_id))
    return tuple(items)


def _usual(verdicts: Words) -> str:
    counts = Counter[str](sorted(verdicts))
    return max(counts, key=lambda verdict: counts[verdict])
