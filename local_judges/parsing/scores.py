"""What sentences say about a score: "Rating: 4/5", "I would give it a 3", a last line "2"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_judges.parsing.phrases import one_of, pattern
from local_judges.parsing.space import Space
from local_judges.parsing.text import Sentence

_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}
_NUMBER = rf"(-?\d{{1,6}}(?:\.\d{{1,4}})?|\b(?:{'|'.join(_WORDS)})\b)"
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
    "quality | 評価 | 评分 | 得分 | スコア | 点数 | 분수 | 점수 | puntuación | puntaje | note",
    "bewertung | punktzahl",
)
_FILLER = one_of(
    "is | of | would be | should be | will be | for | to | the | this | a | an | it | as | at | be",
    "being | response | summary | answer | output | feedback | text | score | rating | given",
    "assigned | therefore | that i (?:would )?(?:give|assign)",
)
_CUE = pattern(
    rf"(?<![\w]){_CUE_WORD}(?![\w])(?:\s+{_FILLER})*\s*(?:[:=]|->|→)?\s*[(\[\"'“]*\s*{_NUMBER}"
)
_GIVES = one_of(
    "give | giving | gave | assign | assigned | assigning | award | awarded | deserves? | earns?",
    "merits? | warrants? | receives? | gets? | rate | rated | score | scored | grade | graded",
    r"choose | chose | select | pick | go with | settle on | it(?:['’]s| is)(?=\s+an?\s)",
)
_GIVE = pattern(
    rf"\b{_GIVES}(?:\s+(?!not\b|no\b)[\w'’\"-]+){{0,6}}?\s+(?:(?:an?|as|with|at|of|the)\s+)?"
    rf"(?:(?:score|rating|grade|mark)\s+of\s+)?[\"'“(\[]*{_NUMBER}"
)
_OUT_OF = pattern(rf"(?<![\d.,/]){_NUMBER}\s*(?:/|out\s+of)\s*(\d{{1,6}})(?![\d/.]\d|%)")
_ALONE = pattern(
    r"^\W*(?:(?:score|rating|answer|overall|final\s+(?:score|rating|answer))\W*)?"
    rf"{_NUMBER}(?:\s*(?:/\s*\d+|out\s+of\s+\d+|points?|stars?))?\W*$"
)
_EARN = "(?:earn|achieve|reach|get|receive|deserve|merit|warrant)"
_SUPPOSED = pattern(
    r"\b"
    + one_of(
        "if | whether | would (?:characteri[sz]e|merit|deserve|warrant|earn|require|be needed)",
        f"(?:to|for) (?:an? )?{_EARN} | require[sd]? for | prevents? | falls? short | short of",
        "rather than | instead of | lower than | higher than | less than | more than | not | never",
        "criteri(?:on|a) | could (?:be|also) | either | between | somewhere | maybe | versus | vs",
        "cannot | lacks? | description | rubric | level | typical of",
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
_OVERALL = pattern(r"\b(?:final|overall|total)\b")
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
_COUNTS = pattern(rf"\s+(?!{_MATTERS}\b)[a-z]")
"""What follows a number that counts something: "gives 3 reasons"."""

_LIST = re.compile(r"^\W*\d{1,3}\s*[.):]\s+\S")
_ROW = re.compile(r"^\W*-?\d+(?:\.\d+)?(?:\s*[,;/ ]\s*-?\d+(?:\.\d+)?)+\W*$")


@dataclass(frozen=True, slots=True)
class _Score:
    """A number that a sentence gives as a score; "" if it is none of the options."""

    place: int
    option: str
    final: bool
    overall: bool


def read_score(found: Sequence[Sentence], space: Space) -> str | None:
    """The score that the sentences state; "" if several differ, None if there is none."""
    if not found:
        return None
    lead, last = _lead(found, space), _last(found, space)
    if lead == "":
        return ""
    said = [s for place, sentence in enumerate(found) for s in _scores(sentence.text, place, space)]
    overall = {s.option for s in said if s.overall}
    if last is not None:
        finals = {s.option for s in said if s.final and s.place > 0} - {last}
        if (lead is not None and lead != last) or finals:
            return ""
        return last
    if lead is not None:
        against = {s.option for s in said if s.final and s.place > 0} - {lead}
        return "" if against else lead
    if len(overall) == 1:
        return overall.pop()
    options = {s.option for s in said}
    if len(options) == 1:
        return options.pop()
    if (
        said
        and said[-1].final
        and said[-1].option
        and len({s.option for s in said if s.final}) == 1
    ):
        return said[-1].option
    return "" if said else None


def _option(number: str, space: Space) -> str:
    """The option that a number is: "4.0" is 4, "4.5" none."""
    number = _WORDS.get(number.casefold(), number)
    if number in space.exact:
        return number
    whole = re.fullmatch(r"(-?\d+)\.0+", number)
    return whole.group(1) if whole and whole.group(1) in space.exact else ""


def _lead(found: Sequence[Sentence], space: Space) -> str | None:
    """The number that is the whole first line; "" for a row of several numbers."""
    first = found[0]
    if first.begins_line and _ROW.match(first.text) and not _OUT_OF.search(first.text):
        return ""
    if first.ends_line or (len(found) > 1 and found[1].begins_line) or len(found) > 1:
        match = re.match(rf"^\W*{_NUMBER}(?:\s*/\s*(\d+))?\W*$", first.text, re.I)
        if match and not _is_listed(found, match.group(1)):
            if match.group(2) not in (None, space.options[-1]):
                return ""
            return _option(match.group(1), space)
    match = re.match(
        rf"^\W*{_NUMBER}\s*(?:/\s*{re.escape(space.options[-1])})?\s*(?:[-–—](?!\s*\d)|[(;!]|,\s(?!\s*\d)|\.\s|:\s|$)",
        first.text,
        re.I,
    )
    if match and not _is_listed(found, match.group(1)):
        return _option(match.group(1), space) or None
    return None


def _is_listed(found: Sequence[Sentence], number: str) -> bool:
    """Whether the number that begins the text numbers a list: "1. The feedback ..."."""
    first = found[0].text
    if not _LIST.match(first) and not (
        re.match(rf"^\W*{re.escape(number)}\s*[.):]\s*$", first) and not found[0].ends_line
    ):
        # "1\n\n2": the next line counts on.
        following = next((s.text for s in found[1:] if s.begins_line), "")
        return (
            bool(re.match(r"^\W*\d{1,3}\W*$", following))
            and len(found) == 2
            and (following.strip(" .*):") != number)
        )
    if number == "1":
        return True
    later = [s.text for s in found[1:] if s.begins_line]
    return (
        any(re.match(rf"^\W*{int(number) + 1}\s*[.):]", text) for text in later)
        if number.isdigit()
        else False
    )


def _last(found: Sequence[Sentence], space: Space) -> str | None:
    """The number that is the whole last line."""
    last = found[-1]
    if len(found) < 2 or not last.begins_line or not last.ends_line:
        return None
    match = _ALONE.match(_SCALES.sub(" ", last.text))
    if match is None:
        return None
    before = [s.text for s in found[:-1] if s.begins_line]
    if (
        before
        and re.match(r"^\W*\d{1,3}\W*$", before[-1])
        and before[-1].strip(" .*):") != last.text.strip(" .*):")
    ):
        return None
    if re.search(r"/\s*(\d+)", last.text) and not re.search(
        rf"/\s*{re.escape(space.options[-1])}\b", last.text
    ):
        return None
    return _option(match.group(1), space) or None


def _clause(text: str, end: int) -> str:
    """What precedes a number in its own clause."""
    return re.split(r"[,;:]\s|\bbut\b|\bso\b", text[max(0, end - 70) : end])[-1]


def _scores(text: str, place: int, space: Space) -> Iterator[_Score]:
    """The scores that one sentence states."""
    text = _SCALES.sub(" ", text)
    if text.rstrip().endswith("?"):
        return
    final, overall = bool(_FINAL.search(text)), bool(_OVERALL.search(text))
    line = _LINE.match(text)
    if line and not _COUNTED.search(line.group()) and line.group(2) in (None, space.options[-1]):
        yield _Score(place, _option(line.group(1), space), final, overall)
        return
    seen = set()
    for way in (_OUT_OF, _CUE, _GIVE):
        for match in way.finditer(text):
            end = match.end(1)
            if match.start(1) in seen or _SUPPOSED.search(_clause(text, match.start(1))):
                continue
            rest = text[end : end + 24]
            if way is _OUT_OF:
                if match.group(2) != space.options[-1]:
                    continue
                if (
                    not re.search(rf"{_CUE_WORD}|give|gave|deserve|assign", text, re.I)
                    and len(text) > 40
                ):
                    continue
            elif re.match(
                r"\s*(?:[-–—]|to|or|and)\s*\d|\s*%|\s*(?:/|out\s+of)\s*\d", rest
            ) and not re.match(rf"\s*(?:/|out\s+of)\s*{re.escape(space.options[-1])}(?!\d)", rest):
                yield _Score(place, "", final, overall)
                continue
            elif way is _GIVE and _COUNTS.match(rest):
                continue
            seen.add(match.start(1))
            yield _Score(place, _option(match.group(1), space), final, overall)
