"""The polarity of a wording: does its YES, A or 5 mean the canonical YES, A or 5?

The polarity of a known template is known. That of other wordings is read from cues in the text
("contains errors", "less relevant", "NO (accurate)"), and open if there are none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from judgesense.tasks import is_scale

DIRECT, INVERTED = "direct", "inverted"

_GOOD = (
    r"(?:accurate|correct|true|right|factual|valid|good|best|excellent|perfect|coherent"
    r"|(?:very|highly|fully|most) \w+|no errors?|error-free)"
)
_BAD = (
    r"(?:inaccurate|incorrect|untrue|false|wrong|errors?|has errors?|contains? errors?|mistakes?"
    r"|invalid|bad|poor|worst|incoherent|not \w+|least \w+)"
)
_LEGEND = r"\s*(?:\(|=|:|means|if)\s*\(?\s*(?:it is |it's |the \w+ is )?"
_FREE_OF_ERRORS = re.compile(
    r"\b(?:free (?:of|from)|without|no|any lack of)(?: any)?(?: factual)? (?:errors?|mistakes?)\b",
    re.IGNORECASE,
)
_BAD_QUESTION = re.compile(
    r"\b(?:errors?|mistakes?|inaccura\w+|incorrect\w*|false\w*|wrong\w*|untrue|mislead\w*"
    r"|hallucinat\w*|incoherent\w*|incoherence)\b",
    re.IGNORECASE,
)
_FACTUAL_ERRORS = re.compile(r"\bfactual(?:ly)? (?:errors?|mistakes?)\b", re.IGNORECASE)
_FACTUALLY_WRONG = re.compile(
    r"\bfactually (?:inaccurate|incorrect|false|wrong|untrue|misleading)\b", re.IGNORECASE
)
_GOOD_QUESTION = re.compile(
    r"\b(?:accura\w+|correct\w*|true|truth\w*|right|factual\w*|valid|coheren\w+)\b", re.IGNORECASE
)
_WORSE = re.compile(
    r"\b(?:less|least) \w+|\b(?:worse|worst|inferior|weaker|poorer|irrelevant)\b", re.IGNORECASE
)
_BETTER = re.compile(
    r"\b(?:more|most) \w+|\b(?:better|best|superior|stronger|prefer\w*|higher quality)\b",
    re.IGNORECASE,
)


def polarity_cue(instruction: str, labels: Sequence[str]) -> str | None:
    """DIRECT or INVERTED if the wording contains a cue, else None.

    A legend ("Answer NO (accurate)") comes first, then the subject of the question.

    >>> polarity_cue("Does the response contain errors? YES or NO.", ("YES", "NO"))
    'inverted'
    """
    first, last = labels[0], labels[-1]
    if is_scale(labels):
        first, last = last, first  # The good end of a scale is its last level.
    for label, words, verdict in (
        (first, _BAD, INVERTED),
        (last, _GOOD, INVERTED),
        (first, _GOOD, DIRECT),
        (last, _BAD, DIRECT),
    ):
        if re.search(
            rf"\b{re.escape(label)}{_LEGEND}{words}\b",
            instruction,
            re.IGNORECASE if len(label) > 1 else 0,
        ):
            return verdict
    if set(labels) == {"A", "B"}:
        worse, better = _WORSE.search(instruction), _BETTER.search(instruction)
        if bool(worse) != bool(better):
            return INVERTED if worse else DIRECT
        return None
    text = _FREE_OF_ERRORS.sub("correct", instruction)
    bad, good = _BAD_QUESTION.search(text), _GOOD_QUESTION.search(text)
    if bool(bad) != bool(good):
        return INVERTED if bad else DIRECT
    if bad and good and _FACTUAL_ERRORS.search(text):
        return INVERTED
    if bad and not _GOOD_QUESTION.search(_FACTUALLY_WRONG.sub("", text)):
        return INVERTED
    return None


def is_identity(label_map: Mapping[str, str]) -> bool:
    """Whether every raw answer means the label of the same name."""
    return all(raw == label for raw, label in label_map.items())


def inverted_map(labels: Sequence[str]) -> dict[str, str]:
    """The label map of an inverted wording: the labels in reverse."""
    return dict(zip(labels, reversed(labels), strict=True))


def names_answer(text: str, answer: str) -> bool:
    """Whether an answer occurs in a text as a word.

    >>> names_answer("Answer YES or NO.", "NO"), names_answer("Nothing", "NO")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None
