"""Estimates, updates, families, ranks and best judges: are they as right as they say?

Verdicts and labels are simulated, or resampled from logs beside the checkout: PandaLM's pairs of
answers and RAG-Eval's passages (by query) for estimates, flakyjudge's rewordings for updates and
families. `flakyjudge` labels are the generator on which nothing was chosen.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from labelled import LOGS, flakyjudge, rag_eval
from scipy.stats import norm

from conclusions.frame import Cell, simulate
from judgesense.statistics.intervals import wilson
from judgesense.statistics.prediction_powered import _figure, combined, influence
from judgesense.statistics.ranks import paired_above
from judgesense.statistics.selection import choose, largest
from judgesense.statistics.updates import FEWEST_RANDOM, excess_moves


def outputs(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, Any, Any]:
    """People's labels and verdicts on the outputs of two systems, shape (n, 2), and clusters."""
    better, cuts, noise, clusters = np.array([0.25, 0.0]), [0.0], 0.7, np.arange(n)
    quality = rng.normal(0, 0.8, (n, 1)) + rng.normal(0, 0.8, (n, 2))
    bias = np.array([0.3, 0.0])
    if kind == "ratings":
        cuts = [-1.5, -0.5, 0.5, 1.5]
    elif kind == "useless judge":
        noise = 6.0
    elif kind.startswith("skewed"):
        cuts = [{"90/10": -1.45, "95/5": -1.86}[kind.split()[1]]]
    elif kind.startswith("heavy"):
        quality = rng.standard_t(3, (n, 1)) + rng.standard_t(3, (n, 2))
    elif kind.startswith("clusters"):
        sizes = np.maximum(1, rng.lognormal(1.5, 1.0, n)).astype(int)
        clusters = np.repeat(np.arange(n), sizes)
        quality = 0.7 * rng.normal(0, 1, (n, 1)) + rng.normal(0, 0.6, (n, 2))
        bias = bias + rng.normal(0, 0.8, (n, 2))[clusters]
        quality = quality[clusters] + rng.normal(0, 0.6, (len(clusters), 2))
    quality = quality + better
    seen = quality + bias + rng.normal(0, noise, quality.shape)
    labels, said = (np.searchsorted(cuts, each).astype(float) for each in (quality, seen))
    return labels, said, clusters


@cache
def log(kind: str) -> tuple[Any, Any, Any]:
    """People's labels and verdicts of a log, shape (n, 1), and clusters."""
    if kind == "PandaLM":
        with (LOGS / "pandalm" / "verdicts.csv").open(encoding="utf-8") as source:
            rows = list(csv.DictReader(source))
        wins = {"1": 1.0, "2": 0.0, "TIE": 0.5}
        people = [name for name in rows[0] if name.startswith("annotator")]
        judge = next(name for name in rows[0] if name.startswith("gpt") and "reason" not in name)
        kept = [row for row in rows if row[judge] in wins]
        label = [float(np.median([wins[row[name]] for name in people])) for row in kept]
        said = [wins[row[judge]] for row in kept]
        return np.array(label)[:, None], np.array(said)[:, None], np.arange(len(kept))
    if kind == "RAG-Eval":
        found = rag_eval()
        judge = min(found, key=lambda name: -len(found[name][3]))
        _, queries, _, said, human = found[judge]
        return human[:, None], said[:, None], np.unique(queries, return_inverse=True)[1]
    said, human = flakyjudge()["gpt-4o" if "gpt-4o" in flakyjudge() else min(flakyjudge())]
    return human[:, None], said[:, None], np.arange(len(said))


def drawn(rng: np.random.Generator, kind: str) -> tuple[Any, Any, Any, float, float]:
    """A study's labels on all outputs, verdicts and clusters, the truth, and a label's step."""
    if kind in ("PandaLM", "RAG-Eval", "flakyjudge"):
        labels, said, clusters = log(kind)
        ids = np.unique(clusters)
        rows = [np.flatnonzero(clusters == each) for each in rng.choice(ids, len(ids))]
        codes = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        step = 1.0 if kind == "PandaLM" else (labels.max() - labels.min()) / 4
        at = np.concatenate(rows)
        return labels[at], said[at], codes, float(labels.mean()), step
    labels, said, clusters = outputs(rng, kind, 60 if kind.startswith("clusters") else 600)
    return labels, said, clusters, real(kind), 1.0


