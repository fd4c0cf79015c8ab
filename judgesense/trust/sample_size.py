"""What settles the check `steady`: how many items, or how many wordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.decisions.view import distinct
from judgesense.statistics.arrays import Bools
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.planning import PROBABILITY, Needed, items_for_share
from judgesense.statistics.share_design import ShareDesign, share_chances
from judgesense.text import percent
from judgesense.trust.thresholds import FEWEST_RANDOM, MOST_ITEMS

_MOST_WORDINGS = 100


@dataclass(frozen=True)
class Plan:
    """What settles an open check with 80% probability.

    ``items`` are numbers of items in all, those of the run included. ``wordings`` is a number of
    wordings that settles it on the run's own items; None if more wordings are not the way.
    """

    items: Needed
    wordings: int | None = None

    def text(self, now: int) -> str:
        """The plan in words, for a run with ``now`` items.

        >>> Plan(Needed(120, 80, 410)).text(60)
        'about 120 items (80 to 410; now 60) settle it with 80% probability'
        """
        chance = f"with {percent(PROBABILITY)} probability"
        most = "no number of items is likely to settle it"
        if self.items.clusters is not None:
            known = [*_range(self.items), f"now {now}"]
            told = f"about {self.items.clusters} items ({'; '.join(known)}) settle it {chance}"
            return told if self.wordings is None else f"{told}, and so do {self.wordings} wordings"
        if self.wordings is None:
            return "no number of items or wordings is likely to settle it"
        return f"about {self.wordings} wordings settle it {chance}; {most} without more wordings"

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> Plan:
        """The plan of `to_dict`."""
        names = ("items_needed", "items_needed_low", "items_needed_high")
        return cls(Needed(*(details[name] for name in names)), details["wordings_needed"])

    def to_dict(self) -> dict[str, int | None]:
        """The numbers as in the details of a check in ``report.json``."""
        return {
            "items_needed": self.items.clusters,
            "items_needed_low": self.items.low,
            "items_needed_high": self.items.high,
            "wordings_needed": self.wordings,
        }


def _range(needed: Needed) -> list[str]:
    if needed.low is None and needed.high is None:
        return []
    high = f"more than {MOST_ITEMS}" if needed.high is None else str(needed.high)
    return [f"{needed.low} to {high}"]


def steady_plan(
    agree: Bools,
    clusters: npt.NDArray[Any],
    items: npt.NDArray[Any],
    template_a: npt.NDArray[Any],
    template_b: npt.NDArray[Any],
    *,
    threshold: float,
    confidence_level: float = 0.95,
) -> Plan | None:
    """How many items, or wordings, put the interval of JSS on one side of a threshold.

    Args:
        agree: whether the two wordings of each decided pair agree, shape (n,).
        clusters: cluster of each pair, shape (n,).
        items: item of each pair, shape (n,).
        template_a: one wording of each pair, shape (n,).
        template_b: the other, shape (n,).
        threshold: within (0, 1).
        confidence_level: of the two-sided interval.

    Returns:
        The plan; None without an interval to start from (one cluster).

    >>> rng = np.random.default_rng(0)
    >>> items = np.arange(300) // 3
    >>> found = steady_plan(rng.random(300) < 0.87, items, items, np.tile([0, 0, 1], 100),
    ...                     np.tile([1, 2, 2], 100), threshold=0.8)
    >>> found.items.low < found.items.clusters < found.items.high
    True
    """
    k = distinct(clusters)
    design = design_of(agree, clusters, items, template_a, template_b)
    if design is None or not 0 < threshold < 1:
        return None
    needed = items_for_share(
        design,
        threshold=threshold,
        confidence_level=confidence_level,
        seen=k,
    )
    n_items = distinct(items)
    scaled = needed.scaled(n_items / k, least=n_items + 1)
    scaled = Needed(*(
        None if each is None or each > MOST_ITEMS else each
        for each in (scaled.clusters, scaled.low, scaled.high)
    ))  # fmt: skip
    wordings = None
    if design.wording_variance > 0:
        counts = np.arange(design.wordings + 1, _MOST_WORDINGS + 1)
        now = design.wordings * (design.wordings - 1)
        wider = replace(design, wordings=counts, pairs=design.pairs * (counts * (counts - 1) / now))
        chances = share_chances(wider, k, threshold=threshold, confidence_level=confidence_level)
        enough = np.flatnonzero(chances >= PROBABILITY)
        wordings = int(counts[enough[0]]) if len(enough) else None
    return Plan(scaled, wordings)


def design_of(
    agree: Bools,
    clusters: npt.NDArray[Any],
    items: npt.NDArray[Any],
    template_a: npt.NDArray[Any],
    template_b: npt.NDArray[Any],
) -> ShareDesign | None:
    """The design that a run's pairs were drawn from, as far as they tell."""
    fixed = wilson_cluster(agree, clusters) if len(agree) else None
    if fixed is None or fixed.effective_n is None or fixed.icc is None:
        return None
    k, share, n = distinct(clusters), float(agree.mean()), fixed.effective_n
    if share in (0.0, 1.0):
        # A share of 1 in a sample does not promise a share of 1.
        share = (n * share + 0.5) / (n + 1)
    wordings = len(np.union1d(template_a, template_b))
    pure = cell = 0.0
    if wordings >= FEWEST_RANDOM:
        pure, cell = _over_wordings(agree, clusters, template_a, template_b)
    design = ShareDesign(
        share, max(1.0, len(agree) / k), 0.0, wordings, pure * wordings, cell * wordings * k,
    )  # fmt: skip
    if agree.all() or not agree.any():
        # Pairs without exception tell nothing of how alike those of an item are: assume the worst.
        return replace(design, icc=1.0)
    # `wilson_cluster` prints a correlation above the true one with few clusters: undo that.
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if replace(design, icc=middle).printed_icc(k, share) < fixed.icc:
            low = middle
        else:
            high = middle
    return replace(design, icc=high if high < 1e-6 else low)


def _over_wordings(
    agree: Bools,
    clusters: npt.NDArray[Any],
    template_a: npt.NDArray[Any],
    template_b: npt.NDArray[Any],
) -> tuple[float, float]:
    """The jackknife variance of JSS over wordings in two parts: of wordings, and of cells.

    Leaving out a wording changes JSS because the wording differs, and because its answers to these
    items happen to. The second part, seen in how the change varies over clusters, shrinks with more
    items. Both are 0 where one wording is in all pairs.
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    templates, both = np.unique(np.concatenate([template_a, template_b]), return_inverse=True)
    one, two = np.split(both, 2)
    k, n_wordings, n = int(cluster.max()) + 1, len(templates), len(agree)
    gap = agree - agree.mean()
    changes = np.zeros((n_wordings, k))
    for code in range(n_wordings):
        rest = (one != code) & (two != code)
        if not rest.any():
            return 0.0, 0.0
        changes[code] = np.bincount(cluster, gap * (rest / rest.sum() - 1 / n), minlength=k)
    changes -= changes.mean(axis=0)
    whole = (n_wordings - 1) / n_wordings * float((changes.sum(axis=1) ** 2).sum())
    cell = (n_wordings - 1) / n_wordings * float((k * changes.var(axis=1, ddof=1)).sum())
    return max(0.0, whole - cell), cell
