"""What an update of a judge changes: verdicts moved by it, by rewording and by asking again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.statistics.planning import error_of, items_for_estimate
from judgesense.statistics.updates import Excess, excess_moves
from judgesense.systems.migration_details import (
    accuracy,
    direction,
    kept_rate,
    level_shift,
    moved_items,
)
from judgesense.systems.migration_result import Claim, Migration, TaskMigration, claim_text
from judgesense.systems.shared_prompts import (
    SharedPrompts,
    notes_on,
    read_tasks,
    shared_prompts,
)
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
    pass_at: float | None = None,
    positive: str | None = None,
) -> Migration:
    """Does an update of a judge move more verdicts than a paraphrase of its prompt does?

    The verdicts of both on the same prompts are compared. What rewording moves comes from the old
    judge's verdicts under its other wordings; what asking again moves, from its repeats.

    Args:
        old: folder of a run before the update, or a file of verdicts. Rewording is measured here,
            so it needs at least two wordings.
        new: the same after the update; the wordings that you use are enough.
        judge: the judge, if a source has several; two names if they differ.
        task: one task; None for all.
        tolerance: ``no more`` allows for this excess over rewording (a share of verdicts).
        error: the chance that any claim is wrong.
        pass_at: an item passes with a score of at least this: the expected score on a scale, or the
            probability of the positive label (0.5 without it).
        positive: the label of two that passes, if it is not plain (YES, PASS, ...).

    Returns:
        The claims and figures, by task and scoring.

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
    ...     found = migration(f"{folder}/old", f"{folder}/new")
    >>> found.claim, found.tasks[0].moved, found.tasks[0].reworded
    ('more', 1.0, 0.0)
    """
    for name, value, most in (("tolerance", tolerance, 1.0), ("error", error, 0.5)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < most:
            raise JudgeSenseError(f"{name} is {value!r}; pass a number from 0 to {most:g}")
    if error == 0:
        raise JudgeSenseError("error is 0; pass a number above 0, such as 0.05")
    names = (judge, judge) if judge is None or isinstance(judge, str) else judge
    shared = shared_prompts(
        read_tasks(old, names[0], task, reference=True), read_tasks(new, names[1], task)
    )
    own_error = error / len(shared)
    found = tuple(_compare(each, tolerance, own_error, pass_at, positive) for each in shared)
    claims = {each.claim for each in found}
    return Migration(
        claim=next(claim for claim in _WORST if claim in claims),
        tasks=found,
        notes=notes_on(shared, same_judge=True),
        sources=(str(old), str(new)),
        error=error,
    )


def reworded_excess(
    shared: SharedPrompts, error: float, *, like_these: bool = True
) -> Excess | None:
    """What moved beyond rewording; None if one wording was judged before.

    The ends are for wordings like these, from four on, or else for these alone.
    """
    if not len(shared.pair_row):
        return None
    pairs = shared.wordings[shared.pair_row].tolist(), shared.pair_wording.tolist()
    return excess_moves(
        shared.moved,
        shared.clusters.tolist(),
        shared.pair_differs,
        shared.clusters[shared.pair_row].tolist(),
        wordings=shared.wordings.tolist() if like_these else None,
        other_wordings=pairs if like_these else None,
        error=error,
    )


def _compare(
    shared: SharedPrompts,
    tolerance: float,
    error: float,
    pass_at: float | None,
    positive: str | None,
) -> TaskMigration:
    moved = float(shared.moved.mean())
    excess = reworded_excess(shared, error) or _NO_EXCESS
    again = shared.asked_again(shared.before, shared.old_row)
    again_new = shared.asked_again(shared.after, shared.new_row)
    noise = _NO_EXCESS
    if again is not None:
        noise = excess_moves(
            shared.moved, shared.clusters.tolist(), again[1], again[0].tolist(), error=error
        )
    claim, cause = _claim(shared, excess, tolerance)
    these, claim_these = _NO_EXCESS, None
    if excess.random:
        these = reworded_excess(shared, error, like_these=False) or _NO_EXCESS
        claim_these = _claim(shared, these, tolerance)[0]
    needed = None
    if cause == "open":
        needed = _needed(excess, these if excess.random else excess, tolerance, error, shared)
        cause = "few wordings" if needed is None and excess.random else cause
    levels, level_ends = level_shift(shared)
    right = accuracy(shared)
    shifts = direction(shared)
    found = TaskMigration(
        task=shared.task,
        scoring=shared.scoring,
        judge_old=shared.before.table.judge,
        judge_new=shared.after.table.judge,
        claim=claim,
        cause=cause,
        text="",
        tolerance=float(tolerance),
        error=error,
        moved=moved,
        reworded=excess.other,
        asked_again=None if again is None else float(again[1].mean()),
        asked_again_new=None if again_new is None else float(again_new[1].mean()),
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
        direction=shifts,
        level_shift=levels,
        level_shift_ci_low=level_ends.low,
        level_shift_ci_high=level_ends.high,
        accuracy_old=right.first,
        accuracy_new=right.second,
        accuracy_difference=right.difference,
        accuracy_ci_low=right.ci_low,
        accuracy_ci_high=right.ci_high,
        threshold=kept_rate(shared, pass_at, positive),
        items=moved_items(shared),
    )
    return replace(found, text=claim_text(found))


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
    """Items that would settle the claim with 80% probability if the excess is as it was found.

    None if no number of items does, because what differs between wordings does not shrink with
    items. ``these`` has the ends for these wordings alone.
    """
    if excess.excess is None or these.low is None or these.high is None:
        return None
    clusters, level = excess.n_clusters, 1 - 2 * error
    spread = error_of(these.low, these.high, clusters, level)
    value = excess.excess
    limit = max(0.0, tolerance, key=lambda end: abs(value - end))
    found = items_for_estimate(
        excess.excess, spread, clusters, threshold=limit, confidence_level=level
    )
    if excess.wordings_error > 0 and found.clusters is not None:
        # The variance that decides, spread² clusters / found, minus what items do not shrink.
        left = 1 - excess.wordings_error**2 * found.clusters / (spread**2 * clusters)
        if left <= 0:
            return None
        found = found.scaled(1 / left)
    return found.scaled(len(set(shared.items)) / clusters).clusters
