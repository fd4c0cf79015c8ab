"""How long judging will take, said before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from local_judges.protocol import Judge, Request
from local_judges.registry import JudgeSpec

LONG = 60.0
"""Seconds from which a quicker way is named."""

_TIMED = 4
"""Requests that are judged to time the judge; their answers are not kept."""


@dataclass(frozen=True)
class TimedSpec(JudgeSpec):
    """A judge that says, once loaded, how long the requests will take.

    Its identity is that of the judge alone.
    """

    requests: Sequence[Request] = ()
    scoring: str = "generate"
    note: Callable[[str], None] = print
    quicker: str = ""

    @classmethod
    def of(
        cls,
        spec: JudgeSpec,
        requests: Sequence[Request],
        scoring: str,
        note: Callable[[str], None],
        quicker: str,
    ) -> TimedSpec:
        """A local judge that will judge these requests."""
        own = {each.name: getattr(spec, each.name) for each in fields(spec)}
        return cls(**own, requests=requests, scoring=scoring, note=note, quicker=quicker)

    def load(self) -> Judge:
        """Load the judge, time it on a few of its requests, and note the duration."""
        judge = super().load()
        if len(self.requests) > 4 * _TIMED:
            step = len(self.requests) // _TIMED
            sample = list(self.requests[::step][:_TIMED])
            # The first call also pays for what is set up only once.
            self._seconds(judge, sample[:1])
            seconds = self._seconds(judge, sample) * len(self.requests) / len(sample)
            self.note(duration(len(self.requests), seconds, self.quicker))
        return judge

    def _seconds(self, judge: Judge, requests: list[Request]) -> float:
        started = time.perf_counter()
        for _ in judge.judge(iter([(0, requests)]), frozenset({self.scoring})):
            pass
        return time.perf_counter() - started


def duration(prompts: int, seconds: float, quicker: str = "") -> str:
    """How long some prompts take, and what is quicker where that is long.

    >>> print(duration(192, 390.0, "--limit 12"))
    192 prompts take at most about 6 minutes; quicker: --limit 12
    """
    amount, unit = (seconds, "second") if seconds < 90 else (seconds / 60, "minute")
    if unit == "minute" and amount >= 90:
        amount, unit = amount / 60, "hour"
    count = max(1, round(amount))
    told = f"{prompts} prompts take at most about {count} {unit}{'' if count == 1 else 's'}"
    return f"{told}; quicker: {quicker}" if quicker and seconds >= LONG else told
