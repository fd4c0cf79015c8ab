"""Thinking with a cap: let a model think aloud for so many tokens, then ask for its answer.

The thinking is opened and closed for the model ("budget forcing" in Muennighoff et al. 2025, "s1:
Simple test-time scaling", section 3.1), so the cap holds for a model that was never trained to
think, too. What it writes then is its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from judgesense.answers.text import THINKING_TAG
from local_judges.local.chat import ChatFormat


@dataclass(frozen=True, slots=True)
class ThinkingFormat:
    """How a model's thinking is opened and closed.

    ``opened`` follows the prompt unless the chat template writes it; ``closed`` comes before the
    answer. ``end`` is the token of the closing tag, if that is a single one.
    """

    chat: ChatFormat
    opened: str
    closed: str
    end: int | None

    @classmethod
    def of(cls, tokenizer: Any, chat: ChatFormat, model: str) -> ThinkingFormat:
        """The format of a model: its own tags if it has some, else ``<think>``."""
        thinking = ChatFormat(tokenizer, chat.system_prompt, model, thinking=True)
        known = {token.content: n for n, token in tokenizer.added_tokens_decoder.items()}
        own = [text for text in known if THINKING_TAG.fullmatch(text) and "/" not in text]
        tag = thinking.begun.strip() or (own[0] if own else "<think>")
        closing = f"{tag[0]}/{tag[1:]}"
        return cls(
            chat=thinking,
            opened="" if thinking.begun else f"{tag}\n",
            closed=f"\n{closing}\n\n",
            end=known.get(closing),
        )

    def render(self, text: str, system: str = "") -> str:
        """The prompt up to where the thinking begins."""
        return self.chat.render(text, system) + self.opened

    def finished(self, thought: str) -> str:
        """The thinking with its closing tag; what a model wrote behind a tag of its own is cut."""
        tag = self.closed.strip()
        return re.split(re.escape(tag), thought, maxsplit=1)[0].rstrip() + self.closed

    @property
    def begun(self) -> str:
        """The beginning of the thinking, as a log shows it."""
        return self.chat.begun or self.opened


@dataclass(frozen=True, slots=True)
class Thought:
    """What a model thought before its answer: the text with its tags, and the tokens written."""

    text: str
    n_tokens: int
