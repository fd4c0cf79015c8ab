"""The same judge at two times: the verdicts of both on the prompts that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.pairing import first_rows, grouped, shared_rows
from judgesense.comparison.verdict_files import read_verdicts, table_of_stream
from judgesense.comparison.verdict_table import VerdictTable, chosen, number_of, objects
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.measure.wordings import Wordings
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.updates import Excess, excess_moves
from judgesense.tasks import ERROR, UNDECIDED
from judgesense.text import brackets, join, percent, signed

_NO_EXCESS = Excess(None, None, None, None, None, 0, random=False)


def read_tasks(
    source: str | Path, judge: str | None, task: str | None = None, *, reference: bool = False
) -> list[VerdictTable]:
    """A judge's verdicts in a run's folder or a file of verdicts, by task and scoring.

    A ``reference`` leaves out inverted wordings, and those that look inverted or mislabelled
    (`judgesense.measure.wordings`): they would make rewording seem to move more. Raises
    JudgeSenseError as `read_verdicts`; also for a run that is not finished.
    """
    path = Path(source)
    if not path.is_dir():
        return [read_verdicts(path, judge=judge, task=task)]
    run = read_run(path)
    if "asked" in run.record and not run.record.get("finished"):
        raise JudgeSenseError(
            f"{path} is still being judged; wait until it ends, or rerun its command to finish it"
        )
    names = sorted({stream.task.name for stream in run.judged})
    if task is not None and task not in names:
        raise JudgeSenseError(f"{path} has no task {task!r}; choose from {', '.join(names)}")
    tables = []
    for n in chosen([(stream.judge, "") for stream in run.judged], judge, None, str(path)):
        stream = run.judged[n]
        if task in (None, stream.task.name):
            left_out = stream.inverted | Wordings.of(stream).mislabelled if reference else ()
            tables.append(table_of_stream(stream, path, left_out))
    return tables


@dataclass(frozen=True)
class Moves:
    """What every comparison of two times says of one task and scoring.

    ``excess`` is the share of verdicts that ``moved`` less the share that rewording moves; it and
    its ends are None where one wording was judged.
    """

    task: str
    scoring: str
    text: str
    tolerance: float
    error: float
    moved: float
    reworded: float | None
    excess: float | None
    ci_low: float | None
    ci_high: float | None
    n_prompts: int
    n_items: int

    @property
    def moved_text(self) -> str:
        """How many verdicts moved."""
        share = percent(self.moved)
        return f"{share} of {self.n_prompts} verdicts on {self.n_items} items are different"

    @property
    def rewording_text(self) -> str:
        """How many verdicts rewording moves, and what moved beyond that."""
        ends = brackets(self.ci_low, self.ci_high, signed)
        if self.reworded is None:
            return "The effect of rewording has not been measured."
        return (
            f"Rewording changes {percent(self.reworded)} (difference {signed(self.excess)} {ends})."
        )


class SharedPrompts:
    """The prompts that a judge answered before and after, in the order of before, shape (n,) each.

    ``old_row`` and ``new_row`` are their rows in the two tables, ``old`` and ``new`` their verdicts
    in the item's own order, ``moved`` whether these differ. ``pair_row`` are prompts, each
    once for every other wording of its item that was answered before, with the other wording and
    whether its verdict differs. Left out are ``n_failed`` prompts that were not answered at one of
    the times, ``n_changed`` whose text differs, and ``n_single`` with one wording where others have
    several. Raises JudgeSenseError if the labels differ, or without a shared prompt.
    """

    def __init__(self, before: VerdictTable, after: VerdictTable) -> None:
        _require_same_scale(before, after)
        self.before, self.after = before, after
        self._first = _first_answers(before)
        common = np.stack(shared_rows(self._first, _first_answers(after)))
        same_text = common
        if before.prompt_ids is not None and after.prompt_ids is not None:
            same_text = common[:, before.prompt_ids[common[0]] == after.prompt_ids[common[1]]]
        self._verdicts = before.column("verdict")
        old, new = self._verdicts[same_text[0]], after.column("verdict")[same_text[1]]
        rows = same_text[:, (old != ERROR) & (new != ERROR)]
        if not rows.size:
            reason = "no common items under the same wordings"
            if same_text.size:
                reason = "no common prompt with two answers, because every request failed"
            elif common.size:
                reason = "no common prompts, because the texts of all items or wordings differ"
            raise JudgeSenseError(
                f"{before.source} and {after.source} have {reason}. Judge the same items under "
                "the same wordings"
            )
        self.n_failed = same_text.shape[1] - rows.shape[1]
        self.n_changed = common.shape[1] - same_text.shape[1]
        reworded = np.unique(self._other_wordings(rows[0])[0])
        self.n_single = rows.shape[1] - len(reworded) if len(reworded) else 0
        if self.n_single:
            # Both shares have to be of the same items.
            rows = rows[:, reworded]
        self.old_row, self.new_row = rows
        self.old, self.new = self._verdicts[self.old_row], after.column("verdict")[self.new_row]
        self.moved: Bools = self.old != self.new
        self.items = before.column("item_id")[self.old_row]
        self.clusters = before.column("cluster_id")[self.old_row]
        wordings = objects([word or "" for word in before.column("wording")])
        self.wordings = wordings[self.old_row]
        self.pair_row, other = self._other_wordings(self.old_row)
        self.pair_wording = wordings[other]
        self.pair_differs: Bools = self.old[self.pair_row] != self._verdicts[other]

    def _other_wordings(self, rows: Codes) -> tuple[Codes, Codes]:
        """Each row under every other wording on the same item and order: its place, the other."""
        places = {row: (i, s, o) for (i, s, _, o), row in self._first.items()}
        answered = [row for row in places if self._verdicts[row] != ERROR]
        groups = grouped([places[row] for row in answered], answered)
        pairs = [
            (place, other)
            for place, row in enumerate(rows.tolist())
            for other in groups[places[row]]
            if other != row
        ]
        place, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return place, other

    @property
    def task(self) -> str:
        """The task's name; ``verdicts`` where neither source names one."""
        return self.before.task or self.after.task or "verdicts"

    def figures(self, excess: Excess) -> dict[str, Any]:
        """What every result has: whose verdicts, how many, and how many moved beyond rewording."""
        return {
            "task": self.task,
            "scoring": self.before.scoring or self.after.scoring,
            "moved": float(self.moved.mean()),
            "reworded": excess.other,
            "excess": excess.excess,
            "ci_low": excess.low,
            "ci_high": excess.high,
            "n_prompts": len(self.moved),
            "n_items": len(set(self.items)),
        }

    @cached_property
    def labels(self) -> set[str]:
        """The labels that were given at either time."""
        return {*self.old, *self.new} - set(UNDECIDED)

    @property
    def one_label(self) -> bool:
        """Whether all verdicts are one label, as of a judge that does not read."""
        return len(self.labels) == 1 and not self.moved.any()

    def beyond_rewording(self, error: float, *, like_these: bool = True) -> Excess:
        """What moved beyond rewording; without figures if one wording was judged before.

        The ends are for wordings like these, from four on, or else for these alone.
        """
        if not len(self.pair_row):
            return _NO_EXCESS
        pairs = self.wordings[self.pair_row].tolist(), self.pair_wording.tolist()
        return excess_moves(
            self.moved,
            self.clusters.tolist(),
            self.pair_differs,
            self.clusters[self.pair_row].tolist(),
            wordings=self.wordings.tolist() if like_these else None,
            other_wordings=pairs if like_these else None,
            error=error,
        )

    def beyond_noise(self, error: float) -> Excess:
        """What moved beyond asking the judge of before again; no figures without repeats."""
        keys, clusters, differs = _keys(self.before), [], []
        shared = {
            keys[row]: (row, cluster)
            for row, cluster in zip(self.old_row.tolist(), self.clusters, strict=True)
        }
        for row, (key, verdict) in enumerate(zip(keys, self._verdicts, strict=True)):
            first, cluster = shared.get(key, (row, ""))
            if row != first and verdict != ERROR:
                clusters.append(cluster)
                differs.append(verdict != self._verdicts[first])
        if not clusters:
            return _NO_EXCESS
        return excess_moves(self.moved, self.clusters.tolist(), differs, clusters, error=error)


