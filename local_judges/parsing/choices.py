"""What sentences say about a choice between candidates: "Output (a) is better", "I would pick B".

Sentences come tokenised: X and Y below are private-use characters for options (`space`). A sentence
that asks, supposes, or reports what somebody else thinks says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_judges.parsing.space import NOUN, Space
from local_judges.parsing.text import Sentence

X = "([\ue000-\uf8ff])"
_Y = "[\ue000-\uf8ff]"
_ADVERB = (
    r"(?:\s*,?\s*(?:also|clearly|definitely|much|slightly|somewhat|significantly|marginally|overall"
    r"|probably|likely|generally|still|therefore|thus|ultimately|obviously|indeed|by\s+far|far|a\s+bit"
    r"|a\s+little|certainly|simply|actually|perhaps|considered|deemed|judged|rated|truly|just|only"
    r"|to\s+be|the\s+one\s+that\s+is)\s*,?)*\s+"
)
_BEST = (
    r"(?:(?:the|a)\s+)?(?:(?:clear(?:ly)?|overall|far|much|slightly|obvious|most|more|only)\s+)*"
    r"(?:better|best|superior|preferable|preferred|stronger|strongest|favou?red|winner|winning"
    r"|(?:right|correct|better)\s+(?:choice|answer|response|one|option|output|pick)|better\s+choice|top\s+choice|one\s+to\s+choose)\b"
)
_IS = r"(?:\s+(?:is|was|are|seems|appears|looks|remains|would|will|should|must|might|may|could|does|did|can|has|be|been|being|comes?\s+out|stands?\s+out|ends?\s+up|proves|turns?\s+out)|['’]s)+(?:\s+as)?"
_WINS = (
    r"\s+(?:clearly\s+|easily\s+|narrowly\s+|ultimately\s+)?(?:wins|won|outperforms|outshines|surpasses|beats|edges\s+out"
    r"|prevails|takes\s+(?:the\s+(?:win|lead|edge)|it)|gets\s+my\s+(?:vote|pick|preference)"
    r"|has\s+(?:the|an?|a\s+slight)\s+(?:edge|advantage)|comes\s+out\s+(?:ahead|on\s+top)|is\s+(?:my|the)\s+"
    r"(?:choice|pick|preference|answer|selection|decision|verdict)|should\s+(?:win|be\s+(?:chosen|selected|preferred|picked))"
    r"|does\s+(?:a\s+better\s+job|better)|performs\s+better|is\s+more\s+preferable)\b"
)
_PICK = (
    r"\b(?:choos(?:e|ing)|chose|select(?:ed|ing)?|pick(?:ed|ing)?|prefer(?:red)?|favou?r(?:ed)?"
    r"|go(?:ing)?\s+(?:with|for)|went\s+with|opt(?:ed|ing)?\s+for|vot(?:e|ed|ing)\s+(?:for|goes\s+to|is\s+for)"
    r"|lean(?:ing)?\s+(?:slightly\s+|more\s+)?(?:toward|towards|to)|side\s+with|recommend|in\s+favou?r\s+of)"
    r"(?:\s+(?:is|would\s+be|for|the|to|slightly|more|that|choose|pick|select|go\s+with))*\s*:?\s*"
)
_LABELLED = (
    rf"\b(?:(?:better|best|winning|preferred|superior|stronger|preferable|chosen|selected|right|correct"
    rf"|final|my|overall|(?:more|most|less|least)\s+\w+)\s+)*(?:(?:{NOUN}|one|choice|option|answer"
    r"|verdict|selection|pick|winner|preference|decision|judge?ment|conclusion|vote|result|better|best)\b\s*){1,2}"
    r"(?:\s*(?:here|for\s+me|overall|between\s+the\s+two|of\s+the\s+two|in\s+this\s+case))?"
    r"\s*(?:(?:is|was|would\s+be|will\s+be|must\s+be|should\s+be|goes\s+to|has\s+to\s+be|remains|for)\s*(?:that\s+)?:?|[:=]|->|→)\s*(?:therefore\s+|clearly\s+|the\s+|for\s+|with\s+)?"
)

_POSITIVE = [
    re.compile(rf"{X}(?:['’]s\s+{NOUN})?{_IS}{_ADVERB}{_BEST}", re.I),
    re.compile(rf"{X}{_WINS}", re.I),
    re.compile(rf"{_PICK}[(\[\"'“]*{X}", re.I),
    re.compile(rf"{_LABELLED}[(\[\"'“]*{X}", re.I),
    re.compile(rf"{X}\s*(?:>{{1,3}}|≻|over)\s*{_Y}"),
    re.compile(rf"\bnot\s+{_Y}\s*,?\s*but(?:\s+rather)?\s+{X}", re.I),
    re.compile(rf"{X}\s+(?:\w+\s+){{1,8}}?better\s+(?:\w+\s+){{0,3}}?than\s+{_Y}", re.I),
]
_BUT = _POSITIVE[5]
_OWN_PICK = (_POSITIVE[2], _POSITIVE[3])
_LESS = re.compile(
    rf"{_Y}{_IS}?(?:\s+\w+){{0,6}}?\s+(?:less\s+\w+|fewer\s+\w+|worse|inferior|weaker|poorer"
    rf"|not\s+(?:quite\s+|nearly\s+)?as\s+\w+)\s*(?:\w+\s+){{0,3}}?(?:than|to|as|compared\s+(?:to|with))\s+{X}",
    re.I,
)
_LESS_SIGN = re.compile(rf"{_Y}\s*<{{1,3}}\s*{X}")
_MORE = re.compile(
    rf"{X}{_IS}{_ADVERB}(?:the\s+)?(?:more|most|closest|closer|nearer|clearer|safer)\b(?:\s+\w+)?",
    re.I,
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|neither|cannot|hardly|reject(?:ed)?|avoid|against|without|least|less|worse|worst|rather\s+than"
    r"|instead\s+of|fails?|unclear|than)\b|n['’]t\b",
    re.I,
)
_QUESTION = re.compile(r"\?\s*[\"'”)]*\s*$")
_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|suppose|assum(?:e|ing)|either|depend(?:s|ing)|at\s+first|initially|one\s+(?:could|might|may)"
    r"|some\s+(?:may|might|would|people)|it\s+(?:may|might|could)\s+be\s+argued|arguabl[ey]|seems?\s+(?:like\s+)?at"
    r"|would\s+(?:have\s+been|be)\s+(?:better|best)\s+if|could\s+be\s+(?:better|improved)|need\s+to|to\s+(?:determine|decide|evaluate|judge|see))\b",
    re.I,
)
_REPORTED = re.compile(
    rf"(?:{_Y}|\b(?:assistants?|evaluators?|critics?|reviewers?|judges?|they|both|experts?|users?|others|he|she|evaluation|evaluations))"
    rf"(?:\s+(?:and\s+{_Y}|correctly|incorrectly|also|both|all|rightly|wrongly|that|given\s+by|by|initially|{_Y}))*\s+"
    r"(?:thinks?|believes?|argues?|argued|states?|stated|says?|said|claims?|claimed|suggests?|suggested"
    r"|concludes?|concluded|evaluates?|evaluated|prefers?|preferred|points?\s+out|notes?|asserts?|maintains?"
    r"|agrees?|feels?|considers?|chose|chooses|mentions?|acknowledges?|recognizes?|favou?rs?)\b",
    re.I,
)
_ACCORDING = re.compile(
    rf"\baccording\s+to\s+(?:the\s+\w+\s+)?(?:{_Y}|assistant|evaluator|critic)", re.I
)
_OWN = re.compile(r"\b(?:I|we|my|our)\b")
_QUALIFIED = re.compile(
    r"^[^.;]{0,12}\b(?:in\s+(?:terms|that|this|some|its|his|their)|at\s+\w+ing|only|when|because\s+of\s+its\s+length"
    r"|for\s+(?:someone|people|those|users)|on\s+(?:this|that)\s+(?:point|aspect)|with\s+(?:respect|regard)|regarding|as\s+far)\b",
    re.I,
)
_PROVIDED = re.compile(r"[^.;]{0,20}?\b(?:if|unless|provided)\b", re.I)
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|so|consequently|accordingly|overall|in\s+(?:conclusion|summary|short|sum|the\s+end)|to\s+(?:conclude|sum\s+up|summarize)"
    r"|finally|final|ultimately|based\s+on|given\s+(?:this|these|the\s+above|that)|for\s+these\s+reasons|as\s+a\s+result|all\s+things\s+considered"
    r"|conclusion|verdict|in\s+light\s+of|considering)\b",
    re.I,
)
_TIE = re.compile(
    r"\b(?:it(?:['’]s|\s+is)\s+a\s+(?:tie|draw)|(?:a|is|call\s+it\s+a|verdict:?|result:?|answer:?)\s+(?:tie|draw)|tied?\s*[.!]?$"
    r"|equally\s+\w+|(?:both|two)\b[^.]{0,80}\b(?:equal(?:ly)?|the\s+same|identical|similar)"
    r"|neither\b[^.]{0,160}\b(?:better|best|superior|preferable|preferred|winner|execut\w+|meets?|satisf\w+|follows?|correct|chosen)"
    r"|no\s+(?:clear|significant|meaningful|real|obvious|discernible)?\s*(?:winner|difference|preference|better\s+(?:option|response|output))"
    r"|(?:cannot|can['’]t|can\s+not|unable\s+to|impossible\s+to|difficult\s+to|hard\s+to)\s+(?:\w+\s+){0,2}?(?:decide|determine|choose|say|pick|judge|tell)"
    r"|does\s?n['’]t\s+matter\s+which|does\s+not\s+matter\s+which)",
    re.I,
)
_BOTH = re.compile(rf"{_Y}\s*(?:,|and|or|/|&|nor|vs\.?|versus)\s*{_Y}", re.I)
_LEAD = re.compile(
    rf"^[^\w\ue000-\uf8ff]*(?:(?:the\s+)?(?:final\s+)?(?:answer|verdict|choice|winner|output)\s*(?:is)?\s*[:=]\s*)?{X}\s*"
    rf"(?=$|[.,;:!(\[—–]|-\s|\s(?:because|since|as|for|over)\b)(?!\s*[,/&]\s*{_Y})",
    re.I,
)
_ALONE = re.compile(rf"^[^\w\ue000-\uf8ff]*{X}[^\w\ue000-\uf8ff]*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence's choice: ``token`` is None for a tie; ``final`` if the sentence concludes."""

    place: int
    token: str | None
    final: bool
    weak: bool


