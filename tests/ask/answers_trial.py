"""Answers of judges that are made up: their log-odds of the first of two labels, by wording."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.wordings import WordingToTry
from judgesense.tasks import Task, Template
from judgesense_dataset.embedded import embedded_templates

YES_NO = embedded_templates()["factuality"].task
CHOICE = embedded_templates()["relevance"].task


def template(name: str, task: Task = YES_NO) -> Template:
    """A wording of that name."""
    return replace(embedded_templates()[task.name].templates[0], template_id=name)


def no_answers(
    n: int,
    kinds: list[str],
    judges: list[JudgeScoring] | None = None,
    task: Task = YES_NO,
    gold: Any = None,
    clusters: Any = None,
    attacked: Any = None,
) -> AnswersSoFar:
    """No answers to n items yet, under the wordings w0, w1, ... of these kinds."""
    return AnswersSoFar.empty(
        task,
        judges or [JudgeScoring(0, "j", "options")],
        [WordingToTry(template(f"w{k}", task), kind) for k, kind in enumerate(kinds)],
        np.zeros(n, dtype=np.int64) if gold is None else np.asarray(gold),
        np.arange(n) if clusters is None else clusters,
        attacked,
    )


def record(answers: AnswersSoFar, column: tuple[int, int, int], odds: Any) -> None:
    """Fill in a column for all items, from the log-odds of the first label (NaN: no verdict)."""
    odds = np.asarray(odds, dtype=float)
    with np.errstate(invalid="ignore"):
        logprobs = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)
    answers.record(column, np.arange(len(odds)), logprobs)
