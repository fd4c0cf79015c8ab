"""A run's scores as the Hub's evaluation results, without a Hub."""

from __future__ import annotations

import json

import pytest
import yaml
from rule_run import make_run

from hub_scripts.eval_results import eval_results_publication, eval_yaml
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.report import main_cells

hub = pytest.importorskip("huggingface_hub")

REVISION, COMMIT = "ab" * 20, "cd" * 20
RECORD = {
    "judges": [{"name": "rule@0001", "describe": {"weights": f"org/model@{REVISION}"}}],
    "dataset": {"name": "org/pairs", "revision": COMMIT},
    "finished": "2026-11-21T08:00:00+00:00",
}


def run_of(folder, *, record=RECORD, **settings):
    return make_run(folder / "run", record=record, **{"scoring": "options", **settings})


def test_a_score_is_entered_with_its_interval_and_the_commits_of_model_and_data(tmp_path):
    run_dir = run_of(tmp_path)
    publication = eval_results_publication(run_dir, "org/model", source="org/results")
    assert (publication.repo_id, publication.repo_type) == ("org/model", "model")
    assert publication.offered
    ((path, content),) = publication.files.items()
    assert path == ".eval_results/org_pairs.yaml"
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(content))
    report = json.loads((run_dir / "report.json").read_text("utf-8"))
    cell = main_cells(report)["by-rule", "rule@0001", "factuality", "options"]["mapped"]
    assert (entry.dataset_id, entry.task_id) == ("org/pairs", "factuality")
    assert entry.dataset_revision == COMMIT
    assert entry.value == pytest.approx(cell["jss"], abs=5e-5)
    assert f"[{cell['ci_low']:.3f}, {cell['ci_high']:.3f}] over 12 items" in entry.notes
    assert cell["signature"] in entry.notes
    assert entry.date == RECORD["finished"]
    assert "/datasets/org/results/tree/main/by-rule-" in entry.source_url


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judges": [{"name": "rule@0001", "describe": {"weights": "ab" * 32}}]}, "not from the"),
        (
            {"judges": [{"name": "rule@0001", "describe": {"weights": f"org/base@{REVISION}"}}]},
            r"rule@0001 \(org/base\)",
        ),
        ({"judges": []}, "not recorded"),
        (
            {"dataset": {"name": "embedded", "version": "1"}},
            "'embedded', which is not a dataset on",
        ),
        (
            {"dataset": {"name": "a/b", "revision": f"sha256:{'0' * 64}"}},
            "not a dataset on the Hub",
        ),
        ({"asked": {"settings": {"limit": 5}}}, "judge without --limit"),
        ({"asked": {"settings": {"orders": ["AB"]}}}, "judge without --orders"),
    ],
)
def test_what_is_not_the_models_score_on_the_dataset_is_not_entered(tmp_path, change, told):
    run_dir = run_of(tmp_path, record={**RECORD, **change})
    with pytest.raises(JudgeSenseError, match=told):
        eval_results_publication(run_dir, "org/model")


def test_only_option_scoring_is_entered(tmp_path):
    with pytest.raises(JudgeSenseError, match="judge with --scoring both"):
        eval_results_publication(run_of(tmp_path, scoring="generate"), "org/model")


def test_a_degenerate_score_is_not_entered(tmp_path):
    with pytest.raises(
        JudgeSenseError, match="no score of org/model to publish: factuality is left"
    ):
        eval_results_publication(run_of(tmp_path, always="YES"), "org/model")


def test_a_figure_that_the_decisions_do_not_give_is_not_entered(tmp_path):
    run_dir = run_of(tmp_path)
    report = json.loads((run_dir / "report.json").read_text("utf-8"))
    report["cells"][1]["jss"] = 1.0
    (run_dir / "report.json").write_text(json.dumps(report), "utf-8")
    with pytest.raises(JudgeSenseError, match="does not follow from its decisions"):
        eval_results_publication(run_dir, "org/model")


def test_a_benchmark_names_a_task_for_each_config():
    card = yaml.safe_load(eval_yaml("JudgeSense", ["coherence", "relevance"], "test"))
    assert set(card) == {"name", "description", "tasks"}
    assert card["name"] == "JudgeSense"
    assert card["tasks"] == [
        {"id": task, "config": task, "split": "test"} for task in ("coherence", "relevance")
    ]
