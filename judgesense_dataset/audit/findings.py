"""The findings of an audit, and the scores of imagined judges that show their effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.statistics.kappa import cohen_kappa
from judgesense_dataset.audit.rows import AuditRow, PromptSide

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: a stable code, a severity, and a message."""

    code: str
    severity: str
    message: str


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """The messages of ``findings.yaml``: code -> severity -> message."""
    messages: Mapping[str, Mapping[str, str]] = read_yaml(Path(__file__).parent / "findings.yaml")
    return messages


def finding(code: str, severity: str | None = None, **facts: Any) -> Finding:
    """The finding of that code; ``severity`` is needed only if the code has several.

    >>> finding("gold_missing", rows="2 rows").severity
    'warning'
    """
    messages = catalogue()[code]
    severity = severity or next(iter(messages))
    return Finding(code, severity, messages[severity].format(**facts))


@dataclass(frozen=True, slots=True)
class Score:
    """JSS and kappa of an imagined judge; None where undefined or without gold labels."""

    n: int
    raw: float | None
    raw_kappa: float | None
    mapped: float | None

    def __str__(self) -> str:
        if self.raw is None or self.mapped is None:
            return "undefined (no gold labels)"
        kappa = "undefined" if self.raw_kappa is None else f"{self.raw_kappa:.4f}"
        return (
            f"raw JSS {self.raw:.4f} (kappa {kappa}) and mapped JSS {self.mapped:.4f} "
            f"on {count(self.n, 'row')}"
        )


def oracle(rows: Iterable[AuditRow]) -> Score:
    """The score of a judge that knows every gold label and understands every wording."""
    graded = [row for row in rows if row.gold is not None]
    known: dict[tuple[int, str], str] = {}

    def answer(side: PromptSide, gold: str) -> str:
        # Most prompts share the map of their wording.
        key = id(side.truth), gold
        if key not in known:
            known[key] = side.answer(gold)
        return known[key]

    raw = [(answer(row.a, row.gold or ""), answer(row.b, row.gold or "")) for row in graded]
    return _score(graded, raw)


def constant(rows: Sequence[AuditRow], answer: str) -> Score:
    """The score of a judge that always gives the same raw answer."""
    return _score(rows, [(answer, answer)] * len(rows))


def _score(rows: Sequence[AuditRow], raw: Sequence[tuple[str, ...]]) -> Score:
    if not rows:
        return Score(0, None, None, None)
    n = len(rows)
    mapped = [
        row.a.decision(first) == row.b.decision(second)
        for row, (first, second) in zip(rows, raw, strict=True)
    ]
    firsts, seconds = zip(*raw, strict=True)
    return Score(
        n,
        sum(a == b for a, b in raw) / n,
        cohen_kappa(list(firsts), list(seconds)),
        sum(mapped) / n,
    )


def count(n: int, noun: str) -> str:
    """The number with its noun: 1 row, 2 rows."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names, and the number of the others."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
