"""Claims on items that are no independent sample: of one form, in bursts, or chosen."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import judgesense
from conclusions.frame import Cell, simulate
from conclusions.temptations import FEW, Row, _checked, word

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Every claim with its kinds of data."""
    few = min(runs, FEW // 3 if quick else FEW)
    yield from simulate(forms, [(kind, few) for kind in FORMS], jobs)
    yield from simulate(bursts, [(few,)], jobs)
    yield from simulate(relabelled, [(few,)], jobs)
    yield from simulate(again, [(kind, few) for kind in ("all", "merged", "subset")], jobs)
    yield from simulate(short_anchors, [(few,)], jobs)
    yield from simulate(other_prompts, [(few,)], jobs)


def _text(rng: np.random.Generator, n: int) -> str:
    return " ".join(rng.choice(WORDS, n))


def _quietly(call: Any, *sides: list[Row], **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return call(*sides, runs=folder, note=lambda _: None, **options)


FORMS = ("words filled in", "a number filled in", "one question")


def forms(kind: str, runs: int) -> Iterator[Cell]:
    """15 forms or questions with 8 items each; a judge that is wrong on a fifth of the forms."""
    covered = 0
    for run in range(runs):
        rng, rows = np.random.default_rng([run, len(kind)]), list[Row]()
        for _ in range(15):
            base, is_bad = _text(rng, 16).split(), rng.random() < 0.2
            for _ in range(8):
                filled, truth = base.copy(), rng.random() < 0.5
                for place in {"words filled in": (3, 9, 13), "one question": ()}.get(kind, (9,)):
                    filled[place] = str(rng.integers(1000, 9999))
                wrong = is_bad if rng.random() < 0.8 else rng.random() < 0.2
                row = {"item_id": f"i{len(rows)}", "verdict": word(truth != wrong)}
                name = "question" if kind == "one question" else "output"
                row |= {"output": _text(rng, 14)} | {name: " ".join(filled)}
                rows.append(row | {"label": word(truth)})
        (first,) = _checked(rows).report.people
        covered += first["accuracy_ci_low"] <= 0.8 <= first["accuracy_ci_high"]
    yield Cell("right covers, items of one form", {"kind": kind}, covered / runs, at_least=0.9)


def _outage(rng: np.random.Generator, truth: Any) -> list[str]:
    """Verdicts that are wrong on 8%, and on 60% in a bad state of about ten items."""
    verdicts, is_bad = [], rng.random() < 3 / 13
    for each in truth:
        verdicts.append(word(each != (rng.random() < (0.6 if is_bad else 0.08))))
        is_bad = rng.random() < (0.9 if is_bad else 0.03)
    return verdicts


def bursts(runs: int) -> Iterator[Cell]:
    """An unchanged judge whose errors come in bursts along a date."""
    covered, promised = 0, 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth = rng.random(150) < 0.5
        days = [f"2026-{1 + n // 120:02}-{1 + n // 8 % 15:02}" for n in range(150)]
        old, new = (
            [
                {"item_id": f"i{n}", "date": day, "verdict": v, "label": word(t)}
                for n, (day, v, t) in enumerate(zip(days, _outage(rng, truth), truth, strict=True))
            ]
            for _ in range(2)
        )
        result = _checked(new, baseline=old)
        (first,) = result.report.people
        low, high = first["accuracy_ci_low"], first["accuracy_ci_high"]
        covered += low <= 1 - (0.6 * 3 + 0.08 * 10) / 13 <= high
        change = result.change
        promised += change.conclusions[0]["conclusion"] in ("worse", "better") and not change.bursts
    yield Cell("right covers, bursts", {}, covered / runs, at_least=0.85)
    yield Cell("changed, at a promised rate, bursts", {}, promised / runs, at_most=0.06)


def relabelled(runs: int) -> Iterator[Cell]:
    """An unchanged judge at T = 1, half of whose newer errors became labels."""
    better = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth = rng.random(120) < 0.55
        chance = np.clip(rng.beta(4, 1, 120), 0.02, 0.98)
        one, two = (np.where(rng.random(120) < chance, truth, ~truth) for _ in range(2))
        gold = np.where((two != truth) & (rng.random(120) < 0.5), two, truth)
        old, new = (
            [
                {"item_id": f"i{n}", "verdict": word(v), "label": word(t)}
                for n, (v, t) in enumerate(zip(*side, strict=True))
            ]
            for side in ((one, truth), (two, gold))
        )
        better += _checked(new, baseline=old).change.conclusions[0]["conclusion"] == "better"
    yield Cell("better, labels changed towards it", {}, better / runs, at_most=0.05)


def again(kind: str, runs: int) -> Iterator[Cell]:
    """An unchanged judge at T = 1, asked again for all scores, or for low ones only."""
    blamed = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        quality = rng.choice([1, 2, 3, 4, 5], 120, p=[0.08, 0.17, 0.3, 0.3, 0.15])
        old, new = (
            np.clip(quality + rng.choice([-1, 0, 1], 120, p=[0.2, 0.6, 0.2]), 1, 5)
            for _ in range(2)
        )
        if kind != "all":
            new = np.where(old <= 3, new, old)
        sides = [
            [
                {"item_id": n, "output": f"output {n}", "score": int(s)}
                for n, s in enumerate(side)
                if kind != "subset" or at == 0 or old[n] <= 3
            ]
            for at, side in enumerate((old, new))
        ]
        found = _quietly(judgesense.compare, *sides, verdict="score")
        blamed += found.changes[0].cause in ("judge", "both")
    yield Cell("it was the judge, asked again", {"scores": kind}, blamed / runs, at_most=0.07)


def short_anchors(runs: int) -> Iterator[Cell]:
    """A judge that became harsher on long outputs, which all are other ones."""
    blamed = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        is_long, quality = rng.random(150) < 0.7, rng.integers(3, 9, 150)
        sides = [
            [
                {
                    "item_id": n,
                    "output": f"{n} {side * is_long[n]} " + "w " * (60 if is_long[n] else 4),
                    "score": int(quality[n] + rng.choice([-1, 0, 0, 1]) - side * is_long[n]),
                }
                for n in range(150)
            ]
            for side in range(2)
        ]
        found = _quietly(judgesense.compare, *sides, verdict="score")
        blamed += found.changes[0].cause == "system"
    yield Cell("it was the system, short anchors", {}, blamed / runs, at_most=0.05)


def other_prompts(runs: int) -> Iterator[Cell]:
    """Two equal systems, of which one answered easier prompts."""
    decided = 0
    for run in range(runs):
        rng, verdicts, labels = np.random.default_rng(run), list[Row](), list[Row]()
        for system, hard in (("x", 0.25), ("y", 0.6)):
            for item in range(150):
                truth = rng.random() < (0.5 if rng.random() < hard else 0.9)
                place = {"item_id": f"{system}{item}", "system_id": system}
                verdicts.append(place | {"verdict": word(truth == (rng.random() < 0.8))})
                if item < 50:
                    labels.append(place | {"label": word(truth)})
        decided += judgesense.estimate(verdicts, labels).comparisons[0]["decision"] is not None
    yield Cell("better, of other prompts", {}, decided / runs, at_most=0.05)
