"""The same judge at two times: which verdicts changed, compared with what rewording changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from judgesense.comparison.paired import PairedTable, grouped
from judgesense.comparison.verdicts import Verdicts, read_verdicts, select, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import is_dataset
from judgesense.files.typed_rows import number_of
from judgesense.log.folder import read_run
from judgesense.measure.wordings import Wordings
from judgesense.statistics.arrays import Bools, Codes, Words
from judgesense.statistics.updates import NOISE_FACTOR, Excess, excess_moves
from judgesense.tasks import ERROR, UNDECIDED
from judgesense.text import brackets, join, percent, signed

EXIT_CODES = {"more": 1, "alarm": 1, "cannot tell": 3, "no more": 0, "fine": 0}
"""The exit code of each conclusion on a task, the worst conclusion first."""

_NO_EXCESS = Excess(None, None, None, None, None, 0, random=False)

T = TypeVar("T", bound=str)

_PROMPT = ("item", "system", "wording", "order")
"""The columns that name a prompt in both results."""


def read_tasks(
    source: str | Path, judge: str | None, task: str | None = None, *, reference: bool = False
) -> list[Verdicts]:
    """A judge's verdicts in a run's folder or a file of verdicts, by task and scoring.

    A ``reference`` leaves out inverted wordings, and those that look inverted or mislabelled
    (`judgesense.measure.wordings`): they would make rewording seem to change more. Raises
    JudgeSenseError as `read_verdicts`; also for a run that is not finished.
    """
    path = Path(source)
    if not path.is_dir() or is_dataset(path):
        return [read_verdicts(path, judge=judge, task=task)]
    run = read_run(path)
    if "asked" in run.record and not run.record.get("finished"):
        raise JudgeSenseError(
            f"{path} is still being judged; wait until it ends, or rerun its command to finish it"
        )
    names = sorted({stream.task.name for stream in run.judged})
    if task is not None and task not in names:
        raise JudgeSenseError(f"{path} has no task {task!r}; choose from {', '.join(names)}")
    results = []
    for stream in select(run.judged, "judge", lambda stream: stream.judge, judge, str(path)):
        if task in (None, stream.task.name):
            left_out = stream.inverted | Wordings.of(stream).mislabelled if reference else ()
            results.append(verdicts_of(stream, path, left_out=left_out))
    return results


@dataclass(frozen=True)
class VerdictChanges:
    """What every comparison of two times says of one task and scoring.

    ``excess`` is the share of verdicts that changed (``moved``) less the share that rewording
    changes; it and its ends are None where one wording was judged.
    """

    task: str
    scoring: str
    moved: float
    reworded: float | None
    excess: float | None
    ci_low: float | None
    ci_high: float | None
    n_prompts: int
    n_items: int

    @property
    def moved_text(self) -> str:
        """How many verdicts changed."""
        share = percent(self.moved)
        return f"{share} of {self.n_prompts} verdicts on {self.n_items} items are different"

    @property
    def rewording_text(self) -> str:
        """How many verdicts rewording changes, and what changed beyond that."""
        ends = brackets(self.ci_low, self.ci_high, signed)
        if self.reworded is None:
            return "The effect of rewording has not been measured."
        return (
            f"Rewording changes {percent(self.reworded)} (difference {signed(self.excess)} {ends})."
        )


@dataclass(frozen=True, eq=False)
class PromptChanges:
    """The prompts that a judge answered before and after, and what rewording changes on them.

    ``table`` has a row for each prompt. ``pair_row`` are its rows, each once for every other
    wording of its item that was answered before, with the other wording and whether its verdict
    differs. ``left_out`` has the number of other prompts that both results have, by the reason.
    """

    table: PairedTable
    pair_row: Codes
    pair_wording: Words
    pair_differs: Bools
    left_out: Mapping[str, int]

    @classmethod
    def of(cls, before: Verdicts, after: Verdicts) -> PromptChanges:
        """Pair two results. Raises JudgeSenseError for other labels, or without a shared prompt."""
        require_same_scale(before, after)
        prompts = PairedTable.of(before, after, *_PROMPT)
        same_text = prompts
        if before.prompt is not None and after.prompt is not None:
            is_same = before.prompt[prompts.before_row] == after.prompt[prompts.after_row]
            same_text = prompts.where(is_same)
        answered = same_text.where((same_text.old != ERROR) & (same_text.new != ERROR))
        if not len(answered):
            reason = "no common items under the same wordings"
            if len(same_text):
                reason = "no common prompt with two answers, because every request failed"
            elif len(prompts):
                reason = "no common prompts, because the texts of all items or wordings differ"
            raise JudgeSenseError(
                f"{before.source} and {after.source} have {reason}. Judge the same items under "
                "the same wordings"
            )
        pair_row, other = _other_wordings(before, answered.before_row)
        table = answered
        if len(several := np.unique(pair_row)):
            # Both shares have to be of the same items.
            table = answered.where(several)
            pair_row, other = _other_wordings(before, table.before_row)
        return cls(
            table=table,
            pair_row=pair_row,
            pair_wording=before.wording[other],
            pair_differs=table.old[pair_row] != before.verdict[other],
            left_out={
                "their text changed": len(prompts) - len(same_text),
                "a request failed": len(same_text) - len(answered),
                "they have only one wording": len(answered) - len(table),
            },
        )

    @property
    def task(self) -> str:
        """The task's name; ``verdicts`` where neither source names one."""
        return self.table.before.task or self.table.after.task or "verdicts"

    def figures(self, excess: Excess) -> VerdictChanges:
        """How many verdicts changed, and how many beyond rewording."""
        scoring = self.table.before.scoring or self.table.after.scoring
        moved, n_items = float(self.table.is_changed.mean()), len({*self.table.column("item")})
        figures = excess.other, excess.excess, excess.low, excess.high
        return VerdictChanges(self.task, scoring, moved, *figures, len(self.table), n_items)

    @cached_property
    def labels(self) -> set[str]:
        """The labels that were given at either time."""
        return {*self.table.old, *self.table.new} - {*UNDECIDED}

    @property
    def is_one_label(self) -> bool:
        """Whether all verdicts are one label, as of a judge that does not read."""
        return len(self.labels) == 1 and not self.table.is_changed.any()

    @property
    def reworded(self) -> tuple[list[str], Bools]:
        """The cluster of each pair of wordings, and whether its verdicts differ."""
        return self.table.column("cluster")[self.pair_row].tolist(), self.pair_differs

    def beyond_rewording(self, error: float, *, like_these: bool = True) -> Excess:
        """What changed beyond rewording; without figures if one wording was judged before.

        The ends are for wordings like these, from four on, or else for these alone.
        """
        if not like_these:
            return self._beyond(*self.reworded, error=error)
        wording = self.table.column("wording")
        pairs = wording[self.pair_row].tolist(), self.pair_wording.tolist()
        sample = {"wordings": wording.tolist(), "other_wordings": pairs}
        return self._beyond(*self.reworded, error=error, **sample)

    def beyond_noise(self, error: float) -> Excess:
        """What changed beyond asking the judge of before again; no figures without repeats."""
        return self._beyond(*self.repeats, error=error)

    def beyond_any_noise(self, error: float) -> Excess:
        """What changed beyond the most that noise could change, whatever the wordings.

        With repeats, noise is measured; without, it is at most `NOISE_FACTOR` times the changes of
        rewording. No figures with one wording and no repeats.
        """
        if len(self.repeats[0]):
            return self.beyond_noise(error)
        return self._beyond(*self.reworded, error=error, factor=NOISE_FACTOR)

    def _beyond(self, clusters: Sequence[str], differs: Any, **options: Any) -> Excess:
        """What changed beyond another change, which ``differs`` or not; no figures without any."""
        if not len(clusters):
            return _NO_EXCESS
        of_moved = self.table.column("cluster").tolist()
        return excess_moves(self.table.is_changed, of_moved, differs, clusters, **options)

    @cached_property
    def repeats(self) -> tuple[list[str], list[bool]]:
        """The cluster of each repeat of before, and whether its verdict differs from the first."""
        before, verdicts = self.table.before, self.table.before.verdict
        is_shared = {*self.table.before_row.tolist()}
        first_of = before.first_rows(*_PROMPT)
        prompts = zip(*(getattr(before, name).tolist() for name in _PROMPT), strict=True)
        again = [
            (str(before.cluster[first]), bool(verdicts[row] != verdicts[first]))
            for row, prompt in enumerate(prompts)
            if (first := first_of[prompt]) != row and first in is_shared and verdicts[row] != ERROR
        ]
        return [cluster for cluster, _ in again], [differs for _, differs in again]


