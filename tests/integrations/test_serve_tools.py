"""The tools of docs/serve.md, the real programs, against a served judge: each gets the verdicts of
``judgesense judge``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_environment import ROOT, environment, python  # noqa: F401
from served import file_of, judge_of, running, served_of

from judgesense import load_judge

pytestmark = pytest.mark.slow
SECTION = (ROOT / "docs/serve.md").read_text("utf-8").partition("## In your tools")[2]
PROMPTFOO, DEEPEVAL, MLFLOW, INSPECT = re.findall(r"```\w+\n(.*?)```", SECTION, re.DOTALL)[:4]
QUESTION = "What is the capital of France?"
ANSWERS = ["Paris.", "Lyon.", "Nice.", 'The "city" of {light}.', "Marseille,\nin the south."]

RUN_DEEPEVAL = """
import json
from deepeval import evaluate
from deepeval.test_case import LLMTestCase
{snippet}
cases = [LLMTestCase(input={question!r}, actual_output=each) for each in {answers!r}]
done = evaluate(cases, [factual])
told = {{each.input and each.actual_output: each.metrics_data[0] for each in done.test_results}}
json.dump({{answer: ["YES" if told[answer].success else "NO", told[answer].score]
           for answer in {answers!r}}}, open("told.json", "w"))
"""

RUN_MLFLOW = """
import json, mlflow
{snippet}
rows = [{{"inputs": {{"question": {question!r}}}, "outputs": each}} for each in {answers!r}]
done = mlflow.genai.evaluate(data=rows, scorers=[factual])
told = {{}}
for trace in mlflow.search_traces(return_type="list"):
    (found,) = [a for a in trace.info.assessments if a.name == "factual"]
    told[json.loads(trace.data.response)] = [found.feedback.value, None]
json.dump(told, open("told.json", "w"))
"""

RUN_SDK = """
import json
from typesafe_sdk import Choice, Noul, TypeSafeClient
told = {{}}
with TypeSafeClient(api_key="any", base_url={url!r}, model="judge") as client:
    assert [each.name for each in client.models.list().models] == ["better"]
    for answer in {answers!r}:
        found = client.system_one(
            {{"question": {question!r}, "response": answer}},
            {{"right": Noul(instructions="Right?"),
             "same": Choice(instructions="Right?", criteria={{"NO": None, "YES": None}})}})
        assert found.choices["same"].probabilities["YES"] == found.nouls["right"].noul
        told[answer] = [found.choices["same"].choice, found.nouls["right"].noul]
json.dump(told, open("told.json", "w"))
"""

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
{snippet}

@solver
def recorded():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("recorded", state.metadata["answer"])
        return state
    return solve

@task
def facts():
    samples = [Sample({question!r}, target="-", metadata={{"answer": each}})
               for each in {answers!r}]
    return Task(dataset=samples, solver=recorded(), scorer=scorer)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server's URL, and the judge's own verdicts and probabilities of YES, by answer."""
    path = file_of(tmp_path_factory.mktemp("judge") / "better.yaml", "factuality", 3, ("-",))
    items = [{"question": QUESTION, "response": answer} for answer in ANSWERS]
    own = load_judge(path, judge=judge_of())(items)
    expected = {
        answer: (each.verdict, each.probability if each.verdict == "YES" else 1 - each.probability)
        for answer, each in zip(ANSWERS, own, strict=True)
    }
    assert len({verdict for verdict, _ in expected.values()}) == 2
    with running(served_of(path)) as url:
        yield url, expected


def compare(told: dict[str, list[Any]], expected: dict[str, Any]) -> None:
    assert {answer: verdict for answer, (verdict, _) in told.items()} == {
        answer: verdict for answer, (verdict, _) in expected.items()
    }
    for answer, (_, probability) in told.items():
        assert probability in (None, pytest.approx(expected[answer][1], abs=1e-9))


@pytest.mark.parametrize(
    ("snippet", "program"),
    [(DEEPEVAL, RUN_DEEPEVAL), (MLFLOW, RUN_MLFLOW), ("", RUN_SDK)],
    ids=["deepeval", "mlflow", "typesafe-sdk"],
)
def test_python_tools(
    served: tuple[str, Any],
    python: Path,  # noqa: F811
    tmp_path: Path,
    snippet: str,
    program: str,
) -> None:
    url, expected = served
    code = program.format(
        snippet=snippet.replace("http://127.0.0.1:8080", url),
        url=url,
        question=QUESTION,
        answers=ANSWERS,
    )
    (tmp_path / "own.py").write_text(code)
    quiet = {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/store.db",
    }
    done = subprocess.run(
        [python, "own.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        env={**environment(tmp_path), **quiet},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    compare(json.loads((tmp_path / "told.json").read_text("utf-8")), expected)


def test_promptfoo(served: tuple[str, Any], tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which is not installed")
    made = Path(".venv-promptfoo/.ready")
    done = subprocess.run(["make", "--silent", made], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    url, expected = served
    tests = [{"vars": {"question": QUESTION, "answer": answer}} for answer in ANSWERS]
    (tmp_path / "promptfooconfig.yaml").write_text(
        PROMPTFOO.replace("http://127.0.0.1:8080", url)
        + f'prompts: ["{{{{answer}}}}"]\nproviders: [echo]\ntests: {json.dumps(tests)}\n'
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "PROMPTFOO_"))}
    quiet = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    program = ROOT / made.parent / "node_modules/.bin/promptfoo"
    done = subprocess.run(
        [program, "eval", "--no-cache", "-o", "out.json"],
        cwd=tmp_path,
        env={
            **kept,
            **{f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet},
            "PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"),
        },
        capture_output=True,
        text=True,
        timeout=400,
    )
    results = json.loads((tmp_path / "out.json").read_text("utf-8"))["results"]["results"]
    told = {}
    for each in results:
        grade = each["gradingResult"]["componentResults"][0]
        told[each["vars"]["answer"]] = ["YES" if grade["pass"] else "NO", grade["score"]]
    assert len(told) == len(ANSWERS), done.stderr
    compare(told, expected)


def test_inspect(served: tuple[str, Any], tmp_path: Path) -> None:
    url, expected = served
    code = INSPECT_TASK.format(snippet=INSPECT, question=QUESTION, answers=ANSWERS)
    (tmp_path / "facts.py").write_text(code)
    program = Path(sys.executable).with_name("inspect")
    done = subprocess.run(
        [
            program,
            "eval",
            "facts.py",
            "--log-dir",
            tmp_path / "logs",
            "--log-format",
            "json",
            "--model",
            "openai-api/judge/judge",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "JUDGE_BASE_URL": f"{url}/v1",
            "JUDGE_API_KEY": "any",
            "INSPECT_DISPLAY": "none",
        },
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    (path,) = (tmp_path / "logs").iterdir()
    samples = json.loads(path.read_text("utf-8"))["samples"]
    told = {
        each["metadata"]["answer"]: [each["scores"]["model_graded_qa"]["value"], None]
        for each in samples
    }
    compare(told, expected)
