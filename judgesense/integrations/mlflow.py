"""MLflow: a scorer for ``mlflow.genai.evaluate``, and reports as artefacts of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.integrations.grading import Grader
from judgesense.run_folder.report import load_report
from judgesense.text import short_names

try:
    import mlflow
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import Scorer
    from mlflow.genai.scorers import scorer as as_scorer
except ImportError as error:
    raise MissingExtraError("mlflow", "mlflow", "the MLflow scorer") from error

FIGURES = ("jss", "ci_low", "ci_high", "kappa", "accuracy", "position_consistency", "coverage")
"""What `log_report` logs of each judge and task."""
FILES = ("report.html", "report.md", "report.json", "badge.svg")


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


def log_report(folder: str | Path, artifact_path: str = "judgesense") -> None:
    """Log a run's report to MLflow's active run, or to a new one.

    The pages and figures become artefacts under ``artifact_path``. Each judge and task adds metrics
    (``judgesense/JUDGE/TASK/SCORING/jss`` and the others of `FIGURES`) and a tag with its trust.
    Undefined figures are left out.

    Args:
        folder: the ``--out`` of ``judgesense run`` or ``check``.
        artifact_path: the folder among the run's artefacts.

    Raises:
        JudgeSenseError: no report in the folder.
    """
    folder = Path(folder)
    report = load_report(folder)
    own = [cell for cell in report["cells"] if cell["judge"] not in BASELINES]
    names = short_names({cell["judge"] for cell in own})

    def place(row: Mapping[str, Any], between: str) -> str:
        parts = (names[row["judge"]], row["task"], row["scoring"])
        # MLflow allows no other characters in the names of metrics and tags.
        return between.join(re.sub(r"[^\w .-]", "-", part, flags=re.ASCII) for part in parts)

    # A pooled cell follows those of the single orders.
    metrics: dict[str, float] = {
        f"judgesense/{place(cell, '/')}/{key}": cell[key]
        for cell in own
        for key in FIGURES
        if cell["labels"] == "mapped" and cell.get(key) is not None
    }
    tags = {f"judgesense.trust.{place(card, '.')}": card["trust"] for card in report["trust"]}
    files = [folder / name for name in FILES if (folder / name).is_file()]
    if not files:
        raise JudgeSenseError(f"{folder} has no report; make it with: judgesense report {folder}")
    active = mlflow.active_run()
    if active is None:
        mlflow.start_run()
    try:
        for file in files:
            mlflow.log_artifact(str(file), artifact_path)
        if (folder / "figures").is_dir():
            mlflow.log_artifacts(str(folder / "figures"), f"{artifact_path}/figures")
        mlflow.log_metrics(metrics)
        mlflow.set_tags(tags)
    finally:
        if active is None:
            mlflow.end_run()
