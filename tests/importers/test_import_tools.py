"""Inspect's, promptfoo's and DeepEval's logs: the grader's verdicts are the decisions."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log
from judgesense.log.schema import read_log

DATA = Path(__file__).parent / "data"

INSPECT = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice, includes, match, model_graded_fact, model_graded_qa
from inspect_ai.solver import generate, multiple_choice

def mock(name, texts, stops=()):
    outputs = [ModelOutput.from_content("mockllm/" + name, text) for text in texts]
    for output, stop in zip(outputs, stops):
        output.choices[0].stop_reason = stop
    for output in outputs:
        output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    return get_model("mockllm/" + name, custom_outputs=outputs, memoize=False)

grades = ["GRADE: C", "Not so.\\n\\nGRADE: I", "Long. " * 99 + "GRADE: I", "I cannot say.",
          "GRADE: P", "GRADE: Correct", "grade: c", "**GRADE: I**"]
same = ["answer " + "x" * 300] * 8
other = [f"answer {n} " + "x" * 300 for n in range(8)]

def run(name, form, scorer, answers, model="model", epochs=1):
    samples = [Sample(id=f"q{i}", input=f"Which? {i} " + "y" * 300, target=f"answer {i}",
                      metadata={"label": "CICI"[i]}) for i in range(4)]
    log = eval(Task(name=name, dataset=samples, solver=generate(), scorer=scorer),
               model=mock(model, answers), log_dir=f"{sys.argv[1]}/{name}", log_format=form,
               display="none", epochs=epochs, max_samples=1)[0]
    return [[s.id, s.epoch, {k: v.value for k, v in s.scores.items()}] for s in log.samples]

def grader(name, texts=grades):
    return model_graded_qa(model=mock(name, texts))

found = {
    "qa": run("qa", "eval", [grader("grader"), includes()], other),
    "epochs": run("epochs", "eval", grader("grader"), same, epochs=2),
    "others": run("others", "eval", grader("grader"), other, epochs=2),
    "panel": run("panel", "json", model_graded_fact(
        model=[mock("g1", grades), mock("g2", grades[::-1]), mock("g3", grades)],
        partial_credit=True), other),
    "two": run("two", "eval", grader("grader"), other, "one")
    + run("two", "eval", grader("grader", grades[::-1]), other[::-1], "two"),
    "own": run("own", "eval", model_graded_qa(),
               [text for pair in zip(other, grades) for text in pair][:8]),
}
def plain(task, model, form, epochs=1):
    eval(task, model=model, log_dir=f"{sys.argv[1]}/{task.name}", log_format=form, display="none",
         epochs=epochs, fail_on_error=False, max_samples=1)

pairs = [Sample(id=f"s{i}", input=f"Which? {i}", choices=["first", "second"], target="AB"[i % 2],
                metadata={"order": ["AB", "BA"][i // 2], "item": i % 2}) for i in range(4)]
plain(Task(name="preference", dataset=pairs, solver=multiple_choice(), scorer=choice()),
      mock("model", [f"ANSWER: {x}" for x in "ABAA"]), "eval")
claims = [Sample(id=i, input=f"Claim {i}?", target=["YES", "Yes"]) for i in range(4)]
# The model runs out of answers before the last sample, which fails.
plain(Task(name="factuality", dataset=claims, solver=generate(), scorer=match()),
      mock("model", ["YES", "no", "hm", "YES", "NO", "I refuse", "YES"],
           ["stop"] * 4 + ["max_tokens", "content_filter", "stop"]), "json", epochs=2)
convert_eval_logs_to_chunked(sys.argv[1] + "/qa", sys.argv[1] + "/chunked")
print(json.dumps(found))
"""


