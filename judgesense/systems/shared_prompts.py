"""The same judge at two times: the verdicts of both on the prompts that they share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.decisions.view import Stream, view
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.run_folder.folder import digests_of, read_run
from judgesense.statistics.arrays import Bools, Codes, Words
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
        found: dict[tuple[Any, ...], int] = {}
        repeats = self.table.column("repeat")
        for row in np.argsort(repeats, kind="stable").tolist():
            found.setdefault(self.keys[row], row)
        return found

    @cached_property
    def verdicts(self) -> Words:
        """The verdict of each row; UNCLEAR and REFUSED are verdicts of their own."""
        return self.table.column("verdict")

    @cached_property
    def answered(self) -> Bools:
        """Which rows have an answer, readable or not; a failed request has none."""
        found: Bools = self.verdicts != ERROR
        return found


def read_tasks(
    source: str | Path,
    judge: str | None = None,
    task: str | None = None,
    *,
    reference: bool = False,
) -> list[JudgedTask]:
    """A judge's verdicts in a run's folder or a file of verdicts, by task and scoring.

    Args:
        source: a folder that ``judgesense run`` or ``import`` wrote, or a file that
            `judgesense.systems.verdict_files.read_verdicts` reads.
        judge: its name, with or without its fingerprint; needed if the source has several.
        task: one task; None for all of a run's.
        reference: leave out inverted wordings, and those that look inverted or mislabelled
            (`judgesense.trust.wordings`): they would make rewording seem to move more.

    Raises:
        JudgeSenseError: as `read_verdicts`; also a run that is not finished.
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
    streams = view(run.figures, run.pairs, run.record).judged
    digests = run.record.get("digests") or digests_of(path)
    digest = hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()
    names = sorted({stream.task.name for stream in streams})
    if task is not None and task not in names:
        raise JudgeSenseError(f"{path} has no task {task!r}; choose from {', '.join(names)}")
    # Several tasks are wanted here.
    keep = chosen([(stream.judge, "") for stream in streams], judge, None, str(path))
    return [
        _judged_task(streams[n], path, digest, reference)
        for n in keep
        if task in (None, streams[n].task.name)
    ]


def _judged_task(stream: Stream, path: Path, digest: str, reference: bool) -> JudgedTask:
    table = table_of_stream(stream, path)
    left_out: frozenset[str] = frozenset()
    if reference:
        left_out = stream.inverted | Wordings.of(stream).mislabelled
    kept = ~np.isin(table.column("wording"), list(left_out))
    prompt_ids = objects(stream.answers(repeats=True).column("prompt_id").to_pylist())[kept]
    return JudgedTask(table.take(kept), stream.scoring, tuple(sorted(left_out)), prompt_ids, digest)


@dataclass(frozen=True, eq=False)
class SharedPrompts:
    """The prompts that a judge answered before and after, in the order of before, shape (n,) each.

    ``old`` and ``new`` are verdicts, in the item's own order; ``old_row`` and ``new_row`` their
    rows in the tables. ``pair_row`` are prompts, each once for every other wording of its item that
    was answered before, with the other wording and whether its verdict differs. ``n_failed`` are
    prompts that were not answered at one of the times, ``n_changed`` those whose text differs, and
    ``n_single`` those with one wording where others have several; they are left out.
    """

    before: JudgedTask
    after: JudgedTask
    old_row: Codes
    new_row: Codes
    old: Words
    new: Words
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

    @property
    def moved(self) -> Bools:
        """Whether the verdict moved."""
        found: Bools = self.old != self.new
        return found

    @property
    def labels(self) -> set[str]:
        """The labels that were given at either time."""
        return {*self.old, *self.new} - set(UNDECIDED)

    @property
    def one_label(self) -> bool:
        """Whether all verdicts are one label, as of a judge that does not read."""
        return len(self.labels) == 1 and not self.moved.any()

    def asked_again(self, judged: JudgedTask, rows: Codes) -> tuple[Words, Bools] | None:
        """The clusters of repeated prompts, and whether a later answer differs from the first."""
        clusters, differs = [], []
        keys = (judged.keys[row] for row in rows.tolist())
        shared = dict(zip(keys, self.clusters, strict=True))
        for row, key in enumerate(judged.keys):
            first = judged.first[key]
            if row != first and key in shared and judged.answered[row] and judged.answered[first]:
                clusters.append(shared[key])
                differs.append(judged.verdicts[row] != judged.verdicts[first])
        if not clusters:
            return None
        return objects(clusters), np.array(differs, dtype=bool)


def shared_prompts(old: Sequence[JudgedTask], new: Sequence[JudgedTask]) -> list[SharedPrompts]:
    """The shared prompts of each task and scoring; a file without a task fits the only other one.

    Raises JudgeSenseError if there is no common task or prompt, or if a task's labels differ.
    """
    found = []
    for one in old:
        for two in new:
            unnamed = "" in (one.table.task, two.table.task) and len(old) == len(new) == 1
            same_task = one.table.task == two.table.task or unnamed
            if same_task and ("" in (one.scoring, two.scoring) or one.scoring == two.scoring):
                _require_same_scale(one.table, two.table)
                found.append(_lined_up(one, two))
    if not found:
        both = [f"{tasks[0].table.source} judged {_described(tasks)}" for tasks in (old, new)]
        raise JudgeSenseError(f"the sides share no task: {' and '.join(both)}. Name the same task")
    return found


