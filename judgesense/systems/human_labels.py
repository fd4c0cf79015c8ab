"""People's labels on some of the judged outputs: read, matched with the verdicts, put together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_table
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import krippendorff_alpha
from judgesense.systems.units import Units, strata_of
from judgesense.systems.verdict_files import SomeId, SomeLabel, as_id
from judgesense.systems.verdict_table import VerdictTable, numbers_of
from judgesense.text import shorten

NAMES = ("label", "human", "human_label", "gold", "rating", "verdict")
"""Columns that hold the label where none is named, the first of them that the file has."""


class LabelRow(Shape):
    """A row of a file of labels: one person's label of one output."""

    label: SomeLabel
    item_id: SomeId = None
    system_id: SomeId = None
    unit: SomeId = None
    rater: SomeId = None
    stratum: Annotated[str | None, BeforeValidator(as_id)] = None


@dataclass(frozen=True)
class Labels:
    """People's labels, matched with n units.

    ``values`` are numbers, shape (n,), NaN without a label: one label per unit after several
    raters' are put together. ``picked`` is true if ``--next`` picked labels, at another rate in
    each stratum. ``alpha`` is Krippendorff's alpha between raters, None with one. ``ties`` counts
    units on which no label has a majority. ``unmatched`` counts labels without a verdict, the first
    of them at ``first_unmatched`` (file and row).
    """

    values: Floats
    picked: bool = False
    raters: int = 0
    alpha: float | None = None
    ties: int = 0
    unmatched: int = 0
    sources: tuple[str, ...] = ()
    first_unmatched: str | None = None


def digest(item_id: str, system_id: str) -> str:
    """An id that does not tell people which system wrote an output.

    >>> digest("1", "gpt") == digest("1", "gpt"), len(digest("1", "gpt"))
    (True, 12)
    """
    return hashlib.sha256(f"{item_id}\0{system_id}".encode()).hexdigest()[:12]


def gold_labels(table: VerdictTable, units: Units) -> Labels:
    """The gold labels of the verdicts' own source, as people's labels.

    Raises JudgeSenseError if it has none.
    """
    if np.isnan(units.gold).all():
        raise JudgeSenseError(
            f"{table.source} has no gold labels; pass a file of people's labels with --labels"
        )
    return Labels(units.gold, raters=1, sources=(table.source,))


def read_labels(
    sources: Sequence[str | Path],
    table: VerdictTable,
    units: Units,
    *,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    raters: str = "majority",
    encoding: str = "utf-8",
) -> Labels:
    """Read people's labels and match them with the judged outputs.

    Args:
        sources: files with ``item_id``, ``label`` (or another of `NAMES`) and, where an item has
            outputs of several systems, ``system_id``; ``rater`` where several people labelled.
        table: the verdicts.
        units: their outputs.
        positive: the label that counts as 1.
        columns: your names of the columns, ``{"label": "grade"}``.
        mapping: people's labels to the judge's, ``{"acceptable": "YES"}``.
        raters: ``majority`` (a tie counts as the mean of the tied labels) or ``mean``.
        encoding: of CSV and JSONL.

    Raises:
        JudgeSenseError: a missing column, an unknown system, a label off the judge's scale, the
            same rater's second label on an output, or no label that matches a verdict; the file and
            row are named.
    """
    if raters not in ("majority", "mean"):
        raise JudgeSenseError(f"raters is {raters!r}; choose majority or mean")
    given = _Given(table, units, positive, mapping or {})
    for source in sources:
        for record in read_table(Path(source), encoding):
            cells = _by_our_names(record, columns or {})
            given.add(fit(LabelRow, cells, record.place, "a row of labels"), record.place)
    if not given.by_unit:
        files = ", ".join(map(str, sources))
        if not given.unmatched:
            raise JudgeSenseError(f"{files}: no row has a label")
        place, item = given.unmatched[0]
        raise JudgeSenseError(
            f"{files}: none of {len(given.unmatched)} labels matches a verdict of {table.source}. "
            f"{place} has item_id {item!r}, the first verdict {units.items[0]!r}: item_id (and "
            "system_id) must be the same in both"
        )
    given.check_scale()
    given.check_strata()
    values, ties = given.values(raters)
    people = sorted({rater for labels in given.by_unit.values() for rater in labels})
    return Labels(
        values,
        bool(given.strata),
        len(people),
        given.alpha(people),
        ties,
        len(given.unmatched),
        tuple(map(str, sources)),
        given.unmatched[0][0] if given.unmatched else None,
    )


