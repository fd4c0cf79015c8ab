"""MLflow's judges are aligned by `improve`, in an environment that has MLflow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from own_environment import environment, python

__all__ = ["python"]

PROGRAM = """
import mlflow
from mlflow.entities import AssessmentSource
from mlflow.genai.judges import make_judge
from judgesense.integrations.mlflow import Improve
from local_judges.callable_judge import CallableJudge

mlflow.set_tracking_uri("sqlite:///m.db")
mlflow.set_experiment("x")
person = AssessmentSource(source_type="HUMAN", source_id="me")
for n in range(40):
    with mlflow.start_span("s") as span:
        span.set_inputs({"question": f"question {n}"})
        span.set_outputs("fine" if n % 2 else "go away")
    mlflow.flush_trace_async_logging()
    mlflow.log_feedback(trace_id=span.trace_id, name="polite", value=bool(n % 2), source=person)
traces = mlflow.search_traces(return_type="list")
judge = make_judge(name="polite", instructions="Is {{ outputs }} a polite answer to {{ inputs }}?",
                   feedback_value_type=bool, model="openai:/gpt-4o")
answer = lambda messages: [{"YES": -0.3 if "fine" in m else -1.5, "NO": -0.9} for m in messages]
model = CallableJudge(answer, name="m", scoring="options")
better = judge.align(traces, optimizer=Improve(model, budget=6, note=lambda _: None))
print(better.improved.written["right"], better(inputs="q", outputs="fine").value,
      better(inputs="q", outputs="go away").value)
"""


@pytest.mark.slow
def test_a_judge_is_aligned_with_people_and_answers_as_before(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.stdout.split()[-3:] == ["1.0", "True", "False"], done.stderr[-2000:]
