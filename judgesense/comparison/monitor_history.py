"""The history of a monitored judge: a JSONL file with one line for each look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text
from judgesense.files.documents import OwnShape, parse_json, validate

SCHEMA_VERSION = 2
"""The version of a line that is written; a newer one is refused."""

Share = Annotated[float, Field(ge=0, le=1)]


class StreamLook(OwnShape):
    """A look at one task and scoring.

    ``clusters`` are the shares of verdicts that moved and that rewording moves, by cluster, and
    ``asked_again`` those that the baseline's repeats move; schema 1 has none of these.
    ``one_label`` says that all verdicts of baseline and run are one label.
    """

    task: str
    scoring: str
    judge: str
    clusters: dict[str, tuple[Share, Share]]
    n_prompts: int
    n_items: int
    moved: float
    reworded: float | None
    excess: float | None
    ci_low: float | None
    ci_high: float | None
    one_label: bool
    asked_again: dict[str, Share] = Field(default_factory=dict)


class Look(OwnShape):
    """One look: when, at which run, against which baseline and by which rules.

    ``allow`` and ``same_items`` are rules of 0.2 that could be set; only their defaults are read.
    """

    schema_: int = Field(alias="schema", le=SCHEMA_VERSION)
    at: str
    run: str
    digest: str
    baseline: str
    tests: int
    error: float
    allow: None = None
    same_items: Literal["once"] = "once"
    streams: list[StreamLook]


def read_history(history: Path) -> list[Look]:
    """The looks so far, in their order; none without a file.

    Raises JudgeSenseError, naming the line, for one that is damaged or of a newer version.
    """
    if not history.exists():
        return []
    looks = []
    for number, line in enumerate(read_text(history).splitlines(), 1):
        place = f"{history}, line {number}"
        try:
            looks.append(validate(Look, parse_json(line, place), place, "a look"))
        except JudgeSenseError as error:
            raise JudgeSenseError(
                f"{error}. The line is damaged or written by a newer JudgeSense: restore "
                f"{history.name} from a copy, upgrade, or set another --history to begin again"
            ) from error
    return looks


def require_same_rules(history: Path, looks: Sequence[Look], now: Look) -> None:
    """Raise JudgeSenseError if the looks so far have another baseline, or other rules.

    An error that is chosen after the looks is no error.
    """
    for number, look in enumerate(looks, 1):
        if look.baseline != now.baseline:
            raise JudgeSenseError(
                f"{history}, line {number}: this is the history of another baseline, or the "
                "baseline has changed since; set another --history"
            )
        for name in ("error", "tests"):
            was, is_now = getattr(look, name), getattr(now, name)
            if was != is_now:
                raise JudgeSenseError(
                    f"{history}, line {number}: {name} was {was} and is now {is_now}; keep it, or "
                    "set another --history"
                )
