"""A DeepEval metric (``BaseMetric``) that asks a judge of JudgeSense."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.integrations.grading import Grader

try:
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase
except ImportError as error:
    raise MissingExtraError("deepeval", "deepeval", "the DeepEval metric") from error

CASE = ("input", "actual_output", "expected_output", "context", "retrieval_context", "name")
"""What ``fields`` may name of a test case; variables in its ``metadata`` come after these."""


class JudgeSenseMetric(BaseMetric):  # type: ignore[misc]
    """Passes a test case if a judge of JudgeSense gives a verdict that passes.

    The score is 1 or 0. A test case without a verdict (UNCLEAR, REFUSED, ERROR) raises, which
    DeepEval reports as an error of the metric.

    Args:
        judge, passing, judge_options: as for `judgesense.integrations.grading.Grader`.
        fields: the field that the judge's wordings show -> an attribute of the test case
            (``actual_output``, `CASE`) or a key of its ``metadata``.
        name: the metric's name in reports.

    Raises:
        MissingExtraError: on import, without DeepEval.
        JudgeSenseError: a judge that cannot be loaded, or labels and fields that it does not have.
    """

    def __init__(
        self,
        judge: Any,
        *,
        passing: Collection[str],
        fields: Mapping[str, str] | None = None,
        name: str = "JudgeSense",
        **judge_options: Any,
    ) -> None:
        # DeepEval copies a metric for each test case: it calls this with the attributes that are
        # named like the parameters. The copies share the loaded judge.
        loaded = isinstance(judge, Grader)
        self.judge: Grader = (
            judge if loaded else Grader(judge, passing=passing, fields=fields, **judge_options)
        )
        self.passing, self.fields, self.name = passing, fields, name
        self.threshold = 0.5
        self.evaluation_model = self.judge.name
        self.include_reason = True

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Judge a test case; sets ``score``, ``success``, ``reason`` and ``evaluation_cost``.

        Raises JudgeSenseError if the test case lacks a field, or the judge gives no verdict.
        """
        self.score = self.success = self.reason = self.error = None
        case = {**(test_case.metadata or {}), **{name: getattr(test_case, name) for name in CASE}}
        grade = self.judge(case)
        self.reason, self.evaluation_cost = grade.reason, grade.verdict.cost_usd
        if grade.score is None:
            raise JudgeSenseError(grade.reason)
        self.score, self.success = grade.score, grade.passed
        return grade.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """As `measure`, in a thread."""
        return await asyncio.to_thread(self.measure, test_case)

    def is_successful(self) -> bool:
        """Whether the last test case passed."""
        return self.error is None and bool(self.success)

    @property
    def __name__(self) -> str:
        return self.name