def read_choice(found: Sequence[Sentence], space: Space) -> str | None:
    """The candidate that the sentences choose; "" where they contradict themselves or tie.

    Returns None if no sentence states a choice.
    """
    tokenised = [space.tokenised(sentence.text) for sentence in found]
    lead = _lead(tokenised, found, space)
    last = _last_line(tokenised, found)
    statements = [s for place, text in enumerate(tokenised) for s in _statements(text, place)]
    if last is not None:
        statements.append(Statement(len(tokenised), last, True, False))
    plain = [s for s in statements if not s.weak and s.token is not None]
    ties = [s for s in statements if s.token is None]
    finals = [s for s in statements if s.final and not s.weak]
    if lead is not None:
        against = [s for s in finals if s.place > 0 and s.token != lead]
        return _label("" if against else lead, space)
    if finals:
        final = finals[-1]
        first = next((s for s in plain if s.place == 0 and not s.final), None)
        after = [s for s in plain if s.place > final.place and s.token != final.token]
        if after or (first is not None and first.token != final.token):
            return ""
        return _label(final.token or "", space)
    said = {s.token for s in plain}
    if ties and (not plain or ties[-1].place > plain[-1].place):
        return _label("", space)
    if len(said) == 1:
        return _label(said.pop() or "", space)
    if said:
        return ""
    # "Passage B is more relevant" concludes; the same in the middle of a review does not.
    weak = {s.token for s in statements if s.weak}
    if len(found) > 2 and not any(s.weak and s.place == len(found) - 1 for s in statements):
        return None
    return _label(weak.pop() or "", space) if len(weak) == 1 else None