@cache
def real(kind: str) -> float:
    labels, _, _ = outputs(np.random.default_rng(0), kind, 100_000)
    return float((labels[:, 0] - labels[:, 1]).mean())


def peers() -> Any:
    """ppi_py imports numba, which would take coverage.py of benchmarks/ for the package."""
    here, sys.path[:] = list(sys.path), [p for p in sys.path if not p.endswith("benchmarks")]
    try:
        importlib.import_module("ppi_py")
        return sys.modules["ppi_py"], importlib.import_module("ppi_py.cross_ppi")
    finally:
        sys.path[:] = here


def theirs(rng: np.random.Generator, y: Any, f: Any, given: Any) -> tuple[float, float, float]:
    """Estimates of the labels alone, ppi_py and cross-PPI (a line on the verdicts, ten folds)."""
    ppi_py, cross = peers()
    rows, design = np.flatnonzero(given), np.column_stack([np.ones(len(f)), f])
    fold, n_rest = rng.permutation(len(rows)) % 10, int((~given).sum())
    own, others = np.zeros(len(rows)), np.zeros((n_rest, 10))
    for k in range(10):
        line = np.linalg.lstsq(design[rows[fold != k]], y[rows[fold != k]], rcond=None)[0]
        own[fold == k] = design[rows[fold == k]] @ line
        others[:, k] = design[~given] @ line
    g = f @ ([1, -1] if f.shape[1] == 2 else [1])
    powered = ppi_py.ppi_mean_pointestimate(y[rows], g[given], g[~given])
    crossed = cross.crossppi_mean_pointestimate(y[rows], own, others)
    return float(y[rows].mean()), float(np.squeeze(powered)), float(np.squeeze(crossed))


