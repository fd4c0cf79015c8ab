"""Whole reports, more wordings, panels, ranks on a real log, the best kappa, and stand-ins.

``JUDGESENSE_LOGS`` names the folder with the runs ``flaky`` and ``llmbar``, whose items are drawn
with replacement and, where no wording may be better, whose wordings are shuffled within items.
"""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from conclusions.cards import LEAST, _real, _wide, base_of, pairs_of, parts_of, shifts, usual
from conclusions.frame import Cell, simulate
from judgesense.log.schema import SCHEMA
from judgesense.measure.assess import measure
from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.alternative_annotator import EPSILON, _closeness, alternative_annotator
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.crossed import two_way_interval
from judgesense.statistics.gold import gold_agreement, table_figures
from judgesense.statistics.ranks import paired_above
from judgesense.statistics.selection import largest

LOGS = os.environ.get("JUDGESENSE_LOGS")
JUDGES, TASKS = 5, 4
SCALES = {"two labels": (), "PandaLM": (), "scale": tuple("12345")}
RUN = {
    "tasks": {
        f"t{at}": {"labels": ["A", "B"], "ordinal": False, "comparative": at % 2 == 1}
        for at in range(TASKS)
    }
}


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """All cells of the design."""
    kinds = [
        ("verdicts", ("normal", 0.5)),
        ("verdicts", ("heavy", 0.7)),
        ("thresholds", ("two kinds", 1.0)),
    ]
    shares = (0.68, 0.74, 0.87, 0.9, 0.95)
    keys: list[tuple[Any, ...]] = [
        ("more", *kind, jss, n, runs) for kind in kinds for jss in shares for n in (50, 200)
    ]
    keys += [
        ("panel", *kind, n, design, runs)
        for kind in kinds
        for n in (50, 200)
        for design in ((2, 2), (2, 5), (3, 3), (3, 5))
    ]
    keys += [
        ("best", kind, n, max(20, runs // 2))
        for kind in ("equal", "apart", "flaky")
        for n in (50, 200)
        if LOGS or kind != "flaky"
    ]
    keys += [
        ("board", run, n, max(20, runs // 2))
        for run in ("flaky", "llmbar")
        for n in (50, 100, 400)
        if LOGS
    ]
    keys += [
        ("stand-in", kind, n, runs)
        for kind in ("two labels", "scale", "PandaLM")
        for n in (30, 60, 200)
        if LOGS or kind != "PandaLM"
    ]
    whole = max(5, runs // 5)
    keys += [
        ("report", kind, whole)
        for kind in ("equal", "one worse", "flaky")
        if LOGS or kind != "flaky"
    ]
    yield from simulate(cell, keys, jobs)


def cell(name: str, *key: Any) -> Iterator[Cell]:
    """One place of the design."""
    of = {
        "more": more_wordings,
        "panel": panel,
        "best": best_kappa,
        "board": board,
        "stand-in": stand_in,
        "report": report,
    }
    return of[name](*key)


def more_wordings(
    what: str, kind: tuple[str, float], jss: float, n: int, runs: int
) -> Iterator[Cell]:
    """How much another wording lowers the chance that `steady` says what is true, at most."""
    base = base_of(what, kind, jss)
    rng = np.random.default_rng([len(what), *kind[0].encode(), int(100 * jss), n])
    counts = (2, 3, 4, 5, 7, 10)
    right = np.zeros(len(counts))
    for _ in range(runs):
        said = usual(rng, what, base, n, shifts(rng, kind, counts[-1]))
        for at, wordings in enumerate(counts):
            ends = two_way_interval(*pairs_of(said[:, :wordings]), prior=WORDING_PRIOR)
            assert ends.low is not None
            assert ends.high is not None
            right[at] += ends.low > 0.8 if jss > 0.8 else ends.high < 0.8
    chance = right / runs
    lost = max(chance[one] - chance[two] for one, two in itertools.combinations(range(6), 2))
    place = {"wordings differ in": what, "as": f"{kind[0]} {kind[1]}", "JSS": jss, "items": n}
    more = {f"with {w}": float(c) for w, c in zip(counts, chance, strict=True)}
    yield Cell("more wordings: right answer lost", place, float(lost), at_most=0.03, more=more)


def panel(
    what: str, kind: tuple[str, float], n: int, design: tuple[int, int], runs: int
) -> Iterator[Cell]:
    """Coverage of JSS between panels that vote, the prior of a wording over the root of their size.

    An even panel that ties takes its first wording's verdict.
    """
    size, panels = design
    base = base_of(what, kind, 0.8)
    rng = np.random.default_rng([len(what), *kind[0].encode(), n, *design])

    def votes(n: int, panels: int) -> Any:
        said = usual(rng, what, base, n, shifts(rng, kind, size * panels))
        said = said.reshape(n, panels, size)
        share = said.mean(axis=2)
        return np.where(share == 0.5, said[:, :, 0], share > 0.5)

    many = []
    for _ in range(200):
        yes = votes(400, 30).mean(axis=1)
        many.append((((yes**2 + (1 - yes) ** 2) * 30 - 1) / 29).mean())
    truth, inside = float(np.mean(many)), 0
    prior = (WORDING_PRIOR[0] / np.sqrt(size), WORDING_PRIOR[1])
    for _ in range(runs):
        ends = two_way_interval(*pairs_of(votes(n, panels)), prior=prior)
        assert ends.low is not None
        assert ends.high is not None
        inside += ends.low <= truth <= ends.high
    place = {
        "wordings differ in": what,
        "as": f"{kind[0]} {kind[1]}",
        "JSS": round(truth, 2),
        "items": n,
        "panels": panels,
        "of": size,
    }
    yield Cell("JSS of panels: coverage", place, inside / runs, LEAST)


def _aligned(run: str) -> list[tuple[Any, Any, Any]]:
    """Verdicts, gold labels and items of each judge, on the rows that all judges decided."""
    frames = list(_wide(LOGS or "", run).values())
    index = frames[0].index
    for wide in frames[1:]:
        index = index.intersection(wide.index)
    return [parts_of(wide.loc[index]) for wide in frames]


def best_kappa(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """The judge with the highest kappa of several: its true kappa, corrected or not."""
    rng, names = np.random.default_rng([n, *kind.encode()]), ["A", "B"]
    inside, off = np.zeros(2), np.zeros(2)
    if kind == "flaky":
        tables = _aligned("flaky")
        log, labels = np.stack([said[:, 0] for said, _, _ in tables], axis=1), tables[0][1]
        names = sorted(set(labels) | set(log.ravel()))
        truth = np.array(
            [gold_agreement(each, labels, None, names).kappa for each in log.T], dtype=float
        )
    else:
        right = 0.8 - {"equal": 0.0, "apart": 0.02}[kind] * np.arange(5)
        # Two labels, 60 to 40, as often right under both.
        truth = np.array(
            [
                table_figures(
                    np.array([[0.6 * p, 0.6 * (1 - p), 0], [0.4 * (1 - p), 0.4 * p, 0]]), False
                )["kappa"]
                for p in right
            ]
        )
    for _ in range(runs):
        if kind == "flaky":
            rows = rng.integers(len(log), size=n)
            gold, said = labels[rows], log[rows]
        else:
            code = (rng.random(n) < 0.4).astype(int)
            drawn = 0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, 5))
            wrong = drawn >= norm.ppf(right)
            gold = np.array(["A", "B"], dtype=object)[code]
            said = np.array(["A", "B"], dtype=object)[code[:, None] ^ wrong]
        found = [gold_agreement(each, gold, np.arange(n), names) for each in said.T]
        if any(each.kappa_ci_low is None for each in found):
            continue
        kappa, low, high = (
            np.array([getattr(each, name) for each in found], dtype=float)
            for name in ("kappa", "kappa_ci_low", "kappa_ci_high")
        )
        hits = (said == gold[:, None]).astype(float)
        alike = np.corrcoef(hits.T + 1e-9 * rng.normal(size=hits.T.shape))
        best = largest(kappa, low, high, alike)
        real = truth[best.place]
        inside += [best.ci_low <= real <= best.ci_high, low[best.place] <= real <= high[best.place]]
        off += [best.estimate - real, kappa.max() - real]
    place = {"data": kind, "items": n}
    more = {"uncorrected": float(inside[1] / runs)}
    yield Cell("best kappa: coverage", place, float(inside[0] / runs), LEAST, more=more)
    more = {"uncorrected": float(off[1] / runs)}
    yield Cell("best kappa: too high by", place, float(off[0] / runs), at_most=0.03, more=more)


def board(run: str, n: int, runs: int) -> Iterator[Cell]:
    """Ranks of a log's judges on its items, drawn anew, beside a paired test of every two."""
    rng = np.random.default_rng([n, *run.encode()])
    tables = _aligned(run)
    agree = np.array([[np.mean(row[:, None] == row) for row in said] for said, _, _ in tables])
    items, sizes = tables[0][2], np.bincount(tables[0][2])
    same = np.array([np.bincount(items, each) / sizes for each in agree])
    size = same.shape[1]
    one, two = np.triu_indices(len(same), 1)
    told = tested = 0.0
    for _ in range(runs):
        drawn = same[:, rng.integers(size, size=n)]
        above = paired_above(drawn.mean(axis=1), (drawn - drawn.mean(axis=1, keepdims=True)) / n)
        told += (above | above.T)[one, two].mean()
        # A test of each two on the same numbers of agreeing pairs, as `compare` makes.
        hits = np.rint(20 * drawn).astype(int)
        rows = np.repeat(np.arange(n), 20)
        place = np.tile(np.arange(20), n)
        tests = [
            paired_test(place < hits[i][rows], place < hits[j][rows], rows, n_resamples=399)
            for i, j in zip(one, two, strict=True)
        ]
        tested += np.mean([p < 0.05 for p in holm([t.p_value for t in tests]) if p is not None])
    place = {"log": run, "items": n}
    more = {"ranks": told / runs, "paired tests": tested / runs}
    claim = "board, real logs: pairs told apart beyond paired tests"
    yield Cell(claim, place, float((told - tested) / runs), -0.02, more=more)


@cache
def _people() -> Any:
    """Three people's labels on PandaLM's pairs, shape (3, n)."""
    path = Path(__file__).parents[3] / "shared" / "logs" / "pandalm" / "verdicts.csv"
    with path.open(encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    names = [name for name in rows[0] if name.startswith("annotator")]
    return np.array([[row[name] for row in rows] for name in names[:3]], dtype=object)


def _labelled(rng: np.random.Generator, kind: str, n: int, worse: float) -> tuple[Any, Any]:
    """Verdicts and three people's labels; the judge is noise on a share of items."""
    if kind == "PandaLM":
        labels = _people()[:, rng.integers(_people().shape[1], size=n)]
        names = np.unique(_people())
    elif kind == "scale":
        names = np.array(list("12345"), dtype=object)
        quality = rng.normal(size=n) + 0.6 * rng.normal(size=(4, n))
        labels = names[np.digitize(quality, [-1.2, -0.4, 0.4, 1.2])]
    else:
        names = np.array(["A", "B"], dtype=object)
        truth = (rng.random(n) < 0.5).astype(int)
        labels = names[truth ^ (rng.random((4, n)) < 0.15)]
    # The judge answers as one more person, or as one of the three at random.
    judge = labels[3] if len(labels) > 3 else labels[rng.integers(3, size=n), np.arange(n)]
    judge = np.where(rng.random(n) < worse, rng.choice(names, n), judge)
    return judge, labels[:3]


@cache
def _worse(kind: str) -> float:
    """The share of noise at which two of the three people are better than the judge by epsilon."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle, gaps = (low + high) / 2, []
        judge, people = _labelled(np.random.default_rng(0), kind, 20_000, middle)
        for at in range(3):
            rest = np.delete(people, at, axis=0)
            mine, its = (_closeness(each, rest, SCALES[kind]) for each in (people[at], judge))
            gaps.append((mine > its).mean() - (its > mine).mean())
        low, high = (middle, high) if sorted(gaps)[1] < EPSILON else (low, middle)
    return high


def stand_in(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """The alternative annotator test: how often a judge wins that is worse by epsilon, or alike."""
    rng = np.random.default_rng([n, *kind.encode()])
    for claim, noise, bounds in (
        ("stand-in, worse by epsilon: wins", _worse(kind), {"at_most": 0.05}),
        ("stand-in, no worse: wins", 0.0, {}),
    ):
        won = 0
        for _ in range(runs):
            judge, people = _labelled(rng, kind, n, noise)
            found = alternative_annotator(judge.tolist(), people.tolist(), scale=SCALES[kind])
            won += found is not None and found.winning_rate >= 0.5
        place = {"data": kind, "items": n}
        yield Cell(claim, place, won / runs, **bounds, more={"noise": noise})


def report(kind: str, runs: int) -> Iterator[Cell]:
    """Reports of 5 judges and 4 tasks whose judges are good and whose best wordings are alike.

    A report makes a false claim if it takes one of those for an outlier or for worse than another,
    or says ``avoid``. Beside it: whether the interval of any gain of another wording excludes 0.
    """
    rng = np.random.default_rng([runs, *kind.encode()])
    best = {f"w{at}" for at in range(kind == "one worse", 5)}
    wrong = dict.fromkeys(("flagged", "worse", "avoid", "any", "gain"), 0)
    for _ in range(runs):
        judged = measure(_report_log(rng, kind), None, run=RUN).assessments
        said = {
            "flagged": any(
                row.flag != "fine" and row.template in best
                for entry in judged
                for row in entry.wordings
            ),
            "worse": any(best - set(entry.recommendation.best_set) for entry in judged),
            "avoid": kind != "flaky" and any(entry.card.trust == "avoid" for entry in judged),
        }
        gain = any(
            (row.gain_ci_low or 0.0) > 0
            for entry in judged
            for row in entry.remedies
            if row.remedy == "another wording"
        )
        for name, each in {**said, "any": any(said.values()), "gain": gain}.items():
            wrong[name] += each
    more = {name: count / runs for name, count in wrong.items()}
    place = {"data": kind, "items": 50}
    yield Cell("report of 20 cards: any false claim", place, wrong["any"] / runs, None, 0.06, more)


def _report_log(rng: np.random.Generator, kind: str) -> pa.Table:
    """Verdicts of 5 judges on 4 tasks, two of them in both orders, under five wordings."""
    parts: list[tuple[Any, ...]] = []
    n, words = 50, np.array(["B", "A"])
    logs = list(_real(LOGS or "", "flaky").values()) if kind == "flaky" else []
    for task, judge in itertools.product(range(TASKS), range(JUDGES)):
        orders = ("AB", "BA") if task % 2 else ("-",)
        if kind == "flaky":
            # Shuffled within items, no wording is better than another.
            said, labels, _ = logs[judge % len(logs)]
            rows = rng.integers(len(said), size=n)
            scores, gold = said[rows] == said[0, 0], labels[rows] == said[0, 0]
            scores = rng.permuted(scores, axis=1)[:, :5]
            told = [scores ^ (order == "BA") for order in orders]
        else:
            gold = rng.random(n) < 0.5
            choice = np.where(rng.random(n) < 0.85, gold, ~gold)
            hard = rng.random((n, 1)) < 0.25
            told = []
            for order in orders:
                shown = (choice ^ (order == "BA"))[:, None]
                depart = np.broadcast_to(np.where(hard, 0.14, 0.011), (n, 5)).copy()
                if kind == "one worse":
                    depart[:, 0] = np.maximum(depart[:, 0], 0.25)
                told.append(shown ^ (rng.random((n, 5)) < depart))
        for order, each in zip(orders, told, strict=True):
            item, wording = (at.ravel() for at in np.indices(each.shape))
            right = words[(gold ^ (order == "BA"))[item].astype(int)]
            parts.append(
                (task, judge, order, item, wording, words[each.ravel().astype(int)], right)
            )
    names = ("judge", "task", "item_id", "template_id", "order", "decision", "gold", "prompt_id")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for task, judge, order, item, wording, decision, right in parts:
        size = len(item)
        asked = zip(item, wording, strict=True)
        columns["judge"] += [f"j{judge}"] * size
        columns["task"] += [f"t{task}"] * size
        columns["order"] += [order] * size
        columns["item_id"] += [f"i{at}" for at in item]
        columns["template_id"] += [f"w{at}" for at in wording]
        columns["decision"] += decision.tolist()
        columns["gold"] += right.tolist()
        columns["prompt_id"] += [f"{task}-{at}-{w}-{order}" for at, w in asked]
    size = len(columns["judge"])
    columns |= {
        "raw_decision": columns["decision"],
        "cluster_id": columns["item_id"],
        "status": ["ok"] * size,
        "scoring": ["generate"] * size,
    }
    found = {f.name: pa.nulls(size, f.type) for f in SCHEMA}
    found |= {name: pa.array(values, pa.string()) for name, values in columns.items()}
    found["repeat"] = pa.array(np.zeros(size, np.int32))
    return pa.table(found, schema=SCHEMA)