Rows = list[dict[str, Any]]
Inspected = Callable[..., Rows]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Logs that Inspect wrote with its mock model, and the grades that Inspect reports."""
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("inspect")
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture
def inspected(logs: tuple[Path, dict[str, Any]], tmp_path: Path) -> Inspected:
    """The rows of one of those logs."""
    outs = (tmp_path / f"out-{n}" for n in itertools.count())
    return lambda name, **more: rows_of(logs[0] / name, "inspect", next(outs), **more)


@pytest.fixture
def grades(logs: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return logs[1]


def reported(
    grades: list[Any], scorer: str = "model_graded_qa", unread: str = "ERROR"
) -> list[str]:
    """Inspect's own values; it writes NaN where it found no grade."""
    values = [scores[scorer] for _, _, scores in grades]
    return [unread if value != value else value for value in values]


def rows_of(source: Path, format: str, out: Path, **more: Any) -> Rows:
    import_log(source, format, out, **more)
    return read_log(out).to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qa", "chunked", "epochs", "others", "own"])
def test_the_decisions_are_the_grades_that_inspect_reports(
    name: str, inspected: Inspected, grades: dict[str, Any]
) -> None:
    rows = inspected(name)
    known = grades["qa" if name == "chunked" else name]
    # The archive lists samples by name, Inspect by epoch.
    known = sorted(known, key=lambda sample: (sample[0], sample[1]))
    assert [row["decision"] for row in rows] == reported(known)
    assert "ERROR" in reported(known)
    assert {row["judge"] for row in rows} == {f"mockllm/{'model' if name == 'own' else 'grader'}"}
    assert {row["system_id"] for row in rows} == {"mockllm/model"}
    assert rows[0]["raw_text"] == "GRADE: C"
    assert {row["gold"] for row in rows} == {None}


