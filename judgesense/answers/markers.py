"""Verdicts in a declared form: JSON fields and the markers that judging prompts ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from judgesense.answers.space import Space
from judgesense.answers.vocabulary import CONCLUDES

VERDICT_KEYS = frozenset(
    {
        "verdict",
        "finalverdict",
        "answer",
        "finalanswer",
        "score",
        "finalscore",
        "overallscore",
        "overall",
        "totalscore",
        "rating",
        "finalrating",
        "overallrating",
        "ratingscore",
        "grade",
        "finalgrade",
        "label",
        "judgment",
        "judgement",
        "finaljudgment",
        "decision",
        "finaldecision",
        "choice",
        "finalchoice",
        "winner",
        "preference",
        "preferred",
        "preferredresponse",
        "preferredoutput",
        "result",
        "selected",
        "selection",
        "better",
        "betterresponse",
        "betteroutput",
        "betteranswer",
        "best",
        "bestresponse",
        "bestoutput",
        "classification",
        "category",
        "prediction",
        "evaluation",
        "output",
        "response",
        "option",
        "value",
        "correct",
        "iscorrect",
        "correctness",
        "criteriamet",
        "met",
        "pass",
        "passed",
    }
)
"""Names under which judges put their verdict, without case, spaces and underscores."""

_PRIORITY = ("final", "overall", "verdict", "winner", "answer", "score", "rating")
_NOT_WORD = re.compile(r"[\W\d_]")
_COUNT = re.compile(r"errors?|issues?|mistakes?|count|number|flaws?|words?|steps?|id$|index")
_FIELD = re.compile(
    r"[\"']([^\W\d][\w -]{0,30})[\"']\s*:\s*"
    r"(?:\"([^\"\n]{0,80})\"|'([^'\n]{0,80})'|(-?\d{1,6}(?:\.\d{1,6})?|true|false)(?=\s*(?:[,}\n]|$)))",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(answer|verdict|score|rating|result|judge?ment|decision|choice|grade|label"
    r"|final[_ ]?\w{0,12})>"
    r"\s*([^<]{1,80}?)\s*</\1>",
    re.IGNORECASE,
)
_DOUBLE = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
_NAMED = re.compile(
    r"\[\s*(?:final[_ ])?"
    r"(?:result|score|rating|verdict|answer|judge?ment|decision|grade|output)\s*\]"
    r"\s*[:=]?\s*[\[(\"'*]*([^\s\[\]()\"'*]{1,30})",
    re.IGNORECASE,
)
_GRADE = re.compile(r"\bGRADE\s*:\s*[\[(\"'*$]*([^\s\[\]()\"'*.,;$]{1,30})", re.IGNORECASE)
_BOXED = re.compile(r"\\+boxed\s*\{\s*(?:\\+(?:text|mathrm|textbf)\s*\{\s*)?([^{}\n]{1,40}?)\s*\}")
_HASHES = re.compile(r"(?m)^\s*####\s*([^\n]{1,40}?)\s*$")
_ALONE = re.compile(r"(?m)^\s*\[\s*([^\[\]\n]{1,30}?)\s*\]\s*$")
_CONDITION = re.compile(r"\b(?:if|either|one of|such as|format|e\.g\.)\b", re.IGNORECASE)

MARKERS = (_DOUBLE, _NAMED, _GRADE, _BOXED, _TAG, _HASHES, _ALONE)
_MOST_OBJECTS = 40
_DEEPEST = 6


class Marked(NamedTuple):
    """A verdict in a declared form, "" where several contradict each other, and where it ends."""

    option: str
    end: int


def read_marked(text: str, space: Space) -> Marked | None:
    """The verdict in the last marker or JSON object; None without one.

    A marker that holds no option (a number that was computed, a placeholder) says nothing, except
    a tie in ``[[A=B]]``, which is the space's label for ties or UNCLEAR. Several markers of one
    kind that differ give one verdict only if the last one concludes ("Overall: [[3]]").
    """
    return _read_markers(text, space) or _read_json(text, space)


def _read_markers(text: str, space: Space) -> Marked | None:
    last: tuple[int, Marked] | None = None
    for pattern in MARKERS:
        matches = [
            (match.start(), Marked(value, match.end()))
            for match in pattern.finditer(text)
            if (value := space.value(match[match.lastindex or 1])) is not None
        ]
        # "[[A]] if A is better, [[B]] if B is better" only repeats the question.
        matches = [each for each in matches if not offers_markers(_line(text, each[0]), space)]
        if not matches or (last is not None and last[0] > matches[-1][0]):
            continue
        start, marked = matches[-1]
        several = len({each.option for _, each in matches}) > 1
        if several and not CONCLUDES.search(text, max(0, text.rfind("\n", 0, start)), start):
            marked = Marked("", marked.end)
        last = start, marked
    return last and last[1]


def _line(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 : text.find("\n", place) % (len(text) + 1)]


def offers_markers(line: str, space: Space) -> bool:
    """Whether a line offers several markers on a condition, as a judge's prompt does."""
    if "[[" not in line or not _CONDITION.search(line[:400]):
        return False
    return len({v for each in _DOUBLE.findall(line) if (v := space.value(each))}) > 1


def _read_json(text: str, space: Space) -> Marked | None:
    """The one verdict of the JSON objects that have one; loose JSON is read field by field."""
    if "{" not in text and not _FIELD.search(text):
        return None
    fields = []
    end = 0
    for values, stop in _objects(text):
        label = _object_label(values, space)
        if label is not None:
            fields.append(("", label))
            end = stop
    if not fields:
        loose = [
            (_key(match[1]), label)
            for match in _FIELD.finditer(text)
            if (label := space.value(match[2] or match[3] or match[4])) is not None
        ]
        fields = [each for each in loose if each[0] in VERDICT_KEYS]
        fields = fields or ([] if space.numeric else loose)
        end = len(text)
    label = _one_label(fields)
    return None if label is None else Marked(label, end)


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The JSON objects in a text and their ends; at most `_MOST_OBJECTS` places are tried."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            values, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield values, end
        start = text.find("{", end)


def _object_label(values: dict[str, Any], space: Space, depth: int = 0) -> str | None:
    """The label in an object's verdict fields, or else in the fields that are exactly an option."""
    verdicts, others = [], []
    for name, value in values.items():
        if isinstance(value, dict):
            inner = _object_label(value, space, depth + 1) if depth < _DEEPEST else None
            if inner is not None:
                verdicts.append((_key(name), inner))
        elif (label := _scalar_label(value, space)) is not None:
            key = _key(name)
            if key in VERDICT_KEYS:
                verdicts.append((key, label))
            elif not (space.numeric and _COUNT.search(key)):
                others.append((key, label))
    return _one_label(verdicts or others)


def _scalar_label(value: Any, space: Space) -> str | None:
    if isinstance(value, bool):
        return space.value("yes" if value else "no") or space.value("true" if value else "false")
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
