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


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value) if isinstance(value, (str, int, float)) else None
