"""What a check is asked, as records that the command and :func:`judgesense.check` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgesense.files.data import Data
from judgesense.measure.thresholds import MARGIN, STEADY_JSS
from judgesense.pipeline.settings import Note, to_stderr
from judgesense.statistics.alternative_annotator import EPSILON

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]


@dataclass(frozen=True)
class FileOptions:
    """How a file of verdicts is read; :func:`judgesense.check` describes each field."""

    verdict: Sequence[str] = ()
    human: Sequence[str] = ()
    columns: Mapping[str, str] | None = None
    map: Mapping[str, str] | None = None
    answers: Sequence[str] | None = None
    pick: str | None = None
    epsilon: float = EPSILON
    positive: str | None = None


@dataclass(frozen=True)
class RubricOptions:
    """How a rubric is judged; :func:`judgesense.check` describes each field."""

    human: Sequence[str] = ()
    columns: Mapping[str, str] | None = None
    answers: Sequence[str] | None = None
    map: Mapping[str, str] | None = None
    positive: str | None = None
    options: Mapping[str, str] | None = None
    wordings: str | Path | None = None
    paraphraser: Any = None
    paraphrases: int | None = None
    threshold: float = STEADY_JSS
    scoring: str = "generate"
    variants: Sequence[str] | None = None
    attacks: str | Path | None = None
    damage: int | str | None = None
    repeats: int = 2
    seed: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class ResultOptions:
    """Where a result goes, what it is compared with, and what an inconclusive one counts as."""

    out: str | Path | None = None
    runs: str | Path = RUNS
    inconclusive: Inconclusive | None = None
    baseline: Data | None = None
    margin: float = MARGIN
    require: Sequence[str] = ()
    note: Note = to_stderr
    looks: int = 1

    @property
    def beside(self) -> Path:
        """The folder in which data in memory are kept as files."""
        return Path(self.runs) if self.out is None else Path(self.out).parent
