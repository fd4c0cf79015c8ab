"""What a cell says: a label, no verdict, a failed call, or a text that is read as a judge's.

Every reader of verdicts and of people's labels compares labels by `fold`: spelling never makes a
class.
"""

from __future__ import annotations

import ast
import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from judgesense.answers import parse
from judgesense.tasks import UNCLEAR, is_scale
from judgesense.text import caseless

MOST = 1e9
"""A greater number is no score: damage, or an id."""
LONGEST = 40
"""Characters of a label; a longer answer is a text."""

SAME = (
    (
        "1 yes y j true t pass passed correct right good fine accept accepted positive win success "
        "succeeded supported relevant faithful safe valid acceptable ok okay approve approved "
        "allow allowed accurate complete helpful appropriate compliant up thumbs_up like harmless "
        "grounded factual satisfied sufficient ja oui si sí sì "
        "sim wahr richtig korrekt vrai juste verdadero verdadeiro vero correcto correcta correto "
        "correta corretto corretta certo certa exact bien "
        "是 是的 对 正确 通过 合格 はい да так 適切 正しい 正解 妥当 "
        "네 예 맞음 맞다 적절 적합 정답 "
        "👍 ✓ ✔ ✅ ☑ ○ i.o",
        "0 no n false f not_ok not_okay nicht_ok fail failed incorrect wrong bad reject rejected "
        "negative loss failure unsupported irrelevant unfaithful unsafe invalid unacceptable deny "
        "denied decline declined disapproved inaccurate incomplete unhelpful inappropriate "
        "noncompliant down "
        "thumbs_down dislike harmful ungrounded hallucinated unsatisfied insufficient nein non "
        "não nao falsch faux falso incorrecto incorrecta incorreto incorreta "
        "errado errada scorretto scorretta sbagliato sbagliata erroné inexact mal "
        "否 不 不是 不对 错 错误 不正确 不通过 不合格 いいえ нет ні 不適切 間違い 不正解 "
        "誤り 아니오 아니요 틀림 부적절 부적합 오답 👎 ❌ ❎ × n.i.o",
    ),
    (
        "a 1 first left model_a model_1 response_a response_1 answer_a assistant_a output_a "
        "output_1 m answer_1 option_a option_1 risposta_1 risposta_a respuesta_1 respuesta_a "
        "resposta_1 resposta_a réponse_1 réponse_a antwort_1 antwort_a prima primo primera primero "
        "primeira première premier erste a>b a>>b b<a b<<a",
        "b 2 second right model_b model_2 response_b response_2 answer_b assistant_b output_b "
        "output_2 answer_2 option_b option_2 risposta_2 risposta_b respuesta_2 respuesta_b "
        "resposta_2 resposta_b réponse_2 réponse_b antwort_2 antwort_b seconda secondo segunda "
        "segundo seconde deuxième zweite b>a b>>a a<b a<<b",
        "tie c both draw equal same neither tie_(bothbad) both_bad bothbad tie_(inconsistent) tied "
        "both_fine both_good no_preference no_difference = pareggio pari a=b a~b a~=b empate "
        "égalité unentschieden gleich 引き分け 무승부 平局",
    ),
    (
        "c correct right yes true pass full fully good 1 accept",
        "i incorrect wrong no false fail none not bad 0 reject",
        "p partial partially partly partially_correct partly_correct half 0.5",
    ),
)
"""Words of different vocabularies that mean the same, place by place; a space is written _."""

_INVISIBLE = re.compile(
    r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe0e\ufe0f]|[\U0001f3fb-\U0001f3ff]"
)
"""Also the variants and skin tones of emoji."""
_ALIKE = str.maketrans(dict.fromkeys("◯〇⭕", "○") | dict.fromkeys("✕✖✗✘", "×"))
"""Marks that look the same."""
_INITIALS = re.compile(r"(?<=\b\w\.)\s+(?=\w\b)")
_EDGE = " \t\r\n*_`~#\"'“”‘’„«»"
_CLOSING = ".,;:!。！，；："
_BRACKETS = [
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("<", ">"),
    ("（", "）"),
    ("【", "】"),
    ("「", "」"),
]
_WHOLE = re.compile(r"([+-]?\d+)[.,]0+")
_BETWEEN = re.compile(r"(?<=\w)[\s_-]+(?=\w)")
NUMBER = re.compile(r"-?\d*\.?\d+(e-?\d+)?")
_SHARE = re.compile(r"(\d*\.?\d+)\s*/\s*(\d+)")

