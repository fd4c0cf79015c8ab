"""``check FILE`` on what other tools write: their own files, or the shapes that they document."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.checking.labelling import open_labelling
from judgesense.errors import JudgeSenseError

DATA = Path(__file__).parents[1] / "importers" / "data"

LANGFUSE = {
    "id": "s1",
    "traceId": "t1",
    "observationId": None,
    "name": "helpful",
    "source": "EVAL",
    "dataType": "BOOLEAN",
    "value": 1,
    "stringValue": "True",
    "comment": "It answers.",
    "authorUserId": None,
    "configId": None,
    "timestamp": "2026-01-01T00:00:00Z",
}
LANGSMITH = {
    "id": "f1",
    "run_id": "r1",
    "key": "correct",
    "score": 1,
    "value": None,
    "comment": "Right.",
    "correction": None,
    "feedback_source": {"type": "model", "user_id": None, "metadata": {}},
}
VERDICTS, ANN, BEN = [1, 1, 0, 0, 1], [1, 0, 0, 0, 1], [1, 0, 0, 1, 1]


def langfuse(snake: bool) -> list[dict[str, Any]]:
    rows = []
    for n, values in enumerate(zip(VERDICTS, ANN, BEN, strict=True)):
        for who, value in zip((None, "ann@x.org", "ben"), values, strict=True):
            source = "ANNOTATION" if who else "EVAL"
            row = {**LANGFUSE, "traceId": f"t{n}", "source": source, "authorUserId": who}
            row |= {"value": value, "stringValue": str(bool(value))}
            rows.append({_snake(key): v for key, v in row.items()} if snake else row)
    return rows


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def langsmith() -> list[dict[str, Any]]:
    rows = []
    for n, values in enumerate(zip(VERDICTS, ANN, BEN, strict=True)):
        for who, value in zip((None, "ann", "ben"), values, strict=True):
            source = {"type": "app" if who else "auto_eval", "user_id": who}
            rows.append(
                {
                    **LANGSMITH,
                    "run_id": f"r{n}",
                    "key": "human" if who else "correct",
                    "score": value,
                    "feedback_source": source,
                }
            )
    return rows


def written(rows: list[dict[str, Any]], path: Path) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()}
                )
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text(json.dumps({"data": rows, "meta": {"page": 1}}))
    return path


@pytest.mark.parametrize(
    ("tool", "suffix"),
    [("langfuse", "csv"), ("langfuse blob storage", "jsonl"), ("langsmith", "json")],
)
def test_scores_of_langfuse_and_feedback_of_langsmith(
    tool: str, suffix: str, tmp_path: Path
) -> None:
    rows = langsmith() if tool == "langsmith" else langfuse("blob" in tool)
    report = judgesense.check(
        written(rows, tmp_path / f"s.{suffix}"), out=tmp_path / "o", note=str
    ).report
    right = {entry["human"].rpartition("annotator_")[2]: entry for entry in report.people}
    ann, ben = ("ann", "ben") if tool == "langsmith" else ("ann_x_org", "ben")
    assert (right[ann]["n"], right[ann]["accuracy"]) == (5, 0.8)
    assert (right[ben]["n"], right[ben]["accuracy"]) == (5, 0.6)
    assert (right["majority"]["n"], right["majority"]["accuracy"]) == (4, 0.75)


def test_one_of_several_scores_is_picked(tmp_path: Path) -> None:
    rows = langfuse(snake=False)
    rows += [{**row, "name": "polite"} for row in rows if row["source"] == "EVAL"]
    path = written(rows, tmp_path / "s.json")
    with pytest.raises(JudgeSenseError, match="helpful, polite"):
        judgesense.check(path, pick="helpfull", out=tmp_path / "o", note=str)
    report = judgesense.check(path, pick="helpful", out=tmp_path / "o", note=str).report
    assert [card["task"] for card in report.trust] == ["helpful"]
    report = judgesense.check(path, out=tmp_path / "both", note=str).report
    assert [card["task"] for card in report.trust] == ["helpful", "polite"]
    assert {entry["task"] for entry in report.people} == {"helpful"}


@pytest.mark.parametrize("name", ["promptfoo_results.json", "deepeval_test_run.json"])
def test_a_log_of_another_program_is_checked_as_it_is(name: str, tmp_path: Path) -> None:
    report = judgesense.check(DATA / name, out=tmp_path / "o", note=str).report
    assert report.trust
    assert all(card["checks"]["right"]["state"] == "unmeasured" for card in report.trust)


def test_columns_of_a_langsmith_experiment(tmp_path: Path) -> None:
    """``to_pandas()`` of an experiment: ``feedback.KEY`` beside ``reference.KEY``."""
    names = ["inputs.question", "outputs.answer", "reference.label", "feedback.correctness", "id"]
    rows = [
        dict(zip(names, (f"q{n}", f"a{n}", label, said, n), strict=True))
        for n, (label, said) in enumerate(zip(ANN, VERDICTS, strict=True))
    ]
    report = judgesense.check(
        written(rows, tmp_path / "e.csv"), out=tmp_path / "o", note=str
    ).report
    assert report.people[0]["accuracy"] == 0.8


def test_the_page_shows_each_assertion_with_its_own_rubric(tmp_path: Path) -> None:
    """Two assertions on one test are about the same output, and ask different things."""
    judgesense.check(DATA / "promptfoo_results.json", out=tmp_path / "out", note=str)
    shown = {}
    for task in ("factuality", "not-llm-rubric"):
        labelling, _ = open_labelling(tmp_path / "out", task=task)
        shown[task] = labelling.state("ann")["item"]
        assert not {"score", "metadata"} & shown[task].keys()
    assert shown["factuality"]["rubric"] == "Madrid is the capital of Spain"
    assert shown["not-llm-rubric"]["rubric"] == "Names the capital of Spain"
