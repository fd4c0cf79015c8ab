"""What the rules of damage know: the kinds of ``data/damage.yaml``, and an output to change."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

import numpy as np

from judgesense.files.documents import Shape, read_yaml, validate
from judgesense_dataset.templates import DATA

DAMAGE = DATA / "damage.yaml"
ENGLISH_SHARE = 0.12
"""The least share of English function words; German, Dutch and French texts have up to 0.08."""
SHORTEST = 4
"""Words of a text that a sentence or opener is added to."""

_CODE = re.compile(r"```|^\s*(?:def |class |import |#include|public |var |<\w+>)|[;{]\s*$", re.M)
# What is longer than a line or two is no quotation; an end that is missing costs no more time.
_PROTECTED = re.compile(
    r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|‘[^’\n]{0,400}’"
    r"|(?<!\w)'[^'\n]{1,400}'(?!\w)|\$[^$\n]{1,400}\$|\\[\[(].{0,400}?\\[\])]"
    r"|https?://\S{1,400}|[\w.+-]{1,64}@\S{1,64}|^\s*\d{1,9}[.)]",
    re.M,
)
_MOST_SENTENCES = 200
"""Sentences of an output that are looked at, so that a long one takes little time."""
_SENTENCE = re.compile(r"[^\s.!?](?:[^.!?\n]|[.!?](?=\S))*(?:[ \t]*[.!?]+)?")


class Kind(Shape, extra="forbid"):
    """A kind of change: what it does, and the criteria under which it is damage."""

    about: str
    criteria: tuple[str, ...] = ()
    english: bool = False


class Rules(Shape, extra="forbid"):
    """The kinds of ``damage.yaml``, and the words that the rules know."""

    damage: dict[str, Kind]
    harmless: dict[str, Kind]
    criteria: dict[str, str]
    creative: str
    english: frozenset[str]
    placeholders: tuple[str, ...]
    openers: tuple[str, ...]
    units: dict[str, str]
    spellings: dict[str, str]


@lru_cache(maxsize=1)
def rules() -> Rules:
    """The rules of the package."""
    return validate(Rules, read_yaml(DAMAGE), str(DAMAGE), "the rules of damage")


def kinds_for(wording: str, unnamed: bool = True) -> list[str]:
    """The kinds of damage that a rubric of this wording should mark down.

    None for one about tone or form, whatever an output says. A rubric that names no criterion is
    about facts and quality if ``unnamed``. One about quality and tone that does not name facts need
    not mark down a wrong number.

    >>> kinds_for("Is the tone polite?"), "number" in kinds_for("Is it factually correct?")
    ([], True)
    >>> kinds_for("Is it polite and helpful?")
    ['contradiction', 'foreign-sentence', 'cut', 'other-output', 'empty', 'steps']
    """
    kinds = {
        name
        for name, words in rules().criteria.items()
        if re.search(rf"\b(?:un|in|ir)?(?:{words})", wording, re.IGNORECASE)
    }
    if not kinds and unnamed:
        kinds = {"fact", "quality"}
    is_uncertain = "other" in kinds and "fact" not in kinds
    return [
        name
        for name, kind in rules().damage.items()
        if kinds & {*kind.criteria} and not (is_uncertain and kind.criteria == ("fact", "quality"))
    ]


@dataclass(frozen=True)
class Output:
    """An output to change: its text, what was asked, and the outputs of other clusters.

    ``asked`` are the fields that a reader sees with it, ``question`` those of them that ask.
    """

    text: str
    question: str = ""
    asked: str = ""
    others: Sequence[str] = ()

    @cached_property
    def is_json(self) -> bool:
        """Whether it is a JSON object or list."""
        return is_json(self.text)

    @cached_property
    def is_code(self) -> bool:
        """Whether it has code, whose parts no rule can tell apart."""
        return bool(_CODE.search(self.text)) and not self.is_json

    @cached_property
    def is_english(self) -> bool:
        """Whether enough of its words, with those of the question, are English function words."""
        words = re.findall(r"[^\W\d_]+", f"{self.text} {self.question}".lower())
        return sum(word in rules().english for word in words) >= max(1, ENGLISH_SHARE * len(words))

    @cached_property
    def is_creative(self) -> bool:
        """Whether the task is to invent, so that no number or name can be wrong."""
        return bool(re.search(rf"\b(?:{rules().creative})", self.question, re.IGNORECASE))

    @cached_property
    def protected(self) -> list[tuple[int, int]]:
        """The spans that no rule changes: quotations, code, formulas and addresses."""
        return [match.span() for match in _PROTECTED.finditer(self.text)]

    def free(self, start: int, end: int) -> bool:
        """Whether a span lies outside the protected ones, which are in order."""
        at = bisect_right(self.protected, start, key=lambda span: span[1])
        return at == len(self.protected) or end <= self.protected[at][0]

    @cached_property
    def sentences(self) -> list[tuple[int, str]]:
        """Where each of the first sentences begins, and the sentence."""
        matches = islice(_SENTENCE.finditer(self.text), _MOST_SENTENCES)
        return [(match.start(), match.group()) for match in matches]


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    try:
        return isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


Rule = Callable[[Output, np.random.Generator], str | None]

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def pick(texts: Sequence[str], rng: np.random.Generator) -> str | None:
    """One of some texts, None of none."""
    return texts[int(rng.integers(len(texts)))] if texts else None


def put(text: str, start: int, end: int, new: str) -> str:
    """A text with another one in a span."""
    return text[:start] + new + text[end:]