_POINTS = re.compile(
    r"(\d{1,6}(?:\.\d+|,\d{1,2})?)\s*(%|％|分|点|점|星|pts?\.?|points?|punkte?|puntos?|punti|pontos?|stars?|sterne?)?",
    re.IGNORECASE,
)
"""A score with a comma for its point, or with the word for points."""

_BLANK = (
    ",n/a,na,nan,nat,null,nil,\\n,\\\\n,undefined,value!,ref!,name?,null!,num!,div/0!,n/d,nv,bezug!,"
    "wert!,valeur!,¡ref!,¡valor!,valor!,yok,-,--,–,—,?,??,???,¿?,n.a.,k.a.,keine angabe,s/o,n.v.,"
    "not applicable,no procede,no aplica,entfällt,sans objet,n.v.t.,não se aplica"
)
_AT_START = re.compile(
    r"\W*(?:"
    r"\W*error(?:\]|\$)|(?:[\w.]+\.)?\w*(?:error|erreur|fehler|exception|timeout)\b\s*[\])]*\s*(?:[:(\-–]|code\b|\d{3}\b|$)"
    r"|(?:api|llm|judge|model|grader|evaluator|scorer|openai|anthropic|litellm)[\w ]{0,20}"
    r"(?:error|failed|failure|timed out|timeout)\b"
    r"|(?:http|status)[ _]?(?:code|error)?[ :=]*[45]\d\d\b"
    r"|(?:429|500|502|503|504|529)\b[ :-]+\w+"
    r"|(?:request|call|connection|operation)\b[\w ]{0,12}(?:timed out|timeout|failed|reset|refused"
    r"|aborted|error)"
    r"|timed out\b|time-?out\b|rate ?limit|too many requests|service unavailable|bad gateway"
    r"|resource_?exhausted\b|deadline_?exceeded\b"
    r"|internal server error|gateway time-?out|overloaded|insufficient_quota|quota exceeded"
    r"|context[ _](?:length|window)|(?:this model's )?maximum context|prompt is too long"
    r"|(?:could|can) ?not (?:parse|extract)|failed to (?:parse|extract|decode|get|generate|call)"
    r"|unable to (?:parse|extract)|unparse?able|invalid json|json ?decode|no json\b"
    r"|not[ _]pars(?:e?able|ed)\b|pars(?:e|ing)[ _](?:error|fail\w*)"
    r"|invalid (?:output|response|format)\b|no (?:grade|verdict|label) found\b"
    r"|(?:final )?(?:grade|score|verdict|label|rating) not found\b"
    r"|[\[_<]{1,2}(?:invalid|no[ _]?match|unknown|missing)[\]_>]{1,2}\s*$"
    r"|(?:调用|请求|解析)(?:失败|错误|超时)|超时|(?:api ?)?(?:エラー|오류)|タイムアウト|시간 초과"
    r"|zeitüberschreitung|délai dépassé|tiempo de espera|délai d.attente|tempo esgotado"
    r"|scorer_error|traceback \(most recent)",
    re.IGNORECASE,
)
"""How the text of a call that failed begins: errors of HTTP and of clients, time-outs, prompts that
are too long, replies that a tool could not parse."""


@lru_cache(maxsize=100_000)
def fold(text: str) -> str:
    """A label as labels are compared, without case, accents, width, markup, quotes and end
    punctuation.

    >>> fold(" **PASS**."), fold("“ｐａｓｓ”"), fold("not_relevant"), fold("3.0"), fold("[[ΌΧΙ]]")
    ('pass', 'pass', 'not relevant', '3', 'οχι')
    """
    folded = _INITIALS.sub("", _without_accents(caseless(_INVISIBLE.sub("", text))))
    folded = folded.translate(_ALIKE)
    before = ""
    while folded != before:
        before = folded
        # A star or a hyphen may be all there is, and a sign begins a number.
        folded = folded.strip(_EDGE).rstrip(_CLOSING + _EDGE) or before.strip()
        for opening, closing in _BRACKETS:
            if len(folded) > 2 and folded[0] == opening and folded[-1] == closing:
                folded = folded[1:-1]
    return _WHOLE.sub(r"\1", folded) if _WHOLE.fullmatch(folded) else _BETWEEN.sub(" ", folded)


def _without_accents(text: str) -> str:
    # Capitals are often written without them. Vietnamese letters and tones are no accents.
    parts = unicodedata.normalize("NFD", text)
    kept = (c for c in parts if c in "\u0306\u0309\u031b\u0323" or not "\u0300" <= c < "\u0370")
    return unicodedata.normalize("NFC", "".join(kept))


def says_nothing(text: str | None) -> bool:
    """Whether a cell holds no verdict, such as the ``n/a`` of spreadsheets.

    >>> says_nothing("#N/A"), says_nothing("(null)"), says_nothing("no")
    (True, True, False)
    """
    return text is None or (len(text) <= LONGEST and fold(text) in _NOTHING)


