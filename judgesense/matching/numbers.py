"""Numerical answers of word problems: which number a free-text response gives."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judgesense.errors import JudgeSenseError
from judgesense.matching.maths import last_boxed
from judgesense.matching.result import AnswerMatch, Reading, Reference, accepted, collect

_NUMBER = re.compile(r"(?<![\w.])-?\$?\d(?:[\d,]*\d)?(?:\.\d+)?(?![\d])")
_MARKED = re.compile(r"####\s*(.*)")
_STATED = re.compile(r"(?i)\banswer\b(?:\s+(?:is|to|for)\b[^.\n=:]{0,60}?)?\s*(?:is|:|=)?\s*(.*)")


def read_number(text: str) -> Reading:
    """The number that a response gives, without thousands separators and currency signs.

    Sources, in this order: the text after the last ``####``; the last ``\\boxed{}``; the first
    number after the last "answer ..." (of an equation, after its last sign); the last number of the
    response (the usual flexible extraction for GSM8K). A response without a number is unread (None,
    with the problem).

    >>> read_number("That makes $1,234 in all.").value
    '1234'
    """
    marked = _MARKED.findall(text)
    boxed = last_boxed(text)
    stated = _STATED.findall(text)
    for part in (*marked[-1:], *([boxed] if boxed else ()), *stated[-1:]):
        if found := _NUMBER.search(part.rpartition("=")[2]) or _NUMBER.search(part):
            return Reading(_plain(found.group()))
    numbers = _NUMBER.findall(text)
    if numbers:
        return Reading(_plain(numbers[-1]))
    return Reading(None, "no number" if text.strip() else "empty response")


def match_number(predictions: Sequence[str], references: Sequence[Reference]) -> AnswerMatch:
    """1.0 for every response whose number equals an accepted one, else 0.0.

    Raises JudgeSenseError for a reference that is not a number; names the row (from 0).

    >>> match_number(["#### 7", "about 8"], ["7.0", "9"]).per_example
    [1.0, 0.0]
    """
    scored = []
    for row, (said, wanted) in enumerate(zip(predictions, references, strict=True)):
        reading = read_number(said)
        try:
            answers = {float(_plain(answer)) for answer in accepted(wanted)}
        except ValueError as error:
            raise JudgeSenseError(
                f"references, row {row}: {wanted!r} is not a number; use the method math"
            ) from error
        right = reading.value is not None and float(reading.value) in answers
        scored.append((float(right), reading))
    return collect("number", scored)


def _plain(text: str) -> str:
    return text.replace(",", "").replace("$", "").strip()