def estimates(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """Coverage and width of the estimate, beside those of n labelled clusters alone."""
    rng = np.random.default_rng([n, *kind.encode()])
    inside, widths, errors = [], [], []
    for _ in range(runs):
        labels, said, clusters, truth, step = drawn(rng, kind)
        given = np.isin(clusters, rng.permutation(np.unique(clusters))[:n])
        parts = []
        for column, sign in zip(range(labels.shape[1]), (1.0, -1.0), strict=False):
            told = np.where(given, labels[:, column], np.nan)
            part = influence(told, said[:, column], clusters=clusters, step=step)
            parts.append((sign, part, clusters))
        ours, (_, half) = combined(parts), _figure(parts, 0.95, 0.0)
        assert ours.ci_low is not None
        assert ours.ci_high is not None
        inside.append(ours.ci_low <= truth <= ours.ci_high)
        widths.append((ours.ci_high - ours.ci_low, 2 * half))
        y = labels @ ([1, -1] if labels.shape[1] == 2 else [1])
        errors.append([each - truth for each in (ours.estimate, *theirs(rng, y, said, given))])
    place = {"data": kind, "labelled": n}
    ratios = np.array(widths)
    yield Cell("estimate: coverage", place, float(np.mean(inside)), at_least=0.93)
    wider = float((ratios[:, 0] / ratios[:, 1]).max())
    yield Cell("estimate: widest against labels alone", place, wider, at_most=1.02)
    ours, plain, powered, crossed = (np.array(errors) ** 2).mean(axis=0)
    for name, peer in (("ppi_py", powered), ("cross-PPI", crossed)):
        # Two hundredths of labels are the simulation's own noise.
        saved = {"ours": 1 - ours / plain, "theirs": 1 - peer / plain}
        claim = f"estimate: labels saved beyond {name}"
        yield Cell(claim, place, float(saved["ours"] - saved["theirs"]), at_least=-0.02, more=saved)


@cache
def rewordings() -> Any:
    """flakyjudge's verdicts by item and rewording, a table for each judge without gaps."""
    import pyarrow.parquet as pq

    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in pq.read_table(LOGS / "flakyjudge" / "e3_scores.parquet").to_pylist():
        if "control" not in row["variant_type"] and row["score_direct"] is not None:
            by = found.setdefault(row["judge"], {}).setdefault(row["item_id"], {})
            by[row["variant_type"]] = row["score_direct"]
    most = {judge: max(map(len, items.values())) for judge, items in found.items()}
    return [
        np.array([[by[name] for name in sorted(by)] for by in items.values() if len(by) == n])
        for (judge, items), n in zip(found.items(), most.values(), strict=True)
    ]


@cache
def panel() -> Any:
    """The verdicts of RAG-Eval's nine judges on the passages that all of them judged."""
    by_judge = [dict(zip(found[0], found[3], strict=True)) for found in rag_eval().values()]
    common = sorted(set.intersection(*map(set, by_judge)))
    return [np.array([[by[item] for by in by_judge] for item in common])]


def judged(rng: np.random.Generator, kind: str, n: int, wordings: int) -> tuple[Any, Any]:
    """The verdicts of a judge and of its update, shape (n, wordings); the update rewords it."""
    if kind in ("flakyjudge", "RAG-Eval"):
        # The update is a paraphrase: the judge under as many other wordings, or judges of a panel.
        tables = rewordings() if kind == "flakyjudge" else panel()
        table = tables[rng.integers(len(tables))]
        asked = rng.permutation(table.shape[1])[: 2 * wordings]
        scores = table[rng.integers(len(table), size=n)][:, asked]
        return scores[:, :wordings], scores[:, wordings:]
    score = rng.normal(0, 1, (n, 1))
    shape = (2, wordings)
    taste = {
        "normal": lambda: rng.normal(0, 0.7, shape),
        "heavy tails": lambda: 0.4 * rng.standard_t(3, shape),
        "two kinds": lambda: np.where(rng.random(shape) < 0.2, 1.2, 0.0),
    }[kind]()
    noise = rng.normal(0, 0.3, (2, n, wordings))
    return score + noise[0] + taste[0] > 0, score + noise[1] + taste[1] > 0


def updates(kind: str, n: int, wordings: int, runs: int) -> Iterator[Cell]:
    """Claims about an update that rewords: about wordings like these, or about these alone."""
    rng = np.random.default_rng([n, wordings, *kind.encode()])
    one, two = np.triu_indices(wordings, 1)
    wrong, random = np.zeros(2), wordings >= FEWEST_RANDOM
    for _ in range(runs):
        # What is true of these wordings alone shows on many other items.
        old, new = judged(rng, kind, n + (0 if random else 20_000), wordings)
        rest_old, rest_new, old, new = old[n:], new[n:], old[:n], new[:n]
        truth = 0.0
        if not random:
            truth = (rest_old != rest_new).mean() - (rest_old[:, one] != rest_old[:, two]).mean()
        found = excess_moves(
            (old != new).ravel(),
            np.repeat(np.arange(n), wordings),
            (old[:, one] != old[:, two]).ravel(),
            np.repeat(np.arange(n), len(one)),
            wordings=np.tile(np.arange(wordings), n) if random else None,
            other_wordings=(np.tile(one, n), np.tile(two, n)) if random else None,
        )
        wrong += [found.low > truth, found.high < truth]
    about = "wordings like these" if random else "these wordings"
    for claim, count in zip(("more", "no more"), wrong, strict=True):
        place = {"wordings": kind, "items": n, "asked": wordings}
        yield Cell(
            f"update: {claim!r} wrong, about {about}", place, float(count / runs), at_most=0.05
        )


def hits(rng: np.random.Generator, kind: str, n: int) -> Any:
    """Which of five wordings are right, shape (5, n); the best ones are equal."""
    if kind == "flakyjudge":
        # Shuffled within items, no rewording is better than another.
        table = rewordings()[rng.integers(len(rewordings()))]
        table = table[rng.integers(len(table), size=n)] > 3.5
        return rng.permuted(table, axis=1)[:, :5].T.astype(float)
    difficulty = rng.normal(0.6, 1, n) if kind != "heavy tails" else 0.6 + rng.standard_t(2, n)
    seen = difficulty + rng.normal(0, 0.6, (5, n))
    if kind == "one worse":
        seen[0] -= 0.8
    return (seen > 0).astype(float)


def families(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """Reports of 5 judges and 4 tasks: is a wording among the best ever called worse?"""
    rng = np.random.default_rng([n, *kind.encode()])
    best, wrong = set(range(kind == "one worse", 5)), 0
    for _ in range(runs):
        cells = (choose(hits(rng, kind, n), family=20) for _ in range(20))
        wrong += any(best - set(each.best) for each in cells)
    yield Cell("20 cells: any false 'worse'", {"data": kind, "items": n}, wrong / runs, None, 0.06)


def board(n: int, gap: float, runs: int) -> Iterator[Cell]:
    """Five judges on the same items, alike or each ``gap`` less steady than the one before."""
    rng = np.random.default_rng([n, int(100 * gap)])
    told, false = 0.0, 0
    for _ in range(runs):
        item = rng.beta(3, 0.5, n)
        chances = np.clip(item - gap * np.arange(5)[:, None], 0, 1)
        same = rng.binomial(10, chances) / 10
        above = paired_above(same.mean(axis=1), (same - same.mean(axis=1, keepdims=True)) / n)
        false += bool(above.any()) if not gap else bool(np.tril(above).any())
        told += above[np.triu_indices(5, 1)].mean()
    place = {"items": n, "gap": gap}
    yield Cell("board: any false rank", place, false / runs, at_most=0.05)
    if gap:
        yield Cell("board: pairs told apart", place, float(told / runs))


def bests(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """The best of several judges by its share of right answers on n items, corrected or not."""
    rng = np.random.default_rng([n, *kind.encode()])
    inside, off = np.zeros(2), np.zeros(2)
    if kind == "RAG-Eval":
        people: dict[str, float] = {}
        for found in rag_eval().values():
            people.update(zip(found[0], found[4], strict=True))
        common = sorted(set.intersection(*(set(found[0]) for found in rag_eval().values())))
        log = (panel()[0] >= 2) == np.array([people[item] >= 2 for item in common])[:, None]
    for _ in range(runs):
        if kind == "RAG-Eval":
            right, truth = log[rng.integers(len(log), size=n)], log.mean(axis=0)
        else:
            truth = 0.75 - {"equal": 0.0, "apart": 0.02}[kind] * np.arange(5)
            drawn = 0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, 5))
            right = drawn < norm.ppf(truth)
        shares, places = right.mean(axis=0), range(right.shape[1])
        ends = np.array([wilson(shares[at], n, 1.96) for at in places]).T
        alike = np.cov(right.T.astype(float)) + 1e-9 * np.eye(len(shares))
        alike /= np.sqrt(np.outer(np.diag(alike), np.diag(alike)))
        best = largest(shares, *ends, alike)
        real, plain = truth[best.place], shares.max()
        plainly = ends[0, best.place] <= real <= ends[1, best.place]
        inside += [best.ci_low <= real <= best.ci_high, plainly]
        off += [best.estimate - real, plain - real]
    place = {"data": kind, "items": n}
    more = {"uncorrected": float(inside[1] / runs)}
    yield Cell("best judge: coverage", place, float(inside[0] / runs), at_least=0.93, more=more)
    more = {"uncorrected": float(off[1] / runs)}
    yield Cell("best judge: too high by", place, float(off[0] / runs), at_most=0.02, more=more)


def cell(name: str, *key: Any) -> Iterator[Cell]:
    """One place of the design."""
    sections = {"estimate": estimates, "update": updates, "family": families, "board": board}
    return (sections | {"best": bests})[name](*key)


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """All cells of the design."""
    keys: list[tuple[Any, ...]] = []
    for kind, n in (
        ("plain", 20),
        ("plain", 60),
        ("plain", 200),
        ("ratings", 40),
        ("heavy tails", 60),
        ("useless judge", 20),
        ("useless judge", 60),
        ("skewed 90/10", 20),
        ("skewed 90/10", 60),
        ("skewed 95/5", 20),
        ("skewed 95/5", 60),
        ("clusters", 10),
        ("clusters", 20),
        ("clusters", 40),
        ("PandaLM", 30),
        ("PandaLM", 100),
        ("RAG-Eval", 20),
        ("flakyjudge", 40),
    ):
        if LOGS.is_dir() or kind not in ("PandaLM", "RAG-Eval", "flakyjudge"):
            keys.append(("estimate", kind, n, runs))
    for kind in ("normal", "heavy tails", "two kinds"):
        keys += [("update", kind, n, w, runs) for n in (100, 400) for w in (2, 3, 4, 5, 8)]
    some, logs = max(50, runs // 2), LOGS.is_dir()
    if logs:
        keys += [("update", "flakyjudge", 150, w, runs) for w in (2, 3)]
        keys.append(("update", "RAG-Eval", 150, 4, runs))
    alike = ("equal", "heavy tails", "one worse", *(["flakyjudge"] if logs else []))
    keys += [("family", kind, 50, some) for kind in alike]
    keys += [("board", n, gap, runs) for n in (50, 200) for gap in (0.0, 0.05)]
    kinds = ("equal", "apart", *(["RAG-Eval"] if logs else []))
    keys += [("best", kind, n, runs) for kind in kinds for n in (50, 200)]
    yield from simulate(cell, keys, jobs)
