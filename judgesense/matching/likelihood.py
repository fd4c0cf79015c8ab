"""Log-likelihood over options: the choice an engine gives the most probability."""

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
    """1.0 where the correct option has the greatest log-likelihood, else 0.0.

    ``option_logprobs[i][j]`` is the log-probability in nats of option j of example i (its whole
    token sequence), ``references[i]`` the index of the correct option, from 0. With ``lengths``
    (bytes, characters or tokens of each option) each log-probability is divided by its length
    first, so that long options are not punished. A tie for the greatest is unread: no option
    was preferred. Source: "Artifact or Flaw?", section 3.1; lengths as in lm-eval's acc_norm.

    Raises JudgeSenseError for empty or unequal input, NaN or positive log-probabilities, an
    index out of range or a length below 1.
    """
    if not option_logprobs or len(option_logprobs) != len(references):
        raise JudgeSenseError(
            f"option_logprobs has {len(option_logprobs)} rows and references {len(references)}; "
            "give at least one row, and as many of one as of the other"
        )
    if lengths is not None and [len(row) for row in lengths] != [len(r) for r in option_logprobs]:
        raise JudgeSenseError("lengths must have one length for each option of each row")
    scored = []
    for row, (logprobs, correct) in enumerate(zip(option_logprobs, references, strict=True)):
        if not 0 <= correct < len(logprobs):
            raise JudgeSenseError(
                f"references, row {row}: {correct} is no index of its {len(logprobs)} options"
            )
        for value in logprobs:
            if math.isnan(value) or value > 1e-6:
                raise JudgeSenseError(
                    f"option_logprobs, row {row}: {value} is no log-probability (at most 0)"
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
