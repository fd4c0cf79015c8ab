"""Multiple-choice answers: which option a free-text response chose.

Labels are letters or numbers, in the formats of the 12 multiple-choice templates of "Artifact or
Flaw?", Appendix A. The response is read by the grammar that reads judges' verdicts
(:mod:`judgesense.answers`): the letters are the options, the numbers and the options' texts further
names for them. A negated option is not chosen; an ambiguous response is unread, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase as _LETTERS

from judgesense.answers.matching.result import AnswerMatch, Reading, Reference, accepted, collect
from judgesense.answers.matching.words import normalize
from judgesense.answers.reader import read
from judgesense.answers.space import Space
from judgesense.answers.text import clean, without_thinking
from judgesense.errors import JudgeSenseError
from judgesense.statistics.inputs import is_ordered

LABEL_STYLES = ("auto", "letters", "numbers")
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)


def read_choice(
    text: str,
    n_options: int = 4,
    options: Sequence[str] | None = None,
    labels: str = "auto",
) -> Reading:
    """The option that a response chose, as a letter: "A" for the first option, whatever its label.

    Args:
        text: the response. Thinking between ``<think>`` tags is left out.
        n_options: number of options; ignored with ``options``.
        options: the options' texts; a response may then name an option by its text.
        labels: the labels in the prompt: "letters", "numbers" (1 for the first) or "auto" for
            either.

    Returns:
        The choice. A response is unread (``value`` None, with the problem) if it names no option,
        only options that it rejects, or several.

    Raises:
        JudgeSenseError: an unknown style, or under 2 or over 26 options.

    >>> read_choice("Not A; I would go for C.").value
    'C'
    >>> read_choice("Either A or B.").problem
    'no single option'
    """
    space = _space(n_options, None if options is None else tuple(options), labels)
    text = clean(without_thinking(text))
    if not text:
        return Reading(None, "empty response")
    letter = read(text, space)
    if letter:
        return Reading(letter)
    return Reading(None, "no option chosen" if letter is None else "no single option")


@lru_cache(maxsize=4096)
def _space(n_options: int, options: tuple[str, ...] | None, style: str) -> Space:
    """The letters, with the numbers and the options' texts as further names.

    A number that is one option's label and another's text names neither, unless the style tells.
    """
    if style not in LABEL_STYLES:
        raise JudgeSenseError(f"unknown labels {style!r}; choose one of {', '.join(LABEL_STYLES)}")
    count = n_options if options is None else len(options)
    if count not in range(2, 27):
        raise JudgeSenseError(f"n_options is {count!r}: pass a number from 2 to 26")
    letters = _LETTERS[:count]
    texts = [_ARTICLE.sub("", text.strip(" .")) for text in options or ()]
    names: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        number = str(place + 1)
        named_elsewhere = number in [*texts[:place], *texts[place + 1 :]]
        if style == "numbers" or (style == "auto" and not named_elsewhere):
            names.append((number, letter))
        elif style == "auto":
            names.append((f"option {number}", letter))
    numbers = set() if style == "letters" else {str(place + 1) for place in range(count)}
    for letter, text in zip(letters, texts, strict=False):
        if texts.count(text) == 1 and text not in {*letters, *numbers} and normalize(text):
            names.append((text, letter))
    return Space(tuple(letters), tuple(names))


def match_choice(
    predictions: Sequence[str],
    references: Sequence[Reference],
    n_options: int = 4,
    options: Sequence[Sequence[str]] | None = None,
    labels: str = "auto",
) -> AnswerMatch:
    """1.0 for every response that chose the correct option, else 0.0.

    ``references`` are letters, numbers from 1, or the options' texts; ``options``, per example, its
    option texts in the order shown; ``n_options`` and ``labels`` as in :func:`read_choice`.

    Raises:
        JudgeSenseError: a reference that names no option, or options that are no lists of texts;
            names the row.

    >>> match_choice(["The answer is (B).", "Paris"], ["B", "1"]).per_example
    [1.0, 0.0]
    """
    if options is not None and (not is_ordered(options) or len(options) != len(predictions)):
        raise JudgeSenseError(
            f"options must hold the option texts of each of the {len(predictions)} examples"
        )
    scored = []
    for row, (response, reference) in enumerate(zip(predictions, references, strict=True)):
        shown = None if options is None else options[row]
        if shown is not None and not (is_ordered(shown) and all(isinstance(t, str) for t in shown)):
            raise JudgeSenseError(
                f"options, row {row}: {shown!r} is not a list of texts; pass the options as shown"
            )
        reading = read_choice(response, n_options, shown, labels)
        count = n_options if shown is None else len(shown)
        correct = {_reference_letter(answer, count, shown, row) for answer in accepted(reference)}
        scored.append((float(reading.value in correct), reading))
    return collect("choice", scored)


def _reference_letter(answer: str, count: int, shown: Sequence[str] | None, row: int) -> str:
    texts = [normalize(option) for option in shown or ()]
    bare = answer.strip(" ()[].:")
    if len(bare) == 1 and bare in _LETTERS[:count]:
        return bare
    if texts.count(normalize(answer)) == 1:
        return _LETTERS[texts.index(normalize(answer))]
    if bare.isdecimal() and 1 <= int(bare) <= count:
        return _LETTERS[int(bare) - 1]
    raise JudgeSenseError(
        f"references, row {row}: {answer!r} is not one of the labels A-{_LETTERS[count - 1]} or "
        f"1-{count}"
        + (f" or of the texts {list(shown)}" if shown else "; pass options to match texts")
    )


def match_likelihood(
    option_logprobs: Sequence[Sequence[float]], references: Sequence[int]
) -> AnswerMatch:
    """1.0 for every example whose correct option has the highest log-likelihood, else 0.0.

    Source: "Artifact or Flaw?", section 3.1. A tie for the highest is unread: no option was
    preferred. Per example, ``option_logprobs`` are the log-probabilities in nats of each option's
    whole token sequence, and ``references`` the index of the correct option, from 0; ``readings``
    are indices as text.

    >>> match_likelihood([[-1.0, -2.0], [-3.0, -0.5]], [0, 0]).per_example
    [1.0, 0.0]
    """
    scored = []
    for logprobs, correct in zip(option_logprobs, references, strict=True):
        best = [index for index, value in enumerate(logprobs) if value == max(logprobs)]
        if len(best) > 1:
            scored.append((0.0, Reading(None, "options tie")))
        else:
            scored.append((float(best[0] == correct), Reading(str(best[0]))))
    return collect("likelihood", scored)
