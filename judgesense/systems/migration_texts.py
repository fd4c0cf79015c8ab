"""A migration in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from judgesense.statistics.updates import Excess
from judgesense.text import brackets, join, number, percent, signed
from judgesense.trust.thresholds import SIGNIFICANT

if TYPE_CHECKING:
    from judgesense.systems.migration import Migration, TaskMigration
    from judgesense.systems.migration_details import LabelShift

_SHOWN = 10
"""Items that the text lists for each task."""

_CAUSES = {
    "one wording": "the old run asked one wording, so rewording is not measured: judge OLD under "
    "at least two wordings",
    "one label": "all verdicts of both are one label, and a judge that does not read would move as "
    "little: add items with another label",
    "few wordings": "the wordings differ too much for more items to tell: add wordings",
    "one cluster": "one item, or one cluster of items, has no interval: add items",
}


def claim_text(
    task: str,
    claim: str,
    cause: str | None,
    excess: Excess | None,
    moved: float,
    tolerance: float,
    *,
    prompts: int,
    items: int,
    needed: int | None,
    these: tuple[str, Excess | None] | None = None,
    towards: LabelShift | None = None,
) -> str:
    """The claim on a task in a sentence or two, with its figures.

    ``these`` is the claim on these wordings alone, if it differs, and ``towards`` the label that
    gained most, if one clearly did.

    >>> claim_text("t", "cannot tell", "one label", None, 0.0, 0.02, prompts=9, items=9,
    ...            needed=None)[:32]
    't: cannot tell whether the updat'
    """
    figures = f"it moved {percent(moved)} of {prompts} verdicts on {items} items"
    if excess is not None:
        figures += f", rewording {percent(excess.other)}; difference {signed(excess.excess)} "
        figures += brackets(excess.low, excess.high, signed)
    if towards is not None:
        figures += f"; towards {towards.label}, {percent(towards.old)} to {percent(towards.new)}"
    if claim == "more":
        return f"{task}: the update moves more verdicts than a paraphrase does ({figures})."
    told = "" if these is None else _these_text(*these)
    if claim == "no more":
        within = ""
        if excess is not None and excess.high is not None and excess.high > 0:
            within = f", give or take {number(tolerance, 2)}"
        aside = ", but in one direction" if towards is not None else ""
        return (
            f"{task}: the update moves no more verdicts than a paraphrase does{within}{aside} "
            f"({figures}).{told}"
        )
    why = _CAUSES.get(cause or "", "too few items")
    if needed is not None:
        why = f"about {needed:,} items would tell, if the difference is as found"
    return (
        f"{task}: cannot tell whether the update moves more verdicts than a paraphrase does "
        f"({figures}); {why}.{told}"
    )


def _these_text(claim: str, excess: Excess | None) -> str:
    ends = "" if excess is None else f" {brackets(excess.low, excess.high, signed)}"
    moves = {
        "more": "it moves more than rewording", "no more": "it moves no more than rewording",
    }.get(claim, "it cannot be told")  # fmt: skip
    return f" Under these wordings alone, {moves}{ends}; the claim is about wordings like these."


def render(found: Migration) -> str:
    """A migration as plain text: the claims first, then figures by task."""
    lines = [*(task.text for task in found.tasks), *(f"Note: {note}." for note in found.notes)]
    for task in found.tasks:
        heading = f"{task.task} ({task.scoring})" if task.scoring else task.task
        lines += ["", heading, *(f"  - {line}" for line in _details(task))]
    lines += [
        "",
        "Each end of a difference is wrong in at most "
        f"{100 * found.tasks[0].error:.3g}% of runs, so that "
        f"{'a claim' if len(found.tasks) == 1 else 'any of the claims'} is wrong in at most "
        f"{100 * found.error:.3g}%. Items, or the clusters that they share, are the sample; from "
        "four wordings on, wordings are too.",
    ]
    return "\n".join(lines)


def _details(task: TaskMigration) -> Iterator[str]:
    if task.asked_again is not None:
        told = f"asked again, the old judge moves {percent(task.asked_again)} of its verdicts"
        if task.asked_again_new is not None:
            told += f", the new one {percent(task.asked_again_new)}"
        ends = brackets(task.excess_again_ci_low, task.excess_again_ci_high, signed)
        yield f"{told}; the update moves {signed(task.excess_again)} more {ends}"
    shifts = clear(task.direction)
    for shift in shifts:
        yield (
            f"{shift.label}: {percent(shift.old)} before, {percent(shift.new)} after "
            f"({signed(shift.difference)} {brackets(shift.ci_low, shift.ci_high, signed)})"
        )
    if task.direction and not shifts:
        yield "no label is clearly more frequent than before"
    if task.level_shift is not None:
        ends = brackets(task.level_shift_ci_low, task.level_shift_ci_high, signed)
        yield f"mean score: {signed(task.level_shift)} {ends}"
    if task.accuracy_difference is not None:
        ends = brackets(task.accuracy_ci_low, task.accuracy_ci_high, signed)
        yield (
            f"matches gold: {percent(task.accuracy_old)} before, {percent(task.accuracy_new)} "
            f"after ({signed(task.accuracy_difference)} {ends})"
        )
    if task.threshold is not None:
        kept = task.threshold
        ends = brackets(kept.ci_low, kept.ci_high)
        yield (
            f"pass at {number(kept.new_threshold)} {ends} in place of {number(kept.threshold)} to "
            f"keep the pass rate of {percent(kept.pass_rate)} (then {percent(kept.kept_rate)}, "
            f"unchanged {percent(kept.unchanged_rate)})"
        )
    if task.items:
        shown = [_item(item) for item in task.items[:_SHOWN]]
        rest = len(task.items) - len(shown)
        yield (
            f"moved items: {join(shown) if not rest else ', '.join(shown)}"
            f"{f', and {rest} more (--format json lists all)' if rest else ''}"
        )


def clear(shifts: Sequence[LabelShift]) -> list[LabelShift]:
    """The labels whose share has clearly changed."""
    return [shift for shift in shifts if shift.p_holm is not None and shift.p_holm < SIGNIFICANT]


def _item(item: Any) -> str:
    of = "" if item.prompts == 1 else f", {item.moved} of {item.prompts}"
    if item.old == item.new:
        return f"{item.item_id} (mostly {item.old}{of})"
    return f"{item.item_id} ({item.old} to {item.new}{of})"
