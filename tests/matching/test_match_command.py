"""``judgesense match`` as a person types it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import judgesense
from judgesense import Question
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.matching import grader_of

OPTIONS = ["gravity", "friction", "magnetism", "drag"]
ROWS = [
    ("m1", "t1", "1", "The answer is B.", "B", "stop"),
    ("m1", "t1", "2", "It must be gravity", "A", "stop"),
    ("m1", "t2", "1", "Option 2", "B", "stop"),
    ("m1", "t2", "2", "hard to say, since", "A", "length"),
    ("m2", "t1", "1", "C", "B", "stop"),
    ("m2", "t1", "2", "[A] gravity", "A", "stop"),
    ("m2", "t2", "1", "friction", "B", "stop"),
    ("m2", "t2", "2", "I have chosen option A", "A", "stop"),
]


def responses(folder: Path, **changes: Any) -> Path:
    rows = [
        {
            "model": model,
            "prompt_id": f"{template}{item}",
            "item_id": item,
            "template_id": template,
            "text": text,
            "finish_reason": finish,
            "tokens": 5,
            "reference": reference,
            "question": f"Question {item}?",
            "options": OPTIONS,
            **changes,
        }
        for model, template, item, text, reference, finish in ROWS
    ]
    path = folder / "responses.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["match", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_scores_by_model_and_template_and_the_misses_are_printed(tmp_path: Path) -> None:
    output = invoke(str(responses(tmp_path)))
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "t1 1.0000 n=2" in lines
    assert "mean ± std 0.7500 ± 0.2500 over 2 templates" in lines
    assert "1 of 8 responses were cut off at the token cap" in lines
    unread = "1 of 8 responses could not be read by choice and score 0 (1 no single option)"
    assert any(unread in line for line in lines)
    assert "m1 t2 2: 'hard to say, since' for 'A' [no single option]" in lines
    assert "m2 t1 1: 'C' for 'B' [read as 'C']" in lines


def test_the_results_are_written_row_by_row(tmp_path: Path) -> None:
    printed = invoke(str(responses(tmp_path)), "--out", str(tmp_path / "out"), "--format", "json")
    summary = json.loads((tmp_path / "out/match.json").read_text("utf-8"))
    (first, second) = summary["scores"]["choice"]
    assert first["by_template"]["t2"] == {"score": 0.5, "n_scored": 2, "n": 2}
    assert (second["mean"], second["std"]) == (0.75, 0.25)
    assert json.loads(printed)["scores"] == summary["scores"]
    table = pq.read_table(tmp_path / "out/matches.parquet").to_pylist()
    assert [row["score"] for row in table] == [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert table[3]["reading"] is None


def test_a_folder_of_parquet_parts_is_one_log(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in responses(tmp_path).read_text("utf-8").splitlines()]
    (tmp_path / "log").mkdir()
    for number, part in enumerate((rows[:3], rows[3:])):
        pq.write_table(pa.Table.from_pylist(part), tmp_path / f"log/part-{number:05}.parquet")
    assert invoke(str(tmp_path / "log")) == invoke(str(tmp_path / "responses.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--columns", "reference=gold"], r"line 1: no column 'gold' \(for reference\)"),
        (["--columns", "answer=gold"], "unknown column 'answer'; choose one of model"),
        (["--method", "f1", "--label-style", "letters"], "has no option 'labels'"),
        (["--grader", "nobody"], "unknown judge 'nobody'"),
        (
            ["--grader", "smollm2-135m", "--grading-prompt", "nothing"],
            "a file or one of figure-3",
        ),
        (
            ["--grading-prompt", "gpqa"],
            "--grading-prompt is for the grader; name one with --grader",
        ),
        (["--set", "engine=api"], "--engine is for the grader"),
        (["--max-cost", "1"], "--max-cost is for the grader"),
    ],
)
def test_bad_usage_is_refused_with_what_exists(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        invoke(str(responses(tmp_path)), *arguments)


def test_a_table_without_any_known_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("foo,bar\n1,2\n")
    with pytest.raises(JudgeSenseError, match="row 1: no model; name its column with --columns"):
        invoke(str(tmp_path / "other.csv"))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_scored(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    log, out = str(responses(tmp_path)), str(tmp_path / "file" / "out")
    for judge in ([], ["--grader", "smollm2-135m"]):
        result = CliRunner().invoke(app, ["match", log, *judge, "--out", out])
        assert isinstance(result.exception, JudgeSenseError)
        assert "cannot write to" in str(result.exception)
        assert result.output == ""


def test_a_log_to_which_answers_are_still_to_come_is_not_scored(tmp_path: Path) -> None:
    questions = [Question(f"q{n}", "t1", f"Is {n} even?") for n in range(4)]
    run, gold = tmp_path / "run", tmp_path / "gold.csv"
    judgesense.respond(lambda messages: ["Yes."] * len(messages), questions, run)
    gold.write_text("item_id,reference\n" + "".join(f"q{n},yes\n" for n in range(4)), "utf-8")
    arguments = ("--references", str(gold), "--method", "exact")
    assert "1.0000  n=4" in invoke(str(run), *arguments)
    (part,) = (run / "responses").glob("part-*.parquet")
    part.rename(tmp_path / part.name)
    with pytest.raises(JudgeSenseError, match="is not finished"):
        judgesense.read_responses(run)
    (tmp_path / part.name).rename(part)
    record = json.loads((run / "run.json").read_text("utf-8"))
    del record["finished"]
    (run / "run.json").write_text(json.dumps(record), "utf-8")
    for source in (run, run / "responses"):
        with pytest.raises(JudgeSenseError, match="is not finished"):
            invoke(str(source), *arguments)
    with pytest.raises(JudgeSenseError, match="is not finished"):
        judgesense.read_responses(run)
    (run / "run.json").write_text("{", "utf-8")
    with pytest.raises(JudgeSenseError, match=r"run\.json is damaged"):
        invoke(str(run), *arguments)


def test_a_judge_without_questions_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    source = responses(tmp_path, question=None)
    with pytest.raises(JudgeSenseError, match="line 1: a grader needs the question"):
        invoke(str(source), "--grader", "smollm2-135m")


class MatchServer(BaseHTTPRequestHandler):
    """A chat endpoint that judges as a careful reader would, but has nothing to say about 'C'."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prediction = request["messages"][-1]["content"].rpartition("Model Prediction: ")[2]
        match = str("hard" not in prediction).lower()
        text = (
            "..." if prediction == "C" else f"```json\n{{'match': {match}, 'reason': 'read'}}\n```"
        )
        body = json.dumps(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": text},
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), MatchServer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_judge_finds_what_the_heuristic_missed_and_its_silence_is_counted(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    source, out = responses(tmp_path, options=None), tmp_path / "out"
    output = invoke(
        str(source),
        "--grader",
        "reader",
        "--set",
        f"base_url={endpoint}",
        "--out",
        str(out),
        code=1,
    )
    assert "2 right for the grader only" in output
    assert "'It must be gravity' for 'A' [read]" in " ".join(output.split())
    assert "no verdict, UNCLEAR: 1" in output
    assert "unused" not in output
    summary = json.loads((out / "match.json").read_text("utf-8"))
    assert summary["disagreement"] == {
        "n": 8,
        "both_right": 4,
        "both_wrong": 1,
        "missed_by_heuristic": 2,
        "only_heuristic": 0,
        "no_verdict": 1,
        "rate": pytest.approx(2 / 7),
    }
    table = pq.read_table(out / "matches.parquet").to_pylist()
    assert [row["judged"] for row in table] == [1.0, 1.0, 1.0, 0.0, None, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("judge", "given", "cap"),
    [("deepseek-r1", None, 2048), ("gpt-4o", None, 256), ("deepseek-r1", 512, 512)],
)
def test_a_reasoning_judge_may_think_as_long_as_its_entry_says(
    judge: str, given: int | None, cap: int
) -> None:
    spec = grader_of(judge, [], "figure-3", {"max_tokens": given} if given else {})
    assert (spec.options["max_tokens"], spec.options["system_prompt"]) == (cap, "")
