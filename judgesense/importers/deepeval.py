"""DeepEval's test runs (``.deepeval/.latest_test_run.json``): each metric of a test is a verdict.

DeepEval keeps whether a metric passed, its score and the reason, not what the judge wrote. It keeps
the evaluation steps of a G-Eval metric, not its grading prompt: in a graded log the prompt is
DeepEval 4's, with the steps as the wording and every text of the test case that the run has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit, parse_json, read_json
from judgesense.files.tables import Record
from judgesense.importers.graded import (
    RUBRIC,
    Grade,
    GradedLog,
    graded_log,
    only,
    own_wording,
)  # fmt: skip
from judgesense.importers.importer import Importer, ReadOptions
from judgesense.tasks import ERROR

LABELS = ("PASS", "FAIL")
NO_MODEL = "deepeval-metric"
"""The judge of a metric that names no model."""

_STEPS = re.compile(r"Evaluation Steps:\n(\[.*?\n\]|\[\])", re.DOTALL)
_RANGES = re.compile(r"\nRubric:\n(?!None)")
_EXAMPLE = '{\n  "reason": "your concise and informative reason here",\n  "score": 0\n}'
_FIELDS = {
    "input": "Input", "actualOutput": "Actual Output", "expectedOutput": "Expected Output",
    "context": "Context", "retrievalContext": "Retrieval Context",
}  # fmt: skip
_NOTE = (
    "DeepEval keeps no grading prompt and does not say which texts of a test case its metric "
    "shows: the prompt is that of DeepEval 4 with every text that the test run has"
)


class Metric(Shape):
    """What became of a metric."""

    name: str
    success: bool | None = None
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluationModel: str | None = None
    evaluationCost: float | None = None
    threshold: float = 0.5
    strictMode: bool | None = None
    verboseLogs: str | None = None


class Case(Shape):
    """A test case, of one turn or of a conversation."""

    name: str | None = None
    order: int | None = None
    input: Any = None
    actualOutput: Any = None
    expectedOutput: Any = None
    context: Any = None
    retrievalContext: Any = None
    turns: Any = None
    metricsData: list[Metric] | None = None
    additionalMetadata: dict[str, Any] | None = Field(None, alias="metadata")


class Run(Shape):
    """A test run."""

    testCases: list[Any] = Field(default_factory=list)
    conversationalTestCases: list[Any] = Field(default_factory=list)


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per metric of a test case.

    The task and the template are the metric, with ``#2`` for the second of that name in a test. So
    wordings are the metrics that ``--columns task=:NAME`` joins. A test whose answer differs from
    that in an earlier run is another item of the test's cluster.

    Raises JudgeSenseError for a file that is not a test run, and for a test that does not have the
    shape of one.
    """
    empty = True
    for place, number, case in cases(path):
        for record in _metrics(case, number, place, options):
            empty = False
            yield record
    if empty:
        raise JudgeSenseError(f"{path}: no test has metricsData")


def cases(path: Path) -> Iterator[tuple[str, int, Case]]:
    """The test cases of a test run: their places, numbers and values."""
    file = read_json(path)
    values = file.get("testRunData", file) if isinstance(file, dict) else None
    if not isinstance(values, dict) or not {"testCases", "conversationalTestCases"} & set(values):
        raise JudgeSenseError(
            f"{path}: not a DeepEval test run (no testRunData.testCases); deepeval writes it to "
            ".deepeval/.latest_test_run.json"
        )
    run = fit(Run, values, f"{path}, testRunData", "a DeepEval test run")
    for kind in ("testCases", "conversationalTestCases"):
        for number, case in enumerate(getattr(run, kind)):
            place = f"{path}, testRunData.{kind}[{number}]"
            yield place, number, fit(Case, case, place, "a test case")


def _metrics(case: Case, number: int, place: str, options: ReadOptions) -> Iterator[Record]:
    question = case.name or f"test-{number + 1}"
    judged = repr((case.input, case.actualOutput, case.turns))
    item = options.items.name(question, judged)
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
                "repeat": options.items.repeat(judge, item, template),
                "metric": metric.name,
                "score": metric.score,
                "metadata": case.additionalMetadata or {},
                "cost_usd": metric.evaluationCost,
                **_verdict(metric),
            },
            place,
        )


