"""Tables that the programs of the results pages share."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.{digits}f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with numbers on the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_ends(value: float | None, low: float | None, high: float | None, digits: int = 2) -> str:
    """An estimate with its interval in brackets."""
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def card_row(card: dict[str, Any], checks: Sequence[str]) -> list[str]:
    """A judge's trust, and the estimate and state of each check; - for one that is unmeasured."""
    found = [card["checks"][name] for name in checks]
    texts = [
        "-" if check["estimate"] is None else f"{check['estimate']:.2f} {check['state']}"
        for check in found
    ]
    return [card["judge"], card["trust"], *texts]


def write_csv(path: Path, tables: Mapping[str, str]) -> None:
    """Write Markdown tables to one CSV file, each under its title."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        for title, text in tables.items():
            rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
            lines.writerows([[f"# {title}"], rows[0], *rows[2:], []])
