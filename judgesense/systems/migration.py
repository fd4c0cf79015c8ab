"""What an update of a judge changes: verdicts moved by it, by rewording and by asking again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgesense.errors import JudgeSenseError
from judgesense.statistics.planning import error_of, items_for_estimate
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.statistics.updates import Excess, KeptRate, excess_moves
from judgesense.systems.migration_details import (
    LabelShift,
    MovedItem,
    accuracy,
    direction,
    kept_rate,
    level_shift,
    moved_items,
)
from judgesense.systems.migration_texts import claim_text, clear, render
from judgesense.systems.sides import (
    Common,
    common,
    described_inputs,
    other_judge,
    paired,
    read_sides,
    same_judge,
    task_name,
)
from judgesense.trust.thresholds import NO_DIFFERENCE

Claim = Literal["no more", "more", "cannot tell"]

_WORST: tuple[Claim, ...] = ("more", "cannot tell", "no more")


@dataclass(frozen=True)
class TaskMigration:
    """What an update changes on one task and scoring.

    ``claim`` is about ``excess``: the share of verdicts that the update moves minus the share that
    rewording moves. ``more`` says that it lies above 0, ``no more`` that it lies below
    ``tolerance``; each is wrong in at most ``error`` of runs, which is what its ends ``ci_low`` and
    ``ci_high`` are made for. From four wordings on, it is about wordings like these, and
    ``claim_these``, with its ends ``these_ci_low`` and ``these_ci_high``, about these alone; None
    with fewer. ``cause`` names what keeps the claim from being told: ``open`` (too few items),
    ``few wordings`` (which differ so much that more items would not tell), ``one wording``, ``one
    label`` or ``one cluster``; else it is None. ``asked_again`` is the share that the old judge
    moves on the same prompt. ``items_needed`` settles an open claim with 80% probability. UNCLEAR
    and REFUSED count as verdicts of their own.
    """

    task: str
    scoring: str
    judge_old: str
    judge_new: str
    claim: Claim
    cause: str | None
    text: str
    tolerance: float
    error: float
    moved: float
    reworded: float | None
    asked_again: float | None
    asked_again_new: float | None
    excess: float | None
    ci_low: float | None
    ci_high: float | None
    claim_these: Claim | None
    these_ci_low: float | None
    these_ci_high: float | None
    excess_again: float | None
    excess_again_ci_low: float | None
    excess_again_ci_high: float | None
    n_prompts: int
    n_items: int
    n_clusters: int
    n_wordings: int
    items_needed: int | None
    direction: tuple[LabelShift, ...]
    level_shift: float | None
    level_shift_ci_low: float | None
    level_shift_ci_high: float | None
    accuracy_old: float | None
    accuracy_new: float | None
    accuracy_difference: float | None
    accuracy_ci_low: float | None
    accuracy_ci_high: float | None
    threshold: KeptRate | None
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
        return {"no more": 0, "more": 1, "cannot tell": 3}[self.claim]

    def to_pandas(self) -> Any:
        """The tasks as a `pandas.DataFrame`, without their lists of labels and items."""
        lists = ("direction", "items", "threshold")
        rows = (task.__dict__ for task in self.tasks)
        return data_frame([{k: v for k, v in row.items() if k not in lists} for row in rows])

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html_table((), [(line,) for line in render(self).splitlines() if line])


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
    couples = paired(
        read_sides(old, names[0], task, reference=True), read_sides(new, names[1], task)
    )
    shared = [common(one, two) for one, two in couples]
    each = error / len(shared)
    found = tuple(_compare(sides, tolerance, each, pass_at, positive) for sides in shared)
    labelled = {task_name(sides): sides for sides in shared}
    notes = [*other_judge(*couples[0]), *same_judge(*couples[0]), *described_inputs(labelled)]
    claims = {task.claim for task in found}
    return Migration(
        claim=next(claim for claim in _WORST if claim in claims),
        tasks=found,
        notes=tuple(dict.fromkeys(notes)),
        sources=(str(old), str(new)),
        error=error,
    )


def reworded_excess(sides: Common, error: float, *, like_these: bool = True) -> Excess | None:
    """What moved between the sides beyond rewording; None if the old side has one wording.

    The ends are for wordings like these, from four on, or else for these alone.
    """
    if not len(sides.pair_row):
        return None
    pairs = sides.wordings[sides.pair_row].tolist(), sides.pair_wording.tolist()
    return excess_moves(
        sides.moved,
        sides.clusters.tolist(),
        sides.pair_differs,
        sides.clusters[sides.pair_row].tolist(),
        wordings=sides.wordings.tolist() if like_these else None,
        other_wordings=pairs if like_these else None,
        error=error,
    )


def _compare(
    sides: Common,
    tolerance: float,
    error: float,
    pass_at: float | None,
    positive: str | None,
) -> TaskMigration:
    excess = reworded_excess(sides, error)
    again = {side: sides.asked_again(side) for side in (sides.old_side, sides.new_side)}
    noise = None
    if (repeats := again[sides.old_side]) is not None:
        noise = excess_moves(
            sides.moved, sides.clusters.tolist(), repeats[1], repeats[0].tolist(), error=error
        )
    claim, cause = _claim(sides, excess, tolerance)
    these = reworded_excess(sides, error, like_these=False)
    claim_these = None
    if excess is None or not excess.random:
        these = None
    else:
        claim_these = _claim(sides, these, tolerance)[0]
    needed = None
    if cause == "open":
        needed = _needed(excess, these or excess, tolerance, error, sides)
        cause = cause if needed is not None or these is None else "few wordings"
    levels, level_ends = level_shift(sides)
    right = accuracy(sides)
    shares = {
        side: None if found is None else float(found[1].mean()) for side, found in again.items()
    }
    n_items = len(set(sides.items))
    shifts = direction(sides)
    gained = [shift for shift in clear(shifts) if (shift.difference or 0.0) > 0]
    text = claim_text(
        task_name(sides), claim, cause, excess, float(sides.moved.mean()), tolerance,
        prompts=len(sides.moved), items=n_items, needed=needed,
        these=None if claim_these in (None, claim) else (str(claim_these), these),
        towards=max(gained, key=lambda shift: shift.difference or 0.0, default=None),
    )  # fmt: skip
    return TaskMigration(
        task=task_name(sides),
        scoring=sides.old_side.scoring or sides.new_side.scoring,
        judge_old=sides.old_side.table.judge,
        judge_new=sides.new_side.table.judge,
        claim=claim,
        cause=cause,
        text=text,
        tolerance=float(tolerance),
        error=error,
        moved=float(sides.moved.mean()),
        reworded=None if excess is None else excess.other,
        asked_again=shares[sides.old_side],
        asked_again_new=shares[sides.new_side],
        excess=None if excess is None else excess.excess,
        ci_low=None if excess is None else excess.low,
        ci_high=None if excess is None else excess.high,
        claim_these=claim_these,
        these_ci_low=None if these is None else these.low,
        these_ci_high=None if these is None else these.high,
        excess_again=None if noise is None else noise.excess,
        excess_again_ci_low=None if noise is None else noise.low,
        excess_again_ci_high=None if noise is None else noise.high,
        n_prompts=len(sides.moved),
        n_items=n_items,
        n_clusters=len(set(sides.clusters)),
        n_wordings=len({*sides.wordings, *sides.pair_wording}),
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
        threshold=kept_rate(sides, pass_at, positive),
        items=moved_items(sides),
    )


def _claim(sides: Common, excess: Excess | None, tolerance: float) -> tuple[Claim, str | None]:
    if sides.one_label:
        return "cannot tell", "one label"
    if excess is None:
        return "cannot tell", "one wording"
    if excess.low is None or excess.high is None:
        return "cannot tell", "one cluster"
    if excess.high < tolerance or excess.high <= 0:
        return "no more", None
    return ("more", None) if excess.low > 0 else ("cannot tell", "open")


def _needed(
    excess: Excess | None, these: Excess | None, tolerance: float, error: float, sides: Common
) -> int | None:
    """Items that would settle the claim with 80% probability if the excess is as it was found.

    None if no number of items does, because what differs between wordings does not shrink with
    items. ``these`` has the ends for these wordings alone.
    """
    if excess is None or these is None or these.low is None or these.high is None:
        return None
    clusters, level = excess.n_clusters, 1 - 2 * error
    spread = error_of(these.low, these.high, clusters, level)
    ends = (0.0, tolerance)
    limit = max(ends, key=lambda end: abs(excess.excess - end))
    found = items_for_estimate(
        excess.excess, spread, clusters, threshold=limit, confidence_level=level
    )
    if excess.wordings_error > 0 and found.clusters is not None:
        # The variance that decides, spread² clusters / found, minus what items do not shrink.
        left = 1 - excess.wordings_error**2 * found.clusters / (spread**2 * clusters)
        if left <= 0:
            return None
        found = found.scaled(1 / left)
    return found.scaled(len(set(sides.items)) / clusters).clusters
