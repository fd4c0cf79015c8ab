"""``judgesense check --log``: a rubric, its grades and its judge from another tool's log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.checking.logs import judge_of
from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from judgesense.importers import inspect_logs
from judgesense.importers.graded import derived, known_wordings, own_wording, quoted, split
from judgesense.importers.log import read_graded
from judgesense.tasks import render

DATA = Path(__file__).parents[1] / "importers" / "data"

INSPECT = r"""
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, model_graded_fact, model_graded_qa
from inspect_ai.solver import generate

def said(text):
    # Inspect counts tokens otherwise, with a tokenizer that it downloads.
    output = ModelOutput.from_content("mockllm/rule", text)
    output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    return output

def rule(input, tools, tool_choice, config):
    text = input[-1].text
    right = any(f"capital {n}" in text and f"answer {n}." in text for n in (0, 2, 3))
    grade = "C" if right else "I"
    return said(f"Because {{it}} says so.\n\nGRADE: {grade}")

def answers(input, tools, tool_choice, config):
    return said(f"It is answer {input[-1].text[-2]}. [END DATA]")

def grader():
    return get_model("mockllm/rule", custom_outputs=rule, memoize=False)

samples = [Sample(id=f"q{n}", input=f"What is capital {n}?", target=f"answer {n}.",
                  metadata={"topic": f"topic {n % 2}"}) for n in range(4)]
chats = [Sample(id=f"q{n}", input=[ChatMessageSystem(content="Be brief."),
         ChatMessageUser(content=f"What is capital {n}?")], target=[f"answer {n}.", "or so"])
         for n in range(4)]
braces = 'Mark {{"so": 1}} {question} -> {answer}\n\nBy {criterion} on {topic}.\n{instructions}'
shown = "End with GRADE: C or GRADE: I."
for name, scorer, data, epochs in [
    ("qa", model_graded_qa(model=grader()), samples, 2),
    ("fact", model_graded_fact(model=grader(), partial_credit=True), chats, 1),
    ("braces", model_graded_qa(model=grader(), template=braces), samples, 1),
    ("own", model_graded_qa(model=grader(), instructions=shown), samples, 1),
    ("two", [model_graded_qa(model=grader()), model_graded_fact(model=grader()), includes()],
     samples, 1),
]:
    eval(Task(name=name, dataset=data, solver=generate(), scorer=scorer), epochs=epochs,
         model=get_model("mockllm/m", custom_outputs=answers, memoize=False),
         log_dir=f"{sys.argv[1]}/{name}", display="none",
         log_format="json" if name == "own" else "eval")
"""


def rule(messages: list[str]) -> list[str]:
    """The rule judge of the logs."""
    return [
        "GRADE: C" if any(f"capital {n}" in m and f"answer {n}." in m for n in (0, 2, 3)) else
        "GRADE: I"
        for m in messages
    ]  # fmt: skip


REAL = r"""
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver

@solver
def said():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("none", f"It is {state.sample_id}.")
        return state
    return solve

template = "Question: {question}\nAnswer: {answer}\n\n{instructions}\nGRADE: {criterion}"
samples = [Sample(id=f"{2 * n}", input=f"What is {n} plus {n}?", target="CI"[n % 2])
           for n in range(1, 5)]
grader = get_model("hf/local", model_path=sys.argv[2], device="cpu", dtype="float32",
                   do_sample=False, config=GenerateConfig(max_tokens=10))
scorer = model_graded_qa(model=grader, template=template,
                         instructions="Repeat this line and nothing else:")
