"""Log-likelihood over options: the option with the highest probability is the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judgesense.errors import JudgeSenseError
from judgesense.matching.result import AnswerMatch, Reading, collect


def match_likelihood(
    option_logprobs: Sequence[Sequence[float]],
    references: Sequence[int],
    lengths: Sequence[Sequence[int]] | None = None,
) -> AnswerMatch:
    """1.0 for every example whose correct option has the highest log-likelihood, else 0.0.

    Source: "Artifact or Flaw?", section 3.1; lengths as in lm-eval's acc_norm. A tie for the
    highest is unread: no option was preferred.

    Args:
        option_logprobs: per example, the log-probability in nats of each option's whole token
            sequence.
        references: per example, the index of the correct option, from 0.
        lengths: bytes, characters or tokens of each option; each log-probability is divided by its
            length, which favours no option for being short.

    Returns:
        The scores; ``readings`` are option indices as text.

    Raises:
        JudgeSenseError: empty or unequal input, NaN or positive log-probabilities, an index out of
            range or a length below 1.

    >>> match_likelihood([[-1.0, -2.0], [-3.0, -0.5]], [0, 0]).per_example
    [1.0, 0.0]
    """
    if not option_logprobs or len(option_logprobs) != len(references):
        raise JudgeSenseError(
            f"option_logprobs has {len(option_logprobs)} rows and references {len(references)}; "
            "pass at least one row, and one reference per row"
        )
    if lengths is not None and [len(row) for row in lengths] != [len(r) for r in option_logprobs]:
        raise JudgeSenseError("lengths must have one length for each option of each row")
    scored = []
    for row, (logprobs, correct) in enumerate(zip(option_logprobs, references, strict=True)):
        if not 0 <= correct < len(logprobs):
            raise JudgeSenseError(
                f"references, row {row}: {correct} is not an index of its {len(logprobs)} options"
            )
        for value in logprobs:
            if math.isnan(value) or value > 1e-6:
                raise JudgeSenseError(
                    f"option_logprobs, row {row}: {value} is not a log-probability (at most 0)"
                )
        sizes = [1] * len(logprobs) if lengths is None else lengths[row]
        if min(sizes) < 1:
            raise JudgeSenseError(f"lengths, row {row}: a length must be at least 1")
        scores = [value / size for value, size in zip(logprobs, sizes, strict=True)]
        best = [index for index, score in enumerate(scores) if score == max(scores)]
        if len(best) > 1:
            scored.append((0.0, Reading(None, "options tie")))
        else:
            scored.append((float(best[0] == correct), Reading(str(best[0]))))
    return collect("likelihood", scored)
