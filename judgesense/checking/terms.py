"""What a check was asked for: its terms, the same as a command line, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from judgesense.decisions.log import SCORINGS
from judgesense.errors import JudgeSenseError
from judgesense.text import join
from judgesense.trust.card import Gate
from judgesense.trust.thresholds import STEADY_JSS

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]

_FLAGS = ("answers", "options", "threshold", "wordings", "scoring", "repeats", "limit", "pick")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a check is judged and decided; see :func:`judgesense.check` for each.

    Without a ``rubric``, ``data`` is another tool's log, and ``judge`` may be None: the log's own.
    """

    rubric: Path | None = None
    data: Path
    judge: Any
    answers: Sequence[str] | None = None
    options: Mapping[str, str] | None = None
    pick: str | None = None
    wordings: str | Path | None = None
    paraphraser: Any = None
    n_paraphrases: int | None = None
    threshold: float = STEADY_JSS
    inconclusive: Inconclusive | None = None
    scoring: str = "generate"
    variants: Sequence[str] | None = None
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

    def __str__(self) -> str:
        """The command; a judge that is no name stands as JUDGE.

        >>> print(Terms(rubric=Path("r.txt"), data=Path("d.csv"), judge="smollm2-135m", limit=12))
        judgesense check r.txt --data d.csv --judge smollm2-135m --limit 12
        """
        words = ["judgesense", "check"]
        words += [str(self.rubric), "--data"] if self.rubric else ["--log"]
        words.append(str(self.data))
        if self.judge is not None:
            words += [
                "--judge",
                str(self.judge) if isinstance(self.judge, (str, Path)) else "JUDGE",
            ]
        defaults = {field.name: field.default for field in fields(self)}
        for name in _FLAGS:
            value = getattr(self, name)
            if isinstance(value, Mapping):
                value = [f"{key}={column}" for key, column in value.items()]
            if value != defaults[name]:
                words += [
                    f"--{name}",
                    ",".join(value) if isinstance(value, (list, tuple)) else str(value),
                ]
        return shlex.join(words)

    def next_step(
        self,
        gate: Gate,
        n_rows: int,
        wordings: Path | None,
        out: Path,
        flagged: Sequence[str] = (),
        remedy: Mapping[str, Any] | None = None,
    ) -> str:
        """What to do after a decision, with the command.

        Args:
            gate: the decision.
            n_rows: rows of the data.
            wordings: the file with the wordings; None if they come with JudgeSense.
            out: the folder of the check.
            flagged: wordings that stand out from the others.
            remedy: the step that makes the judge usable without another one, ``text`` and
                ``command``.
        """
        if gate.decision == "PASS":
            kept = f"keep {wordings} as it is, and " if wordings else ""
            return f"next: {kept}run this in your CI: `{self}`"
        if gate.cause == "failed":
            return f"next: ask again for the missing answers: `{self}`"
        if gate.cause in ("coverage", "readable") and self.scoring == "generate":
            return (
                "next: read the options' probabilities, which every answer has: "
                f"`{replace(self, scoring='options')}`"
            )
        if flagged and gate.cause == "steady" and wordings is not None:
            return f"next: correct or remove {join(list(flagged))} in {wordings}, then `{self}`"
        if remedy is not None:
            text = remedy["text"]
            return f"next: {text[:1].lower()}{text[1:]} `{remedy['command']}`"
        if gate.decision == "FAIL":
            return f"next: see what each wording and each remedy changes: `judgesense report {out}`"
        if gate.cause == "one_label":
            return f"next: {self._add_rows('with other gold labels ')}, then `{self}`"
        file = wordings or "your own file (--wordings FILE)"
        plan = gate.plan or {}
        items, more = plan.get("items_needed"), plan.get("wordings_needed")
        if items is None and more is None:
            return f"next: {self._add_rows()} and wordings to {file}, then `{self}`"
        if items is None:
            return f"next: add wordings to {file} until there are {more}, then `{self}`"
        if self.limit is not None and n_rows > self.limit:
            wider = replace(self, limit=None if items >= n_rows else items)
            return f"next: judge {min(items, n_rows)} rows: `{wider}`"
        return f"next: {self._add_rows()} until there are about {items}, then `{self}`"

    def _add_rows(self, which: str = "") -> str:
        """What to add rows to: the data, or the evaluation that a log is of."""
        if self.rubric is None:
            return f"add samples {which}to the evaluation that {self.data.name} is of"
        return f"add rows {which}to {self.data}"
