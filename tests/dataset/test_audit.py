from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense_dataset.audit import Audit, audit
from judgesense_dataset.load import load_pairs
from judgesense_dataset.polarity import DIRECT, INVERTED, polarity_cue

Row = dict[str, Any]
Fault = Callable[[dict[str, list[Row]]], None]


def clean_set() -> dict[str, list[Row]]:
    """The embedded benchmark's rows, by task, as a person would keep them in JSONL files."""
    tasks: dict[str, list[Row]] = {}
    for row in load_pairs(None).to_pylist():
        tasks.setdefault(row["task_type"], []).append(row)
    return tasks


def write(tasks: dict[str, list[Row]], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tasks.items():
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def errors(found: Audit) -> set[tuple[str, str]]:
    return {
        (name, finding.code)
        for name, task in found.tasks.items()
        for finding in task.findings
        if finding.severity == "error"
    }


def duplicates(tasks: dict[str, list[Row]]) -> None:
    tasks["coherence"] += [
        {**row, "pair_id": f"again-{at}"} for at, row in enumerate(tasks["coherence"][:5])
    ]


def all_a_gold(tasks: dict[str, list[Row]]) -> None:
    """Every comparison with the first option as gold, as the published set has them."""
    for row in tasks["preference"]:
        row["ground_truth_label"] = "A"


def swapped_label_map(tasks: dict[str, list[Row]]) -> None:
    row = next(r for r in tasks["factuality"] if r["template_a"] == "factuality-1")
    row["label_map_a"] = '{"YES":"NO","NO":"YES"}'


def inverted_without_map(tasks: dict[str, list[Row]]) -> None:
    for row in tasks["relevance"]:
        for side in "ab":
            if row[f"template_{side}"] == "relevance-2":
                row[f"prompt_{side}"] = row[f"prompt_{side}"].replace(
                    "Pick the more relevant passage for this query: A or B.",
                    "Pick the less relevant passage for this query: A or B.",
                )


def truncated_text(tasks: dict[str, list[Row]]) -> None:
    row = tasks["coherence"][-1]
    whole = row["response_being_judged"]
    cut = whole[: len(whole) * 2 // 3]
    for side in "ab":
        row[f"prompt_{side}"] = row[f"prompt_{side}"].replace(whole, cut)


FAULTS: dict[Fault, tuple[str, str]] = {
    duplicates: ("coherence", "duplicate_pairs"),
    all_a_gold: ("preference", "gold_one_label"),
    swapped_label_map: ("factuality", "label_map_swapped"),
    inverted_without_map: ("relevance", "inverted_template_without_map"),
    truncated_text: ("coherence", "truncated_text"),
}


def test_the_clean_set_has_no_error(tmp_path: Path) -> None:
    assert errors(audit(write(clean_set(), tmp_path))) == set()
    clean = audit(None)
    assert errors(clean) == set()
    codes = {finding.code for task in clean.tasks.values() for finding in task.findings}
    assert codes == {"effective_sample_size", "oracle"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_named_and_no_other(fault: Fault, tmp_path: Path) -> None:
    tasks = clean_set()
    fault(tasks)
    assert errors(audit(write(tasks, tmp_path))) == {FAULTS[fault]}


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("ground_truth_label", None, "gold_missing"),
        ("ground_truth_label", "6", "gold_outside_labels"),
        ("label_map_a", '{"1": "poor"}', "label_map_outside_labels"),
        ("pair_id", None, "duplicate_ids"),
        ("prompt_a", None, "identical_prompts"),
        ("license", "", "license_missing"),
        ("source_revision", "", "source_unproven"),
    ],
)
def test_one_bad_cell_is_named(column: str, value: str | None, code: str, tmp_path: Path) -> None:
    rows = clean_set()["coherence"]
    other = {"pair_id": rows[1]["pair_id"], "prompt_a": rows[0]["prompt_b"]}
    rows[0][column] = other.get(column, value)
    task = audit(write({"coherence": rows}, tmp_path)).tasks["coherence"]
    assert code in {finding.code for finding in task.findings}


def test_the_published_set_is_described_as_it_is(published: Path) -> None:
    tasks = audit(published).to_dict()["tasks"]
    assert {name: task["items"] for name, task in tasks.items()} == {
        "coherence": 5,
        "factuality": 10,
        "preference": 5,
        "relevance": 5,
    }
    assert {name: task["pairs"] for name, task in tasks.items()} == {
        "coherence": 25,
        "factuality": 50,
        "preference": 25,
        "relevance": 25,
    }
    assert all(task["rows"] == 125 for task in tasks.values())
    assert tasks["relevance"]["gold"] == tasks["preference"]["gold"] == {"A": 125}
    assert tasks["factuality"]["oracle_jss_raw"] == pytest.approx(0.6)
    assert tasks["factuality"]["oracle_jss_mapped"] == 1.0
    messages = {f["code"]: f["message"] for f in tasks["factuality"]["findings"]}
    assert "raw JSS 0.6000 (kappa 0.1813)" in messages["oracle"]
    assert set(tasks["coherence"]) == {
        "rows",
        "items",
        "prompts",
        "pairs",
        "gold",
        "oracle_jss_raw",
        "oracle_jss_mapped",
        "findings",
    }
    reasons = {f["code"] for task in tasks.values() for f in task["findings"]}
    assert reasons >= {
        "duplicate_pairs",
        "few_items",
        "gold_one_item_each",
        "source_unproven",
        "gold_one_label",
        "effective_sample_size",
    }


@pytest.mark.parametrize(
    ("wording", "labels", "expected"),
    [
        ("Does this response contain factual errors?", ("YES", "NO"), INVERTED),
        ("Is the answer wrong? YES or NO.", ("YES", "NO"), INVERTED),
        ("Is this factually wrong? Answer YES or NO only.", ("YES", "NO"), INVERTED),
        ("Is this factually correct or factually wrong?", ("YES", "NO"), None),
        ("Is this correct? Answer NO (accurate) or YES (has errors).", ("YES", "NO"), INVERTED),
        ("Is the response free of factual errors?", ("YES", "NO"), DIRECT),
        ("Reply YES (correct) or NO (incorrect).", ("YES", "NO"), DIRECT),
        ("Is it correct or incorrect?", ("YES", "NO"), None),
        ("Which passage is less relevant?", ("A", "B"), INVERTED),
        ("Which response is better?", ("A", "B"), DIRECT),
        ("Rate it: 1 = excellent, 5 = poor.", ("1", "2", "3", "4", "5"), INVERTED),
        ("Score: 1=poor 5=excellent.", ("1", "2", "3", "4", "5"), DIRECT),
    ],
)
def test_polarity_is_read_from_the_wording(
    wording: str, labels: tuple[str, ...], expected: str | None
) -> None:
    assert polarity_cue(wording, labels) == expected


def test_the_command_exits_1_on_errors_and_0_without(published: Path, tmp_path: Path) -> None:
    run = CliRunner()
    bad = run.invoke(app, ["dataset", "audit", str(published), "--format", "json"])
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["tasks"]["coherence"]["rows"] == 125
    folder = write({"coherence": clean_set()["coherence"]}, tmp_path)
    clean = run.invoke(app, ["dataset", "audit", str(folder)])
    assert clean.exit_code == 0
    assert "oracle" in clean.stdout
    with pytest.raises(JudgeSenseError, match="nowhere"):
        run.invoke(app, ["dataset", "audit", str(tmp_path / "nowhere")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"pair_id": "x", "prompt_a": "p"}', "column prompt_b"),
        ('{"pair_id": "x", "prompt_a": "p", "prompt_b": ""}', "column prompt_b"),
        ('{"pair_id": "x", "prompt_a": "p", "prompt_b": "q", "label_map_a": "YES"}', "label_map_a"),
        ("{", "line 1"),
    ],
)
def test_what_cannot_be_read_names_the_row(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "factuality.jsonl").write_text(content + "\n")
    with pytest.raises(JudgeSenseError, match=said):
        audit(tmp_path)


