"""Coverage and width of every printed interval, on simulated answers with known truth."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from conclusions.frame import Cell, simulate
from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.bias import position_bias
from judgesense.statistics.crossed import delta_jss, two_way_interval
from judgesense.statistics.gold import gold_agreement
from judgesense.statistics.intervals import wilson_cluster, wilson_from_sums

Floats = npt.NDArray[np.float64]

LEAST, LEAST_RANDOM, WIDEST = 0.93, 0.92, 1.3
FIGURES = ("accuracy", "balanced_accuracy", "kappa", "gwet_ac1", "beats_constant")


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Share of runs whose 95% interval contains the truth; for delta JSS those that miss it."""
    items = (5, 25, 125) if quick else (5, 10, 25, 50, 125, 500)
    pairs = (1, 5, 60) if quick else (1, 2, 5, 12, 31, 60)
    iccs = (0.0, 0.5) if quick else (0.0, 0.1, 0.3, 0.5, 0.8)
    shares = (0.5, 0.9, 0.99) if quick else (0.5, 0.8, 0.9, 0.97, 0.99)
    grid = itertools.product(items, pairs, iccs, shares, (runs,))
    yield from simulate(jss_cell, (key for key in grid if key[1] > 1 or key[2] == 0), jobs)
    wordings, spreads = ((2, 5), (1.0,)) if quick else ((2, 5, 11, 26), (0.3, 1.0, 3.0))
    grid = itertools.product(items, wordings, spreads, (runs,))
    yield from simulate(pairs_cell, grid, jobs)
    shared = (
        [(10, 4, 3), (25, 6, 5)] if quick else [(10, 4, 3), (10, 12, 1), (25, 6, 5), (54, 31, 1)]
    )
    grid = itertools.product(shared, iccs[:4], (0.0, 0.5), (0.8, 0.9, 0.97), (runs,))
    yield from simulate(shared_cell, grid, jobs)
    # The rest takes more time a run.
    fewer = max(50, runs // 2)
    sizes, counts = ((30, 125), (5, 10)) if quick else ((30, 125, 500), (5, 10, 26))
    grid = itertools.product(("answers", "margins", "noise"), (0.5, 0.7), sizes, counts, (fewer,))
    yield from simulate(random_cell, grid, jobs)
    grid = itertools.product(items[1:], (2, 5), (0.1, 0.3, 1.0), (runs,))
    yield from simulate(repeat_cell, (key for key in grid if key[0] >= 25), jobs)
    fewer = max(50, runs // 4)
    grid = itertools.product(
        (10, 25, 125) if quick else (5, 10, 25, 125),
        (1, 5),
        (0.0, 0.5),
        (0.6, 0.9),
        ((2, 0.5), (2, 0.95), (5, 0.3)) if quick else ((2, 0.5), (2, 0.8), (2, 0.95), (5, 0.3)),
        (fewer,),
    )
    yield from simulate(gold_cell, (key for key in grid if key[1] > 1 or key[2] == 0), jobs)
    grid = itertools.product((25, 100, 400), (1, 5), (0.005, 0.5, 0.995), (runs,))
    yield from simulate(orders_cell, grid, jobs)


def jss_cell(items: int, pairs: int, icc: float, share: float, runs: int) -> Iterator[Cell]:
    """Items with equal numbers of pairs, whose shares come from a Beta distribution."""
    rng = np.random.default_rng([items, pairs, int(100 * icc), int(100 * share)])
    sums = rng.binomial(pairs, beta(rng, np.full((runs, items), share), icc))
    place = {"items": items, "pairs": pairs, "ICC": icc, "JSS": share}
    yield from share_cells("JSS", place, sums, pairs, share)


def pairs_cell(items: int, wordings: int, noise: float, runs: int) -> Iterator[Cell]:
    """All pairs of wordings of an item with a normal margin; each answer adds normal noise."""
    rng = np.random.default_rng([items, wordings, int(10 * noise)])
    pairs = wordings * (wordings - 1) // 2

    def agreeing(runs: int, items: int) -> npt.NDArray[np.intp]:
        margin = rng.normal(size=(runs, items, 1))
        yes = (margin + rng.normal(0, noise, (runs, items, wordings)) > 0).sum(axis=2)
        found: npt.NDArray[np.intp] = yes * (yes - 1) // 2
        found += (wordings - yes) * (wordings - yes - 1) // 2
        return found

    truth = float(np.mean([agreeing(20, 2_500).mean() for _ in range(20)])) / pairs
    place = {"items": items, "wordings": wordings, "noise": noise, "JSS": round(truth, 2)}
    yield from share_cells("JSS, pairs of wordings", place, agreeing(runs, items), pairs, truth)


def shared_cell(
    design: tuple[int, int, int], icc: float, of_items: float, share: float, runs: int
) -> Iterator[Cell]:
    """Clusters of several items with several pairs each, correlated within both."""
    clusters, items, pairs = design
    rng = np.random.default_rng([*design, int(100 * icc), int(100 * of_items), int(100 * share)])
    of_cluster = beta(rng, np.full((runs, clusters, 1), share), icc)
    p = beta(rng, np.repeat(of_cluster, items, axis=2), of_items)
    sums = rng.binomial(pairs, p).sum(axis=2)
    place = {
        "clusters": clusters,
        "items a cluster": items,
        "pairs": pairs,
        "ICC": icc,
        "ICC of items": of_items,
        "JSS": share,
    }
    yield from share_cells("JSS, items share clusters", place, sums, items * pairs, share)


def beta(rng: np.random.Generator, mean: Floats, icc: float) -> Floats:
    """Shares with the given means and intra-cluster correlation."""
    if not icc:
        return mean
    spread = (1 - icc) / icc
    p = np.clip(mean, 1e-9, 1 - 1e-9)
    return rng.beta(p * spread, (1 - p) * spread)


def share_cells(
    name: str, place: dict[str, float], sums: npt.NDArray[np.intp], pairs: int, truth: float
) -> Iterator[Cell]:
    """Coverage, and width over that of a sandwich interval where the latter covers as much."""
    from scipy.special import stdtrit

    k = sums.shape[1]
    ends = [wilson_from_sums(row, np.full(k, pairs)) for row in sums]
    low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
    mean = sums.mean(axis=1) / pairs
    half = stdtrit(k - 1, 0.975) * sums.std(axis=1, ddof=1) / pairs / np.sqrt(k)
    width = float((high - low).mean())
    sandwich = float((np.minimum(mean + half, 1) - np.maximum(mean - half, 0)).mean())
    held = coverage(mean - half, mean + half, truth) >= LEAST
    more = {"width": width, "sandwich": sandwich}
    yield Cell(f"{name}: coverage", place, coverage(low, high, truth), LEAST, more=more)
    if held:
        yield Cell(f"{name}: width / sandwich", place, width / sandwich, at_most=WIDEST)


def coverage(low: Floats, high: Floats, truth: float) -> float:
    """Share of intervals that contain the truth."""
    return float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean())


def random_cell(kind: str, sd: float, items: int, wordings: int, runs: int) -> Iterator[Cell]:
    """JSS for wordings like these.

    Wordings shift the log-odds of each answer, or the threshold of an answer that is nearly fixed,
    or differ in how noisy they are.
    """
    rng = np.random.default_rng([len(kind), int(10 * sd), items, wordings])

    def answers(items: int, wordings: int) -> npt.NDArray[np.bool_]:
        shift = rng.normal(0, sd, wordings)
        if kind == "margins":
            margin = rng.normal(0, 2, (items, 1)) + rng.normal(0, 0.3, (items, wordings))
            return margin + shift > 0
        if kind == "answers":
            logit = rng.normal(0, 4, (items, 1)) + shift
            return rng.random((items, wordings)) < 1 / (1 + np.exp(-logit))
        right = rng.random((items, wordings)) < 1 / (1 + np.exp(-(2 + shift)))
        return right == (rng.random((items, 1)) < 0.5)

    many = []
    for _ in range(100):
        yes, n = answers(1_000, 60).sum(axis=1), 60
        many.append(((yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1))).mean())
    truth = float(np.mean(many))
    one, two = np.triu_indices(wordings, 1)
    clusters = np.repeat(np.arange(items), len(one))
    ends, fixed = [], []
    for _ in range(runs):
        said = answers(items, wordings)
        agree = (said[:, one] == said[:, two]).ravel()
        sides = np.tile(one, items), np.tile(two, items)
        found = two_way_interval(agree, clusters, *sides, prior=WORDING_PRIOR)
        ends.append((found.low, found.high))
        these = wilson_cluster(agree, clusters)
        fixed.append((these.low, these.high))
    low, high = np.array(ends, dtype=float).T
    place = {
        "wordings differ in": kind,
        "sd": sd,
        "items": items,
        "wordings": wordings,
        "JSS": round(truth, 2),
    }
    of_these = coverage(*np.array(fixed, dtype=float).T, truth)
    more = {"width": float((high - low).mean()), "these wordings only": of_these}
    claim = "JSS, wordings like these: coverage"
    yield Cell(claim, place, coverage(low, high, truth), LEAST_RANDOM, more=more)


