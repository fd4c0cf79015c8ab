"""Numerical answers of word problems: which number a free-text response gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from judgesense.answers.matching.maths import last_boxed
from judgesense.answers.matching.result import AnswerMatch, Reading, Reference, accepted, collect
from judgesense.errors import JudgeSenseError

_DIGITS = r"\$?\d(?:,?\d)*+(?:\.\d++)?"
_NUMBER = re.compile(rf"(?<![\w.])-?{_DIGITS}")
_MARKED = re.compile(r"####([^\n]*)")
_STATED = re.compile(
    # A noun phrase ("the answer to the question", "Final result"), not "to answer the question".
    r"(?i)(?<!\bto )(?<!\bcan )(?<!\bwill )(?<!\bplease )\b"
    r"(?:answer|final\s+(?:result|value|number))\b[^.:=\n\d]{0,60}?"
    # What states it. Markup and quotes may surround the colon: **Answer:** 7, {"answer": 7}.
    r"(?:\b(?P<verb>is|was|equals|would\s+be|should\s+be|must\s+be|will\s+be|comes\s+to)\b"
    r"(?!\s+not\b|n['’]t)\s*:?|[\"'*_\s]{0,4}[:=])"
)
_REVERSED = re.compile(
    rf"(?i)(?<![\w.,])({_DIGITS})[^.\n\d]{{0,30}}\s(?:is|as)\s+(?:the|my|our)\s[\w\s]{{0,12}}?answer\b"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|[\"'*_)]|$)")
_FILLER = re.compile(
    r"(?i)(?:[\s*_\"'`~≈=:(\[{\\]|approximately|about|exactly|therefore|thus|simply|just|equal to"
    r"|a total of|text\b|usd|eur|[€£]|[a-z]\s*=)*"
)
_LONGEST = 300
"""Characters read after the words that state an answer; bounds the time on a line without end."""
_OPERATOR = re.compile(r"\s*(?:[+*/×÷^=]|\\times|\\div|[-–−]\s*[\d$]|(?:plus|minus|times)\b)")


def read_number(text: str) -> Reading:
    """The number that a response gives, without thousands separators and currency signs.

    The first of these that holds a number: the text after the last ``####``; the last
    ``\\boxed{}``; the last sentence that states an answer ("The answer is 7", "Answer: 7", "7 is
    the answer"; of an equation, what follows its last sign); else the last number of the response,
    which is the flexible extraction usual for GSM8K. The word "answer" alone states nothing: "To
    answer the question, we add 3 and 10 to get 13" gives 13. A response without a number is unread
    (None, with the problem).

    >>> read_number("That makes $1,234 in all.").value
    '1234'
    >>> read_number("To answer the question, we add 3 and 10 to get 13.").value
    '13'
    """
    marked = _MARKED.findall(text)
    boxed = last_boxed(text)
    for part in (*marked[-1:], *([boxed] if boxed else ())):
        if found := _NUMBER.search(part.rpartition("=")[2]) or _NUMBER.search(part):
            return Reading(_plain(found.group()))
    if stated := list(_statements(text)):
        return Reading(_plain(max(stated)[1]))
    numbers = _NUMBER.findall(text)
    if numbers:
        return Reading(_plain(numbers[-1]))
    return Reading(None, "no number" if text.strip() else "empty response")


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The places and numbers of the sentences that state an answer."""
    for found in _STATED.finditer(text):
        line = text[found.end() : found.end() + _LONGEST].lstrip().partition("\n")[0]
        if (number := _stated(line, found["verb"] is not None)) is not None:
            yield found.start(), number
    for found in _REVERSED.finditer(text):
        yield found.start(), found[1]


def _stated(rest: str, by_verb: bool) -> str | None:
    """The number that a statement's rest of line gives, None if it is not the answer.

    After a colon ("Answer:") a whole reasoning may follow: only a number that comes at once, or an
    equation with no number behind its result, is taken there.
    """
    end = _SENTENCE_END.search(rest)
    sentence = rest[: end.start()] if end else rest
    filler = _FILLER.match(sentence)
    direct = _NUMBER.match(sentence, filler.end() if filler else 0)
    shown = by_verb or (direct is not None and "=" not in rest[direct.end() :])
    if direct and shown and not _OPERATOR.match(sentence, direct.end()):
        return direct.group()
    _, sign, value = sentence.rpartition("=")
    numbers: list[str] = _NUMBER.findall(value if sign else sentence)
    # The result of an equation has to be the last number of its line.
    ends = len(_NUMBER.findall(value)) == 1 and not (end and _NUMBER.search(rest, end.end()))
    if not numbers or (not by_verb and not (direct and sign and ends)):
        return None
    return numbers[0 if sign else -1]


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
