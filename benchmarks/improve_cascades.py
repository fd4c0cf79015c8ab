"""Cascades of real judges, replayed on their logs: what a verdict costs within a bound of errors.

    python benchmarks/improve_cascades.py [--splits 100] [--max-error 0.05 ...]

RAG-Eval's nine judges (relevant or not), LLMBar's six (which answer is better) and flakyjudge's six
(is the answer good), each with a person behind it. Half of the items of a split choose and promise,
as `improve` does; the others are new. Every single judge, with a person where it is unsure, stands
against the cascade that was chosen. A person costs a dollar; judges cost what `PRICES` assumes, in
US dollars per thousand verdicts of 1,000 input tokens.
"""

from __future__ import annotations

import argparse
import sys
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from common import finish, machine
from improve import SHARED, _policy, _take, llmbar_population, logprobs

from judgesense.ask.promise import with_person
from judgesense.ask.search import halves
from judgesense.recipes.rules import Decided

PERSON = 1.0
PRICES = {
    "Claude Opus 4.7 (OpenRouter)": 5.0,
    "Claude Sonnet 4.6 (OpenRouter)": 3.0,
    "GPT-5.5 (reasoning=low)": 2.5,
    "GPT-4o (chat)": 2.5,
    "Gemini 3.1 Pro Preview (OpenRouter)": 2.0,
    "Gemini 2.5 Pro (OpenRouter)": 1.25,
    "DeepSeek V4 Pro (OpenRouter)": 0.5,
    "Qwen 3.6 Plus (OpenRouter)": 0.4,
    "Gemma 4 26B (OpenRouter)": 0.1,
    "GPT-4": 30.0,
    "ChatGPT": 2.0,
    "ChatGPT-0301": 2.0,
    "PaLM2": 1.0,
    "LLaMA2": 0.9,
    "Falcon": 0.9,
    "gpt-4o": 2.5,
    "gpt-4o-mini": 0.15,
    "claude-sonnet": 3.0,
    "claude-haiku": 0.8,
    "gemini-flash": 0.1,
    "llama-8b": 0.05,
}

Table = tuple[dict[str, Decided], np.ndarray]


def of_scores(scores: Any, middle: float) -> Decided:
    """Verdicts of scores: above the middle or not, the surer the farther from it."""
    away = np.asarray(scores, float) - middle
    codes = np.where(np.isnan(away), -1, away > 0)
    return Decided(codes, logprobs(np.nan_to_num(-away)), np.abs(np.nan_to_num(away)))


def tables() -> dict[str, tuple[Table, int]]:
    """Verdicts of each judge and gold, by log, with the prompts behind a verdict."""
    found: dict[str, tuple[Table, int]] = {}
    for name in ("trec-covid", "trec-rag-2024"):
        frame = pd.read_csv(SHARED / f"logs/rag_eval_9judges/{name}_wide.csv")
        judges = frame.columns[4:]
        told = {judge: of_scores(frame[judge], 1.5) for judge in judges}
        found[f"RAG-Eval {name}"] = (told, (frame["human"] >= 2).to_numpy().astype(int)), 1
    frame = pd.read_parquet(SHARED / "logs/flakyjudge/e1_scores.parquet")
    frame = frame[(frame["prompt_mode"] == "parity") & (frame["human_label"] >= 1)]
    frame["score"] = frame["score_logprob"].fillna(frame["score_direct"])
    wide = frame.pivot_table(index=["dataset", "item_id"], columns="judge", values="score")
    people = frame.groupby(["dataset", "item_id"])["human_label"].first().loc[wide.index]
    told = {judge: of_scores(wide[judge], 3.5) for judge in wide.columns}
    found["flakyjudge e1"] = (told, (people >= 4).to_numpy().astype(int)), 1
    told = {}
    for judge in ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2", "Falcon"):
        codes, gold = llmbar_population(judge)
        votes = codes[:, :3].reshape(len(gold), -1)  # Three prompts in both orders.
        for_two = (votes == 1).sum(axis=1) - (votes == 0).sum(axis=1)
        told[judge] = Decided(
            np.where(for_two == 0, -1, for_two > 0),
            logprobs(-for_two * 1.0),
            np.abs(for_two) / votes.shape[1],
        )
    sizes = {len(each.codes) for each in told.values()}
    whole = {name: each for name, each in told.items() if len(each.codes) == max(sizes)}
    found["LLMBar"] = (whole, gold), 6
    return found


