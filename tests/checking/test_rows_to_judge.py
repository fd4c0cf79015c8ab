"""Rows that a rubric judges are read as `check FILE` reads verdicts: ids, labels and groups."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.log.schema import read_log

sys.path.insert(0, str(Path(__file__).parents[1] / "asking"))
from production_server import Server, serving

RUBRIC = "Does the reply help?\n\n{channel}: {ticket}\n{reply}\n\nAnswer pass or fail."
TOPICS = ["refund", "repair", "delivery"]
ROWS = [
    {
        "ticket_id": f"T-{100 + n}",
        "topic": TOPICS[n % 3],
        "channel": "chat" if n % 4 else "email",
        "ticket": f"Where is my order {n}?",
        "reply": f"It is on its way, number {n}." if n % 5 else f"No idea, {n}.",
        "reviewer_label": "pass" if n % 5 else "fail",
    }
    for n in range(60)
]


def judge(prompts: list[str]) -> list[str]:
    """Right on each reply."""
    return ["fail" if "No idea" in prompt else "pass" for prompt in prompts]


def checked(rows: Any, out: Path, **more: Any) -> Any:
    given = {"paraphrases": 0, "repeats": 1, "attacks": "none", "damage": "none", "note": str}
    return judgesense.check(RUBRIC, rows, judge, out=out, **{**given, **more})


def groups_of(result: Any) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for share in result.report.where_wrong[0]["shares"]:
        groups.setdefault(share["by"], set()).add(share["name"])
    return groups


def test_ids_labels_and_groups_of_other_names_are_read_and_said_first(tmp_path: Path) -> None:
    notes: list[str] = []
    result = checked(ROWS, tmp_path / "out", note=notes.append)
    lines = notes[0].splitlines()
    assert lines[0].startswith("Read 60 rows")
    assert any("ticket_id" in line for line in lines)
    assert any("reviewer_label" in line for line in lines)
    assert any("topic" in line for line in lines)
    groups = groups_of(result)
    assert groups["topic"] == {*TOPICS}
    assert groups["channel"] == {"chat", "email"}
    assert "ticket_id" not in groups
    assert logged(tmp_path / "out") == {row["ticket_id"] for row in ROWS}


def logged(folder: Path) -> set[str]:
    return {*read_log(folder)["item_id"].to_pylist()}


def test_the_flags_of_a_file_name_the_columns(tmp_path: Path) -> None:
    rows = [
        {**row, "ref": f"r{n}", "asked": f"q{n // 2}", "note": row["reviewer_label"].upper()}
        for n, row in enumerate(ROWS)
    ]
    (tmp_path / "rubric.txt").write_text(RUBRIC)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["check", f"{tmp_path}/rubric.txt", "--data", f"{tmp_path}/rows.jsonl", "--dry-run"]
    command += ["--columns", "id=ref,cluster=asked", "--human", "note", "--judge", "m"]
    command += ["--set", "base_url=http://127.0.0.1:9"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    assert all(word in run.stderr for word in ("ref", "asked", "note", "PASS 48"))
    columns = {"item_id": "ref", "cluster_id": "asked", "gold": "note"}
    result = checked(rows, tmp_path / "out", columns=columns, answers=["pass", "fail"])
    assert logged(tmp_path / "out") == {row["ref"] for row in rows}
    assert result.report.people[0]["accuracy"] == 1.0
    for wrong in ({"judge": "topic"}, {"item_id": "tickets"}):
        with pytest.raises(JudgeSenseError, match="--columns"):
            checked(rows, tmp_path / "none", columns=wrong)


def test_labels_come_from_a_file_by_the_ids(tmp_path: Path) -> None:
    plain = [{k: v for k, v in row.items() if k != "reviewer_label"} for row in ROWS]
    labels = tmp_path / "labels.csv"
    lines = [f"{row['ticket_id']},{row['reviewer_label']}" for row in ROWS[:40]]
    labels.write_text("\n".join(["item_id,label", *lines]))
    result = checked(plain, tmp_path / "out", human=str(labels))
    assert result.card["checks"]["right"]["n_items"] == 40
    labels.write_text("item_id,label\nx1,pass\nx2,fail\n")
    with pytest.raises(JudgeSenseError, match="same ids"):
        checked(plain, tmp_path / "none", human=str(labels))


def test_a_row_for_each_person_is_one_item(tmp_path: Path) -> None:
    rows = [
        {**row, "annotator": name, "label": row["reviewer_label"] if name != "cy" else "fail"}
        for row in ROWS
        for name in ("ana", "bo", "cy")
    ]
    rows = [{k: v for k, v in row.items() if k != "reviewer_label"} for row in rows]
    result = checked(rows, tmp_path / "out")
    assert logged(tmp_path / "out") == {row["ticket_id"] for row in ROWS}
    assert result.card["checks"]["right"]["details"]["accuracy"] == 1.0


def test_rows_that_share_an_id_are_a_cluster_and_a_column_named_task_is_a_group(
    tmp_path: Path,
) -> None:
    rows = [
        {**row, "conversation_id": f"c{n // 3}", "task": TOPICS[n % 2]}
        for n, row in enumerate(ROWS)
    ]
    rows = [{k: v for k, v in row.items() if k != "ticket_id"} for row in rows]
    result = checked(rows, tmp_path / "out")
    assert len(logged(tmp_path / "out")) == 60
    assert result.report.assessments[0].mapped.n_clusters in (0, 20)
    assert groups_of(result)["task"] == {*TOPICS[:2]}


def test_the_hash_of_the_data_is_of_the_data(tmp_path: Path) -> None:
    """One wording has no pairs; its prompts are the data, whatever is tried besides."""
    one = checked(ROWS, tmp_path / "one")
    damaged = checked(ROWS, tmp_path / "damaged", damage=20)
    other = checked([{**row, "reply": f"{row['reply']}!"} for row in ROWS], tmp_path / "other")
    hashes = [result.report.contents.runs[0]["data_hash"] for result in (one, damaged, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert "e3b0c442" not in hashes
    (judged, _) = (cell for cell in one.report.cells if cell["judge"] != "oracle")
    assert f"data:{hashes[0]}" in judged["signature"]


def test_a_dry_run_counts_what_the_check_then_sends(tmp_path: Path) -> None:
    (tmp_path / "rubric.txt").write_text(RUBRIC.replace("help", "complete and correct"))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    command = ["check", f"{tmp_path}/rubric.txt", "--data", f"{tmp_path}/rows.jsonl"]
    command += ["--judge", "m", "--paraphrases", "0", "--out", f"{tmp_path}/out"]
    with serving(Server(lambda prompt: judge([prompt])[0])) as url:
        command += ["--set", f"base_url={url}", "--set", "price=1,4"]
        plan = CliRunner().invoke(app, [*command, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    assert not (tmp_path / "out").exists()
    with serving(server := Server(lambda prompt: judge([prompt])[0])) as url:
        command[command.index("--set") + 1] = f"base_url={url}"
        CliRunner().invoke(app, command)
    distinct = len({*server.prompts})
    assert f"3 prompts are sent first; if they can be read, {distinct - 3} others" in plan.stdout
    assert f" in {len(server.bodies)} requests" in plan.stdout
    assert "$" in plan.stdout
    prompts = read_run(tmp_path / "out").prompts
    assert prompts is not None
    damaged = prompts["variant_class"].to_pylist().count("damage")
    assert f"{damaged} on damaged outputs" in plan.stdout