def _described(tasks: Sequence[JudgedTask]) -> str:
    return join(
        [f"{t.table.task or 'a task'}{f' ({t.scoring})' if t.scoring else ''}" for t in tasks]
    )


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
            f"{one.task or two.task or 'the task'}: {one.source} has the labels "
            f"{', '.join(one.labels)} and {two.source} {', '.join(two.labels)}. Only verdicts on "
            "one scale can be compared"
        )


def _lined_up(old: JudgedTask, new: JudgedTask) -> SharedPrompts:
    """The prompts that were answered at both times. Raises JudgeSenseError if there are none."""
    sources = old.table.source, new.table.source
    shared = [(row, new.first[key]) for key, row in old.first.items() if key in new.first]
    if not shared:
        raise JudgeSenseError(
            f"no common items: {sources[0]} has {_some(old)}, {sources[1]} {_some(new)}. Judge the "
            "same items under the same wordings"
        )
    kept = shared
    if old.prompt_ids is not None and new.prompt_ids is not None:
        kept = [(a, b) for a, b in shared if old.prompt_ids[a] == new.prompt_ids[b]]
    if not kept:
        item = old.keys[shared[0][0]][0]
        raise JudgeSenseError(
            f"the prompts differ: item {item!r} and all others have another text in {sources[1]} "
            f"than in {sources[0]}. Judge the same items under the same wordings"
        )
    both = [(a, b) for a, b in kept if old.answered[a] and new.answered[b]]
    if not both:
        raise JudgeSenseError(
            f"no prompt has an answer in both {sources[0]} and {sources[1]}: every request failed"
        )
    rows = np.array(both, dtype=np.int64)
    reworded = np.unique(_other_wordings(old, rows[:, 0])[0])
    n_single = len(rows) - len(reworded) if len(reworded) else 0
    if n_single:
        # Both shares have to be of the same items.
        rows = rows[reworded]
    old_row, new_row = rows.T
    pair_row, pair_wording, pair_differs = _other_wordings(old, old_row)
    return SharedPrompts(
        before=old,
        after=new,
        old_row=old_row,
        new_row=new_row,
        old=old.verdicts[old_row],
        new=new.verdicts[new_row],
        items=old.table.column("item_id")[old_row],
        clusters=old.table.column("cluster_id")[old_row],
        wordings=_wordings(old, old_row),
        pair_row=pair_row,
        pair_wording=pair_wording,
        pair_differs=pair_differs,
        n_failed=len(kept) - len(both),
        n_changed=len(shared) - len(kept),
        n_single=n_single,
    )


def grouped(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, list[Any]]:
    """The values by key, both in order of appearance.

    >>> grouped(["a", "b", "a"], [1, 2, 3])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Any, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        found.setdefault(key, []).append(value)
    return found


def _other_wordings(judged: JudgedTask, rows: Codes) -> tuple[Codes, Words, Bools]:
    """For each row, every other wording on the same item and order: place, wording, differs."""
    kept = [(key, row) for key, row in judged.first.items() if judged.answered[row]]
    groups = grouped(((k[0], k[1], k[3]) for k, _ in kept), (row for _, row in kept))
    place: list[int] = []
    others: list[int] = []
    for at, row in enumerate(rows.tolist()):
        item, system, _, order = judged.keys[row]
        own = [other for other in groups[item, system, order] if other != row]
        place += [at] * len(own)
        others += own
    first, second = np.array(place, dtype=np.int64), np.array(others, dtype=np.int64)
    differs = judged.verdicts[rows[first]] != judged.verdicts[second]
    return first, _wordings(judged, second), np.asarray(differs, dtype=bool)


def _wordings(judged: JudgedTask, rows: Codes) -> Words:
    return objects([word or "" for word in judged.table.column("wording")[rows]])


def _some(judged: JudgedTask) -> str:
    items = list(dict.fromkeys(key[0] for key in judged.first))
    wordings = {key[2] for key in judged.first} - {None}
    under = f" under {join(sorted(wordings)[:3])}" if wordings else ""
    return f"{join([repr(item) for item in items[:2]])}{', ...' if len(items) > 2 else ''}{under}"


def notes_on(shared: Sequence[SharedPrompts], *, same_judge: bool) -> tuple[str, ...]:
    """Whose verdicts are compared, if that is not plain, and what was left out, as sentences.

    ``same_judge``: also say if both times have the same judge, fingerprint included.
    """
    notes = []
    one, two = shared[0].before.table.judge, shared[0].after.table.judge
    if one and two and one.split("@")[0] != two.split("@")[0]:
        notes.append(
            f"{one} and {two} have different names, and are taken for one judge before and after "
            "an update; to choose between two judges, use judgesense compare without --migration"
        )
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
