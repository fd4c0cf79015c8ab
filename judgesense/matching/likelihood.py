"""Log-likelihood over options: the option with the highest probability is the choice.

`match_options` names its scores as lm-eval does: ``acc`` compares the options' log-probabilities,
``acc_norm`` the same per character of the option.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

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


ACC, ACC_NORM = "acc", "acc_norm"


def match_options(
    option_logprobs: Sequence[Mapping[str, float]],
    references: Sequence[str],
    method: str = ACC,
) -> AnswerMatch:
    """1.0 for every example whose right option is the most probable one, else 0.0.

    Source: lm-eval's ``acc`` and ``acc_norm`` for multiple choice (``ConfigurableTask``).

    Args:
        option_logprobs: per example, each option's text, as it was scored after the prompt, and
            the log-probability in nats of its whole token sequence.
        references: per example, the text of the right option.
        method: "acc", or "acc_norm", which divides each log-probability by the number of
            characters of the option, so that long options are not at a disadvantage.

    Returns:
        The scores; ``readings`` are the chosen options' texts.

    Raises:
        JudgeSenseError: an unknown method, a reference that is not among its options, an empty
            option, and as :func:`match_likelihood`.

    >>> logprobs = [{"ice": -2.0, "water vapour": -3.0}]
    >>> match_options(logprobs, ["water vapour"]).per_example
    [0.0]
    >>> match_options(logprobs, ["water vapour"], "acc_norm").per_example
    [1.0]
    """
    if method not in (ACC, ACC_NORM):
        raise JudgeSenseError(f"unknown method {method!r}; choose {ACC} or {ACC_NORM}")
    names = [list(row) for row in option_logprobs]
    for row, (own, right) in enumerate(zip(names, references, strict=True)):
        if right not in own:
            raise JudgeSenseError(
                f"references, row {row}: {right!r} is not one of its options {', '.join(own)}"
            )
    found = match_likelihood(
        [list(row.values()) for row in option_logprobs],
        [own.index(right) for own, right in zip(names, references, strict=True)],
        [[len(name) for name in own] for own in names] if method == ACC_NORM else None,
    )
    readings = [
        None if at is None else own[int(at)] for at, own in zip(found.readings, names, strict=True)
    ]
    return replace(found, method=method, readings=readings)
