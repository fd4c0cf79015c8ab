"""Two results paired row by row, as the baseline, the migration and `compare` of runs read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Words

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class PairedTable:
    """Two results on the rows that both have, n in all, in the order of the earlier one.

    ``before_row`` and ``after_row`` are the rows of the two results, shape (n,) each.
    """

    before: Verdicts
    after: Verdicts
    before_row: Codes
    after_row: Codes

    @classmethod
    def of(cls, before: Verdicts, after: Verdicts, *columns: str) -> PairedTable:
        """Pair two results by some of their columns; of several answers, the first counts."""
        rows = shared_rows(before.first_rows(*columns), after.first_rows(*columns))
        return cls(before, after, *rows)

    def __len__(self) -> int:
        return len(self.before_row)

    def where(self, mask: Bools | Codes) -> PairedTable:
        """The table with some of its rows."""
        return replace(self, before_row=self.before_row[mask], after_row=self.after_row[mask])

    def column(self, name: str) -> Words:
        """A column of the earlier result at the rows of the table: ``item``, ``cluster``, ..."""
        values: Words = getattr(self.before, name)[self.before_row]
        return values

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
        """Whether the verdict changed."""
        changed: Bools = self.old != self.new
        return changed

    def require_gold(self, task: str) -> Words:
        """The gold labels, "" where neither result has one.

        Raises JudgeSenseError if they differ: the two results would be held to two standards.
        """
        one, two = self.before.gold[self.before_row], self.after.gold[self.after_row]
        differs = np.flatnonzero((one != two) & (one != "") & (two != ""))
        if len(differs):
            row = differs[0]
            raise JudgeSenseError(
                f"{task}: {self.before.source} and {self.after.source} have different gold labels "
                f"for {len(differs)} of {len(self)} prompts; item {self.column('item')[row]!r} is "
                f"{one[row]} in the first and {two[row]} in the second. Compare on the same labels"
            )
        return np.where(one == "", two, one)


def shared_rows(one: Mapping[K, int], two: Mapping[K, int]) -> tuple[Codes, Codes]:
    """The rows of the keys that both results have, shape (n,) each, in the order of the first.

    >>> shared_rows({"a": 4, "b": 5}, {"c": 0, "b": 1})
    (array([5]), array([1]))
    """
    rows = [(row, two[key]) for key, row in one.items() if key in two]
    first, second = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return first, second


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
