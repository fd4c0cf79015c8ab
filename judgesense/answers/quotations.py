"""What a judge's text repeats: the judged text, and the instructions that the judge was given.

A verdict in it is not the judge's: a candidate can write one to be quoted, and a prompt offers all
of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from judgesense.answers.space import NOUN, Space
from judgesense.answers.text import json_values
from judgesense.answers.vocabulary import CONCLUDES, one_of, pattern

_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*\n?")
_BLOCK = re.compile(r"\[BEGIN ([A-Z ]{3,30})\].*?\[END \1\]", re.DOTALL)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)|```([^`\n]+)```", re.DOTALL)
_INDENTED = re.compile(r"(?m)(?<=\n\n)(?:^(?: {4}|\t)[^\n]*(?:\n|\Z))+")
_TRANSCRIPT = re.compile(r"(?m)(?:^(?:User|Assistant|Human|Customer|Agent)[ \t]*:[^\n]*(?:\n|\Z))+")
_WRITER = (
    rf"(?:(?-i:[A-HJ-Z]\b)|(?:{NOUN}|candidate|student|submission|author|user|agent|reviewer|evaluator|colleague|rater"
    r"|critic)s?|it|they|he|she|which|that)"
)
_WRITES = one_of(
    "wrote | writes | written | says | said | contains? | contained | includes? | included | reads",
    "states? | stated | claims? | claimed | ends? with | ended with | begins? with | prints?",
    "printed | outputs?",
    "tries | tried | attempts? | quotes? | injects? | adds? | added",
    "embeds? | shows? | has | planted | hides? | appends? | appended | finish(?:es|ed)?",
    "concludes? | closes | closing | closed",
    "ends? | ended | opens? | begins? | inserts? | inserted | slipped | pasted | repeats? | asks?",
    "insists? | insisted | boasts? | declares? | declared | announces? | begs? | replies",
    "saying | writing | stating | claiming | reports? | reported | orders? | instructs? | demands?",
)
_INSTRUCTION = "(?:instructions?|prompt|task|question|rubric|guidelines?|criteria|format|brief)"
_INTRODUCED = pattern(
    rf"\b{_WRITER}(?:['’]s)?\b(?:(?!\bI\b|\bwe\b)[^\n.!?]){{0,60}}?\b{_WRITES}\b[^\n.!?]{{0,60}}[:\"“'‘]?\s*$"
    rf"|\b(?:candidate|submission|judged|quoted|injected|embedded|planted|original)\b"
    r"[^\n.!?]{0,40}:\s*$"
    rf"|\b{_WRITER}(?:['’]s)?(?:\s+(?:\w+\s+)?{NOUN})?\s+(?:was|is)\s*:\s*$"
    r"|\b(?:that|which)\s+I\s+(?:was|am)\s+(?:given|shown|asked)[^\n.]{0,20}:\s*$"
    r"|\b(?:previous|earlier|former|other|another|first)\s+(?:judge|evaluator|reviewer|grader|rater"
    r"|annotator|colleague)(?:['’]s\s+\w+)?\s*(?:\w+\s*)?:\s*$"
    r"|(?<!\bI\s)(?<!\bwe\s)\b(?:says|said|saying|wrote|writing|insists|claiming"
    r"|(?:returned|returns|responded|printed)(?:\s+with)?)\s*[:,]?\s*$"
    r"|\bself-?(?:evaluation|assessment|rating|grade|score|review|report)\b[^\n.!?]{0,40}:\s*$"
    r"|\b(?:quot(?:e|es|ing)|citing)\b[^\n.!?]{0,60}:\s*$"
    rf"|\b(?:asked|told|want(?:s|ed)?|instructed|required|supposed|{_INSTRUCTION}"
    r"(?:\s+\w+){0,2}?\s+(?:says?|said|asks?|states?|reads?|goes))(?:\s+(?:me|us))?(?:\s+to)?\s*:?\s*$"
    r"|\b(?:candidate|submission|student|author|user)['’]s\s+(?:own\s+)?(?:\w+\s+)?$"
    rf"|\b{NOUN}\s+(?:under|being|in\s+question|to\s+be|(?:that\s+)?(?:I|we)(?:['’]m|\s+am|\s+was|\s+have|['’]ve))\b[^\n.!?]{{0,30}}:\s*$"
    rf"|^\W*(?:{NOUN}|user|agent|human|bot)(?:\s+\(?\w{{1,2}}\)?)?\s*:\s*$"
)
"""The end of what introduces a quotation: "The candidate wrote:"."""

_DISOWNED = pattern(
    rf"^[\"”’]?\s*,?\s*(?:the\s+)?(?:{_WRITER}\s+)?(?:said|says|replied|wrote|writes|shouted|claimed|claims|reads)\b"
    r"|^[\s,;:.)\]}\"'”’]*(?:\n\s*)?(?:is\s+what|which\s+is|that(?:\s+is|['’]s|\s+was)|this\s+is|is\s+part\s+of"
    r"|(?:this|that|the)(?:\s+(?:above|quoted))?\s+(?:text|line|block|dialogue|conversation|exchange|snippet|excerpt)"
    r"|the\s+(?:quoted|above))\b(?!\s+(?:because|since|my|based|due|score|rating|verdict|grade|evaluation|assessment|judge?ment|decision)\b)"
    r"[^.\n]{0,60}\b(?:transcript|text|excerpt|tool|candidate|submission|answer|response|reply|output|model|assistant|agent|bot|student|user|customer|log|part\s+of|not\s+my|copied|evaluated|judged"
    r"|injection|quoted|written\s+by)"
)
"""What follows a quotation that the judge disowns: "which is the candidate's own text"."""

_REPORTED_ABOVE = pattern(
    rf"^\W*(?:the\s+)?{_WRITER}\s+(?:\w+\s+)?{_WRITES}\s+(?:the|this|that)\s+(?:\w+\s+)?"
    r"(?:above|json|block|line|object)\b"
)
"""What follows a block that was the judged text's: "The agent reported the JSON above."."""