def _label(token: str, space: Space) -> str:
    return space.of_token(token) if token else (space.tie or "")


def _lead(tokenised: Sequence[str], found: Sequence[Sentence], space: Space) -> str | None:
    """The option that the text begins with, as an answer and not as a sentence's subject."""
    if not tokenised or (match := _LEAD.match(tokenised[0])) is None:
        return None
    token, rest = match.group(1), tokenised[0][match.end() :].lstrip()
    if rest.startswith(":") or (rest == "" and found[0].text.rstrip().endswith(":")):
        # "Output (a): ..." may be the heading of one review of two.
        other = re.compile(rf"^[^\w\ue000-\uf8ff]*(?!{token}){_Y}\s*:")
        if any(other.match(text) for text in tokenised[1:]) or not rest[1:].strip():
            return None
    return token


def _last_line(tokenised: Sequence[str], found: Sequence[Sentence]) -> str | None:
    if len(tokenised) < 2 or not found[-1].begins_line:
        return None
    match = _ALONE.match(tokenised[-1])
    before = _ALONE.match(tokenised[-2])
    if match is None or (before is not None and before.group(1) != match.group(1)):
        return None
    return match.group(1)


def _statements(text: str, place: int) -> Iterator[Statement]:
    """The choices that one tokenised sentence states, in order."""
    if _QUESTION.search(text):
        return
    final = bool(_CONCLUDES.search(text))
    if (reported := _REPORTED.search(text)) or (reported := _ACCORDING.search(text)):
        own = _OWN.search(text, 0, reported.start()) or final
        if not own or _ACCORDING.search(text):
            return
        # "I agree with what Assistant (a) says": only what comes before the report is the judge's.
        text = text[: reported.start()] if _OWN.search(text, 0, reported.start()) else ""
    if _TIE.search(text) and not _REPORTED.search(text):
        yield Statement(place, None, final, weak=False)
        return
    supposed = _SUPPOSED.search(text)
    spans: list[tuple[int, str, bool]] = []
    for pattern in _POSITIVE:
        for match in pattern.finditer(text):
            start, token = match.start(), match.group(1)
            if (
                supposed
                and supposed.start() < match.end()
                and not _after_comma(text, supposed, start)
            ):
                continue
            if (pattern is not _BUT and _negated(text, match)) or _in_both(text, match.start(1)):
                continue
            after = text[match.end() : match.end() + 80]
            if _PROVIDED.match(after):
                continue
            weak = bool(_QUALIFIED.match(after))
            spans.append((start, token, weak and not final))
            final = final or (pattern in _OWN_PICK and not weak and bool(_OWN.search(text)))
    for pattern in (_LESS, _LESS_SIGN):
        spans += [(m.start(), m.group(1), False) for m in pattern.finditer(text) if not supposed]
    if not spans:
        spans = [
            (m.start(), m.group(1), True)
            for m in _MORE.finditer(text)
            if not (supposed or _negated(text, m) or _in_both(text, m.start(1)))
        ]
    seen = set()
    for _, token, weak in sorted(spans):
        if (token, weak) not in seen:
            seen.add((token, weak))
            yield Statement(place, token, final and not weak, weak)


def _after_comma(text: str, supposed: re.Match[str], start: int) -> bool:
    """Whether the statement follows the clause that supposes: "if so, I would choose B"."""
    return supposed.end() <= start and "," in text[supposed.end() : start]


def _negated(text: str, match: re.Match[str]) -> bool:
    """Whether the statement is denied, inside itself or shortly before it in the same clause."""
    inside = text[match.start() : match.end()]
    if _NEGATION.search(re.sub(rf"than\s+{_Y}$", "", inside)):
        return True
    clause = re.split(
        r"[,;:.]|\bbut\b|\band\b|\bwhile\b|\bso\b|\bbecause\b",
        text[max(0, match.start() - 60) : match.start()],
    )[-1]
    if _NEGATION.search(clause):
        return True
    return bool(re.match(r"\s*(?:is\s+)?(?:not\b|n['’]t)", text[match.end() : match.end() + 8]))


def _in_both(text: str, place: int) -> bool:
    """Whether the candidate stands in "X and Y", which chooses neither."""
    return any(both.start() <= place < both.end() for both in _BOTH.finditer(text))
