"""Agreement among raters beyond kappa: Gwet's AC1, Krippendorff's alpha, consistency of k."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.intervals import cluster_codes, wilson_cluster
from judgesense.statistics.kappa import ordered
from judgesense.statistics.labels import Labels, check_labels, encode, encode_pair

Floats = npt.NDArray[np.float64]
Ratings = Sequence[Sequence[str | None]] | npt.NDArray[Any]


def gwet_ac1(a: Labels, b: Labels, labels: Sequence[str] | None = None) -> float | None:
    """Gwet's AC1: chance-corrected agreement that does not collapse under skewed labels.

    AC1 = (p - c) / (1 - c) with c = sum of s_l (1 - s_l) / (L - 1) over the L labels, s_l the mean
    share of label l in both streams (Gwet 2008, formulas 5 and 6).

    Args:
        a: labels of the first rater, shape (n,), strings.
        b: labels of the second rater, shape (n,), strings.
        labels: all labels of the scale; None takes those seen.

    Returns:
        AC1, or None where a single label is known (nothing to agree on).

    Raises:
        ValueError: bad labels or lengths, or a label missing from `labels`.
    """
    first, second, seen = encode_pair(a, b, ("a", "b"))
    scale = seen if labels is None else list(labels)
    for label in seen:
        if label not in scale:
            raise ValueError(f"the label {label!r} is not in labels={scale!r}: name it there")
    if len(scale) < 2:
        return None
    share = np.bincount(np.concatenate([first, second])) / (2 * len(first))
    chance = float((share * (1 - share)).sum()) / (len(scale) - 1)
    return (float((first == second).mean()) - chance) / (1 - chance)


def krippendorff_alpha(
    ratings: Ratings,
    level: str = "nominal",
    labels: Sequence[str] | None = None,
    missing: Collection[str] = UNDECIDED,
) -> float | None:
    """Krippendorff's alpha = 1 - observed / expected disagreement, with missing ratings.

    From the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").

    Args:
        ratings: shape (raters, units), strings; None or a label in `missing` where there is none.
        level: "nominal" or "ordinal".
        labels: the scale in order, for "ordinal"; None takes the labels seen, as numbers where all
            are numbers, else sorted as text.
        missing: labels that are no rating.

    Returns:
        Alpha, or None where it is undefined (no unit with two ratings, or one label throughout).

    Raises:
        ValueError: ragged rows, a rating that is neither string nor None, an unknown level, a label
            missing from `labels`.
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
    """Krippendorff's alpha from how often each unit got each label, shape (units, L)."""
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
    """How often each unit got each label, shape (units, L), and the labels."""
    rows = [list(row) for row in _outer(ratings, "ratings")]
    if len({len(row) for row in rows}) > 1:
        short = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
        raise ValueError(
            f"ratings[{short}] has {len(rows[short])} units and ratings[0] {len(rows[0])}: pass "
            "one rating a unit from every rater, None where there is none"
        )
    n_units = len(rows[0])
    if not n_units:
        raise ValueError("ratings have no units: pass at least one column")
    table: dict[str, int] = {}
    units, codes = [], []
    for number, row in enumerate(rows):
        there = [
            i
            for i, rating in enumerate(row)
            if rating is not None and not (isinstance(rating, str) and rating in missing)
        ]
        units.append(np.array(there, dtype=np.intp))
        codes.append(encode([row[i] for i in there], f"ratings[{number}]", table))
    flat = np.concatenate(units) * max(1, len(table)) + np.concatenate(codes)
    counts = np.bincount(flat, minlength=n_units * max(1, len(table)))
    return counts.reshape(n_units, -1).astype(np.float64), list(table)


def _outer(values: Any, name: str) -> Any:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise ValueError(f"{name} is a {type(values).__name__}: pass a list of lists of labels")
    if not len(values):
        raise ValueError(f"{name} is empty: pass at least one row")
    for place, row in enumerate(values):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise ValueError(f"{name}[{place}] is {row!r}: pass a list of labels")
    return values


@dataclass(frozen=True)
class Consistency:
    """Share of items on which all k prompts led to the same decision.

    Items with an undecided answer are left out of `consistency` and `majority_share` (the mean
    share of the commonest decision), counted in `n_undecided` and bounded by `low` and `high`.
    """

    consistency: float | None
    ci_low: float | None
    ci_high: float | None
    low: float
    high: float
    majority_share: float | None
    k: int
    n_items: int
    n_undecided: int

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def consistency_of_k(
    decisions: Ratings,
    clusters: Any = None,
    undecided: Collection[str] = UNDECIDED,
    confidence_level: float = 0.95,
) -> Consistency:
    """Share of items on which k paraphrases all led to the same decision.

    "All Prompts Created Equal", metric "Consistency": (1/N) * sum of I(s_1 = ... = s_k). For k = 2
    it is JSS.

    Args:
        decisions: shape (N, k), strings: one row an item, one column a paraphrase, k >= 2.
        clusters: one id a row where rows share something, or None.
        undecided: labels that are no decision.
        confidence_level: within (0, 1).

    Returns:
        The consistency with the clustered Wilson interval.

    Raises:
        ValueError: empty input, rows of differing k, k < 2, or a decision that is no string.
    """
    rows = [list(row) for row in _outer(decisions, "decisions")]
    k = len(rows[0])
    if k < 2:
        raise ValueError(f"decisions has {k} column(s): pass at least two paraphrases an item")
    for place, row in enumerate(rows):
        if len(row) != k:
            raise ValueError(
                f"decisions[{place}] has {len(row)} entries and decisions[0] {k}: pass the same "
                "number of paraphrases for every item, UNCLEAR where one was not read"
            )
    undecided = check_labels(undecided, "undecided")
    groups, _ = cluster_codes(clusters, len(rows))
    table: dict[str, int] = {}
    codes = encode([label for row in rows for label in row], "decisions (row by row)", table)
    codes = codes.reshape(len(rows), k)
    out = np.isin(codes, [code for label, code in table.items() if label in undecided]).any(axis=1)
    same = (codes == codes[:, :1]).all(axis=1)
    kept = ~out
    n_kept, hits = int(kept.sum()), int((same & kept).sum())
    n = len(rows)
    interval = None
    majority = None
    if n_kept:
        interval = wilson_cluster(same[kept], groups[kept], confidence_level)
        counts = (codes[kept][:, :, None] == np.arange(len(table))).sum(axis=1)
        majority = float(counts.max(axis=1).mean()) / k
    return Consistency(
        consistency=hits / n_kept if n_kept else None,
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        low=hits / n,
        high=(hits + n - n_kept) / n,
        majority_share=majority,
        k=k,
        n_items=n_kept,
        n_undecided=n - n_kept,
    )
