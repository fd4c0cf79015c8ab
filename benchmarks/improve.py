"""Does `improve` keep its promise? Simulations with the truth known, and real logs resampled.

    python benchmarks/improve.py [--runs 200] [--only promise,equal,regret,many,cascade]

Kinds of data: `plain` (wordings of other accuracy, on items of other difficulty), `biased` (a
choice between two by a judge that prefers the first option; both orders and each option alone can
be asked) and `llmbar` (GPT-4's and the other judges' text verdicts in LLMBar, resampled by item).
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np
from common import finish, machine

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.candidates import first_recipes
from judgesense.ask.promise import with_person
from judgesense.ask.search import MANY, SearchResult, halves, search
from judgesense.ask.wordings import WordingToTry
from judgesense.recipes.recipe import Recipe, RecipeVerdicts
from judgesense.tasks import Task, Template

SHARED = Path(os.environ.get("JUDGESENSE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
FRESH = 3000
"""New items on which a way's true accuracy is measured."""

CHOICE = Task("choice", ("A", "B"), options=MappingProxyType({"A": "one", "B": "two"}))
YES_NO = Task("question", ("YES", "NO"))


def table_of(
    task: Task, kinds: list[str], n: int, rng: np.random.Generator, votes: bool = False
) -> AnswersSoFar:
    """No answers yet under wordings of these kinds to n items and FRESH new ones."""
    maps = MappingProxyType({label: label for label in task.labels})
    wordings = [
        WordingToTry(Template(f"w{k}", task.name, f"wording {k}", "{instruction}", maps), kind)
        for k, kind in enumerate(kinds)
    ]
    judge = JudgeScoring(0, "judge", "generate" if votes else "options")
    gold = rng.integers(0, len(task.labels), n + FRESH)
    return AnswersSoFar.empty(task, [judge], wordings, gold, np.arange(n + FRESH))


def filled(answers: AnswersSoFar, order: int, values: Any) -> None:
    """Record log-probabilities of every wording in an order, shape (items, wordings, labels)."""
    for wording in range(values.shape[1]):
        answers.record((0, wording, order), np.arange(len(values)), values[:, wording])


def part_of(whole: AnswersSoFar, items: Any) -> tuple[AnswersSoFar, Callable[[Any], None]]:
    """No answers yet to some items, and what asks for them: it copies those of a full table."""
    part = AnswersSoFar.empty(
        whole.task, whole.judges, whole.wordings, whole.gold[items], whole.clusters[items]
    )

    def ask(grid: Any) -> None:
        for (judge, wording, order), rows in grid.items():
            values = whole.arrays[judge].logprobs[items[rows], wording, order]
            part.record((judge, wording, order), rows, values)

    return part, ask


def logprobs(odds: Any) -> Any:
    """Log-odds of the first of two labels as their log-probabilities."""
    return np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)


def plain(n: int, k: int, rng: np.random.Generator, equal: bool = False) -> AnswersSoFar:
    """k wordings of a question; their signal differs unless `equal`."""
    table = table_of(YES_NO, ["given"] * k, n, rng)
    signal = np.full(k, 0.8) if equal else rng.normal(0.7, 0.35, k)
    prior = np.zeros(k) if equal else rng.normal(0, 0.5, k)
    sign = np.where(table.gold == 0, 1.0, -1.0)[:, None]
    item = rng.normal(0, 0.6, (len(sign), 1))
    odds = sign * signal + item + prior + rng.normal(0, 0.6, (len(sign), k))
    filled(table, 0, logprobs(odds))
    return table


