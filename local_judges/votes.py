"""Several replies together: the votes for each option, and the reason of one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from judgesense.answers.fields import reasoning_in
from judgesense.recipes.recipe import RecipeVerdicts
from judgesense.statistics.arrays import Floats
from judgesense.tasks import Template
from local_judges.protocol import Answer

VOTES = "\n\nvotes: "
"""The text between a verdict and the votes for each option in an answer."""


def margin_of_votes(text: str, template: Template) -> float:
    """The share of votes between the two best labels of a vote's text; 1 for a single verdict.

    >>> one = Template("r1", "relevance", "Which?", "{instruction}", {"A": "A", "B": "B"})
    >>> margin_of_votes("A\\n\\nvotes: A 2, B 1", one).__round__(3), margin_of_votes("A", one)
    (0.333, 1.0)
    """
    _, mark, by_option = text.partition(VOTES)
    if not mark:
        return 1.0
    counts: dict[str, int] = {}
    for option, label in template.label_map.items():
        if match := re.search(rf"(?:^|, ){re.escape(option)} (\d+)(?=, |$)", by_option):
            counts[label] = int(match.group(1))
    ranked = sorted(counts.values(), reverse=True)
    return (ranked[0] - ranked[1]) / sum(ranked)


def first_reason(
    rows: Sequence[Sequence[Sequence[Answer]]],
    logprobs: Sequence[Sequence[Floats]],
    verdict: RecipeVerdicts,
) -> str | None:
    """The reason in the first text that states the verdict, of those in the first order, if any.

    ``rows`` are the answers by wording, order and text, ``logprobs`` those of their labels.
    """
    for row, shares in zip(rows, logprobs, strict=True):
        for answer, share in zip(row[0], shares[0], strict=True):
            if answer.text and not np.isnan(share).any() and share.argmax() == verdict.codes[0]:
                return reasoning_in(answer.text)
    return None
