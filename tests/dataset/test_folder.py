from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judgesense.version import __version__
from judgesense_dataset.folder import (
    PAIR_ROWS,
    PROMPT_ROWS,
    configs,
    front_matter,
    read_config,
    write_verdicts,
)

ROOT = Path(__file__).parents[2]

LOADER = """
import json, sys
import datasets
folder, cache = sys.argv[1:]
seen = {"version": datasets.__version__}
for config in [None, *datasets.get_dataset_config_names(folder)]:
    rows = datasets.load_dataset(folder, config, split="test", cache_dir=cache)
    features = {name: str(value.dtype) for name, value in rows.features.items()}
    seen[str(config)] = {"rows": rows.num_rows, "features": features, "first": rows[0]}
print(json.dumps(seen))
"""


def loaded_by(folder: Path, cache: Path, **variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(folder), str(cache)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **variables},
    )
    assert done.returncode == 0, done.stderr
    assert "Ignoring part of dataset_info" not in done.stderr
    return dict(json.loads(done.stdout))


def check_loaded(seen: dict[str, Any], folder: Path) -> None:
    assert set(seen) == {"version", "None", *configs(folder)}
    assert seen["None"] == seen["all"]
    for config in configs(folder):
        schema = PROMPT_ROWS if config == "prompts" else PAIR_ROWS
        dtypes = {column.name: str(column.type).replace("double", "float64") for column in schema}
        assert seen[config]["features"] == dtypes
        table = read_config(folder, config)
        assert seen[config]["rows"] == table.num_rows
        assert seen[config]["first"] == table.slice(0, 1).to_pylist()[0]


@pytest.fixture(scope="session")
def datasets_4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with datasets 4, to be found before the one that is installed."""
    folder, requirement = tmp_path_factory.mktemp("datasets4"), "datasets>=4,<5"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--target", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip()[-200:]}")
    return folder


@pytest.mark.slow
def test_datasets_reads_every_config_with_all_columns_declared(
    four_tasks: Path, datasets_4: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(four_tasks, tmp_path / "validated")
    pairs = read_config(folder, "all")["pair_id"].to_pylist()
    write_verdicts(folder, {pair: {"valid": pair != pairs[0]} for pair in pairs})
    validated = loaded_by(folder, tmp_path / "installed")
    check_loaded(validated, folder)
    assert (validated["all"]["rows"], validated["rejected"]["rows"]) == (len(pairs) - 1, 1)
    seen = loaded_by(four_tasks, tmp_path / "4", PYTHONPATH=str(datasets_4))
    assert seen["version"].startswith("4.")
    check_loaded(seen, four_tasks)


def test_the_card_has_the_yaml_that_the_hub_needs(four_tasks: Path) -> None:
    header = front_matter(four_tasks / "README.md")
    names = [config["config_name"] for config in header["configs"]]
    assert names == ["all", "factuality", "coherence", "relevance", "preference", "prompts"]
    assert [config["config_name"] for config in header["configs"] if config.get("default")] == [
        "all"
    ]
    assert header["license"] == ["apache-2.0", "cc-by-4.0", "mit"]
    assert header["size_categories"] == ["n<1K"]
    assert "llm-as-a-judge" in header["tags"]
    infos = {info["config_name"]: info for info in header["dataset_info"]}
    for name in names:
        assert infos[name]["splits"][0]["num_examples"] == read_config(four_tasks, name).num_rows


def test_the_card_names_sources_revisions_papers_and_doubts(four_tasks: Path) -> None:
    text = (four_tasks / "README.md").read_text(encoding="utf-8")
    for row in read_config(four_tasks, "all", ["source_benchmark", "source_revision"]).to_pylist():
        assert row["source_benchmark"] in text
        assert row["source_revision"] in text
    for key in ("lin2022truthfulqa", "fabbri2021summeval", "thakur2021beir", "zheng2023judging"):
        assert f"{{{key}," in text
    assert "not proven irrelevant" in text
    assert __version__ in text


def test_rewritten_pairs_are_stated_in_the_card(own_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(own_folder, copy)
    note = json.dumps({"reader": "yes"})
    pairs = read_config(copy, "all")["pair_id"].to_pylist()
    write_verdicts(copy, {pair: {"valid": True, "validation": note} for pair in pairs})
    table = read_config(copy, "all")
    assert set(table["validation"].to_pylist()) == {note}
    assert table["pair_id"].equals(read_config(own_folder, "all")["pair_id"])
    before, after = (
        {info["config_name"]: info for info in front_matter(folder / "README.md")["dataset_info"]}
        for folder in (own_folder, copy)
    )
    assert after["factuality"]["dataset_size"] > before["factuality"]["dataset_size"]
    assert after["prompts"] == before["prompts"]
    assert [path.name for path in copy.rglob("*") if path.name.startswith(".")] == []
