"""What a text states about its verdict, and the one verdict that follows from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from judgesense.answers.text import Sentence
from judgesense.answers.vocabulary import pattern

IS_WRONG = pattern(
    r"(?:answer\s+)?(?:(?:is|are|was|seems?|looks?|would\s+be|can\s+be)\s+(?:\w+ly\s+)?)?"
    r"(?:incorrect|wrong|false|inaccurate|ruled\s+out|eliminated|rejected"
    r"|not\s+(?:the\s+)?(?:\w+ly\s+)?(?:correct|right|true|accurate|best|answer))\b"
    r"|(?:is|are|was|does|do|did)n['’]?t\b|can(?:not\b|['’]?t\b)|(?:does|do|did)\s+not\b"
    r"|(?:it|this|that)\s+(?:is|was)(?:\s+not|n['’]?t)\b"
)
"""What follows an option that is denied: "B is incorrect", "A cannot be right"."""

WRONG_SOON = pattern(
    rf"[\s:.,)\]-]*(?:{IS_WRONG.pattern}|(?:[^\s.,;:]+\s+){{0,4}}?(?:is|are)\s+(?:\w+ly\s+)?"
    r"(?:incorrect|wrong|false|not\s+(?:correct|right))\b)"
)
"""The same after an option that begins a text, also after the option's own words."""

_OPEN_END = re.compile(r"[a-z,]$")
_MOST_WORDS_OF_A_LABEL = 5


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence's verdict; ``option`` is "" for a tie, or a score that is none of the options.

    ``place`` is the number of the sentence, from 0. A decisive statement concludes ("therefore",
    "final"), or is the writer's own choice. An overall one weighs what was said before it.
    """

    place: int
    option: str
    decisive: bool = False
    tie: bool = False
    overall: bool = False


def settled(
    statements: Sequence[Statement], sentences: Sequence[Sentence], first: int
) -> list[Statement]:
    """The statements that count: before an end that was cut off, only those that conclude.

    ``first`` is the number of sentences that count as well, as they may be the answer.
    """
    if not is_cut_off(sentences):
        return [*statements]
    last = len(sentences) - 1
    return [each for each in statements if each.decisive or not first <= each.place < last]


def is_cut_off(sentences: Sequence[Sentence]) -> bool:
    """Whether a text ends within a sentence: "Sentence 4:", "and the user"."""
    last = sentences[-1]
    goes_on = not last.begins_line and len(last.text.split()) > _MOST_WORDS_OF_A_LABEL
    is_open = last.text.endswith(":") or (goes_on and _OPEN_END.search(last.text))
    return len(sentences) > 1 and bool(is_open)


def conclusion(
    lead: str | None,
    last: str | None,
    statements: Sequence[Statement],
    *,
    criteria: bool = False,
) -> str | None:
    """The verdict of a text; "" where it contradicts itself, None where it states none.

    ``lead`` is the option that the text begins with, ``last`` the one that is the whole last line,
    and ``statements`` are what the sentences state, in order. With ``criteria``, statements that do
    not conclude may be about single criteria, as scores are, and do not contradict a conclusion.
    """
    decisive = [s for s in statements if s.decisive and (lead is None or s.place > 0)]
    if lead is not None:
        options = {s.option for s in decisive if not s.tie} | ({last} if last else set())
        return lead if options <= {lead} else ""
    if last is not None:
        decisive.append(Statement(len(statements) + 1_000_000, last, True, overall=True))
    if decisive:
        verdict = decisive[-1]
        if not verdict.tie:  # "neither is perfect" before it is no verdict
            decisive = [s for s in decisive if not s.tie]
        others = [s for s in statements if not (s.decisive or s.tie or criteria)]
        # Straight after a choice, "overall" contradicts it; after a review it weighs it.
        first = -1 if verdict.overall and verdict.place > 1 else 0
        against = [s for s in others if s.place == first or s.place > verdict.place]
        if not verdict.tie and any(s.tie and s.place > verdict.place for s in statements):
            return ""  # "Verdict: 1", and then "I can't determine a winner".
        agree = all(s.option == verdict.option for s in (*decisive, *against))
        return verdict.option if agree else ""
    ties = [s.place for s in statements if s.tie]
    options = {s.option for s in statements if not s.tie}
    if ties and ties[-1] > max((s.place for s in statements if not s.tie), default=-1):
        return statements[-1].option
    return options.pop() if len(options) == 1 else "" if statements else None
