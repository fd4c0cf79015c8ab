"""What sentences say about labels that are words or grades: YES/NO, CORRECT/INCORRECT, C/P/I."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from judgesense.answers.scores import CLAIMED
from judgesense.answers.space import Space
from judgesense.answers.statements import IS_WRONG, WRONG_SOON, Statement, conclusion, is_cut_off
from judgesense.answers.text import Sentence
from judgesense.answers.vocabulary import (
    CRITERION,
    GIVEN,
    NEGATION,
    QUESTION,
    one_of,
    pattern,
)
from judgesense.tasks import alias_key

SHORT = 300
"""A text of at most this many characters may name its label anywhere."""

_CUE = (
    one_of(
        "answer | verdict | rating | score | choice | decision | grade | label | judge?ment",
        "graded | classification | category | conclusion | evaluation | result | response",
        "assessment",
        "choose | pick | select | say | respond with | réponse | respuesta | antwort | urteil",
    )
    + r"\b(?:\s+"
    + one_of(
        "here | would | should | must | has | have | is | be | of | as | to | the",
        "a | this | it | therefore | that | clearly | definitely | for | question | your",
        "summary | query",
    )
    + r"\b)*\s*(?:[:=]|->|→)?\s*[\"'“‘(\[]*"
)
_NEGATED = pattern(
    r"(?:\b(?:partial(?:ly)?|partly|almost|nearly|half|mostly|largely|not|neither|nor|never|than|without|hardly|cannot|reject(?:ed)?"
    r"|nothing|far\s+from|anything\s+but|short\s+of|nowhere\s+near|no\s+longer)|n['’]t)(?:\s+"
    + one_of(
        "a | an | the | be | as | really | entirely | fully | quite | at all | option | response",
        "choose | pick | prefer | call it | say | answer | is | simply",
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
_BEFORE_LETTER = pattern(
    r"(?:^|[^\w\s]|\b"
    + one_of(
        "is | it['’]s | its | be | say | think | definitely | probably | maybe | perhaps | but",
        "so | therefore | thus | hence | guess | was | likely | certainly | clearly | either | or",
        "and | not | neither | nor | with | for | choose | pick | select | answer | option",
        "choice | label | grade | verdict | letter | as | to | call it | reject",
    )
    + r")\s*$"
)
"""What stands before a letter that is a label: not "vitamin C"."""

_CONTRARIES = {("faithful", "hallucinated"), ("grounded", "hallucinated"), ("true", "false")}
"""Labels of which one is the denial of the other, although no prefix says so."""

_PASSES = pattern(
    r"(?:^|[.:;,]\s|\b(?:so|thus|therefore|hence)\s)\W*(?:it|this|the\s+(?:answer|response|output"
    r"|reply|submission|summary|text))\s+(?:therefore\s+|clearly\s+)?(passes|fails)\W*$"
)
"""A verb that is the verdict: "It passes." at the end of a sentence."""

_ON_CONDITION = pattern(
    r"\bwould\s+(?:require|need)\b|\b(?:if|unless|provided)\b|\bcriteri"
    r"|\b(?:given|awarded|reserved|earned|granted)\s+(?:when|only|for)\b"
    r"|\b(?:initial|previous|earlier|expected|default|reference|gold)\s+(?:\w+\s+)?(?:is|was|says|said)\b"
    r"|\bwas\s+my\s+(?:initial|first|earlier)\b|\blean(?:ed|ing)?\b|\bwould\s+have\s+(?:been|\w+ed)\b|^\W*to\s+be\b"
    r"|\ban?\s+\w+(?:\s+\w+)?\s+(?:would|should|must|needs|requires)\b|\brequire(?:d|s|ments?)?\s+for\b"
)
"""A sentence that says when a label would be given."""

_NAMED_ONLY = pattern(r"[\"'”’]\s+(?:is\s+what|(?:would|could|may|might|means|sounds|seems)\b)")
"""What follows a label that is only spoken of: '"Correct" is what everybody will think'."""

_UNTIL = pattern(r"(?:^\W*(?:in\s+order\s+)?to\s+|\b(?:before|until|unless)\b[^,;.]*)$")
_WHEN = pattern(r"[\"'”’)\]]*\s+(?:only\s+)?(?:if|when|unless)\b")
_OWN_END = pattern(r"^.*[,;:]\s+(?:which|so|and|but)\b[^,;]*$")
"""What the judge adds to a claim: "The candidate says Paris, which is correct"."""
_WHOLE = pattern(r"\b(?:overall|altogether|whole|entire|all|every|total|together|final(?:ly)?)\b")
"""What a last question is about that no criterion is: "Does it meet all of them?"."""

_CLAUSE_END = pattern(r"[,;:.!?–—(→]|->|\b(?:so|but|hence|thus|therefore|because|and)\b")
_NAMED_LINE = re.compile(r"^[^\d:：]{1,40}[:：]\s*")


class _Labels:
    """The patterns of a space's labels."""

    def __init__(self, space: Space) -> None:
        self.space = space
        names = "|".join(re.escape(o) for o in sorted(space.options, key=len, reverse=True))
        aliases = "".join(f"(?i:{alias})|" for alias in space.alias_words)
        options, rest = rf"(?:{names})(?![\w'’+#])", r"(?!\s*/\s*\w|[–—-]\w)"
        one = rf"(?P<option>{aliases}{options}){rest}"
        # The case of letters counts; that of a short word ("no") counts in running text.
        self.letters = letters = all(len(option) == 1 for option in space.options)
        short = min(map(len, space.options)) <= 3
        self.lead = re.compile(
            rf"\W*{one}(?=\W*$|\s*[.,;:!(—–、。]|\s+-\s|\s*[\"'”’)\]]+)",
            0 if letters else re.IGNORECASE,
        )
        self.mention = re.compile(
            rf"(?P<option>{aliases}(?<![\w'’/–-]){options}){rest}", 0 if short else re.IGNORECASE
        )
        self.cue = pattern(rf"(?<![\w-]){_CUE}{one}")
        self.item = re.compile(rf"\W*\w+\s*\d{{1,3}}\s*[:.)–-]+\s*{one}\W*$", re.IGNORECASE)
        words = {option.casefold() for option in space.options}
        self.verb = _PASSES if words >= {"pass", "fail"} else None
        # "This test case is a PASS."; another's grade may be one as well, but of something else.
        self.case = pattern(
            r"\b(?:this|it|that)(?:\s+(?!is\b|was\b)\w+){0,2}\s+(?:is|counts\s+as|gets|earns)\s+(?:(?:therefore|thus|so|still|clearly)\s+)?"
            rf"an?\s+[\"'“‘(\[]*{one}(?=\W*$)"
        )
        self.so = pattern(rf"\b(?:hence|thus|therefore|, so)[,:]?\s+[\"'“‘(\[]*{one}(?=\W*$)")

    def named(self, match: re.Match[str]) -> str | None:
        said = match.group("option")
        if said in self.space.exact:
            return said
        return self.space.folded.get(said.casefold()) or self.space.aliases.get(alias_key(said))

    def is_prose(self, match: re.Match[str], text: str) -> bool:
        """Whether a short label is an everyday word: the article "A", "no", "vitamin C"."""
        said = match.group("option")
        after = text[match.end("option") : match.end("option") + 12]
        if len(said) == 1 and said.isalpha():
            if said not in self.space.exact:  # "the answer is b.", but not "b better"
                return not re.match(r"\s*(?:$|[.,;:)\n])", after)
            if said in "AI" and _AFTER_LETTER.match(after):
                return True
            return not _BEFORE_LETTER.search(text, 0, match.start("option"))
        return said.casefold() == "no" and bool(re.match(r"\s+[a-z]", after))

    def begins(self, text: str) -> str | None:
        """The label that a text begins with, unless another follows it ("YES or NO")."""
        match = self.lead.match(text)
        if match is None or self.has_rival(match, text) or _NAMED_ONLY.match(text, match.end()):
            return None
        if self.letters and WRONG_SOON.match(text, match.end()):  # "(A) does not fit"
            return None
        return self.named(match)

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
        title = _NAMED_LINE.match(text)
        if title and not (sentence.begins_line or _WHOLE.search(title.group())):
            title = None
        if title and NEGATION.search(title.group()):  # "Not A: they cannot fly"
            return None
        if title:
            text = text[title.end() :]
        match = self.lead.match(text)
        if match is None or text[match.end() :].strip(" .!*_\"')]”’"):
            return None
        return self.named(match)

    def rates_criterion(self, sentence: Sentence) -> bool:
        """Whether a line is a criterion and its label: "Tone: PASS"."""
        return bool(CRITERION.match(sentence.text)) and self.alone(sentence) is not None


