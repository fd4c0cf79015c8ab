"""People's labels on some of the judged outputs: read, matched with the verdicts, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.outputs import ALL, Outputs, strata_of
from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, materialise
from judgesense.importers.label_files import LabelRow, read_label_rows
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import krippendorff_alpha

LabelsOfOutput = dict[str, tuple[float, str]]
"""A person's name -> the label of an output as a number, and its place (file and row)."""


@dataclass(frozen=True)
class Labels:
    """People's labels, matched with n outputs.

    ``values`` are numbers, shape (n,), NaN without a label: one label per output after several
    raters' are put together. ``picked`` is true if ``judgesense label`` picked some of them, at
    another rate in each stratum, and ``sampled`` if it did not pick all. ``alpha`` is
    Krippendorff's alpha between raters, None with one.
    ``ties`` counts outputs on which no label has a majority. ``unmatched`` are the places (file and
    row) of labels without a verdict.
    """

    values: Floats
    picked: bool = False
    sampled: bool = True
    raters: int = 0
    alpha: float | None = None
    ties: int = 0
    by_rater: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The outputs that each rater labelled."""
    unmatched: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def read_labels(
    files: Data | None,
    verdicts: Verdicts,
    outputs: Outputs,
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
        if np.isnan(outputs.gold).all():
            raise JudgeSenseError(
                f"{verdicts.source} has no gold labels; name their column with --columns "
                "gold=COLUMN, or pass a file of people's labels with --labels"
            )
        return Labels(outputs.gold, raters=1, sources=(verdicts.source,))
    if raters not in ("majority", "mean"):
        raise JudgeSenseError(f"raters is {raters!r}; choose majority or mean")
    listed: list[Data] = [files]
    if isinstance(files, (list, tuple)) and all(isinstance(file, (str, Path)) for file in files):
        listed = list(files)
    sources = [materialise(file, RUNS, "labels") for file in listed]
    translation = {theirs.casefold(): ours for theirs, ours in (mapping or {}).items()}
    places: dict[str, dict[str, int]] = {}
    for number, (item, code) in enumerate(zip(outputs.items, outputs.system, strict=True)):
        places.setdefault(item, {})[outputs.systems[code]] = number
    by_output: dict[int, LabelsOfOutput] = {}
    strata, unmatched, is_picked = strata_of(outputs), list[str](), set[bool]()
    for source in sources:
        for row, place, value in _values_in(
            source, verdicts, outputs, positive, columns, translation
        ):
            output, is_flipped = _match(row, place, outputs, places.get(row.item_id, {}))
            if output is None:
                unmatched.append(place)
                continue
            by_rater, rater = by_output.setdefault(output, {}), row.rater or ""
            if rater in by_rater:
                raise JudgeSenseError(
                    f"{place}: a second label on item {row.item_id!r}, already in "
                    f"{by_rater[rater][1]}; remove one, or name the people in a column rater"
                )
            by_rater[rater] = (1 - value if is_flipped else value, place)
            is_picked.add(row.stratum is not None)
            if row.stratum not in (None, strata[output]):
                raise JudgeSenseError(
                    f"{place}, stratum: {row.stratum!r}, but these verdicts put the output into "
                    f"{strata[output]!r}; use the verdicts that the labels were picked from"
                )
    if not by_output:
        raise JudgeSenseError(
            f"{', '.join(map(str, sources))}: none of {len(unmatched)} labels matches a "
            f"verdict of {verdicts.source}; item_id (and system_id) must be the same in both"
        )
    is_scale = not verdicts.is_comparison and verdicts.good(positive) is None
    if is_scale:
        _require_scale(verdicts, [label for each in by_output.values() for label in each.values()])
    values, ties = _one_label_each(by_output, len(outputs), raters)
    people = sorted({rater for by_rater in by_output.values() for rater in by_rater})
    return Labels(
        values,
        True in is_picked,
        False in is_picked,
        len(people),
        _alpha(by_output, people, "ordinal" if is_scale and verdicts.is_numeric else "nominal"),
        ties,
        {name: tuple(n for n, of in by_output.items() if name in of) for name in people},
        tuple(unmatched),
        tuple(map(str, sources)),
    )


def _values_in(
    source: Path,
    verdicts: Verdicts,
    outputs: Outputs,
    positive: str | None,
    columns: Mapping[str, str] | None,
    translation: Mapping[str, str],
) -> Iterator[tuple[LabelRow, str, float]]:
    """The rows of a file that have a label, with their places and their labels as numbers."""
    # What verdicts do not tell apart, labels need not.
    ignored = ("system_id",) if outputs.systems == (ALL,) else ()
    rows = read_label_rows(source, columns, flag="--label-columns", ignored=ignored)
    labels = [translation.get((row.label or "").casefold(), row.label) for row, _ in rows]
    numbers = verdicts.numbers_of(labels, positive).tolist()
    for (row, record), value in zip(rows, numbers, strict=True):
        if row.label is not None:
            if np.isnan(value):
                raise _off_scale(verdicts, record.place)
            yield row, record.place, value


def _match(
    row: LabelRow, place: str, outputs: Outputs, of_item: Mapping[str, int]
) -> tuple[int | None, bool]:
    """The output of a label, None without a verdict, and whether the label names both systems the
    other way round.

    ``of_item`` are the item's outputs by system.
    """
    if row.system_id is None:
        if len(of_item) > 1:
            raise JudgeSenseError(
                f"{place}: item {row.item_id!r} has outputs of {len(of_item)} systems; add a "
                "column system_id that says which one was labelled"
            )
        output = next(iter(of_item.values()), None)
        return output, output is not None and bool(outputs.flipped[output])
    name = "|".join(sorted(row.system_id.split("|")))
    if name not in outputs.systems:
        raise JudgeSenseError(
            f"{place}, system_id: {row.system_id!r} has no verdicts; the systems are "
            f"{', '.join(outputs.systems)}"
        )
    return of_item.get(name), name != row.system_id


def _one_label_each(
    by_output: Mapping[int, LabelsOfOutput], n: int, raters: str
) -> tuple[Floats, int]:
    """One label for each of n outputs, shape (n,), NaN without one, and the number of ties."""
    values, ties = np.full(n, np.nan), 0
    for output, by_rater in by_output.items():
        labels = [value for value, _ in by_rater.values()]
        counts = Counter(labels)
        most = [value for value, count in counts.items() if count == max(counts.values())]
        ties += len(most) > 1
        values[output] = float(np.mean(most if raters == "majority" else labels))
    return values, ties


def _alpha(
    by_output: Mapping[int, LabelsOfOutput], people: Sequence[str], level: Any
) -> float | None:
    """Krippendorff's alpha between several people; None with one."""
    if len(people) < 2:
        return None
    ratings = [
        [f"{labels[rater][0]:g}" if rater in labels else None for labels in by_output.values()]
        for rater in people
    ]
    labels = {label for row in ratings for label in row if label is not None}
    return krippendorff_alpha(ratings, level, sorted(labels, key=float))


def _require_scale(verdicts: Verdicts, labels: Sequence[tuple[float, str]]) -> None:
    """Raise JudgeSenseError, with the place, for numbers on another scale than the verdicts.

    The source may state its scale. Otherwise people may go beyond the verdicts by the width of
    what these show; labels of 0 and 1 alone are another scale than ratings from 1 on.
    """
    scale = [float(label) for label in verdicts.labels]
    low, high = min(scale), max(scale)
    reach = 0.0 if verdicts.is_stated else max(high - low, 1.0)
    is_binary = {value for value, _ in labels} == {0.0, 1.0} and low >= 1 and len(scale) > 2
    for value, place in labels:
        if is_binary or not low - reach <= value <= high + reach:
            raise _off_scale(verdicts, place)


def _off_scale(verdicts: Verdicts, place: str) -> JudgeSenseError:
    return JudgeSenseError(
        f"{place}, label: not on the judge's scale ({', '.join(verdicts.labels[:8])}); map "
        "people's labels to the judge's with --map THEIRS=OURS"
    )
