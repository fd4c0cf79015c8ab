"""People's labels on some of the judged outputs: read, matched with the verdicts, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.units import ALL, Units, strata_of
from judgesense.comparison.verdict_files import Id, Number, SomeId, SomeLabel, read_rows
from judgesense.comparison.verdict_table import VerdictTable, numbers_of, objects
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept
from judgesense.files.documents import Shape
from judgesense.files.tables import read_table_rows
from judgesense.importers.column_names import columns_of, label_columns
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import krippendorff_alpha


class LabelRow(Shape):
    """A row of a file of labels: one person's label of one output."""

    item_id: Id
    label: SomeLabel
    system_id: SomeId = None
    rater: SomeId = None
    stratum: SomeId = None
    probability: Number = None


@dataclass(frozen=True)
class Labels:
    """People's labels, matched with n units.

    ``values`` are numbers, shape (n,), NaN without a label: one label per unit after several
    raters' are put together. ``picked`` is true if ``judgesense label`` picked some of them, at
    another rate in each stratum, and ``sampled`` if it did not pick all. ``alpha`` is
    Krippendorff's alpha between raters, None with one.
    ``ties`` counts units on which no label has a majority. ``unmatched`` are the places (file and
    row) of labels without a verdict.
    """

    values: Floats
    picked: bool = False
    sampled: bool = True
    raters: int = 0
    alpha: float | None = None
    ties: int = 0
    unmatched: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def read_labels(
    files: Data | None,
    table: VerdictTable,
    units: Units,
    *,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    raters: str = "majority",
) -> Labels:
    """Read people's labels and match them with the judged outputs.

    ``files`` are tables with ``item_id``, ``label`` and, where an item has outputs of several
    systems, ``system_id``; ``rater`` where several people labelled. None takes the gold labels of
    the verdicts' own source. With ``raters`` ``majority``, a tie counts as the mean of the tied
    labels. The other arguments are those of :func:`judgesense.estimate`.

    Raises JudgeSenseError, with file and row, for a missing column, an unknown system, a label off
    the judge's scale, the same rater's second label on an output, no label that matches a verdict,
    and no gold label.
    """
    if files is None:
        if np.isnan(units.gold).all():
            raise JudgeSenseError(
                f"{table.source} has no gold labels; name their column with --columns gold=COLUMN, "
                "or pass a file of people's labels with --labels"
            )
        return Labels(units.gold, raters=1, sources=(table.source,))
    if raters not in ("majority", "mean"):
        raise JudgeSenseError(f"raters is {raters!r}; choose majority or mean")
    given: list[Any] = [files]
    if isinstance(files, (list, tuple)) and all(isinstance(each, (str, Path)) for each in files):
        given = list(files)
    sources = [kept(each, RUNS, "labels") for each in given]
    outputs: dict[str, dict[str, int]] = {}
    for number, (item, code) in enumerate(zip(units.items, units.system, strict=True)):
        outputs.setdefault(item, {})[units.systems[code]] = number
    by_unit: dict[int, dict[str, tuple[float, str]]] = {}
    strata, unmatched = strata_of(units), list[str]()
    picked = {True: 0, False: 0}
    for source in sources:
        own = label_columns(columns_of(read_table_rows(source))[0])
        if units.systems == (ALL,):
            own.pop("system_id", None)  # What verdicts do not tell apart, labels need not.
        rows = list(read_rows(source, LabelRow, {**own, **(columns or {})}, "--label-columns"))
        labels = objects([(mapping or {}).get(row.label or "", row.label) for row, _ in rows])
        numbers = numbers_of(labels, table, positive)
        for (row, record), value in zip(rows, numbers.tolist(), strict=True):
            if row.label is None:
                continue
            place = record.place
            if np.isnan(value):
                raise _off_scale(table, place)
            unit, flipped = _unit(row, place, units, outputs.get(row.item_id, {}))
            if unit is None:
                unmatched.append(place)
                continue
            by_rater, rater = by_unit.setdefault(unit, {}), row.rater or ""
            if rater in by_rater:
                raise JudgeSenseError(
                    f"{place}: a second label on item {row.item_id!r}, already in "
                    f"{by_rater[rater][1]}; remove one, or name the people in a column rater"
                )
            by_rater[rater] = (1 - value if flipped else value, place)
            picked[row.stratum is not None] += 1
            if row.stratum not in (None, strata[unit]):
                raise JudgeSenseError(
                    f"{place}, stratum: {row.stratum!r}, but these verdicts put the output into "
                    f"{strata[unit]!r}; use the verdicts that the labels were picked from"
                )
    if not by_unit:
        raise JudgeSenseError(
            f"{', '.join(map(str, sources))}: none of {len(unmatched)} labels matches a "
            f"verdict of {table.source}; item_id (and system_id) must be the same in both"
        )
    if not table.comparative and table.good(positive) is None:
        _check_scale(table, [each for by_rater in by_unit.values() for each in by_rater.values()])
    single, ties = np.full(len(units), np.nan), 0
    for unit, by_rater in by_unit.items():
        values = [value for value, _ in by_rater.values()]
        counts = Counter(values)
        most = [value for value, count in counts.items() if count == max(counts.values())]
        ties += len(most) > 1
        single[unit] = float(np.mean(most if raters == "majority" else values))
    people = sorted({rater for by_rater in by_unit.values() for rater in by_rater})
    alpha = None
    if len(people) > 1:
        ratings = [
            [f"{each[rater][0]:g}" if rater in each else None for each in by_unit.values()]
            for rater in people
        ]
        ordinal = table.numeric and table.good(positive) is None
        seen = {label for row in ratings for label in row if label is not None}
        alpha = krippendorff_alpha(
            ratings, "ordinal" if ordinal else "nominal", sorted(seen, key=float)
        )
    names = tuple(map(str, sources))
    return Labels(
        single,
        picked[True] > 0,
        picked[False] > 0,
        len(people),
        alpha,
        ties,
        tuple(unmatched),
        names,
    )


