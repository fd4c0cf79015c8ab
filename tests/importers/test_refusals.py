"""Files that are no log of their format: refused with the place and the reason."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log

COLUMNS = {"judge": "model", "task": ":t", "item_id": "id", "template_id": "prompt"}
TABLES = [
    ("log.csv", "", "is empty"),
    ("log.csv", "a,b\n", "has no rows"),
    ("log.csv", "a,b\n1,2,3\n", r"row 1 \(line 2\): 3 cells, but the header has 2"),
    ("log.csv", 'a,b\n1,"2\n', "invalid CSV"),
    ("log.csv", "a,a\n1,2\n", "'a' column appears twice"),
    ("log.csv", "model,id\nm,1\n", r"no column 'prompt' \(for template_id\); its columns: model"),
    ("log.jsonl", "{oops\n", "line 1: not JSON"),
    ("log.jsonl", "[1]\n", "line 1: expected a JSON object, got list"),
    ("log.parquet", "nonsense", "cannot be read as Parquet"),
    ("log.xls", "x", "use one of .csv, .tsv, .jsonl, .ndjson, .parquet, .xlsx"),
    ("log.xlsx", "x", "cannot be read as an Excel workbook"),
]


@pytest.mark.parametrize(("name", "text", "reason"), TABLES)
def test_a_bad_table_is_named_with_the_reason(
    name: str, text: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=reason):
        import_log(tmp_path / name, "table", tmp_path / "out", columns=COLUMNS)


SAMPLE: dict[str, Any] = {"id": 0, "epoch": 1, "scores": {"mine": {"value": "C"}}}
EVAL: dict[str, Any] = {"model": "m", "task": "t", "scorers": [{"name": "mine"}]}
GRADER = {"metadata": {"grading": [{"role": "user", "content": "?"}, {"content": "C"}]}}


def sample(**change: Any) -> dict[str, Any]:
    return {"eval": EVAL, "samples": [SAMPLE | change]}


def promptfoo(**result: Any) -> dict[str, Any]:
    return {"results": {"results": [result]}}


def deepeval(**case: Any) -> dict[str, Any]:
    return {"testRunData": {"testCases": [case]}}


@pytest.mark.parametrize(
    ("format", "content", "reason"),
    [
        ("inspect", sample(epoch="first"), r"sample 1, epoch: .*found 'first'"),
        (
            "inspect",
            sample(scores={"mine": {"value": "C", "answer": 4}}),
            r"sample 1, scores.mine.answer: .*4",
        ),
        ("inspect", sample(id=None), r"sample 1, id"),
        (
            "inspect",
            sample(scores={"mine": {"value": {"a": 1}, **GRADER}}),
            "sample 1: a grader.s verdict .*--pick",
        ),
        ("inspect", {}, "missing field in an Inspect log"),
        ("promptfoo", [], "not promptfoo's results"),
        ("promptfoo", promptfoo(), r"results\[0\], testIdx: .*missing"),
        ("promptfoo", promptfoo(testIdx=0), "no .*model-graded assertion"),
        (
            "promptfoo",
            promptfoo(testIdx=0, gradingResult={"componentResults": [{"pass": "maybe"}]}),
            r"results\[0\], gradingResult.componentResults\[0\].pass: .*found 'maybe'",
        ),
        ("deepeval", {}, "not a DeepEval test run"),
        (
            "deepeval",
            deepeval(metricsData=[{"name": 3}]),
            r"testCases\[0\], metricsData\[0\].name: .*found 3",
        ),
        ("deepeval", deepeval(), "no test has metricsData"),
        ("deepeval", None, r"no deepeval log .*test_run"),
    ],
)
def test_a_log_of_another_shape_is_named_with_its_field(
    format: str, content: Any, reason: str, tmp_path: Path
) -> None:
    source = tmp_path / "log.json"
    if content is not None:
        source.write_text(json.dumps(content), "utf-8")
    with pytest.raises(JudgeSenseError, match=reason):
        import_log(tmp_path if content is None else source, format, tmp_path / "out")


@pytest.mark.parametrize(
    ("header", "reason"),
    [(None, "the log is unfinished"), ({"eval": EVAL, "status": "error"}, "no samples")],
)
def test_an_archive_of_inspect_without_samples_is_refused(
    header: dict[str, Any] | None, reason: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json" if header else "_journal/start.json", json.dumps(header))
    with pytest.raises(JudgeSenseError, match=reason):
        import_log(tmp_path / "log.eval", "inspect", tmp_path / "out")