_SPOKEN = re.compile(
    r"[\"“‘]([^\"”’\n]{1,300})[\"”’]|(?<!\w)'([^'\n]{1,300})'(?!\w)|(?<!`)`([^`\n]{1,300})`(?!`)"
)
_UNMARKED = pattern(
    r"\b(?:wrote|writes|says|said|claims|claimed|reads|self-\w+(?:\s\w+){0,4}|(?:ends?|ended|closes)\s+with)\s*:\s*([^\s\"“{][^\n.!?]{0,200}[.!?])(?=\s|\Z)"
)
"""A quotation without marks: "The student wrote: GRADE: C."."""
_MOST = 200
_REACH = 160
"""Characters before a quotation in which it is introduced, and after it in which it is disowned."""

_PROMPT = re.compile(
    r"\A\W*(?:###\s*(?:instruction|input)s?\b.*"
    r"\n#+\s*(?:response|answer|output)\s*:?[ \t]*(?:\n|\Z)"
    r"|\[INST\].*\[/INST\])",
    re.IGNORECASE | re.DOTALL,
)
"""The prompt as a base model repeats it, up to where its own answer begins."""

_SHOWN = (
    r"(?:[\"“][^\"”\n]{1,80}[\"”]|`[^`\n]{1,80}`|\{[^{}\n]{1,80}\}"
    r"|(?:[a-z]{1,12}:\s)?\[\[[^\]\n]{1,30}\]\])"
)
_WHEN = r"(?:\s+(?:if|when|for|to)\b[^\"“\[`\n.]{1,120})"
_OFFERED = pattern(
    rf"{_SHOWN}(?:,\s*{_SHOWN})*(?:{_WHEN}[,;]?\s*(?:(?:or|and|otherwise)\s+)?{_SHOWN}|,?\s+or\s+{_SHOWN})"
    rf"(?:{_WHEN}?[,;]?\s*(?:(?:or|and)\s+)?{_SHOWN})*{_WHEN}?"
    rf"|\b(?:one\s+of|either)\b[^.\n]{{0,20}}{_SHOWN}(?:,\s*{_SHOWN})+"
)
"""Verdicts that a prompt offers: "[[A]]" if A is better, "[[B]]" if B is."""