def biased(n: int, k: int, rng: np.random.Generator, equal: bool = False) -> AnswersSoFar:
    """A choice between two by a judge with a prior for the first option, k wordings in all."""
    alone = max(1, k // 5)
    table = table_of(CHOICE, ["given"] * (k - alone) + ["alone"] * alone, n, rng)
    signal = np.full(k, 0.8) if equal else rng.normal(0.7, 0.3, k)
    prior = np.zeros(k) if equal else rng.normal(1.2, 0.5, k)
    sign = np.where(table.gold == 0, 1.0, -1.0)[:, None]
    item, noise = rng.normal(0, 0.6, (len(sign), 1)), 0.0 if equal else 0.6
    for order, turn in enumerate((1.0, -1.0)):
        odds = turn * (sign * signal + item) + prior + rng.normal(0, noise, (len(sign), k))
        filled(table, order, logprobs(odds))
    return table


def llmbar_population(judge: str) -> tuple[np.ndarray, np.ndarray]:
    """Verdicts of a judge under each prompt in both orders, shape (items, prompts, 2), codes in
    the item's own order (-1: none), and gold."""
    cells: dict[tuple[str, str], dict[str, tuple[int, int, int]]] = {}
    with (SHARED / "logs/llmbar/judgments.csv").open() as file:
        for row in csv.DictReader(file):
            if row["judge"] == judge:
                one, two = (
                    int(row[key]) - 1 if row[key] in ("1", "2") else -1
                    for key in ("winner_noswap", "winner_swap")
                )
                item = (row["dataset"].rpartition("_")[0] or row["dataset"], row["item"])
                cells.setdefault(item, {})[row["prompt"]] = (one, two, int(row["label"]) - 1)
    prompts = sorted({name for each in cells.values() for name in each})
    whole = {item: each for item, each in cells.items() if len(each) == len(prompts)}
    codes = np.array([[each[name][:2] for name in prompts] for each in whole.values()])
    gold = np.array([next(iter(each.values()))[2] for each in whole.values()])
    return codes, gold


def llmbar(
    n: int, population: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, equal: bool = False
) -> AnswersSoFar:
    """n items drawn from LLMBar; the fresh items are all of LLMBar, so truth is its accuracy."""
    codes, gold = population
    drawn = np.concatenate([rng.integers(0, len(gold), n), np.arange(len(gold))])
    k = codes.shape[1]
    table = table_of(CHOICE, ["given"] * k, n, rng, votes=True)
    picked = codes[drawn]
    if equal:
        # Each verdict comes from a prompt at random, so all prompts are equally good.
        swap = rng.integers(0, k, (len(drawn), k))
        picked = np.take_along_axis(picked, swap[:, :, None].repeat(2, axis=2), axis=1)
    # An item that is drawn twice is one cluster.
    table = AnswersSoFar.empty(table.task, table.judges, table.wordings, gold[drawn], drawn)
    for order in range(2):
        own = picked[:, :, order]
        shown = own if order == 0 else np.where(own >= 0, 1 - own, own)
        values = np.full((*shown.shape, 2), -np.inf)
        np.put_along_axis(values, np.maximum(shown, 0)[..., None], 0.0, axis=-1)
        values[shown < 0] = np.nan
        filled(table, order, values)
    return table


def searched(
    whole: AnswersSoFar, n: int, budget: float, seed: int, combine: bool = True
) -> SearchResult:
    """A search on the first n items of a full table."""
    part, ask = part_of(whole, np.arange(n))
    found = search(part, budget * n, ask, seed=seed, combine=combine)
    assert part.spent <= budget * n + 1e-6, "the budget was exceeded"
    return found


def truth(
    whole: AnswersSoFar, recipe: Recipe, fit: Any, n: int, found: SearchResult | None = None
) -> float:
    """The accuracy on new items, without those of the log that a search chose on."""
    new = np.arange(n, len(whole.gold))
    if found is not None:
        chosen_on = np.delete(whole.clusters[:n], found.held_out)
        new = new[~np.isin(whole.clusters[new], chosen_on)]
    return float(whole.right(recipe, new, fit).mean())


def exhaustive(whole: AnswersSoFar, n: int) -> tuple[Recipe, int]:
    """The best of all ways on all n items, and the prompts that it takes."""
    pool = first_recipes(whole)
    items = np.arange(n)
    scores = [whole.right(each, items, items).mean() for each in pool]
    order = sorted(range(len(pool)), key=lambda c: (-scores[c], len(whole.columns(pool[c]))))
    columns = whole.columns(*pool)
    return pool[order[0]], len(columns) * n


def promises(runs: int, equal: bool) -> list[dict[str, Any]]:
    """Coverage, bias and how often "better" is said, over kinds of data and sizes."""
    population = llmbar_population("ChatGPT")
    rows = []
    for kind in ("plain", "biased", "llmbar"):
        sizes = (
            [(40, 5), (40, 200), (100, 20), (400, 50)]
            if kind != "llmbar"
            else [(40, 0), (100, 0), (400, 0)]
        )
        for n, k in sizes:
            covered, bias, better, gap = [], [], [], []
            for run in range(runs):
                rng = np.random.default_rng([run, n, k, equal])
                whole = (
                    llmbar(n, population, rng, equal)
                    if kind == "llmbar"
                    else (plain if kind == "plain" else biased)(n, k, rng, equal)
                )
                ways = len(whole.wordings) * (2 if len(whole.task.orders) > 1 else 1)
                # Panels of equal ways are better than one.
                found = searched(whole, n, max(6.0, 0.3 * ways), run, combine=not equal)
                row = next(each for each in found.rows if each["written"])
                true = truth(whole, found.chosen, found.fit, n, found)
                covered.append(row["right_ci_low"] <= true <= row["right_ci_high"])
                bias.append(row["right"] - true)
                gap.append(true - truth(whole, first_recipes(whole)[0], found.fit, n, found))
                better.append(row["gain_ci_low"] is not None and row["gain_ci_low"] > 0)
            rows.append(
                {
                    "name": (
                        f"promise, {kind}{', equal' * equal}, {n} items, {k or 'real'} wordings"
                    ),
                    "peer": "nominal",
                    "ours": float(np.mean(covered)),
                    "theirs": 0.95,
                    "ratio": float(np.mean(covered) / 0.95),
                    "unit": "coverage",
                    "n": len(covered),
                    "bias": float(np.mean(bias)),
                    "better": float(np.mean(better)),
                    "gain": float(np.mean(gap)),
                }
            )
            print(
                {key: round(v, 3) if isinstance(v, float) else v for key, v in rows[-1].items()},
                file=sys.stderr,
            )
    return rows


def regrets(runs: int) -> list[dict[str, Any]]:
    """What is lost against asking everything, at 30% of its prompts."""
    population = llmbar_population("ChatGPT")
    rows = []
    for kind, n, k in (
        ("plain", 200, 50),
        ("plain", 100, 20),
        ("biased", 200, 25),
        ("llmbar", 200, 0),
    ):
        lost = []
        for run in range(runs):
            rng = np.random.default_rng([run, 7, n])
            whole = (
                llmbar(n, population, rng)
                if kind == "llmbar"
                else (plain if kind == "plain" else biased)(n, k, rng)
            )
            best, prompts = exhaustive(whole, n)
            found = searched(whole, n, 0.3 * prompts / n, run)
            lost.append(
                truth(whole, best, np.arange(n), n) - truth(whole, found.chosen, found.fit, n)
            )
        rows.append(
            {
                "name": f"lost against exhaustive at 30% of its prompts, {kind}, {n} items",
                "peer": "exhaustive search",
                "ours": float(np.mean(lost)),
                "theirs": 0.0,
                "ratio": None,
                "unit": "accuracy",
                "n": runs,
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows


def many_wordings(runs: int) -> list[dict[str, Any]]:
    """Accuracy of the chosen way where each of many wordings is first tried on a few items of its
    own, against the race without that round, at 20 prompts per item.

    LLMBar's 65 wordings are the prompts of six judges, as if they were one judge's.
    """
    judges = ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2", "Falcon")
    own = [llmbar_population(judge) for judge in judges]
    codes, gold = np.concatenate([each for each, _ in own], axis=1), own[0][1]
    rows = []
    for kind, n, k in [
        *(("biased", n, k) for n, k in ((40, 100), (100, 200), (200, 100))),
        *(("plain", n, k) for n, k in ((40, 200), (100, 100), (200, 200))),
        *(("llmbar", n, codes.shape[1]) for n in (40, 100, 200)),
    ]:
        right: list[list[float]] = []
        for run in range(runs):
            rng = np.random.default_rng([run, n, k, 78])
            whole = (
                llmbar(n, (codes[:, rng.permutation(k)], gold), rng)
                if kind == "llmbar"
                else (plain if kind == "plain" else biased)(n, k, rng)
            )
            right.append([])
            for many in (10**9, MANY):
                with patch("judgesense.ask.search.MANY", many):
                    found = searched(whole, n, 20.0, run)
                right[-1].append(truth(whole, found.chosen, found.fit, n))
        old, new = np.mean(right, axis=0)
        error = 1.96 * np.std(np.diff(right, axis=1)) / runs**0.5
        rows.append(
            {
                "name": f"many wordings, {kind}, {n} items, {k} wordings",
                "peer": "paired halving alone",
                "ours": float(new),
                "theirs": float(old),
                "ratio": float(new / old),
                "unit": "accuracy",
                "n": runs,
                "error": float(error),
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows


def cascades(runs: int, max_error: float = 0.05) -> list[dict[str, Any]]:
    """How often the error among decided items is above its bound, for cascades of two."""
    rows = []
    for name, first, second in (
        ("weak, strong", 1.0, 2.2),
        ("strong, strong", 2.0, 2.4),
        ("too weak to promise", 0.5, 0.9),
    ):
        broken, promised, answered = 0, 0, []
        for run in range(runs):
            rng = np.random.default_rng([run, 3])
            n = int(rng.choice([100, 200, 400]))
            gold = rng.integers(0, 2, n + FRESH)
            item = rng.normal(0, 0.5, len(gold))
            sign = np.where(gold == 0, 1.0, -1.0)
            told = []
            for signal in (first, second):
                odds = sign * signal + item + rng.normal(0, 0.8, len(gold))
                told.append(RecipeVerdicts((odds < 0).astype(int), logprobs(odds), np.abs(odds)))
            fit, held = halves(gold[:n], np.arange(n), run)
            seen, own = ([_take(each, part) for each in told] for part in (fit, held))
            level = (float(np.quantile(seen[0].margin, 0.3)),)
            person, margins = with_person(seen, own, gold[fit], gold[held], held, level, max_error)
            if person["threshold"] is None:
                continue
            promised += 1
            new = [_take(each, np.arange(n, len(gold))) for each in told]
            bad, done = _policy(new, (*margins, person["threshold"]), gold[n:])
            broken += bool(bad.sum() > max_error * done.sum())
            answered.append(done.mean())
        rows.append(
            {
                "name": f"bound of a cascade broken, {name}",
                "peer": "nominal",
                "ours": broken / runs,
                "theirs": 0.05,
                "ratio": broken / runs / 0.05,
                "unit": "share of runs",
                "n": runs,
                "promised": promised / runs,
                "decided": float(np.mean(answered)) if answered else None,
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows


def _take(decided: RecipeVerdicts, items: Any) -> RecipeVerdicts:
    return RecipeVerdicts(decided.codes[items], decided.logprobs[items], decided.margin[items])


def _policy(told: list[RecipeVerdicts], margins: tuple[float, ...], gold: Any) -> tuple[Any, Any]:
    """Where a cascade with a person decides wrongly, and where it decides."""
    done, bad = np.zeros(len(gold), bool), np.zeros(len(gold), bool)
    for each, margin in zip(told, margins, strict=True):
        fresh = ~done & (each.codes >= 0) & (each.margin >= margin) & (each.margin > 1e-9)
        done |= fresh
        bad |= fresh & (each.codes != gold)
    return bad, done


def main() -> None:
    """Run the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="promise,equal,regret,many,cascade")
    args = parser.parse_args()
    wanted, started, rows = args.only.split(","), time.monotonic(), []
    if "promise" in wanted:
        rows += promises(args.runs, equal=False)
    if "equal" in wanted:
        rows += promises(args.runs, equal=True)
    if "regret" in wanted:
        rows += regrets(args.runs)
    if "many" in wanted:
        rows += many_wordings(args.runs)
    if "cascade" in wanted:
        rows += cascades(5 * args.runs)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    finish([{**row, "machine": machine("numpy", "scipy")} for row in rows])


if __name__ == "__main__":
    main()
