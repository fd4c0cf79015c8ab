"""Answer matching: does a free-text response give the reference answer?

Source: "Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs", sections 2.2 and
3.1, Appendix C. The matcher that asks a judge is :mod:`local_judges.llm_matcher`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from judgesense.answers.matching.choice import match_choice, match_likelihood, read_choice
from judgesense.answers.matching.maths import last_boxed, match_math
from judgesense.answers.matching.result import AnswerMatch, Reference, check_pairs
from judgesense.answers.matching.words import match_exact, match_f1, word_f1
from judgesense.answers.text import without_thinking
from judgesense.errors import JudgeSenseError

__all__ = [
    "METHODS",
    "AnswerMatch",
    "last_boxed",
    "match_answers",
    "match_likelihood",
    "read_choice",
    "word_f1",
]

METHODS: dict[str, Callable[..., AnswerMatch]] = {
    "choice": match_choice,
    "f1": match_f1,
    "math": match_math,
    "exact": match_exact,
}
"""The heuristic matchers by name."""


def match_answers(
    predictions: Sequence[str],
    references: Sequence[Reference],
    method: str = "choice",
    **options: Any,
) -> AnswerMatch:
    """Whether responses give the reference answers, by a heuristic matcher.

    What a reasoning model thought aloud (``<think>...</think>``) is left out first.

    Args:
        predictions: one response per row.
        references: per row, the answer or a list of accepted answers, of which the best counts.
        method: "choice", "f1", "math" or "exact".
        **options: of "choice": ``n_options``, ``options``, ``labels``; of "math":
            ``time_limit_s``; of "exact": ``normalized``.

    Returns:
        Scores in [0, 1] by row and their mean, and which responses could not be read.

    Raises:
        JudgeSenseError: an unknown method or option, unequal or empty input, or a value that is not
            text; names the argument and the row.

    >>> result = match_answers(["The answer is (B).", "I cannot say."], ["B", "A"])
    >>> result.score, result.n_unread
    (0.5, 1)
    """
    if method not in METHODS:
        raise JudgeSenseError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    check_pairs(predictions, references)
    known = list(inspect.signature(METHODS[method]).parameters)[2:]
    if unknown := sorted(options.keys() - set(known)):
        raise JudgeSenseError(
            f"method {method!r} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}"
        )
    texts = [without_thinking(text) for text in predictions]
    return METHODS[method](texts, references, **options)
