"""From generated text to a raw decision, anchored on the decision space.

A text that does not say one option plainly is UNCLEAR: it is never given a default label and never
asked again. "INCORRECT" is not C, "not A" is not A, "4.5" is not 4, "YES or NO" is neither.
"""

from __future__ import annotations

import re
from functools import lru_cache

from judgesense.responses import without_thinking
from judgesense.tasks import REFUSED, UNCLEAR, is_scale

_MARKUP = " \t\r\n*_`\"'“”‘’[](){}<>#$.,;:!"
_REFUSAL = re.compile(
    r"\bi\s+(?:can(?:no|['’])t|am\s+unable|won['’]t|must\s+decline|decline)\b"
    r"|\bi['’]m\s+(?:sorry|unable|not\s+able)\b|\bunable\s+to\s+(?:assist|comply|help)\b"
    r"|\bas\s+an\s+ai\b",
    re.IGNORECASE,
)
_CUE = (
    r"\b(?:answer|verdict|rating|score|choice|decision|preference|judge?ment|choose|pick|select"
    r"|prefer|rate)\b(?:\s+(?:here|would|should|must|is|be|of|as|to|the|a|this|it|summary|query"
    r"|option|response|passage)\b)*\s*(?:[:=]|->|→)?[\s*\"'“`(\[]*"
)
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bneither|\bnor|\bnever|\bthan|\bwithout)"
    r"(?:\s+(?:a|an|the|be|option|response|passage|choose|pick|prefer))*"
    r"\s+(?:[\w'’]+\s+n?or\s+)?\W*$",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\s*(?:/|\||,|\bor\b|\band\b)\s*\W*", re.IGNORECASE)
_ARTICLE = re.compile(
    r"\s+(?!is\b|was\b|seems\b|would\b|because\b|since\b|as\b|over\b|or\b|and\b)[a-z]"
)


class _Space:
    """The compiled patterns of one decision space."""

    def __init__(self, options: tuple[str, ...]) -> None:
        self.folded = {option.casefold(): option for option in options}
        # Longest first, so that "PARTIALLY CORRECT" is not read as "CORRECT".
        names = "|".join(re.escape(o) for o in sorted(options, key=len, reverse=True))
        numeric = is_scale(options)
        # "4/5" and "4 out of 5" rate 4; "1-5", "4.5" and "A/B" are not what they begin with.
        scale = rf"(?:\s*/\s*{options[-1]}|\s+out\s+of\s+{options[-1]})?" if numeric else ""
        one = rf"(?P<option>{names})(?![\w'’]){scale}(?!\s*[/–—-]\s*\w|[.,]\d|\w)"
        # The case of a short option counts in running text: "a" is an article, "no" a determiner.
        self.case_counts = min(map(len, options)) <= 3
        alone = 0 if all(len(option) == 1 for option in options) else re.IGNORECASE
        self.lead = re.compile(rf"{one}(?=\W*$|\s*[\n.,;:!(*–—-])", alone)
        self.mention = re.compile(
            rf"(?<![\w'’/–-])(?<!\d[.,]){one}", 0 if self.case_counts else re.IGNORECASE
        )
        self.cue = re.compile(rf"{_CUE}{one}", re.IGNORECASE)

    def named(self, found: re.Match[str]) -> str:
        return self.folded[found.group("option").casefold()]

    def is_article(self, found: re.Match[str], text: str) -> bool:
        return found.group("option") in ("A", "a") and bool(_ARTICLE.match(text, found.end()))


_space = lru_cache(maxsize=256)(_Space)


def parse(text: str, options: tuple[str, ...]) -> str:
    """The option that ``text`` says, or UNCLEAR, or REFUSED.

    Three readings in turn, the first that finds something decides: the text begins with an option
    ("Yes. The response is right"); an option follows a cue ("my rating is 4", all cues agreeing);
    exactly one option is named, not negated. What a reasoning model thought aloud is left out
    first; thinking that was cut off leaves nothing to read: UNCLEAR.
    """
    if text in options:
        return text
    space = _space(options)
    plain = space.folded.get(text.strip(_MARKUP).casefold())
    if plain is not None and (len(plain) > 1 or plain in text):
        return plain
    text = without_thinking(text)
    bare = text.strip().lstrip(_MARKUP)

    lead = space.lead.match(bare)
    if lead and not space.is_article(lead, bare):
        rest = _ALTERNATIVE.match(bare, lead.end())
        echoed = rest and space.mention.match(bare, rest.end())
        if not echoed or space.named(echoed) == space.named(lead):
            return space.named(lead)

    # "a good summary" after a cue is prose; a lower-case "b" after "answer:" is an answer.
    for pattern in (space.cue, space.mention):
        said, denied = set(), set()
        for found in pattern.finditer(text):
            if not space.is_article(found, text):
                negated = _NEGATED.search(text[: found.start("option")])
                (denied if negated else said).add(space.named(found))
        if len(said) == 1:
            # "It is not rude, not even a little bit rude" says nothing plainly.
            return UNCLEAR if said & denied else said.pop()
        if said:
            return UNCLEAR
    return REFUSED if _REFUSAL.search(text) else UNCLEAR
