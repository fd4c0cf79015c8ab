"""What a table of verdicts is: its columns, and verdicts as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Floats, Words
from judgesense.statistics.result import data_frame
from judgesense.tasks import UNDECIDED

SCHEMA = pa.schema(
    [
        ("item_id", pa.string()),
        ("verdict", pa.string()),
        ("probability", pa.float64()),
        ("margin", pa.float64()),
        ("score", pa.float64()),
        ("ask_person", pa.bool_()),
        ("cost_usd", pa.float64()),
        ("error", pa.string()),
        ("cluster_id", pa.string()),
        ("system_id", pa.string()),
        ("judge", pa.string()),
        ("task", pa.string()),
        ("wording", pa.string()),
        ("order", pa.string()),
        ("repeat", pa.int32()),
        ("gold", pa.string()),
    ]
)
"""The columns of a table of verdicts.

``verdict`` and ``gold`` are labels in the item's own order; ``verdict`` is UNCLEAR, REFUSED or
ERROR without a decision. ``probability`` is that of the verdict, ``margin`` how much more probable
it is than the next label, in [0, 1], ``score`` the expected score on a scale, ``cost_usd`` in US
dollars. ``system_id`` names the system that wrote the output, or both systems of a comparison as
``A|B``. ``cluster_id`` names what outputs share, the item by default. ``wording`` and ``order`` are
null where a verdict rests on several. ``repeat`` counts answers to the same prompt from 0.
"""

TIES = ("TIE", "tie", "Tie", "C")
"""Verdicts of a comparison that choose neither system."""

GOOD = {
    "YES": "NO",
    "PASS": "FAIL",
    "TRUE": "FALSE",
    "CORRECT": "INCORRECT",
    "GOOD": "BAD",
    "C": "I",
    "1": "0",
}
"""Labels of a two-label task that count as good, and the other label; case does not matter."""


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """The verdicts of one judge on one task.

    ``table`` has the columns of `SCHEMA`; ``cluster_id`` and ``repeat`` are never null. ``labels``
    is the decision space in order, as the source states it or as its verdicts show it. ``source``
    is the file or folder, ``judge`` and ``task`` are "" where it names none. ``stated`` says
    whether the source states its labels; otherwise some may never have been given. A run has a
    ``scoring`` and ``prompt_ids``, one per row; ``left_out`` are wordings that the table lacks.
    ``columns`` are the file's columns that were recognised by another name.
    """

    table: pa.Table
    labels: tuple[str, ...]
    source: str
    judge: str = ""
    task: str = ""
    stated: bool = False
    scoring: str = ""
    prompt_ids: Words | None = None
    left_out: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def recognised(self) -> list[str]:
        """What to tell a person about recognised columns, as at most one sentence."""
        named = ",".join(f"{name}={yours}" for name, yours in self.columns.items())
        return [f"the columns of {self.source} are read as {named}"] if named else []

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column as an object array, shape (n,); None where it is null."""
        return objects(self.table[name].to_pylist())

    @property
    def numeric(self) -> bool:
        """Whether every label is a number."""
        return all(number_of(label) is not None for label in self.labels)

    @cached_property
    def comparative(self) -> bool:
        """Whether verdicts choose between two systems: every ``system_id`` names two (``A|B``)."""
        return all(name is not None and name.count("|") == 1 for name in self.column("system_id"))

    def good(self, positive: str | None = None) -> str | None:
        """The label that counts as 1 in `values`; None on a scale of numbers.

        Raises JudgeSenseError if it has to be named with ``positive``.
        """
        if positive is not None:
            if positive not in self.labels:
                raise JudgeSenseError(
                    f"{self.source}: {positive!r} is not among its verdicts "
                    f"({', '.join(self.labels)})"
                )
            return positive
        if self.comparative or (self.numeric and len(self.labels) > 2):
            return None
        found = [label for label in self.labels if label.upper() in GOOD]
        if self.numeric and set(self.labels) <= {"0", "1"}:
            found = ["1"]
        elif self.numeric:
            return None
        if len(found) != 1 or len(self.labels) > 2:
            raise JudgeSenseError(
                f"{self.source}: which verdict counts as good? Set --positive to one of "
                f"{', '.join(self.labels)}, or name both systems of a comparison in system_id (A|B)"
            )
        return found[0]

    def values(self, positive: str | None = None) -> Floats:
        """Each verdict as a number, shape (n,); NaN without a decision.

        On a scale, the expected ``score`` where there is one, else the number; for two labels, 1
        for the good one; in a comparison, 1 for the first system, 0 for the second and 0.5 for a
        tie. Raises JudgeSenseError for labels that are not numbers, without ``positive``.
        """
        verdicts = self.column("verdict")
        found = numbers_of(verdicts, self, positive)
        if self.good(positive) is None and not self.comparative:
            scores = np.array(self.table["score"].to_pylist(), dtype=float)
            found = np.where(np.isnan(scores) | np.isin(verdicts, UNDECIDED), found, scores)
        return found

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        return data_frame(self.table.to_pylist())


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Values as an array of objects, shape (n,), whatever they are."""
    return np.array([*values, None], dtype=object)[:-1]


def number_of(label: str | None) -> float | None:
    """A label as a finite number; None if it is not one.

    >>> number_of("4"), number_of("3.5"), number_of("YES")
    (4.0, 3.5, None)
    """
    try:
        value = float(label) if label is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def numbers_of(labels: npt.NDArray[Any], table: VerdictTable, positive: str | None) -> Floats:
    """Labels of a table's scale as numbers, shape (n,); NaN for None and for what is no label."""
    meaning: dict[str | None, float] = {}
    if table.comparative and positive is None:
        first, second = [label for label in table.labels if label not in TIES][:2]
        meaning = {first: 1.0, second: 0.0, **dict.fromkeys(TIES, 0.5)}
    elif (good := table.good(positive)) is not None:
        meaning = {label: float(label == good) for label in table.labels}
    else:
        numbers = {label: number_of(label) for label in set(labels)}
        meaning = {label: value for label, value in numbers.items() if value is not None}
    return np.array([meaning.get(label, np.nan) for label in labels], dtype=float)


