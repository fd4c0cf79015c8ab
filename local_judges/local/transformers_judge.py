"""A judge on transformers: any causal language model, option scoring and greedy text together.

Each batch is one forward over the token trie of its prompts and their options' inner nodes
(:mod:`local_judges.local.packed_forward`); greedy text continues from that forward's keys and
values. A model whose attention does not go through transformers' attention interface is found out
by a comparison at loading and judged prompt by prompt with its own forward.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import MissingExtraError
from local_judges.local.devices import choose_device, choose_dtype, hardware
from local_judges.local.local_model import LocalModel
from local_judges.local.model_loading import find_model, load_model
from local_judges.local.option_scoring import shared_prefix
from local_judges.options import TransformersOptions, made
from local_judges.protocol import Answer, Request

log = logging.getLogger(__name__)

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 6144, 16384
_CACHE_FACTOR = 8
"""Greedy text keeps a padded cache: at most this many times the batch's tokens, rows x length."""


class TransformersJudge(LocalModel):
    """A judge that runs a causal language model with transformers.

    ``model`` is a short name (``smollm2-135m``), a folder, a ``.gguf`` file or a Hub id;
    ``options`` are those of :class:`~local_judges.options.TransformersOptions`. ``dtype`` defaults
    to float32 on a CPU and bfloat16 on GPUs that have it. An empty ``system_prompt`` leaves the
    system text to the chat template. Above ``temperature`` 0, each prompt's tokens are drawn from
    ``seed`` and its ``prompt_id`` alone (another text for each repeat).

    The constructor finds and hashes the weights and loads the tokenizer; the weights are loaded
    with the first batch. Raises JudgeSenseError for an unknown or wrong option, and for a model,
    device or dtype that does not exist.
    """

    engine = "transformers"

    def __init__(self, model: str | Path, *, name: str | None = None, **options: Any) -> None:
        own = made(TransformersOptions, options)
        try:
            import torch  # noqa: F401
            import transformers  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(error.name or "torch", "local", "a local judge") from error
        self.device = choose_device(own.device)
        source = find_model(model, revision=own.revision, gguf_file=own.gguf_file)
        super().__init__(source, choose_dtype(own.dtype, self.device), own)
        self.batch_tokens = own.batch_tokens or (
            CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS
        )
        self.counters: Counter[str] = Counter()
        self.forward = "token trie"
        self._model: Any = None
        self.name = self.full_name(name)

    def describe(self) -> Mapping[str, Any]:
        """The weights, dtype, device, prompt format, decoding and versions, as JSON values."""
        import torch
        import transformers

        attention = self._model.config._attn_implementation if self._model is not None else None
        return {
            **self.what_fixes_answers(),
            "name": self.name,
            "origin": self.source.origin,
            "gguf_file": self.source.gguf_file,
            "forward": self.forward,
            "attention": "sdpa over the token trie" if self.forward == "token trie" else attention,
            "context_tokens": self.context,
            "batch_tokens": self.batch_tokens,
            "hardware": hardware(self.device),
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches of neighbours in text order (shared instructions together), cut by tokens.

        Raises JudgeSenseError if the vocabulary cannot spell an option.
        """
        order = sorted(range(len(requests)), key=lambda n: requests[n].text)
        longer = self.decoding.max_tokens if "generate" in scorings else 0
        batches: list[Sequence[int]] = []
        batch: list[int] = []
        new = longest = 0
        before: list[int] = []
        for chunk in (order[n : n + 1024] for n in range(0, len(order), 1024)):
            for n, tokens in zip(chunk, self.encode([requests[m] for m in chunk]), strict=True):
                nodes = 0
                if "options" in scorings:
                    nodes = len(self.trie(requests[n].options).nodes)
                added = len(tokens) - shared_prefix(before, tokens) + nodes
                longest = max(longest, len(tokens) + longer)
                padded = (len(batch) + 1) * longest if longer else 0
                full = new + added > self.batch_tokens or padded > _CACHE_FACTOR * self.batch_tokens
                if batch and full:
                    batches.append(batch)
                    batch, new, longest = [], 0, len(tokens) + longer
                    added = len(tokens) + nodes
                batch.append(n)
                new += added
                before = tokens
        return [*batches, batch] if batch else batches

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer numbered batches in their order; a prompt too long for the model gets an error.

        ``latency_s`` is a prompt's share of its batch's time.
        """
        for number, requests in batches:
            yield number, self._answer(requests, scorings)

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
        """The loaded transformers model (loaded now if it was not)."""
        if self._model is None:
            from local_judges.local.forward import difference

            model = load_model(self.folder, self.dtype, self.device)
            probe = self.tokenizer(["One two.", "One six, ten."], add_special_tokens=False)
            if reason := difference(model, probe.input_ids):
                self.forward = "prompt by prompt"
                log.warning("%s is judged prompt by prompt, slowly: %s", self.name, reason)
            self._model = model
        return self._model

    def _answer(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Answer]:
        from local_judges.local.forward import Row, run_packed, run_plain

        started = time.perf_counter()
        model = self.model
        decoding = self.decoding if "generate" in scorings else None
        answers = [Answer() for _ in requests]
        rows = []
        for n, (request, tokens) in enumerate(zip(requests, self.encode(requests), strict=True)):
            trie = self.trie(request.options) if "options" in scorings else None
            answers[n].input_tokens = len(tokens)
            answers[n].error = self.too_long(tokens, trie, decoding is not None)
            if answers[n].error is None:
                rows.append(Row(n, request.prompt_id, request.repeat, tokens, trie))
        rows.sort(key=lambda row: row.tokens)
        if rows:
            run = run_packed if self.forward == "token trie" else run_plain
            self.counters.update(run(model, rows, decoding, self.stop_tokens))
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