def _verdict(metric: Metric) -> dict[str, Any]:
    if metric.error or metric.success is None or (metric.score is None and not metric.success):
        return {"status": "error", "error": metric.error or "the metric has no score"}
    return {"raw_text": metric.reason, "raw_decision": LABELS[not metric.success]}


def read_graded(path: Path, pick: str | None = None) -> GradedLog:
    """The grades of one G-Eval metric: ``pick`` names it if the run has several.

    A score of 0 to 10 counts as PASS from the metric's threshold on. Raises JudgeSenseError for a
    test run without a G-Eval metric, one whose metrics lack the evaluation steps (``verboseLogs``),
    and one in strict mode or with a rubric of score ranges.
    """
    found = [
        (place, number, case, metric)
        for place, number, case in cases(path)
        for metric in case.metricsData or ()
    ]
    graded = [each for each in found if "[GEval]" in each[3].name]
    if not graded:
        names = ", ".join(dict.fromkeys(metric.name for *_, metric in found)) or "none"
        raise JudgeSenseError(
            f"{path}: a check asks G-Eval metrics again, and the run has only: {names}; import "
            "the verdicts with: judgesense import"
        )
    name = only((metric.name for *_, metric in graded), "metric", path, pick)
    chosen = [each for each in graded if each[3].name == name]
    judge = only((metric.evaluationModel or "" for *_, metric in chosen), "judge", path, None)
    steps = only((_steps(metric, place) for place, _, _, metric in chosen), "rubric", path, None)
    cut = only((f"{metric.threshold:g}" for *_, metric in chosen), "threshold", path, None)
    passing = [score for score in range(11) if score / 10 >= float(cut)]
    aliases = {
        "PASS": tuple(map(str, passing)),
        "FAIL": tuple(str(score) for score in range(11) if score not in passing),
    }
    return graded_log(
        "deepeval", path, "" if judge == NO_MODEL else judge, LABELS,
        [_grade(steps, *each) for each in chosen], [own_wording("deepeval-g-eval")], whole=True,
        aliases=aliases, options={"system_prompt": ""}, notes=[_NOTE],
    )  # fmt: skip


def _steps(metric: Metric, place: str) -> str:
    """The evaluation steps as the grading prompt shows them."""
    log = metric.verboseLogs or ""
    if metric.strictMode or _RANGES.search(log):
        raise JudgeSenseError(
            f"{place}, metric {metric.name}: strict mode and rubrics of score ranges have another "
            "grading prompt, which a check does not ask; import the verdicts with: judgesense "
            "import"
        )
    found = _STEPS.search(log)
    steps = parse_json(found[1], f"{place}, metric {metric.name}, verboseLogs") if found else []
    if not steps:
        raise JudgeSenseError(
            f"{place}, metric {metric.name}: no evaluation steps in verboseLogs, which are the "
            "rubric; write the run with GEval of DeepEval 4"
        )
    return "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))


def _grade(steps: str, place: str, number: int, case: Case, metric: Metric) -> Grade:
    shown = {
        label: str(value)
        for name, label in _FIELDS.items()
        if (value := getattr(case, name)) is not None
    }
    *labels, last = shown or [""]
    comma = "," if len(labels) > 1 else ""
    question = case.name or f"test-{number + 1}"
    fields = {
        "test_case": "".join(f"{label}:\n{value} \n\n" for label, value in shown.items()),
        "parameters": f"{', '.join(labels)}{comma} and {last}" if labels else last,
        "example": _EXAMPLE,
        RUBRIC: steps,
    }
    stored = _verdict(metric).get("raw_decision", ERROR)
    return Grade(question, question, "", fields, stored, place)


IMPORTER = Importer(
    name="deepeval",
    summary="DeepEval's test runs (.deepeval/.latest_test_run.json)",
    patterns=(".latest_test_run.json", "test_run_*.json"),
    read=read,
    labels=LABELS,
    graded=read_graded,
    keys=("testRunData", "testCases", "conversationalTestCases"),
)
