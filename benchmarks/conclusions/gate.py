"""The gate, the comparison of two judges and the ranking of systems."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from conclusions.frame import Cell, simulate
from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.comparison import paired_test
from judgesense.statistics.consequence import consequence
from judgesense.statistics.crossed import two_way_interval
from judgesense.statistics.intervals import wilson_from_sums

THRESHOLD = 0.8


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Errors of PASS, FAIL and "differs"."""
    sizes = (50, 125) if quick else (30, 50, 125, 300)
    on = [
        (n, m, icc, 0.8, "at most", 0.05, runs)
        for n, m, icc in itertools.product(sizes, (1, 3), (0.0, 0.3, 0.8))
        if m > 1 or icc == 0
    ]
    below = [(50, m, icc, 0.75, "at most", 0.02, runs) for m, icc in ((1, 0.0), (3, 0.3))]
    above = [(100, m, icc, 0.98, "at least", 0.8, runs) for m, icc in ((1, 0.0), (3, 0.3))]
    yield from simulate(fixed_gate, on + below + above, jobs)
    spread = (0.0, 0.5) if quick else (0.0, 0.5, 0.7)
    on = [
        (n, t, sd, 0.8, "at most", 0.05, runs)
        for n, t, sd in itertools.product(sizes, (5, 10), spread)
    ]
    below = [(50, t, sd, 0.75, "at most", 0.02, runs) for t in (5, 10) for sd in spread]
    above = [(100, t, sd, 0.98, "at least", 0.8, runs) for t in (5, 10) for sd in spread[:2]]
    yield from simulate(random_gate, on + below + above, jobs)
    shapes = ("one row", "five rows", "one in five large", "log-normal sizes", "opposite by size")
    clusters = (25, 100) if quick else (20, 40, 60, 125)
    yield from simulate(comparison, itertools.product(shapes, clusters, (0.7, 0.85), (runs,)), jobs)
    kinds = ("asked again", "own answers", "strict wordings", "a noisy wording")
    grids = ((2, 4, 24), (4, 5, 40)) if quick else ((2, 4, 24), (4, 5, 40), (3, 8, 80))
    yield from simulate(ranking, itertools.product(kinds, grids, (runs,)), jobs)


def _outcome(ends: Any, claim: str, place: dict[str, Any], bound: str, limit: float) -> Cell:
    passed = float(np.mean([end.low > THRESHOLD for end in ends]))
    failed = float(np.mean([end.high < THRESHOLD for end in ends]))
    bounds = {"at_most": limit} if bound == "at most" else {"at_least": limit}
    return Cell(claim, place, passed, **bounds, more={"FAIL": failed})


def fixed_gate(
    items: int, pairs: int, icc: float, share: float, bound: str, limit: float, runs: int
) -> Iterator[Cell]:
    """PASS on these wordings alone, at a true JSS."""
    rng = np.random.default_rng([items, pairs, int(100 * icc), int(100 * share)])
    ends = [
        wilson_from_sums(hits, sizes)
        for hits, sizes in _shares(rng, items, pairs, icc, share, runs)
    ]
    place = {"items": items, "pairs": pairs, "ICC": icc}
    yield _outcome(ends, f"PASS at JSS {share:g}, these wordings", place, bound, limit)


def _shares(
    rng: np.random.Generator, items: int, pairs: int, icc: float, share: float, runs: int
) -> Iterator[tuple[Any, Any]]:
    p = np.full((runs, items), share)
    if icc:
        spread = (1 - icc) / icc
        p = rng.beta(share * spread, (1 - share) * spread, (runs, items))
    sizes = np.full(items, pairs)
    for hits in rng.binomial(pairs, p):
        yield hits, sizes


def random_gate(
    items: int, wordings: int, sd: float, share: float, bound: str, limit: float, runs: int
) -> Iterator[Cell]:
    """PASS where wordings are a sample, at a true JSS over wordings like these."""
    rng = np.random.default_rng([items, wordings, int(10 * sd), int(100 * share)])
    base = _base(share, sd)
    ends = [
        two_way_interval(*_judged(rng, items, wordings, base, sd), prior=WORDING_PRIOR)
        for _ in range(runs)
    ]
    place = {"items": items, "wordings": wordings, "wording sd": sd}
    yield _outcome(ends, f"PASS at JSS {share:g}, wordings like these", place, bound, limit)


def _judged(
    rng: np.random.Generator, items: int, wordings: int, base: float, sd: float
) -> tuple[Any, Any, Any, Any]:
    """Agreement of every two wordings: a verdict is the usual one with logit base + item + wording.

    Items have standard deviation 1 on the logit scale.
    """
    logit = base + rng.normal(0, 1, (items, 1)) + sd * rng.normal(0, 1, (1, wordings))
    usual = rng.random((items, wordings)) < 1 / (1 + np.exp(-logit))
    one, two = np.triu_indices(wordings, 1)
    agree = usual[:, one] == usual[:, two]
    return (
        agree.ravel(),
        np.repeat(np.arange(items), len(one)),
        np.tile(one, items),
        np.tile(two, items),
    )


