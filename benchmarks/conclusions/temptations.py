"""Claims on data that tempt: copied and constant verdicts, ties, turns, strict raters, retries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import judgesense
from conclusions.frame import Cell, simulate
from judgesense.comparison.score_noise import _items_needed
from judgesense.statistics.attribution import attribute
from judgesense.statistics.rogan_gladen import rogan_gladen

FEW = 60
"""Runs of a claim that needs whole checks."""

Row = dict[str, Any]


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Every claim with its kinds of data."""
    few = min(runs, FEW // 3 if quick else FEW)
    yield from simulate(stand_in, [(kind, few) for kind in JUDGES], jobs)
    yield from simulate(gate, [(kind, few) for kind in ("ties", "turns")], jobs)
    yield from simulate(raters, [(share, few) for share in (0.5, 0.8)], jobs)
    yield from simulate(retried, [(few,)], jobs)
    yield from simulate(power, [(noise, runs) for noise in (0.01, 0.08, 0.2)], jobs)
    yield from simulate(rare, [(n, runs) for n in (60, 400)], jobs)


def word(is_good: Any) -> str:
    return "pass" if is_good else "fail"


JUDGES = {"good": (0.6, 0.9, 0.9, 0.0), "constant": (0.97, 1.0, 0.0, 0.0)} | {
    "copied by one": (0.6, 0.65, 0.65, 0.8)
}
"""Share of good items, the judge's chance to be right on good and bad ones, and to be copied."""


def stand_in(kind: str, runs: int) -> Iterator[Cell]:
    """Three people who are right on 90% (on 99% of rare failures), one of whom may copy."""
    share, good, bad, copied = JUDGES[kind]
    rng, said = np.random.default_rng(len(kind)), 0
    for _ in range(runs):
        rows: list[Row] = []
        for truth in rng.random(250) < share:
            verdict = truth == (rng.random() < (good if truth else bad))
            row: Row = {"item_id": len(rows), "verdict": word(verdict)}
            for person in range(3):
                own = truth == (rng.random() < (0.9 if share < 0.9 else 0.99))
                is_copy = person == 0 and rng.random() < copied
                row[f"p{person}"] = word(verdict if is_copy else own)
            rows.append(row)
        said += "may replace a person" in str(_checked(rows, human=["p0", "p1", "p2"]))
    bounds = {"at_least": 0.9} if kind == "good" else {"at_most": 0.05}
    yield Cell("the judge may replace a person", {"judge": kind}, said / runs, **bounds)


def _checked(rows: list[Row], **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        return judgesense.check(rows, out=out, runs=folder, note=lambda _: None, **options)


def gate(kind: str, runs: int) -> Iterator[Cell]:
    """A judge that agrees with a person on 80%, two people who tie on hard items, or turns."""
    rng, passed, failed = np.random.default_rng(len(kind)), 0, 0
    for _ in range(runs):
        rows: list[Row] = []
        for item in range(300):
            if kind == "turns" and item % 6 == 0:
                right = rng.beta(1.6, 0.4)  # Of the conversation; 0.8 on average.
            truth, is_hard = rng.random() < 0.5, kind == "ties" and rng.random() < 0.4
            right = (0.5 if is_hard else 1.0) if kind == "ties" else right
            people = [truth == (rng.random() < (0.5 if is_hard else 1.0)) for _ in range(2)]
            name = f"talk{item // 6}-{item % 6}" if kind == "turns" else f"i{item}"
            row: Row = {"item_id": name, "verdict": word(truth == (rng.random() < right))}
            rows.append(row | {f"p{n}": word(own) for n, own in enumerate(people)})
        decision = _checked(rows, human=["p0", "p1"], require=["right=0.8"]).decision
        passed, failed = passed + (decision == "PASS"), failed + (decision == "FAIL")
    yield Cell("gate passes at the threshold", {"data": kind}, passed / runs, at_most=0.05)
    yield Cell("gate fails at the threshold", {"data": kind}, failed / runs, at_most=0.05)


def raters(share: float, runs: int) -> Iterator[Cell]:
    """Two equal systems, of which a strict rater labels other shares than a lenient one."""
    rng, decided = np.random.default_rng(int(10 * share)), 0
    for _ in range(runs):
        verdicts, labels = [], []
        for system, own in (("x", share), ("y", 1 - share)):
            for item in range(300):
                place = {"item_id": item, "system_id": system}
                verdicts.append(place | {"verdict": word(rng.random() < 0.7)})
                is_strict = rng.random() < own
                label = word(rng.random() < (0.5 if is_strict else 0.8))
                labels.append(place | {"label": label, "rater": "ab"[is_strict]})
        found = judgesense.estimate(verdicts, [row for n, row in enumerate(labels) if n % 3 == 0])
        decided += found.comparisons[0]["decision"] is not None
    yield Cell("equal systems differ", {"share": share}, decided / runs, at_most=0.08)


def retried(runs: int) -> Iterator[Cell]:
    """An unchanged judge at T = 1, asked again only where it failed."""
    rng, blamed = np.random.default_rng(0), 0
    for _ in range(runs):
        old = [
            {"id": n, "output": f"t{n}", "verdict": word(rng.random() < 0.7)} for n in range(150)
        ]
        again = [row | {"verdict": word(rng.random() < 0.4)} for row in old]
        pairs = zip(old, again, strict=True)
        new = [one if one["verdict"] == "pass" else two for one, two in pairs]
        with tempfile.TemporaryDirectory() as folder:
            found = judgesense.compare(old, new, runs=folder, note=lambda _: None)
        blamed += "It was the judge" in str(found)
    yield Cell("it was the judge, of failures asked again", {}, blamed / runs, at_most=0.05)


def power(noise: float, runs: int) -> Iterator[Cell]:
    """The items with which a change of 10 points shows in 80%."""
    rng, shown = np.random.default_rng(int(100 * noise)), 0
    n = _items_needed(noise * (1 - noise / 2), 1.0, 0.1)
    for _ in range(runs):
        passes = rng.random(n) < 0.75
        old, new = (passes ^ (rng.random(n) < noise / 2) for _ in range(2))
        new = new & (rng.random(n) >= 0.1 / 0.75)
        found = attribute(old.astype(float), new.astype(float), new.astype(float))
        shown += found is not None and not found.judge.is_zero_inside
    yield Cell("a change of 10 points shows", {"noise": noise}, shown / runs, at_least=0.77)


def rare(n: int, runs: int) -> Iterator[Cell]:
    """Rogan and Gladen's interval with failures of 3%."""
    rng, missed, known = np.random.default_rng(n), 0, 0
    for _ in range(runs):
        good = rng.random(1000) < 0.97
        verdict = np.where(good, rng.random(1000) < 0.995, rng.random(1000) < 0.5)
        labels = np.where(np.arange(1000) < n, good, np.nan)
        found = rogan_gladen(labels, verdict.astype(float))
        if found.ci_low is not None and found.ci_high is not None:
            known += 1
            missed += not found.ci_low <= 0.97 <= found.ci_high
    share = missed / max(1, known)
    yield Cell("Rogan-Gladen misses", {"labels": n}, share, at_most=0.08, more={"known": known})
