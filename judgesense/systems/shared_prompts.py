"""The same judge at two times: the verdicts of both on the prompts that they share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.view import view
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.run_folder.folder import digests_of, read_run
from judgesense.statistics.arrays import Bools, Codes, Words
from judgesense.statistics.updates import Excess, excess_moves
from judgesense.systems.verdict_files import read_verdicts, table_of_stream
from judgesense.systems.verdict_table import VerdictTable, chosen, number_of, objects
from judgesense.tasks import ERROR, UNDECIDED
from judgesense.text import join
from judgesense.trust.wordings import Wordings

_KEY = ("item_id", "system_id", "wording", "order")


@dataclass(frozen=True, eq=False)
class JudgedTask:
    """One judge's verdicts on one task.

    ``table`` lacks the wordings in ``left_out``. ``prompt_ids`` has one id per row; it is None for
    a file, and ``scoring`` is "". ``digest`` identifies the contents of the source.
    """

    table: VerdictTable
    scoring: str
    left_out: tuple[str, ...]
    prompt_ids: Words | None
    digest: str

    @cached_property
    def keys(self) -> list[tuple[Any, ...]]:
        """Item, system, wording and order of each row."""
        return list(zip(*(self.table.column(name) for name in _KEY), strict=True))

    @cached_property
    def first(self) -> dict[tuple[Any, ...], int]:
        """Each prompt's first answer: its key -> its row."""
        repeats = self.table.column("repeat")
        rows: dict[tuple[Any, ...], int] = {}
        for row in np.argsort(repeats, kind="stable").tolist():
            rows.setdefault(self.keys[row], row)
        return rows

    @cached_property
    def verdicts(self) -> Words:
        """The verdict of each row; UNCLEAR and REFUSED are verdicts of their own."""
        return self.table.column("verdict")

    @cached_property
    def answered(self) -> Bools:
        """Which rows have an answer, readable or not; a failed request has none."""
        mask: Bools = self.verdicts != ERROR
        return mask


def read_tasks(
    source: str | Path,
    judge: str | None = None,
    task: str | None = None,
    *,
    reference: bool = False,
) -> list[JudgedTask]:
    """A judge's verdicts in a run's folder or a file of verdicts, by task and scoring.

    A ``reference`` leaves out inverted wordings, and those that look inverted or mislabelled
    (`judgesense.trust.wordings`): they would make rewording seem to move more. Raises
    JudgeSenseError as `read_verdicts`; also for a run that is not finished.
    """
    path = Path(source)
    if not path.is_dir():
        table = read_verdicts(path, judge=judge, task=task)
        return [JudgedTask(table, "", (), None, sha256_of(path))]
    run = read_run(path)
    if "asked" in run.record and not run.record.get("finished"):
        raise JudgeSenseError(
            f"{path} is still being judged; wait until it ends, or rerun its command to finish it"
        )
    digests = run.record.get("digests") or digests_of(path)
    digest = hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()
    streams = view(run.figures, run.pairs, run.record).judged
    names = sorted({stream.task.name for stream in streams})
    if task is not None and task not in names:
        raise JudgeSenseError(f"{path} has no task {task!r}; choose from {', '.join(names)}")
    tasks = []
    for n in chosen([(stream.judge, "") for stream in streams], judge, None, str(path)):
        stream = streams[n]
        if task not in (None, stream.task.name):
            continue
        left_out = stream.inverted | Wordings.of(stream).mislabelled if reference else frozenset()
        table = table_of_stream(stream, path)
        kept = ~np.isin(table.column("wording"), list(left_out))
        prompt_ids = objects(stream.answers(repeats=True).column("prompt_id").to_pylist())[kept]
        table = replace(table, table=table.table.filter(pa.array(kept)))
        tasks.append(JudgedTask(table, stream.scoring, tuple(sorted(left_out)), prompt_ids, digest))
    return tasks


@dataclass(frozen=True, eq=False)
class SharedPrompts:
    """The prompts that a judge answered before and after, in the order of before, shape (n,) each.

    ``old_row`` and ``new_row`` are their rows in the two tables, ``old`` and ``new`` their verdicts
    in the item's own order, ``moved`` whether these differ. ``pair_row`` are prompts, each
    once for every other wording of its item that was answered before, with the other wording and
    whether its verdict differs. Left out are ``n_failed`` prompts that were not answered at one of
    the times, ``n_changed`` whose text differs, and ``n_single`` with one wording where others have
    several.
    """

    before: JudgedTask
    after: JudgedTask
    old_row: Codes
    new_row: Codes
    old: Words
    new: Words
    moved: Bools
    items: Words
    clusters: Words
    wordings: Words
    pair_row: Codes
    pair_wording: Words
    pair_differs: Bools
    n_failed: int
    n_changed: int
    n_single: int

    @property
    def task(self) -> str:
        """The task's name; ``verdicts`` where neither source names one."""
        return self.before.table.task or self.after.table.task or "verdicts"

    @property
    def scoring(self) -> str:
        """The scoring; "" for files."""
        return self.before.scoring or self.after.scoring

    @cached_property
    def labels(self) -> set[str]:
        """The labels that were given at either time."""
        return {*self.old, *self.new} - set(UNDECIDED)

    @property
    def one_label(self) -> bool:
        """Whether all verdicts are one label, as of a judge that does not read."""
        return len(self.labels) == 1 and not self.moved.any()

    def beyond_rewording(self, error: float, *, like_these: bool = True) -> Excess | None:
        """What moved beyond rewording; None if one wording was judged before.

        The ends are for wordings like these, from four on, or else for these alone.
        """
        if not len(self.pair_row):
            return None
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

    def beyond_noise(self, error: float) -> Excess | None:
        """What moved beyond asking the judge of before again; None without repeated prompts."""
        judged = self.before
        clusters, differs = [], []
        shared = dict(
            zip((judged.keys[row] for row in self.old_row.tolist()), self.clusters, strict=True)
        )
        for row, key in enumerate(judged.keys):
            first = judged.first[key]
            if row != first and key in shared and judged.answered[[row, first]].all():
                clusters.append(shared[key])
                differs.append(judged.verdicts[row] != judged.verdicts[first])
        if not clusters:
            return None
        return excess_moves(self.moved, self.clusters.tolist(), differs, clusters, error=error)


