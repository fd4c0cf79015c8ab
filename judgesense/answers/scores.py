"""What sentences say about a score: "Rating: 4/5", "I would give it a 3", a last line "2"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from judgesense.answers.space import NOUN, NUMBER_WORDS, Space
from judgesense.answers.statements import Statement, conclusion, settled
from judgesense.answers.text import Sentence
from judgesense.answers.vocabulary import one_of, pattern

_NUMBER = rf"(-?\d{{1,6}}(?:\.\d{{1,4}})?|\b(?:{'|'.join(NUMBER_WORDS)})\b)"
_WORDED = pattern(rf"\b({'|'.join(NUMBER_WORDS)})\s+out\s+of\s+({'|'.join(NUMBER_WORDS)})\b")
_RANGE = r"-?\d+\s*(?:-|–|—|to|through|and)\s*-?\d+"
_SCALES = pattern(
    r"\b(?:(?:on|out\s+of|from|of|in|using|within|with|between)\s+)?(?:(?:a|the|this)\s+)?"
    r"(?:\w+[ -])?"
    rf"(?:scale|range)\s*(?:of|from|is|:)?\s*[(\[]?\s*{_RANGE}\s*[)\]]?"
    rf"|\(\s*{_RANGE}\s*(?:scale|points?|stars?)?\s*\)"
    r"|\b(?:from|between)\s+-?\d+\s+(?:to|and)\s+-?\d+\b"
    r"|\b\d+-point\s+scale\b|\bscale\s+of\s+\d+\b(?!\s*[-–])"
)
"""A scale that is described: "on a scale of 1 to 5", "(1-10)"."""

_CUE_WORD = one_of(
    "rating | score | scored | grade | verdict | answer | judge?ment | evaluation | assessment",
    "mark | points? | rate | rated | stars? | overall | result | decision | coherence | relevance",
    "quality | choice | pick | selection | preference | conclusion",
    "評価 | 评分 | 得分 | スコア | 点数 | 분수 | 점수 | puntuación | puntaje | note",
    "bewertung | punktzahl",
)
_FILLER = one_of(
    "is | of | would be | should be | will be | for | to | the | this | a | an | it | as | at | be",
    "being | response | summary | answer | output | feedback | text | score | rating | given",
    "assigned | de | di | von | therefore | that i (?:would )?(?:give|assign)",
)
_CUE = pattern(
    rf"(?<![\w]){_CUE_WORD}(?![\w])(?:\s+{_FILLER})*\s*(?:[:=]|->|→|[-–—](?=\s))?\s*[(\[\"'“]*\s*{_NUMBER}"
)
_GIVES = one_of(
    "put | give | giving | gave",
    "assign | assigned | assigning | award | awarded | deserves? | earns? | worth",
    "merits? | warrants? | receives? | gets? | rate | rated | score | scored | grade | graded",
    "choose | chose | select | pick | go with | settle (?:on|for) | i say",
    r"(?:it|this|that)(?:['’]s| is)(?=\s+an?\s)",
)
_GIVE = pattern(
    rf"\b{_GIVES}(?:\s+(?!not\b|no\b)[\w'’\"-]+){{0,6}}?\s+(?:(?:an?|as|with|at|of|the)\s+)?"
    rf"(?:(?:score|rating|grade|mark)\s+of\s+)?[\"'“(\[]*{_NUMBER}"
)
_GIVE_UNSPACED = re.compile(r"[给打][了出]?\s*(\d{1,6})\s*分")
_ASPECT = pattern(
    r"\b(?:(?:for|on|in)\s+[a-z]+(?:\s[a-z]+)?,|the\s+(?:first|second|third|last|next|other))"
    rf"\s+an?\s+{_NUMBER}(?=\W*$|[,;.])"
)
_OUT_OF = pattern(
    rf"(?<![\d.,/]){_NUMBER}\s*(?:points?\s+|stars?\s+)?(?:/|out\s+of)\s*(\d{{1,6}})(?![\d/.]\d|%)"
)
_OF_POINTS = pattern(
    rf"(?<![\d.,/]){_NUMBER}\s+(?:von|sur|de|su)\s+(\d{{1,6}})\s+"
    r"(?:punkten?|points?|puntos|pontos|punti|sternen?|[ée]toiles|estrellas)\b"
)
_TOP_FIRST = re.compile(
    r"(\d{1,3})\s*(?:点満点(?:中|で)?|点中|점\s*만점(?:에|중)?)\s*(\d{1,3})\s*[点점]"
    r"|满分\s*(\d{1,3})\s*分?[^\d]{0,6}(\d{1,3})\s*分"
)
"""A score after the top of its scale: "5点満点中4点"."""

CLAIMED = pattern(
    r"\b(?:author|writer|candidate|student|essay|article|applicant|user|agent|bot|customer|colleague|rater|annotator|reviewer|grader)s?\s+(?:\w+\s+){0,3}?"
    r"(?:gives?|gave|claims?|rates?|rated|awards?|says?|calls?|grades?|reports?|mentions?|answer(?:s|ed)"
    r"|said|scored|chose|picked|went|would)\b"
    r"|\b(?:model|assistant|reference|response|output|system)\s+(?:says|said|claims|claimed|answered|wrote|printed|reported)\b"
    r"|\baccording\s+to\s+(?:the\s+)?(?:\w+\s+)?(?:annotator|rater|reviewer|grader|author|user|candidate|model|assistant)\b"
)
"""A score that the judged text gives itself: "The author gives his own essay a 9"."""

_THEIRS = pattern(
    r"\b(?:candidate|student|submission|user|author|assistant|model|response|reference|gold|expected|correct)"
    r"(?:['’]s)?\s+(?:final\s+)?(?:answer|result)\b[^.;]{0,12}$"
)
"""A number that is an answer, and no score of one: "The candidate's final answer: 4"."""

_PRONOUN = pattern(r"\b(?:an?|the|this|that|each|which|no|better|other)\s+(?:\w+\s+)?\W*$")
"""What makes "one" no number: "a high score and a low one"."""

_CRITERIA = pattern(
    r"^(?:\W*(?:and\s+)?[^\W\d]{3,24}(?:\s[^\W\d]{2,16})?\s+\d+(?:\.\d+)?\s*[,;.]){3}"
)
"""A list of criteria with their scores: "Helpfulness 8, relevance 6, depth 4"."""

_ALONE = pattern(
    r"^\W*(?:(?:score|rating|answer|overall|final\s+(?:score|rating|answer))\W*)?"
    rf"{_NUMBER}(?:\s*(?:(?:/|out\s+of)\s*(\d+)|points?|stars?))?\W*$"
)
_EARN = "(?:earn|achieve|reach|get|receive|deserve|merit|warrant)"
_SUPPOSED = pattern(
    r"\b"
    + one_of(
        "if | whether | would (?:characteri[sz]e|merit|deserve|warrant|earn|require|be needed)",
        f"(?:to|for) (?:an? )?{_EARN} | require[sd]? for | prevents? | falls? short | short of",
        "rather than | instead of | lower than | higher than | less than | more than | not | never",
        "criteri(?:on|a) | could (?:be|also) | either | between | somewhere | maybe | versus | vs",
        "neither | nor",
        "for an? (?:score|rating|grade|mark) of | cannot | lacks? | description | rubric | level",
        "typical of | averag(?:e|ing)",
    )
    + r"\b|n['’]t\b"
)
_FINAL = pattern(
    r"\b"
    + one_of(
        "final | overall | total | therefore | thus | hence | conclusion | so | in summary",
        "verdict | ultimately | consequently | based on | given",
    )
    + r"\b"
)
_FULL = pattern(r"^\W*full\s+(?:marks|score|credit|points)\W*$")
_LINE = pattern(
    rf"^\W*[^\W\d][^\n:=\d]{{0,40}}\d?\s*[:=]\s*[(\[\"]*{_NUMBER}(?:\s*(?:/|out\s+of)\s*(\d+))?\W*$"
)
_COUNTED = pattern(
    r"\b"
    + one_of(
        "errors? | issues? | mistakes? | count | number | flaws? | words? | sentences? | steps?",
        "pages? | facts? | points made | years?",
    )
    + r"\b"
)
_MATTERS = one_of(
    "out | on | for | because | since | as | in | overall | here | and | stars? | points? | due",
    "to | based | rating | score | given | at",
)
_COUNTS = pattern(rf"(?:\s+|-)(?!{_MATTERS}\b)[a-z]")
"""What follows a number that counts something: "gives 3 reasons"."""

_REVISES = pattern(
    r"\b(?:revis|correct(?:ed|ion)|reconsider|re-?check|updated|second\s+look|reflection)"
)
_TITLED = re.compile(r"^\W*([^\W\d][^\n:=\d]{0,40})[:=]\W*(\d{1,6}(?:\.\d+)?)(?:\s*/\s*\d+)?\W*$")
_OTHER_RATED = pattern(rf"\s*,?\s*(?:and|while|whereas|but)\s+(?:the\s+)?{NOUN}\b[^.]{{0,40}}?\b\d")
"""What follows the score of one of several texts: "a 4 and Response B a 2"."""

_RATES = pattern(rf"{_CUE_WORD}|give|gave|deserve|assign")
_OTHER_SCALE = re.compile(r"\s*(?:[-–—]|to|or|and)\s*\d|\s*%|\s*(?:/|out\s+of)\s*\d")
_LIST = re.compile(r"^\W*\d{1,3}\s*[.):]\s+\S")
_ROW = re.compile(r"^\W*-?\d+(?:\.\d+)?(?:\s*[,;/ ]\s*-?\d+(?:\.\d+)?)+\W*$")


# Where they begin or end a line, or follow a colon: a judged text may have stars as well.
_STARS = re.compile(
    r"(?m)(\d\s*)?(?:(?<=^)|(?<=[:=|(*]\s)|(?<=[:=|(*])|(?<=\d\s)|(?<=\d)|(?=[★⭐🌟☆\ufe0f\s]+$))((?:[★⭐🌟]\ufe0f?\s?)+)((?:☆\s?)*)"
)


def with_numbers(text: str, space: Space) -> str:
    """The text with "seven out of ten" as 7/10, and stars that show a whole scale as well."""

    text = _WORDED.sub(lambda m: f"{NUMBER_WORDS[m[1].lower()]}/{NUMBER_WORDS[m[2].lower()]}", text)

    def counted(match: re.Match[str]) -> str:
        full, empty = (len(re.findall("[★⭐🌟☆]", part)) for part in match.groups("")[1:])
        if match[1]:
            return f"{match[1].strip()} stars " if full == 1 else match[1]
        top = space.options[-1]
        return f"{full}/{top}. " if top == str(full + empty if empty else 5) else match.group()

    return _STARS.sub(counted, text)


def read_score(sentences: Sequence[Sentence], space: Space, last: str | None = None) -> str | None:
    """The score that the sentences state; "" if several differ, None if there is none.

    ``last`` is the score that the last sentence is known to state.
    """
    lead, last = _lead(sentences, space), last or _last(sentences, space)
    if lead == "":
        return ""
    statements = stated_scores(sentences, space)
    if _is_repeated(sentences):
        return ""
    stated = settled(statements, sentences, 0)
    return conclusion(lead, last, stated, criteria=True)


def _is_repeated(sentences: Sequence[Sentence]) -> bool:
    """Whether two lines give the same thing two scores: "Score: 6", "Score: 1"."""
    lines = {match.groups() for each in sentences if (match := _TITLED.match(each.text))}
    titles = [title.casefold() for title, _ in lines]
    if any(_REVISES.search(each.text) for each in sentences[1:-1]):
        return False
    return len(set(titles)) < len(titles)


def stated_scores(sentences: Sequence[Sentence], space: Space) -> list[Statement]:
    """The scores that the sentences state."""
    return [
        Statement(place, option, decisive=bool(_FINAL.search(sentence.text)))
        for place, sentence in enumerate(sentences)
        for option in _scores(sentence.text, space)
    ]


def _option(number: str, space: Space) -> str:
    """The option that a number is: "4.0" is 4, "4.5" none."""
    number = NUMBER_WORDS.get(number.casefold(), number)
    if number in space.exact:
        return number
    whole = re.fullmatch(r"(-?\d+)\.0+", number)
    return whole.group(1) if whole and whole.group(1) in space.exact else ""


def _lead(sentences: Sequence[Sentence], space: Space) -> str | None:
    """The number that the text begins with; "" for a row of several numbers."""
    first, top = sentences[0], re.escape(space.options[-1])
    if first.begins_line and _ROW.match(first.text) and not _OUT_OF.search(first.text):
        return ""
    if first.ends_line or len(sentences) > 1:
        match = re.match(
            rf"^\W*{_NUMBER}(?:\s*/\s*(\d+)|\s+(?:points?|stars?|marks?))?\W*$", first.text, re.I
        )
        if match and not _is_listed(sentences, match[1]):
            return _option(match[1], space) if match[2] in (None, space.options[-1]) else ""
    match = re.match(
        rf"^\W*{_NUMBER}\s*(?:/\s*{top}|points?|stars?|marks?)?\s*(?:[-–—](?!\s*\d)|[(;!]|,\s(?!\s*\d)|\.\s|:\s|$)",
        first.text,
        re.I,
    )
    if match and not _is_listed(sentences, match[1]):
        return _option(match[1], space) or None
    return None


def _is_listed(sentences: Sequence[Sentence], number: str) -> bool:
    """Whether the number that begins the text numbers a list: "1. The feedback ..."."""
    first = sentences[0].text
    later = [sentence.text for sentence in sentences[1:] if sentence.begins_line]
    if not _LIST.match(first) and (
        sentences[0].ends_line or not re.match(rf"^\W*{re.escape(number)}\s*[.):]\s*$", first)
    ):
        # "1\n\n2": the next line counts on.
        following = later[0] if later else ""
        counts_on = re.match(r"^\W*\d{1,3}\W*$", following) and len(sentences) == 2
        return bool(counts_on) and following.strip(" .*):") != number
    if number == "1":
        return True
    return number.isdigit() and any(
        re.match(rf"^\W*{int(number) + 1}\s*[.):]", text) for text in later
    )


def _last(sentences: Sequence[Sentence], space: Space) -> str | None:
    """The number that is the whole last line."""
    last = sentences[-1]
    if len(sentences) < 2 or not last.ends_line:
        return None
    match = _ALONE.match(_SCALES.sub(" ", last.text))
    if match is None or (match[2] not in (None, space.options[-1])):
        return None
    before = [sentence.text for sentence in sentences[:-1] if sentence.begins_line]
    in_column = before and re.match(r"^\W*\d{1,3}\W*$", before[-1])
    if in_column and before[-1].strip(" .*):") != last.text.strip(" .*):"):
        return None
    return _option(match[1], space) or None


def _clause(text: str, end: int) -> str:
    """What precedes a number in its own clause."""
    return re.split(r"[,;:]\s|\bbut\b|\bso\b", text[max(0, end - 70) : end])[-1]


def _scores(text: str, space: Space) -> Iterator[str]:
    """The scores that one sentence states, "" for a number that is none of the options."""
    if _FULL.match(text):
        yield space.options[-1]
        return
    text = _OF_POINTS.sub(lambda m: f"score: {m[1]}/{m[2]}", text)
    text = _TOP_FIRST.sub(lambda m: f"score: {m[2] or m[4]}/{m[1] or m[3]}", text)
    text = _SCALES.sub(" ", text)
    if text.rstrip().endswith("?") or _CRITERIA.match(f"{text},"):
        return
    same_scale = re.compile(rf"\s*(?:/|out\s+of)\s*{re.escape(space.options[-1])}(?!\d)")
    line = _LINE.match(text)
    if (
        line
        and not _THEIRS.search(text, 0, line.start(1))
        and not _COUNTED.search(line.group())
        and line[2] in (None, space.options[-1])
    ):
        yield _option(line[1], space)
        return
    seen = set()
    for way in (_OUT_OF, _CUE, _GIVE, _GIVE_UNSPACED, _ASPECT):
        for match in way.finditer(text):
            start, end = match.span(1)
            clause = _clause(text, start)
            if start in seen or _SUPPOSED.search(clause) or CLAIMED.search(clause):
                continue
            if match[1].casefold() == "one" and _PRONOUN.search(clause):
                continue
            if _THEIRS.search(text[max(0, start - 70) : start]):
                continue
            rest = text[end : end + 24]
            if way is _OUT_OF:
                # A long sentence may quote one, but not as what its colon announces.
                announced = clause == "" and not text[match.end() :].strip(" .!*)")
                if match[2] != space.options[-1] or (
                    len(text) > 40 and not (announced or _RATES.search(text))
                ):
                    continue
            elif _OTHER_SCALE.match(rest) and not same_scale.match(rest):
                yield ""
                continue
            elif way is _GIVE and _COUNTS.match(rest):
                continue
            seen.add(start)
            yield "" if _OTHER_RATED.match(text, end) else _option(match[1], space)
