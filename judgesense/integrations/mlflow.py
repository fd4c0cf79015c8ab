"""An alignment optimiser for MLflow's judges: ``judge.align(traces, optimizer=Improve(...))``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from judgesense.ask.improve import improve
from judgesense.ask.improved import Improved
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.verdicts import ItemJudge, load_judge

try:
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback, Trace
    from mlflow.genai.judges import AlignmentOptimizer, Judge
    from mlflow.genai.judges.base import JudgeField
    from mlflow.genai.utils.trace_utils import (
        resolve_expectations_from_trace,
        resolve_inputs_from_trace,
        resolve_outputs_from_trace,
    )
except ImportError as error:
    raise JudgeSenseError("the alignment optimiser needs MLflow 3.4: pip install mlflow") from error

_FIELD = re.compile(r"\{\{\s*(inputs|outputs|expectations)\s*\}\}")
_YES_NO = {True: "YES", False: "NO"}


class Improve(AlignmentOptimizer):  # type: ignore[misc]
    """Aligns an MLflow judge with people's feedback by `judgesense.improve`.

    The traces need human feedback of the judge's name: at least 20. The judge that comes back is
    the best way to ask that the budget found; ``improved`` has the table and the promise.

    Args:
        judge: the model to ask, as for `judgesense.improve`, or a list of them.
        budget: prompts per trace, or US dollars (``"$2"``).
        out: the judge's file to write.
        options: more options of `judgesense.improve`, and of the judge.
    """

    def __init__(
        self, judge: Any, budget: str | float = 20, out: str | Path = "judge.yaml", **options: Any
    ) -> None:
        self.judge, self.budget, self.out, self.options = judge, budget, Path(out), options

    def align(self, judge: Judge, traces: list[Trace]) -> Judge:
        """The improved judge. Raises JudgeSenseError for too few traces with feedback."""
        rows, shown = [], dict.fromkeys(_FIELD.findall(judge.instructions))
        for trace in traces:
            given = [
                each.feedback.value
                for each in trace.info.assessments
                if each.name == judge.name
                and each.source.source_type == "HUMAN"
                and each.feedback is not None
            ]
            if given and given[-1] is not None:
                texts = _texts(None, None, None, trace)
                gold = _YES_NO.get(given[-1], str(given[-1]))
                rows.append({**{name: texts[name] for name in shown}, "gold": gold})
        if not rows:
            raise JudgeSenseError(
                f"no trace has human feedback named {judge.name!r}; log some with "
                "mlflow.log_feedback and the source type HUMAN"
            )
        labels = sorted({row["gold"] for row in rows})
        asked = f"Answer {' or '.join(labels)}."
        plain = _FIELD.sub(lambda match: f"the {match.group(1)} below", judge.instructions)
        fields = "\n".join(f"{name.capitalize()}: {{{name}}}" for name in shown)
        rubric = f"{plain.replace('{', '(').replace('}', ')')} {asked}\n\n{fields}"
        found = improve(
            rubric,
            rows,
            self.judge,
            budget=self.budget,
            out=self.out,
            answers=labels,
            **self.options,
        )
        return ImprovedJudge(judge, found, self.judge)


class ImprovedJudge(Judge):  # type: ignore[misc]
    """A judge's file as an MLflow judge; ``improved`` says how it was found.

    Made by `Improve.align`. It is loaded on first use.
    """

    def __init__(self, original: Judge, improved: Improved, asked: Any) -> None:
        super().__init__(name=original.name)
        self._original, self._improved, self._asked = original, improved, asked
        self._loaded: ItemJudge | None = None

    @property
    def improved(self) -> Improved:
        """The table of ways to ask, and what is promised."""
        return self._improved

    @property
    def instructions(self) -> str:
        """The instructions that it was made from."""
        return str(self._original.instructions)

    @property
    def feedback_value_type(self) -> Any:
        """The type of the feedback, as the original judge's."""
        return self._original.feedback_value_type

    def get_input_fields(self) -> list[JudgeField]:
        """The fields that the original judge reads."""
        fields: list[JudgeField] = self._original.get_input_fields()
        return fields

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        expectations: Any = None,
        trace: Trace | None = None,
    ) -> Feedback:
        """The verdict as feedback; an error without one. ``ask_person`` is in the metadata."""
        if self._loaded is None:
            by_name = isinstance(self._asked, (str, Path))
            more = {} if by_name else {"judge": self._asked}
            self._loaded = load_judge(self._improved.out, **more)
        (verdict,) = self._loaded([_texts(inputs, outputs, expectations, trace)])
        source = AssessmentSource(source_type="LLM_JUDGE", source_id=verdict.judge)
        kept = {key: getattr(verdict, key) for key in ("probability", "margin", "ask_person")}
        metadata = {key: str(value) for key, value in kept.items() if value is not None}
        if verdict.verdict not in self._loaded.improved.recipe.labels:
            failed = AssessmentError(error_code=verdict.verdict, error_message=verdict.error)
            return Feedback(name=self.name, source=source, error=failed, metadata=metadata)
        yes = {text: value for value, text in _YES_NO.items()}
        value: Any = verdict.verdict
        value = yes.get(value, value) if self.feedback_value_type is bool else value
        return Feedback(name=self.name, source=source, value=value, metadata=metadata)


def _texts(inputs: Any, outputs: Any, expectations: Any, trace: Trace | None) -> dict[str, str]:
    """The parts of a trace as texts: a dict with one value as the value, other dicts as JSON."""
    if trace is not None:
        inputs = resolve_inputs_from_trace(inputs, trace)
        outputs = resolve_outputs_from_trace(outputs, trace)
        expectations = resolve_expectations_from_trace(expectations, trace)
    found = {}
    for name, part in (("inputs", inputs), ("outputs", outputs), ("expectations", expectations)):
        if isinstance(part, dict) and len(part) == 1:
            (part,) = part.values()
        if part is not None:
            found[name] = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
    return found
