"""Two results paired row by row: the table that every comparison of two results starts from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Words
from judgesense.tasks import UNDECIDED

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class PairedRows(NamedTuple):
    """The rows of the keys that two results share, shape (n,) each, in the order of the first, and
    how many keys only one of them has."""

    before: Codes
    after: Codes
    n_only_before: int
    n_only_after: int


def paired_rows(
    before: Sequence[Words],
    after: Sequence[Words],
    repeats: tuple[Codes, Codes] | None = None,
) -> PairedRows:
    """Pair the rows of two results that have the same values in some columns.

    Of several rows with one key, the first counts, by ``repeats`` where they are given.

    >>> one, two = np.array(["a", "b", "b"], object), np.array(["c", "b"], object)
    >>> paired_rows([one], [two])
    PairedRows(before=array([1]), after=array([1]), n_only_before=1, n_only_after=1)
    """
    n = len(before[0])
    keys = key_codes(*map(np.concatenate, zip(before, after, strict=True)))
    old, new = keys[:n], keys[n:]
    old_repeat, new_repeat = repeats or (np.zeros(len(side), int) for side in (old, new))
    old_rows, new_rows = first_rows(old, old_repeat), first_rows(new, new_repeat)
    row_of = np.full(int(keys.max(initial=-1)) + 1, -1)
    row_of[new[new_rows]] = new_rows
    match = row_of[old[old_rows]]
    is_shared = match >= 0
    shared = match[is_shared]
    return PairedRows(
        old_rows[is_shared], shared, len(old_rows) - len(shared), len(new_rows) - len(shared)
    )


def first_rows(keys: Codes, repeat: Codes) -> Codes:
    """The row of the least repeat of each key, in the order of repeats and rows.

    >>> first_rows(np.array([7, 7, 9]), np.array([1, 0, 1]))
    array([1, 2])
    """
    order = np.argsort(repeat, kind="stable")
    _, first = np.unique(keys[order], return_index=True)
    rows: Codes = order[np.sort(first)]
    return rows


def key_codes(*columns: Words) -> Codes:
    """One number for each distinct row of some columns, shape (n,)."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = pa.array(column, pa.string()).dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1].ravel()
    return codes


@dataclass(frozen=True, eq=False)
class PairedTable:
    """Two results on the rows that both have, n in all, in the order of the earlier one.

    ``before_row`` and ``after_row`` are the rows of the two results, shape (n,) each.
    ``n_only_before`` and ``n_only_after`` are the rows that the other result lacks.
    """

    before: Verdicts
    after: Verdicts
    before_row: Codes
    after_row: Codes
    n_only_before: int = 0
    n_only_after: int = 0

    @classmethod
    def of(cls, before: Verdicts, after: Verdicts, *columns: str) -> PairedTable:
        """Pair two results by some of their columns; of several answers, the first counts."""
        old, new = ([getattr(side, name) for name in columns] for side in (before, after))
        return cls(before, after, *paired_rows(old, new, (before.repeat, after.repeat)))

    def __len__(self) -> int:
        return len(self.before_row)

    def where(self, mask: Bools | Codes) -> PairedTable:
        """The table with some of its rows."""
        return replace(self, before_row=self.before_row[mask], after_row=self.after_row[mask])

    @cached_property
    def old(self) -> Words:
        """The verdicts before."""
        return self.before.verdict[self.before_row]

    @cached_property
    def new(self) -> Words:
        """The verdicts after."""
        return self.after.verdict[self.after_row]

    @cached_property
    def is_changed(self) -> Bools:
        """Whether the verdict is another one."""
        changed: Bools = self.old != self.new
        return changed

    @cached_property
    def is_undecided(self) -> Bools:
        """Whether a decision is missing on one side at least."""
        return np.isin(self.old, UNDECIDED) | np.isin(self.new, UNDECIDED)

    @cached_property
    def gold(self) -> Words:
        """The gold labels, "" where neither result has one; the later one's count."""
        later = self.after.gold[self.after_row]
        return np.where(later == "", self.before.gold[self.before_row], later)

    @cached_property
    def item(self) -> Words:
        """The items."""
        return self.before.item[self.before_row]

    @cached_property
    def cluster(self) -> Words:
        """The clusters of the items."""
        return self.before.cluster[self.before_row]

    @cached_property
    def wording(self) -> Words:
        """The wordings of the earlier result."""
        return self.before.wording[self.before_row]

    @cached_property
    def order(self) -> Words:
        """The option orders of the earlier result."""
        return self.before.order[self.before_row]

    def require_same_gold(self, task: str) -> None:
        """Raise JudgeSenseError if a gold label differs: the two would have two standards."""
        one, two = self.before.gold[self.before_row], self.after.gold[self.after_row]
        differs = np.flatnonzero((one != two) & (one != "") & (two != ""))
        if len(differs):
            row = differs[0]
            raise JudgeSenseError(
                f"{task}: {self.before.source} and {self.after.source} have different gold labels "
                f"for {len(differs)} of {len(self)} prompts; item {self.item[row]!r} is {one[row]} "
                f"in the first and {two[row]} in the second. Compare on the same labels"
            )


def grouped(keys: Iterable[K], values: Iterable[V]) -> dict[K, list[V]]:
    """The values by key, both in order of appearance.

    >>> grouped("aba", [1, 2, 3])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return groups


def most_frequent(verdicts: Iterable[str]) -> str:
    """The most frequent verdict; the first by name of several.

    >>> most_frequent(["YES", "NO"])
    'NO'
    """
    return Counter(sorted(verdicts)).most_common(1)[0][0]
