"""The DeepEval metric, in an environment that has DeepEval, as its page says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from loopback import Loopback, factual, section, serving, stable_file
from own_environment import ROOT, environment, python  # noqa: F401

from judgesense.errors import MissingExtraError

PAGE = section("DeepEval")

# One test case without a verdict, and one without the field.
MORE = """
import asyncio, json
from deepeval.evaluate import ErrorConfig
from judgesense.errors import JudgeSenseError

bad = {}
for name, case in {
    "unclear": LLMTestCase(input=question, actual_output="It is a city."),
    "field": LLMTestCase(input=question, actual_output=None),
}.items():
    try:
        asyncio.run(metric.a_measure(case))
    except JudgeSenseError as error:
        bad[name] = [str(error), metric.is_successful()]
ignored = evaluate(
    [LLMTestCase(input=question, actual_output="It is a city.")], [metric],
    error_config=ErrorConfig(ignore_errors=True),
)
told = [
    [data.name, data.success, data.score, data.reason, data.error]
    for done in (results, ignored) for result in done.test_results for data in result.metrics_data
]
json.dump({"told": told, "bad": bad}, open("told.json", "w"))
"""


def test_without_deepeval_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"judgesense\[deepeval\]"):
        import judgesense.integrations.deepeval  # noqa: F401


@pytest.mark.slow
def test_the_real_deepeval(python: Path, tmp_path: Path) -> None:  # noqa: F811
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "own.py").write_text(snippet + MORE)
    with serving(Loopback(factual)) as url:
        stable_file(tmp_path / "stable.yaml", f"{url}/v1")
        done = subprocess.run(
            [python, "own.py"], cwd=tmp_path, capture_output=True, text=True, timeout=400,
            env={**environment(tmp_path), "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "told.json").read_text("utf-8"))
    assert [(name, success, score) for name, success, score, _, _ in found["told"]] == [
        ("Factual", True, 1.0), ("Factual", False, 0.0), ("Factual", True, 1.0),
        ("Factual", False, None),
    ]  # fmt: skip
    assert "ask a person" in found["told"][2][3]
    assert found["told"][3][4].startswith("UNCLEAR")
    assert found["bad"]["unclear"][0].startswith("UNCLEAR")
    assert "no 'actual_output'" in found["bad"]["field"][0]
    assert [successful for _, successful in found["bad"].values()] == [False, False]