def _other_wordings(before: Verdicts, rows: Codes) -> tuple[Codes, Codes]:
    """Each row under every other wording on the same item and order: its place, the other's row."""
    items = list(zip(before.item, before.system, before.order, strict=True))
    answered = [r for r in before.first_rows(*_PROMPT).values() if before.verdict[r] != ERROR]
    of_item = grouped([items[row] for row in answered], answered)
    pairs = [
        (place, other)
        for place, row in enumerate(rows.tolist())
        for other in of_item[items[row]]
        if other != row
    ]
    place, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return place, other


def prompt_changes(old: Sequence[Verdicts], new: Sequence[Verdicts]) -> list[PromptChanges]:
    """The shared prompts of each task and scoring; a file without a task fits the only other one.

    Raises JudgeSenseError if there is no common task or prompt, or if a task's labels differ.
    """
    changes = []
    for one in old:
        for two in new:
            is_unnamed = "" in (one.task, two.task) and len(old) == len(new) == 1
            is_same_scoring = "" in (one.scoring, two.scoring) or one.scoring == two.scoring
            if (one.task == two.task or is_unnamed) and is_same_scoring:
                changes.append(PromptChanges.of(one, two))
    if not changes:
        judged = (
            f"{results[0].source} judged {join([f'{r.task} {r.scoring}' for r in results])}"
            for results in (old, new)
        )
        raise JudgeSenseError(f"no common task: {' and '.join(judged)}. Name the same task")
    return changes


