"""Conclusions where items are copies, clusters unequal, wordings edits, errors rare, looks several.

Each claim is drawn from two kinds of data. Claims that need whole checks have fewer runs.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import judgesense
from conclusions.conditions import FEW, Row
from conclusions.frame import Cell, simulate
from judgesense.comparison.estimate import labels_needed
from judgesense.measure.card import Check
from judgesense.measure.planning import plan
from judgesense.statistics.change import item_change
from judgesense.statistics.gold import gold_agreement
from judgesense.statistics.prediction_powered import Powered, combined, influence

AB = np.array(["A", "B"])


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Every claim with its two kinds of data."""
    few = min(runs, FEW // 3 if quick else FEW)
    some = min(runs, 400)
    yield from simulate(copies, [(kind, few) for kind in ("few heavy", "even")], jobs)
    yield from simulate(near_copies, [(n, few // 2) for n in (1, 2, 3)], jobs)
    yield from simulate(
        unequal, [(kind, n, some) for kind in ("lognormal", "few heavy") for n in (30, 80)], jobs
    )
    yield from simulate(edits, [(kind, few) for kind in ("alike", "a bad one")], jobs)
    yield from simulate(constant, [(k, n, some) for k, n in ((2, 50), (10, 30), (10, 100))], jobs)
    yield from simulate(broken, [(kind, runs) for kind in ("equal", "lognormal")], jobs)
    yield from simulate(planned, [(kind, some) for kind in ("binary", "scale")], jobs)
    yield from simulate(looks, [(kind, some // 2) for kind in ("binary", "scale")], jobs)
    yield from simulate(ladder, [(share, some) for share in (0.5, 0.25)], jobs)
    yield from simulate(rare, [(kind, n, some) for kind in ("far", "any") for n in (20, 40)], jobs)
    yield from simulate(best, [(kind, few // 3) for kind in ("alone", "alike")], jobs)


def _report(rows: list[Row], **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        return judgesense.check(rows, out=out, runs=folder, note=lambda _: None, **options).report


def copies(kind: str, runs: int) -> Iterator[Cell]:
    """Texts under several ids, of which each gets one verdict and one label."""
    covered = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        texts = [" ".join(rng.choice(_WORDS, 8)) for _ in range(60)]
        right, gold = rng.random(60) < 0.7, rng.integers(0, 2, 60)
        times = np.where(rng.random(60) < 0.3, 8, 1) if kind == "few heavy" else np.full(60, 4)
        rows = [
            {"item_id": n, "text": texts[at], "verdict": AB[gold[at] ^ (not right[at])]}
            | {"label": AB[gold[at]]}
            for n, at in enumerate(np.repeat(np.arange(60), times))
        ]
        people = _report(rows).people[0]
        covered += people["accuracy_ci_low"] <= 0.7 <= people["accuracy_ci_high"]
    yield Cell("accuracy of copied texts covers", {"copies": kind}, covered / runs, at_least=0.93)


_WORDS = [f"{a}{b}{c}a" for a in "bdfglmnprst" for b in "aeiou" for c in "bdfglmnprst"]


def _uniform(*key: Any) -> float:
    return int(hashlib.sha256(repr(key).encode()).hexdigest()[:8], 16) / 2**32


def near_copies(times: int, runs: int) -> Iterator[Cell]:
    """`improve` with texts that differ in a word from each other; all wordings are equally good."""
    covered = 0
    for run in range(runs):
        rng = np.random.default_rng([run, times])
        gold, of, rows = rng.integers(0, 2, 60), dict[str, int](), list[Row]()
        for base in range(60):
            words = rng.choice(_WORDS, 14)
            for _ in range(times):
                words[rng.integers(14)] = rng.choice(_WORDS)
                of[text := " ".join(words)] = base
                rows.append({"item_id": len(rows), "text": text, "gold": AB[gold[base]]})

        def judge(prompts: Any, run: int = run, of: Any = of, gold: Any = gold) -> list[str]:
            found = []
            for prompt in map(str, prompts):
                text = next(each for each in of if each in prompt)
                right = _uniform(run, of[text], prompt.replace(text, "")) < 0.65
                found.append(str(AB[gold[of[text]] ^ (not right)]))
            return found

        with tempfile.TemporaryDirectory() as folder:
            found = judgesense.improve(
                "Is this text A or B?\n\n{text}",
                rows,
                judge,
                budget=4,
                out=Path(folder, "judge.yaml"),
                seed=run,
                answers=["A", "B"],
                note=lambda _: None,
            )
        (row,) = (each for each in found.rows if each["written"])
        # Votes of wordings are right more often than each; the promise may not be below that.
        covered += row["right_ci_low"] <= 0.65
    yield Cell("improve's promise is not too high", {"times": times}, covered / runs, at_least=0.85)


def unequal(kind: str, clusters: int, runs: int) -> Iterator[Cell]:
    """Conversations of which a few are long, and long ones harder."""
    rng = np.random.default_rng([len(kind), clusters])

    def drawn(k: int) -> tuple[Any, Any, Any]:
        if kind == "lognormal":
            sizes = np.ceil(rng.lognormal(1.2, 1, k)).astype(int).clip(1, 150)
            share = 1 / (1 + np.exp(0.7 * np.log(sizes) - 1.8 + rng.normal(0, 0.5, k)))
        else:
            sizes = np.where(rng.random(k) < 0.1, 30, 3)
            share = np.where(sizes == 30, 0.55, 0.85) + rng.uniform(-0.1, 0.1, k)
        codes = np.repeat(np.arange(k), sizes)
        gold = rng.integers(0, 2, len(codes))
        return codes, gold, gold ^ (rng.random(len(codes)) >= share[codes])

    _, gold, said = drawn(60_000)
    truth = float((gold == said).mean())
    kappa = 2 * truth - 1
    inside = {"accuracy": 0, "kappa": 0}
    for _ in range(runs):
        codes, gold, said = drawn(clusters)
        found = gold_agreement(AB[said], AB[gold], codes, ["A", "B"])
        for name, value in (("accuracy", truth), ("kappa", kappa)):
            low, high = getattr(found, f"{name}_ci_low"), getattr(found, f"{name}_ci_high")
            inside[name] += low is not None and low <= value <= high
    for name, covered in inside.items():
        where = {"sizes": kind, "clusters": clusters}
        yield Cell(f"{name} of unequal clusters covers", where, covered / runs, at_least=0.9)


def edits(kind: str, runs: int) -> Iterator[Cell]:
    """Three rewrites with four edits each, of a judge whose JSS between rewrites is 0.8."""
    passed = 0
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        base, rows = rng.integers(0, 2, 100), list[Row]()
        for rewrite in range(3):
            depart = 0.1127 if kind == "alike" else rng.choice([0.06, 0.18])
            verdicts = base ^ (rng.random(100) < depart)
            for edit in range(4):
                own = verdicts ^ (rng.random(100) < 0.01)
                rows += [
                    {"item_id": n, "wording": f"{rewrite}.{edit}", "family": str(rewrite)}
                    | {"verdict": str(AB[verdict])}
                    for n, verdict in enumerate(own)
                ]
        passed += _report(rows).trust[0]["checks"]["steady"]["state"] == "pass"
    yield Cell("steady passes by edits at 0.8", {"rewrites": kind}, passed / runs, at_most=0.05)


def constant(labels: int, items: int, runs: int) -> Iterator[Cell]:
    """A judge as good as any constant: is it called reliably less often right?"""
    rng = np.random.default_rng([labels, items])
    names = np.array([str(label) for label in range(labels)])
    less = 0
    for _ in range(runs):
        gold = rng.integers(0, labels, items)
        said = (gold + rng.integers(0, labels, items)) % labels
        high = gold_agreement(
            names[said], names[gold], labels=names.tolist()
        ).beats_constant_ci_high
        less += high is not None and high < 0
    where = {"labels": labels, "items": items}
    yield Cell("reliably worse than a constant", where, less / runs, at_most=0.05)


def broken(kind: str, runs: int) -> Iterator[Cell]:
    """Whole conversations break, at a loss of the margin."""
    rng = np.random.default_rng(len(kind))
    passed = 0
    for _ in range(runs):
        sizes = np.full(150, 8)
        if kind == "lognormal":
            sizes = np.ceil(rng.lognormal(1, 1, 150)).astype(int).clip(1, 100)
        codes = np.repeat(np.arange(150), sizes)
        before = rng.random(len(codes)) < 0.95
        after = before & ~(rng.random(150) < 0.05 / 0.95)[codes]
        passed += item_change(before, after, codes).conclusion(0.05) == "no worse"
    yield Cell("no worse, with a loss of the margin", {"sizes": kind}, passed / runs, at_most=0.035)


class _Systems:
    """Two systems' outputs that differ by ``gap``, labels in random order, and verdicts."""

    def __init__(self, rng: np.random.Generator, kind: str, n: int, gap: float) -> None:
        if kind == "binary":
            chance = rng.beta(2, 2, n)
            truths = [rng.random(n) < np.clip(chance + side, 0, 1) for side in (gap / 2, -gap / 2)]
            said = [np.where(rng.random(n) < 0.8, truth, ~truth) for truth in truths]
        else:
            base = rng.normal(3, 1, n)
            means = [base + side + rng.normal(0, 0.7, n) for side in (2 * gap, 0.0)]
            truths = [np.clip(np.round(mean), 1, 5) for mean in means]
            said = [np.clip(np.round(mean + rng.normal(0, 0.8, n)), 1, 5) for mean in means]
        self.sides = [(t.astype(float), s.astype(float)) for t, s in zip(truths, said, strict=True)]
        self.place, self.codes = np.argsort(rng.permutation(n)), np.arange(n)

    def compared(self, labels: int) -> Powered:
        """The difference by the first labels of each system."""
        return combined(
            [
                (
                    sign,
                    influence(np.where(self.place < labels, truth, np.nan), said, step=1.0),
                    self.codes,
                )
                for sign, (truth, said) in zip((1.0, -1.0), self.sides, strict=True)
            ]
        )

    def is_decided(self, labels: int) -> bool:
        p = self.compared(labels).p_value
        return p is not None and p <= 0.05


def planned(kind: str, runs: int) -> Iterator[Cell]:
    """The labels that are said to decide, where the difference is about as measured."""
    rng = np.random.default_rng(len(kind))
    plans = decided = 0
    for _ in range(runs):
        systems = _Systems(rng, kind, 1000, gap := 0.1)
        first = systems.compared(50)
        assert first.error is not None
        truth = gap if kind == "binary" else 2 * gap
        if systems.is_decided(50) or abs(first.estimate - truth) > 0.3 * first.error:
            continue
        if (needed := labels_needed(first, 0.95)) is not None:
            plans += 1
            decided += systems.is_decided(min(1000, -(-needed // 2)))
    share = float(decided / max(1, plans))
    more = {"plans": float(plans)}
    yield Cell("the stated labels decide", {"labels": kind}, share, at_least=0.78, more=more)


def looks(kind: str, runs: int) -> Iterator[Cell]:
    """Equal systems, compared after every 30 labels up to 300: what one look does not promise."""
    rng = np.random.default_rng(len(kind))
    first = ever = 0
    for _ in range(runs):
        systems = _Systems(rng, kind, 600, 0.0)
        found = [systems.is_decided(n) for n in range(30, 301, 30)]
        first, ever = first + found[0], ever + any(found)
    yield Cell("one look decides equal systems", {"labels": kind}, first / runs, at_most=0.08)
    yield Cell("some look of ten decides equal systems", {"labels": kind}, ever / runs)


def ladder(share: float, runs: int) -> Iterator[Cell]:
    """Kappa at its threshold, followed by the plan's items until it passes or fails."""
    from scipy.optimize import brentq

    def kappa_of(right: float) -> float:
        said = share * right + (1 - share) * (1 - right)
        chance = share * said + (1 - share) * (1 - said)
        return (right - chance) / (1 - chance) - 0.4

    rng, right = np.random.default_rng(int(100 * share)), brentq(kappa_of, 0.5, 0.99)
    once = passed = failed = 0
    for _ in range(runs):
        gold = (rng.random(3200) < share).astype(int)
        said, n, first = gold ^ (rng.random(3200) >= right), 50, True
        while n is not None and n <= 3200:
            found = gold_agreement(AB[said[:n]], AB[gold[:n]], labels=["A", "B"])
            assert found.kappa is not None
            check = Check.of(
                found.kappa,
                found.kappa_ci_low,
                found.kappa_ci_high,
                threshold=0.4,
                n_items=n,
                text="",
            )
            if check.state != "open":
                once += first and check.state == "pass"
                passed, failed = passed + (check.state == "pass"), failed + (check.state == "fail")
                break
            found_plan, first = plan({"right": check}), False
            n = None if found_plan is None else found_plan.items_needed
    where = {"share of A": 1 - share}
    yield Cell("right passes at its threshold, one look", where, once / runs, at_most=0.035)
    yield Cell("right passes at its threshold, plans followed", where, passed / runs)
    yield Cell("right fails at its threshold, plans followed", where, failed / runs)


def rare(kind: str, labels: int, runs: int) -> Iterator[Cell]:
    """Scores that are badly wrong on 6% of outputs: covered, or said not to be?"""
    kept = 0
    for run in range(runs):
        rng = np.random.default_rng([run, labels, len(kind)])
        truth = rng.choice(np.arange(1, 6), 300, p=[0.05, 0.1, 0.2, 0.35, 0.3])
        said = np.clip(truth + rng.choice([-1, 0, 1], 300, p=[0.05, 0.9, 0.05]), 1, 5)
        bad = rng.random(300) < 0.06
        truth = np.where(bad, 1, truth)
        said = np.where(bad, 5 if kind == "far" else rng.integers(3, 6, 300), said)
        rows = [{"item_id": n, "verdict": int(v)} for n, v in enumerate(said)]
        people = [{"item_id": n, "label": int(truth[n])} for n in rng.permutation(300)[:labels]]
        found = judgesense.estimate(rows, people)
        (score,) = found.systems
        covers = score["ci_low"] is not None and score["ci_low"] <= truth.mean() <= score["ci_high"]
        kept += covers or any("the interval leaves them out" in note for note in found.notes)
    where = {"errors": kind, "labels": labels}
    yield Cell("a corrected score covers or says why not", where, kept / runs, at_least=0.93)


def best(kind: str, runs: int) -> Iterator[Cell]:
    """Twelve judges that are equally right: what is said of the first on other items."""
    shown, corrected = [], []
    for run in range(runs):
        rng = np.random.default_rng([run, len(kind)])
        gold, share = rng.integers(0, 2, 40), np.full(40, 0.7)
        if kind == "alike":
            share = np.where(rng.random(40) < 0.5, 0.95, 0.45)
        columns = {f"judge_{j}": gold ^ (rng.random(40) >= share) for j in range(12)}
        rows = [
            {"item_id": n, "label": str(AB[gold[n]])}
            | {name: str(AB[column[n]]) for name, column in columns.items()}
            for n in range(40)
        ]
        report = _report(rows, verdict=[*columns], human="label")
        shown.append(max(each.people[0].accuracy or 0.0 for each in report.assessments))
        _, _, said = str(report).partition("would match about ")
        corrected.append(float(said.partition("%")[0]) / 100 if said else shown[-1])
    bias = float(np.mean(corrected)) - 0.7
    more = {"of the first": float(np.mean(shown)) - 0.7}
    yield Cell("luck left in the first of 12", {"judges": kind}, bias, at_most=0.04, more=more)
