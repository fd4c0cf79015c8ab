"""The prompt that a check of a DeepEval log asks is the one that the real DeepEval asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from own_environment import environment, python  # noqa: F401

from judgesense.importers.log import read_graded
from judgesense.tasks import render

# A judge that keeps its prompts, and one metric on two test cases.
RUN = """
import json
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig
from deepeval.metrics import GEval
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase, SingleTurnParams

asked = []

class Judge(DeepEvalBaseLLM):
    def load_model(self):
        return self

    def get_model_name(self):
        return "own-judge"

    def generate(self, prompt, schema=None):
        asked.append(prompt)
        said = {"score": 7 if "Paris" in prompt else 4, "reason": "r"}
        return json.dumps(said) if schema is None else schema(**said)

    async def a_generate(self, prompt, schema=None):
        return self.generate(prompt, schema)

metric = GEval(
    name="Right", model=Judge(), threshold=0.5,
    evaluation_steps=["Is the output right?", "Is it {short}?"],
    evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT,
                       SingleTurnParams.EXPECTED_OUTPUT],
)
cases = [LLMTestCase(name=name, input=f"Capital of {name}?", actual_output=said,
                     expected_output=right)
         for name, said, right in [("France", "Paris.", "Paris"), ("Spain", "Nice.", "Madrid")]]
evaluate(cases, [metric], async_config=AsyncConfig(run_async=False),
         display_config=DisplayConfig(show_indicator=False, print_results=False))
json.dump(asked, open("asked.json", "w"))
"""


@pytest.mark.slow
def test_the_prompt_is_deepevals_own(python: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "own.py").write_text(RUN)
    done = subprocess.run(
        [python, "own.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={**environment(tmp_path), "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    log = read_graded(tmp_path / ".deepeval" / ".latest_test_run.json")
    assert (log.judge, log.stored) == ("own-judge", ("PASS", "FAIL"))
    shown = [render(log.task, log.template, item, "-").text for item in log.items]
    asked = json.loads((tmp_path / "asked.json").read_text("utf-8"))
    assert shown == asked
