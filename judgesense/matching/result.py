"""What a matcher returns, and the checks every matcher makes on its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from judgesense.errors import JudgeSenseError

Reference = str | Sequence[str]
"""One accepted answer, or several of which the best counts."""


@dataclass(frozen=True)
class Reading:
    """What was read out of one response: ``value``, or None with the ``problem`` that hid it."""

    value: str | None
    problem: str = ""


@dataclass(frozen=True)
class MatchResult:
    """Scores of n responses against their references.

    ``per_example[i]`` in [0, 1] is the score of response i and ``score`` their mean.
    ``readings[i]`` is the answer read out of response i; it is None where none could be read,
    and ``problems[i]`` then says why. Such a response scores 0, as in the heuristic evaluation
    of "Artifact or Flaw?" (section 3.1), and is counted in ``n_unread``: it is never given a
    default answer.
    """

    method: str
    score: float
    per_example: list[float]
    readings: list[str | None] = field(repr=False)
    problems: list[str] = field(repr=False)

    @property
    def n(self) -> int:
        """How many responses were scored."""
        return len(self.per_example)

    @property
    def n_unread(self) -> int:
        """How many responses held no answer that the method could read."""
        return sum(reading is None for reading in self.readings)

    @property
    def problem_counts(self) -> dict[str, int]:
        """The unread responses by reason, most frequent first."""
        return dict(Counter(problem for problem in self.problems if problem).most_common())


def collect(method: str, scored: Sequence[tuple[float, Reading]]) -> MatchResult:
    """The result of scores and readings in the responses' order."""
    per_example = [float(score) for score, _ in scored]
    return MatchResult(
        method=method,
        score=sum(per_example) / len(per_example),
        per_example=per_example,
        readings=[reading.value for _, reading in scored],
        problems=[reading.problem for _, reading in scored],
    )


def check_pairs(predictions: Sequence[str], references: Sequence[Reference]) -> None:
    """Refuse what cannot be scored: lone strings, other lengths, no rows, values not text.

    Raises JudgeSenseError naming the argument, the row (from 0) and what to do.
    """
    for name, values in (("predictions", predictions), ("references", references)):
        if isinstance(values, str) or not isinstance(values, Collection):
            what = "one string" if isinstance(values, str) else f"a {type(values).__name__}"
            raise JudgeSenseError(f"{name} is {what}; give a list of strings, one for each example")
    if len(predictions) != len(references):
        raise JudgeSenseError(
            f"predictions has {len(predictions)} rows and references {len(references)}; "
            "give one reference for each prediction"
        )
    if not len(predictions):
        raise JudgeSenseError("predictions is empty; give at least one response to score")
    for row, prediction in enumerate(predictions):
        if not isinstance(prediction, str):
            raise JudgeSenseError(
                f"predictions, row {row}: expected a string, got {prediction!r}; "
                "give an empty string for a model that said nothing"
            )
    for row, reference in enumerate(references):
        answers = accepted(reference) if isinstance(reference, Collection) else (reference,)
        for answer in answers:
            if not isinstance(answer, str) or not answer.strip():
                raise JudgeSenseError(
                    f"references, row {row}: expected a non-empty string (or a list of them), "
                    f"got {answer!r}"
                )


def accepted(reference: Reference) -> tuple[str, ...]:
    """The accepted answers of a reference; an empty list stands as one empty answer."""
    return (reference,) if isinstance(reference, str) else tuple(reference) or ("",)
