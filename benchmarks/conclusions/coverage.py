"""Coverage and width of every printed interval."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from conclusions.frame import Cell, simulate
from judgesense.statistics.intervals import wilson_from_sums


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Share of runs whose 95% interval contains the truth."""
    grid = itertools.product(
        (5, 25, 100) if quick else (5, 10, 25, 50, 125, 500),
        (1, 5, 60) if quick else (1, 2, 5, 12, 31, 60),
        (0.0, 0.5) if quick else (0.0, 0.1, 0.3, 0.5, 0.8),
        (0.8, 0.97) if quick else (0.5, 0.8, 0.9, 0.97, 0.99),
        (runs,),
    )
    yield from simulate(jss_cell, (key for key in grid if key[1] > 1 or key[2] == 0), jobs)


def jss_cell(items: int, pairs: int, icc: float, share: float, runs: int) -> Iterator[Cell]:
    """JSS of clusters of equal size whose shares come from a Beta distribution."""
    rng = np.random.default_rng([items, pairs, int(100 * icc), int(100 * share)])
    p = np.full((runs, items), share)
    if icc:
        spread = (1 - icc) / icc
        p = rng.beta(share * spread, (1 - share) * spread, (runs, items))
    sizes = np.full(items, pairs)
    ends = [wilson_from_sums(sums, sizes) for sums in rng.binomial(pairs, p)]
    low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
    place = {"items": items, "pairs": pairs, "ICC": icc, "JSS": share}
    hit = float(((low <= share + 1e-12) & (share <= high + 1e-12)).mean())
    yield Cell("JSS: coverage", place, hit, 0.93, more={"width": float((high - low).mean())})
