"""The same judge at two times: the verdicts of both on the prompts that they share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
from judgesense.systems.verdict_runs import table_of_stream
from judgesense.systems.verdict_schema import VerdictTable, chosen, number_of
from judgesense.systems.verdict_table import read_verdicts
from judgesense.tasks import ERROR, UNDECIDED
from judgesense.text import join
from judgesense.trust.wordings import Wordings

_KEY = ("item_id", "system_id", "wording", "order")


@dataclass(frozen=True, eq=False)
class Side:
    """One judge's verdicts on one task.

    ``table`` lacks the wordings in ``left_out``. ``prompt_ids`` has one id per row; it is None for
    a file, and ``scoring`` is "". ``digest`` identifies the contents of the source.
    """

    table: VerdictTable
    scoring: str
    left_out: tuple[str, ...]
    prompt_ids: Words | None
    digest: str

    @property
    def source(self) -> str:
        """The file or folder."""
        return self.table.source

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


def read_sides(
    source: str | Path,
    judge: str | None = None,
    task: str | None = None,
    *,
    reference: bool = False,
) -> list[Side]:
    """A judge's verdicts in a run's folder or a file of verdicts, by task and scoring.

    Args:
        source: a folder that ``judgesense run`` or ``import`` wrote, or a file that
            `judgesense.systems.verdict_table.read_verdicts` reads.
        judge: its name, with or without its fingerprint; needed if the source has several.
        task: one task; None for all of a run's.
        reference: leave out inverted wordings, and those that look inverted or mislabelled
            (`judgesense.trust.wordings`): they would make rewording seem to move more.

    Returns:
        The sides, one for each task and scoring.

    Raises:
        JudgeSenseError: as `read_verdicts`; also a run that is not finished.
    """
    path = Path(source)
    if not path.is_dir():
        table = read_verdicts(path, judge=judge, task=task)
        return [Side(table, "", (), None, sha256_of(path))]
    run = read_run(path)
    if "asked" in run.record and not run.record.get("finished"):
        raise JudgeSenseError(
            f"{path} is still being judged; wait until it ends, or rerun its command to finish it"
        )
    streams = view(run.figures, run.pairs, run.record).judged
    digests = run.record.get("digests") or digests_of(path)
    digest = hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()
    named = [(stream.judge, stream.task.name) for stream in streams]
    if task is not None and task not in {name for _, name in named}:
        names = sorted({name for _, name in named})
        raise JudgeSenseError(f"{path} has no task {task!r}; choose from {', '.join(names)}")
    own = {judge for judge, _ in named}
    keep = range(len(streams))
    if judge is not None or len(own) > 1:
        # One row for each judge: several tasks are wanted here.
        names_only = [(name, "") for name, _ in named]
        keep = chosen(names_only, judge, None, str(path))  # type: ignore[assignment]
    return [
        _side(streams[n], path, digest, reference)
        for n in keep
        if task is None or named[n][1] == task
    ]


def _side(stream: Stream, path: Path, digest: str, reference: bool) -> Side:
    table = table_of_stream(stream, path)
    left_out: frozenset[str] = frozenset()
    if reference:
        left_out = stream.inverted | Wordings.of(stream).mislabelled
    kept = ~np.isin(table.column("wording"), list(left_out))
    prompt_ids = np.array(
        [*stream.answers(repeats=True).column("prompt_id").to_pylist(), None], dtype=object
    )[:-1]
    return Side(table.take(kept), stream.scoring, tuple(sorted(left_out)), prompt_ids[kept], digest)


def paired(old: Sequence[Side], new: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Both sides of each task and scoring; a file without a task's name fits the only other one.

    Raises JudgeSenseError if they share no task, or if a task's labels differ.
    """
    found = []
    for one in old:
        for two in new:
            unnamed = "" in (one.table.task, two.table.task) and len(old) == len(new) == 1
            same_task = one.table.task == two.table.task or unnamed
            if same_task and ("" in (one.scoring, two.scoring) or one.scoring == two.scoring):
                found.append((one, two))
    if not found:
        told = [f"{sides[0].source} judged {_described(sides)}" for sides in (old, new)]
        raise JudgeSenseError(f"the sides share no task: {' and '.join(told)}. Name the same task")
    for one, two in found:
        _require_same_scale(one.table, two.table)
    return found