def _keys(table: VerdictTable) -> list[tuple[Any, ...]]:
    """Item, system, wording and order of each row."""
    columns = ("item_id", "system_id", "wording", "order")
    return list(zip(*map(table.column, columns), strict=True))


def _first_answers(table: VerdictTable) -> dict[tuple[Any, ...], int]:
    """Each prompt's first answer: its key -> its row."""
    keys = _keys(table)
    rows = np.argsort(table.column("repeat"), kind="stable").tolist()
    return first_rows([keys[row] for row in rows], rows)


def shared_prompts(old: Sequence[VerdictTable], new: Sequence[VerdictTable]) -> list[SharedPrompts]:
    """The shared prompts of each task and scoring; a file without a task fits the only other one.

    Raises JudgeSenseError if there is no common task or prompt, or if a task's labels differ.
    """
    shared = []
    for one in old:
        for two in new:
            unnamed = "" in (one.task, two.task) and len(old) == len(new) == 1
            same_scoring = "" in (one.scoring, two.scoring) or one.scoring == two.scoring
            if (one.task == two.task or unnamed) and same_scoring:
                shared.append(SharedPrompts(one, two))
    if not shared:
        judged = (
            f"{tables[0].source} judged {join([f'{t.task} {t.scoring}' for t in tables])}"
            for tables in (old, new)
        )
        raise JudgeSenseError(f"no common task: {' and '.join(judged)}. Name the same task")
    return shared


def _require_same_scale(one: VerdictTable, two: VerdictTable) -> None:
    """Raise JudgeSenseError for two scales; a file may simply never have given some label."""
    differ = set(one.labels) != set(two.labels)
    if not (one.stated and two.stated):
        differ = not set(one.labels) & set(two.labels)
        if one.numeric and two.numeric:
            tops = sorted(number_of(table.labels[-1]) or 0.0 for table in (one, two))
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


def notes_on(shared: Sequence[SharedPrompts], *, same_judge: bool) -> tuple[str, ...]:
    """Whose verdicts are compared, if that is not plain, and what was left out, as sentences.

    ``same_judge``: also say if both times have the same judge, fingerprint included.
    """
    notes = []
    one, two = shared[0].before.judge, shared[0].after.judge
    if one and two and one.split("@")[0] != two.split("@")[0]:
        notes.append(f"{one} and {two} have different names but are compared as one judge")
    if same_judge and one == two and "@" in one:
        notes.append(
            f"{one} has the same name and fingerprint before and after, so the changes are noise "
            "or were made behind the endpoint"
        )
    for each in shared:
        notes += [*each.before.recognised, *each.after.recognised]
        for count, what in (
            (each.n_changed, "are left out because their text changed"),
            (each.n_failed, "are left out because a request failed"),
            (each.n_single, "are left out because they have only one wording"),
        ):
            if count:
                notes.append(f"{each.task}: {count} prompts {what}")
        if each.before.left_out:
            names = join(each.before.left_out)
            notes.append(f"{each.task}: {names} are left out as inverted or mislabelled")
    return tuple(dict.fromkeys(notes))
