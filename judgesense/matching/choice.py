"""Multiple-choice answers: which option a free-text response chose.

Labels are letters or numbers, in the formats of the 12 multiple-choice templates of "Artifact or
Flaw?", Appendix A. Every label in the response is a *mention*, and the strongest kind of mention
decides: a final or boxed answer, a statement ("the answer is B", "Option 2 is correct"), a
response that begins with a label ("[B] text"), an option's text given as the answer, a named
option ("option B", "(B)"), a bare label or option text. A negated option ("not A", "B is
incorrect") is not chosen; an ambiguous response is unread, never guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, cast

from judgesense.errors import JudgeSenseError
from judgesense.matching.result import AnswerMatch, Reading, Reference, accepted, collect
from judgesense.matching.words import normalize
from judgesense.statistics.inputs import is_ordered

LABEL_STYLES = ("auto", "letters", "numbers")

FINAL, STATED, LEADING, TEXT_STATED, NAMED, BARE = range(6)
"""Kinds of mention, strongest first."""


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_THINKING = _any_case(r"(?s)<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)")
_MARKUP = re.compile(
    r"\*+|`+|\$+|(?<!\w)[_'‘]+|[_'’]+(?!\w)|[\"“”«»]|\\(?:text|textbf|mathrm|mathbf)\b"
)
_LIST_MARK = re.compile(r"^[\s>#•·\-–—]+(?=\S)", re.MULTILINE)

_LABEL = re.compile(r"(?<![\w'’.\\])(?:[A-Za-z]|\d{1,2})(?![\w'’+#%°]|[.,]\d|\s*[*/=^+]\s*\d)")
_OPENED = re.compile(r"[(\[{]+\s*$")
_CLOSED = re.compile(r"^\s*[)\]}]+")
_NAME = _any_case(r"\b(?:option|choice|letter)s?\s*[:#]?\s*$")

_NOUN = r"(?:answer|choice|option|response|selection|pick)"
_IS = r"(?:is|was|(?:would|should|must|will|has\s+to|have\s+to)\s+be)"
_STATES = _any_case(
    rf"(?:\b{_NOUN}(?:\s+(?:provided|given|chosen|selected|here))?"
    rf"(?:\s+(?:to|for|that)\b[^.\n:]{{1,60}}?)?\s*(?:\b{_IS}\b\s*:?|:|=|->|→)"
    r"|\banswer|\b(?:chosen|choose|chose|selected|select|picked|pick|prefer|opt\s+for"
    r"|(?:go|going)\s+(?:with|for))\b\s*:?)"
    r"(?:\s*(?:the|be|select|choice|option|answer|letter|number|is))*\s*[:#]?\s*$"
)
_FINAL = _any_case(r"\bfinal\b[^.\n]{0,60}$")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*$")
_IS_CORRECT = _any_case(
    r"^(?:\s*[:.\-–—]?[^.\n]{0,80}?[^.\n\w])?\s*\b(?:is|would\s+be|must\s+be|seems|appears|looks)"
    r"\s+(?:to\s+be\s+)?(?:\w+ly\s+|indeed\s+)?(?:(?:the|my)\s+)?"
    r"(?:correct|right|best|true|answer|choice|most\s+(?:\w+ate|suitable|likely|fitting))\b"
)

_REJECTS = _any_case(
    r"(?:\bnot|n['’]t\s+(?:be|think|choose|select|pick)|\b(?:is|was|are)n['’]t|\bcan(?:no|['’])t"
    r"\s+be|\bneither|\bnor|\brather\s+than|\binstead\s+of|\bexcept|\bexclud\w*|\beliminat\w*"
    r"|\brul\w+\s+out|\breject\w*|\bincorrect|\bwrong|\bunlike)"
    r"(?:\s+(?:is|are|the|answers?|options?|choices?|select|:))*\s*[:(\[]*\s*$"
)
_WRONG = r"(?:incorrect|wrong|false|ruled\s+out|eliminated|rejected|out)\b"
_RATHER = r"(?:also\s+|clearly\s+|definitely\s+|obviously\s+|simply\s+|therefore\s+)?"
_IS_REJECTED = _any_case(
    # Right after the label ("B cannot be right") any denial rejects; after other words, which may
    # be the option's text ("B: they cannot fly"), only "wrong" and its synonyms do.
    rf"^\s*(?:{_RATHER}(?:(?:is|are|was|seems?|looks?|would\s+be)\s+{_RATHER}(?:not|neither)\b"
    r"|(?:is|are|was|does|do|did)n['’]?t\b|can(?:not\b|['’]?t\b)|(?:does|do|did)\s+not\b)"
    rf"|[:.]?\s*(?:[^\s.,;]+\s+){{0,4}}?(?:is|are|was|seems?|looks?|(?:would|can|could|should)\s+be)\s+"
    rf"{_RATHER}(?:{_WRONG}|not\s+(?:the\s+)?(?:correct|right|best|answer)\b)"
    rf"|[:.]?\s*\(?(?:incorrect|wrong)\b)"
)
_JOINS = _any_case(
    r"^\s*[)\]}]?\s*(?:[,/&]|\bor\b|\band\b)(?:\s|[,/&]|\bor\b|\band\b)*(?:option|choice)?\s*[(\[{]?\s*$"
)

# Text after a capital A or I that is a label, not an article or a pronoun.
_AFTER_LETTER = re.compile(
    r"^\s*(?:$|[.,;:!?/\n]|[-–—]\s|(?:because|since|as|which|for|with|is|was|and|or|but|not|"
    r"instead|rather|based|due|given|here|seems|appears|would|must|looks|cannot)\b)"
)
# Text after a number that is a label, not a quantity ("2 metres", "2 + 2").
_AFTER_NUMBER = re.compile(
    r"^\s*(?:$|[.,;:!?\n]|[-–—]\s|(?:because|since|as|which|is|and|or|but|not|rather|based|due|"
    r"given|here)\b)"
)
_BEFORE_BARE = _any_case(
    r"(?:^|[\n.,:;!?—–-]|\b(?:is|it['’]s|its|be|say|think|definitely|probably|maybe|perhaps|but|"
    r"so|therefore|thus|hence|guess|was|likely|certainly|clearly|either|or|and))\s*$"
)
_TEXT_STATES = re.compile(
    rf"(?:^|\b{_NOUN}(?: (?:is|was|would be|should be|must be|most likely|likely|option))*)\s*$"
)


@dataclass(frozen=True, slots=True)
class _Mention:
    letter: str
    kind: int
    rejected: bool = False


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
        The choice. Of several statements the last counts, and a final answer beats others. A
        response is unread (``value`` None, with the problem) if it names no option, several at
        once, or only options that it rejects.

    Raises:
        JudgeSenseError: an unknown style, or under 2 or over 26 options.

    >>> read_choice("Not A; I would go for C.").value
    'C'
    >>> read_choice("Either A or B.").problem
    'several options'
    """
    if labels not in LABEL_STYLES:
        raise JudgeSenseError(f"unknown labels {labels!r}; choose one of {', '.join(LABEL_STYLES)}")
    _check_count(n_options if options is None else len(options))
    n_options = n_options if options is None else len(options)
    text = clean(text)
    if not text:
        return Reading(None, "empty response")
    texts = [normalize(option) for option in options or ()]
    named = list(_label_mentions(text, n_options, texts, labels))
    denied = {mention.letter for mention, _ in named if mention.rejected}
    told = [pair for pair in _text_mentions(text, texts, labels) if pair[0].letter not in denied]
    mentions = [*named, *told]
    chosen = [pair for pair in mentions if not pair[0].rejected]
    if not chosen:
        return Reading(None, "only rejected options" if mentions else "no option named")
    strongest = min(mention.kind for mention, _ in chosen)
    best = [(mention.letter, group) for mention, group in chosen if mention.kind == strongest]
    if strongest in (FINAL, STATED):
        best = [(letter, group) for letter, group in best if group == best[-1][1]]
    letters = {letter for letter, _ in best}
    return Reading(letters.pop()) if len(letters) == 1 else Reading(None, "several options")


