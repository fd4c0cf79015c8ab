"""Agreement among any number of raters: Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import ordered
from judgesense.statistics.labels import check_labels, encode
from judgesense.statistics.tables import is_ordered

Ratings = Sequence[Sequence[str | None]] | npt.NDArray[Any]


def krippendorff_alpha(
    ratings: Ratings,
    level: str = "nominal",
    labels: Sequence[str] | None = None,
    missing: Collection[str] = UNDECIDED,
) -> float | None:
    """Krippendorff's alpha = 1 - observed / expected disagreement, with missing ratings.

    Computed from the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability").

    Args:
        ratings: shape (raters, units), strings; None or a label in `missing` if there is no rating.
        level: "nominal" or "ordinal".
        labels: the scale in order, for "ordinal"; None takes the labels seen, as numbers if all
            are numbers, else sorted as text.
        missing: labels that are not ratings.

    Returns:
        Alpha, or None if it is undefined (no unit with two ratings, or one label throughout).

    Raises:
        ValueError: ragged rows, a rating that is neither a string nor None, an unknown level, a
            label missing from `labels`.

    >>> krippendorff_alpha([["A", "B", "A", None], ["A", "B", "B", "A"]]).__round__(3)
    0.444
    """
    if level not in ("nominal", "ordinal"):
        raise ValueError(f"level is {level!r}: pass 'nominal' or 'ordinal'")
    counts, seen = _unit_counts(ratings, check_labels(missing, "missing"))
    scale = ordered(seen) if labels is None else list(labels)
    for label in seen:
        if label not in scale:
            raise ValueError(f"the label {label!r} is not in labels={scale!r}: name it there")
    table = np.zeros((len(counts), len(scale)))
    table[:, [scale.index(label) for label in seen]] = counts
    return alpha_from_counts(table, level)


def alpha_from_counts(counts: Floats, level: str = "nominal") -> float | None:
    """Krippendorff's alpha from the counts of each label per unit, shape (units, L).

    >>> alpha_from_counts(np.array([[2.0, 0.0], [0.0, 2.0]]))
    1.0
    """
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return None
    raters = counts.sum(axis=1)
    scaled = counts / (raters - 1)[:, None]
    coincidence = counts.T @ scaled - np.diag(scaled.sum(axis=0))
    totals = counts.sum(axis=0)
    n = float(totals.sum())
    n_labels = len(totals)
    if level == "ordinal":
        upto = np.cumsum(totals)
        middle = upto - totals / 2
        distance = np.subtract.outer(middle, middle) ** 2
    else:
        distance = 1.0 - np.eye(n_labels)
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1)
    if expected == 0:
        return None
    return 1 - float((coincidence * distance).sum()) / expected


def _unit_counts(ratings: Ratings, missing: Collection[str]) -> tuple[Floats, list[str]]:
    """The counts of each label per unit, shape (units, L), and the labels."""
    if not is_ordered(ratings) or not len(ratings):
        raise ValueError(f"ratings is {ratings!r}: pass one list of labels per rater")
    for place, row in enumerate(ratings):
        if not is_ordered(row):
            raise ValueError(f"ratings[{place}] is {row!r}: pass a list of labels")
        if len(row) != len(ratings[0]):
            raise ValueError(
                f"ratings[{place}] has {len(row)} units and ratings[0] {len(ratings[0])}: pass "
                "one rating per unit from every rater, None if there is none"
            )
    n_units = len(ratings[0])
    if not n_units:
        raise ValueError("ratings have no units: pass at least one column")
    table: dict[str, int] = {}
    units, codes = [], []
    for number, row in enumerate(ratings):
        rated = [
            i
            for i, rating in enumerate(row)
            if rating is not None and not (isinstance(rating, str) and rating in missing)
        ]
        units.append(np.array(rated, dtype=np.intp))
        codes.append(encode([row[i] for i in rated], f"ratings[{number}]", table))
    flat = np.concatenate(units) * max(1, len(table)) + np.concatenate(codes)
    counts = np.bincount(flat, minlength=n_units * max(1, len(table)))
    return counts.reshape(n_units, -1).astype(np.float64), list(table)
