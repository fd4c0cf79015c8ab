"""What is said of wordings that form camps, contradict each other or are stricter than others.

Real logs stand beside simulated ones: some of the wordings and items of a log are drawn, and the
truth is each wording's accuracy on all of its items. The logs are looked for in ``../shared/logs``
(`docs/recipes.py` says where they come from) and in the folder that ``RELEVANCE_LOGS`` names, a
checkout of Narabzad/prompt-sensitivity-relevance-judgements; those that are absent are left out.
"""

from __future__ import annotations

import csv
import itertools
import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from conclusions.frame import Cell, simulate
from judgesense.measure.wordings import Wordings, _advised

LOGS = Path(__file__).parents[3] / "shared" / "logs"
RELEVANCE = os.environ.get("RELEVANCE_LOGS")
SIMULATED = ("camps 5+5", "camps 6+2", "camps 4+3+3", "near-constant 6+2", "near-constant 3+7")
INVERTED = ("inverted", "coin", "constant", "near-constant", "opposite rate")

Log = tuple[Any, Any, int]
"""Label codes (wordings, items), gold codes, and the number of labels; more than 2 are a scale."""


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Real logs and simulated camps with and without gold, then inverted wordings."""
    names = [*SIMULATED, *logs()]
    sizes = (100,) if quick else (50, 150, 500)
    keys = itertools.product(names, (5, 8, 15, 26), sizes, (True, False), (runs // 5,))
    yield from simulate(camp_cell, (k for k in keys if k[0] not in SIMULATED or k[1] == 8), jobs)
    bad = itertools.product(INVERTED, (5, 15), (0.5, 0.3, 0.15), (0.05, 0.15), (runs,))
    yield from simulate(inverted_cell, bad, jobs)


@cache
def logs() -> dict[str, Log]:
    """The real logs that are there, items judged under all wordings that a judge has."""
    tables: dict[str, dict[str, dict[Any, str]]] = defaultdict(lambda: defaultdict(dict))
    gold: dict[str, dict[Any, str]] = defaultdict(dict)

    def add(name: str, wording: str, item: Any, said: Any, label: Any) -> None:
        if said not in (None, "") and label not in (None, ""):
            tables[name][wording][item] = str(said)
            gold[name][item] = str(label)

    if (path := LOGS / "llmbar" / "judgments.csv").exists():
        for row in csv.DictReader(path.open()):
            if not row["prompt"].startswith("Rating"):
                item = row["dataset"], row["item"]
                add(
                    f"LLMBar {row['judge']}",
                    row["prompt"],
                    item,
                    row["winner_noswap"],
                    row["label"],
                )
    if (path := LOGS / "flakyjudge" / "e3_scores.parquet").exists():
        for row in pq.read_table(path).to_pylist():
            if row["score_direct"] is not None and row["human_label"] is not None:
                add(
                    f"flakyjudge {row['judge']}",
                    row["variant_type"],
                    row["item_id"],
                    int(row["score_direct"]),
                    round(row["human_label"]),
                )
    for path in sorted(LOGS.glob("rag_eval_9judges/*wide.csv")):
        # Nine judges in the place of wordings.
        for row in csv.DictReader(path.open()):
            for judge, said in itertools.islice(row.items(), 4, None):
                item = row["query_id"], row["doc_id"]
                add(f"RAG-Eval {path.stem}", judge, item, said, row["human"])
    if RELEVANCE:
        for year in ("dl20", "dl21"):
            text = (Path(RELEVANCE) / f"data/qrels/qrels.{year}-passage.txt").read_text()
            labels = {(q, d): int(r) for q, _, d, r in map(str.split, text.splitlines())}
            for path in Path(RELEVANCE).glob(f"Judgements/*/[bg]*/*_{year}_*.txt"):
                binary = path.parent.name == "binary"
                for q, _, d, said in map(str.split, path.read_text().splitlines()):
                    if (q, d) in labels and said in ("01" if binary else "0123"):
                        label = int(labels[q, d] >= 2) if binary else labels[q, d]
                        add(
                            f"{path.parent.parent.name} {path.parent.name} {year}",
                            path.stem.split("_")[-1],
                            (q, d),
                            said,
                            label,
                        )
    found = {}
    for name, table in sorted(tables.items()):
        most = max(map(len, table.values()))
        full = [answers for answers in table.values() if len(answers) > 0.8 * most]
        items = sorted(set.intersection(*map(set, full)), key=str)
        known = sorted({answer for answers in full for answer in answers.values()})
        known = sorted({*known, *(gold[name][item] for item in items)})
        code = {label: place for place, label in enumerate(known)}
        if len(full) >= 5 and len(items) >= 100:
            codes = np.array([[code[answers[item]] for item in items] for answers in full])
            found[name] = (codes, np.array([code[gold[name][item]] for item in items]), len(code))
    return found


def simulated(kind: str, rng: np.random.Generator, n: int) -> tuple[Log, Any]:
    """A graded log of camps, and each wording's true accuracy; one camp is right.

    A camp's view is gold, or another one that goes with it a little; its wordings depart from it
    on a tenth of the items. A near-constant camp gives one label on all but a twentieth.
    """
    what, sizes = kind.split()
    sizes = [int(size) for size in sizes.split("+")]
    gold = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    other = [0.1, 0.3, 0.4, 0.2]
    views = [np.where(rng.random(n) < 0.3, gold, rng.choice(4, n, p=other)) for _ in sizes[1:]]
    right = [0.461] * len(views)
    if what == "near-constant":
        views[0], right[0] = np.where(rng.random(n) < 0.95, 2, gold), 0.24
    truth = 0.9 * np.repeat([*right, 1.0], sizes) + 0.025
    view = np.repeat([*views, gold], sizes, axis=0)
    noise = rng.integers(0, 4, view.shape)
    return (np.where(rng.random(view.shape) < 0.1, noise, view), gold, 4), truth


def judged(codes: Any, gold: Any, n_labels: int, with_gold: bool) -> tuple[Wordings, str | None]:
    """The wordings of a log and the one that is named."""
    t, n = codes.shape
    table = Wordings(
        answers=SimpleNamespace(  # type: ignore[arg-type]
            inverted=frozenset(), task=SimpleNamespace(ordinal=n_labels > 2)
        ),
        templates=tuple(map(str, range(t))),
        labels=tuple(map(str, range(n_labels))),
        decisions=codes,
        gold=gold if with_gold else np.full(n, -1),
        clusters=np.arange(n),
        items=np.arange(n),
    )
    return table, _advised(table, list(table.best))[0]


def camp_cell(name: str, wordings: int, items: int, with_gold: bool, runs: int) -> Iterator[Cell]:
    """Draw wordings and items; how many are thrown out, is the best one, what does a name cost?"""
    rng = np.random.default_rng([len(name), wordings, items, with_gold])
    log = logs().get(name)
    if log is not None and wordings > len(log[0]):
        return
    many = best_out = named = 0
    regret = 0.0
    for _ in range(runs):
        if log is None:
            (codes, gold, n_labels), truth = simulated(name, rng, items)
        else:
            codes, gold, n_labels = log
            chosen = rng.choice(len(codes), wordings, replace=False)
            at = rng.choice(len(gold), items)
            truth = (codes[chosen] == gold).mean(axis=1)
            codes, gold = codes[chosen][:, at], gold[at]
        table, name_of = judged(codes, gold, n_labels, with_gold)
        flags = np.array([row.flag for row in table.figures])
        many += 3 * (flags == "outlier").sum() >= len(flags)
        best_out += (flags[truth >= truth.max() - 1e-9] != "fine").all()
        if name_of is not None:
            named += 1
            regret += truth.max() - truth[int(name_of)]
    place = {"log": name, "wordings": len(flags), "items": items, "gold": str(with_gold)}
    kind = "simulated" if log is None else "real"
    yield Cell("a third or more are outliers", place, many / runs, at_most=0.0)
    yield Cell(
        f"best wording thrown out ({kind} logs)", place, float(best_out) / runs, at_most=0.05
    )
    yield Cell(f"a wording named ({kind} logs)", place, named / runs)
    if named:
        yield Cell("regret of a named wording", place, float(regret) / named, at_most=0.01)


def inverted_cell(
    fault: str, wordings: int, base: float, departs: float, runs: int
) -> Iterator[Cell]:
    """100 items with a share ``base`` of YES; one wording is faulty."""
    rng = np.random.default_rng([len(fault), wordings, int(100 * base), int(100 * departs)])
    inverted = other = 0
    for _ in range(runs):
        gold = rng.random(100) < base
        verdict = np.where(rng.random(100) < 0.9, gold, ~gold)
        codes = np.where(rng.random((wordings, 100)) < departs, ~verdict, verdict)
        rate = {"coin": 0.5, "constant": 1.0, "near-constant": 0.95, "opposite rate": 1 - base}
        codes[0] = ~codes[0] if fault == "inverted" else rng.random(100) < rate[fault]
        table, _ = judged(codes.astype(int), gold.astype(int), 2, False)
        inverted += table.figures[0].flag == "inverted"
        other += any(row.flag == "inverted" for row in table.figures[1:])
    place = {"fault": fault, "wordings": wordings, "base rate": base, "departs": departs}
    if fault == "inverted":
        yield Cell("one inverted wording found (100 items)", place, inverted / runs, at_least=0.95)
    else:
        yield Cell("a bad wording called inverted", place, inverted / runs, at_most=0.05)
    yield Cell("a good wording called inverted", place, other / runs, at_most=0.05)
