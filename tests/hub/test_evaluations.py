"""The files by which the Hub knows a benchmark, and a judge's results on it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rule_run import make_judge

import judgesense
from hub_scripts.evaluations import eval_file, result_files
from hub_scripts.publications import dataset_publication
from judgesense.log.schema import read_log
from judgesense.measure.report_file import load_report
from judgesense_dataset.build import build_dataset
from judgesense_dataset.folder import read_config
from judgesense_dataset.sources.own import OwnData


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"question": f"What is {n} plus {n}?", "response": f"It is {2 * n + n % 2}.", "gold": gold}
        for n, gold in enumerate(["YES", "NO"] * 15)
    ]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    own = OwnData(path=source, license="cc0-1.0")
    out = tmp_path / "pairs"
    build_dataset(["own"], out, own=own, own_task="factuality", items=None, verdicts=False)
    return out


def test_inspect_runs_the_tasks_of_a_published_dataset(folder: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai._eval.loader import scorer_from_spec, solver_from_spec
    from inspect_ai._eval.task.hf import HFTask, _record_to_sample_hf
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.scorer._scorer import ScorerSpec
    from inspect_ai.solver import TaskState
    from inspect_ai.solver._solver import SolverSpec

    content = dataset_publication(folder, "org/pairs").files["eval.yaml"]
    assert isinstance(content, bytes)
    declared = yaml.safe_load(content)
    assert {*declared} == {"name", "description", "evaluation_framework", "tasks"}
    assert (declared["name"], declared["evaluation_framework"]) == ("pairs", "inspect-ai")
    (task,) = (HFTask.model_validate(each) for each in declared["tasks"])
    rows = read_config(folder, str(task.id)).to_pylist()
    for one in task.solvers:
        solver_from_spec(SolverSpec(solver=one.name, args=one.args, args_passed=one.args))
    (how,) = task.scorers
    score = scorer_from_spec(ScorerSpec(scorer=how.name), task_path=None, **how.args)
    found = []
    for row in rows[:2]:
        sample = _record_to_sample_hf(row, task.field_spec)
        assert sample.input == row["prompt_a"]
        for reply in (f"{row['expected_a'].lower()}.", "I cannot say."):
            state = TaskState(
                "m", "s", 1, sample.input, [], output=ModelOutput.from_content("m", reply)
            )
            found.append(asyncio.run(score(state, Target(sample.target))).value)
    assert found == ["C", "I", "C", "I"]


def test_a_task_without_gold_labels_is_not_declared(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "factuality" / "test.parquet"
    rows = pq.read_table(path)
    at = rows.schema.get_field_index("expected_a")
    pq.write_table(rows.set_column(at, "expected_a", pa.nulls(len(rows), pa.string())), path)
    assert eval_file(folder, "org/pairs") is None


def test_results_are_of_models_of_the_hub_on_datasets_of_the_hub(tmp_path: Path) -> None:
    tasks = ["factuality", "relevance"]
    judgesense.run(make_judge("wavering-1.5b"), tasks=tasks, limit=12, out=tmp_path, note=len)
    report = load_report(tmp_path)

    def of(data: dict[str, str], origin: str) -> dict[str, bytes]:
        record = {
            "asked": {"data": data},
            "judges": [{"name": report.assessments[0].judge, "describe": {"origin": origin}}],
            "dataset": {"revision": "f" * 40},
            "finished": "2026-11-22T14:45:46+00:00",
        }
        return result_files(replace(report, runs=(record,)), "org/results", "by-rule-1")

    assert of({"dataset": "embedded"}, "Hub org/model") == {}
    assert of({"dataset": "pairs", "sha256": "ab"}, "Hub org/model") == {}
    assert of({"dataset": "org/pairs"}, "~/models/mine") == {}
    ((path, content),) = of({"dataset": "org/pairs"}, "Hub org/model").items()
    assert path == ".eval_results/org--model.yaml"
    assert b"&" not in content  # no anchors, which few readers expect
    entry, other = yaml.safe_load(content)
    assert other["dataset"]["task_id"] == "relevance"
    rows = [row for row in read_log(tmp_path).to_pylist() if row["repeat"] == 0]
    rows = [row for row in rows if row["task"] == "factuality"]
    right = sum(row["decision"] == row["gold"] for row in rows) / len(rows)
    assert 0 < right < 1
    (jss,) = (one.mapped.jss for one in report.assessments if one.task == "factuality")
    assert f"(JSS) {jss:.3f} [" in entry.pop("notes")
    assert entry == {
        "dataset": {"id": "org/pairs", "revision": "f" * 40, "task_id": "factuality"},
        "value": round(right, 4),
        "date": "2026-11-22",
        "source": {
            "url": "https://huggingface.co/datasets/org/results/tree/main/by-rule-1",
            "name": "JudgeSense run",
        },
    }
