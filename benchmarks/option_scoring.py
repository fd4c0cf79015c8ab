"""Option scoring on a CPU: our judge against lm-eval-harness with the same weights.

    python benchmarks/option_scoring.py [--prompts 300] [--dtypes float32,bfloat16] [--slices 3]
        [--alone]

Both score {YES, NO} after the same rendered prompts with the same weights, dtype and threads.
lm-eval's ``HFLM.loglikelihood`` takes the prompts in slices. Our judge takes all of them before the
first slice and after each. Each slice compares lm-eval's rate with ours in the two neighbouring
passes, so a slow machine affects both; the ratio is the median over slices. Times are CPU-seconds.
The limits are the time of the matrix products that the prompts' token trie needs, measured between
the passes: by ``torch.mm``, and with the reordered weights that our judge uses. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from common import factuality_requests, finish, machine

from local_judges.local.prepacked import PrepackedLinear
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.protocol import Request
from local_judges.runner import ask_all

SURE = 0.05
"""Decisions must be equal where lm-eval's margin is above this, in nats."""


def median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def trie_floor(prompts: list[list[int]]) -> int:
    """The nodes of the prompts' token trie: the fewest tokens that a model must read."""
    ordered = sorted(prompts)
    same = (
        next(
            (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(map(len, (a, b)))
        )
        for a, b in pairwise(ordered)
    )
    return sum(map(len, ordered)) - sum(same)


def products_time(model: torch.nn.Module, rows: int) -> float:
    """CPU-seconds for the matrix products of one pass over that many tokens, except lm_head's.

    Takes each linear layer as it is, so that a model with reordered weights has its own limit.
    """
    layers = [
        module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | PrepackedLinear) and name != "lm_head"
    ]
    inputs = {
        size: torch.randn(rows, size, dtype=layers[0].weight.dtype)
        for size in {layer.in_features for layer in layers}
    }
    with torch.inference_mode():
        layers[0](inputs[layers[0].in_features])
        products = (layer(inputs[layer.in_features]) for layer in layers)
        return timed(lambda: [None for _ in products])[0]


def limits_alone(dtype: str, requests: list[Request], source: str, rounds: int) -> Any:
    """Our judge against the time of its matrix products, without lm-eval."""
    judge = TransformersJudge("smollm2-135m", dtype=dtype, device="cpu")
    prompts = [judge.chat.render(request.text) for request in requests]
    floor = trie_floor(judge.tokenizer(prompts, add_special_tokens=False).input_ids)
    rows = min(floor, judge.batch_tokens)
    ask_all(judge, requests[:8], ["options"])
    times, limits = [], []
    for _ in range(rounds):
        times.append(timed(lambda: ask_all(judge, requests, ["options"]))[0])
        limits.append(products_time(judge.model, rows) * floor / rows)
    return {
        "name": f"option scoring, {dtype}, without a peer",
        "ours": round(len(requests) / median(times), 2),
        "unit": "prompts per CPU-second",
        "n": len(requests),
        "source": source,
        "share_of_limit": {"reordered weights": round(median(limits) / median(times), 2)},
        "threads": torch.get_num_threads(),
        "machine": machine("torch", "transformers"),
    }


