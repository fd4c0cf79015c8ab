"""Log-likelihood over options: the option with the highest probability is the choice."""

from __future__ import annotations

from collections.abc import Sequence

from judgesense.matching.result import AnswerMatch, Reading, collect


def match_likelihood(
    option_logprobs: Sequence[Sequence[float]], references: Sequence[int]
) -> AnswerMatch:
    """1.0 for every example whose correct option has the highest log-likelihood, else 0.0.

    Source: "Artifact or Flaw?", section 3.1. A tie for the highest is unread: no option was
    preferred.

    Args:
        option_logprobs: per example, the log-probability in nats of each option's whole token
            sequence.
        references: per example, the index of the correct option, from 0.

    Returns:
        The scores; ``readings`` are option indices as text.

    >>> match_likelihood([[-1.0, -2.0], [-3.0, -0.5]], [0, 0]).per_example
    [1.0, 0.0]
    """
    scored = []
    for logprobs, correct in zip(option_logprobs, references, strict=True):
        best = [index for index, value in enumerate(logprobs) if value == max(logprobs)]
        if len(best) > 1:
            scored.append((0.0, Reading(None, "options tie")))
        else:
            scored.append((float(best[0] == correct), Reading(str(best[0]))))
    return collect("likelihood", scored)
