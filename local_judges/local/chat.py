"""Turn a user message into the text that a model reads, with chat template and system prompt.

The chat template is rendered once, around a placeholder that each prompt then replaces. The text
is tokenised with ``add_special_tokens=False``, because a rendered template already contains its
special tokens.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from judgesense.answers.text import BEGINS_THINKING
from judgesense.errors import JudgeSenseError

log = logging.getLogger(__name__)

TEMPLATE_SETTINGS: dict[str, Any] = {"date_string": "26 Jul 2024", "enable_thinking": False}
"""Variables of every chat template. Without a date, Llama's template writes today's into a prompt,
so that answers change from day to day; this is the date that it falls back to. With thinking,
reasoning models spend the 20 tokens on it (the paper turns it off too); ``thinking`` enables it."""

_MARK = "judgesense\u2063placeholder"


class ChatFormat:
    """The format of a model's prompts.

    ``head`` and ``tail`` surround the user message. ``kind`` is ``chat`` (with a system role),
    ``chat, system text in the user's turn``, or ``plain`` (no chat template: the system text, a
    blank line, the message, a line break). ``begun`` is the start of thinking that the template
    itself writes at the end of a prompt (``<think>``), or "". Raises JudgeSenseError if the
    template cannot be rendered or does not contain the message exactly once.
    """

    def __init__(
        self, tokenizer: Any, system_prompt: str | None, model: str, thinking: bool = False
    ) -> None:
        self._settings = {**TEMPLATE_SETTINGS, "enable_thinking": thinking}
        self._model, self._tokenizer, self._thinking = model, tokenizer, thinking
        self._with_system: dict[str, ChatFormat] = {}
        self.system_prompt = system_prompt or ""
        self.template: str | None = tokenizer.chat_template
        if isinstance(self.template, dict):  # tokenizers with several named templates
            self.template = self.template.get("default")
        system, self._trims = self.system_prompt, False
        if not self.template:
            log.warning("%s has no chat template; it gets plain prompts", model)
            self.kind = "plain"
            starts = tokenizer("a").input_ids[:1] == [tokenizer.bos_token_id]
            start = tokenizer.bos_token if starts else ""
            rendered: str | None = f"{start}{_system_prefix(system)}{_MARK}\n"
        else:
            self.kind = "chat"
            rendered = self._render(system, _MARK)
            if system and (rendered is None or system not in rendered):
                self.kind = "chat, system text in the user's turn"
                rendered = self._render("", f"{_system_prefix(system)}{_MARK}")
            padded = self._render("", f"  {_MARK}  ")
            self._trims = padded is not None and f"  {_MARK}  " not in padded
        if rendered is None or rendered.count(_MARK) != 1:
            raise JudgeSenseError(
                f"the chat template of {model} does not contain the user message exactly once; "
                "use a model folder with another template in tokenizer_config.json"
            )
        self.head: str
        self.tail: str
        self.head, self.tail = rendered.split(_MARK)
        begun = BEGINS_THINKING.search(self.tail)
        self.begun = begun.group() if begun else ""
        self.thinks = thinking or bool(begun)

    def _render(self, system: str, user: str) -> str | None:
        """The rendered conversation; None if the template refuses a system message."""
        import jinja2

        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages,
                    chat_template=self.template,
                    tokenize=False,
                    add_generation_prompt=True,
                    **self._settings,
                )
            )
        except jinja2.TemplateError as error:
            if system:
                return None
            raise JudgeSenseError(
                f"the chat template of {self._model} cannot be rendered: {error}"
            ) from error

    def render(self, text: str, system: str = "") -> str:
        """The full text that the model continues; ``system`` follows the system prompt."""
        if system:
            if system not in self._with_system:
                whole = f"{_system_prefix(self.system_prompt)}{system}"
                self._with_system[system] = ChatFormat(
                    self._tokenizer, whole, self._model, self._thinking
                )
            return self._with_system[system].render(text)
        return self.head + (text.strip() if self._trims else text) + self.tail

    def describe(self) -> dict[str, Any]:
        """The parts of the format that fix the answers, as JSON values."""
        source = self.template or f"{self.head}{{message}}{self.tail}"
        return {
            "chat_template": self.kind,
            "chat_template_sha256": hashlib.sha256(source.encode()).hexdigest(),
            "template_settings": dict(self._settings) if self.template else {},
            "system_prompt": self.system_prompt,
            "prompt_head": self.head,
            "prompt_tail": self.tail,
        }


def _system_prefix(system: str) -> str:
    return f"{system}\n\n" if system else ""
