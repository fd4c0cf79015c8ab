"""DeepEval's G-Eval metrics as graded logs.

A test run keeps the evaluation steps and the score, not the grading prompt. The prompt is DeepEval
4's, with the steps as the wording and every text of the test case that the run has.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.importers.deepeval import LABELS, NO_MODEL, Case, Metric, cases
from judgesense.importers.graded import Grade, GradedLog, Wording, graded_log, only, quoted
from judgesense.importers.wordings import own_wording
from judgesense.tasks import ERROR

_STEPS = re.compile(r"Evaluation Steps:\n(\[.*?\n\]|\[\])", re.DOTALL)
_RUBRIC = re.compile(r"\nRubric:\n(?!None)")
_EXAMPLE = '{\n  "reason": "your concise and informative reason here",\n  "score": 0\n}'
_FIELDS = {
    "input": "Input", "actualOutput": "Actual Output", "expectedOutput": "Expected Output",
    "context": "Context", "retrievalContext": "Retrieval Context",
}  # fmt: skip
_NOTE = (
    "DeepEval keeps no grading prompt and does not say which texts of a test case its metric "
    "shows: the prompt is that of DeepEval 4 with every text that the test run has"
)


def read(path: Path, pick: str | None = None) -> GradedLog:
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
    cut = only((f"{_threshold(metric):g}" for *_, metric in chosen), "threshold", path, None)
    passing = [score for score in range(11) if score / 10 >= float(cut)]
    aliases = {
        "PASS": tuple(map(str, passing)),
        "FAIL": tuple(str(score) for score in range(11) if score not in passing),
    }
    grades = [_grade(*each) for each in chosen]
    frame = Wording(own_wording("deepeval-g-eval"), {"example": _EXAMPLE, "instruction": steps})
    log = graded_log(
        "deepeval", path, "" if judge == NO_MODEL else judge, LABELS, grades, [frame],
        whole=True, aliases=aliases, options={"system_prompt": ""}, notes=[_NOTE],
    )  # fmt: skip
    own = quoted(steps, ())
    items = [replace(item, fields={**item.fields, **own.constants}) for item in log.items]
    template = replace(log.template, text=own.text, layout=log.template.text)
    return replace(log, template=template, items=tuple(items))


def _threshold(metric: Metric) -> float:
    return 0.5 if metric.threshold is None else metric.threshold


def _steps(metric: Metric, place: str) -> str:
    """The evaluation steps as the grading prompt shows them."""
    told = metric.verboseLogs or ""
    if metric.strictMode or _RUBRIC.search(told):
        raise JudgeSenseError(
            f"{place}, metric {metric.name}: strict mode and rubrics of score ranges have another "
            "grading prompt, which a check does not ask; import the verdicts with: judgesense "
            "import"
        )
    found = _STEPS.search(told)
    steps = parse_json(found[1], f"{place}, metric {metric.name}, verboseLogs") if found else []
    if not steps:
        raise JudgeSenseError(
            f"{place}, metric {metric.name}: no evaluation steps in verboseLogs, which are the "
            "rubric; write the run with GEval of DeepEval 4"
        )
    return "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))


def _grade(place: str, number: int, case: Case, metric: Metric) -> Grade:
    shown = {
        label: str(value)
        for name, label in _FIELDS.items()
        if (value := getattr(case, name)) is not None
    }
    labels = list(shown)
    told = (
        " and ".join(labels) if len(labels) < 3 else f"{', '.join(labels[:-1])}, and {labels[-1]}"
    )
    question = case.name or f"test-{number + 1}"
    undecided = metric.error or metric.success is None or metric.score is None
    return Grade(
        question,
        question,
        "",
        {
            "test_case": "".join(f"{label}:\n{value} \n\n" for label, value in shown.items()),
            "parameters": told,
        },
        ERROR if undecided else LABELS[not metric.success],
        place,
    )
