"""People's labels on some of the judged outputs: read, matched with the verdicts, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept
from judgesense.files.documents import Shape
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import krippendorff_alpha
from judgesense.systems.units import Units, strata_of
from judgesense.systems.verdict_files import Id, Number, SomeId, SomeLabel, read_rows
from judgesense.systems.verdict_table import VerdictTable, numbers_of, objects


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
    raters' are put together. ``picked`` is true if ``judgesense label`` picked them, at another
    rate in each stratum. ``alpha`` is Krippendorff's alpha between raters, None with one.
    ``ties`` counts units on which no label has a majority. ``unmatched`` are the places (file and
    row) of labels without a verdict.
    """

    values: Floats
    picked: bool = False
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
                f"{table.source} has no gold labels; pass a file of people's labels with --labels"
            )
        return Labels(units.gold, raters=1, sources=(table.source,))
    if raters not in ("majority", "mean"):
        raise JudgeSenseError(f"raters is {raters!r}; choose majority or mean")
    given: list[Any] = [files]
    if isinstance(files, (list, tuple)) and all(isinstance(each, (str, Path)) for each in files):
        given = list(files)
    sources = [kept(each, RUNS, "labels") for each in given]
    matched = _Matched(table, units)
    for source in sources:
        rows = list(read_rows(source, LabelRow, columns or {}, "--label-columns"))
        labels = objects([(mapping or {}).get(row.label or "", row.label) for row, _ in rows])
        numbers = numbers_of(labels, table, positive)
        for (row, record), value in zip(rows, numbers.tolist(), strict=True):
            if row.label is not None:
                matched.add(row, value, record.place)
    by_unit = matched.by_unit
    if not by_unit:
        raise JudgeSenseError(
            f"{', '.join(map(str, sources))}: none of {len(matched.unmatched)} labels matches a "
            f"verdict of {table.source}; item_id (and system_id) must be the same in both"
        )
    matched.check_scale(positive)
    single, ties = np.full(len(units), np.nan), 0
    for unit, by_rater in by_unit.items():
        given = [value for value, _ in by_rater.values()]
        counts = Counter(given)
        most = [value for value, count in counts.items() if count == max(counts.values())]
        ties += len(most) > 1
        single[unit] = float(np.mean(most if raters == "majority" else given))
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
    return Labels(
        single,
        matched.picked,
        len(people),
        alpha,
        ties,
        tuple(matched.unmatched),
        tuple(map(str, sources)),
    )


class _Matched:
    """Labels by unit and person, each a number with its place (file and row)."""

    def __init__(self, table: VerdictTable, units: Units) -> None:
        self.table, self.units = table, units
        self.by_unit: dict[int, dict[str, tuple[float, str]]] = {}
        self.unmatched: list[str] = []
        self.strata = strata_of(units)
        self.picked = False
        self.by_item: dict[str, dict[str, int]] = {}
        for number, (item, code) in enumerate(zip(units.items, units.system, strict=True)):
            self.by_item.setdefault(item, {})[units.systems[code]] = number

    def add(self, row: LabelRow, value: float, place: str) -> None:
        """Take one label; ``value`` is NaN if it is not on the judge's scale."""
        item, system, rater = row.item_id, row.system_id, row.rater or ""
        if np.isnan(value):
            raise self._off_scale(place)
        outputs = self.by_item.get(item, {})
        if system is None:
            if len(outputs) > 1:
                raise JudgeSenseError(
                    f"{place}: item {item!r} has outputs of {len(outputs)} systems; add a column "
                    "system_id that says which one was labelled"
                )
            unit = next(iter(outputs.values()), None)
            flipped = unit is not None and self.units.flipped[unit]
        else:
            name = "|".join(sorted(system.split("|")))
            if name not in self.units.systems:
                raise JudgeSenseError(
                    f"{place}, system_id: {system!r} has no verdicts; the systems are "
                    f"{', '.join(self.units.systems)}"
                )
            unit, flipped = outputs.get(name), name != system
        if unit is None:
            self.unmatched.append(place)
            return
        labels = self.by_unit.setdefault(unit, {})
        if rater in labels:
            raise JudgeSenseError(
                f"{place}: a second label on item {item!r}, already in {labels[rater][1]}; "
                "remove one, or name the people in a column rater"
            )
        labels[rater] = (1 - value if flipped else value, place)
        if row.stratum is not None:
            self.picked = True
            if row.stratum != self.strata[unit]:
                raise JudgeSenseError(
                    f"{place}, stratum: {row.stratum!r}, but these verdicts put the output into "
                    f"{self.strata[unit]!r}; use the verdicts that the labels were picked from"
                )

    def _off_scale(self, place: str) -> JudgeSenseError:
        return JudgeSenseError(
            f"{place}, label: not on the judge's scale ({', '.join(self.table.labels[:8])}); map "
            "people's labels to the judge's with --map THEIRS=OURS"
        )

    def check_scale(self, positive: str | None) -> None:
        """Raise JudgeSenseError, with the place, for numbers on another scale than the verdicts.

        The source may state its scale. Otherwise people may go beyond the verdicts by the width of
        what these show; labels of 0 and 1 alone are another scale than ratings from 1 on.
        """
        table = self.table
        if table.comparative or table.good(positive) is not None:
            return
        labels = [each for by_rater in self.by_unit.values() for each in by_rater.values()]
        scale = [float(label) for label in table.labels]
        low, high = min(scale), max(scale)
        reach = 0.0 if table.stated else max(high - low, 1.0)
        binary = {value for value, _ in labels} == {0.0, 1.0} and low >= 1 and len(scale) > 2
        for value, place in labels:
            if binary or not low - reach <= value <= high + reach:
                raise self._off_scale(place)
