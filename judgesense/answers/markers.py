"""Verdicts in a declared form: JSON fields and the markers that judging prompts ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from judgesense.answers.ranks import NAME_KEYS, RANK_KEYS, read_ranks
from judgesense.answers.space import NOUN, Space
from judgesense.answers.text import json_values
from judgesense.answers.vocabulary import CONCLUDES

VERDICT_KEYS = frozenset(
    re.findall(
        r"\w+",
        """
    verdict finalverdict answer finalanswer score finalscore overallscore overall totalscore
    rating finalrating overallrating ratingscore grade finalgrade label judgment judgement
    finaljudgment decision finaldecision choice finalchoice winner preference preferred
    preferredresponse preferredoutput result selected selection better betterresponse
    betteroutput betteranswer best bestresponse bestoutput classification category prediction
    evaluation output response option value correct iscorrect correctness criteriamet met pass
    passed
        """,
    )
)
"""Names under which judges put their verdict, without case, spaces and underscores."""

_PRIORITY = ("final", "overall", "verdict", "winner", "answer", "score", "rating")
_NOT_WORD = re.compile(r"[\W\d_]")
_COUNT = re.compile(
    r"max|min|scale|version|weight|errors?|issues?|mistakes?|count|number|flaws?|words?|steps?|id$|index"
)
_FIELD = re.compile(
    r"[\"']([^\W\d][\w -]{0,30})[\"']\s*:\s*"
    r"(?:\"([^\"\n]{0,80})\"|'([^'\n]{0,80})'|(-?\d{1,6}(?:\.\d{1,6})?|true|false)(?=\s*(?:[,}\n]|$)))"
    r"(?!\s*\|)",  # A schema offers both: "PASS" | "FAIL".
    re.IGNORECASE,
)
_LOSES = re.compile(r"loser|losing|worse|worst|weaker|rejected|eliminated|runnerup|inferior")
_LEAF = re.compile(r"<([a-z][\w-]{1,40})>\s*([^<>]{1,40}?)\s*</\1>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"<([a-z][\w-]{1,40})\s+(?:value|label|verdict|score|result|answer)\s*=\s*[\"']([^\"'<>]{1,40})[\"']",
    re.IGNORECASE,
)
_DOUBLE = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
_NAMED = re.compile(
    r"[\[{【]\s*(?:final[_ ])?"
    r"(?:result|score|rating|verdict|answer|judge?ment|decision|grade|output|评分|得分|评价|结论|答案|評価)\s*[\]}】]"
    rf"\s*[:=]?\s*[\[(\"'*]*((?:{NOUN}\s)?[^\s\[\]()\"'*]{{1,30}})",
    re.IGNORECASE,
)
_GRADE = re.compile(
    r"\bGRADE\b(?:\s+[a-z][^\n:.]{1,40})?\s*:\s*[\[(\"'*$]*"
    r"((?:partial(?:ly)?|partly|not|no)[ _]\w+|[^\s\[\]()\"'*.,;$]{1,30})",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\+boxed\s*\{\s*(?:\\+(?:text|mathrm|textbf)\s*\{\s*)?([^{}\n]{1,40}?)\s*\}")
_ALONE = re.compile(r"(?m)^\s*\[\s*([^\[\]\n]{1,30}?)\s*\]\s*$")
_CLAUSE = 200
"""Characters before a marker that may say what it is."""

_SUPPOSED = re.compile(
    r"\b(?:was\s+(?:about|going|tempted|inclined)\s+to|although|though|while|whereas|aunque|obwohl|bien\s+que|quoique|sebbene|embora|хотя|if|when|whether|unless|otherwise|else|had\s+(?:the|it|this|you)|were\s+(?:the|it)"
    r"|would\s+have|i['’]d\s+have|w[äa]re|w[üu]rde|h[äa]tte|ser[íi]a|serait|wenn|falls|sonst|andernfalls|si|s['’]ils?|sinon|cuando|quand|se|als|indien|je[śż]eli|je[śs]li|gdyby|e[ğg]er|jika|n[ếe]u|om|hvis|если)\b"
    r"|यदि|अगर|إذا|إن كان|لو|만약|이라면|라면|もし|場合|なら|如果|若|的话",
    re.IGNORECASE,
)
_CONCLUDES_ELSEWHERE = re.compile(
    r"\b(?:I|we)\s+(?:therefore\s+|would\s+|will\s+)?(?:choose|pick|select|prefer|go\s+with|decide"
    r"|conclude|vote)\b|\bmy\s+(?:verdict|choice|pick|decision|answer)\b"
    r"|\b(?:final|overall|my)\s+(?:verdict|decision|choice|answer)\s*(?:is\s*)?:\s*\[\["
    r"|\b(?:fazit|ergebnis|daher|deshalb|somit|insgesamt|also|endg[üu]ltig\w*)\b"
    r"|\b(?:por\s+lo\s+tanto|por\s+tanto|en\s+conclusi[óo]n|en\s+resumen|finalmente|veredicto)\b"
    r"|\b(?:donc|en\s+conclusion|par\s+cons[ée]quent|finalement|portanto|quindi|pertanto)\b"
    r"|\b(?:me\s+quedo\s+con|elijo|escojo|je\s+(?:choisis|retiens)|w[äa]hle|entscheide\s+(?:ich\s+)?mich|scelgo|escolho|opto"
    r"|kies|wybieram|выбираю)\b|我选|选择|選|선택"
    r"|\b(?:em\s+conclus[ãa]o|in\s+conclusione|dus|daarom|conclusie|zatem|wi[ęe]c|ostatecznie|wniosek|поэтому"
    r"|итак|итог\w*|вывод|вердикт|окончательн\w+|sonu[çc]\w*|karar\w*|kesimpulan\w*|k[ếe]t\s+lu[ậa]n|d[äe]rf[öo]r|slutsats)\b"
    r"|अंतिम|निष्कर्ष|इसलिए|अतः|النتيجة|الحكم|الخلاصة|لذلك|결론|따라서|그러므로|최종|結論|したがって|よって|最終|结论|因此|所以|综上|最终|總結|总之",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|n['’]t|cannot|no|nicht|non|ne|não|never|nie)\s+(?:\w+ly\s+)?(?:choose|pick|select"
    r"|prefer|go\s+(?:with|for)|say|give|recommend|eli(?:jo|ge|girí?a)|escojo|w[äa]hle|choisis|scelgo"
    r"|escolho|prefiero|r[ée]ponds|es|be|is)\s*[\"'“(]*$"
    r"|\b(?:better|superior|preferable|mejor|besser|st[äa]rker|meilleure?|migliore|melhor)\s+(?:than|to"
    r"|que|als|di|do\s+que)\s*[\"'“(]*$|(?:优于|好于|胜过|强于|[^不]比)\s*$"
    r"|\b(?:y|e|et|and|und)\s+(?:no|non|não|pas|not|nicht)\s*$"
    r"|(?:\b(?:not|neither|nor|weder|noch|nicht|non|no\s+es|pas|rather\s+than|instead\s+of)|不是|并非|并不是|而非)\s*[\"'“(]*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\s*(?:[이가은는]\s*)?아(?:니|닌)|\s*(?:보다|より|不如|不及)|\s*(?:では|じゃ)(?:なく|ない|ありません)"
    r"|\s+(?:nicht|is\s+not|isn['’]t|is\s+wrong|no\s+es|n['’]est\s+pas)\b"
)
"""How a marker is denied: "not [[A]]", "[[A]]가 아니라", "[[A]]ではなく"."""

_CONDITION_AFTER = re.compile(
    r"[\"'”’)\]*]*\s*(?:(?:would|could|might|too)\b|(?:only\s+)?(?:if|when|unless)\b|wenn\b|falls\b|si\b|なら|の場合"
    r"|(?:이|라)?면\b|이라면|只有|如果)",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\s*(?:or|/|\|)\s*[\[\"'(]*([^\s\[\]()\"'*.,;?]{1,20})", re.IGNORECASE)

MARKERS = (_DOUBLE, _NAMED, _GRADE, _BOXED, _ALONE)
_DEEPEST = 6


class Marked(NamedTuple):
    """A verdict in a declared form, "" where several contradict each other, and where it ends."""

    option: str
    end: int


def read_marked(text: str, space: Space) -> Marked | None:
    """The verdict in the last marker or JSON object; None without one.

    A marker that holds no option (a number that was computed, a placeholder) says nothing, except
    a tie in ``[[A=B]]``, which is the space's label for ties or UNCLEAR. Several markers of one
    kind that differ give one verdict only if the last one concludes ("Overall: [[3]]"), or if the
    others are denied or supposed ("not [[A]]", "if depth counts, [[A]]").
    """
    if marked := _read_markers(text, space):
        return marked
    ranked = read_ranks(text, space)
    if ranked:
        return Marked(*ranked)
    return _read_json(text, space) or _read_tags(text, space)


def _read_tags(text: str, space: Space) -> Marked | None:
    """The verdict of XML that no marker names: in a verdict's element, or in the one element that
    is exactly an option."""
    found = [*_ATTRIBUTE.finditer(text), *_LEAF.finditer(text)]
    fields = [
        (_key(match[1]), label, match.end())
        for match in found
        if (label := space.value(match[2])) is not None and _is_plain(match[2], space)
    ]
    named = [field for field in fields if field[0] in VERDICT_KEYS]
    chosen = named or ([] if space.numeric else fields)
    label = _one_label([(key, label) for key, label, _ in chosen])
    return None if label is None else Marked(label, max(end for *_, end in chosen))


class _Marker(NamedTuple):
    """A marker with an option: where it begins and ends, and what its clause says about it."""

    start: int
    end: int
    option: str
    concludes: bool
    is_condition: bool


def _read_markers(text: str, space: Space) -> Marked | None:
    last: tuple[int, Marked] | None = None
    for pattern in MARKERS:
        markers = list(_found(pattern, text, space))
        if len(markers) == 1 and _CONDITION_AFTER.match(text, markers[0].end):
            continue  # "I will end with [[A]] if ..."
        if not markers or (last is not None and last[0] > markers[-1].start):
            continue
        final = markers[-1]
        option = final.option
        line = text.rfind("\n", 0, final.start) + 1
        before = markers[-2] if len(markers) > 1 else None
        if (
            before is not None
            and before.concludes
            and before.option != option
            and before.end <= line
            and not text[before.end : line].strip(" .*_\n")
        ):
            option = ""  # Twice in a row, with nothing that says why: "Final verdict: [[A]]".
        if len({each.option for each in markers}) > 1 and not final.concludes:
            # A grade on a last line of its own replaces what was said before it.
            is_last = pattern is _GRADE and not text[final.end :].strip(" .*_)]\"'\n")
            own_line = text[line : final.start].strip(" *_#") == ""
            plain = {each.option for each in markers if not each.is_condition}
            # One straight below another replaces nothing: the two contradict each other.
            listed = len(markers) > 1 and not text[markers[-2].end : final.start].strip(" .*_\n")
            if listed or not (is_last and own_line):
                # A condition may end a reasoning or follow a verdict that came first.
                is_first = not markers[0].is_condition
                is_one = len(plain) == 1 and (is_first or not final.is_condition)
                option = plain.pop() if is_one else ""
        last = final.start, Marked(option, final.end)
    return last and last[1]


def _found(pattern: re.Pattern[str], text: str, space: Space) -> Iterator[_Marker]:
    """The markers of one kind that hold an option and are not denied."""
    before = offered = 0
    for match in pattern.finditer(text):
        option = space.value(match[match.lastindex or 1])
        if option is None:
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        line = max(line, text.rfind(". ", line, match.start()) + 1)  # its sentence
        start = max(before, line)
        clause = text[start : match.start()][-_CLAUSE:]
        before = match.end()
        if _DENIED_BEFORE.search(clause) or _DENIED_AFTER.match(text, match.end()):
            continue
        if (other := _ALTERNATIVE.match(text, match.end())) and space.value(other[1]) is not None:
            offered = other.end()
        if match.start() < offered:
            continue  # "GRADE: C or I?" offers both.
        concludes = bool(CONCLUDES.search(clause) or _CONCLUDES_ELSEWHERE.search(clause))
        is_condition = bool(_CONDITION_AFTER.match(text, match.end())) or (
            not concludes and bool(_SUPPOSED.search(clause))
        )
        yield _Marker(match.start(), match.end(), option, concludes, is_condition)


def _read_json(text: str, space: Space) -> Marked | None:
    """The one verdict of the JSON objects that have one; loose JSON is read field by field."""
    if "{" not in text and not _FIELD.search(text):
        return None
    fields: list[tuple[str, str]] = []
    end = 0
    for _, stop, values in json_values(text):
        label = _object_label(values, space)
        if label is not None:
            between = text[end:stop]
            if fields and _REPLACES.search(between[: between.find("{")]):
                fields = []  # "After checking again: {...}" replaces what came before it.
            fields.append(("", label))
            end = stop
    if not fields and '\\"' in text:  # JSON as an argument of a function call
        return _read_json(text.replace('\\"', '"'), space)
    if not fields:
        pairs = [(_key(m[1]), m[m.lastindex or 2]) for m in _FIELD.finditer(text)]
        loose = [
            (key, label)
            for key, value in pairs
            if (label := space.value(value)) is not None
            and (key in VERDICT_KEYS or _is_plain(value, space))
            and not _LOSES.search(key)
        ]
        fields = [each for each in loose if each[0] in VERDICT_KEYS]
        named = [each for each in loose if each[0] not in (*NAME_KEYS, *RANK_KEYS)]
        fields = fields or ([] if space.numeric else named)
        end = len(text)
    label = _one_label(fields)
    return None if label is None else Marked(label, end)


_REPLACES = re.compile(
    r"\b(?:after|final(?:ly)?|revised?|corrected|correction|on\s+reflection|updated?|reconsider\w*"
    r"|re-?check\w*|instead|actually|verdict|therefore|so\s+my|my\s+(?:own|verdict))\b",
    re.IGNORECASE,
)


def _object_label(values: dict[str, Any], space: Space) -> str | None:
    """The label in an object's verdict fields, or else in the fields that are exactly an option."""
    fields, others = _fields(values, space)
    return _one_label(fields or others)