_NOTHING = frozenset(map(fold, _BLANK.split(",")))


def without_none(words: dict[str, Any]) -> None:
    """Leave the ``None`` of Python out of folded words beside yes and no; else it is a label."""
    if "none" in words and {place_of(word, SAME[0]) for word in words} >= {0, 1}:
        del words["none"]


def has_failed(text: str | None) -> bool:
    """Whether a text is what a tool writes when its call of a judge failed.

    >>> has_failed("litellm.RateLimitError: 429"), has_failed("The error is handled.")
    (True, False)
    """
    return text is not None and bool(_AT_START.match(text[:400]))


def word_of(cell: str | None) -> str | None:
    """A cell's word: none for a cell that says nothing, and 3 for the 3.0 of tables with gaps.

    >>> word_of(" 3.0"), word_of("0.05"), word_of("N/A"), word_of("★★★☆☆"), word_of("８４分")
    ('3', '0.05', None, '3', '84')
    """
    text = (cell or "").replace("\0", "").strip()
    if says_nothing(text):
        return None
    if not text.strip("★☆⭐ ") and (stars := text.count("★") + text.count("⭐")):
        return str(stars)
    if _SHARE.fullmatch(text):
        text = "".join(text.split())
    if (points := _POINTS.fullmatch(text)) and not (text.isascii() and NUMBER.fullmatch(text)):
        text = f"{float(points[1].replace(',', '.')):g}"
    return _WHOLE.sub(r"\1", text) if _WHOLE.fullmatch(text) else text


def number_in(text: str) -> float | None:
    """A number, also of so many: ``4/5`` is 4; None for another text, and for what is no score.

    >>> number_in("0.5"), number_in("4/5"), number_in("four"), number_in("1e300")
    (0.5, 4.0, None, None)
    """
    match = _SHARE.fullmatch(text)
    text = match[1] if match else text
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    return number if abs(number) <= MOST else None


@lru_cache(maxsize=100_000)
def place_of(word: str, family: tuple[str, ...]) -> int | None:
    """The place in a family of `SAME` that a folded word means; None for another word."""
    key = word.replace(" ", "_")
    sides = [_without_accents(side).split() for side in family]
    place = next((n for n, side in enumerate(sides) if key in side), None)
    if place is None and len(family) == 2 and key.startswith("not_"):
        return 1 if key.removeprefix("not_") in family[0].split() else None
    return place


def is_choice(words: Iterable[str]) -> bool:
    """Whether folded words are of a choice between two: both sides, and perhaps ties."""
    places = {place_of(word, SAME[1]) for word in words}
    return places >= {0, 1} and None not in places


def is_tie(text: object) -> bool:
    """Whether a cell of a choice between two says that they are equal."""
    return place_of(fold(str(text)), SAME[1]) == 2


def side_named(text: object, names: Sequence[str]) -> int | None:
    """Which of some systems, folded, a label names, whole or by a word of one's name only: ``new``
    of ``bot-old`` and ``bot-new``."""
    word = fold(str(text))
    if len({*names}) < 2:
        return None
    if word in names:
        return names.index(word)
    within = [at for at, name in enumerate(names) if word in name.split()]
    return within[0] if len(within) == 1 else None


def spellings(labels: Iterable[str]) -> dict[str, str]:
    """Spelling -> label; a label's own spelling goes before another's that folds to the same."""
    return {**{fold(label): label for label in labels}, **{label: label for label in labels}}


def label_in(labels: Mapping[str, str], text: str) -> str:
    """The label that the text spells, by their `spellings`; else UNCLEAR."""
    return labels.get(text) or labels.get(fold(text), UNCLEAR)


def is_label(text: str, labels: tuple[str, ...]) -> str:
    """The label that the text spells; else UNCLEAR."""
    return label_in(spellings(labels), text)