def repeat_cell(items: int, wordings: int, steady: float, runs: int) -> Iterator[Cell]:
    """Rewording does nothing: all answers to an item are draws of one distribution."""
    rng = np.random.default_rng([items, wordings, int(10 * steady)])
    one, two = np.triu_indices(wordings, 1)
    of_pairs, of_repeats = (
        np.repeat(np.arange(items), len(one)),
        np.repeat(np.arange(items), wordings),
    )
    wrong = 0
    for _ in range(runs):
        q = rng.beta(steady, steady, (items, 1))
        said, again = rng.random((2, items, wordings)) < q
        agree = (said[:, one] == said[:, two]).ravel()
        found = delta_jss(agree, of_pairs, (said == again).ravel(), of_repeats)
        assert found.ci_low is not None
        assert found.ci_high is not None
        wrong += not found.ci_low <= 0 <= found.ci_high
    place = {"items": items, "wordings": wordings, "Beta": steady}
    yield Cell("delta JSS: false alarms", place, wrong / runs, 0.03, 0.06)


def gold_cell(
    items: int, rows: int, icc: float, right: float, labels: tuple[int, float], runs: int
) -> Iterator[Cell]:
    """Agreement with gold: several rows an item, the first label as common as told."""
    size, skew = labels
    rng = np.random.default_rng(
        [items, rows, int(100 * icc), int(100 * right), size, int(100 * skew)]
    )
    names = np.array([str(step) for step in range(size)], dtype=object)
    shares = np.array([skew, *[(1 - skew) / (size - 1)] * (size - 1)])
    said = partial(answered, rng, size)
    exact = gold_truth(shares, right, ordinal=size > 2)
    clusters = np.repeat(np.arange(items), rows)
    inside: dict[str, list[bool]] = {name: [] for name in FIGURES}
    widths: dict[str, list[float]] = {name: [] for name in FIGURES}
    for _ in range(runs):
        gold = np.repeat(rng.choice(size, items, p=shares), rows)
        hit = rng.random(items * rows) < np.repeat(beta(rng, np.full(items, right), icc), rows)
        found = gold_agreement(
            names[said(gold, hit)], names[gold], clusters, names.tolist(), ordinal=size > 2
        )
        for name in FIGURES:
            low, high = (getattr(found, f"{name}_ci_{end}") for end in ("low", "high"))
            if low is not None:
                inside[name].append(bool(low - 1e-9 <= exact[name] <= high + 1e-9))
                widths[name].append(high - low)
    place = {
        "items": items,
        "rows": rows,
        "ICC": icc,
        "right": right,
        "labels": size,
        "commonest": skew,
    }
    for name in FIGURES:
        if len(inside[name]) >= 0.5 * runs:
            more = {
                "width": float(np.mean(widths[name])),
                "undefined": 1 - len(inside[name]) / runs,
            }
            share = float(np.mean(inside[name]))
            yield Cell(f"right: {name}: coverage", place, share, LEAST, more=more)


