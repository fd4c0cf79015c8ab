"""The answers of an existing log as votes: who said what of which item, set by set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from judgesense.decisions.view import View, view
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import read_run
from judgesense.tasks import UNDECIDED, is_scale


class JudgeVote(NamedTuple):
    """The first answer of a judge to a prompt; ``label`` is None if undecided.

    ``part`` names the set of items that is measured by itself.
    """

    judge: str
    part: str
    item: str
    order: str
    template: str
    label: str | None
    gold: str
    cluster: int


def read_votes(run_dir: Path, by: str) -> tuple[list[JudgeVote], int]:
    """The votes in a log, and the number of its answers to repeated prompts, which are left out.

    Sets are tasks (``by`` "task") or the item ids' part before the last slash (``by`` "set"); a
    set with several tasks or scorings is one set for each.

    Raises:
        JudgeSenseError: no log in the folder, or an item without a gold label.
    """
    seen = view(read_run(run_dir).log)
    names, parts = seen.names, _part_names(seen, by)
    votes = []
    for stream in seen.judged:
        own = stream.answers()
        for item, order, template, label, gold, cluster in zip(
            own.item, own.order, own.template, own.label, own.gold, own.cluster.tolist(),
            strict=True,
        ):  # fmt: skip
            if not gold:
                raise JudgeSenseError(
                    f"item {item!r} has no gold label: accuracy needs one for every item"
                )
            part = parts[_base(item, stream.task.name, by), stream.task.name, stream.scoring]
            said = None if label in UNDECIDED else label
            votes.append(
                JudgeVote(names[stream.judge], part, item, order, template, said, gold, cluster)
            )
    return votes, len(seen.log.item) - len(votes)


def _base(item: str, task: str, by: str) -> str:
    return task if by == "task" else item.rpartition("/")[0]


def _part_names(seen: View, by: str) -> dict[tuple[str, str, str], str]:
    """The name of every set by its base name, task and scoring."""
    found = {
        (_base(item, stream.task.name, by), stream.task.name, stream.scoring)
        for stream in seen.judged
        for item in stream.answers().item
    }
    names = {}
    for base, task, scoring in found:
        alike = [one for one in found if one[0] == base]
        several = len({one[1] for one in alike}) > 1
        name = f"{base}, {task}" if several else base
        scorings = {one[2] for one in alike if one[1] == task}
        names[base, task, scoring] = f"{name}, {scoring}" if len(scorings) > 1 else name
    return names


def codes_of(votes: Iterable[JudgeVote]) -> dict[str, float]:
    """A set's labels as numbers: scales by their value, names by their alphabetic position."""
    labels = {label for vote in votes for label in (vote.gold, vote.label) if label is not None}
    if is_scale(labels):
        return {label: float(label) for label in labels}
    return {label: float(at) for at, label in enumerate(sorted(labels))}