USUAL_PAIRS = (
    ("yes", "no"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("true", "false"),
    ("correct", "incorrect"),
    ("good", "bad"),
    ("1", "0"),
    ("c", "i"),
    ("relevant", "irrelevant"),
)
"""Words of two labels that go together, folded, the good one first."""

_OUT_OF = re.compile(r"\b(\d+)(?:\.0+)?\s*(?:/|out of)\s*(\d+)\b")
_CLAUSE = re.compile(r"[,，.。;；:：!！]")


UNREAD = "invalid"
"""What tools write for a reply that they cannot read; a label only beside ``valid``, or where
people use it."""


@lru_cache(maxsize=100_000)
def stated(text: str, labels: tuple[str, ...]) -> str:
    """The label that a short text states, also in another language: UNCLEAR without one.

    >>> stated("FAIL, the answer is wrong.", ("PASS", "FAIL")), stated("是的，正确", ("是", "否"))
    ('FAIL', '是')
    """
    if (label := parse(text, labels)) in labels:
        return label
    known = spellings(labels)
    if fold(text) == UNREAD and not known.keys() & {UNREAD, "valid"}:
        return UNCLEAR
    if is_scale(labels) and (share := _OUT_OF.search(text)):
        # "4/5" is a 4 where ratings go up to 4 or 5; "4/10" is on another scale.
        most = max(map(int, labels))
        if int(share[2]) in (most, 5 if most <= 5 else 10):
            return share[1] if share[1] in labels else UNCLEAR
    if len(labels) == 2 and None not in (sides := [place_of(fold(x), SAME[0]) for x in labels]):
        for pair in USUAL_PAIRS[:5]:
            if (word := parse(text, pair)) in pair and pair.index(word) in sides:
                return labels[sides.index(pair.index(word))]
    lead = fold(_CLAUSE.split(text.strip())[0])
    if (label := label_in(known, lead)) != UNCLEAR or not lead:
        return label
    for family in SAME[:2]:
        places = [place_of(fold(label), family) for label in labels]
        if None not in places and len({*places}) == len(labels) > 1:
            place = place_of(lead, family)
            return labels[places.index(place)] if place in places and place is not None else UNCLEAR
    return UNCLEAR


def misspelt(word: str, labels: Iterable[str]) -> str | None:
    """The one usual word among folded labels of which a word is a misspelling, if it is none
    itself: one letter added, left out or changed, or two changed places.

    >>> misspelt("incorect", ["correct", "incorrect"]), misspelt("pasta", ["pass", "fail"])
    ('incorrect', None)
    """
    if len(word) < 4 or not word.isalpha() or place_of(word, SAME[0]) is not None:
        return None
    near = [
        label
        for label in labels
        if len(label) > 4 and place_of(label, SAME[0]) is not None and _one_edit(word, label)
    ]
    return near[0] if len(near) == 1 else None


def abbreviated(text: str, labels: Iterable[str]) -> str | None:
    """The one of some folded labels that a text writes shorter, with a full stop.

    >>> abbreviated("teilw. richtig", ["richtig", "teilweise richtig"]), abbreviated("No.", ["not"])
    ('teilweise richtig', None)
    """
    words = text.casefold().replace(".", ". ").split()
    if "." not in text or not all(re.fullmatch(r"[^\W\d_]+\.?", word) for word in words):
        return None
    if len(words) == 1 and (len(words[0]) < 4 or place_of(fold(text), SAME[0]) is not None):
        return None
    inside = r"\w*" if len(words) > 1 else ""  # tlw. of teilweise
    forms = (inside.join(w[:-1]) + r"\w*" if w[-1] == "." else w for w in words)
    form = re.compile(" ".join(forms))
    found = [label for label in labels if label != fold(text) and form.fullmatch(label)]
    return found[0] if len(found) == 1 else None


def _one_edit(one: str, other: str) -> bool:
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return abs(len(one) - len(other)) == 1
    a, b = one[start:], other[start:]
    return (
        a[1:] == b
        or a == b[1:]
        or a[1:] == b[1:]
        or (a[:2] == b[1::-1] and a[2:] == b[2:] and len(a) > 1)
    )


def is_usual(words: Collection[str]) -> bool:
    """Whether folded words are of one family of `SAME`, or whole numbers, also of so many."""
    if not words:
        return False
    return is_scale([word.partition("/")[0] for word in words]) or any(
        all(place_of(word, family) is not None for word in words) for family in SAME
    )


def with_other(label: str) -> tuple[str, str] | None:
    """A label with the other one of a usual pair, in its case; None for another label.

    >>> with_other("FAIL"), with_other("Yes"), with_other("blue")
    (('FAIL', 'PASS'), ('No', 'Yes'), None)
    """
    for good, bad in USUAL_PAIRS:
        if fold(label) in (good, bad):
            other = bad if fold(label) == good else good
            cased = other.upper() if label.isupper() else other
            cased = other.capitalize() if label.istitle() and len(label) > 1 else cased
            first, second = sorted((label, cased))
            return first, second
    return None


def parsed(value: Any) -> Any:
    """In a CSV file an object is JSON, or what Python prints."""
    if not isinstance(value, str) or value[:1] not in "{[" or len(value) < 2:
        return value
    for read_text in (json.loads, ast.literal_eval):
        try:
            return read_text(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return value
