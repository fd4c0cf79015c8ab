"""What sentences say about labels that are words or grades: YES/NO, CORRECT/INCORRECT, C/P/I."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from judgesense.tasks import alias_key
from local_judges.parsing.phrases import QUESTION, one_of, pattern
from local_judges.parsing.space import Space
from local_judges.parsing.text import Sentence

SHORT = 300
"""A text of at most this many characters may name its label anywhere."""

_CUE = (
    one_of(
        "answer | verdict | rating | score | choice | decision | grade | label | judge?ment",
        "classification | category | conclusion | evaluation | result | response | assessment",
        "choose | pick | select | say | respond with | réponse | respuesta | antwort | urteil",
    )
    + r"\b(?:\s+"
    + one_of(
        "here | would | should | must | is | be | of | as | to | the | a | this | it | therefore",
        "that | clearly | definitely | for | question | your | summary | query",
    )
    + r"\b)*\s*(?:[:=]|->|→)?\s*[\"'“‘(\[]*"
)
_NEGATED = pattern(
    r"(?:\b(?:not|neither|nor|never|than|without|hardly|cannot|reject(?:ed)?)|n['’]t)(?:\s+"
    + one_of(
        "a | an | the | be | as | really | entirely | fully | quite | at all | option | response",
        "choose | pick | prefer | call it | say | is | simply",
    )
    + r")*\s+(?:[\w'’]+\s+n?or\s+)?\W*$"
)
_DENIED_ELSEWHERE = pattern(r"\b(?:nicht|kein\w*|no|non|pas|não|niet|geen|ikke|inte|nie|не)\b")
"""Words before an alias in running text that may deny it, in the languages that aliases are for."""

_ALTERNATIVE = pattern(r"\s*(?:/|\||,|\bor\b|\band\b)\s*[\"'“‘(]*")
_GRADED = r"[^.]{0,40}\b(?:candidate|submission|student)(?:['’]s\s+answer)?\s+is\s+"
_CONTRADICTED = pattern(
    rf"^\W*(?:no\b{_GRADED}(?:(?:entirely|fully|completely)\s+)?correct\b"
    rf"|yes\b{_GRADED}(?:not\s+correct|incorrect|wrong)\b)"
)
"""A first sentence whose label and grade differ: "No, the candidate is correct"."""

_AFTER_LETTER = pattern(
    r"\s+(?!(?:is|was|as|because|since|and|or|over|for|rather|here|instead)\b)[a-z]"
)
_NAMED_LINE = re.compile(r"^[^\d:：]{1,40}[:：]\s*")


class _Labels:
    """The patterns of a space's labels."""

    def __init__(self, space: Space) -> None:
        self.space = space
        names = "|".join(re.escape(o) for o in sorted(space.options, key=len, reverse=True))
        aliases = "".join(f"(?i:{alias})|" for alias in space.alias_words)
        options, rest = rf"(?:{names})(?![\w'’])", r"(?!\s*/\s*\w|[–—-]\w)"
        one = rf"(?P<option>{aliases}{options}){rest}"
        # The case of letters counts; that of a short word ("no") counts in running text.
        letters = all(len(option) == 1 for option in space.options)
        short = min(map(len, space.options)) <= 3
        self.lead = re.compile(
            rf"\W*{one}(?=\W*$|\s*[.,;:!(—–、。]|\s+-\s|\s*[\"'”’)\]]+)",
            0 if letters else re.IGNORECASE,
        )
        self.mention = re.compile(
            rf"(?P<option>{aliases}(?<![\w'’/–-]){options}){rest}", 0 if short else re.IGNORECASE
        )
        self.cue = pattern(rf"\b{_CUE}{one}")

    def named(self, match: re.Match[str]) -> str | None:
        said = match.group("option")
        if said in self.space.exact:
            return said
        return self.space.folded.get(said.casefold()) or self.space.aliases.get(alias_key(said))

    def is_prose(self, match: re.Match[str], text: str) -> bool:
        """Whether a short label is an everyday word: the article "A", "no" before a noun."""
        said = match.group("option")
        after = text[match.end("option") : match.end("option") + 12]
        if len(said) == 1 and said.isalpha():
            article = said in "AI" and _AFTER_LETTER.match(after)
            return said not in self.space.exact or bool(article)
        return said.casefold() == "no" and bool(re.match(r"\s+[a-z]", after))

    def begins(self, text: str) -> str | None:
        """The label that a text begins with, unless another follows it ("YES or NO")."""
        match = self.lead.match(text)
        return None if match is None or self.has_rival(match, text) else self.named(match)

    def has_rival(self, match: re.Match[str], text: str) -> bool:
        """Whether another label is offered beside this one."""
        rest = _ALTERNATIVE.match(text, match.end())
        other = self.mention.match(text, rest.end()) if rest else None
        return other is not None and self.named(other) != self.named(match)

    def alone(self, sentence: Sentence) -> str | None:
        """The label that is the whole last line, possibly after words and a colon."""
        text = sentence.text
        if not sentence.ends_line:
            return None
        if sentence.begins_line and (title := _NAMED_LINE.match(text)):
            text = text[title.end() :]
        match = self.lead.match(text)
        if match is None or text[match.end() :].strip(" .!*_\"')]”’"):
            return None
        return self.named(match)


