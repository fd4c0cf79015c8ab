"""What the engines on this machine share: a model's files, its prompts as tokens, its name."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from judgesense.responses import THINKING_TAG
from local_judges.local.chat import ChatFormat
from local_judges.local.decoding import Decoding
from local_judges.local.model_loading import Source, load_tokenizer, plain_folder
from local_judges.local.option_scoring import OptionTrie, build_trie, tokenise_option
from local_judges.options import LocalOptions
from local_judges.protocol import Answer, Request


class LocalModel:
    """A causal language model and its decoding, without the engine that runs it.

    A model that thinks aloud offers no option scoring: where its answer should stand, its thinking
    begins. ``context`` is the most tokens that a prompt and its answer may have together. Raises
    JudgeSenseError for a tokenizer or chat template that cannot be used.
    """

    engine = ""
    scorings = frozenset({"generate", "options"})

    def __init__(self, source: Source, dtype: str, options: LocalOptions) -> None:
        import transformers

        self.source, self.dtype = source, dtype
        self.folder = plain_folder(source)
        self.tokenizer = load_tokenizer(self.folder)
        self.chat = ChatFormat(self.tokenizer, options.system_prompt, source.name, options.thinking)
        if self.chat.thinks:
            self.scorings = frozenset({"generate"})
        self._tags = self._thinking_tags()
        self.config = transformers.AutoConfig.from_pretrained(self.folder).get_text_config()
        self.context = int(getattr(self.config, "max_position_embeddings", None) or 1 << 30)
        self.stop_tokens = self._stop_tokens()
        self.decoding = Decoding(options.max_tokens, options.temperature, options.seed)
        self._tries: dict[tuple[str, ...], OptionTrie] = {}

    def encode(self, requests: Sequence[Request]) -> list[list[int]]:
        """Each request's prompt as tokens."""
        texts = [self.chat.render(request.text) for request in requests]
        if not texts:
            return []
        # Longer prompts than the context get an error of their own, not the tokenizer's warning.
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return list(encoded.input_ids)

    def trie(self, options: tuple[str, ...]) -> OptionTrie:
        """The options as tokens after a prompt. Raises JudgeSenseError if they cannot be spelt."""
        if options not in self._tries:
            sequences = [tokenise_option(self.tokenizer, self.chat.tail, o) for o in options]
            self._tries[options] = build_trie(sequences, self.stop_tokens)
        return self._tries[options]

    def too_long(self, tokens: Sequence[int], trie: OptionTrie | None, writes: bool) -> str | None:
        """Why a prompt does not fit the context with what is asked of it, or None if it does."""
        options = [depth + 1 for depth in trie.depths] if trie else []
        reserve = max([self.decoding.max_tokens if writes else 1, *options])
        if len(tokens) + reserve <= self.context:
            return None
        return (
            f"the prompt has {len(tokens)} tokens and its answer may take {reserve}, but "
            f"the model's context is {self.context} tokens"
        )

    def score(self, answer: Answer, option_logprobs: tuple[float, ...]) -> None:
        """Enter the options' log-probabilities into an answer."""
        answer.option_logprobs = option_logprobs
        answer.option_mass = sum(map(math.exp, option_logprobs))

    def write(self, answer: Answer, tokens: Sequence[int], stopped: bool) -> None:
        """Enter a generated text, given without its stop token, into an answer.

        Thinking stays in it, with the beginning that the chat template wrote and with tags that
        are special tokens, so that a reader can tell it from the answer.
        """
        pieces, kept = [], list[int]()
        for token in tokens:
            if token in self._tags:
                pieces += [self._decode(kept), self._tags[token]]
                kept = []
            else:
                kept.append(token)
        answer.text = self.chat.begun + "".join([*pieces, self._decode(kept)])
        answer.output_tokens, answer.truncated = len(tokens), not stopped

    def what_fixes_answers(self) -> dict[str, Any]:
        """The engine, weights, dtype, prompt format and decoding, as JSON values."""
        sampled = {"seed": self.decoding.seed} if self.decoding.temperature else {}
        return {
            "engine": self.engine,
            "weights": self.source.weights,
            "dtype": self.dtype,
            **self.chat.describe(),
            "decoding": {
                "max_tokens": self.decoding.max_tokens,
                "temperature": self.decoding.temperature,
                "stop_tokens": self.stop_tokens,
                **sampled,
            },
        }

    def full_name(self, name: str | None) -> str:
        """The name with a hash of what fixes the answers: ``name@fingerprint``."""
        text = json.dumps(self.what_fixes_answers(), sort_keys=True)
        return f"{name or self.source.name}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _thinking_tags(self) -> dict[int, str]:
        """Special tokens that begin or end thinking: decoding would leave them out."""
        added = self.tokenizer.added_tokens_decoder.items()
        return {
            number: token.content
            for number, token in added
            if token.special and THINKING_TAG.fullmatch(token.content)
        }

    def _stop_tokens(self) -> list[int]:
        """The tokens that end an answer: the tokenizer's and the generation configuration's."""
        import transformers

        found = {self.tokenizer.eos_token_id}
        if (self.folder / "generation_config.json").is_file():
            asked = transformers.GenerationConfig.from_pretrained(self.folder).eos_token_id
            found.update(asked if isinstance(asked, list) else [asked])
        return sorted(found - {None})