def compare(dtype: str, requests: list[Request], source: str, slices: int, batch: int) -> Any:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoModelForCausalLM

    judge = TransformersJudge("smollm2-135m", dtype=dtype, device="cpu")
    # Its own copy: our judge replaces the linear layers of the model that it loads.
    stock = AutoModelForCausalLM.from_pretrained(judge.folder, dtype=getattr(torch, dtype))
    peer = HFLM(stock, tokenizer=judge.tokenizer, batch_size=batch, device="cpu")
    prompts = [judge.chat.render(request.text) for request in requests]
    floor = trie_floor(judge.tokenizer(prompts, add_special_tokens=False).input_ids)
    ask_all(judge, requests[:8], ["options"])

    def theirs(part: range) -> list[list[float]]:
        asked = [
            Instance("loglikelihood", {}, (prompts[n], option), m)
            for n in part
            for m, option in enumerate(requests[n].options)
        ]
        found = iter(peer.loglikelihood(asked, disable_tqdm=True))
        return [[next(found)[0] for _ in requests[n].options] for n in part]

    def ours() -> tuple[float, list[Any]]:
        return timed(lambda: ask_all(judge, requests, ["options"]))

    judge.counters.clear()
    seconds, answers = ours()
    read = judge.counters["prefilled_tokens"]
    our_times, their_times, ratios = [seconds], [], []
    limits: dict[str, list[float]] = {"torch.mm": [], "reordered weights": []}
    their_scores: dict[int, list[float]] = {}
    for at in range(slices):
        part = range(at, len(requests), slices)
        their_seconds, scores = timed(lambda part=part: theirs(part))
        their_scores.update(zip(part, scores, strict=True))
        rows = min(floor, judge.batch_tokens)
        for limit, model in zip(limits.values(), (stock, judge.model), strict=True):
            limit.append(products_time(model, rows) * floor / rows)
        our_times.append(ours()[0])
        our_rate = len(requests) / (sum(our_times[-2:]) / 2)
        ratios.append(our_rate / (len(part) / their_seconds))
        their_times.append(their_seconds)
    sure = other = 0
    for n, answer in enumerate(answers):
        mine, peers = answer.option_logprobs or (), their_scores[n]
        best = sorted(peers)
        if best[-1] - best[-2] > SURE:
            sure += 1
            other += mine.index(max(mine)) != peers.index(best[-1])
    return {
        "name": f"option scoring, {dtype}",
        "peer": f"lm-eval hf {dtype}",
        "ratio": round(median(ratios), 2),
        "ours": round(len(requests) / median(our_times), 2),
        "theirs": round(len(requests) / sum(their_times), 2),
        "unit": "prompts per CPU-second",
        "n": len(requests),
        "source": source,
        "ratios": [round(ratio, 2) for ratio in ratios],
        "share_of_limit": {
            name: round(
                median(
                    limit / (sum(pair) / 2)
                    for limit, pair in zip(times, pairwise(our_times), strict=True)
                ),
                2,
            )
            for name, times in limits.items()
        },
        "prefilled_tokens": read,
        "trie_floor": floor,
        "prefilled_over_floor": round(read / floor, 3),
        "decisions_compared": sure,
        "decisions_different": other,
        "threads": torch.get_num_threads(),
        "lm_eval_batch_size": batch,
        "machine": machine("torch", "transformers", "lm_eval"),
    }


def both_scorings(requests: list[Request], source: str, rounds: int) -> Any:
    """Compare greedy text and options in one pass with greedy text alone."""
    judge = TransformersJudge("smollm2-135m", dtype="float32", device="cpu")
    ask_all(judge, requests[:8], ["generate"])
    alone, both = [], []
    for _ in range(rounds):
        alone.append(timed(lambda: ask_all(judge, requests, ["generate"]))[0])
        both.append(timed(lambda: ask_all(judge, requests, ["generate", "options"]))[0])
    return {
        "name": "greedy and options together over greedy alone, float32",
        "time_ratio": round(median(b / a for a, b in zip(alone, both, strict=True)), 3),
        "ours": round(len(requests) / median(both), 2),
        "greedy_alone": round(len(requests) / median(alone), 2),
        "unit": "prompts per CPU-second",
        "n": len(requests),
        "source": source,
        "machine": machine("torch", "transformers"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--slices", type=int, default=3, help="slices that the peer judges")
    parser.add_argument("--batch-size", type=int, default=16, help="batch size of the peer")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--alone", action="store_true", help="only the limits, without lm-eval")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    requests, source = factuality_requests(asked.prompts)
    if asked.alone:
        finish([limits_alone(d, requests, source, asked.slices) for d in asked.dtypes.split(",")])
        return
    results = []
    for dtype in asked.dtypes.split(","):
        result = compare(dtype, requests, source, asked.slices, asked.batch_size)
        print(
            f"{dtype}: {result['ours']} prompts per CPU-second, lm-eval {result['theirs']}; ratio "
            f"{result['ratio']} (slices {result['ratios']}); prefilled tokens / trie floor "
            f"{result['prefilled_over_floor']}; share of the limit {result['share_of_limit']}; "
            f"different decisions: {result['decisions_different']} of "
            f"{result['decisions_compared']} with a margin above {SURE} nats",
            flush=True,
        )
        results.append(result)
    together = both_scorings(requests[: max(1, asked.prompts // 3)], source, 3)
    print(f"greedy + options / greedy alone: {together['time_ratio']} of the time")
    finish([*results, together])


if __name__ == "__main__":
    main()
