from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense_dataset.build import BuiltDataset, build_dataset
from judgesense_dataset.folder import read_config
from judgesense_dataset.sources.own import OwnData
from judgesense_dataset.templates import DATA

TASKS = ("factuality", "coherence", "relevance", "preference")


def rows_of(folder: Path, config: str = "all") -> list[dict[str, Any]]:
    return read_config(folder, config).to_pylist()


def build_own(out: Path, own_data: OwnData, **options: Any) -> BuiltDataset:
    given = {"own": own_data, "own_task": "factuality", "items": None, "verdicts": False, **options}
    return build_dataset(["own"], out, **given)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_all_four_tasks_have_125_distinct_items_and_125_distinct_pairs(four_tasks: Path) -> None:
    for task in TASKS:
        rows = rows_of(four_tasks, task)
        assert len(rows) == 125
        assert len({row["item_id"] for row in rows}) == 125
        assert len({row["pair_id"] for row in rows}) == 125
        assert len({(row["prompt_a"], row["prompt_b"]) for row in rows}) == 125


@pytest.mark.slow
def test_a_second_build_is_byte_identical(four_tasks: Path, mirror: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "judgesense", "dataset", "build", "--source", "all"]
    subprocess.run(
        [
            *command,
            "--mirror",
            str(mirror),
            "--limit",
            "125",
            "--no-verdicts",
            "--out",
            str(tmp_path / "again"),
        ],
        env=environment,
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[2],
    )
    assert contents(tmp_path / "again") == contents(four_tasks)


def test_with_all_items_a_number_of_pairs_is_a_limit(own_data: OwnData, tmp_path: Path) -> None:
    made = [
        build_own(tmp_path / str(n), own_data, pairs=n).tasks["factuality"]["pairs"]
        for n in (200, 20000)
    ]
    assert made == [200, 300]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"design": "latin"}, "'latin'.*balanced, full"),
        ({"orders": "CD"}, "counterbalanced, both, AB, BA"),
        ({"items": 5, "pairs": 51}, "51 pairs; 5 items .* 50"),
        ({"items": 0}, "items .*at least 1"),
        ({"items": 31}, "too few items: .* has 30"),
        ({"own_task": "novelty"}, "needs --task, one of factuality"),
        ({"design": "full", "pairs": 5}, "balanced design"),
    ],
)
def test_a_bad_request_says_what_there_is_and_writes_nothing(
    own_data: OwnData, tmp_path: Path, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(JudgeSenseError, match=reason):
        build_own(tmp_path / "out", own_data, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_build_that_fails_halfway_leaves_the_earlier_folder_as_it_was(
    mirror: Path, own_data: OwnData, own_folder: Path, tmp_path: Path
) -> None:
    # Ten template pairs for coherence, one for preference: the second task has too few pairs.
    templates = tmp_path / "templates.yaml"
    loaded = yaml.safe_load((DATA / "templates.yaml").read_text(encoding="utf-8"))
    tasks = {name: loaded["tasks"][name] for name in ("coherence", "preference")}
    tasks["preference"]["templates"] = tasks["preference"]["templates"][:2]
    templates.write_text(yaml.safe_dump({"tasks": tasks}), encoding="utf-8")
    out = tmp_path / "out"
    build_own(out, own_data)
    with pytest.raises(JudgeSenseError, match=r"task 'preference': .*30 pairs.* 10"):
        build_dataset(
            ["summeval", "mtbench"],
            out,
            mirror=mirror,
            templates=templates,
            items=10,
            pairs=30,
            verdicts=False,
        )
    assert contents(out) == contents(own_folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "templates.yaml"]


def test_a_folder_that_is_no_dataset_is_never_replaced(own_data: OwnData, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(JudgeSenseError, match="is not a dataset folder"):
        build_own(tmp_path, own_data)
    with pytest.raises(JudgeSenseError, match=r"cannot write to .*thesis\.txt"):
        build_own(tmp_path / "thesis.txt" / "set", own_data)
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


@pytest.mark.slow
def test_a_build_carries_the_verdicts_that_need_no_judge(
    own_data: OwnData, own_folder: Path, tmp_path: Path
) -> None:
    build_own(tmp_path / "judged", own_data, verdicts=True)
    rows, bare = rows_of(tmp_path / "judged"), rows_of(own_folder)
    for row in rows:
        assert row["valid"] is True
        said = json.loads(row["validation"])
        assert set(said) == {"polarity", "reading", "reading:counterexample", "surface"}
        assert said["polarity"]["inverted"] == (
            "factuality-4" in (row["template_a"], row["template_b"])
        )
        mean = (said["reading"]["score"] + said["surface"]["score"]) / 2
        assert row["semantic_equivalence_score"] == pytest.approx(mean, abs=1e-4)
    empty = {"valid": None, "validation": None, "semantic_equivalence_score": None}
    assert [{**row, **empty} for row in rows] == bare


# The command line.


def test_the_command_says_what_it_built(own_items: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        [
            "dataset",
            "build",
            "--source",
            "own",
            "--items",
            str(own_items),
            "--task",
            "factuality",
            "--columns",
            "item_id=key,question=q,response=a,gold=ok",
            "--gold-map",
            "true=YES,false=NO",
            "--no-verdicts",
            "--out",
            str(tmp_path / "d"),
        ],
    )
    assert result.exit_code == 0, result.output
    assert "factuality: 30 items, 150 prompts, 125 pairs" in result.output


def test_show_prints_both_prompts_whole(own_folder: Path) -> None:
    result = CliRunner().invoke(app, ["dataset", "show", str(own_folder), "--pairs", "1"])
    assert result.exit_code == 0, result.output
    row = rows_of(own_folder)[0]
    for column in ("pair_id", "prompt_a", "prompt_b", "template_a", "label_map_b"):
        assert row[column] in result.output