def worst(conclusions: Iterable[T]) -> T:
    """The worst conclusion of several tasks."""
    return min(conclusions, key=[*EXIT_CODES].index)


def require_same_scale(one: Verdicts, two: Verdicts) -> None:
    """Raise JudgeSenseError for two scales; a file may simply never have given some label."""
    differ = {*one.labels} != {*two.labels}
    if not (one.is_stated and two.is_stated):
        differ = not {*one.labels} & {*two.labels}
        if one.is_numeric and two.is_numeric:
            tops = sorted(number_of(side.labels[-1]) or 0.0 for side in (one, two))
            differ |= tops[1] >= 2 * tops[0] > 0
    if differ:
        raise JudgeSenseError(
            f"{one.source} has the labels {', '.join(one.labels)} and {two.source} "
            f"{', '.join(two.labels)}. Only verdicts on one scale can be compared"
        )


def require_rules(
    tolerance: float, error: float, judge: str | Sequence[str] | None
) -> tuple[str | None, str | None]:
    """The judge of each result. Raises JudgeSenseError for a tolerance or error that is no share.

    An ``error`` of a half would be no claim.
    """
    if not 0 <= tolerance < 1:
        raise JudgeSenseError(f"tolerance is {tolerance!r}; pass a number from 0 to 1")
    if not 0 < error < 0.5:
        raise JudgeSenseError(f"error is {error!r}; pass a number above 0, such as 0.05")
    if judge is None or isinstance(judge, str):
        return judge, judge
    if not 0 < len(judge) < 3:
        raise JudgeSenseError(f"--judge is given {len(judge)} times; give it once or twice")
    return judge[0], judge[-1]


def notes_on(changes: Sequence[PromptChanges], *, same_judge: bool) -> tuple[str, ...]:
    """Whose verdicts are compared, if that is not plain, and what was left out, as sentences.

    ``same_judge``: also say if both times have the same judge, fingerprint included.
    """
    notes = []
    one, two = changes[0].table.before.judge, changes[0].table.after.judge
    if one and two and one.split("@")[0] != two.split("@")[0]:
        notes.append(f"{one} and {two} have different names but are compared as one judge")
    if same_judge and one == two and "@" in one:
        notes.append(
            f"{one} has the same name and fingerprint before and after, so the changes are noise "
            "or were made behind the endpoint"
        )
    for change in changes:
        before, after = change.table.before, change.table.after
        notes += [*before.notes, *after.notes]
        notes += [
            f"{change.task}: {count} prompts are left out because {reason}"
            for reason, count in change.left_out.items()
            if count
        ]
        if before.left_out:
            names = join(before.left_out)
            notes.append(f"{change.task}: {names} are left out as inverted or mislabelled")
    return tuple(dict.fromkeys(notes))