def test_one_text_under_two_item_ids_is_a_repeated_item(tmp_path: Path) -> None:
    tasks = {"coherence": clean_set()["coherence"]}
    by_item: dict[str, list[Row]] = {}
    for row in tasks["coherence"]:
        by_item.setdefault(row["item_id"], []).append(row)
    first = next(iter(by_item.values()))
    first[0]["item_id"] = first[0]["cluster_id"] = "another"
    found = audit(write(tasks, tmp_path))
    assert errors(found) == {("coherence", "duplicate_items")}
    assert found.tasks["coherence"].items == 50


def test_uneven_labels_and_wordings_are_named(tmp_path: Path) -> None:
    tasks = clean_set()
    rows = [row for row in tasks["coherence"] if row["ground_truth_label"] in "12"]
    rows += [row for row in tasks["coherence"] if row["ground_truth_label"] == "3"][:3]
    rows = [row for row in rows if "coherence-5" not in (row["template_a"], row["template_b"])][:60]
    rows[0] = {**rows[0], "template_a": "rare"}
    numbered = [
        {**row, "template_a": f"t{at}", "template_b": f"u{at}"}
        for at, row in enumerate(tasks["factuality"])
    ]
    found = audit(write({"coherence": rows, "factuality": numbered}, tmp_path)).tasks
    assert {finding.code for finding in found["coherence"].findings} >= {
        "gold_imbalance",
        "gold_labels_unused",
        "template_imbalance",
    }
    assert "templates_unknown" in {finding.code for finding in found["factuality"].findings}