_EXAMPLE = pattern(
    r"(?:\b(?:for\s+(?:example|instance)|e\.g\.?|(?:example|sample)(?:\s+\w+){0,2}|(?:expected|required)\s+(?:output|format|form)\s+is|(?:should|must|has\s+to)\s+(?:look|be|read)\s+(?:something\s+)?like"
    r"|(?m:^)[^\w\n]*(?:please\s+)?(?:provide|give|write|output|state|return|format)\b[^.!?\n]{1,60}\blike\s+(?:this|so))"
    rf"\s*[:,]?\s*)(?:{_SHOWN}|\{{[^{{}}\n]{{1,200}}\}}|(?<=:\s)[a-z ]{{3,20}}:\s*[\w.]{{1,20}})"
)
"""A verdict that an instruction shows: 'for example: "Rating: [[5]]"'."""

_IMPERATIVE = one_of(
    "select | choose | pick | use | give | output | respond | answer | reply | write | return",
    "decide | determine | check | classify | judge",
    "assign | enter | mark | print | provide | state | rate | score | indicate | say",
)
_ON_CONDITION = one_of(
    "to indicate | if | when | otherwise | depending | whether | where | according to | or",
    "followed by | in the format | format",
)
_IN_BRACKETS = re.compile(r"\([^()]{1,300}\)")
_OWN_CLAUSE = pattern(
    r"[,;:)]\s*(?:(?:and|but|so|then|hence|thus|therefore)\s*:?\s+)?((?:(?:my|the)\s+(?:\w+\s+)?"
    r"(?:answer|verdict|rating|score|choice|grade|decision|label)\s+is"
    r"|(?:it|that)['’]s|I(?:['’](?:d|ll|m))?\s+(?:therefore\s+|would\s+|will\s+)?(?:answer|say|give|choose|pick|select|go\s+with"
    r"|going\s+with|conclude|settle))\b.*)$"
)
"""What the judge says itself after what it repeats: "..., then I answer 3"."""

_INSTRUCTS = pattern(
    r"^\W*(?:(?:my|the|your)\s+)?(?:instructions?|guidelines?|task|job|prompt)\s*:"
    r"|^\W*if\s+(?:all|any|every|each|none|both|no|some)\b[^,]{0,80},\s*(?:then\s+)?"
    r"the\s+(?:result|verdict|answer|grade|label)\s+(?:is|should\s+be|must\s+be)\b|"
    rf"^\W*(?:please\s+|now\s+|then\s+|just\s+|you\s+(?:should|must|can|may|will|need\s+to)\s+)?"
    rf"{_IMPERATIVE}\b(?![^.]*\bbecause\b).*\b{_ON_CONDITION}\b"
    r"|\b(?:my|your|the)\s+(?:job|task|role|goal)\s+is\s+to\b"
    r"|\b(?:should|must|may|do|does|am|are|is|was|told|asked)\s*(?:n['’]t|not)\s+(?:to\s+)?"
    r"(?:simply\s+|just\s+)?(?:assume|presume|suppose|take\s+for\s+granted)\b"
    r"|\b(?:asks|asked|wants|tells|told|orders|instructs|begs|urges|demands)\s+(?:me|us|the\s+judge)\b"
    r"|\b(?:am|are|was|were|been|['’]m)\s+(?:asked|told|instructed|required|supposed|meant)\s+to\b"
    r"|\byou(?:['’]re\s+(?:not\s+)?(?:asked|told|given|required|supposed)\b|\s+(?:should|must|need\s+to|have\s+to|will|(?:are|were)\s+(?:not\s+)?(?:to|asked|told"
    r"|given|required|expected|supposed)))\b"
    r"|\b(?:instructions?|prompt|task|question|rubric|guidelines?|criteria|format|scale|system"
    r"\s+prompt)\s+(?:says?|asks?|states?|requires?|tells?|wants?|is|are|specif\w+|defines?"
    r"|reads?)(?::|\s+(?:to|that|me|us|whether|which|for|as|:))"
    r"|\b(?:I|we|one)\s+(?:must|should|need\s+to|have\s+to|(?:am|are)\s+(?:asked|required|supposed"
    rf"|told|instructed)\s+to)\s+{_IMPERATIVE}\b.*\b"
    + one_of("if | when | otherwise | depending | either | or | between | from")
    + r"\b"
)
"""A sentence that repeats how a verdict is to be given."""


