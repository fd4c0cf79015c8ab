from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from judgesense.errors import JudgeSenseError
from judgesense.tasks import prompt_id
from judgesense_dataset.folder import configs, read_config, write_verdicts
from judgesense_dataset.load import load_benchmark, load_pairs, locate


def test_a_folder_gives_the_grid_to_judge_and_the_pairs_to_measure(four_tasks: Path) -> None:
    benchmark = load_benchmark(four_tasks)
    assert list(benchmark.tasks) == ["factuality", "coherence", "relevance", "preference"]
    assert benchmark.prompts.num_rows == 3750
    assert benchmark.pairs.num_rows == 500
    assert benchmark.tasks["coherence"].ordinal
    assert benchmark.tasks["relevance"].comparative
    ids = benchmark.prompts["prompt_id"].to_pylist()
    assert ids == [prompt_id(text) for text in benchmark.prompts["text"].to_pylist()]


def pair_ids(folder: Path) -> list[str]:
    return list(load_pairs(folder)["pair_id"].to_pylist())


def test_the_source_of_a_folder_changes_with_its_content(own_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(own_folder, copy)
    before = locate(copy).revision
    assert before == locate(own_folder).revision

    write_verdicts(copy, {pair: {"valid": True} for pair in pair_ids(copy)})
    assert locate(copy).revision != before


def test_pairs_found_not_equivalent_have_a_config_of_their_own(
    own_folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(own_folder, copy)
    pairs = pair_ids(copy)
    bad = set(pairs[:6])
    write_verdicts(copy, {pair: {"valid": pair not in bad} for pair in pairs})
    assert read_config(copy, "all")["pair_id"].to_pylist() == pairs[6:]
    assert set(read_config(copy, "rejected")["pair_id"].to_pylist()) == bad
    assert set(pair_ids(copy)) == set(pairs)
    every, valid = load_benchmark(copy, only_valid=False), load_benchmark(copy)
    assert every.source["pairs_not_valid"] == "6 (kept)"
    assert every.pairs.num_rows == len(pairs)
    assert valid.source["pairs_not_valid"] == "6 (left out)"
    assert valid.pairs["pair_id"].to_pylist() == pairs[6:]
    assert valid.prompts == every.prompts == load_benchmark(own_folder).prompts
    # Found equivalent after all, they come back.
    write_verdicts(copy, {pair: {"valid": True} for pair in pairs})
    assert set(read_config(copy, "all")["pair_id"].to_pylist()) == set(pairs)
    assert "rejected" not in configs(copy)


# The earlier benchmark's rows.


def jsonl(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def own_row(**changes: Any) -> dict[str, Any]:
    """A pair of wordings of one's own, with all that the wording does not show."""
    label_map = '{"GOOD":"GOOD","BAD":"BAD"}'
    return {
        "pair_id": "p1",
        "task_type": "tone",
        "item_id": "i1",
        "prompt_a": "Tone? Hi.",
        "prompt_b": "Is the tone good? Hi.",
        "template_a": "t1",
        "template_b": "t2",
        "label_map_a": label_map,
        "label_map_b": label_map,
        "ground_truth_label": "GOOD",
        **changes,
    }


def test_rows_of_ones_own_task_need_no_known_wording(tmp_path: Path) -> None:
    benchmark = load_benchmark(jsonl(tmp_path, "tone", [own_row()]))
    assert benchmark.tasks["tone"].labels == ("GOOD", "BAD")
    assert benchmark.prompts["gold"].to_pylist() == ["GOOD", "GOOD"]
    assert benchmark.pairs["order"].to_pylist() == ["-"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([own_row(), own_row()], "row 2 .*column pair_id: is already the id"),
        ([own_row(), own_row(pair_id="p2", prompt_b=" ")], "line 2, column prompt_b: "),
        ([own_row(prompt_a="half \ud800")], "line 1: .*surrogate"),
        ([own_row(ground_truth_label="FINE")], "column ground_truth_label: .*'FINE'"),
        ([own_row(), own_row(pair_id="p2", label_map_b=None)], "row 2 .*label_map_b: is empty"),
        ([own_row(order="AC")], "column order: .*'AC'"),
        ([own_row(label_map_a=None, label_map_b=None)], "add the columns template_a"),
        ([{"pair_id": "p1", "prompt_a": "Tone?"}], "line 1, column prompt_b: "),
    ],
)
def test_a_bad_row_is_named_by_file_row_and_column(
    tmp_path: Path, rows: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(JudgeSenseError, match=f"{tmp_path}.*{reason}"):
        load_benchmark(jsonl(tmp_path, "tone", rows))


# What is not there.


@pytest.mark.parametrize("name", ["nowhere", "some/nowhere", "a/b/c"])
def test_an_unknown_dataset_lists_what_was_tried(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGESENSE_MIRROR", raising=False)
    with pytest.raises(JudgeSenseError, match=rf"'{name}'; tried the folder {name} "):
        load_benchmark(name)


def test_a_hub_id_is_looked_for_in_the_mirror_first(
    own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(own_folder, tmp_path / "org" / "claims")
    monkeypatch.setenv("JUDGESENSE_MIRROR", str(tmp_path))
    assert load_benchmark("org/claims").data_hash == load_benchmark(own_folder).data_hash


def test_a_folder_without_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match=r"neither a README\.md .* nor <task>\.jsonl"):
        load_benchmark(tmp_path)


def test_a_file_that_is_missing_or_damaged_is_named(own_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(own_folder, copy)
    path = configs(copy)["factuality"][0]
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(JudgeSenseError, match=r"factuality/test\.parquet cannot be read"):
        load_benchmark(copy)
    path.unlink()
    with pytest.raises(JudgeSenseError, match=r"names factuality/test\.parquet"):
        load_benchmark(copy)


def test_parquet_with_the_published_columns_alone_is_completed(
    published: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (published / "factuality.jsonl").read_text().splitlines()]
    (tmp_path / "factuality").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "factuality" / "test.parquet")
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: factuality\n  data_files: factuality/test.parquet\n---\n"
    )
    benchmark = load_benchmark(tmp_path)
    from_jsonl = load_benchmark(published)
    wanted = from_jsonl.pairs.filter(pc.equal(from_jsonl.pairs["task"], "factuality"))
    assert benchmark.pairs.equals(wanted)
