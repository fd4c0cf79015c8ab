"""An 8B-sized model on a GPU: the runner against bare vLLM and lm-eval's vLLM backend.

    python benchmarks/gpu.py [--prompts 4000] [--rounds 3] [--engine vllm|transformers]
    python benchmarks/gpu.py --smoke        a tiny model on the CPU, to test the code

The model has the shape of Llama-3.1-8B, random weights in bfloat16 and SmolLM2's tokenizer, so
nothing is downloaded. Bare vLLM is ``LLM.generate`` on the same token ids in the same order, 20
greedy tokens each, on the judge's own engine. The two take turns, the prefix cache is emptied
before every pass, and the ratio is the median over the rounds. lm-eval scores {YES, NO} after the
same prompts with its own engine. Without vLLM, only the transformers judge is measured.

MFU is the model's floating-point operations on the tokens that it reads and writes, divided by the
GPU's dense bfloat16 rate. Tokens saved by the prefix cache or the token trie are not counted. The
rate is the data sheet's, if PEAK lists the GPU. The output also compares with the measured rate of
one large matrix product. The last line is JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import pyarrow as pa
import torch
from common import factuality_requests, finish, machine

from judgesense.benchmark import Benchmark
from judgesense.log.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.tasks import Task
from local_judges.local.model_loading import find_model, load_tokenizer, plain_folder
from local_judges.protocol import Request
from local_judges.runner import run_judge

EIGHT_B = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "rope_theta": 500000.0,
}
"""Llama-3.1-8B's config.json."""
TINY = {
    "hidden_size": 128,  # heads of 64: vLLM has no CPU attention for smaller ones
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 49152,
}
PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""Dense bfloat16 operations per second of the SXM cards, from data sheets; PCIe cards have less."""
CONTEXT = 2048
BOTH = ["generate", "options"]


def write_model(folder: Path, shape: dict[str, Any], dtype: str, tokenizer_of: str) -> Any:
    """Write config.json and a tokenizer, but no weights."""
    from transformers import LlamaConfig

    tokenizer = load_tokenizer(plain_folder(find_model(tokenizer_of)))
    config = LlamaConfig(
        **shape,
        architectures=["LlamaForCausalLM"],
        dtype=dtype,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return config


def write_weights(folder: Path, config: Any, dtype: str, device: str) -> None:
    """Write random weights beside the configuration; they are created on the device."""
    from transformers import AutoModelForCausalLM

    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    model.save_pretrained(folder)


def prompts(n: int) -> tuple[list[Request], str]:
    """n distinct factuality prompts; if there are fewer, they repeat with a number in front."""
    found, source = factuality_requests(n)
    copies = -(-n // len(found))
    texts = [
        f"({copy}) {request.text}" if copy else request.text
        for copy in range(copies)
        for request in found
    ][:n]
    options = found[0].options
    again = f", each {copies} times" if copies > 1 else ""
    return [Request(f"p{at}", text, options) for at, text in enumerate(texts)], source + again


def as_benchmark(requests: Sequence[Request]) -> Benchmark:
    n = len(requests)
    columns = {
        "prompt_id": [request.prompt_id for request in requests],
        "text": [request.text for request in requests],
        "task": ["factuality"] * n,
        "item_id": [request.prompt_id for request in requests],
        "cluster_id": [request.prompt_id for request in requests],
        "template_id": ["factuality-1"] * n,
        "order": ["-"] * n,
        "label_map": ['{"YES":"YES","NO":"NO"}'] * n,
        "gold": ["YES"] * n,
        "system_id": [""] * n,
    }
    task = Task("factuality", ("YES", "NO"))
    table = pa.table(columns, schema=PROMPT_SCHEMA)
    return Benchmark({"factuality": task}, table, PAIR_SCHEMA.empty_table(), {"name": "gpu"})


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def through_runner(judge: Any, data: Benchmark, scorings: list[str]) -> float:
    """Seconds for a whole run: plan, judge, parse, write."""
    with tempfile.TemporaryDirectory() as out:
        return timed(lambda: run_judge(judge, data, Path(out), scorings))


def operations(config: Any, counters: dict[str, int], prompts: int, mean_context: float) -> float:
    """Floating-point operations for the tokens read and written, with logits where needed."""
    width, layers = config.hidden_size, config.num_hidden_layers
    kv_width = width * config.num_key_value_heads // config.num_attention_heads
    layer = 2 * width**2 + 2 * width * kv_width + 3 * width * config.intermediate_size
    read, written = counters["prefilled_tokens"], counters.get("decoded_tokens", 0)
    attention = 4 * width * mean_context
    return (read + written) * layers * (2 * layer + attention) + 2 * width * config.vocab_size * (
        prompts + written
    )


def measured_rate(dtype: str, device: str) -> float:
    """Operations per second of one large matrix product, the best of five."""
    size = 8192 if device == "cuda" else 512
    one, two = (torch.randn(size, size, dtype=getattr(torch, dtype), device=device) for _ in "ab")

    def product() -> None:
        torch.mm(one, two)
        if device == "cuda":
            torch.cuda.synchronize()

    product()
    return 2 * size**3 / min(timed(product) for _ in range(5))


def with_vllm(folder: Path, data: Benchmark, requests: list[Request], asked: Any) -> list[Any]:
    from vllm import SamplingParams

    from local_judges.local.vllm_judge import VllmJudge

    settings = {"gpu_memory_utilization": asked.memory, "enforce_eager": asked.smoke}
    judge = VllmJudge(
        folder, load_format="dummy", dtype=asked.dtype, max_model_len=CONTEXT, **settings
    )
    order = [n for batch in judge.plan(requests, frozenset(BOTH)) for n in batch]
    ids = judge.encode([requests[n] for n in order])
    greedy = SamplingParams(
        max_tokens=judge.decoding.max_tokens,
        temperature=0,
        stop_token_ids=judge.stop_tokens,
        detokenize=False,
    )
    inputs = [{"prompt_token_ids": tokens} for tokens in ids]

    def fresh(work: Callable[[], Any]) -> float:
        judge.llm.reset_prefix_cache()
        judge.counters.clear()
        return timed(work)

    fresh(lambda: judge.llm.generate(inputs[:256], greedy, use_tqdm=False))
    passes: dict[str, list[float]] = {"bare": [], "generate": [], "both": [], "options": []}
    counted: dict[str, dict[str, int]] = {}
    for _ in range(asked.rounds):
        passes["bare"].append(fresh(lambda: judge.llm.generate(inputs, greedy, use_tqdm=False)))
        for name, scorings in (("generate", BOTH[:1]), ("both", BOTH), ("options", BOTH[1:])):
            passes[name].append(fresh(lambda s=scorings: through_runner(judge, data, s)))
            counted[name] = dict(judge.counters)
    judge.close()
    theirs = lm_eval_seconds(folder, judge, requests, asked, settings)
    n = len(requests)
    results = []
    for name, title, peer in (
        ("generate", "greedy text through the runner", "bare LLM.generate"),
        ("both", "greedy text and options through the runner", "bare LLM.generate (text alone)"),
        ("options", "option scoring through the runner", "lm-eval vllm"),
    ):
        others = passes["bare"] if name != "options" else [theirs] * asked.rounds
        result: dict[str, Any] = {
            "name": title,
            "ours": round(n / float(np.median(passes[name])), 2),
            "unit": "prompts/s",
            "n": n,
            "counters": counted[name],
            "seconds": [round(seconds, 3) for seconds in passes[name]],
        }
        if others[0] is not None:
            ratios = [b / a for a, b in zip(passes[name], others, strict=True)]
            result |= {
                "peer": peer,
                "ratio": round(float(np.median(ratios)), 3),
                "theirs": round(n / float(np.median(others)), 2),
                "ratios": [round(ratio, 3) for ratio in ratios],
            }
        results.append(result)
    return results


def lm_eval_seconds(
    folder: Path, judge: Any, requests: list[Request], asked: Any, settings: dict[str, Any]
) -> float | None:
    """Seconds that lm-eval's vLLM backend needs, scaled from a sample; None if not installed."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.vllm_causallms import VLLM
    except ImportError as error:
        print(f"lm-eval's vLLM backend was not compared: {error}", file=sys.stderr)
        return None
    peer = VLLM(
        str(folder), dtype=asked.dtype, max_model_len=CONTEXT, load_format="dummy", **settings
    )
    some = requests[:: asked.share]
    pairs = [(judge.chat.render(request.text), o) for request in some for o in request.options]
    instances = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
    peer.loglikelihood(instances[:64], disable_tqdm=True)
    return (
        timed(lambda: peer.loglikelihood(instances, disable_tqdm=True)) * len(requests) / len(some)
    )


