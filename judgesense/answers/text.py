"""Clean a judge's text and split it into sentences, in time linear in its length."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

THINKING_TAG = re.compile(
    r"[<◁]/?(?:think|thinking|thought|reasoning)[>▷]|\[/?THINK\]", re.IGNORECASE
)
"""A tag that starts or ends thinking."""

BEGINS_THINKING = re.compile(
    r"(?:[<◁](?:think|thinking|thought|reasoning)[>▷]|\[THINK\])\s*\Z", re.IGNORECASE
)
"""The start of thinking at the end of a prompt."""

_THINKING = re.compile(
    r"[<◁](think|thinking|thought|reasoning)[>▷].*?(?:[<◁]/\1[>▷]|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|?channel\|?>", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s*final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call)\|>")
_LEAKED_ANALYSIS = re.compile(r"\s*(?:assistant)?analysis(?=[A-Z])")
_LEAKED_FINAL = re.compile(r"assistantfinal|assistant\s*<\|channel\|>\s*final")
"""A template's channel markers, and what is left of them where a server dropped their brackets."""

_THOUGHT = re.compile(r"[<◁]/(?:think|thinking|thought|reasoning)[>▷]|\[/THINK\]", re.IGNORECASE)


def without_thinking(text: str) -> str:
    """The answer in a text, without the thinking of a reasoning model before it.

    The tags are ``<think>``, ``<thinking>``, ``<reasoning>`` and ``[THINK]``, and the channels of
    templates such as Harmony. If the thinking was
    cut off, the answer is empty; if the text has only the end tag, because the chat template wrote
    the start, the answer is the rest of the text.

    >>> without_thinking("<think>A or B?</think>B")
    'B'
    """
    if _LEAKED_ANALYSIS.match(text) or text.startswith("assistantfinal"):
        ends = [end.end() for end in _LEAKED_FINAL.finditer(text)]
        return text[ends[-1] :] if ends else ""
    if not any(sign in text for sign in "<[◁"):
        return text
    if _CHANNEL.search(text):
        text = _without_channels(text)
    text = _THINKING.sub("", text)
    ends = [end.end() for end in _THOUGHT.finditer(text)]
    return text[ends[-1] :] if ends else text


def _without_channels(text: str) -> str:
    """The message of the final channel; empty where only the channel of the analysis is there.

    ``<|channel|>analysis<|message|>...<|end|>...<|channel|>final<|message|>B`` marks both; with
    ``<|channel>thought ... <channel|>B`` the answer follows the end of the thought.
    """
    if "<|channel|>" in text:
        starts = [start.end() for start in _FINAL_CHANNEL.finditer(text)]
        return _END_OF_MESSAGE.split(text[starts[-1] :])[0] if starts else ""
    ends = [end.end() for end in re.finditer(r"<channel\|>", text)]
    return text[ends[-1] :] if ends else text.partition("<|channel>")[0]


HEAD, TAIL = 20_000, 40_000
"""Characters kept from the beginning and the end: a verdict comes first or last."""

LONGEST_SENTENCE = 600
"""Characters of a sentence that are read, two thirds of them from its end."""

_MOST_OBJECTS = 40

# Zero-width and direction marks, NUL, lone surrogates, and the private-use characters that
# `space` puts in place of candidates.
_END_TOKEN = re.compile(r"<\|[\w ]{2,20}\|>|</s>|<(?:eos|end_of_turn|start_of_turn)>")
"""A model's own markers of a message, which some servers leave in its text."""

_BLANKS = re.compile(r"[^\S\n]{9,}")
"""A run of blanks, which patterns would look through from each of its places."""
_INVISIBLE = re.compile(
    "[\u0000\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ue000-\uf8ff]"
)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_MARKUP = re.compile(r"[*`~]+|(?m:^[ \t]*#{1,6}[ \t]+)|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])")
# A sentence ends at a line break, or at a full stop, "!" or "?" before a space or another script.
_END = re.compile(r"[\r\n]+|(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|no|Dr|Mr|Mrs|St)|^\(?\d{1,2})\.$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and whether a line begins and ends with it."""

    text: str
    begins_line: bool
    ends_line: bool


def clean(text: str) -> str:
    """The text's beginning and end, in compatibility form, without invisible and struck out
    characters."""
    # Again after the compatibility form, in which one character can become 18.
    text = _ends(unicodedata.normalize("NFKC", _ends(text)))
    text = _STRUCK.sub("", _END_TOKEN.sub("\n", _INVISIBLE.sub("", text)))
    return _BLANKS.sub(" " * 8, text).strip()


def _ends(text: str) -> str:
    if len(text) <= HEAD + TAIL:
        return text
    return text[:HEAD] + "\n" + text[-TAIL:]


def without_markup(text: str) -> str:
    """The text without the emphasis, code and heading marks of Markdown."""
    return _MARKUP.sub("", text)


def json_values(text: str) -> Iterator[tuple[int, int, Any]]:
    """The outermost JSON objects of a text with their places; at most 40 places are tried."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield start, end, value
        start = text.find("{", end)


def without_json(text: str) -> str:
    """The text without its JSON objects: one without a verdict is no sentence."""
    parts, place = [], 0
    for start, end, _ in json_values(text):
        parts.append(text[place:start])
        place = end
    return "\n".join([*parts, text[place:]])


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, long ones shortened in the middle."""
    for line in text.splitlines():
        parts: list[str] = []
        for part in _END.split(line):
            if parts and _ABBREVIATION.search(parts[-1]):
                parts[-1] += " " + part
            elif part.strip():
                parts.append(part)
        for place, part in enumerate(parts):
            yield Sentence(_shortened(part.strip()), place == 0, place == len(parts) - 1)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_SENTENCE:
        return text
    third = LONGEST_SENTENCE // 3
    return text[:third] + " … " + text[-2 * third :]