def match_choice(
    predictions: Sequence[str],
    references: Sequence[Reference],
    n_options: int = 4,
    options: Sequence[Sequence[str]] | None = None,
    labels: str = "auto",
) -> AnswerMatch:
    """1.0 for every response that chose the correct option, else 0.0.

    Args:
        predictions: the responses, n strings.
        references: letters, numbers from 1, or (with ``options``) the options' texts.
        n_options: number of options of every example; ignored with ``options``.
        options: per example, its option texts in the order shown.
        labels: as :func:`read_choice`.

    Returns:
        The scores and readings.

    Raises:
        JudgeSenseError: a reference that names no option; names the row.

    >>> match_choice(["The answer is (B).", "Paris"], ["B", "1"]).per_example
    [1.0, 0.0]
    """
    _check_options(options)
    if options is not None and len(options) != len(predictions):
        raise JudgeSenseError(
            f"options has {len(options)} rows and predictions {len(predictions)}; "
            "pass the option texts of each example"
        )
    scored = []
    for row, (said, wanted) in enumerate(zip(predictions, references, strict=True)):
        shown = None if options is None else options[row]
        count = n_options if shown is None else len(shown)
        _check_count(count)
        correct = {_reference_letter(answer, count, shown, row) for answer in accepted(wanted)}
        reading = read_choice(said, n_options, shown, labels)
        scored.append((float(reading.value in correct), reading))
    return collect("choice", scored)