def shared_prompts(old: Sequence[JudgedTask], new: Sequence[JudgedTask]) -> list[SharedPrompts]:
    """The shared prompts of each task and scoring; a file without a task fits the only other one.

    Raises JudgeSenseError if there is no common task or prompt, or if a task's labels differ.
    """
    shared = []
    for one in old:
        for two in new:
            unnamed = "" in (one.table.task, two.table.task) and len(old) == len(new) == 1
            same_task = one.table.task == two.table.task or unnamed
            if same_task and ("" in (one.scoring, two.scoring) or one.scoring == two.scoring):
                _require_same_scale(one.table, two.table)
                shared.append(_shared(one, two))
    if not shared:
        judged = (
            f"{tasks[0].table.source} judged {join([f'{t.table.task} {t.scoring}' for t in tasks])}"
            for tasks in (old, new)
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


def _shared(old: JudgedTask, new: JudgedTask) -> SharedPrompts:
    """The prompts that were answered at both times. Raises JudgeSenseError if there are none."""
    common = [(row, new.first[key]) for key, row in old.first.items() if key in new.first]
    same_text = common
    if old.prompt_ids is not None and new.prompt_ids is not None:
        same_text = [(a, b) for a, b in common if old.prompt_ids[a] == new.prompt_ids[b]]
    answered = [(a, b) for a, b in same_text if old.answered[a] and new.answered[b]]
    if not answered:
        reason = "no common items under the same wordings"
        if same_text:
            reason = "no common prompt with two answers: every request failed"
        elif common:
            reason = "no common prompts: all items or wordings have another text"
        raise JudgeSenseError(
            f"{old.table.source} and {new.table.source} have {reason}. Judge the same items under "
            "the same wordings"
        )
    rows = np.array(answered, dtype=np.int64)
    reworded = np.unique(_other_wordings(old, rows[:, 0])[0])
    n_single = len(rows) - len(reworded) if len(reworded) else 0
    if n_single:
        # Both shares have to be of the same items.
        rows = rows[reworded]
    old_row, new_row = rows.T
    before, after = old.verdicts[old_row], new.verdicts[new_row]
    place, other = _other_wordings(old, old_row)
    return SharedPrompts(
        before=old,
        after=new,
        old_row=old_row,
        new_row=new_row,
        old=before,
        new=after,
        moved=before != after,
        items=old.table.column("item_id")[old_row],
        clusters=old.table.column("cluster_id")[old_row],
        wordings=_wordings(old, old_row),
        pair_row=place,
        pair_wording=_wordings(old, other),
        pair_differs=np.asarray(before[place] != old.verdicts[other], dtype=bool),
        n_failed=len(same_text) - len(answered),
        n_changed=len(common) - len(same_text),
        n_single=n_single,
    )


def grouped(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, list[Any]]:
    """The values by key, both in order of appearance.

    >>> grouped(["a", "b", "a"], [1, 2, 3])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Any, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return groups


def _other_wordings(judged: JudgedTask, rows: Codes) -> tuple[Codes, Codes]:
    """Each row under every other wording on the same item and order: its place, the other row."""
    kept = [(key, row) for key, row in judged.first.items() if judged.answered[row]]
    groups = grouped(((k[0], k[1], k[3]) for k, _ in kept), (row for _, row in kept))
    pairs = []
    for place, row in enumerate(rows.tolist()):
        item, system, _, order = judged.keys[row]
        pairs += [(place, other) for other in groups[item, system, order] if other != row]
    places, others = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return places, others


def _wordings(judged: JudgedTask, rows: Codes) -> Words:
    return objects([word or "" for word in judged.table.column("wording")[rows]])


def notes_on(shared: Sequence[SharedPrompts], *, same_judge: bool) -> tuple[str, ...]:
    """Whose verdicts are compared, if that is not plain, and what was left out, as sentences.

    ``same_judge``: also say if both times have the same judge, fingerprint included.
    """
    notes = []
    one, two = shared[0].before.table.judge, shared[0].after.table.judge
    if one and two and one.split("@")[0] != two.split("@")[0]:
        notes.append(f"{one} and {two} have different names; they are compared as one judge")
    if same_judge and one == two and "@" in one:
        notes.append(
            f"{one} is the same judge on both sides, fingerprint included: what moved is noise, or "
            "changed behind the endpoint"
        )
    for each in shared:
        for count, what in (
            (each.n_changed, "have another text and are left out"),
            (each.n_failed, "have a failed request and are left out"),
            (each.n_single, "have one wording and are left out"),
        ):
            if count:
                notes.append(f"{each.task}: {count} prompts {what}")
        if each.before.left_out:
            names = join(each.before.left_out)
            notes.append(f"{each.task}: left out as inverted or mislabelled: {names}")
    return tuple(dict.fromkeys(notes))
