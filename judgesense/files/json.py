"""Read JSON from elsewhere: whatever is wrong with it is one error that names its place."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from judgesense.errors import JudgeSenseError


def parse_json(
    text: str | bytes, where: str, *, surrogates: bool = False, finite: bool = False
) -> Any:
    """The value of JSON text; ``where`` names it in errors.

    Raises JudgeSenseError for text that is not JSON, an object with a key twice, nesting or an
    integer beyond what Python reads, and half a surrogate pair (``"\\ud83d"``), which no file can
    store, unless ``surrogates`` lets it through. With ``finite``, NaN and infinite numbers are
    refused as well.

    >>> parse_json('{"n": 1}', "mine.json")
    {'n': 1}
    >>> parse_json('{"n": }', "mine.json, line 3")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: mine.json, line 3: not JSON (Expecting value, column 7)
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))  # json itself lets surrogates pass
        if text.startswith("\ufeff"):
            raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
        value = (_FINITE if finite else _ANY).decode(text)
        if not surrogates and "\\u" in text and _SURROGATE.search(text):
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
    except _RepeatedKeyError as error:
        raise JudgeSenseError(f"{where}: the key {error.args[0]!r} appears twice") from error
    except _NotFiniteError as error:
        raise JudgeSenseError(
            f"{where}: holds {error.args[0][:30]}, which is not a finite number"
        ) from error
    except ValueError as error:
        raise JudgeSenseError(
            f"{where}: holds an integer that is too long and cannot be read"
        ) from error
    return value


class _RepeatedKeyError(ValueError):
    """An object has a key twice; Python keeps the last without a word."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise _RepeatedKeyError(name)
    return found


class _NotFiniteError(ValueError):
    """NaN, or a number that is or reads as infinite."""


def _constant(name: str) -> float:
    raise _NotFiniteError(name)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotFiniteError(text)
    return value


_ANY = json.JSONDecoder(object_pairs_hook=_object)
_FINITE = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a pair, or of a character that is written as two."""
