"""DeepEval's test runs (``.deepeval/.latest_test_run.json``): each metric of a test is a verdict.

DeepEval keeps whether a metric passed, its score and the reason, not what the judge wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, read_json, validate
from judgesense.files.tables import Record, in_rows
from judgesense.importers import Importer, Items

LABELS = ("PASS", "FAIL")
NO_MODEL = "deepeval-metric"
"""The judge of a metric that names no model."""


class Metric(Shape):
    """What became of a metric."""

    name: str
    success: bool | None = None
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluationModel: str | None = None
    evaluationCost: float | None = None


class Case(Shape):
    """A test case, of one turn or of a conversation."""

    name: str | None = None
    order: int | None = None
    input: Any = None
    actualOutput: Any = None
    turns: Any = None
    metricsData: list[Metric] | None = None
    metadata: dict[str, Any] | None = Field(
        None, validation_alias=AliasChoices("metadata", "additionalMetadata")
    )


class Run(Shape):
    """A test run."""

    testCases: list[Any] = Field(default_factory=list)
    conversationalTestCases: list[Any] = Field(default_factory=list)


def read(path: Path, items: Items, pick: str | None) -> Iterator[Record]:
    """One record per metric of a test case.

    The task and the template are the metric, with ``#2`` for the second of that name in a test. So
    wordings are the metrics that ``--columns task=:NAME`` joins. A test whose answer differs from
    that in an earlier run is another item of the test's cluster.
    """
    file = read_json(path)
    values = file.get("testRunData", file) if isinstance(file, dict) else None
    if not isinstance(values, dict) or not {"testCases", "conversationalTestCases"} & set(values):
        raise JudgeSenseError(
            f"{path}: not a DeepEval test run (no testRunData.testCases); deepeval writes it to "
            ".deepeval/.latest_test_run.json"
        )
    run, empty = validate(Run, values, f"{path}, testRunData", "a DeepEval test run"), True
    for kind in ("testCases", "conversationalTestCases"):
        for number, case in enumerate(getattr(run, kind)):
            place = f"{path}, testRunData.{kind}[{number}]"
            for record in _metrics(
                validate(Case, case, place, "a test case"), number, place, items
            ):
                empty = False
                yield record
    if empty:
        raise JudgeSenseError(f"{path}: no test has metricsData")


def _metrics(case: Case, number: int, place: str, items: Items) -> Iterator[Record]:
    question = case.name or f"test-{number + 1}"
    judged = repr((case.input, case.actualOutput, case.turns))
    item = items.name(question, judged)
    seen: Counter[str] = Counter()
    for metric in case.metricsData or ():
        seen[metric.name] += 1
        template = metric.name if seen[metric.name] == 1 else f"{metric.name}#{seen[metric.name]}"
        judge = metric.evaluationModel or NO_MODEL
        yield Record(
            {
                "judge": judge,
                "task": metric.name,
                "template_id": template,
                "item_id": item,
                "cluster_id": question,
                "repeat": items.repeat(judge, item, template),
                "metric": metric.name,
                "score": metric.score,
                "metadata": case.metadata or {},
                "cost_usd": metric.evaluationCost,
                **_verdict(metric),
            },
            place,
        )


def _verdict(metric: Metric) -> dict[str, Any]:
    if metric.error or metric.success is None or (metric.score is None and not metric.success):
        return {"status": "error", "error": metric.error or "the metric has no score"}
    return {"raw_text": metric.reason, "raw_decision": LABELS[not metric.success]}


IMPORTER = Importer(
    summary="DeepEval's test runs (.deepeval/.latest_test_run.json)",
    patterns=(".latest_test_run.json", "test_run_*.json"),
    read=lambda *asked: in_rows(read(*asked)),
    labels=LABELS,
    keys=("testRunData", "testCases", "conversationalTestCases"),
)