def _check_count(n_options: object) -> None:
    if (
        isinstance(n_options, bool)
        or not isinstance(n_options, Integral)
        or not 2 <= int(n_options) <= 26
    ):
        raise JudgeSenseError(f"n_options is {n_options!r}: pass 2 to 26 options")


def _check_options(options: object) -> None:
    """Refuse options that are not a list of texts for each example; names the row."""
    if options is None:
        return
    if not is_ordered(options):
        raise JudgeSenseError(
            f"options is a {type(options).__name__}; pass the option texts of each example"
        )
    for row, shown in enumerate(cast("Sequence[Any]", options)):
        if not is_ordered(shown) or not all(isinstance(text, str) for text in shown):
            raise JudgeSenseError(
                f"options, row {row}: {shown!r} is not a list of texts; pass the options as shown"
            )


def _reference_letter(answer: str, count: int, shown: Sequence[str] | None, row: int) -> str:
    texts = [normalize(option) for option in shown or ()]
    bare = answer.strip(" ()[].:")
    if bare in tuple(_letters(count)):
        return bare
    if texts.count(normalize(answer)) == 1:
        return _letters(count)[texts.index(normalize(answer))]
    if bare.isdigit() and 1 <= int(bare) <= count:
        return _letters(count)[int(bare) - 1]
    raise JudgeSenseError(
        f"references, row {row}: {answer!r} is not one of the labels A-{_letters(count)[-1]} or "
        f"1-{count}"
        + (f" or of the texts {list(shown)}" if shown else "; pass options to match texts")
    )


def clean(text: str) -> str:
    """The response without thinking, Markdown and list marks, full-width letters made plain.

    >>> clean("<think>A?</think> **(B)**")
    '(B)'
    """
    text = unicodedata.normalize("NFKC", _THINKING.sub(" ", text))
    return _LIST_MARK.sub("", _MARKUP.sub("", text)).strip()


def _letters(count: int) -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]


def _label_mentions(
    text: str, n_options: int, texts: Sequence[str], style: str
) -> Iterator[tuple[_Mention, int]]:
    """The labels in a response, each with the number of its group ("A or B")."""
    previous: _Mention | None = None
    previous_end = group = 0
    restated = _restates_options(text, n_options)
    for found in _LABEL.finditer(text):
        index = _index(found.group(), style)
        if index is None or index >= n_options:
            continue
        before, after = text[: found.start()], text[found.end() :]
        letter = _letters(n_options)[index]
        joined = previous is not None and _JOINS.match(text[previous_end : found.start()])
        rest = _CLOSED.sub("", after)
        own_text = _own_text(rest, texts[index : index + 1])
        kind = _kind(found.group(), before, after, own_text is not None, texts, style)
        if kind == LEADING and restated:
            kind = None
        denied = bool(_IS_REJECTED.match(rest if own_text is None else own_text))
        if joined and previous is not None and found.group().isupper():
            if found.group() in "AI" and not _AFTER_LETTER.match(rest):
                continue
            mention = _Mention(letter, previous.kind, previous.rejected or denied)
        elif kind is None:
            continue
        else:
            group += 1
            mention = _Mention(letter, kind, denied or _denies(_OPENED.sub("", before)))
        previous, previous_end = mention, found.end()
        yield mention, group


