"""How often whole trust cards are right: errors, power, and coverage of JSS and kappa.

Judges by rule answer items in both orders, under wordings that differ by a standard deviation on
the logit scale of "the usual verdict"; the population of wordings is normal, heavy-tailed (t, 3
degrees of freedom) or of two kinds, 80 to 20. Real logs (flakyjudge, LLMBar) are resampled: items
with replacement, wordings without; the figures of the whole log are the truth.

``JUDGESENSE_LOGS`` names the folder with their runs (``flaky``, ``llmbar``); without it, those
cells are left out.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conclusions.frame import Cell, simulate
from judgesense.log.schema import SCHEMA
from judgesense.log.view import view
from judgesense.measure.card import TrustCard
from judgesense.measure.checks import trust_card
from judgesense.measure.thresholds import DEFAULTS, WORDING_PRIOR
from judgesense.statistics.crossed import two_way_interval
from judgesense.statistics.gold import gold_agreement, table_figures

Floats = npt.NDArray[np.float64]
LEAST, MOST = 0.93, 0.05
FIGURES = ("accuracy", "balanced_accuracy", "kappa", "gwet_ac1")
RUN = {"tasks": {"t": {"labels": ["A", "B"], "ordinal": False, "comparative": True}}}


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Wordings, gold labels, whole cards, then real logs."""
    kinds = (("normal", 0.5), ("normal", 0.7), ("heavy", 0.7), ("two kinds", 1.0))
    items, wordings = ((50, 200), (3, 5)) if quick else ((50, 100, 200, 400), (2, 3, 4, 5, 10, 26))
    shares = ("verdicts", "thresholds")
    yield from simulate(
        wordings_cell, itertools.product(shares, kinds, (0.8, 0.92), items, wordings, (runs,)), jobs
    )
    yield from simulate(
        gold_cell,
        itertools.product(
            ("orders", "five wordings", "skew", "shared labels", "large clusters"),
            (25, 50, 100, 300),
            (runs,),
        ),
        jobs,
    )
    fewer = max(20, runs // 3)
    for case in (
        "good",
        "good, right at 0.2",
        "wordings differ",
        "follows 15%",
        "abstains",
        "kappa at the threshold",
    ):
        sizes = ((50, 5), (100, 5), (200, 5), (100, 3), (100, 10))
        yield from simulate(card_cell, ((case, *size, fewer) for size in sizes), jobs)
    if folder := os.environ.get("JUDGESENSE_LOGS"):
        names = ("flaky", "llmbar")
        grid = itertools.product((folder,), names, (50, 150), (2, 3, 5), (runs,))
        yield from simulate(real_cell, grid, jobs)
        grid = itertools.product((folder,), (50, 200), (runs,))
        yield from simulate(rag_cell, grid, jobs)
    grid = itertools.product((0.3, 0.6), (50, 200), (2, 3, 5, 10), (runs,))
    yield from simulate(scale_cell, grid, jobs)


def expit(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def shifts(rng: np.random.Generator, kind: tuple[str, float], wordings: int) -> Floats:
    name, sd = kind
    if name == "normal":
        return rng.normal(0, sd, wordings)
    if name == "heavy":
        return rng.standard_t(3, wordings) * sd / np.sqrt(3)
    return np.where(rng.random(wordings) < 0.2, -sd, 0.0)


def usual(rng: np.random.Generator, what: str, base: float, n: int, own: Floats) -> Any:
    """Whether each wording gives the usual verdict on each of n items, shape (n, wordings)."""
    if what == "verdicts":
        return rng.random((n, len(own))) < expit(base + rng.normal(size=(n, 1)) + own)
    noise = rng.normal(0, 0.3, (n, len(own)))
    return base * rng.normal(size=(n, 1)) + noise + 0.6 * own > 0


@cache
def base_of(what: str, kind: tuple[str, float], jss: float) -> float:
    """The parameter at which JSS over all items and wordings is ``jss``."""
    low, high = (0.0, 12.0) if what == "verdicts" else (0.05, 40.0)
    for _ in range(24):
        middle, rng, found = (low + high) / 2, np.random.default_rng(0), []
        for _ in range(150):
            yes = usual(rng, what, middle, 400, shifts(rng, kind, 40)).mean(axis=1)
            found.append(((yes**2 + (1 - yes) ** 2) * 40 - 1) / 39)
        low, high = (middle, high) if np.mean(found) < jss else (low, middle)
    return low


def pairs_of(said: Any) -> tuple[Any, ...]:
    """Agreement of all pairs of wordings, their clusters and wordings; items in rows."""
    n, wordings = said.shape
    one, two = np.triu_indices(wordings, 1)
    agree = (said[:, one] == said[:, two]).ravel()
    return agree, np.repeat(np.arange(n), len(one)), np.tile(one, n), np.tile(two, n)


def wordings_cell(
    what: str, kind: tuple[str, float], jss: float, n: int, wordings: int, runs: int
) -> Iterator[Cell]:
    """Coverage of JSS for wordings like these, and PASS where it is at the threshold."""
    base = base_of(what, kind, jss)
    rng = np.random.default_rng([len(what), int(10 * kind[1]), int(100 * jss), n, wordings])
    ends = np.array(
        [
            (found.low, found.high)
            for _ in range(runs)
            for said in [usual(rng, what, base, n, shifts(rng, kind, wordings))]
            for found in [two_way_interval(*pairs_of(said), prior=WORDING_PRIOR)]
        ]
    )
    place = {
        "wordings differ in": what,
        "as": f"{kind[0]} {kind[1]}",
        "JSS": jss,
        "items": n,
        "wordings": wordings,
    }
    name = "JSS, wordings of two kinds" if kind[0] == "two kinds" else "JSS, wordings that differ"
    inside = float(((ends[:, 0] <= jss) & (jss <= ends[:, 1])).mean())
    more = {"PASS": float((ends[:, 0] > 0.8).mean()), "width": float(np.ptp(ends, axis=1).mean())}
    if wordings > 2:
        yield Cell(f"{name}: coverage from 3 wordings on", place, inside, LEAST, more=more)
    else:
        yield Cell(f"{name}: coverage with 2", place, inside, LEAST, more=more)
    if jss == 0.8:
        yield Cell(f"{name}: PASS at 0.8", place, more["PASS"], at_most=MOST)


def gold_cell(kind: str, n: int, runs: int) -> Iterator[Cell]:
    """Coverage of the four figures of `right`, whose clusters hold several rows."""
    rng = np.random.default_rng([len(kind), n])
    table = np.zeros((2, 3))
    for _ in range(400):
        gold, said = _labelled(rng, kind, 1000)
        table += np.bincount((gold * 3 + said).ravel(), minlength=6).reshape(2, 3)
    exact = {**table_figures(table, False), "accuracy": np.trace(table) / table.sum()}
    inside: dict[str, list[bool]] = {name: [] for name in FIGURES}
    names = np.array(["A", "B"], dtype=object)
    for _ in range(runs):
        gold, said = _labelled(rng, kind, n)
        rows = np.repeat(np.arange(n), gold.shape[1])
        found = gold_agreement(names[said.ravel()], names[gold.ravel()], rows, ["A", "B"])
        for name in FIGURES:
            if (low := getattr(found, f"{name}_ci_low")) is not None:
                inside[name].append(low <= exact[name] <= getattr(found, f"{name}_ci_high"))
    for name, each in inside.items():
        place = {"clusters": n, "of": kind, "figure": name}
        yield Cell(f"right, clusters of rows: {name}", place, float(np.mean(each)), LEAST)


def _labelled(rng: np.random.Generator, kind: str, n: int) -> Any:
    """Gold labels and verdicts, shape (clusters, rows)."""
    ability = 1.5 + 1.5 * rng.normal(size=(n, 1))
    if kind in ("orders", "five wordings"):
        of_pair = (rng.random((n, 1)) < 0.5).astype(int)
        gold = np.repeat(np.hstack([of_pair, 1 - of_pair]), 5 if kind == "five wordings" else 1, 1)
        ability = ability + np.where(gold == 1, 0.7, -0.7)
    else:
        rows, skew = (12, 0.5) if kind == "large clusters" else (4, 0.9)
        gold = (rng.random((n, 1 if kind == "shared labels" else rows)) < skew).astype(int)
        gold = np.broadcast_to(gold, (n, rows))
    return gold, np.where(rng.random(gold.shape) < expit(ability), gold, 1 - gold)


def card_cell(case: str, n: int, wordings: int, runs: int) -> Iterator[Cell]:
    """What is concluded of a judge of choices between two, with a negation and labels."""
    rng = np.random.default_rng([len(case), n, wordings])
    limits = DEFAULTS.updated({"right": 0.2}) if case == "good, right at 0.2" else DEFAULTS
    cards = [
        trust_card(view(_log(rng, case, n, wordings), None, RUN).judged[0], thresholds=limits)
        for _ in range(runs)
    ]
    use, avoid = (
        float(np.mean([card.trust == trust for card in cards])) for trust in ("use", "avoid")
    )
    place = {"items": n, "wordings": wordings}
    more = {
        f"{name} {state}": _share(cards, name, state)
        for name, state in (
            ("steady", "pass"),
            ("right", "pass"),
            ("fair", "pass"),
            ("responsive", "pass"),
            ("responsive", "fail"),
        )
    }
    least = {"good": {50: 0.35, 100: 0.65, 200: 0.9}, "good, right at 0.2": {50: 0.92}}
    if case.startswith("good"):
        bound = least[case].get(n, 0.92) if wordings == 5 else None
        yield Cell(f"{case}: use", place, use, bound, more=more)
        yield Cell(f"{case}: avoid", place, avoid, at_most=0.02)
    elif case == "wordings differ":
        yield Cell("good, wordings differ (JSS 0.88): use", place, use, more=more)
        yield Cell("good, wordings differ (JSS 0.88): avoid", place, avoid, at_most=MOST)
    elif case == "follows 15%":
        yield Cell("follows 15% of negations: use", place, use, at_most=0.02, more=more)
        failed = _share(cards, "responsive", "fail")
        yield Cell("follows 15% of negations: responsive fails", place, failed, 0.9)
    elif case == "abstains":
        passed = _share(cards, "steady", "pass")
        shown = float(np.mean([card.checks["steady"].estimate or 0.0 for card in cards]))
        yield Cell(
            "hard items without a verdict: PASS",
            place,
            passed,
            at_most=MOST,
            more={"JSS shown": shown},
        )
    else:
        yield Cell("kappa at the threshold: use", place, use, at_most=MOST, more=more)


def _share(cards: list[TrustCard], name: str, state: str) -> float:
    return float(np.mean([card.checks[name].state == state for card in cards]))


def _log(rng: np.random.Generator, case: str, n: int, wordings: int) -> pa.Table:
    """A judge whose usual choice is right on 80% of items and turns with the order on 10%.

    That is kappa 0.6 (0.4 with 70%). Wordings depart from it on single prompts (JSS 0.92), or by
    their own shift as well (0.88).
    """
    right = {"kappa at the threshold": 0.73}.get(case, 0.842)
    gold = rng.random((n, 1)) < 0.5
    choice = np.where(rng.random((n, 1)) < right, gold, ~gold)
    # Taken as shown: true is the first option. The second order turns what is shown.
    shown = np.hstack([choice, ~choice])
    shown = shown | (rng.random((n, 1)) < 0.03)
    hard = rng.random((n, 1, 1)) < 0.25
    depart = np.where(hard, 0.14, 0.011)
    if case == "abstains":
        depart = np.where(hard, 0.5, 0.057)
    elif case == "wordings differ":
        logit = np.where(hard, -1.6, -3.5) + rng.normal(0, 0.5, wordings)
        depart = expit(logit)
    said = shown[:, :, None] ^ (rng.random((n, 2, wordings)) < depart)
    silent = np.zeros(said.shape, bool)
    if case == "abstains":
        silent = (rng.random(said.shape) < 0.35) & hard
    follows = 0.15 if case == "follows 15%" else 0.9
    contrast = said[:, :, 0] ^ (rng.random((n, 2)) < follows)
    words = np.array(["B", "A"])
    answers = np.where(silent, "UNCLEAR", words[said.astype(int)])
    gold_shown = words[np.hstack([gold, ~gold]).astype(int)]
    item, order, wording = (each.ravel() for each in np.indices(said.shape))
    decision = np.concatenate([answers.ravel(), words[contrast.astype(int)].ravel()])
    item = np.concatenate([item, np.repeat(np.arange(n), 2)])
    order = np.concatenate([order, np.tile([0, 1], n)])
    size, extra = answers.size, 2 * n
    columns = {
        "judge": ["j"] * (size + extra),
        "task": ["t"] * (size + extra),
        "scoring": ["generate"] * (size + extra),
        "item_id": [f"i{each}" for each in item],
        "template_id": [*(f"w{each}" for each in wording), *["w0"] * extra],
        "order": np.array(["AB", "BA"])[order].tolist(),
        "status": np.where(decision == "UNCLEAR", "unclear", "ok").tolist(),
        "raw_decision": decision.tolist(),
        "decision": decision.tolist(),
        "gold": [*gold_shown[item[:size], order[:size]].tolist(), *[None] * extra],
        "variant": [*[None] * size, *["negated"] * extra],
        "variant_class": [*[None] * size, *["contrast"] * extra],
    }
    found = {f.name: pa.nulls(size + extra, f.type) for f in SCHEMA}
    found |= {name: pa.array(values, pa.string()) for name, values in columns.items()}
    found["repeat"] = pa.array(np.zeros(size + extra, np.int32))
    return pa.table(found, schema=SCHEMA)


def real_cell(folder: str, run: str, n: int, wordings: int, runs: int) -> Iterator[Cell]:
    """Coverage of JSS on resampled real logs, and of kappa on all their prompts."""
    rng = np.random.default_rng([len(run), n, wordings])
    share = max(20, runs // 4)
    for judge, (said, gold, items) in _real(folder, run).items():
        size, many = len(np.unique(items)), said.shape[1]
        if size < 100:
            continue
        jss = float(pairs_of(said)[0].mean())
        labels = [str(each) for each in np.unique(np.concatenate([said.ravel(), gold]))]
        whole = gold_agreement(said.ravel(), np.repeat(gold, many), None, labels)
        assert whole.kappa is not None
        rows_of = [np.flatnonzero(items == code) for code in range(size)]
        inside = right = 0
        for _ in range(share):
            drawn = [rows_of[code] for code in rng.integers(0, size, n)]
            rows = np.concatenate(drawn)
            cluster = np.repeat(np.arange(n), [len(each) for each in drawn])
            chosen = said[rows][:, rng.choice(many, wordings, replace=False)]
            agree, row, *sides = pairs_of(chosen)
            ends = two_way_interval(agree, cluster[row], *sides, prior=WORDING_PRIOR)
            assert ends.low is not None
            assert ends.high is not None
            inside += ends.low <= jss <= ends.high
            found = gold_agreement(
                said[rows].ravel(), np.repeat(gold[rows], many), np.repeat(cluster, many), labels
            )
            if found.kappa_ci_low is not None and found.kappa_ci_high is not None:
                right += found.kappa_ci_low <= whole.kappa <= found.kappa_ci_high
        place = {"log": run, "judge": judge, "items": n, "wordings": wordings}
        yield Cell("JSS, real logs resampled: coverage", place, inside / share, LEAST)
        yield Cell("kappa, real logs resampled: coverage", place, right / share, LEAST)


@cache
def _wide(folder: str, run: str) -> dict[str, Any]:
    """For each judge of a run, a frame of its verdicts by item, order and gold, and wording."""
    import pyarrow.dataset as ds

    table = ds.dataset(Path(folder, run, "decisions"), format="parquet").to_table().to_pandas()
    table = table[(table["status"] == "ok") & table["gold"].notna() & (table["repeat"] == 0)]
    if "variant_class" in table:
        table = table[~table["variant_class"].isin(["contrast", "intervention"])]
    found = {}
    for judge, rows in table.groupby("judge"):
        wide = rows.pivot_table(
            index=["item_id", "order", "gold"],
            columns="template_id",
            values="decision",
            aggfunc="first",
        )
        wide = wide[wide.notna().sum(axis=1) >= 6]
        wide = wide[[name for name in wide if wide[name].notna().mean() > 0.9]].dropna()
        if len(wide):
            found[str(judge)] = wide
    return found


def _real(folder: str, run: str) -> dict[str, tuple[Any, Any, Any]]:
    """Verdicts (rows x wordings), gold labels and items of each judge of a run."""
    return {judge: parts_of(wide) for judge, wide in _wide(folder, run).items()}


def parts_of(wide: Any) -> tuple[Any, Any, Any]:
    """A frame's verdicts, gold labels and items as codes."""
    index = wide.index
    items = np.unique(index.get_level_values("item_id").astype(str), return_inverse=True)[1]
    return wide.to_numpy(object), index.get_level_values("gold").to_numpy(object), items


def scale_cell(sd: float, n: int, wordings: int, runs: int) -> Iterator[Cell]:
    """Held out of the design: scores 1 to 5 under wordings that are strict or lenient, and noisy.

    An item's quality is normal; a wording shifts it, stretches it and adds noise of its own size.
    """
    rng = np.random.default_rng([int(10 * sd), n, wordings])

    def scores(n: int, wordings: int) -> Any:
        shift, noise = rng.normal(0, sd, wordings), 0.15 * np.exp(rng.normal(0, sd, wordings))
        quality = 1.6 * rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, wordings))
        return np.digitize(
            quality * np.exp(rng.normal(0, sd / 4, wordings)) + shift / 4, [-1.5, -0.5, 0.5, 1.5]
        )

    truth = float(np.mean([pairs_of(scores(200, 30))[0].mean() for _ in range(300)]))
    inside = 0
    for _ in range(runs):
        ends = two_way_interval(*pairs_of(scores(n, wordings)), prior=WORDING_PRIOR)
        assert ends.low is not None
        assert ends.high is not None
        inside += ends.low <= truth <= ends.high
    place = {"sd": sd, "JSS": round(truth, 2), "items": n, "wordings": wordings}
    yield Cell("held out: JSS of scores: coverage", place, inside / runs, LEAST)


def rag_cell(folder: str, n: int, runs: int) -> Iterator[Cell]:
    """Held out of the design: RAG-Eval's nine judges, queries drawn with all their passages."""
    import pyarrow.dataset as ds

    rng = np.random.default_rng(n)
    path = Path(folder, "rag-trec-rag-2024", "decisions")
    table = ds.dataset(path, format="parquet").to_table().to_pandas()
    table = table[(table["status"] == "ok") & table["gold"].notna()]
    for judge, rows in table.groupby("judge"):
        said, gold = (rows[name].to_numpy(object) for name in ("decision", "gold"))
        clusters = np.unique(rows["cluster_id"].astype(str), return_inverse=True)[1]
        of = [np.flatnonzero(clusters == code) for code in range(clusters.max() + 1)]
        labels = sorted({*said, *gold})
        whole = gold_agreement(said, gold, clusters, labels, ordinal=True)
        hits = defined = 0
        for _ in range(max(20, runs // 3)):
            drawn = [of[code] for code in rng.integers(0, len(of), n)]
            at = np.concatenate(drawn)
            own = np.repeat(np.arange(n), [len(each) for each in drawn])
            found = gold_agreement(said[at], gold[at], own, labels, ordinal=True)
            if found.kappa_ci_low is not None and found.kappa_ci_high is not None:
                assert whole.kappa is not None
                defined += 1
                hits += found.kappa_ci_low <= whole.kappa <= found.kappa_ci_high
        place = {"judge": judge, "queries": n, "of": len(of)}
        yield Cell("held out: weighted kappa, RAG-Eval", place, hits / max(1, defined), LEAST)
