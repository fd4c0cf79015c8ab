"""What sentences say about labels that are words or grades: YES/NO, CORRECT/INCORRECT, C/P/I."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from local_judges.parsing.space import Space
from local_judges.parsing.text import Sentence

_CUE = (
    r"(?:answer|verdict|rating|score|choice|decision|grade|label|judge?ment|classification|category|conclusion|evaluation|result|response|assessment"
    r"|choose|pick|select|say|respond\s+with|réponse|respuesta|antwort|urteil)\b"
    r"(?:\s+(?:here|would|should|must|is|be|of|as|to|the|a|this|it|therefore|that|clearly|definitely|for|question|your|summary|query)\b)*\s*(?:[:=：]|->|→)?\s*[\"'“‘(\[]*"
)
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bneither|\bnor|\bnever|\bthan|\bwithout|\bhardly|\bcannot|\breject(?:ed)?)"
    r"(?:\s+(?:a|an|the|be|as|really|entirely|fully|quite|at\s+all|option|response|choose|pick|prefer|call\s+it|say|is|simply))*"
    r"\s+(?:[\w'’]+\s+n?or\s+)?\W*$",
    re.I,
)
_ALTERNATIVE = re.compile(r"\s*(?:/|\||,|\bor\b|\band\b)\s*[\"'“‘(]*", re.I)
_CONTRADICTED = re.compile(
    r"^\W*(?:(no)\b[^.]{0,40}\b(?:candidate|submission|student)(?:['’]s\s+answer)?\s+is\s+(?:entirely\s+|fully\s+|completely\s+)?correct\b"
    r"|(yes)\b[^.]{0,40}\b(?:candidate|submission|student)(?:['’]s\s+answer)?\s+is\s+(?:not\s+correct|incorrect|wrong)\b)",
    re.I,
)
_QUESTION = re.compile(r"\?\s*[\"'”)]*\s*$")
SHORT = 300
"""A text of at most this many characters may name its label anywhere."""


@lru_cache(maxsize=256)
def _patterns(space: Space) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    names = "|".join(re.escape(o) for o in sorted(space.options, key=len, reverse=True))
    one = rf"(?P<option>{names})(?![\w'’])(?!\s*/\s*\w|[–—-]\w)"
    short = min(map(len, space.options)) <= 3
    letters = all(len(option) == 1 for option in space.options)
    lead = re.compile(
        rf"\W*{one}(?=\W*$|\s*[.,;:!(—–]|\s+-\s|\s*[\"'”’)\]]+)", 0 if letters else re.I
    )
    mention = re.compile(rf"(?<![\w'’/–-]){one}", 0 if short else re.I)
    cue = re.compile(rf"\b{_CUE}{one}", re.I)
    return lead, mention, cue


def read_label(found: Sequence[Sentence], space: Space, length: int) -> str | None:
    """The label that the text begins with, concludes with, or alone names.

    Returns "" where the text contradicts itself, None where it names no label plainly.
    """
    if not found:
        return None
    lead, mention, cue = _patterns(space)

    def named(match: re.Match[str]) -> str | None:
        said = match.group("option")
        return said if said in space.exact else space.folded.get(said.casefold()) or None

    def denied(match: re.Match[str], text: str) -> bool:
        return bool(
            _NEGATED.search(text[max(0, match.start("option") - 60) : match.start("option")])
        )

    first = _begins(found[0], lead, mention, named)
    cues, against = [], set()
    for place, sentence in enumerate(found):
        if _QUESTION.search(sentence.text):
            continue
        for match in cue.finditer(sentence.text):
            label = named(match)
            if label is None or _is_prose(match, sentence.text, space):
                continue
            rest = _ALTERNATIVE.match(sentence.text, match.end())
            other = mention.match(sentence.text, rest.end()) if rest else None
            if other and named(other) != label:
                continue
            if denied(match, sentence.text):
                against.add(label)
            elif place or first is None:
                cues.append(label)
    alone = _alone(found[-1], lead, named) if len(found) > 1 or ":" in found[0].text else None
    final = {*cues, *([alone] if alone else [])}
    if first is not None:
        return "" if _CONTRADICTED.match(found[0].text) or final - {first} else first
    if alone is not None and len(final) > 1:
        return ""
    if len(final) == 1:
        label = final.pop()
        return "" if label in against else label
    if final:
        return cues[-1] if len(set(cues[-2:])) == 1 and alone in (None, cues[-1]) else ""
    if length > SHORT:
        return None
    said, refused = set(), set()
    for sentence in found:
        for match in mention.finditer(sentence.text):
            if (label := named(match)) and not _is_prose(match, sentence.text, space):
                (refused if denied(match, sentence.text) else said).add(label)
    if len(said) == 1 and not said & refused:
        return said.pop()
    return "" if said else None


def _begins(
    sentence: Sentence, lead: re.Pattern[str], mention: re.Pattern[str], named: object
) -> str | None:
    match = lead.match(sentence.text)
    if match is None:
        return None
    label = named(match)  # type: ignore[operator]
    rest = _ALTERNATIVE.match(sentence.text, match.end())
    if rest and (other := mention.match(sentence.text, rest.end())) and named(other) != label:  # type: ignore[operator]
        return None
    return label  # type: ignore[no-any-return]


def _alone(sentence: Sentence, lead: re.Pattern[str], named: object) -> str | None:
    """The label that is the whole last line, if need be after a word and a colon."""
    if not sentence.ends_line:
        return None
    text = sentence.text
    if sentence.begins_line and (label := re.match(r"^[^\d:：]{1,40}[:：]\s*", text)):
        text = text[label.end() :]
    match = lead.match(text)
    return named(match) if match and not text[match.end() :].strip(" .!*_\"')]”’") else None  # type: ignore[operator]


def _is_prose(match: re.Match[str], text: str, space: Space) -> bool:
    """Whether a short label is an everyday word here: the article "A", "no" before a noun."""
    said = match.group("option")
    after = text[match.end("option") : match.end("option") + 12]
    if len(said) == 1 and said.isalpha():
        return said not in space.exact or bool(
            said in "AI"
            and re.match(
                r"\s+(?!is\b|was\b|as\b|because\b|since\b|and\b|or\b|over\b|for\b|rather\b|here\b|instead\b)[a-z]",
                after,
            )
        )
    return said.casefold() == "no" and bool(re.match(r"\s+[a-z]", after))
