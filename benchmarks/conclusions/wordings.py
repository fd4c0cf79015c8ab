"""Which wordings are flagged, which is recommended, and how good it is said to be.

A judge's verdict on an item is right with a probability. Each wording departs from that verdict on
a share of the items ("departs"), so two equal wordings have a JSS of departs² + (1 - departs)².
For recommendations the wordings' correctness is drawn from normal variables with a common part, so
that the accuracy of each is known and wordings that are equally good still differ on some items.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from conclusions.frame import Cell, simulate
from judgesense.statistics.selection import choose
from judgesense.statistics.wordings import screen

ACCURACY = 0.85


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Flags, then the choice of a wording."""
    faults = (("inverted", 6, 1), ("inverted", 3, 1), ("coin", 10, 1), ("none", 6, 0))
    departs = (0.1,) if quick else (0.05, 0.15)
    shares = (0.5,) if quick else (0.5, 0.8, 0.95)
    flags = list(itertools.product(faults, departs, shares, (1,), (runs,)))
    flags += [(("noise", 6, 0), 0.5, share, 1, runs) for share in shares]
    # 26 wordings take ten times as long.
    long, fewer = (("inverted", 26, 2), ("none", 26, 0)), (0.1,) if quick else (0.05, 0.1)
    flags += itertools.product(long, fewer, (0.5,), (1,), (max(1, runs // 5),))
    if not quick:
        flags += itertools.product(faults, (0.1,), (0.5,), (2,), (runs,))
    yield from simulate(flag_cell, flags, jobs)
    items, many = ((25, 125), (5,)) if quick else ((25, 125), (2, 5, 10))
    levels, shared = ((0.8,), (0.6,)) if quick else ((0.7, 0.9), (0.3, 0.8))
    equal = list(itertools.product(items, many, levels, (0.0,), shared, (1,), (runs,)))
    if not quick:
        equal += itertools.product((500,), (5,), (0.8,), (0.0,), shared, (1,), (runs,))
        equal += itertools.product((25, 125), (5,), (0.8,), (0.0,), (0.6,), (4,), (runs,))
    yield from simulate(choice_cell, equal, jobs)
    better = itertools.product(
        (125,),
        (5,) if quick else (3, 5, 10),
        (0.8,) if quick else (0.7, 0.8),
        (0.1,),
        (0.8,) if quick else (0.6, 0.8, 0.9),
        (1,),
        (runs,),
    )
    yield from simulate(choice_cell, better, jobs)
    # Few items, and nearly all right: one wording is right on 99%, the others on 95%.
    few = itertools.product((10, 25, 50), (2, 5, 10), (0.95,), (0.0, 0.04), shared, (1, 2), (runs,))
    yield from simulate(choice_cell, few, jobs)


def flag_cell(
    kind: tuple[str, int, int], departs: float, share: float, orders: int, runs: int
) -> Iterator[Cell]:
    """80 items; ``share`` of them have the first label, ``orders`` cells are one cluster."""
    fault, wordings, bad = kind
    seed = [len(fault), wordings, int(100 * departs), int(100 * share), orders]
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(80), orders)
    found = others = 0
    for _ in range(runs):
        truth = np.repeat(rng.random(80) >= share, orders).astype(int)
        n = len(truth)
        verdict = np.where(rng.random(n) < ACCURACY, truth, 1 - truth)
        said = np.where(rng.random((wordings, n)) < departs, 1 - verdict, verdict)
        if fault == "inverted":
            said[:bad] = 1 - said[:bad]
        elif fault == "coin":
            said[:bad] = rng.integers(0, 2, (bad, n))
        elif fault == "noise":
            said = (rng.random((wordings, n)) >= share).astype(int)
        flags = [row.flag for row in screen(said, clusters, n_labels=2)[0]]
        wanted = "outlier" if fault == "coin" else "inverted"
        found += all(flag == wanted for flag in flags[:bad])
        others += any(flag != "fine" for flag in flags[bad:])
    place = {
        "wordings": wordings,
        "departs": departs,
        "first label": share,
        "orders": orders,
    }
    if bad:
        claim = f"{bad} {fault} wording{'s' if bad > 1 else ''} of {wordings} flagged"
        yield Cell(claim, place, float(found / runs), at_least=0.9)
        yield Cell("another flagged beside it", place, others / runs, at_most=0.05)
    else:
        claim = "a wording of a noise judge flagged" if fault == "noise" else "equal ones flagged"
        yield Cell(claim, place, others / runs, at_most=0.05)


def choice_cell(
    items: int, wordings: int, accuracy: float, gap: float, shared: float, rows: int, runs: int
) -> Iterator[Cell]:
    """``gap`` is how much better the first wording is; ``rows`` cells form a cluster."""
    rng = np.random.default_rng([items, wordings, int(100 * accuracy), int(100 * shared), rows])
    truth = np.full(wordings, accuracy)
    truth[0] += gap
    clusters = np.repeat(np.arange(items), rows)
    n = items * rows
    differ = named = alone = kept = covered = 0
    bias = agree = 0.0
    for _ in range(runs):
        # Half of what the wordings share belongs to the cluster, half to the cell.
        common = np.sqrt(0.5) * (rng.normal(size=items)[clusters] + rng.normal(size=n))
        own = rng.normal(size=(wordings, n))
        right = np.sqrt(shared) * common + np.sqrt(1 - shared) * own < ndtri(truth)[:, None]
        found = choose(right.astype(float), clusters)
        means = right.mean(axis=1)
        chosen = truth[means >= means.max() - 1e-9].mean()
        assert found.p_any_difference is not None
        assert found.score is not None
        assert found.ci_low is not None
        assert found.ci_high is not None
        differ += found.p_any_difference < 0.05
        named += len(found.best) == 1
        alone += found.best == (0,)
        kept += 0 in found.best
        covered += found.ci_low <= chosen <= found.ci_high
        bias += found.score - chosen
        agree += float((right[-1] == right[-2]).mean())
    place = {
        "items": items,
        "wordings": wordings,
        "accuracy": accuracy,
        "JSS": round(agree / runs, 2),
        "rows": rows,
    }
    if gap == 0:
        claim = 'type I error of "any difference"'
        # With few items, few of them differ at all, and no permutation test reaches its level.
        least = 0.03 if items >= 125 else None
        yield Cell(claim, place, float(differ / runs), at_least=least, at_most=0.06)
        yield Cell("equal wordings: one named", place, named / runs, at_most=0.1)
    else:
        points = f"better by {100 * gap:.0f} points"
        yield Cell(f"{points}: in the best set", place, kept / runs, at_least=0.95)
        least = 0.5 if items >= 125 else None
        yield Cell(f"{points}: named alone", place, alone / runs, at_least=least)
    # Of few items, four fifths choose worse than all: the quoted accuracy is then too low.
    most = 0.01 if items >= 125 else 0.04
    yield Cell("bias of the quoted accuracy", place, float(abs(bias)) / runs, at_most=most)
    yield Cell("coverage of its interval", place, float(covered / runs), at_least=0.93)