@cache
def _base(share: float, sd: float) -> float:
    """The logit at which JSS over all items and wordings is ``share``."""
    rng = np.random.default_rng(0)
    item = rng.normal(0, 1, (400_000, 1))
    wording = sd * rng.normal(0, 1, (400_000, 2))
    low, high = 0.0, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        usual = 1 / (1 + np.exp(-(middle + item + wording)))
        agree = usual.prod(axis=1) + (1 - usual).prod(axis=1)
        low, high = (middle, high) if agree.mean() < share else (low, middle)
    return low


def comparison(shape: str, clusters: int, share: float, runs: int) -> Iterator[Cell]:
    """Two judges with the same true JSS: p < 0.05, and whether the interval contains 0."""
    rng = np.random.default_rng([len(shape), clusters, int(100 * share)])
    low = hit = 0
    for _ in range(runs):
        hits, sizes = _two_judges(rng, shape, clusters, share)
        rows = np.repeat(np.arange(clusters), sizes)
        # The first of a cluster's rows are the hits: only their number matters.
        place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found = paired_test(place < hits[0][rows], place < hits[1][rows], rows, n_resamples=999)
        assert found.p_value is not None
        assert found.ci_low is not None
        assert found.ci_high is not None
        low += found.p_value < 0.05
        hit += found.ci_low <= 0 <= found.ci_high
    about = {"clusters": clusters, "of": shape, "share": share}
    yield Cell("compare: p < 0.05 between equal judges", about, low / runs, 0.03, 0.06)
    yield Cell("compare: interval contains the truth", about, hit / runs, 0.93)


def _two_judges(rng: np.random.Generator, shape: str, clusters: int, share: float) -> Any:
    sizes = {
        "one row": np.ones(clusters),
        "five rows": np.full(clusters, 5),
        "one in five large": np.where(rng.random(clusters) < 0.2, 40, 4),
        "log-normal sizes": np.minimum(60, np.ceil(rng.lognormal(1.5, 1.2, clusters))),
        "opposite by size": np.where(rng.random(clusters) < 0.2, 20, 5),
    }[shape].astype(int)
    means = np.full((2, clusters), share)
    if shape == "opposite by size":
        # As many rows are in large clusters as in small: the gains and losses cancel.
        gap = np.where(sizes == 20, 0.1, -0.1)
        means = np.stack([share - gap, share + gap])
    p = rng.beta(4 * means, 4 * (1 - means))
    return rng.binomial(sizes, p), sizes


def ranking(kind: str, grid: tuple[int, int, int], runs: int) -> Iterator[Cell]:
    """No wording favours a system: how often the ranking is said not to survive."""
    n_systems, wordings, items = grid
    rng = np.random.default_rng([len(kind), *grid])
    said = changed = 0.0
    for _ in range(runs):
        scores = _scores(rng, kind, grid)
        item, system, template, repeat = (each.ravel() for each in np.indices(scores.shape))
        found = consequence(
            scores.ravel(),
            system.astype(str),
            template.astype(str),
            item,
            repeat_ids=repeat,
            n_resamples=1,
            n_permutations=199,
        )
        said += found.p_value is not None and found.p_value < 0.05 + 1e-9
        assert found.ranking_change_rate is not None
        changed += found.ranking_change_rate
    place = {"systems": n_systems, "wordings": wordings, "items": items, "noise": kind}
    yield Cell(
        "ranking does not survive, though it does",
        place,
        said / runs,
        0.03,
        0.06,
        more={"ranking changes": changed / runs},
    )


def _scores(rng: np.random.Generator, kind: str, grid: tuple[int, int, int]) -> Any:
    """Scores, shape (items, systems, wordings, 2 repeats), of systems that are equally good."""
    n_systems, wordings, items = grid
    ease = rng.normal(0, 1, (items, 1, 1)) + rng.normal(0, 0.5, (items, n_systems, 1))
    logit = np.broadcast_to(ease, (items, n_systems, wordings)).copy()
    if kind == "strict wordings":
        logit += rng.normal(0, 0.7, wordings)
    if kind in ("own answers", "a noisy wording"):
        own = rng.normal(0, 0.8, logit.shape)
        if kind == "a noisy wording":
            own[..., 0] *= 3
        return np.repeat((logit + own > 0)[..., None], 2, axis=3).astype(float)
    p = 1 / (1 + np.exp(-2 * logit))
    return rng.binomial(1, p[..., None], (*logit.shape, 2)).astype(float)