@pytest.mark.slow
def test_inspects_grades_are_checked_beside_labels_in_the_metadata(
    logs: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    (source,) = (logs[0] / "qa").glob("*.eval")
    report = judgesense.check(source, out=tmp_path / "out", note=str).report
    (found,) = report.people
    grades = [scores["model_graded_qa"] for _, _, scores in sorted(logs[1]["qa"])]
    graded = zip(grades, "CICI", strict=True)
    counts = Counter((grade, label) for grade, label in graded if grade == grade)
    assert found["human"] == "metadata.label"
    assert {
        (v, x): n for v, row in found["confusion"].items() for x, n in row.items() if n
    } == counts


@pytest.mark.slow
def test_an_epoch_is_a_repeat_only_if_the_judged_answer_is_the_same(inspected: Inspected) -> None:
    same, others = inspected("epochs"), inspected("others")
    assert [(row["item_id"], row["repeat"]) for row in same[:4]] == [
        ("q0", 0),
        ("q0", 1),
        ("q1", 0),
        ("q1", 1),
    ]
    assert same[0]["prompt_id"] == same[1]["prompt_id"]
    assert [(r["item_id"], r["repeat"], r["cluster_id"]) for r in others[:3]] == [
        ("q0", 0, "q0"),
        ("q0/2", 0, "q0"),
        ("q1", 0, "q1"),
    ]
    assert others[0]["prompt_id"] != others[1]["prompt_id"]


@pytest.mark.slow
def test_a_panel_is_a_judge_and_so_is_each_of_its_members(
    inspected: Inspected, grades: dict[str, Any]
) -> None:
    rows = inspected("panel")
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(row["judge"], []).append(row["decision"])
    panel = "mockllm/g1 + mockllm/g2 + mockllm/g3"
    assert said[panel] == reported(grades["panel"], "model_graded_fact", "UNCLEAR")
    assert said["mockllm/g1"] == ["C", "I", "I", "UNCLEAR"]
    assert said["mockllm/g2"] == ["I", "C", "C", "P"]
    assert len(rows) == 16


@pytest.mark.slow
def test_a_picked_scorer_that_is_no_model_reads_the_evaluated_model(inspected: Inspected) -> None:
    rows = inspected("qa", pick="includes", labels=["a", "b"], columns={"gold": ":a"})
    assert {row["judge"] for row in rows} == {"mockllm/model"}
    with pytest.raises(JudgeSenseError, match="'x'; choose one of model_graded_qa, includes"):
        inspected("qa", pick="x")


@pytest.mark.slow
def test_an_inspect_eval_log_arrives_with_orders_and_targets(inspected: Inspected) -> None:
    rows = inspected("preference", columns={"item_id": "metadata.item"})
    assert [(r["item_id"], r["order"], r["gold"]) for r in rows] == [
        ("0", "AB", "A"),
        ("1", "AB", "B"),
        ("0", "BA", "A"),
        ("1", "BA", "B"),
    ]
    assert sorted(row["decision"] for row in rows) == ["A", "A", "A", "B"]
    assert {(row["input_tokens"], row["output_tokens"]) for row in rows} == {(7, 3)}
    assert {row["judge"] for row in rows} == {"mockllm/model"}


@pytest.mark.slow
def test_inspects_epochs_stops_and_failed_samples_are_kept(inspected: Inspected) -> None:
    rows = inspected("factuality", labels=["YES", "NO"], parse=parse)
    assert Counter(row["status"] for row in rows) == {
        "ok": 5,
        "unclear": 1,
        "refused": 1,
        "error": 1,
    }
    assert {row["repeat"] for row in rows} == {0, 1}
    assert sorted(row["raw_text"] or "" for row in rows if row["status"] == "ok") == [
        "NO",
        "YES",
        "YES",
        "YES",
        "no",
    ]
    assert [row["raw_text"] for row in rows if row["truncated"]] == ["NO"]
    (failed,) = [row for row in rows if row["status"] == "error"]
    assert "ran out of values" in failed["error"]


def graded(value: Any, text: str = "GRADE: C", **more: Any) -> dict[str, Any]:
    grading = [{"role": "user", "content": "Is it right?"}, {"content": text, "model": "g"}]
    return {"value": value, "answer": "Paris", "metadata": {"grading": grading}, **more}


def inspect_log(folder: Path, *scores: dict[str, Any] | None, **more: Any) -> Path:
    samples = [
        {"id": n, "epoch": 1, "target": "Paris", "scores": None if s is None else {"mine": s}}
        for n, s in enumerate(scores)
    ]
    header = {"model": "evaluated", "task": "t", "scorers": [{"name": "mine"}], **more}
    path = folder / "log.json"
    path.write_text(json.dumps({"eval": header, "samples": samples}), "utf-8")
    return path


def test_an_edited_score_keeps_the_graders_verdict_beside_the_persons(tmp_path: Path) -> None:
    edits = [{"value": "I"}, {"value": "C", "provenance": {"author": "ana"}}]
    source = inspect_log(tmp_path, graded("C", "GRADE: I", history=edits), graded("I", "GRADE: I"))
    rows = rows_of(source, "inspect", tmp_path / "out", labels=["C", "I"])
    assert [(row["decision"], row["gold"]) for row in rows] == [("I", "C"), ("I", None)]


def test_a_sample_that_failed_before_grading_is_an_error_of_the_grader(tmp_path: Path) -> None:
    source = inspect_log(
        tmp_path,
        graded("C"),
        None,
        graded("I"),
        model_roles={"grader": {"model": "the-grader"}},
    )
    rows = rows_of(source, "inspect", tmp_path / "out")
    assert [(row["judge"], row["status"]) for row in rows] == [
        ("the-grader", "ok"),
        ("the-grader", "error"),
        ("the-grader", "ok"),
    ]


def test_texts_that_inspect_keeps_apart_are_put_back(tmp_path: Path) -> None:
    sample = {"id": "q", "epoch": 1, "scores": {"mine": graded("C", "attachment://1")}}
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "task": "t"}}))
        archive.writestr("samples/q_epoch_1/sample.json", json.dumps(sample))
        archive.writestr("samples/q_epoch_1/metadata.json", '{"cluster_id": 7}')
        archive.writestr("samples/q_epoch_1/attachments/0.json", '["no"]')
        archive.writestr("samples/q_epoch_1/attachments/1.json", '["It is. GRADE: C"]')
    (row,) = rows_of(tmp_path / "log.eval", "inspect", tmp_path / "out", labels=["C", "I"])
    assert (row["raw_text"], row["cluster_id"]) == ("It is. GRADE: C", "7")


