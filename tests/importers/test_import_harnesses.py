"""Logs that lm-eval itself wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judgesense.answers import parse
from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log

LM_EVAL_TASKS = {
    "judge_mc_one": """
task: judge_mc_one
output_type: multiple_choice
doc_to_text: "Is this right?\\nClaim: {{claim}}\\nAnswer:"
doc_to_choice: ["YES", "NO"]
doc_to_target: gold
metric_list: [{metric: acc}]
""",
    "judge_mc_two": """
task: judge_mc_two
output_type: multiple_choice
doc_to_text: "Claim: {{claim}}\\nTrue? Answer:"
doc_to_choice: ["YES", "NO"]
doc_to_target: gold
metric_list: [{metric: acc}]
""",
    "judge_rating": """
task: judge_rating
output_type: multiple_choice
doc_to_text: "Rate: {{claim}}"
doc_to_choice: ["1", "2", "3", "4", "5"]
doc_to_target: "{{rating}}"
metric_list: [{metric: acc}]
""",
    "judge_text": """
task: judge_text
output_type: generate_until
doc_to_text: "YES or NO? {{claim}}"
doc_to_target: "{{['YES', 'NO'][gold]}}"
generation_kwargs: {until: ["\\n"]}
filter_list:
  - {name: strict, filter: [{function: regex, regex_pattern: "(YES|NO)"}, {function: take_first}]}
  - {name: whole, filter: [{function: take_first}]}
metric_list: [{metric: exact_match}]
""",
}
DATA = """test_split: test
dataset_path: json
dataset_kwargs: {data_files: {test: "%s"}}
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``lm_eval --log_samples`` leaves, with its own dummy model."""
    pytest.importorskip("lm_eval")
    folder = tmp_path_factory.mktemp("lm_eval")
    rows = [{"claim": f"{n} is even", "gold": n % 2, "rating": n + 1} for n in range(5)]
    data = folder / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (folder / "tasks").mkdir()
    for name, text in LM_EVAL_TASKS.items():
        (folder / "tasks" / f"{name}.yaml").write_text(text + DATA % data, "utf-8")
    command = [
        sys.executable, "-m", "lm_eval", "--model", "dummy", "--tasks", ",".join(LM_EVAL_TASKS),
        "--include_path", str(folder / "tasks"), "--log_samples",
        "--output_path", str(folder / "out"),
    ]  # fmt: skip
    cache = {"HF_DATASETS_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **cache})
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "out"


def sample_file(folder: Path, task: str) -> Path:
    (found,) = folder.rglob(f"samples_{task}_*.jsonl")
    return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_lm_evals_choices_arrive_with_its_own_accuracy(samples: Path, tmp_path: Path) -> None:
    source = sample_file(samples, "judge_mc_one")
    import_log(source, "lm-eval", tmp_path / "out")
    rows = read_log(tmp_path / "out").to_pylist()
    assert [row["gold"] for row in rows] == ["YES", "NO", "YES", "NO", "YES"]
    assert [float(row["decision"] == row["gold"]) for row in rows] == [
        sample["acc"] for sample in lines_of(source)
    ]
    assert {row["scoring"] for row in rows} == {"options"}
    assert all(0 < row["option_mass"] <= 1 and row["margin"] >= 0 for row in rows)


@pytest.mark.slow
def test_two_lm_eval_tasks_are_two_templates_of_one_judgement(
    samples: Path, tmp_path: Path
) -> None:
    both = tmp_path / "both"
    both.mkdir()
    for task in ("judge_mc_one", "judge_mc_two"):
        source = sample_file(samples, task)
        (both / source.name).write_bytes(source.read_bytes())
    record = import_log(
        both, "lm-eval", tmp_path / "out", columns={"task": ":factuality", "item_id": "doc.claim"}
    )
    assert record["tasks"]["factuality"]["labels"] == ["YES", "NO"]
    rows = read_log(tmp_path / "out").to_pylist()
    assert {row["template_id"] for row in rows} == {"judge_mc_one", "judge_mc_two"}
    assert {row["item_id"] for row in rows} == {f"{n} is even" for n in range(5)}
    assert len({row["prompt_id"] for row in rows}) == 10


@pytest.mark.slow
def test_a_target_that_is_a_digit_is_told_apart_from_an_index_by_lm_evals_accuracy(
    samples: Path, tmp_path: Path
) -> None:
    source = sample_file(samples, "judge_rating")
    import_log(source, "lm-eval", tmp_path / "out")
    rows = read_log(tmp_path / "out").to_pylist()
    known = [row["gold"] for row in rows]
    # lm-eval's dummy model draws at random: its accuracy may leave both readings open.
    assert known in ([str(n + 1) for n in range(5)], [None] * 5)
    for sample, row in zip(lines_of(source), rows, strict=True):
        if row["gold"] is not None:
            assert float(row["decision"] == row["gold"]) == sample["acc"]


@pytest.mark.parametrize(
    ("accuracies", "gold"),
    [
        ((1.0, 1.0), ["3", "2"]),  # right as the ratings 3 and 2
        ((0.0, 0.0), ["4", "3"]),  # so the targets are the indices of 4 and 3
    ],
)
def test_a_digit_target_is_read_as_accuracy_says(
    accuracies: tuple[float, float], gold: list[str], tmp_path: Path
) -> None:
    lines = []
    for best, accuracy in zip(("3", "2"), accuracies, strict=True):
        options = ["1", "2", "3", "4", "5"]
        sample = {
            "doc_id": int(best),
            "target": best,
            "arguments": {
                f"gen_args_{n}": {"arg_0": f"Rate {best}", "arg_1": f" {option}"}
                for n, option in enumerate(options)
            },
            "resps": [[[str(-0.1 if o == best else -3.0), "False"]] for o in options],
            "acc": accuracy,
        }
        lines.append(json.dumps(sample))
    del sample["target"], sample["acc"]
    lines.append(json.dumps({**sample, "doc_id": "without a target"}))
    source = tmp_path / "samples_rating_2026-01-01T00-00-00.000000.jsonl"
    source.write_text("\n".join(lines), "utf-8")
    import_log(source, "lm-eval", tmp_path / "out")
    rows = read_log(tmp_path / "out").to_pylist()
    assert [row["decision"] for row in rows] == ["3", "2", "2"]
    assert [row["gold"] for row in rows] == [*gold, None]


@pytest.mark.slow
def test_generated_samples_of_several_filters_need_one_to_be_picked(
    samples: Path, tmp_path: Path
) -> None:
    source = sample_file(samples, "judge_text")
    with pytest.raises(JudgeSenseError, match=r"several filters \(strict, whole\).*--pick"):
        import_log(source, "lm-eval", tmp_path / "out")
    with pytest.raises(JudgeSenseError, match="'x'; choose one of strict, whole"):
        import_log(source, "lm-eval", tmp_path / "out", pick="x")
    record = import_log(source, "lm-eval", tmp_path / "out", pick="strict", parse=parse)
    assert record["counts"] == {"judge_text": {"unclear": 5}}
    rows = read_log(tmp_path / "out").to_pylist()
    assert {row["raw_text"] for row in rows} == {"lol"}
    assert [row["gold"] for row in rows] == ["YES", "NO", "YES", "NO", "YES"]
