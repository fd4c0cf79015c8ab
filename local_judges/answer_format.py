"""Structured answers: what an engine with a grammar is told to write, and nothing else.

``choice`` allows exactly one of the options as the text. ``json`` allows an object with the one
field ``verdict``, whose value is one of the options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

FIELD = "verdict"
"""The field of a JSON answer; the parser knows it."""


def schema_of(options: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of an answer; a field may hold nothing but an option, as text.

    >>> schema_of(("YES", "NO"))["properties"]
    {'verdict': {'type': 'string', 'enum': ['YES', 'NO']}}
    """
    return {
        "type": "object",
        "properties": {FIELD: {"type": "string", "enum": list(options)}},
        "required": [FIELD],
        "additionalProperties": False,
    }


def instruction_of(options: Sequence[str]) -> str:
    """What the system prompt says to an endpoint that writes JSON but takes no schema.

    >>> instruction_of(("YES", "NO"))
    'Answer with a JSON object: {"verdict": "YES" or "NO"}.'
    """
    named = " or ".join(json.dumps(option, ensure_ascii=False) for option in options)
    return f'Answer with a JSON object: {{"{FIELD}": {named}}}.'


def fields_of(answer_format: str, options: Sequence[str], schema: bool = True) -> Mapping[str, Any]:
    """The fields of a chat completion request that ask for a format.

    ``choice`` is vLLM's ``structured_outputs``; ``json`` is OpenAI's ``response_format``, with a
    schema or, if ``schema`` is False, in JSON mode.
    """
    if answer_format == "choice":
        return {"structured_outputs": {"choice": list(options)}}
    if not schema:
        return {"response_format": {"type": "json_object"}}
    described = {"name": FIELD, "strict": True, "schema": schema_of(options)}
    return {"response_format": {"type": "json_schema", "json_schema": described}}
