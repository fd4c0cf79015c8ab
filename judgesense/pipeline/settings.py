"""What is asked of a run apart from its judges and data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgesense.decisions.log import SCORINGS
from judgesense.errors import JudgeSenseError

ORDERS = ("AB", "BA")

Note = Callable[[str], None]


def to_stderr(message: str) -> None:
    """Where notes go by default."""
    print(message, file=sys.stderr)


_MOST_REPEATS = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Everything that fixes a run's log, apart from its judges and data.

    >>> from judgesense.pipeline import Settings
    >>> Settings.of("generate", limit=5).scorings
    ('generate',)
    """

    scorings: tuple[str, ...] = SCORINGS
    tasks: tuple[str, ...] | None = None
    orders: tuple[str, ...] | None = None
    repeats: int = 1
    seed: int = 0
    limit: int | None = None
    strict: bool = True
    """Whether a judge must offer every scoring; otherwise the ones it offers are used."""
    content_free: bool = False
    """Whether each wording is asked about input without content as well."""

    @classmethod
    def of(
        cls,
        scoring: str | None = None,
        tasks: Sequence[str] | None = None,
        orders: Sequence[str] | None = None,
        repeats: int = 1,
        seed: int = 0,
        limit: int | None = None,
        content_free: bool = False,
    ) -> Settings:
        """The settings as people write them: ``scoring`` is generate, options, both, or None for
        what each judge offers."""
        return cls(
            scorings=SCORINGS if scoring in (None, "both") else (scoring,),
            strict=scoring is not None,
            tasks=tuple(tasks) if tasks is not None else None,
            orders=tuple(orders) if orders is not None else None,
            repeats=repeats,
            seed=seed,
            limit=limit,
            content_free=content_free,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """The settings as a run's record has them, in JSON values."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        # Runs of earlier versions have no such key, and can be resumed.
        if not self.content_free:
            del found["content_free"]
        return found

    def __post_init__(self) -> None:
        if unknown := [scoring for scoring in self.scorings if scoring not in SCORINGS]:
            raise JudgeSenseError(
                f"unknown scoring {unknown[0]!r}; choose one of {', '.join(SCORINGS)}, both"
            )
        if not self.scorings:
            raise JudgeSenseError(f"no scoring; choose one of {', '.join(SCORINGS)}, both")
        if unknown := [order for order in self.orders or () if order not in ORDERS]:
            raise JudgeSenseError(
                f"unknown order {unknown[0]!r}; choose one of {', '.join(ORDERS)}"
            )
        if self.content_free and "options" not in self.scorings:
            raise JudgeSenseError(
                "--content-free reads option probabilities: add --scoring options or both"
            )
        for name, value in (("repeats", self.repeats), ("limit", self.limit)):
            if value is not None and value < 1:
                raise JudgeSenseError(f"{name} must be at least 1, got {value}")
        if self.repeats > _MOST_REPEATS:
            raise JudgeSenseError(f"repeats must be at most {_MOST_REPEATS:,}, got more")