eval(Task(dataset=samples, solver=said(), scorer=scorer), model="mockllm/model",
     log_dir=sys.argv[1], display="none")
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Logs that Inspect wrote, graded by a rule, by the names of their tasks."""
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("inspect")
    command = [sys.executable, "-c", INSPECT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {each.name: next(each.iterdir()) for each in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qa", "fact", "braces", "own"])
def test_the_unchanged_wording_gives_inspects_own_grades(
    name: str, logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    log = read_graded(logs[name])
    assert (log.judge, log.notes) == (
        "mockllm/rule",
        ("4 grades repeat a prompt; the first grade of each counts",) if name == "qa" else (),
    )
    assert log.stored == ("C", "I", "C", "C")
    other = tmp_path / "other.txt"
    other.write_text("Mark it again: {question} {answer} {criterion}\n{instructions}")
    found = judgesense.check_log(
        logs[name], rule, wordings=other, out=tmp_path / "out", repeats=1, note=str
    )
    assert found.stored == {"n": 4, "same": 4, "share": 1.0}
    own, reworded = found.result.table("stored").rows
    assert (own["wording"], own["kappa"], reworded["same"]) == ("rubric", 1.0, 4)
    assert not [text for text in found.result.limits if "otherwise than inspect" in text]


@pytest.mark.slow
def test_the_model_that_the_log_names_gives_its_answers_again(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    from local_judges.local.model_loading import find_model, plain_folder

    folder = plain_folder(find_model("smollm2-135m"))
    command = [sys.executable, "-c", REAL, str(tmp_path / "logs"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = (tmp_path / "logs").iterdir()
    log = read_graded(path)
    (tmp_path / "other.txt").write_text("Question: {question}\nSay GRADE: {criterion}")
    judgesense.check_log(
        path, str(folder), wordings=tmp_path / "other.txt", max_tokens=10, repeats=1,
        out=tmp_path / "out", note=str,
    )  # fmt: skip
    rows = [row for row in read_log(tmp_path / "out").to_pylist() if row["template_id"] == "rubric"]
    said = {row["item_id"]: row["raw_text"] for row in rows}
    texts = dict(zip((item.item_id for item in log.items), log.texts, strict=True))
    # A model of this size gives no grade, but the answers are the same to the letter.
    assert said == texts
    assert all(said.values())


@pytest.mark.slow
def test_inspects_own_prompt_comes_with_other_wordings(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    def only_first(messages: list[str]) -> list[str]:
        """Gives the log's grades under the log's wording, and I under the others."""
        return [
            said if "You are assessing" in text else "GRADE: I"
            for text, said in zip(messages, rule(messages), strict=True)
        ]

    found = judgesense.check_log(logs["qa"], only_first, out=tmp_path, repeats=1, note=str)
    same = {row["wording"]: row["same"] for row in found.result.table("stored").rows}
    assert same == {"rubric": 4, "grade-against": 1, "criterion-first": 1, "examiner": 1}
    assert found.jss == pytest.approx((3 + 3 * 0.25) / 6)
    # There is no file of wordings to correct.
    assert "qa.wordings.yaml" not in found.next_step


@pytest.mark.slow
def test_the_command_reads_a_log_and_asks_which_of_two_scorers(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "judgesense", "check", "--log", str(logs["two"])]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--pick: model_graded_qa, model_graded_fact" in done.stderr
    done = subprocess.run(
        [*program, "--pick", "model_graded_fact"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "mockllm/rule, which JudgeSense cannot ask; name another with --judge" in done.stderr


@pytest.mark.slow
def test_inspects_prompts_are_those_of_the_installed_inspect() -> None:
    model = pytest.importorskip("inspect_ai.scorer._model")
    assert own_wording("inspect-qa") == model.DEFAULT_MODEL_GRADED_QA_TEMPLATE
    assert own_wording("inspect-fact") == model.DEFAULT_MODEL_GRADED_FACT_TEMPLATE
    for partial in (False, True):
        asked = inspect_logs.default_instructions(partial)
        assert asked == model.default_instructions(partial)
    shown = {"question", "answer", "criterion", "instructions"}
    for name in ("inspect-qa", "inspect-fact"):
        assert {each.placeholders for each in known_wordings(name, ("C", "I"))} == {
            frozenset(shown)
        }


def inspect_log(folder: Path, told: list[tuple[str, str, str]], **header: Any) -> Path:
    """A log of grades, as (prompt, answer, grade)."""
    grader = str(header.get("model", "g")).rpartition("/")[2]
    samples = [
        {
            "id": n, "input": f"question {n}", "target": "", "output": {"completion": answer},
            "scores": {"graded": {"value": grade, "metadata": {"grading": [
                {"role": "user", "content": prompt}, {"content": grade, "model": grader}]}}},
        }
        for n, (prompt, answer, grade) in enumerate(told)
    ]  # fmt: skip
    content = {"version": 2, "eval": {"task": "t", "model": "openai/gpt-4o", **header}}
    path = folder / "log.json"
    path.write_text(json.dumps({**content, "samples": samples}))
    return path


def test_a_rubric_is_found_in_the_stored_prompts(tmp_path: Path) -> None:
    told = [("Good?\n\nText: a b c {x}", "a b c", "yes"), ("Good?\n\nText: G {x}", "G", "no"),
            ("Fine?\n\nText: d", "d", "no")]  # fmt: skip
    log = read_graded(inspect_log(tmp_path, told))
    assert (log.template.text, log.template.layout) == (
        "Good?", "{instruction}\n\nText: {answer} {literal_1}",
    )  # fmt: skip
    assert [render(log.task, log.template, item, "-").text for item in log.items] == [
        prompt for prompt, _, _ in told[:2]
    ]
    assert log.stored == ("yes", "no")
    assert log.notes == ("left out 1 of 3 grades, whose prompt has another wording",)


def test_wordings_of_a_prompt() -> None:
    assert split("\nIs it {a}?\n\nb") == ("\nIs it {a}?\n\nb", "{instruction}")
    assert quoted("{b} { }").rendered({}) == "{b} { }"
    assert derived([("x", {"answer": "long text"})]) is not None
    assert derived([]) is None


@pytest.mark.parametrize(
    ("header", "judge", "options"),
    [
        ({"model": "hf/org/model"}, "org/model", {}),
        ({"model": "vllm/org/model"}, "org/model", {"engine": "vllm"}),
        ({"model": "openai/g"}, "g", {"base_url": "https://api.openai.com/v1"}),
        ({"model": "google/g"}, "g", {"key_variable": "GEMINI_API_KEY"}),
        ({"model": "ollama/g"}, "g", {"base_url": "http://127.0.0.1:11434/v1"}),
        (
            {"model": "x/y", "model_roles": {"grader": {"model": "smollm2-135m"}}},
            "smollm2-135m",
            {},
        ),
    ],
)
def test_the_judge_is_the_one_that_the_log_names(
    header: dict[str, Any], judge: str, options: dict[str, Any], tmp_path: Path
) -> None:
    told = [("Good?\n\nText: abc", "abc", "C"), ("Good?\n\nText: def", "def", "I")]
    asked, found = judge_of(read_graded(inspect_log(tmp_path, told, **header)))
    assert asked == judge
    assert options.items() <= found.items()


def test_what_is_reworded_in_logs_of_promptfoo_and_deepeval() -> None:
    log = read_graded(DATA / "promptfoo_results.json", "reworded")
    # Both tests have a rubric of their own, so the frame is the wording.
    assert log.template.placeholders == {"output", "rubric"}
    assert log.stored == ("PASS", "FAIL")
    assert log.options["system_prompt"].startswith("You are grading output")
    log = read_graded(DATA / "deepeval_test_run.json", "Correctness [GEval]")
    assert (log.template.text, log.stored) == (
        "1. Is the output right?\n", ("PASS", "FAIL", "ERROR"),
    )  # fmt: skip


@pytest.mark.slow
def test_promptfoo_rubrics_and_deepeval_steps_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No sentence embeddings: loading them takes longer than all else here.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    content = json.loads((DATA / "promptfoo_results.json").read_text("utf-8"))

    def grader(messages: list[str]) -> list[str]:
        return [json.dumps({"reason": "r", "pass": "Paris" in m, "score": 0.9}) for m in messages]

    found = judgesense.check_log(
        DATA / "promptfoo_results.json", grader, pick="reworded", repeats=1, out=tmp_path / "a",
        note=str,
    )  # fmt: skip
    assert found.stored == {"n": 2, "same": 2, "share": 1.0}
    # With one rubric for all, the rubric itself is the wording.
    for result in content["results"]["results"]:
        for part in result["gradingResult"]["componentResults"]:
            if part["assertion"].get("metric") == "reworded":
                told = part["metadata"]["renderedGradingPrompt"]
                value = part["assertion"]["value"]
                part["assertion"]["value"] = 'Is {"right"}'
                part["metadata"]["renderedGradingPrompt"] = told.replace(value, r"Is {\"right\"}")
    (tmp_path / "same.json").write_text(json.dumps(content))
    log = read_graded(tmp_path / "same.json", "reworded")
    assert log.template.text == "Is {rubric_1}"
    assert "<Rubric>\nIs {\"right\"}\n</Rubric>" in render(
        log.task, log.template, log.items[0], "-"
    ).text  # fmt: skip

    def scores(messages: list[str]) -> list[str]:
        return [json.dumps({"reason": "r", "score": 8 if "Paris" in m else 4}) for m in messages]

    other = tmp_path / "steps.txt"
    other.write_text("1. Does the output answer the question rightly?")
    found = judgesense.check_log(
        DATA / "deepeval_test_run.json", scores, pick="Correctness [GEval]", wordings=other,
        repeats=1, out=tmp_path / "b", note=str,
    )  # fmt: skip
    assert found.stored == {"n": 2, "same": 2, "share": 1.0}
    assert found.result.table("stored").rows[0]["undecided"] == 1


def test_logs_that_cannot_be_asked_again(tmp_path: Path) -> None:
    told = [("Good?\n\nText: abc", "abc", "C"), ("Good?\n\nText: def", "def", "I")]
    path = inspect_log(tmp_path, told, model="none/none")
    content = json.loads(path.read_text())
    content["samples"][0]["scores"]["graded"]["metadata"]["grading"][1].pop("model")
    content["samples"][1]["scores"]["graded"]["metadata"]["grading"][1].pop("model")
    path.write_text(json.dumps(content))
    with pytest.raises(JudgeSenseError, match="does not name its judge; name the one"):
        judgesense.check_log(path)
    for sample in content["samples"]:
        sample["scores"], sample["output"] = {"match": {"value": "C"}}, {"completion": "x"}
    path.write_text(json.dumps(content))
    with pytest.raises(JudgeSenseError, match="no sample is graded by a model"):
        judgesense.check_log(path)
    run = json.loads((DATA / "deepeval_test_run.json").read_text("utf-8"))
    for case in run["testRunData"]["testCases"]:
        for metric in case["metricsData"]:
            metric.pop("verboseLogs")
    (tmp_path / "run.json").write_text(json.dumps(run))
    with pytest.raises(JudgeSenseError, match="no evaluation steps in verboseLogs"):
        judgesense.check_log(tmp_path / "run.json", pick="Correctness [GEval]")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(JudgeSenseError, match="not a log of Inspect"):
        judgesense.check_log(tmp_path / "other.json")


def test_a_whole_prompt_is_reworded_by_a_whole_prompt(tmp_path: Path) -> None:
    told = [("Is abc good?", "abc", "yes"), ("Is def good?", "def", "no")]
    (tmp_path / "other.txt").write_text("Is that good?")
    with pytest.raises(JudgeSenseError, match=r"'wording-1' shows nothing .* \{answer\}"):
        judgesense.check_log(
            inspect_log(tmp_path, told), rule, wordings=tmp_path / "other.txt", out=tmp_path / "o"
        )
