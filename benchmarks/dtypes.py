"""Verdicts of a local judge in bfloat16 against float32, and what bfloat16 alone changes.

    python benchmarks/dtypes.py [--model smollm2-135m] [--source truthfulqa] [--prompts 100]
        [--scoring options] [--keep FILE] [--seconds S]

Each prompt is judged in float32, in bfloat16, and in bfloat16 again in smaller batches: the third
pass shows what a batch's shape changes without any other dtype. ``truthfulqa`` has one of the
paper's five wordings per item, ``embedded`` all items of the embedded benchmark in their first
wording, in both orders. ``--keep`` appends answers to a file, from which the same command resumes;
``--seconds`` stops each pass in time, and the comparison is then over what all passes have. Times
are CPU-seconds. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from common import factuality_requests, finish, machine

from judgesense.answers import parse
from judgesense.tasks import render
from judgesense_dataset.embedded import TEMPLATES, embedded_items
from judgesense_dataset.templates import load_templates
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.protocol import Request

PASSES = {"float32": ("float32", 48), "bfloat16": ("bfloat16", 48), "again": ("bfloat16", 20)}
"""The dtype and the number of prompts per batch of each pass."""


def embedded_requests() -> list[Request]:
    """All embedded items in their first wording and both orders, shuffled."""
    entries = load_templates(TEMPLATES)
    prompts = []
    for item in embedded_items():
        entry = entries[item.task]
        for order in entry.task.orders:
            shown = render(entry.task, entry.templates[0], item, order)
            prompts.append(Request(shown.prompt_id, shown.text, entry.task.labels))
    random.Random(0).shuffle(prompts)
    return prompts


class Kept:
    """The answers so far: option log-probabilities or a text, by pass and prompt."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.answers: dict[str, dict[str, Any]] = {name: {} for name in PASSES}
        self.seconds = dict.fromkeys(PASSES, 0.0)
        if path is not None and path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._add(**json.loads(line))

    def _add(self, name: str, answers: dict[str, Any], seconds: float) -> None:
        self.answers[name] |= answers
        self.seconds[name] += seconds

    def add(self, name: str, answers: dict[str, Any], seconds: float) -> None:
        """Keep the answers of a batch."""
        self._add(name, answers, seconds)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                line = {"name": name, "answers": answers, "seconds": seconds}
                file.write(json.dumps(line) + "\n")


def judge_pass(name: str, requests: list[Request], asked: argparse.Namespace, kept: Kept) -> None:
    """Judge what a pass lacks, in its own batches."""
    dtype, size = PASSES[name]
    batches = [requests[at : at + size] for at in range(0, len(requests), size)]
    missing = [b for b in batches if any(r.prompt_id not in kept.answers[name] for r in b)]
    if not missing:
        return
    started = time.monotonic()
    judge = TransformersJudge(asked.model, dtype=dtype, device="cpu")
    _ = judge.model
    for batch in missing:
        start = time.process_time()
        ((_, answers),) = judge.judge([(0, batch)], frozenset({asked.scoring}))
        seconds = time.process_time() - start
        found = {
            request.prompt_id: answer.text
            if asked.scoring == "generate"
            else answer.option_logprobs
            for request, answer in zip(batch, answers, strict=True)
        }
        kept.add(name, found, seconds)
        if asked.seconds and time.monotonic() - started > asked.seconds:
            break
    judge.close()


def verdict(answer: Any, options: tuple[str, ...]) -> str:
    """The option that an answer states, or the kind of answer that states none."""
    if isinstance(answer, str):
        return parse(answer, options)
    return options[max(range(len(options)), key=lambda at: answer[at])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--source", default="truthfulqa", choices=("truthfulqa", "embedded"))
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--scoring", default="options", choices=("options", "generate"))
    parser.add_argument("--passes", default=",".join(PASSES))
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--seconds", type=float, help="stop each pass after this long")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.source == "embedded":
        requests, source = embedded_requests()[: asked.prompts], "the embedded benchmark"
    else:
        # Always drawn from as many, so that fewer prompts are some of the same.
        requests, source = factuality_requests(max(asked.prompts, 500))
        requests = requests[: asked.prompts]
    kept = Kept(asked.keep)
    for name in asked.passes.split(","):
        judge_pass(name, requests, asked, kept)
    results = []
    for name, other in (("float32", "bfloat16"), ("bfloat16", "again")):
        first, second = kept.answers[name], kept.answers[other]
        both = [r for r in requests if r.prompt_id in first and r.prompt_id in second]
        if not both:
            continue
        differ = sum(
            verdict(first[r.prompt_id], r.options) != verdict(second[r.prompt_id], r.options)
            for r in both
        )
        speed = [len(kept.answers[each]) / max(kept.seconds[each], 1e-9) for each in (name, other)]
        result = {
            "name": f"{asked.scoring}, {Path(asked.model).stem}: {other}",
            "peer": name,
            "ratio": round(speed[1] / speed[0], 2),
            "ours": round(speed[1], 2),
            "theirs": round(speed[0], 2),
            "unit": "prompts per CPU-second",
            "n": len(both),
            "asked": len(requests),
            "source": source,
            "verdicts_different": differ,
            "threads": asked.threads,
            "machine": machine("torch", "transformers"),
        }
        print(f"{result['name']}, against {name}: {differ} of {len(both)} verdicts differ")
        results.append(result)
    finish(results)


if __name__ == "__main__":
    main()
