"""The common part of local judges: the model's files, its prompts as tokens, its name."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.answers.text import THINKING_TAG
from judgesense.log.schema import SCORES_IN_FORM
from local_judges.local.chat import ChatFormat
from local_judges.local.model_loading import ModelFiles, load_config, load_tokenizer, plain_folder
from local_judges.local.option_scoring import OptionTrie, option_trie
from local_judges.options import LocalOptions
from local_judges.protocol import Answer, Request


@dataclass(frozen=True, slots=True)
class Decoding:
    """At most ``max_tokens`` tokens: greedy at ``temperature`` 0, else sampled from the softmax of
    logits / temperature."""

    max_tokens: int
    temperature: float = 0.0
    seed: int = 0

    def seed_of(self, prompt_id: str, repeat: int = 0) -> int:
        """The seed of a prompt and repeat, so that a text does not depend on its batch.

        >>> Decoding(20, 0.7).seed_of("p1") == Decoding(20, 0.7).seed_of("p1", repeat=1)
        False
        """
        digest = hashlib.sha256(f"{self.seed}:{prompt_id}:{repeat}".encode()).digest()
        return int.from_bytes(digest[:8], "big")


class LocalModel:
    """A causal language model and its decoding, without the engine that runs it.

    A model that thinks aloud supports no option scoring, because its thinking comes where the
    answer would be. ``context`` is the maximum number of tokens of a prompt with its answer. Raises
    JudgeSenseError for a tokenizer or chat template that cannot be used.
    """

    engine = ""
    name: str
    scorings = frozenset({"generate", "options"})

    def __init__(self, source: ModelFiles, dtype: str, options: LocalOptions) -> None:
        import transformers

        self.source, self.dtype = source, dtype
        self.folder = plain_folder(source, dtype)
        self.tokenizer = load_tokenizer(self.folder)
        self.chat = ChatFormat(self.tokenizer, options.system_prompt, source.name, options.thinking)
        if self.chat.thinks:
            self.scorings = frozenset({"generate"})
        self._tags = self._thinking_tags()
        self.config = load_config(self.folder).get_text_config()
        self.context = int(getattr(self.config, "max_position_embeddings", None) or 1 << 30)
        # The tokenizer's and the generation configuration's.
        stop_tokens = {self.tokenizer.eos_token_id}
        if (self.folder / "generation_config.json").is_file():
            configured = transformers.GenerationConfig.from_pretrained(self.folder).eos_token_id
            stop_tokens.update(configured if isinstance(configured, list) else [configured])
        self.stop_tokens: list[int] = sorted(stop_tokens - {None})
        self.decoding = Decoding(options.max_tokens, options.temperature, options.seed)
        self._tries: dict[tuple[tuple[str, ...], str], OptionTrie] = {}

    def encode(self, requests: Sequence[Request]) -> list[list[int]]:
        """The tokens of each request's prompt."""
        texts = [self.chat.render(request.text, request.system) for request in requests]
        if not texts:
            return []
        # A prompt longer than the context gets our own error instead of the tokenizer's warning.
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return list(encoded.input_ids)

    def trie(self, request: Request) -> OptionTrie:
        """The trie of a request's options. Raises JudgeSenseError if the vocabulary cannot spell
        one."""
        key = options, form = request.options, request.reply_form
        if key not in self._tries:
            self._tries[key] = option_trie(
                self.tokenizer, self.chat.tail, options, self.stop_tokens, form
            )
        return self._tries[key]

    def too_long(self, tokens: Sequence[int], trie: OptionTrie | None, writes: bool) -> str | None:
        """Why a prompt with its answer does not fit into the context; None if it does."""
        options = [depth + 1 for depth in trie.depths] if trie else []
        reserve = max([self.decoding.max_tokens if writes else 1, *options])
        if len(tokens) + reserve <= self.context:
            return None
        return (
            f"the prompt has {len(tokens)} tokens and its answer up to {reserve}, but the model's "
            f"context is {self.context} tokens"
        )

    def score(self, answer: Answer, option_logprobs: tuple[float, ...]) -> None:
        """Set the option log-probabilities of an answer."""
        answer.option_logprobs = option_logprobs
        answer.option_mass = sum(map(math.exp, option_logprobs))

    def write(self, answer: Answer, tokens: Sequence[int], stopped: bool) -> None:
        """Set the text of an answer from the generated tokens without the stop token.

        Thinking stays in the text, with the start that the chat template wrote and with tags that
        are special tokens, so that a reader can separate it from the answer.
        """
        pieces, text_tokens = [], list[int]()
        for token in tokens:
            if token in self._tags:
                pieces += [self._decode(text_tokens), self._tags[token]]
                text_tokens = []
            else:
                text_tokens.append(token)
        answer.text = "".join([self.chat.begun, *pieces, self._decode(text_tokens)])
        answer.output_tokens = len(tokens)
        answer.truncated = not stopped

    def answer_settings(self) -> dict[str, Any]:
        """The engine, weights, dtype, prompt format and decoding, as JSON values."""
        sampling = {"seed": self.decoding.seed} if self.decoding.temperature else {}
        return {
            "engine": self.engine,
            "weights": self.source.weights,
            "dtype": self.dtype,
            **self.chat.describe(),
            "decoding": {
                "max_tokens": self.decoding.max_tokens,
                "temperature": self.decoding.temperature,
                "stop_tokens": self.stop_tokens,
                **sampling,
            },
        }

    def describe(self) -> dict[str, Any]:
        """Everything that fixes the answers, and the model's files and versions, as JSON values."""
        import torch
        import transformers

        return {
            **self.answer_settings(),
            "name": self.name,
            "origin": self.source.origin,
            "gguf_file": self.source.gguf_file,
            "context_tokens": self.context,
            SCORES_IN_FORM: "options" in self.scorings,
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        }

    def full_name(self, name: str | None) -> str:
        """``name@fingerprint``; the fingerprint is a hash of what fixes the answers."""
        settings = json.dumps(self.answer_settings(), sort_keys=True)
        return f"{name or self.source.name}@{hashlib.sha256(settings.encode()).hexdigest()[:8]}"

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _thinking_tags(self) -> dict[int, str]:
        """Special tokens that start or end thinking, which decoding would drop."""
        added = self.tokenizer.added_tokens_decoder.items()
        return {
            number: token.content
            for number, token in added
            if token.special and THINKING_TAG.fullmatch(token.content)
        }
