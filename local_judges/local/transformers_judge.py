"""A judge on transformers: any causal language model, option scoring and greedy text together.

Each batch is one forward pass over the token trie of its prompts and the inner nodes of their
options (:mod:`local_judges.local.packed_forward`); greedy text continues from the keys and values
of that pass. A model that does not use transformers' attention interface is refused: a comparison
at loading detects it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.local.local_model import LocalModel
from local_judges.local.model_loading import (
    choose_device,
    choose_dtype,
    find_model,
    hardware,
    load_model,
)
from local_judges.local.option_scoring import shared_prefix
from local_judges.options import TransformersOptions, settings_of
from local_judges.protocol import Answer, Request

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 6144, 16384
_CACHE_FACTOR = 8
"""The maximum size of the padded cache for greedy text, rows x length, in multiples of the batch's
tokens."""


class TransformersJudge(LocalModel):
    """A judge that runs a causal language model with transformers.

    ``model`` is a short name (``smollm2-135m``), a folder, a ``.gguf`` file or a Hub id;
    ``options`` are those of :class:`~local_judges.options.TransformersOptions`. ``dtype`` defaults
    to float32 on a CPU and bfloat16 on GPUs that have it. An empty ``system_prompt`` leaves the
    system text to the chat template. Above ``temperature`` 0, each prompt's tokens are drawn from
    ``seed`` and its ``prompt_id`` alone (another text for each repeat).

    The constructor finds and hashes the weights and loads the tokenizer; the weights are loaded
    with the first batch. Raises JudgeSenseError for an unknown or wrong option, for a model, device
    or dtype that does not exist, and, with the first batch, for a model with attention of its own.
    """

    engine = "transformers"

    def __init__(self, model: str | Path, *, name: str | None = None, **options: Any) -> None:
        settings = settings_of(TransformersOptions, options)
        try:
            import torch  # noqa: F401
            import transformers  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(error.name or "torch", "local", "a local judge") from error
        self.device = choose_device(settings.device)
        source = find_model(model, revision=settings.revision, gguf_file=settings.gguf_file)
        super().__init__(source, choose_dtype(settings.dtype, self.device), settings)
        self.batch_tokens = settings.batch_tokens or (
            CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS
        )
        self.counters: Counter[str] = Counter()
        self._model: Any = None
        self.name = self.full_name(name)

    def describe(self) -> dict[str, Any]:
        """The description of the model, with the forward pass, the batch size and the hardware."""
        return {
            **super().describe(),
            "forward": "token trie",
            "attention": "sdpa over the token trie",
            "batch_tokens": self.batch_tokens,
            "hardware": hardware(self.device),
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches of prompts in text order, so that they share instructions, limited by tokens.

        Raises JudgeSenseError if the vocabulary cannot spell an option.
        """
        order = sorted(range(len(requests)), key=lambda n: requests[n].text)
        most_generated = self.decoding.max_tokens if "generate" in scorings else 0
        batches: list[Sequence[int]] = []
        batch: list[int] = []
        n_new = longest = 0
        previous: list[int] = []
        for chunk in (order[n : n + 1024] for n in range(0, len(order), 1024)):
            for n, tokens in zip(chunk, self.encode([requests[m] for m in chunk]), strict=True):
                n_nodes = len(self.trie(requests[n]).nodes) if "options" in scorings else 0
                n_added = len(tokens) - shared_prefix(previous, tokens) + n_nodes
                n_tokens = len(tokens) + most_generated
                longest = max(longest, n_tokens)
                padded = (len(batch) + 1) * longest if most_generated else 0
                is_full = n_new + n_added > self.batch_tokens
                if batch and (is_full or padded > _CACHE_FACTOR * self.batch_tokens):
                    batches.append(batch)
                    batch, n_new, longest = [], 0, n_tokens
                    n_added = len(tokens) + n_nodes
                batch.append(n)
                n_new += n_added
                previous = tokens
        return [*batches, batch] if batch else batches

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer numbered batches in order; a prompt too long for the model gets an error.

        ``latency_s`` is the time of the batch divided by its prompts. Raises JudgeSenseError if the
        device runs out of memory.
        """
        import torch

        for number, requests in batches:
            try:
                answers = self._answer(requests, scorings)
            except torch.cuda.OutOfMemoryError as error:
                raise JudgeSenseError(
                    f"{self.device} ran out of memory on a batch of at most {self.batch_tokens} "
                    f"tokens; use --set batch_tokens={self.batch_tokens // 2} with another --out, "
                    "or a smaller model"
                ) from error
            yield number, answers

    def close(self) -> None:
        """Free the model's memory."""
        if self._model is None:
            return
        import torch

        self._model = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @property
    def model(self) -> Any:
        """The transformers model, loaded on first use."""
        if self._model is None:
            from local_judges.local.forward import difference
            from local_judges.local.prepacked import prepack

            probe = self.tokenizer(["One two.", "One six, ten."], add_special_tokens=False)
            model = load_model(self.folder, self.dtype, self.device)
            prepack(model)
            if reason := difference(model, probe.input_ids):
                raise JudgeSenseError(
                    f"{self.source.name} does not use transformers' attention as other models do "
                    f"({reason}); use --set engine=vllm"
                )
            self._model = model
        return self._model

    def _answer(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Answer]:
        from local_judges.local.forward import PromptState, run_packed

        started = time.perf_counter()
        model = self.model
        decoding = self.decoding if "generate" in scorings else None
        answers = [Answer() for _ in requests]
        rows = []
        for n, (request, tokens) in enumerate(zip(requests, self.encode(requests), strict=True)):
            trie = self.trie(request) if "options" in scorings else None
            answers[n].input_tokens = len(tokens)
            answers[n].error = self.too_long(tokens, trie, decoding is not None)
            if answers[n].error is None:
                rows.append(PromptState(n, request.prompt_id, request.repeat, tokens, trie))
        rows.sort(key=lambda row: row.tokens)
        if rows:
            self.counters.update(run_packed(model, rows, decoding, self.stop_tokens))
        for row in rows:
            answer = answers[row.place]
            if row.option_logprobs is not None:
                self.score(answer, row.option_logprobs)
            if decoding:
                self.write(answer, row.generated, row.stopped)
        share = (time.perf_counter() - started) / max(len(requests), 1)
        for answer in answers:
            answer.latency_s = share
        return answers
