"""How a check is judged and decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgesense.decisions.log import SCORINGS
from judgesense.errors import JudgeSenseError
from judgesense.trust.thresholds import STEADY_JSS

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a check is judged and decided; see :func:`judgesense.check` for each."""

    rubric: Path
    data: Path
    judge: Any
    human: Sequence[str] = ()
    answers: Sequence[str] | None = None
    options: Mapping[str, str] | None = None
    wordings: str | Path | None = None
    paraphraser: Any = None
    n_paraphrases: int | None = None
    threshold: float = STEADY_JSS
    inconclusive: Inconclusive | None = None
    scoring: str = "generate"
    variants: Sequence[str] | None = None
    attacks: str | None = None
    repeats: int = 2
    seed: int = 0
    limit: int | None = None
    out: str | Path | None = None
    runs: str | Path = RUNS

    def __post_init__(self) -> None:
        if self.scoring not in SCORINGS:
            raise JudgeSenseError(
                f"unknown scoring {self.scoring!r}; choose one of {', '.join(SCORINGS)}"
            )
        if not 0 <= self.threshold <= 1:
            raise JudgeSenseError(f"the threshold must be between 0 and 1, got {self.threshold}")
        if self.inconclusive not in (None, "pass", "fail"):
            raise JudgeSenseError(f"inconclusive is {self.inconclusive!r}: choose pass or fail")
