"""The counts of one judge's run, and their sum over the processes that share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class JudgeOutcome:
    """The counts of one judge's run: distinct prompts, over all repeats."""

    judge: str
    planned: int = 0
    judged: int = 0
    kept: int = 0
    failed: list[str] = field(default_factory=list)
    retried: int = 0
    """Prompts that failed in an earlier start and were asked again."""
    lost_usd: float = 0.0
    """The most that requests cost whose answers a crash lost."""
    rows: dict[str, int] = field(default_factory=dict)
    """The rows of each part."""
    counters: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def counts(self) -> dict[str, int | float]:
        """The counts for ``run.json``: prompts planned, judged in this start, and tokens."""
        lost = {"lost_usd": round(self.lost_usd, 6)} if self.lost_usd else {}
        return {"prompts": self.planned, "judged": self.judged, **self.counters, **lost}


def merge_outcomes(outcomes: Sequence[JudgeOutcome]) -> JudgeOutcome:
    """The sum of the outcomes of one judge."""
    total = JudgeOutcome(outcomes[0].judge)
    for outcome in outcomes:
        total.planned += outcome.planned
        total.judged += outcome.judged
        total.kept += outcome.kept
        total.failed += outcome.failed
        total.retried += outcome.retried
        total.lost_usd += outcome.lost_usd
        total.rows |= outcome.rows
        total.counters.update(outcome.counters)
        total.seconds += outcome.seconds
    return total