def test_promptfoos_model_graded_assertions_are_verdicts_of_its_grader(tmp_path: Path) -> None:
    rows = rows_of(DATA / "promptfoo_results.json", "promptfoo", tmp_path / "out")
    assert [(r["item_id"], r["task"], r["decision"]) for r in rows] == [
        ("france", "llm-rubric", "PASS"),
        ("france", "reworded", "PASS"),
        ("sum", "llm-rubric", "FAIL"),
        ("sum", "reworded", "FAIL"),
        ("italy", "llm-rubric", "ERROR"),
        ("germany", "llm-rubric", "ERROR"),
        ("spain", "factuality", "PASS"),
        # promptfoo failed this one: the grader said pass, and the assertion wanted the opposite.
        ("spain", "not-llm-rubric", "PASS"),
    ]
    assert {row["judge"] for row in rows} == {"file://promptfoo_grader.cjs"}
    assert rows[0]["raw_text"] == "It names the right answer."
    assert rows[0]["input_tokens"] == 8
    assert len({row["prompt_id"] for row in rows}) == 8
    assert rows[5]["error"] == "the stand-in judge is down"


def test_metrics_of_promptfoo_that_are_joined_are_wordings(tmp_path: Path) -> None:
    source, columns = DATA / "promptfoo_results.json", {"task": ":correct"}
    rows = rows_of(source, "promptfoo", tmp_path / "out", columns=columns)
    assert Counter(row["status"] for row in rows) == {"ok": 6, "error": 2}
    assert {row["template_id"] for row in rows if row["item_id"] == "france"} == {
        "llm-rubric",
        "reworded",
    }


def test_outputs_that_differ_are_items_of_one_test(tmp_path: Path) -> None:
    file = json.loads((DATA / "promptfoo_results.json").read_text("utf-8"))
    (first, *_) = file["results"]["results"]
    again = json.loads(json.dumps(first))
    other = json.loads(json.dumps(first))
    other["provider"] = {"id": "openai:gpt-x"}
    failed = {**other, "gradingResult": None, "error": "no key", "provider": {"id": "openai:y"}}
    file["results"]["results"] = [first, again, other, failed]
    source = tmp_path / "results.json"
    source.write_text(json.dumps(file), "utf-8")
    rows = rows_of(source, "promptfoo", tmp_path / "out")
    assert [(r["item_id"], r["repeat"], r["system_id"]) for r in rows[::2]] == [
        ("france", 0, "echo"),
        ("france", 1, "echo"),
        ("france/2", 0, "openai:gpt-x"),
        ("france/3", 0, "openai:y"),
    ]
    assert {row["cluster_id"] for row in rows} == {"france"}
    assert rows[-1]["error"] == "no key"


def test_deepevals_metrics_are_verdicts_of_its_evaluation_model(tmp_path: Path) -> None:
    rows = rows_of(DATA / "deepeval_test_run.json", "deepeval", tmp_path / "out")
    assert [(r["item_id"], r["task"], r["decision"]) for r in rows] == [
        (test, metric, decision)
        for test, decision in (("france", "PASS"), ("sum", "FAIL"), ("germany", "ERROR"))
        for metric in ("Correctness [GEval]", "Correctness, reworded [GEval]")
    ]
    assert {row["judge"] for row in rows} == {"mock-judge"}
    assert rows[2]["raw_text"] == "It is wrong."
    assert rows[4]["error"] == "RuntimeError: the stand-in judge is down"


def test_deepevals_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / ".deepeval").mkdir()
    text = (DATA / "deepeval_test_run.json").read_text("utf-8")
    (tmp_path / ".deepeval/.latest_test_run.json").write_text(text, "utf-8")
    assert import_log(tmp_path, "deepeval", tmp_path / "out")["parts"] == {"part-00000.parquet": 6}
