"""Which label each reply to a rubric means: as the user says, or as the rubric's own JSON shows."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.values import SAME, fold, place_of
from judgesense.tasks import Template, is_scale

_OBJECT = re.compile(r"\{[^{}]*[\"'][^{}]*\}")
_TEXT = r"\"[^\"\n]*\"|'[^'\n]*'"
_FIELD = re.compile(
    rf"[\"']([^\"'\n]{{1,40}})[\"']\s*:\s*((?:{_TEXT})(?:\s*(?:\||/|or)\s*(?:{_TEXT}))*|[^,}}\n]+)"
)
_RANGE = re.compile(r"(?<![\d.])(-?\d{1,3})\s*(?:-|–|\.\.|to)\s*(\d{1,3})(?![\d.])")
_EITHER = re.compile(r"\s*(?:\||/|\bor\b)\s*")
_LENGTH = re.compile(r"\b(?:sentence|word|line|paragraph|character)s?\b", re.IGNORECASE)
"""In the example of a text, how long it is to be."""
_AROUND = " \t\"'<>[]()`*."
_LONGEST, _MOST = 24, 11
_LIMIT = re.compile(r"(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def declared_fields(rubric: str) -> dict[str, tuple[str, ...]]:
    """The fields of the JSON replies that a rubric shows, with the values of those that have few.

    >>> declared_fields('Reply as {"why": "<one sentence>", "score": 0 or 1, "tone": 1-3}.')
    {'score': ('0', '1'), 'tone': ('1', '2', '3')}
    """
    return {name: values for name, values in shown_fields(rubric).items() if values}


def shown_fields(rubric: str) -> dict[str, tuple[str, ...]]:
    """All fields of the JSON replies that a rubric shows, in order; () for free text."""
    examples = _OBJECT.findall(rubric)
    pairs = [pair for example in examples for pair in _FIELD.findall(example)]
    return {name: _values(values) for name, values in pairs}


def _values(example: str) -> tuple[str, ...]:
    """The values that a field may have, as the example states them; () for free text.

    >>> _values('"pass" or "fail"'), _values('"<one or two sentences>"')
    (('pass', 'fail'), ())
    """
    text = example.strip().strip(_AROUND)
    if _LENGTH.search(text):
        return ()
    if text.casefold() in ("boolean", "bool"):
        return ("true", "false")
    if match := _RANGE.search(text):
        low, high = int(match[1]), int(match[2])
        return tuple(map(str, range(low, high + 1))) if 0 < high - low < _MOST else ()
    parts = [part.strip(_AROUND) for part in _EITHER.split(text)]
    short = all(0 < len(part) <= _LONGEST and len(part.split()) <= 2 for part in parts)
    return tuple(dict.fromkeys(parts)) if 1 < len(parts) <= _MOST and short else ()


def reply_field(template: Template) -> str:
    """The field of a JSON reply that holds the verdict, as the wording's example shows; "" where it
    shows none, or several.

    >>> text = 'Reply as {"confidence": 1-5, "ok": true or false}.'
    >>> raw = {"true": "PASS", "false": "FAIL"}
    >>> reply_field(Template("r", "rubric", text, "{instruction}", raw))
    'ok'
    """
    fields = declared_fields(f"{template.text}\n{template.layout}")
    if template.task in fields:
        return template.task
    raw = {answer.casefold() for answer in template.label_map}
    names = [name for name, values in fields.items() if {v.casefold() for v in values} >= raw]
    return names[0] if len(names) == 1 else ""


_FORM = re.compile(r"\[\[|\[RESULT\]|</\w+>|\bjson\b|\b(?:first|last|final) line\b", re.IGNORECASE)


def has_own_form(template: Template) -> bool:
    """Whether a wording asks for a form of reply: JSON, a tag, brackets, or a line of its own.

    Another form beside it would ask for two.
    """
    text = f"{template.text}\n{template.layout}"
    return bool(shown_fields(text) or _FORM.search(text))


def field_to_read(template: Template) -> str:
    """The field of the verdict, then the other fields with verdicts, a line each.

    A reply that has one of the others alone has no verdict.
    """
    field = reply_field(template)
    others = declared_fields(f"{template.text}\n{template.layout}") if field else {}
    return "\n".join([field, *(name for name in others if name != field)])


def reply_schema(template: Template) -> str:
    """The JSON schema of the replies that a wording asks for; "" if it is unclear.

    Reasoning comes before the verdict. A wording that asks for reasoning outside its JSON has none,
    because a judge that is held to a schema could not reason; nor has one whose JSON is nested.

    >>> text = 'Reply as {"ok": true or false, "why": "<one sentence>"}.'
    >>> schema = json.loads(reply_schema(Template("r", "rubric", text, "{instruction}", {})))
    >>> schema["required"]
    ['why', 'ok']
    """
    text = f"{template.text}\n{template.layout}"
    examples = [match for match in _OBJECT.finditer(text) if declared_fields(match.group())]
    if len(examples) != 1:
        return ""
    (example,) = examples
    is_inner = _OPENED.search(text, 0, example.start()) or _GOES_ON.match(text, example.end())
    pairs = dict(_FIELD.findall(example.group()))
    kinds = {name: _kind(stated) for name, stated in pairs.items()}
    n_fields = len(_KEY.findall(example.group()))
    if is_inner or None in kinds.values() or len(pairs) != n_fields:
        return ""
    text_fields = [name for name, kind in kinds.items() if kind == {"type": "string"}]
    if not text_fields and _REASONS.search(text):
        return ""
    names = [*text_fields, *(name for name in kinds if name not in text_fields)]
    return json.dumps(
        {
            "type": "object",
            "properties": {name: kinds[name] for name in names},
            "required": names,
            "additionalProperties": False,
        }
    )


_OPENED = re.compile(r"(?:[\[{]|[\"']\s*:)\s*$")
_GOES_ON = re.compile(r"\s*(?:[\]}]|,\s*[\"{])")
_KEY = re.compile(r"[\"'][^\"'\n]{1,40}[\"']\s*:")
_REASONS = re.compile(r"\b(?:step by step|reason|explain|think|justif|analy[sz])", re.IGNORECASE)


def _kind(example: str) -> dict[str, Any] | None:
    """The JSON schema of a field as its example states it; None for a list, or a number."""
    values = _values(example)
    if {value.casefold() for value in values} == {"true", "false"}:
        return {"type": "boolean"}
    if values and is_scale(values):
        return {"type": "integer", "enum": [int(value) for value in values]}
    if values:
        return {"type": "string", "enum": list(values)}
    return {"type": "string"} if re.match(r"\s*[\"'<]", example) else None


def label_map_of(
    fields: Mapping[str, Sequence[str]],
    labels: Sequence[str],
    mapping: Mapping[str, str] | None,
    positive: str | None,
    where: str,
) -> dict[str, str]:
    """The label of each raw answer to a rubric that declares these fields.

    ``mapping`` translates words, or numbers by their limits (``>=4``); ``positive`` is the label
    that stands for 1, yes and true. Without either, the values that the rubric's JSON shows meet
    the labels where only one reading is possible.

    Raises JudgeSenseError for a label that is none, and for limits without a scale.
    """
    identity_map = {label: label for label in labels}
    for label in [*(mapping or {}).values(), *([positive] if positive else [])]:
        if label not in identity_map:
            raise JudgeSenseError(
                f"{where}: {label!r} is not a label; the labels are {', '.join(labels)} (to name "
                "others: --answers)"
            )
    if mapping:
        words = dict(_word_map(mapping, [v for values in fields.values() for v in values], where))
        labels_left = {label: label for label in labels if label not in words.values()}
        return {**words, **labels_left}
    if positive is not None and len(labels) != 2:
        raise JudgeSenseError(f"{where}: --positive is for two labels; use --map")
    matches = [match for values in fields.values() if (match := _align(values, labels, positive))]
    return matches[0] if len(matches) == 1 else identity_map


def translated(word: str, mapping: Mapping[str, str] | None) -> str:
    """The label of a person's word or number; the word itself if it has none.

    >>> translated("4", {">=4": "PASS", "<4": "FAIL"}), translated("Good", {"good": "PASS"})
    ('PASS', 'PASS')
    """
    for answer, label in (mapping or {}).items():
        if fold(answer) == fold(word):
            return label
        limit = _LIMIT.fullmatch(answer) if _NUMBER.fullmatch(word.strip()) else None
        if limit and _COMPARE[limit[1]](float(word), float(limit[2])):
            return label
    return word


def _word_map(
    mapping: Mapping[str, str], scale: Sequence[str], where: str
) -> Iterator[tuple[str, str]]:
    for word, label in mapping.items():
        if (limit := _LIMIT.fullmatch(word)) is None:
            yield word, label
            continue
        numbers = [value for value in dict.fromkeys(scale) if is_scale([value])]
        if not numbers:
            raise JudgeSenseError(
                f"{where}: {word!r} needs a scale, but the rubric's example shows none; translate "
                f"each number instead, such as 1={label}"
            )
        holds = _COMPARE[limit[1]]
        yield from ((n, label) for n in numbers if holds(float(n), float(limit[2])))


def _align(
    values: Sequence[str], labels: Sequence[str], positive: str | None
) -> dict[str, str] | None:
    """The label of each value where both are two words of which one means yes and one no."""
    if len(values) != 2 or len(labels) != 2:
        return None
    sides = [_sides(values), (positive, _other(labels, positive)) if positive else _sides(labels)]
    (yes, no), (good, bad) = sides
    if None in (yes, no, good, bad) or {yes, no} == {good, bad}:
        return None
    return {str(no): str(bad), str(yes): str(good)}


def _other(labels: Sequence[str], label: str) -> str:
    return next(other for other in labels if other != label)


def _sides(words: Sequence[str]) -> tuple[str | None, str | None]:
    """The word that means yes and the one that means no; None where there is none."""
    places = {place_of(fold(word), SAME[0]): word for word in words}
    return places.get(0), places.get(1)
