"""Read JSON from elsewhere: whatever is wrong with it is one error that names its place."""

from __future__ import annotations

import json
from typing import Any

from judgesense.errors import JudgeSenseError


def parse_json(
    text: str | bytes, where: str, *, surrogates: bool = False, finite: bool = False
) -> Any:
    """The value of JSON text; ``where`` names it in errors.

    Raises JudgeSenseError for text that is not JSON, nesting or an integer beyond what Python
    reads, and half a surrogate pair (``"\\ud83d"``), which no file can store, unless
    ``surrogates`` lets it through. With ``finite``, NaN and infinite numbers are refused as well.

    >>> parse_json('{"n": 1}', "mine.json")
    {'n': 1}
    >>> parse_json('{"n": }', "mine.json, line 3")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: mine.json, line 3: not JSON (Expecting value, column 7)
    """
    try:
        value = json.loads(text)
        escaped = b"\\u" in text if isinstance(text, bytes) else "\\u" in text
        if escaped and not surrogates:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise JudgeSenseError(
            f"{where}: not JSON ({error.msg}, {line}column {error.colno})"
        ) from error
    except UnicodeDecodeError as error:
        raise JudgeSenseError(f"{where}: not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise JudgeSenseError(
            f"{where}: holds half a surrogate pair, {error.object[error.start]!r}; write the whole "
            "character"
        ) from error
    except RecursionError as error:
        raise JudgeSenseError(f"{where}: nested too deeply") from error
    except ValueError as error:
        raise JudgeSenseError(f"{where}: holds an integer that is too long to read") from error
    if finite:
        _require_finite(value, where)
    return value


def _require_finite(value: Any, where: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise JudgeSenseError(f"{where}: holds NaN or an infinite number") from error
