"""A scorer for MLflow's ``mlflow.genai.evaluate`` that asks a judge of JudgeSense."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from judgesense.errors import MissingExtraError
from judgesense.integrations.grading import Grader

try:
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import Scorer
    from mlflow.genai.scorers import scorer as as_scorer
except ImportError as error:
    raise MissingExtraError("mlflow", "mlflow", "the MLflow scorer") from error


def scorer(
    judge: Any,
    *,
    passing: Collection[str],
    fields: Mapping[str, str] | None = None,
    name: str = "judgesense",
    **judge_options: Any,
) -> Scorer:
    """A scorer for ``mlflow.genai.evaluate(data=..., scorers=[...])``.

    Each row gets a feedback: true if the verdict passes, the verdict and its margin as rationale
    and metadata. A row without a verdict gets a feedback with the error UNCLEAR, REFUSED or ERROR,
    which MLflow leaves out of the mean.

    Args:
        judge, passing, judge_options: as for `judgesense.integrations.grading.Grader`.
        fields: the field that the judge's wordings show -> its place in a row: ``outputs``,
            ``inputs.KEY``, ``outputs.KEY`` or ``expectations.KEY``.
        name: the feedback's name.

    Raises:
        MissingExtraError: on import, without MLflow.
        JudgeSenseError: a judge that cannot be loaded, or labels and fields that it does not have.
    """
    grader = Grader(judge, passing=passing, fields=fields, **judge_options)
    source = AssessmentSource(source_type="LLM_JUDGE", source_id=grader.name)

    def grade(inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Feedback:
        case: dict[str, Any] = {}
        parts = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
        for part, value in parts.items():
            if isinstance(value, Mapping):
                case |= {f"{part}.{key}": each for key, each in value.items()}
            else:
                case[part] = value
        graded = grader(case)
        verdict = graded.verdict
        kept = ("verdict", "probability", "margin", "ask_person", "cost_usd")
        figures = {key: getattr(verdict, key) for key in kept}
        metadata = {key: str(value) for key, value in figures.items() if value is not None}
        common = {"name": name, "source": source, "metadata": metadata}
        if graded.passed is None:
            failed = AssessmentError(error_code=verdict.verdict, error_message=graded.reason)
            return Feedback(error=failed, **common)
        return Feedback(value=graded.passed, rationale=graded.reason, **common)

    made: Scorer = as_scorer(grade, name=name)
    return made