def without_quotations(text: str) -> str:
    """The text without what the judge quotes of the judged text; the text itself if all is quoted.

    Quoted are lines that begin with ">", and blocks (fenced or indented), JSON objects and words in
    quotation marks that are introduced as somebody else's ("The candidate wrote:") or disowned
    after them.
    """
    text = _EXAMPLE.sub("…", _OFFERED.sub("…", _PROMPT.sub("", text)))
    own = _QUOTED_LINE.sub("", text) if ">" in text else text
    own = _BLOCK.sub("", own) if "[BEGIN" in own else own
    if not own.strip():
        return text
    parts, place = [], 0
    for start, end in _quotable(own):
        if start < place:
            continue
        before, after = own[max(place, start - _REACH) : start], own[end : end + _REACH]
        introduction = before.rstrip("\n ").rpartition("\n")[2] if before.strip() else ""
        if (
            _INTRODUCED.search(before)
            or _INTRODUCED.search(introduction)
            or _DISOWNED.match(after)
            or _REPORTED_ABOVE.match(after)
        ):
            parts.append(own[place:start])
            place = end
    return "".join([*parts, own[place:]]) if parts else own


def _quotable(text: str) -> Iterator[tuple[int, int]]:
    """Where fenced and indented blocks, JSON objects and words in quotation marks are, in order."""
    spans = [match.span() for match in _FENCE.finditer(text)] if "```" in text else []
    spans += [match.span() for match in _TRANSCRIPT.finditer(text)]
    spans += [match.span() for match in _INDENTED.finditer(text)]
    spans += [match.span() for match in _SPOKEN.finditer(text)] if len(text) < 20_000 else []
    spans += [match.span(1) for match in _UNMARKED.finditer(text)]
    spans += [(start, end) for start, end, _ in json_values(text)]
    spans.sort()
    # Each is looked at with what surrounds it, so of very many only the first and last are.
    yield from spans if len(spans) <= 2 * _MOST else spans[:_MOST] + spans[-_MOST:]


def own_part(sentence: str, space: Space) -> str:
    """What the judge says itself in a sentence that may repeat the instructions.

    They are what to answer when, or what labels mean: "If 3 means a tie, then I answer 3".
    """
    if len(_meant(sentence, space)) > 1:
        sentence = _IN_BRACKETS.sub(
            lambda match: "" if len(_meant(match.group(), space)) > 1 else match.group(), sentence
        )
    is_repeated = len(_meant(sentence, space)) > 1 or (
        _INSTRUCTS.search(sentence) and not CONCLUDES.match(sentence)
    )
    if not is_repeated:
        return sentence
    own = [*_OWN_CLAUSE.finditer(sentence)]
    return sentence[own[-1].start(1) :] if own else ""


def _meant(text: str, space: Space) -> set[str]:
    return {match[1].casefold() for match in space.legend.finditer(text)}
