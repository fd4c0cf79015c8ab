"""The result of a matcher, and the checks that every matcher makes on its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.statistics.inputs import is_ordered, label_texts
from judgesense.statistics.result import ResultMapping, data_frame

Reference = str | int | Sequence[str | int]
"""One accepted answer, or several, of which the best counts."""


@dataclass(frozen=True)
class Reading:
    """The answer read from a response: ``value``, or None and the ``problem``."""

    value: str | None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class AnswerMatch(ResultMapping):
    """Scores of n responses against their references.

    ``per_example[i]`` in [0, 1] is the score of response i and ``score`` their mean.
    ``readings[i]`` is the answer read from response i, or None if none could be read;
    ``problems[i]`` then says why. Such a response scores 0, as in the heuristic evaluation of
    "Artifact or Flaw?" (section 3.1), and is counted in ``n_unread``. No default answer is ever
    assumed.
    """

    method: str
    score: float
    per_example: list[float]
    readings: list[str | None] = field(repr=False)
    problems: list[str] = field(repr=False)
    n_unread: int

    def lines(self) -> list[tuple[str, str]]:
        """Score, method, and the unread responses with their reasons."""
        told = [("score", f"{self.score:.3f} ({self.method}, {self.n} responses)")]
        return [*told, *((f"unread: {why}", str(n)) for why, n in self.problem_counts.items())]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per response: score, reading, problem."""
        return data_frame(
            {"score": self.per_example, "reading": self.readings, "problem": self.problems}
        )

    @property
    def n(self) -> int:
        """The number of responses."""
        return len(self.per_example)

    @property
    def problem_counts(self) -> dict[str, int]:
        """The unread responses by reason, most frequent first."""
        return dict(Counter(problem for problem in self.problems if problem).most_common())


def collect(method: str, scored: Sequence[tuple[float, Reading]]) -> AnswerMatch:
    """The result of scores and readings in the responses' order.

    >>> collect("exact", [(1.0, Reading("B")), (0.0, Reading(None, "no words"))]).n_unread
    1
    """
    per_example = [float(score) for score, _ in scored]
    readings = [reading.value for _, reading in scored]
    return AnswerMatch(
        method=method,
        score=sum(per_example) / len(per_example),
        per_example=per_example,
        readings=readings,
        problems=[reading.problem for _, reading in scored],
        n_unread=readings.count(None),
    )


def check_pairs(predictions: Sequence[str], references: Sequence[Reference]) -> None:
    """Refuse single strings, unequal lengths, empty input, and values that are not text.

    Raises JudgeSenseError, which names the argument, the row (from 0) and what to do.

    >>> check_pairs(["The answer is B."], ["B"])
    """
    for name, values in (("predictions", predictions), ("references", references)):
        if not is_ordered(values):
            what = "one string" if isinstance(values, str) else f"a {type(values).__name__}"
            raise JudgeSenseError(f"{name} is {what}; pass a list of strings, one for each example")
    if len(predictions) != len(references):
        raise JudgeSenseError(
            f"predictions has {len(predictions)} rows and references has {len(references)}; pass "
            "one reference for each prediction"
        )
    if not len(predictions):
        raise JudgeSenseError("predictions is empty; pass at least one response")
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(prediction, str):
            raise JudgeSenseError(
                f"predictions, row {row}: expected a string, got {prediction!r}; pass an empty "
                "string for an empty response"
            )
        try:
            answers = accepted(reference)
        except ValueError as error:
            raise JudgeSenseError(f"references, row {row}: an answer {error}") from error
        if not all(answer.strip() for answer in answers):
            raise JudgeSenseError(
                f"references, row {row}: expected a non-empty string (or a list of them), "
                f"got {reference!r}"
            )


def accepted(reference: Reference) -> tuple[str, ...]:
    """The accepted answers of a reference; an empty list counts as one empty answer.

    Raises ValueError for an answer that is neither text nor a whole number.

    >>> accepted("Paris"), accepted(["Paris", "Lutetia"]), accepted(2)
    (('Paris',), ('Paris', 'Lutetia'), ('2',))
    """
    answers = reference if is_ordered(reference) else [reference]
    return tuple(label_texts(answers, "answer")) or ("",)