@lru_cache(maxsize=256)
def _labels(space: Space) -> _Labels:
    return _Labels(space)


def read_label(found: Sequence[Sentence], space: Space, length: int) -> str | None:
    """The label that the text begins with, concludes with, or alone names.

    Args:
        found: the text's sentences.
        space: the decision space.
        length: characters of the text.

    Returns:
        A label; "" where the text contradicts itself; None where it names no label plainly.
    """
    if not found:
        return None
    labels = _labels(space)
    first = labels.begins(found[0].text)
    cued, denied = _cued(found, labels, after_first=first is not None)
    alone = labels.alone(found[-1]) if len(found) > 1 or ":" in found[0].text else None
    final = {*cued, *([alone] if alone else [])}
    if first is not None:
        return "" if _CONTRADICTED.match(found[0].text) or final - {first} else first
    if len(final) == 1:
        label = final.pop()
        return "" if label in denied else label
    if final:
        # Several cues: the last two agree, and so does a last line that is a label.
        settled = alone is None and len(set(cued[-2:])) == 1
        return cued[-1] if settled else ""
    return _only_label(found, labels) if length <= SHORT else None


def _cued(
    found: Sequence[Sentence], labels: _Labels, *, after_first: bool
) -> tuple[list[str], set[str]]:
    """The labels after a cue ("the answer is"), in order, and those denied there."""
    cued, denied = [], set()
    for place, sentence in enumerate(found):
        text = sentence.text
        if QUESTION.search(text):
            continue
        for match in labels.cue.finditer(text):
            label = labels.named(match)
            if label is None or labels.is_prose(match, text) or labels.has_rival(match, text):
                continue
            if _is_denied(match, text):
                denied.add(label)
            elif place or not after_first:
                cued.append(label)
    return cued, denied


def _only_label(found: Sequence[Sentence], labels: _Labels) -> str | None:
    said: set[str] = set()
    space = labels.space
    denied: set[str] = set()
    for sentence in found:
        for match in labels.mention.finditer(sentence.text):
            label = labels.named(match)
            if match.group("option").casefold() not in space.folded and (
                _DENIED_ELSEWHERE.search(sentence.text, 0, match.start())
            ):
                return ""
            if label and not labels.is_prose(match, sentence.text):
                (denied if _is_denied(match, sentence.text) else said).add(label)
    if len(said) == 1 and not said & denied:
        return said.pop()
    return "" if said else None


def _is_denied(match: re.Match[str], text: str) -> bool:
    start = match.start("option")
    return bool(_NEGATED.search(text[max(0, start - 60) : start]))