def cost_of(told: list[Decided], margins: tuple[float, ...], prices: list[float]) -> Any:
    """US dollars per item: the judges asked, and a person for what they leave."""
    left, cost = np.ones(len(told[0].codes), bool), np.zeros(len(told[0].codes))
    for each, margin, price in zip(told, margins, prices, strict=True):
        cost += left * price / 1000
        left &= ~((each.codes >= 0) & (each.margin >= margin) & (each.margin > 1e-9))
    return cost + left * PERSON


def compare(
    name: str, table: Table, prompts: int, splits: int, max_error: float
) -> list[dict[str, Any]]:
    """Cost per item, error and promises kept: the best single judge against a cascade."""
    judges, gold = table
    price = {judge: PRICES[judge] * prompts for judge in judges}
    chains = [(judge,) for judge in judges]
    chains += [pair for pair in permutations(judges, 2) if price[pair[0]] < price[pair[1]]]
    sums: dict[str, list[tuple[float, ...]]] = {"single": [], "cascade": []}
    for split in range(splits):
        rng = np.random.default_rng(split)
        order = rng.permutation(len(gold))
        dev, new = order[: len(gold) // 2], order[len(gold) // 2 :]
        one, two = halves(gold[dev], np.arange(len(dev)), split)
        fit, held = dev[one], dev[two]
        best: dict[str, tuple[float, tuple[str, ...], tuple[float, ...]]] = {}
        for chain in chains:
            told = [judges[each] for each in chain]
            seen = [_take(each, fit) for each in told]
            for share in (0.0,) if len(chain) == 1 else (0.2, 0.4, 0.6):
                kept = tuple(float(np.quantile(each.margin, share)) for each in seen[:-1])
                # Chosen on the items of the search, as if its promise were made there.
                person, margins = with_person(
                    seen, seen, gold[fit], gold[fit], np.arange(len(fit)), kept, max_error
                )
                ends = (
                    (*margins, person["threshold"])
                    if person["threshold"] is not None
                    else (np.inf,) * len(chain)
                )
                cost = float(cost_of(seen, ends, [price[each] for each in chain]).mean())
                kind = "single" if len(chain) == 1 else "cascade"
                if kind not in best or cost < best[kind][0]:
                    best[kind] = (cost, chain, kept)
        for kind, (_, chain, kept) in best.items():
            told = [judges[each] for each in chain]
            person, margins = with_person(
                [_take(each, fit) for each in told],
                [_take(each, held) for each in told],
                gold[fit],
                gold[held],
                np.arange(len(held)),
                kept,
                max_error,
            )
            if person["threshold"] is None:
                sums[kind].append((PERSON, 0.0, 0.0, 0.0, 0.0))
                continue
            ends = (*margins, person["threshold"])
            fresh = [_take(each, new) for each in told]
            bad, done = _policy(fresh, ends, gold[new])
            # The new items are a sample too: broken if they could not come from the bound.
            from scipy.stats import binom

            error = bad.sum() / max(done.sum(), 1)
            broken = bad.sum() > binom.ppf(0.95, done.sum(), max_error)
            cost = cost_of(fresh, ends, [price[each] for each in chain]).mean()
            sums[kind].append((cost, done.mean(), error, float(broken), 1.0))
    rows = []
    for kind, values in sums.items():
        cost, decided, error, broken, promised = np.array(values).T
        made = promised > 0
        rows.append(
            {
                "name": f"{name}, at most {max_error:.0%} wrong: {kind}, then a person",
                "unit": "USD per item",
                "n": splits,
                "ours": float(cost.mean()),
                "peer": "a person alone",
                "theirs": PERSON,
                "ratio": float(cost.mean() / PERSON),
                "decided": float(decided.mean()),
                "promised": float(promised.mean()),
                "error": float(error[made].mean()) if made.any() else None,
                "broken": float(broken.mean()),
                "items": len(gold),
            }
        )
        print(
            {k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()},
            file=sys.stderr,
        )
    return rows


def main() -> None:
    """Replay every log."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--max-error", type=float, nargs="+", default=[0.05, 0.15, 0.25])
    args = parser.parse_args()
    rows = [
        row
        for max_error in args.max_error
        for name, (table, prompts) in tables().items()
        for row in compare(name, table, prompts, args.splits, max_error)
    ]
    finish([{**row, "machine": machine("numpy")} for row in rows])


if __name__ == "__main__":
    main()
