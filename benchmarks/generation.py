"""Greedy verdicts on a CPU: our judge against transformers' ``generate`` and llama.cpp's server.

    python benchmarks/generation.py [--model smollm2-135m] [--dtype bfloat16] [--prompts 48]
        [--llama PYTHON --gguf FILE [--only-llama]] [--scoring options]

All write at most 20 tokens after the same rendered prompts. ``generate`` takes batches of 16,
padded on the left, of the same weights and dtype. llama.cpp takes the quantised GGUF file itself in
``xllamacpp``'s server, with 16 slots that share the prompt cache; PYTHON is an interpreter of an
environment with xllamacpp. Each round measures ours, a peer and ours again in CPU-seconds, so that
a slow machine affects both; the ratio is the median over rounds. With ``--scoring options``, ours
gives the log-probabilities of the options, and a peer writes one token (llama.cpp with the 20 most
probable ones). ``verdicts_different`` counts
prompts whose text is read as another verdict. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from common import factuality_requests, finish, machine

from judgesense.answers import parse
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.runner import ask_all

LLAMA = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
import xllamacpp as x
asked = json.loads(sys.stdin.readline())
params = x.CommonParams()
params.model.path = asked["gguf"]
params.n_ctx = 16 * 2048
params.n_parallel = 16
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = asked["threads"]
params.warmup = True
server = x.Server(params)
def ask(prompt):
    reply = server.handle_completions({"prompt": prompt, "temperature": 0, "cache_prompt": True,
        "max_tokens": asked["tokens"], "n_predict": asked["tokens"], "stream": False,
        **({"logprobs": 20} if asked["tokens"] == 1 else {})})
    reply = json.loads(reply) if isinstance(reply, (str, bytes)) else reply
    return reply["choices"][0]["text"]
ask(asked["prompts"][0][:200])
for line in sys.stdin:
    start = time.process_time()
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(ask, asked["prompts"]))
    print("ANSWER" + json.dumps([time.process_time() - start, texts]), flush=True)
"""


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


class Llama:
    """llama.cpp's server in a process of its own."""

    def __init__(self, python: str, asked: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [python, "-c", LLAMA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._send(json.dumps(asked))

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __call__(self) -> tuple[float, list[str]]:
        """The CPU-seconds and texts of all prompts."""
        assert self.process.stdout is not None
        self._send("")
        for line in self.process.stdout:
            if line.startswith("ANSWER"):
                seconds, texts = json.loads(line.removeprefix("ANSWER"))
                return seconds, texts
        raise RuntimeError(f"llama.cpp's server ended with {self.process.wait()}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def transformers_generate(
    judge: TransformersJudge, prompts: list[str], batch: int, tokens: int
) -> Any:
    """A function that answers all prompts with transformers' own ``generate``."""
    import transformers

    dtype = getattr(torch, judge.dtype)
    model = transformers.AutoModelForCausalLM.from_pretrained(judge.folder, dtype=dtype).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(judge.folder, padding_side="left")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token

    def answer() -> list[str]:
        texts = []
        for at in range(0, len(prompts), batch):
            inputs = tokenizer(
                prompts[at : at + batch],
                add_special_tokens=False,
                padding=True,
                return_tensors="pt",
            )
            out = model.generate(
                **inputs,
                max_new_tokens=tokens,
                do_sample=False,
                eos_token_id=judge.stop_tokens,
                pad_token_id=tokenizer.pad_token_id,
            )
            new = out[:, inputs["input_ids"].shape[1] :]
            texts += tokenizer.batch_decode(new, skip_special_tokens=True)
        return texts

    return lambda: cpu_seconds(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16, help="batch size of generate")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--llama", metavar="PYTHON", help="an interpreter that has xllamacpp")
    parser.add_argument("--gguf", help="the GGUF file that llama.cpp reads")
    parser.add_argument("--scoring", default="generate", choices=("generate", "options"))
    parser.add_argument("--only-llama", action="store_true", help="leave out generate")
    asked = parser.parse_args()
    if bool(asked.llama) != bool(asked.gguf):
        parser.error("--llama and --gguf go together")
    torch.set_num_threads(asked.threads)
    requests, source = factuality_requests(asked.prompts)
    judge = TransformersJudge(asked.model, dtype=asked.dtype, device="cpu")
    prompts = [judge.chat.render(request.text) for request in requests]
    tokens = judge.decoding.max_tokens if asked.scoring == "generate" else 1
    ask_all(judge, requests[:4], [asked.scoring])

    def ours() -> tuple[float, list[str]]:
        seconds, answers = cpu_seconds(lambda: ask_all(judge, requests, [asked.scoring]))
        if asked.scoring == "generate":
            return seconds, [answer.text or "" for answer in answers]
        scores = [answer.option_logprobs or () for answer in answers]
        return seconds, [
            r.options[each.index(max(each))] for r, each in zip(requests, scores, strict=True)
        ]

    peers: dict[str, Any] = {}
    if not asked.only_llama:
        peers[f"transformers generate, batch {asked.batch_size}"] = transformers_generate(
            judge, prompts, asked.batch_size, tokens
        )
    if asked.llama:
        peers["llama.cpp server, 16 slots"] = Llama(
            asked.llama,
            {
                "gguf": os.path.expanduser(asked.gguf),
                "threads": asked.threads,
                "tokens": tokens,
                "prompts": prompts,
            },
        )
    what = "greedy text" if asked.scoring == "generate" else "options"
    results = []
    for peer, answer in peers.items():
        mine, theirs = [ours()[0]], []
        for _ in range(asked.rounds):
            seconds, their_texts = answer()
            theirs.append(seconds)
            seconds, texts = ours()
            mine.append(seconds)
        ratios = [t / ((a + b) / 2) for t, (a, b) in zip(theirs, pairwise(mine), strict=True)]
        verdicts = [
            [parse(text, request.options) for text, request in zip(each, requests, strict=True)]
            for each in (texts, their_texts)
        ]
        if isinstance(answer, Llama):
            answer.close()
        result = {
            "name": f"{what}, {judge.source.name}, {asked.dtype}",
            "peer": peer,
            "ratio": round(float(np.median(ratios)), 2),
            "ours": round(len(requests) / float(np.median(mine)), 2),
            "theirs": round(len(requests) / float(np.median(theirs)), 2),
            "unit": "prompts per CPU-second",
            "n": len(requests),
            "source": source,
            "ratios": [round(ratio, 2) for ratio in ratios],
            "texts_different": sum(a != b for a, b in zip(texts, their_texts, strict=True)),
            "verdicts_different": sum(a != b for a, b in zip(*verdicts, strict=True)),
            "threads": asked.threads,
            "machine": machine("torch", "transformers"),
        }
        print(
            f"{result['name']}: {result['ours']} prompts per CPU-second, {peer} "
            f"{result['theirs']}; ratio {result['ratio']}; {result['verdicts_different']} of "
            f"{len(requests)} verdicts differ",
            flush=True,
        )
        results.append(result)
    judge.close()
    finish(results)


if __name__ == "__main__":
    main()
