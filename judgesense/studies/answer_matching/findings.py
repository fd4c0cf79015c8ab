"""The findings and limits of answer-matching, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgesense.studies.answer_matching.measures import Cell, text_heuristic
from judgesense.studies.answer_matching.scoring import JUDGE, BenchmarkAnswers
from judgesense.studies.common.result import Table
from judgesense.text import join, number, percent

ONE_LETTER = 0.9
"""A model with at least this share of its choices on one option is named."""

USABLE = 0.9
"""A judge is usable as a matcher from this balanced accuracy on the probes, which are easy."""


def findings(
    matchers: Table, cells: Sequence[Cell], found: Sequence[BenchmarkAnswers]
) -> Iterator[str]:
    """What the tables show; ``matchers`` is the table of the matchers' accuracy."""
    for answers in found:
        own = [cell for cell in cells if cell.answers is answers and cell.spread is not None]
        by_matcher: dict[str, list[float]] = {}
        for cell in own:
            if cell.spread is not None:
                by_matcher.setdefault(cell.matcher, []).append(cell.spread.std)
        if by_matcher:
            texts = [f"{number(float(np.mean(s)))} by {name}" for name, s in by_matcher.items()]
            yield (
                f"on {answers.benchmark} accuracy varies over {len(answers.templates)} templates "
                f"with a standard deviation of {join(texts)} (mean over models)"
            )
        beyond = sum(cell.spread is not None and cell.spread.p < 0.05 for cell in own)
        yield (
            f"on {answers.benchmark} {beyond} of {len(own)} pairs of model and matcher spread more "
            "than templates that do not matter would (p < 0.05)"
        )
    for cell in cells:
        share = cell.one_letter
        if share is not None and share >= ONE_LETTER:
            yield (
                f"on {cell.answers.benchmark}, by {cell.matcher} {cell.model} takes the same "
                f"option in {percent(share)} of its choices: its accuracy is the share of items "
                "whose answer is that option, and its low spread is not robustness"
            )
    for row in matchers.rows:
        balanced = row["balanced_accuracy"]
        if row["matcher"].startswith("judge ") and balanced is not None:
            yield (
                f"on {row['benchmark']}, {row['matcher']} has a balanced accuracy of "
                f"{number(balanced)} on answers known to be right or wrong: "
            ) + (
                "its accuracies are usable"
                if balanced >= USABLE
                else "do not use its accuracies; its spread and ranking say nothing about the "
                "models"
            )
    for answers in found:
        if (text := text_heuristic(answers)) is not None:
            unread = sum(reading is None for reading in answers.readings)
            total = len(answers.responses)
            yield (
                f"on {answers.benchmark} the text heuristic ({text}) could not read "
                f"{percent(unread / total)} of {total} answers"
            )


def limits(found: Sequence[BenchmarkAnswers]) -> Iterator[str]:
    """What the figures do not show, and what to add."""
    for answers in found:
        if answers.left_out:
            yield (
                f"on {answers.benchmark} {answers.left_out} items are left out for every model, "
                "because some model gave no answer to them (see the error column of its answers)"
            )
        cut = sum(response.cut for response in answers.responses) / len(answers.responses)
        if cut > 0.05:
            yield (
                f"on {answers.benchmark} the token cap cut off {percent(cut)} of the answers; they "
                "are matched up to the cut"
            )
    if any(len(answers.models) < 3 for answers in found):
        yield "rankings need three models or more: add responders"
    if all(JUDGE not in answers.scores for answers in found):
        yield "no judge matched the answers: add a grader to compare the heuristics with it"
    yield (
        "every spread is conditional on these templates and items; the paper's models are larger, "
        "so these figures neither confirm nor contradict its figures"
    )