class _Given:
    """The labels read so far, by unit and person, each with its place (file and row)."""

    def __init__(
        self, table: VerdictTable, units: Units, positive: str | None, mapping: Mapping[str, str]
    ) -> None:
        self.table, self.units, self.positive, self.mapping = table, units, positive, mapping
        self.by_unit: dict[int, dict[str, tuple[float, str]]] = {}
        self.strata: dict[int, tuple[str, str]] = {}
        self.unmatched: list[tuple[str, str | None]] = []
        names = [units.systems[code] for code in units.system]
        self.by_name = {key: n for n, key in enumerate(zip(units.items, names, strict=True))}
        self.by_digest = {digest(*key): n for key, n in self.by_name.items()}
        self.by_item: dict[str, list[int]] = {}
        for number, item in enumerate(units.items):
            self.by_item.setdefault(item, []).append(number)

    def add(self, row: LabelRow, place: str) -> None:
        """Take one row."""
        if row.label is None:
            return
        label = self.mapping.get(row.label, row.label)
        value = float(numbers_of(np.array([label], dtype=object), self.table, self.positive)[0])
        if np.isnan(value):
            raise self._off(label, place)
        unit = self._unit(row, place)
        if unit is None:
            self.unmatched.append((place, row.item_id or row.unit))
            return
        if self.units.comparative and self._flipped(row, unit):
            value = 1 - value
        rater, labels = row.rater or "", self.by_unit.setdefault(unit, {})
        if rater in labels:
            raise JudgeSenseError(
                f"{place}: a second label on item {self.units.items[unit]!r}"
                + (f" by rater {rater!r}" if rater else "")
                + f", already in {labels[rater][1]}; remove one"
                + ("" if rater else ", or name the people in a column rater")
            )
        labels[rater] = (value, place)
        if row.stratum is not None:
            self.strata[unit] = (row.stratum, place)

    def _off(self, label: str, place: str) -> JudgeSenseError:
        labels = self.table.labels
        more = ", ..." if len(labels) > 8 else ""
        return JudgeSenseError(
            f"{place}, label: {shorten(label, 80)!r} is not on the judge's scale "
            f"({', '.join(labels[:8])}{more})"
            f"; map people's labels to the judge's with --map {label}=..."
        )

    def _unit(self, row: LabelRow, place: str) -> int | None:
        """The unit that a row labels; None if there is no verdict on it."""
        if row.unit is not None:
            return self.by_digest.get(row.unit)
        if row.item_id is None:
            raise JudgeSenseError(f"{place}, item_id: is empty; name the item")
        if row.system_id is not None:
            system = "|".join(sorted(row.system_id.split("|")))
            if system not in self.units.systems:
                raise JudgeSenseError(
                    f"{place}, system_id: {row.system_id!r} has no verdicts; the systems are "
                    f"{', '.join(self.units.systems)}"
                )
            return self.by_name.get((row.item_id, system))
        found = self.by_item.get(row.item_id, ())
        if len(found) > 1:
            raise JudgeSenseError(
                f"{place}: item {row.item_id!r} has outputs of {len(found)} systems; add a column "
                "system_id that says which one was labelled"
            )
        return found[0] if found else None

    def _flipped(self, row: LabelRow, unit: int) -> bool:
        if row.system_id is None:
            return bool(self.units.flipped[unit])
        one, two = row.system_id.split("|")
        return one > two

    def check_scale(self) -> None:
        """Raise JudgeSenseError, with the place, for numbers on another scale than the verdicts.

        The source may state its scale. Otherwise people may go beyond the verdicts by the width of
        what these show; labels of 0 and 1 alone are another scale than ratings from 1 on.
        """
        table = self.table
        if table.comparative or table.good(self.positive) is not None:
            return
        labels = [each for by_rater in self.by_unit.values() for each in by_rater.values()]
        scale = [float(label) for label in table.labels]
        low, high = min(scale), max(scale)
        reach = 0.0 if table.stated else max(high - low, 1.0)
        inside = any(low <= value <= high for value, _ in labels)
        binary = {value for value, _ in labels} == {0.0, 1.0} and low >= 1 and len(scale) > 2
        for value, place in labels:
            if binary or not inside or not low - reach <= value <= high + reach:
                raise self._off(f"{value:g}", place)

    def check_strata(self) -> None:
        """Raise JudgeSenseError if labels were picked from strata that the verdicts do not show."""
        if not self.strata:
            return
        names = strata_of(self.units)
        for unit, (name, place) in self.strata.items():
            if names[unit] != name:
                raise JudgeSenseError(
                    f"{place}, stratum: {name!r}, but these verdicts put the output into "
                    f"{names[unit]!r}; use the verdicts that the labels were picked from"
                )

    def values(self, raters: str) -> tuple[Floats, int]:
        """One number per unit, NaN without a label, and the number of units without a majority."""
        found, ties = np.full(len(self.units), np.nan), 0
        for unit, by_rater in self.by_unit.items():
            labels = [value for value, _ in by_rater.values()]
            counts = Counter(labels)
            best = [value for value, count in counts.items() if count == max(counts.values())]
            ties += len(best) > 1
            found[unit] = float(np.mean(best if raters == "majority" else labels))
        return found, ties

    def alpha(self, people: Sequence[str]) -> float | None:
        """Krippendorff's alpha between the raters; None with one."""
        if len(people) < 2:
            return None
        ratings = [
            [f"{each[rater][0]:g}" if rater in each else None for each in self.by_unit.values()]
            for rater in people
        ]
        ordinal = self.table.numeric and self.table.good(self.positive) is None
        seen = {label for row in ratings for label in row if label is not None}
        return krippendorff_alpha(
            ratings, "ordinal" if ordinal else "nominal", sorted(seen, key=float)
        )


def _by_our_names(record: Record, columns: Mapping[str, str]) -> dict[str, Any]:
    """The record's values under our names of the columns."""

    def missing(name: str, flag: str = "") -> JudgeSenseError:
        return JudgeSenseError(
            f"{record.place}: the column {name!r} is missing; its columns: "
            f"{', '.join(map(str, record.values))}" + flag
        )

    values = dict(record.values)
    for ours, yours in columns.items():
        if ours not in LabelRow.model_fields:
            raise JudgeSenseError(
                f"label columns: {ours!r} is not a column of labels; choose from "
                f"{', '.join(LabelRow.model_fields)}"
            )
        if yours not in record.values:
            raise missing(yours)
        values[ours] = record.values[yours]
    if "label" not in values:
        found = next((name for name in NAMES if name in values), None)
        if found is None:
            raise missing("label", ". Name yours with --label-columns label=YOURS")
        values["label"] = values[found]
    if "item_id" not in values and "unit" not in values:
        raise missing("item_id", ". Name yours with --label-columns item_id=YOURS")
    return values
