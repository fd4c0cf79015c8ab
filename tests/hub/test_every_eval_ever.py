"""A run's scores as records of Every Eval Ever, by its own schema."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest
from rule_run import make_run

from hub_scripts.every_eval_ever import every_eval_ever
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.report import main_cells

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
MADE = Path(".venv-integrations/.ready")
RECORD = {
    "judges": [{
        "name": "rule@0001",
        "describe": {
            "engine": "transformers", "weights": f"org/model@{'ab' * 20}", "dtype": "float32",
            "versions": {"transformers": "5.0.0"}, "system_prompt": "Be brief.",
            "decoding": {"temperature": 0.0, "max_tokens": 20},
        },
    }],
    "dataset": {"name": "org/pairs", "revision": "cd" * 20},
    "finished": "2026-11-21T08:00:00+00:00", "data_hash": "0a1b2c3d",
    "versions": {"judgesense": "0.2.0"},
}  # fmt: skip


def exported(folder: Path, record: dict | None = None, **options: str) -> tuple[list[Path], Path]:
    run_dir = make_run(folder / "run", record={**RECORD, **(record or {})})
    return every_eval_ever(run_dir, folder / "data", organization="Me", **options), run_dir


def test_a_record_has_the_scores_and_their_intervals(tmp_path: Path) -> None:
    (path,), run_dir = exported(tmp_path)
    assert path.parent == tmp_path / "data/judgesense/org/model"
    record = json.loads(path.read_text("utf-8"))
    report = json.loads((run_dir / "report.json").read_text("utf-8"))
    cell = main_cells(report)["by-rule", "rule@0001", "factuality", "generate"]["mapped"]
    found = {each["metric_config"]["metric_id"]: each for each in record["evaluation_results"]}
    assert set(found) == {"judgesense.jss", "accuracy"}
    told = found["judgesense.jss"]["score_details"]
    assert told["score"] == cell["jss"]
    interval = told["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (cell["ci_low"], cell["ci_high"])
    assert found["accuracy"]["score_details"]["score"] == cell["accuracy"]
    source = found["accuracy"]["source_data"]
    assert (source["source_type"], source["hf_repo"]) == ("hf_dataset", "org/pairs")
    assert found["accuracy"]["generation_config"]["generation_args"] == {
        "temperature": 0.0, "max_tokens": 20,
    }  # fmt: skip
    assert record["evaluation_id"] == "judgesense/org/model/1795248000"


def test_a_model_without_a_hub_id_takes_the_developer(tmp_path: Path) -> None:
    own = {"name": "mine@1", "describe": {"engine": "api", "model": "/home/ann/mine"}}
    judges = {"judges": [{**own, "name": "rule@0001"}], "dataset": {"name": "/home/ann/set"}}
    (path,), run_dir = exported(tmp_path, judges, developer="acme")
    assert path.parent == tmp_path / "data/judgesense/acme/mine"
    assert "/home" not in path.read_text("utf-8")
    # The same run gives the same file.
    (again,) = every_eval_ever(run_dir, tmp_path / "b/data", organization="Me", developer="acme")
    assert again.name == path.name
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("record", "options", "named"),
    [
        ({"finished": None}, {}, "not finished"),
        ({}, {"developer": "a/b"}, "'a/b'"),
        ({}, {"developer": ".."}, r"'\.\.'"),
        ({"judges": [{"name": "other@1"}]}, {}, "no score of other@1"),
    ],
)
def test_what_cannot_be_exported_is_named(
    tmp_path: Path, record: dict, options: dict[str, str], named: str
) -> None:
    with pytest.raises(JudgeSenseError, match=named):
        exported(tmp_path, record, **options)
    with pytest.raises(JudgeSenseError, match="folder is named data"):
        every_eval_ever(tmp_path / "run", tmp_path / "out", organization="Me")


def test_records_fit_the_schema(tmp_path: Path) -> None:
    made = subprocess.run(
        ["make", "--silent", str(MADE), f"PYTHON={sys.executable}"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (wheel,) = (ROOT / MADE.parent).glob("every_eval_ever-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        schema = json.loads(archive.read("every_eval_ever/schemas/eval.schema.json"))
    for n, change in enumerate((
        {}, {"dataset": {"name": "embedded"}, "judges": [{"name": "rule@0001"}]},
    )):  # fmt: skip
        (path,), _ = exported(tmp_path / str(n), change)
        record = json.loads(path.read_text("utf-8"))
        assert record["schema_version"] == schema["version"]
        jsonschema.validate(record, schema)
        del record["model_info"]["id"]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(record, schema)
