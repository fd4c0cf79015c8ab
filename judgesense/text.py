"""Figures and names as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where it is undefined; what rounds to zero has no sign."""
    return "–" if value is None else f"{value:z.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share in per cent; never 0% or 100% unless it is."""
    if value is None:
        return "–"
    if 0 < value < 0.01 or 0.99 < value < 1:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.0f}%"


def interval(cell: Mapping[str, Any], digits: int = 3) -> str:
    """A cell's interval in brackets; a dash without one."""
    if cell["ci_low"] is None:
        return "[–]"
    return f"[{number(cell['ci_low'], digits)}, {number(cell['ci_high'], digits)}]"


def join(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentence(text: str) -> str:
    """Text that begins a line: its first letter large, unless a name begins it."""
    first = text.split(" ", 1)[0].rstrip(",:;")
    return text[:1].upper() + text[1:] if first.replace("'", "").isalpha() else text
