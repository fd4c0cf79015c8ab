"""What a check was asked for: its terms, the same as a command line, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from judgesense.decisions.log import SCORINGS
from judgesense.errors import JudgeSenseError
from judgesense.text import join
from judgesense.trust.card import Gate
from judgesense.trust.thresholds import STEADY_JSS

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a check is judged and decided; see :func:`check` for each."""

    wordings: str | Path | None = None
    paraphraser: Any = None
    n_paraphrases: int | None = None
    threshold: float = STEADY_JSS
    confidence: float = 0.95
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
        if not 0 < self.confidence < 1:
            raise JudgeSenseError(f"the confidence must lie between 0 and 1, got {self.confidence}")
        if self.inconclusive not in (None, "pass", "fail"):
            raise JudgeSenseError(f"inconclusive is {self.inconclusive!r}: choose pass or fail")


@dataclass(frozen=True)
class CheckCommand:
    """What a check was asked for, as a command line.

    Without a ``rubric``, ``data`` is another tool's log, and ``judge`` may be None: the log's own.
    """

    rubric: Path | None
    data: Path
    judge: Any
    terms: Terms
    answers: Sequence[str] | None = None
    options: Mapping[str, str] | None = None
    pick: str | None = None

    def __str__(self) -> str:
        """The command; a judge that is no name stands as JUDGE.

        >>> print(CheckCommand(Path("r.txt"), Path("d.csv"), "smollm2-135m", Terms(limit=12)))
        judgesense check r.txt --data d.csv --judge smollm2-135m --limit 12
        """
        terms = self.terms
        judge = str(self.judge) if isinstance(self.judge, (str, Path)) else "JUDGE"
        words = ["judgesense", "check"]
        words += [str(self.rubric), "--data"] if self.rubric else ["--log"]
        words += [str(self.data), *(["--judge", judge] if self.judge is not None else [])]
        given = {
            "--answers": self.answers and ",".join(self.answers),
            "--options": self.options and ",".join(f"{k}={v}" for k, v in self.options.items()),
            "--threshold": None if terms.threshold == STEADY_JSS else f"{terms.threshold:g}",
            "--confidence": None if terms.confidence == 0.95 else f"{terms.confidence:g}",
            "--wordings": terms.wordings,
            "--scoring": None if terms.scoring == "generate" else terms.scoring,
            "--repeats": None if terms.repeats == 2 else terms.repeats,
            "--limit": terms.limit,
            "--pick": self.pick,
        }
        for flag, value in given.items():
            if value:
                words += [flag, str(value)]
        return shlex.join(words)

    def next_step(
        self,
        decided: Gate,
        n_rows: int,
        wordings: Path | None,
        out: Path,
        flagged: Sequence[str] = (),
        remedy: Mapping[str, Any] | None = None,
    ) -> str:
        """What to do after a decision, with the command.

        Args:
            decided: the gate's decision.
            n_rows: rows of the data.
            wordings: the file with the wordings; None if they come with JudgeSense.
            out: the folder of the check.
            flagged: wordings that stand out from the others.
            remedy: the step that makes the judge usable without another one, ``text`` and
                ``command``.
        """
        if decided.decision == "PASS":
            kept = f"keep {wordings} as it is, and " if wordings else ""
            return f"next: {kept}run this in your CI: `{self}`"
        if decided.cause == "failed":
            return f"next: ask again for the missing answers: `{self}`"
        if decided.cause in ("coverage", "readable") and self.terms.scoring == "generate":
            return (
                "next: read the options' probabilities, which every answer has: "
                f"`{self._with(scoring='options')}`"
            )
        if flagged and decided.cause == "steady" and wordings is not None:
            return f"next: correct or remove {join(list(flagged))} in {wordings}, then `{self}`"
        if remedy is not None:
            text = remedy["text"]
            return f"next: {text[:1].lower()}{text[1:]} `{remedy['command']}`"
        if decided.decision == "FAIL":
            return f"next: see what each wording and each remedy changes: `judgesense report {out}`"
        if decided.cause == "one_label":
            return f"next: {self._rows('with other gold labels ')}, then `{self}`"
        return f"next: {self._more(decided, n_rows, wordings)}"

    def _more(self, decided: Gate, n_rows: int, file: Path | None) -> str:
        plan, wordings = decided.plan, file or "your own file (--wordings FILE)"
        if plan is None or (plan.items.clusters is None and plan.wordings is None):
            return f"{self._rows()} and wordings to {wordings}, then `{self}`"
        items = plan.items.clusters
        if items is None:
            return f"add wordings to {wordings} until there are {plan.wordings}, then `{self}`"
        if self.terms.limit is not None and n_rows > self.terms.limit:
            more = self._with(limit=None if items >= n_rows else items)
            return f"judge {min(items, n_rows)} rows: `{more}`"
        return f"{self._rows()} until there are about {items}, then `{self}`"

    def _with(self, **terms: Any) -> CheckCommand:
        return replace(self, terms=replace(self.terms, **terms))

    def _rows(self, which: str = "") -> str:
        """What to add rows to: the data, or the evaluation that a log is of."""
        if self.rubric is None:
            return f"add samples {which}to the evaluation that {self.data.name} is of"
        return f"add rows {which}to {self.data}"
