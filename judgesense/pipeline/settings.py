"""The settings of a run, apart from its judges and data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import SCORINGS
from judgesense.tasks import ORDERS
from judgesense.text import printable

Note = Callable[[str], None]


def to_stderr(message: str) -> None:
    """Where notes go by default."""
    print(printable(message), file=sys.stderr)


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

    @classmethod
    def of(
        cls,
        scoring: str | None = None,
        tasks: Sequence[str] | None = None,
        orders: Sequence[str] | None = None,
        repeats: int = 1,
        seed: int = 0,
        limit: int | None = None,
        own: bool = False,
    ) -> Settings:
        """The settings as people write them: ``scoring`` is generate, options, both, or None for
        what each judge offers. ``own`` prompts of the user's are then judged by text.

        Raises JudgeSenseError for an unknown name and a number out of range.
        """
        default = "generate" if own else "both"
        scorings = SCORINGS if (scoring or default) == "both" else (str(scoring or default),)
        for setting, names, known in (("scoring", scorings, SCORINGS), ("order", orders, ORDERS)):
            for name in names or ():
                if name not in known:
                    choices = (*known, "both") if setting == "scoring" else known
                    raise JudgeSenseError(
                        f"unknown {setting} {name!r}; choose one of {', '.join(choices)}"
                    )
        if not 1 <= repeats <= _MOST_REPEATS:
            raise JudgeSenseError(f"repeats must be from 1 to {_MOST_REPEATS:,}")
        if limit is not None and limit < 1:
            raise JudgeSenseError(f"limit must be at least 1, got {limit}")
        return cls(
            scorings=scorings,
            strict=scoring is not None,
            tasks=tuple(tasks) if tasks is not None else None,
            orders=tuple(orders) if orders is not None else None,
            repeats=repeats,
            seed=seed,
            limit=limit,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """The settings as a run's record has them, in JSON values."""
        identity: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return identity
