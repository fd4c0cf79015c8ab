"""Verdicts in a declared form: JSON fields and the markers that judging prompts ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from local_judges.parsing.space import Space

VERDICT_KEYS = frozenset(
    {
        "verdict", "finalverdict", "answer", "finalanswer", "score", "finalscore", "overallscore",
        "overall", "totalscore", "rating", "finalrating", "overallrating", "ratingscore", "grade",
        "finalgrade", "label", "judgment", "judgement", "finaljudgment", "decision",
        "finaldecision", "choice", "finalchoice", "winner", "preference", "preferred",
        "preferredresponse", "preferredoutput", "result", "selected", "selection", "better",
        "betterresponse", "betteroutput", "betteranswer", "best", "bestresponse", "bestoutput",
        "classification", "category", "prediction", "evaluation", "output", "response", "option",
        "value", "correct", "iscorrect", "correctness", "criteriamet", "met", "pass", "passed",
    }
)  # fmt: skip
"""Names under which judges put their verdict, without case, spaces and underscores."""

_PRIORITY = ("final", "overall", "verdict", "winner", "answer", "score", "rating")
_NOT_WORD = re.compile(r"[^a-z]")
_FIELD = re.compile(
    r"[\"']([A-Za-z][A-Za-z _-]{0,30})[\"']\s*:\s*"
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

MARKERS = (_DOUBLE, _NAMED, _GRADE, _BOXED, _TAG, _HASHES, _ALONE)
_MOST_OBJECTS = 40
_DEEPEST = 6


def read_structured(text: str, space: Space) -> str | None:
    """The verdict in the last marker or JSON object; None without one.

    A marker that holds no option (a number that was computed, a placeholder) says nothing, except
    a tie in ``[[A=B]]``, which is the space's label for ties or UNCLEAR.
    """
    found = _read_markers(text, space)
    return found if found is not None else _read_json(text, space)


def _read_markers(text: str, space: Space) -> str | None:
    best: tuple[int, str] | None = None
    for pattern in MARKERS:
        said: list[tuple[int, str]] = []
        for match in pattern.finditer(text):
            value = space.value(match.group(match.lastindex or 1))
            if value is not None:
                said.append((match.start(), value))
        # "[[A]] if A is better, [[B]] if B is better" only repeats the question.
        if said and not _is_echo(text, said[-1][0], space) and (best is None or said[-1] > best):
            best = said[-1]
    return best and best[1]


def _is_echo(text: str, start: int, space: Space) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : text.find("\n", start) % (len(text) + 1)]
    return bool(
        re.search(r"\b(?:if|either|one of|such as|format|e\.g\.)\b", line[:400], re.I)
    ) and (len({value for each in _DOUBLE.findall(line) if (value := space.value(each))}) > 1)


def _read_json(text: str, space: Space) -> str | None:
    """The verdict of the last JSON object that has one; loose JSON is read field by field."""
    if "{" not in text and not _FIELD.search(text):
        return None
    last = None
    for parsed in _objects(text):
        verdict = _of_object(parsed, space)
        last = verdict if verdict is not None else last
    if last is not None:
        return last
    said = [
        (_key(name), value)
        for name, double, single, bare in _FIELD.findall(text)
        if _key(name) in VERDICT_KEYS
        and (value := space.value(double or single or bare)) is not None
    ]
    return _chosen(said)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order; at most `_MOST_OBJECTS` places are tried."""
    decoder, start, tried = json.JSONDecoder(), text.find("{"), 0
    while start >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            parsed, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if isinstance(parsed, dict):
                yield parsed
        start = text.find("{", end)


def _of_object(parsed: dict[str, Any], space: Space, depth: int = 0) -> str | None:
    said = []
    for name, value in parsed.items():
        if isinstance(value, dict):
            inner = _of_object(value, space, depth + 1) if depth < _DEEPEST else None
            if inner is not None:
                said.append((_key(name), inner))
        elif _key(name) in VERDICT_KEYS and (label := _of_scalar(value, space)) is not None:
            said.append((_key(name), label))
    if not said and len(parsed) == 1 and not isinstance(next(iter(parsed.values())), dict):
        # {"coherence": 4}: one field, and its value is an option.
        (value,) = parsed.values()
        return _of_scalar(value, space)
    return _chosen(said)


def _of_scalar(value: Any, space: Space) -> str | None:
    if isinstance(value, bool):
        return space.value("yes" if value else "no") or space.value("true" if value else "false")
    if isinstance(value, (int, float)):
        try:
            whole = isinstance(value, float) and value.is_integer()
            return space.value(str(int(value) if whole else value))
        except (ValueError, OverflowError):
            return None
    return space.value(value) if isinstance(value, str) else None


def _key(name: str) -> str:
    return _NOT_WORD.sub("", name.casefold())


def _chosen(said: list[tuple[str, str]]) -> str | None:
    """One verdict of several fields: all agree, or the one whose name claims most."""
    labels = {label for _, label in said}
    if len(labels) == 1:
        return labels.pop()
    for word in _PRIORITY:
        labels = {label for name, label in said if word in name}
        if len(labels) == 1:
            return labels.pop()
    return None