_labels = lru_cache(maxsize=256)(_Labels)


def read_label(sentences: Sequence[Sentence], space: Space, length: int) -> str | None:
    """The label that the text begins with, concludes with, or alone names.

    "" where the text, which has ``length`` characters, contradicts itself; None where it names no
    label plainly. ``sentences`` has at least one.
    """
    labels = _labels(space)
    # "Is it supported? Yes, by the second paragraph."
    asks = len(sentences) > 1 and QUESTION.search(sentences[0].text)
    is_alone = asks and not any(QUESTION.search(each.text) for each in sentences[1:])
    lead = labels.begins(sentences[1 if is_alone else 0].text)
    if lead is not None and _CONTRADICTED.match(sentences[0].text):
        return ""
    cued, denied = cued_labels(sentences, space)
    last = None
    if len(sentences) > 1 or ":" in sentences[0].text:
        last = labels.alone(sentences[-1])
        criteria = [each for each in sentences if labels.rates_criterion(each)]
        if len(criteria) > 1 and criteria[-1] is sentences[-1]:
            last = None  # "Format: PASS", "Tone: FAIL": each is about one criterion.
            if lead is None and not cued:
                return ""
        itemised = [
            match["option"] for each in sentences if (match := labels.item.match(each.text))
        ]
        if len(set(itemised)) > 1 and lead is None and not cued:
            return ""  # "Sentence 1: faithful", "Sentence 2: hallucinated"
        # "Does it name the author? yes", line by line, is no verdict on the whole.
        single = {label for each in sentences if (label := labels.alone(each)) is not None}
        questions = sum(bool(QUESTION.search(each.text)) for each in sentences)
        if len(single) > 1 and questions > 1 and not cued:
            whole = " ".join(each.text for each in sentences[-2:])
            return labels.alone(sentences[-1]) or "" if _WHOLE.search(whole) else ""
    if lead is None and last is None and len(cued) > 1 and cued[-1].option == cued[-2].option:
        cued = cued[-1:]  # a change of mind, confirmed
    verdict = conclusion(lead, last, cued)
    if verdict is not None:
        return "" if lead is None and verdict in denied else verdict
    if length > SHORT or is_cut_off(sentences):
        return None
    return _only_label(sentences, labels)