def _unit(
    row: LabelRow, place: str, units: Units, outputs: Mapping[str, int]
) -> tuple[int | None, bool]:
    """The unit of a label, None without a verdict, and whether its label names them turned round.

    ``outputs`` are the units of the item by system.
    """
    if row.system_id is None:
        if len(outputs) > 1:
            raise JudgeSenseError(
                f"{place}: item {row.item_id!r} has outputs of {len(outputs)} systems; add a "
                "column system_id that says which one was labelled"
            )
        unit = next(iter(outputs.values()), None)
        return unit, unit is not None and bool(units.flipped[unit])
    name = "|".join(sorted(row.system_id.split("|")))
    if name not in units.systems:
        raise JudgeSenseError(
            f"{place}, system_id: {row.system_id!r} has no verdicts; the systems are "
            f"{', '.join(units.systems)}"
        )
    return outputs.get(name), name != row.system_id


def _check_scale(table: VerdictTable, labels: Sequence[tuple[float, str]]) -> None:
    """Raise JudgeSenseError, with the place, for numbers on another scale than the verdicts.

    The source may state its scale. Otherwise people may go beyond the verdicts by the width of
    what these show; labels of 0 and 1 alone are another scale than ratings from 1 on.
    """
    scale = [float(label) for label in table.labels]
    low, high = min(scale), max(scale)
    reach = 0.0 if table.stated else max(high - low, 1.0)
    binary = {value for value, _ in labels} == {0.0, 1.0} and low >= 1 and len(scale) > 2
    for value, place in labels:
        if binary or not low - reach <= value <= high + reach:
            raise _off_scale(table, place)


def _off_scale(table: VerdictTable, place: str) -> JudgeSenseError:
    return JudgeSenseError(
        f"{place}, label: not on the judge's scale ({', '.join(table.labels[:8])}); map people's "
        "labels to the judge's with --map THEIRS=OURS"
    )