def _described(sides: Sequence[Side]) -> str:
    return join(
        [f"{s.table.task or 'a task'}{f' ({s.scoring})' if s.scoring else ''}" for s in sides]
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


@dataclass(frozen=True, eq=False)
class Common:
    """The prompts that both sides answered, in the order of the old side, shape (n,) each.

    ``old`` and ``new`` are verdicts, in the item's own order; ``old_row`` and ``new_row`` their
    rows in the tables. ``pair_row`` are prompts, each once for every other wording of its item that
    the old side answered, with the other wording and whether its verdict differs. ``n_failed`` are
    prompts that a side failed to answer, ``n_changed`` those whose text differs between the sides,
    and ``n_single`` those with one wording where others have several; they are left out.
    """

    old_side: Side
    new_side: Side
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
    def moved(self) -> Bools:
        """Whether the verdict moved."""
        found: Bools = self.old != self.new
        return found

    @property
    def seen(self) -> set[str]:
        """The labels that either side gave."""
        return {*self.old, *self.new} - set(UNDECIDED)

    @property
    def one_label(self) -> bool:
        """Whether all verdicts are one label, as of a judge that does not read."""
        return len(self.seen) == 1 and not self.moved.any()

    def asked_again(self, side: Side) -> tuple[Words, Bools] | None:
        """The clusters of repeated prompts, and whether a later answer differs from the first."""
        clusters, differs = [], []
        shared = {
            side.keys[row]: cluster
            for row, cluster in zip(
                (self.old_row if side is self.old_side else self.new_row).tolist(),
                self.clusters,
                strict=True,
            )
        }
        for row, key in enumerate(side.keys):
            first = side.first[key]
            if row != first and key in shared and side.answered[row] and side.answered[first]:
                clusters.append(shared[key])
                differs.append(side.verdicts[row] != side.verdicts[first])
        if not clusters:
            return None
        return np.array(clusters, dtype=object), np.array(differs, dtype=bool)


def common(old: Side, new: Side) -> Common:
    """Line up the prompts that both sides answered.

    Raises JudgeSenseError if there are none.
    """
    shared = [(row, new.first[key]) for key, row in old.first.items() if key in new.first]
    if not shared:
        raise JudgeSenseError(
            f"no common items: {old.source} has {_some(old)}, {new.source} {_some(new)}. Judge the "
            "same items under the same wordings"
        )
    changed: set[tuple[int, int]] = set()
    if old.prompt_ids is not None and new.prompt_ids is not None:
        ids = old.prompt_ids, new.prompt_ids
        changed = {(a, b) for a, b in shared if ids[0][a] != ids[1][b]}
    if len(changed) == len(shared):
        item = old.keys[shared[0][0]][0]
        raise JudgeSenseError(
            f"the prompts differ: item {item!r} and all others have another text in {new.source} "
            f"than in {old.source}. Judge the same items under the same wordings"
        )
    kept = [(a, b) for a, b in shared if (a, b) not in changed]
    both = [(a, b) for a, b in kept if old.answered[a] and new.answered[b]]
    if not both:
        raise JudgeSenseError(
            f"no prompt has an answer in both {old.source} and {new.source}: every request failed"
        )
    rows = np.array(both, dtype=np.int64)
    reworded = np.unique(_other_wordings(old, rows[:, 0])[0])
    n_single = len(rows) - len(reworded) if len(reworded) else 0
    if n_single:
        # Both shares have to be of the same items.
        rows = rows[reworded]
    columns = {name: old.table.column(name)[rows[:, 0]] for name in ("item_id", "cluster_id")}
    pair_row, pair_wording, pair_differs = _other_wordings(old, rows[:, 0])
    return Common(
        old_side=old,
        new_side=new,
        old_row=rows[:, 0],
        new_row=rows[:, 1],
        old=old.verdicts[rows[:, 0]],
        new=new.verdicts[rows[:, 1]],
        items=columns["item_id"],
        clusters=columns["cluster_id"],
        wordings=_named(old, rows[:, 0]),
        pair_row=pair_row,
        pair_wording=pair_wording,
        pair_differs=pair_differs,
        n_failed=len(kept) - len(both),
        n_changed=len(changed),
        n_single=n_single,
    )


def grouped(keys: Any, values: Any) -> dict[Any, list[Any]]:
    """The values by key, both in order of appearance.

    >>> grouped(["a", "b", "a"], [1, 2, 3])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Any, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        found.setdefault(key, []).append(value)
    return found


def _other_wordings(side: Side, rows: Codes) -> tuple[Codes, Words, Bools]:
    """For each row, every other wording on the same item and order: place, wording, differs."""
    kept = [(key, row) for key, row in side.first.items() if side.answered[row]]
    groups = grouped(((k[0], k[1], k[3]) for k, _ in kept), (row for _, row in kept))
    place: list[int] = []
    others: list[int] = []
    for at, row in enumerate(rows.tolist()):
        item, system, _, order = side.keys[row]
        own = [other for other in groups[item, system, order] if other != row]
        place += [at] * len(own)
        others += own
    found = np.array(place, dtype=np.int64), np.array(others, dtype=np.int64)
    differs = side.verdicts[rows[found[0]]] != side.verdicts[found[1]]
    return found[0], _named(side, found[1]), np.asarray(differs, dtype=bool)


def _named(side: Side, rows: Codes) -> Words:
    words = side.table.column("wording")[rows]
    return np.array([*("" if word is None else word for word in words), None], dtype=object)[:-1]


def _some(side: Side) -> str:
    items = list(dict.fromkeys(key[0] for key in side.first))
    wordings = {key[2] for key in side.first} - {None}
    told = f" under {join(sorted(wordings)[:3])}" if wordings else ""
    return f"{join([repr(item) for item in items[:2]])}{', ...' if len(items) > 2 else ''}{told}"


def task_name(sides: Common) -> str:
    """The task of two sides; ``verdicts`` where neither names one."""
    return sides.old_side.table.task or sides.new_side.table.task or "verdicts"


def base_name(judge: str) -> str:
    """A judge's name without its fingerprint.

    >>> base_name("qwen@1a2b")
    'qwen'
    """
    return judge.split("@")[0]


def other_judge(old: Side, new: Side) -> list[str]:
    """A note if the sides name two judges: an update has the same name, another fingerprint."""
    one, two = old.table.judge, new.table.judge
    if not (one and two) or base_name(one) == base_name(two):
        return []
    return [
        f"{one} and {two} have different names, and are taken for one judge before and after an "
        "update; to choose between two judges, use judgesense compare without --migration"
    ]


def same_judge(old: Side, new: Side) -> list[str]:
    """A note if both sides name one judge with one fingerprint."""
    if old.table.judge != new.table.judge or "@" not in old.table.judge:
        return []
    return [
        f"{old.table.judge} is the same judge on both sides, fingerprint included: what moved is "
        "noise, or changed behind the endpoint"
    ]


def described_inputs(sides: Mapping[str, Common]) -> list[str]:
    """What was left out of the comparison, as sentences."""
    told = []
    for task, found in sides.items():
        if found.n_changed:
            told.append(f"{task}: {found.n_changed} prompts have another text and are left out")
        if found.n_failed:
            told.append(f"{task}: {found.n_failed} prompts have a failed request and are left out")
        if found.n_single:
            told.append(f"{task}: {found.n_single} prompts have one wording and are left out")
        if found.old_side.left_out:
            names = join(found.old_side.left_out)
            told.append(f"{task}: left out as inverted or mislabelled: {names}")
    return told