def _denies(before: str) -> bool:
    return bool(_REJECTS.search(before))


def _own_text(rest: str, own: Sequence[str]) -> str | None:
    """The text after the label's own option text, normalised; None if another text follows."""
    following = f"{normalize(rest)} "
    if not own or not own[0] or not following.startswith(f"{own[0]} "):
        return None
    return following[len(own[0]) :]


def _index(label: str, style: str) -> int | None:
    if label.isdigit():
        return int(label) - 1 if style != "letters" and label != "0" else None
    return ord(label.upper()) - ord("A") if style != "numbers" else None


def _kind(
    label: str, before: str, after: str, has_text: bool, texts: Sequence[str], style: str
) -> int | None:
    """The kind of a label's mention; None if it is a word or a quantity."""
    opened, closed = _OPENED.search(before), _CLOSED.match(after)
    enclosed = bool(opened and closed)
    outside = before[: opened.start()] if opened else before
    rest = after[closed.end() :] if closed else after
    name = _NAME.search(outside)
    if not (enclosed or closed or name or has_text):
        if label.isdigit():
            also_a_text = label in texts and texts.index(label) != int(label) - 1
            if not _AFTER_NUMBER.match(rest) or (also_a_text and style != "numbers"):
                return None
        elif label.islower() and not re.match(r"\s*(?:$|[.,;:\n])", rest):
            return None
        if label in "AI" and not _AFTER_LETTER.match(rest):
            return None
    if _BOXED.search(outside) or (_FINAL.search(outside) and _STATES.search(outside)):
        return FINAL
    if _STATES.search(outside):
        return STATED
    if not label.islower() and _IS_CORRECT.match(rest) and (not label.isdigit() or name):
        return STATED
    if not outside[: name.start() if name else None].strip():
        return LEADING
    if enclosed or name:
        return NAMED
    if label.isdigit() or label.islower():
        return None
    if not _BEFORE_BARE.search(outside) and not _REJECTS.search(outside):
        return None
    return BARE if closed or _AFTER_LETTER.match(rest) or has_text else None


def _restates_options(text: str, n_options: int) -> bool:
    """Whether the response starts by listing the options: lines that begin with A, B (or 1, 2)."""
    lines = re.findall(r"(?im)^(?:option\s*|select\s+option\s*)?[(\[]?([A-Z]|\d{1,2})\b", text)
    indices = [index for label in lines if (index := _index(label, "auto")) is not None]
    return indices[:2] == [0, 1] and n_options >= 2


def _text_mentions(text: str, texts: Sequence[str], style: str) -> Iterator[tuple[_Mention, int]]:
    """The options whose whole text occurs in a response, the longest first if they nest.

    A number that is another option's label does not count as text, unless labels are letters.
    """
    labels = {str(index + 1) for index in range(len(texts))} if style != "letters" else set()
    left = f" {normalize(text)} "
    spans = []
    for index in sorted(range(len(texts)), key=lambda index: -len(texts[index])):
        option = f" {texts[index]} "
        if texts[index] not in {"", *labels} and (place := left.find(option)) >= 0:
            spans.append((place, place + len(option), index))
            left = left.replace(option, f" {'|' * len(texts[index])} ")
    mention: _Mention | None = None
    previous_end = 0
    for start, end, index in sorted(spans):
        before, after = left[:start], left[end:]
        letter = _letters(len(texts))[index]
        if mention is not None and left[previous_end:start].strip() in ("and", "or"):
            mention = _Mention(letter, mention.kind, mention.rejected)
        else:
            rejected = bool(_REJECTS.search(before) or _IS_REJECTED.match(after))
            kind = TEXT_STATED if _TEXT_STATES.search(before) else BARE
            mention = _Mention(letter, kind, rejected)
        previous_end = end
        yield mention, -1
