"""A judge on transformers: any causal language model, option scoring and greedy text together.

Each batch is one forward over the token trie of its prompts and their options' inner nodes
(:mod:`local_judges.packed_forward`); greedy text continues from that forward's keys and values.
A model whose attention does not go through transformers' attention interface is found out by a
comparison at loading and judged prompt by prompt with its own forward.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.chat import MAX_TOKENS, SYSTEM_PROMPT, ChatFormat
from local_judges.decoding import Decoding
from local_judges.devices import choose_device, choose_dtype, hardware
from local_judges.model_loading import find_model, load_model, load_tokenizer, plain_folder
from local_judges.option_scoring import OptionTrie, build_trie, shared_prefix, tokenise_option
from local_judges.protocol import Answer, Request

log = logging.getLogger(__name__)

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 6144, 16384
_CACHE_FACTOR = 8
"""Greedy text keeps a padded cache: at most this many times the batch's tokens, rows x length."""


class TransformersJudge:
    """A judge that runs a causal language model with transformers.

    ``model`` is a short name (``smollm2-135m``), a folder, a ``.gguf`` file or a Hub id (with
    ``revision``, ``gguf_file``). ``dtype`` defaults to float32 on a CPU and bfloat16 on GPUs that
    have it. ``system_prompt`` None or "" leaves the system text to the chat template.
    ``temperature`` 0 is greedy; above it, each prompt's tokens are drawn from ``seed`` and its
    ``prompt_id`` alone (another text for each repeat). ``batch_tokens`` is the number of tokens
    of one forward.

    Making one finds and hashes the weights and loads the tokenizer; the weights are loaded with
    the first batch. Raises JudgeSenseError for a model, device or dtype that is not there.
    """

    scorings = frozenset({"generate", "options"})

    def __init__(
        self,
        model: str | Path,
        *,
        name: str | None = None,
        revision: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        system_prompt: str | None = SYSTEM_PROMPT,
        max_tokens: int = MAX_TOKENS,
        temperature: float = 0.0,
        seed: int = 0,
        gguf_file: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        try:
            import torch  # noqa: F401
            import transformers
        except ImportError as error:
            raise MissingExtraError(error.name or "torch", "local", "a local judge") from error
        if max_tokens < 1 or temperature < 0 or (batch_tokens is not None and batch_tokens < 1):
            raise JudgeSenseError(
                "max_tokens and batch_tokens must be at least 1 and temperature at least 0, got "
                f"{max_tokens}, {batch_tokens} and {temperature}"
            )
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device)
        self.source = find_model(model, revision=revision, gguf_file=gguf_file)
        self.folder = plain_folder(self.source)
        self.tokenizer = load_tokenizer(self.folder)
        self.chat = ChatFormat(self.tokenizer, system_prompt, self.source.name)
        self.config = transformers.AutoConfig.from_pretrained(self.folder).get_text_config()
        self.context = int(getattr(self.config, "max_position_embeddings", None) or 1 << 30)
        self.stop_tokens = self._stop_tokens()
        self.max_tokens, self.temperature, self.seed = max_tokens, temperature, seed
        self._decoding = Decoding(max_tokens, temperature, seed)
        self.batch_tokens = batch_tokens or (
            CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS
        )
        self.counters: Counter[str] = Counter()
        self.engine = "token trie"
        self._model: Any = None
        self._tries: dict[tuple[str, ...], OptionTrie] = {}
        self.name = f"{name or self.source.name}@{self._fingerprint()}"

    def describe(self) -> Mapping[str, Any]:
        """The weights, dtype, device, prompt format, decoding and versions, as JSON values."""
        import torch
        import transformers

        attention = self._model.config._attn_implementation if self._model is not None else None
        return {
            **self._what_fixes_answers(),
            "name": self.name,
            "origin": self.source.origin,
            "gguf_file": self.source.gguf_file,
            "forward": self.engine,
            "attention": "sdpa over the token trie" if self.engine == "token trie" else attention,
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
        longer = self.max_tokens if "generate" in scorings else 0
        batches: list[Sequence[int]] = []
        batch: list[int] = []
        new = longest = 0
        before: list[int] = []
        for chunk in (order[n : n + 1024] for n in range(0, len(order), 1024)):
            for n, tokens in zip(chunk, self._encode([requests[m] for m in chunk]), strict=True):
                nodes = 0
                if "options" in scorings:
                    nodes = len(self._trie(requests[n].options).nodes)
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
            from local_judges.engines import difference

            model = load_model(self.folder, self.dtype, self.device)
            probe = self.tokenizer(["One two.", "One six, ten."], add_special_tokens=False)
            if reason := difference(model, probe.input_ids):
                self.engine = "prompt by prompt"
                log.warning("%s is judged prompt by prompt, slowly: %s", self.name, reason)
            self._model = model
        return self._model

    def _answer(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Answer]:
        from local_judges.engines import Row, run_packed, run_plain

        started = time.perf_counter()
        model = self.model
        decoding = self._decoding if "generate" in scorings else None
        answers = [Answer() for _ in requests]
        rows = []
        for n, (request, tokens) in enumerate(zip(requests, self._encode(requests), strict=True)):
            trie = self._trie(request.options) if "options" in scorings else None
            reserve = max([decoding.max_tokens if decoding else 0, *(trie.depths if trie else ())])
            answers[n].input_tokens = len(tokens)
            if len(tokens) + reserve > self.context:
                answers[n].error = (
                    f"the prompt has {len(tokens)} tokens and its answer may take {reserve}, but "
                    f"the model's context is {self.context} tokens"
                )
            else:
                rows.append(Row(n, request.prompt_id, request.repeat, tokens, trie))
        rows.sort(key=lambda row: row.tokens)
        if rows:
            run = run_packed if self.engine == "token trie" else run_plain
            self.counters.update(run(model, rows, decoding, self.stop_tokens))
        for row in rows:
            answer = answers[row.place]
            if row.option_logprobs is not None:
                answer.option_logprobs = row.option_logprobs
                answer.option_mass = sum(map(math.exp, row.option_logprobs))
            if decoding:
                answer.text = self.tokenizer.decode(row.generated, skip_special_tokens=True)
                answer.output_tokens, answer.truncated = len(row.generated), not row.stopped
        share = (time.perf_counter() - started) / max(len(requests), 1)
        for answer in answers:
            answer.latency_s = share
        return answers

    def _encode(self, requests: Sequence[Request]) -> list[list[int]]:
        """Each request's prompt as tokens."""
        texts = [self.chat.render(request.text) for request in requests]
        if not texts:
            return []
        # Longer prompts than the context get an error of their own, not the tokenizer's warning.
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return list(encoded.input_ids)

    def _trie(self, options: tuple[str, ...]) -> OptionTrie:
        if options not in self._tries:
            sequences = [tokenise_option(self.tokenizer, self.chat.tail, o) for o in options]
            self._tries[options] = build_trie(sequences, self.stop_tokens)
        return self._tries[options]

    def _stop_tokens(self) -> list[int]:
        """The tokens that end an answer: the tokenizer's and the generation configuration's."""
        import transformers

        found = {self.tokenizer.eos_token_id}
        if (self.folder / "generation_config.json").is_file():
            asked = transformers.GenerationConfig.from_pretrained(self.folder).eos_token_id
            found.update(asked if isinstance(asked, list) else [asked])
        return sorted(found - {None})

    def _what_fixes_answers(self) -> dict[str, Any]:
        sampled = {"seed": self.seed} if self.temperature else {}
        return {
            "engine": "transformers",
            "weights": self.source.weights,
            "dtype": self.dtype,
            **self.chat.describe(),
            "decoding": {
                "max_tokens": self.max_tokens,
                "temperature": self.temperature,
                "stop_tokens": self.stop_tokens,
                **sampled,
            },
        }

    def _fingerprint(self) -> str:
        text = json.dumps(self._what_fixes_answers(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]