def labels_of(table: pa.Table, source: str) -> tuple[str, ...]:
    """The labels that verdicts and gold show, in order: numbers ascending, others as text.

    Raises JudgeSenseError if there are none.
    """
    seen = {*pc.unique(table["verdict"]).to_pylist(), *pc.unique(table["gold"]).to_pylist()}
    found = [label for label in seen if label is not None and label not in UNDECIDED]
    if not found:
        raise JudgeSenseError(f"{source}: no row has a verdict; judge the items first")
    if len(found) == 1:
        found += _other(found[0])
    as_numbers = {label: number_of(label) for label in found}
    if None in as_numbers.values():
        return tuple(sorted(found))
    return tuple(sorted(found, key=lambda label: as_numbers[label] or 0.0))


def _other(label: str) -> list[str]:
    """The label that a source has not given yet, where one label of a usual pair is there."""
    pairs = {**GOOD, **{bad: good for good, bad in GOOD.items()}}
    other = pairs.get(label.upper())
    if other is None or label in TIES:
        return []
    return [other.lower() if label.islower() else other if label.isupper() else other.capitalize()]


def chosen(
    rows: Sequence[tuple[str, str]], judge: str | None, task: str | None, source: str
) -> list[int]:
    """The numbers of the rows, (judge, task) each, of one judge and one task.

    Raises JudgeSenseError if the judge or task is not there, or if several are and none is named.
    """
    keep = list(range(len(rows)))
    for what, at, wanted in (("task", 1, task), ("judge", 0, judge)):
        names = list(dict.fromkeys(rows[n][at] for n in keep))
        fits = [name for name in names if wanted in (None, name)]
        fits = fits or [name for name in names if name.split("@")[0] == wanted]
        if len(fits) != 1:
            problem = f"has several {what}s" if fits else f"has no {what} {wanted!r}"
            raise JudgeSenseError(
                f"{source} {problem}; choose one with --{what}: {', '.join(fits or names)}"
            )
        keep = [n for n in keep if rows[n][at] == fits[0]]
    return keep