_Fields = list[tuple[str, str]]


def _fields(values: dict[str, Any], space: Space, depth: int = 0) -> tuple[_Fields, _Fields]:
    """An object's verdict fields, or else those of the objects in it; and its other labels."""
    verdicts, inner, others = _Fields(), _Fields(), _Fields()
    for name, value in values.items():
        key = _key(name)
        if _LOSES.match(key):
            lost = _scalar_label(value, space)
            if lost is not None and len(space.options) == 2:
                others += [("", option) for option in space.options if option != lost]
            continue
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            if depth < _DEEPEST:
                deeper, rest = _fields(value, space, depth + 1)
                if (label := _one_label(deeper)) is not None:
                    inner.append((key, label))
                elif (label := _one_label(rest)) is not None:
                    own = inner if key in VERDICT_KEYS else others
                    own.append((key, label))
        elif key in VERDICT_KEYS or key.startswith(("overall", "final")):
            if (label := _scalar_label(value, space, is_verdict=True)) is not None:
                verdicts.append((key, label))
        elif (
            (label := _scalar_label(value, space)) is not None
            and _is_plain(value, space)
            and (
                not (space.numeric and _COUNT.search(key))
                or (space.pairwise and key == "index" and len(values) == 1)
            )
        ):
            others.append((key, label))
    return verdicts or inner, others