def with_transformers(folder: Path, data: Benchmark, config: Any, asked: Any) -> list[Any]:
    from local_judges.local.transformers_judge import TransformersJudge

    write_weights(folder, config, asked.dtype, asked.device)
    judge = TransformersJudge(folder, dtype=asked.dtype, device=asked.device)
    results = []
    _ = judge.model  # load now, not in the first pass
    for scorings in (BOTH[:1], BOTH, BOTH[1:]):
        seconds = []
        for _ in range(asked.rounds):
            judge.counters.clear()
            seconds.append(through_runner(judge, data, scorings))
        results.append(
            {
                "name": f"transformers judge through the runner: {' and '.join(scorings)}",
                "ours": round(data.prompts.num_rows / float(np.median(seconds)), 2),
                "unit": "prompts/s",
                "n": data.prompts.num_rows,
                "counters": dict(judge.counters),
                "seconds": [round(each, 3) for each in seconds],
            }
        )
    judge.close()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, help="default 4000, or 8 with --smoke")
    parser.add_argument("--rounds", type=int, help="default 3, or 1 with --smoke")
    parser.add_argument("--share", type=int, default=4, help="lm-eval judges every Nth prompt")
    parser.add_argument("--memory", type=float, help="vLLM's share of GPU memory (default 0.85)")
    parser.add_argument("--tokenizer", default="smollm2-135m", help="name or folder")
    parser.add_argument("--engine", choices=("vllm", "transformers"))
    parser.add_argument("--smoke", action="store_true", help="use a tiny model on the CPU")
    asked = parser.parse_args()
    if not asked.smoke and not torch.cuda.is_available():
        print("benchmarks/gpu.py needs a GPU; --smoke tests its code on the CPU", file=sys.stderr)
        return 2
    asked.device, asked.dtype = ("cpu", "float32") if asked.smoke else ("cuda", "bfloat16")
    asked.prompts = asked.prompts or (8 if asked.smoke else 4000)
    asked.rounds = asked.rounds or (1 if asked.smoke else 3)
    asked.memory = asked.memory or (0.4 if asked.smoke else 0.85)
    has_vllm = importlib.util.find_spec("vllm") is not None
    engine = asked.engine or ("vllm" if has_vllm else "transformers")
    requests, source = prompts(asked.prompts)
    data = as_benchmark(requests)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        config = write_model(folder, TINY if asked.smoke else EIGHT_B, asked.dtype, asked.tokenizer)
        tokenizer = load_tokenizer(folder)
        lengths = [len(ids) for ids in tokenizer([request.text for request in requests]).input_ids]
        if engine == "vllm":
            results = with_vllm(folder, data, requests, asked)
        else:
            results = with_transformers(folder, data, config, asked)
    rate = measured_rate(asked.dtype, asked.device)
    gpu = torch.cuda.get_device_name(0) if asked.device == "cuda" else None
    peak = next((value for name, value in PEAK.items() if gpu and name in gpu), None)
    package = packages_distributions()[engine][0]
    for result in results:
        done = operations(config, result["counters"], len(requests), float(np.mean(lengths)))
        per_second = done / float(np.median(result["seconds"]))
        result |= {
            "tflops": round(per_second / 1e12, 3),
            "mfu": round(per_second / peak, 3) if peak else None,
            "share_of_measured_matmul": round(per_second / rate, 3),
            "measured_matmul_tflops": round(rate / 1e12, 2),
            "model": "tiny" if asked.smoke else "Llama-3.1-8B's shape, random weights",
            "dtype": asked.dtype,
            "engine": engine,
            "gpu": gpu,
            "source": source,
            "machine": machine("torch", "transformers", *{package} - {"transformers"}),
        }
        against = f", {result['ratio']} of {result['peer']}" if "ratio" in result else ""
        print(
            f"{result['name']}: {result['ours']} prompts/s{against}; {result['tflops']} TFLOP/s, "
            f"MFU {result['mfu'] if peak else 'unknown'}, "
            f"{result['share_of_measured_matmul']:.0%} of the rate of a large product",
            flush=True,
        )
    finish(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
