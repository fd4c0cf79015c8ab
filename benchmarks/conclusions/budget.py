"""The variance budget: bias and coverage of each component, with known components."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from conclusions.frame import Cell, simulate
from judgesense.statistics.variance import variance_budget

LEAST, MOST_BIAS = 0.93, 0.1
LEVELS = {"wording": 5, "format": 5, "order": 2, "rerun": 2}
"""Answers an item has for each source, the base's own included."""


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Relative bias of each component, and the share of runs whose 95% interval contains it."""
    items = (50, 125) if quick else (50, 125, 500)
    noisy = ((0.05, 0.1, 0.2),) if quick else ((0.05, 0.1, 0.2), (0.2, 0.02, 0.05), (0.1, 0.1, 0.1))
    grid = itertools.product(("nominal", "ordinal"), items, noisy, (runs,))
    yield from simulate(budget_cell, grid, jobs)


def budget_cell(kind: str, items: int, noisy: tuple[float, ...], runs: int) -> Iterator[Cell]:
    """``noisy`` are the strengths of wording, format and order; the rerun has half the first."""
    scale = 0.3 if kind == "nominal" else 1.0
    noise = [scale * value for value in (*noisy, noisy[0] / 2)]
    strength = dict(zip(LEVELS, noise, strict=True))
    rng = np.random.default_rng([items, kind == "ordinal", *(int(1000 * s) for s in noisy)])
    draw, truth = (_nominal, _flips) if kind == "nominal" else (_scores, _squares)
    known = truth(strength)
    found: dict[str, list[float]] = {source: [] for source in known}
    inside = dict.fromkeys(known, 0)
    for _ in range(runs):
        base, pairs = draw(rng, items, strength)
        budget = variance_budget(base, range(items), pairs, ordinal=kind == "ordinal")
        for source, value in known.items():
            low, high = budget.intervals[source]
            assert low is not None
            assert high is not None
            found[source].append(budget.unbiased[source])
            inside[source] += low <= value <= high
    for source, value in known.items():
        place = {"verdicts": kind, "items": items, "source": source, "truth": round(value, 4)}
        yield Cell("coverage", place, inside[source] / runs, at_least=LEAST)
        bias = float(np.mean(found[source])) / value - 1
        yield Cell("relative bias", place, bias, -MOST_BIAS, MOST_BIAS)


def _star(rng: np.random.Generator, base: np.ndarray, effects: dict, rerun, join) -> dict:
    """Pairs of the base and each level of a source; the rerun noise is drawn for each answer."""
    first = rerun()
    found = {}
    for source, (own, others) in effects.items():
        rest = [e[0] for name, e in effects.items() if name != source]
        one = join([base, own, *rest, first])
        sides = [join([base, other, *rest, rerun()]) for other in others]
        n = len(base)
        found[source] = (
            np.tile(one, len(sides)), np.concatenate(sides), np.tile(np.arange(n), len(sides))
        )  # fmt: skip
    every = [e[0] for e in effects.values()]
    again = join([base, *every, rerun()])
    found["rerun"] = (join([base, *every, first]), again, np.arange(len(base)))
    return found


def _nominal(rng: np.random.Generator, n: int, strength: dict) -> tuple[np.ndarray, dict]:
    """Verdicts of two labels; each source turns a verdict over with its probability."""

    def turned(p: float) -> np.ndarray:
        return rng.random(n) < p

    effects = {
        s: (turned(strength[s]), [turned(strength[s]) for _ in range(LEVELS[s] - 1)])
        for s in ("wording", "format", "order")
    }
    base = turned(0.5)
    pairs = _star(rng, base, effects, lambda: turned(strength["rerun"]), _odd)
    pairs = {s: (a.astype(float), b.astype(float), c) for s, (a, b, c) in pairs.items()}
    return pairs["rerun"][0], pairs


def _odd(parts: list[np.ndarray]) -> np.ndarray:
    return np.logical_xor.reduce(parts)


def _flips(strength: dict) -> dict[str, float]:
    """The chance that two verdicts differ, by source; that of two items is a half."""
    again = 2 * strength["rerun"] * (1 - strength["rerun"])
    found = {"rerun": again}
    for source in ("wording", "format", "order"):
        one = 2 * strength[source] * (1 - strength[source])
        found[source] = one + again - 2 * one * again - again
    return {"item": 0.5 - sum(found.values()), **found}


def _scores(rng: np.random.Generator, n: int, strength: dict) -> tuple[np.ndarray, dict]:
    def drawn(variance: float) -> np.ndarray:
        return rng.normal(0, variance**0.5, n)

    effects = {
        s: (drawn(strength[s]), [drawn(strength[s]) for _ in range(LEVELS[s] - 1)])
        for s in ("wording", "format", "order")
    }
    base = drawn(1.0)
    pairs = _star(rng, base, effects, lambda: drawn(strength["rerun"]), lambda parts: sum(parts))
    return pairs["rerun"][0], pairs


def _squares(strength: dict) -> dict[str, float]:
    return {"item": 1.0, **strength}
