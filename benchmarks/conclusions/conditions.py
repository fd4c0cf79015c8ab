"""Conclusions under ties, noise, picked labels, noisy people, many tasks and whole conversations.

Each claim is drawn from two kinds of data. Claims that need whole checks have fewer runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import judgesense
from conclusions.frame import Cell, simulate
from judgesense.comparison.migration import migration
from judgesense.statistics.calibration import longest_safe
from judgesense.statistics.change import item_change
from judgesense.statistics.gold import gold_agreement

FEW = 60
"""Runs of a claim that needs whole checks."""

Row = dict[str, Any]


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Every claim with its two kinds of data."""
    few = min(runs, FEW // 3 if quick else FEW)
    yield from simulate(ties, [(tie, few) for tie in ("TIE", "C")], jobs)
    yield from simulate(noise, [(kind, n, few) for kind in NOISE for n in (1, 2)], jobs)
    yield from simulate(ceiling, [(kind, few) for kind in ("alike", "half are hard")], jobs)
    yield from simulate(not_random, [(kind, few) for kind in ("random", "failed")], jobs)
    yield from simulate(many_tasks, [(n, runs) for n in (10, 20)], jobs)
    yield from simulate(unequal, [(kind, n, runs) for kind in SIZES for n in (40, 100)], jobs)
    yield from simulate(power, [(kind, runs) for kind in ("beta", "two kinds")], jobs)
    yield from simulate(picked, [(kind, n, runs) for kind in PICKS for n in (200, 600)], jobs)
    yield from simulate(promise, [(n, size, runs) for n, size in ((20, 10), (60, 5))], jobs)


def _checked(rows: list[Row], **options: Any) -> dict[str, Any]:
    """The trust card of a file of verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        result = judgesense.check(rows, out=out, runs=folder, note=lambda _: None, **options)
        (card,) = result.report.trust
        return card


def ties(tie: str, runs: int) -> Iterator[Cell]:
    """A choice in one order and a tie in the other on half of the items."""
    passed = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(tie)])
        rows: list[Row] = []
        for item in range(120):
            first, second = rng.permutation(["A", "B"]).tolist()
            if rng.random() < 0.5:
                first, second = ((first, tie), (tie, second))[rng.integers(2)]
            for order, verdict in (("AB", first), ("BA", second)):
                rows.append({"item_id": item, "order": order, "verdict": verdict})
        shown = {"A": "first", "B": "second"}
        passed += _checked(rows, map=shown)["checks"]["fair"]["state"] == "pass"
    yield Cell("fair passes at 50%", {"tie": tie}, passed / runs, at_most=0.025)


NOISE = ("a noisy wording", "all wordings noisy")


def noise(kind: str, repeats: int, runs: int) -> Iterator[Cell]:
    """An unchanged judge at T = 1, whose wording in use is the noisiest."""
    more = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind), repeats])
        base = np.where(rng.random(200) < 0.5, 1.0, -1.0)
        steep = (0.85, 4.6, 4.6)
        if kind == "all wordings noisy":
            base, steep = rng.normal(0, 2, 200), (1.0, 2.0, 3.0)
        share = 1 / (1 + np.exp(-np.outer(base, steep)))
        with tempfile.TemporaryDirectory() as folder:
            old, new = Path(folder, "old.csv"), Path(folder, "new.csv")
            _write(old, rng, share, repeats)
            _write(new, rng, share[:, :1], 1)
            more += migration(old, new).claim == "more"
    where = {"noise": kind, "repeats": repeats}
    yield Cell("migration says more of an unchanged judge", where, more / runs, at_most=0.11)


def _write(path: Path, rng: np.random.Generator, share: Any, repeats: int) -> None:
    lines = ["item_id,verdict,judge,task,wording,repeat"]
    for (item, wording), p in np.ndenumerate(share):
        for repeat in range(repeats):
            lines.append(f"i{item},{'YES' if rng.random() < p else 'NO'},m,t,w{wording},{repeat}")
    path.write_text("\n".join(lines), encoding="utf-8")


def ceiling(kind: str, runs: int) -> Iterator[Cell]:
    """A judge that is as good as each of three people, who are right on about 70%."""
    avoided = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        truth = rng.integers(0, 2, 120)
        right = np.full(120, 0.72)
        if kind == "half are hard":
            right = np.where(np.arange(120) % 2, 0.8, 0.55)
        columns = [np.where(rng.random(120) < right, truth, 1 - truth) for _ in range(4)]
        names = ("verdict", "p0", "p1", "p2")
        words = np.array(["NO", "YES"])
        rows = [
            dict(zip(names, words[list(row)].tolist(), strict=True))
            for row in zip(*columns, strict=True)
        ]
        avoided += _checked(rows, human=["p0", "p1", "p2"])["trust"] == "avoid"
    yield Cell("avoid of a judge as good as people", {"people": kind}, avoided / runs, at_most=0.07)


def not_random(kind: str, runs: int) -> Iterator[Cell]:
    """People label at random, or what the judge failed."""
    withheld = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        good = rng.random(300) < 0.72
        verdict = np.where(rng.random(300) < 0.8, good, ~good)
        chance = 0.2 if kind == "random" else np.where(verdict, 0.06, 0.6)
        labelled = rng.random(300) < chance
        rows = [{"item_id": i, "verdict": "YES" if v else "NO"} for i, v in enumerate(verdict)]
        labels = [
            {"item_id": i, "label": "YES" if good[i] else "NO"} for i in np.flatnonzero(labelled)
        ]
        (system,) = judgesense.estimate(rows, labels).systems
        withheld += system["corrected"] is None
    bounds = {"at_most": 0.05} if kind == "random" else {"at_least": 0.9}
    yield Cell(f"correction withheld, labels {kind}", {}, withheld / runs, **bounds)


def many_tasks(tasks: int, runs: int) -> Iterator[Cell]:
    """An unchanged judge at T = 1 on several tasks of one gate."""
    rng = np.random.default_rng(tasks)
    failed = 0
    for _ in range(runs):
        chances = rng.beta(2, 1, (tasks, 60))
        before, after = (rng.random(chances.shape) < chances for _ in range(2))
        changes = (item_change(*sides, figures=tasks) for sides in zip(before, after, strict=True))
        failed += any(change.conclusion(0.05) == "worse" for change in changes)
    yield Cell("gate fails an unchanged judge", {"tasks": tasks}, failed / runs, at_most=0.03)


SIZES = ("lognormal", "pareto")


def unequal(kind: str, clusters: int, runs: int) -> Iterator[Cell]:
    """An unchanged judge on conversations of unequal size, of which long ones are harder."""
    rng = np.random.default_rng([clusters, len(kind)])
    worse = 0
    for _ in range(runs):
        drawn = (
            rng.lognormal(1.2, 1.2, clusters) if kind == "lognormal" else rng.pareto(1.2, clusters)
        )
        sizes = np.minimum(200, np.ceil(drawn + (kind == "pareto"))).astype(int)
        mean = np.clip(0.85 - 0.08 * np.log(sizes), 0.1, 0.95)
        codes = np.repeat(np.arange(clusters), sizes)
        sides = [
            (rng.random(len(codes)) < rng.beta(3 * mean, 3 * (1 - mean))[codes]) for _ in range(2)
        ]
        worse += item_change(*sides, codes).conclusion(0.05) == "worse"
    where = {"sizes": kind, "clusters": clusters}
    yield Cell("worse of an unchanged judge", where, worse / runs, at_most=0.035)


def power(kind: str, runs: int) -> Iterator[Cell]:
    """The stated loss, where a third of verdicts change anyway."""
    rng = np.random.default_rng(len(kind))
    found = 0
    for _ in range(runs):
        chance = rng.beta(2, 1, 150)
        if kind == "two kinds":
            chance = np.where(rng.random(150) < 0.6, 0.5, 0.9)
        before, pilot, after = (rng.random(150) < chance for _ in range(3))
        loss = item_change(before, pilot).smallest_loss or 1.0
        after &= rng.random(150) >= loss / chance.mean()
        found += item_change(before, after).conclusion(0.05) == "worse"
    yield Cell("the stated loss is found", {"judge": kind}, found / runs, at_least=0.78)


PICKS = ("two strata", "many chances")


def picked(kind: str, items: int, runs: int) -> Iterator[Cell]:
    """Labels of mostly doubtful verdicts: kappa over all items."""
    rng = np.random.default_rng([items, len(kind)])
    covered = 0
    first = 0.5 if kind == "two strata" else 0.2
    right = 0.3 * 0.58 + 0.7 * 0.93
    answered = first * right + (1 - first) * (1 - right)
    chance = first * answered + (1 - first) * (1 - answered)
    kappa = (right - chance) / (1 - chance)
    words = np.array(["A", "B"])
    for _ in range(runs):
        doubtful = rng.random(items) < 0.3
        truth = (rng.random(items) >= first).astype(int)
        hit = rng.random(items) < np.where(doubtful, 0.58, 0.93)
        chances = np.where(doubtful, 0.8, 0.15)
        if kind == "many chances":
            chances = np.clip(rng.beta(1, 3, items) * np.where(doubtful, 2, 0.7), 0.05, 0.95)
        kept = rng.random(items) < chances
        verdict = np.where(hit, truth, 1 - truth)
        result = gold_agreement(
            words[verdict[kept]], words[truth[kept]], labels=["A", "B"], chances=chances[kept]
        )
        low, high = result.kappa_ci_low, result.kappa_ci_high
        covered += low is not None and high is not None and low <= kappa <= high
    where = {"picks": kind, "items": items}
    yield Cell("kappa of picked labels covers", where, covered / runs, at_least=0.93)


def promise(clusters: int, size: int, runs: int) -> Iterator[Cell]:
    """Conversations that are confidently wrong as a whole, beside unsure verdicts at random."""
    rng = np.random.default_rng([clusters, size])
    broken = 0
    codes = np.repeat(np.arange(clusters), size)
    for _ in range(runs):
        margin = rng.random(len(codes))
        wrong = (rng.random(clusters) < 0.06)[codes]
        wrong |= (margin < 0.5) & (rng.random(len(codes)) < 0.45)
        decided = margin[None] >= np.quantile(margin, np.linspace(1, 0, 40))[:, None]
        broken += longest_safe(decided, decided & wrong, codes, max_error=0.03).step is not None
    where = {"conversations": clusters, "verdicts each": size}
    yield Cell("at most 3% wrong, though 6% are", where, broken / runs, at_most=0.05)