def answered(
    rng: np.random.Generator, size: int, gold: npt.NDArray[np.intp], hit: npt.NDArray[np.bool_]
) -> npt.NDArray[np.intp]:
    """The gold label where hit, a neighbour on the scale (or the other label) otherwise."""
    beside = gold + rng.choice([-1, 1], len(gold))
    beside = np.where(beside < 0, 1, np.where(beside >= size, size - 2, beside))
    found: npt.NDArray[np.intp] = np.where(hit, gold, beside)
    return found


def gold_truth(shares: Floats, right: float, *, ordinal: bool) -> dict[str, float]:
    """The figures that `gold_cell` simulates, from its table of probabilities."""
    from judgesense.statistics.gold import table_figures

    size = len(shares)
    table = np.zeros((size, size + 1))
    for label, share in enumerate(shares):
        table[label, label] += share * right
        for step in (-1, 1):
            beside = label + step
            beside = 1 if beside < 0 else size - 2 if beside >= size else beside
            table[label, beside] += share * (1 - right) / 2
    found = {name: float(value) for name, value in table_figures(table, ordinal).items()}
    return {**found, "accuracy": right, "beats_constant": right - float(shares.max())}


def orders_cell(items: int, wordings: int, share: float, runs: int) -> Iterator[Cell]:
    """The same choice in both orders, and how often the first option is taken."""
    rng = np.random.default_rng([items, wordings, int(1000 * share)])
    clusters = np.repeat(np.arange(items), wordings)
    ends = []
    for _ in range(runs):
        same = rng.random(len(clusters)) < np.repeat(
            beta(rng, np.full(items, share), 0.3), wordings
        )
        # Who does not follow the item always takes the first option.
        ab = np.where(same & (rng.random(len(clusters)) < 0.5), "B", "A")
        ba = np.where(same, np.where(ab == "A", "B", "A"), "A")
        found = position_bias(ba, ab, clusters)
        names = ("position_consistency", "first_position_rate")
        ends.append([found[f"{name}_ci_{side}"] for name in names for side in ("low", "high")])
    low, high, first_low, first_high = np.array(ends, dtype=float).T
    place = {"items": items, "wordings": wordings, "same choice": share}
    yield Cell("fair: same choice: coverage", place, coverage(low, high, share), LEAST)
    truth = 1 - share / 2
    yield Cell("fair: first option: coverage", place, coverage(first_low, first_high, truth), LEAST)
