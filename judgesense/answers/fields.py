"""The field of a JSON reply that holds the verdict, where the prompt shows which one it is."""

from __future__ import annotations

from typing import Any

from judgesense.answers.text import json_values, without_thinking


def in_field(text: str, field: str) -> str | None:
    """The value of a field in the last JSON object that has it, as text; None without one.

    ``field`` may name others after it, a line each: "" where a reply has only those.

    >>> in_field('Fine. {"confidence": 1, "grounded": false}', "grounded")
    'false'
    """
    field, *others = field.casefold().split("\n")
    value, has_others = None, False
    for _, _, found in json_values(without_thinking(text)):
        names = {str(name).casefold(): each for name, each in found.items()}
        value = names.get(field, value)
        has_others = has_others or not names.keys().isdisjoint(others)
    return "" if value is None and has_others else _as_text(value)


_REASONS = (
    *("reasoning", "reason", "rationale", "explanation", "justification", "analysis", "critique"),
    *("thoughts", "thinking", "comment", "comments", "feedback", "why"),
)


def reasoning_in(reply: str) -> str | None:
    """What a judge wrote to explain its verdict: such a field of its JSON, else the text before the
    JSON, else a reply of a few words or more; None without any.

    >>> reasoning_in('{"reasoning": "It names no source.", "verdict": "fail"}')
    'It names no source.'
    >>> reasoning_in("PASS"), reasoning_in("The claim is there. So it holds. Verdict: PASS")
    (None, 'The claim is there. So it holds. Verdict: PASS')
    """
    objects = list(json_values(reply))
    for _, _, found in reversed(objects):
        names = {str(name).casefold(): each for name, each in found.items()}
        told = [names[key] for key in _REASONS if isinstance(names.get(key), str)]
        # A judge may name the field as it likes: reason_for_verdict.
        told += [v for k, v in names.items() if "reason" in k and isinstance(v, str)]
        if told and told[0].strip():
            return str(told[0]).strip()
    text = reply[: objects[0][0]].removesuffix("```json\n") if objects else reply
    return text.strip() if len(text.split()) >= _FEW_WORDS else None


_FEW_WORDS = 5


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value) if isinstance(value, (str, int, float)) else None
