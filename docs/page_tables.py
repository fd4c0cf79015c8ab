"""Markdown tables of the docs' programs."""

from __future__ import annotations

from collections.abc import Sequence


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.{digits}f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with numbers on the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