def _is_plain(value: Any, space: Space) -> bool:
    """Whether a field says an option as it is: 2 may be a score, although B is the second."""
    return space.numeric or not str(value).strip().isdigit()


_TRUTH: tuple[tuple[str, str], ...] = (
    ("yes", "no"),
    ("true", "false"),
    ("pass", "fail"),
    ("correct", "incorrect"),
)


def _scalar_label(value: Any, space: Space, *, is_verdict: bool = False) -> str | None:
    """The option that a field's value is; a verdict may be true or false in whatever words."""
    if isinstance(value, bool):
        pairs = _TRUTH if is_verdict else _TRUTH[:2]
        if is_verdict and {*space.options} == {"0", "1"}:
            pairs = (("1", "0"),)
        said = (space.value(pair[0 if value else 1]) for pair in pairs)
        return next((option for option in said if option is not None), None)
    if isinstance(value, int | float):
        whole = isinstance(value, float) and value.is_integer()
        return space.value(f"{value:.0f}" if whole else str(value)) if abs(value) < 1e9 else None
    return space.value(value) if isinstance(value, str) and len(value) <= 80 else None


def _key(name: str) -> str:
    return _NOT_WORD.sub("", name.casefold())


def _one_label(fields: list[tuple[str, str]]) -> str | None:
    """The label of several fields: that of all, or of the name that claims most; "" if they differ.

    None without fields.
    """
    labels = {label for _, label in fields}
    if len(labels) < 2:
        return next(iter(labels), None)
    for word in _PRIORITY:
        labels = {label for name, label in fields if word in name}
        if len(labels) == 1:
            return labels.pop()
    return ""