def cued_labels(sentences: Sequence[Sentence], space: Space) -> tuple[list[Statement], set[str]]:
    """What the sentences state after a cue ("the answer is"), and the labels denied there."""
    labels, cued, denied = _labels(space), list[Statement](), set[str]()
    for place, sentence in enumerate(sentences):
        text = sentence.text
        if QUESTION.search(text):
            continue
        for match in chain(
            labels.cue.finditer(text), labels.so.finditer(text), labels.case.finditer(text)
        ):
            label = labels.named(match)
            if _WHEN.match(text, match.end()) or _UNTIL.search(text, 0, match.start()):
                continue  # "An answer is correct if ...", "Before I could say YES"
            before = _OWN_END.sub("", text[: match.start()])
            if GIVEN.search(before) or CLAIMED.search(before):
                continue
            if label is None or labels.is_prose(match, text) or labels.has_rival(match, text):
                continue
            if _is_denied(match, text):
                denied.add(label)
            else:
                cued.append(Statement(place, label, decisive=True))
        if labels.verb and (verb := labels.verb.search(text)):
            word = "pass" if verb[1].casefold().startswith("pass") else "fail"
            cued.append(Statement(place, space.folded[word], decisive=True))
    return cued, denied


def _only_label(sentences: Sequence[Sentence], labels: _Labels) -> str | None:
    """The one label that a short text names and does not deny.

    "Not correct" names its contrary, where that is the only other label.
    """
    named, denied, beside, supposed = set[str](), set[str](), set[str](), set[str]()
    for sentence in sentences:
        if len(sentences) > 1 and QUESTION.search(sentence.text):
            continue
        for match in labels.mention.finditer(sentence.text):
            label = labels.named(match)
            if match["option"].casefold() not in labels.space.folded and (
                _DENIED_ELSEWHERE.search(sentence.text, 0, match.start())
            ):
                return ""
            if label and (
                _ON_CONDITION.search(sentence.text)
                or _WHEN.match(sentence.text, match.end())
                or CLAIMED.search(_OWN_END.sub("", sentence.text[: match.start()]))
            ):
                supposed.add(label)
                continue
            if label and labels.has_rival(match, sentence.text):
                return ""  # "one of C or I"
            if label and labels.is_prose(match, sentence.text):
                if labels.letters and not _AFTER_LETTER.match(sentence.text, match.end("option")):
                    beside.add(label)
            elif label and _is_denied(match, sentence.text):
                denied.add(label)
            elif label:
                start = match.start("option")
                if NEGATION.search(_CLAUSE_END.split(sentence.text[:start])[-1]):
                    return ""  # "I would not call this a pass": whose denial it is, is not told
                named.add(label)
    if not named and len(denied) == 1 and len(options := labels.space.options) == 2:
        plain, contrary = sorted(options, key=len)
        words = plain.casefold(), contrary.casefold()
        is_contrary = words in _CONTRARIES or words[1] in (
            f"{prefix}{words[0]}" for prefix in ("in", "un", "ir", "im", "not ")
        )
        says_not = re.compile(
            rf"\b(?:is|was|are)(?:\s+not|n['’]t)\s+(?:\w+ly\s+)?{re.escape(plain)}\b", re.I
        )
        if (
            is_contrary
            and denied == {plain}
            and any(says_not.search(each.text) for each in (sentences[0], sentences[-1]))
        ):
            return contrary
    # "B beats A": a letter that is no word is another label.
    if any(labels.alone(each) in named for each in sentences):
        supposed = set()  # "quality: bad", and then what a good answer would have said
    if len(named) == 1 and not named & denied and beside | supposed <= named:
        return named.pop()
    return "" if named else None


def _is_denied(match: re.Match[str], text: str) -> bool:
    start = match.start("option")
    after = text[match.end("option") :].lstrip(" \"'”’)]")
    return bool(_NEGATED.search(text[max(0, start - 60) : start]) or IS_WRONG.match(after))
