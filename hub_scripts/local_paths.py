"""Reduce local paths to names, so that published files do not reveal anyone's folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

_WINDOWS = re.compile(r"(?:[A-Za-z]:[\\/]|\\\\)[^\n]*")
_POSIX = re.compile(r"(?:file://)?(?:~|\.{1,2})?/[^\n]*")
_INSIDE = re.compile(
    r"""(?<![\w:/.<>~-])(?:file://)?~?(?:/[\w.+@%~-]+){2,}/?"""
    r"""|(?<![\w])[A-Za-z]:(?:\\[\w.+@%~-]+)+"""
)
_STIMULUS = frozenset({"system_prompt", "prompt_head", "prompt_tail", "text", "instruction"})
"""Keys whose values a judge saw; they stay as they are."""


def without_paths(value: Any) -> Any:
    """The same JSON value with every path, alone or in a message, reduced to its last name.

    Text that a judge saw (system prompts, prompts) and URLs stay as they are.

    >>> without_paths({"model": "/home/ann/models/mine", "text": "see /home/ann"})
    {'model': 'mine', 'text': 'see /home/ann'}
    """
    if isinstance(value, Mapping):
        return {
            key: inner if key in _STIMULUS else without_paths(inner) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [without_paths(inner) for inner in value]
    return name_only(value) if isinstance(value, str) else value


def name_only(text: str) -> str:
    """The last name of a path, or a text in which every path is reduced to its last name."""
    if _WINDOWS.fullmatch(text):
        return PureWindowsPath(text).name or text
    if _POSIX.fullmatch(text):
        return PurePosixPath(text).name or text
    return _INSIDE.sub(lambda found: _last(found[0]), text)


def _last(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
