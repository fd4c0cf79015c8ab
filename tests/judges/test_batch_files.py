"""Batch files: what is asked is what the API judge would ask; answers come back into the log."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, serving
from test_runner import benchmark, comparable, tells_parity
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from local_judges.api.batch_files import ABSENT, BatchFileJudge, write_batch
from local_judges.plan import Requests
from local_judges.registry import JudgeSpec, resolve
from local_judges.runner import run_judge

SPEC = resolve("fake", engine="api", base_url="http://localhost:1/v1", price=(1.0, 2.0))
BOTH = ("generate", "options")


def parity(message: str) -> str:
    return tells_parity([message])[0]


def service(inputs: list[Path], answer: Callable[[int, dict[str, Any]], Any], out: Path) -> Path:
    """What a batch service does: one line of output for each line of input, in another order."""
    lines = []
    for path in inputs:
        for number, text in enumerate(path.read_text("utf-8").splitlines()):
            asked = json.loads(text)
            reply = answer(number, asked["body"])
            if reply is not None:
                lines.append({"id": f"r{number}", "custom_id": asked["custom_id"], **reply})
    out.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)), "utf-8")
    return out


def answered(_: int, body: dict[str, Any]) -> dict[str, Any]:
    text = body["messages"][-1]["content"]
    reply = FakeEndpoint(parity).reply(text, body.get("logprobs", False))
    return {"response": {"status_code": 200, "request_id": "q", "body": reply}, "error": None}


def write(spec: JudgeSpec, folder: Path, n: int = 20, scorings: tuple[str, ...] = BOTH) -> Path:
    data = benchmark(n)
    (file,) = write_batch(spec, Requests(data.prompts), scorings, folder)
    return file.path


def test_a_file_asks_what_the_api_judge_asks(tmp_path: Path) -> None:
    style = {"system_role": False, "min_temperature": 0.01, "extra_body": {"thinking": {"n": 0}}}
    options = {"max_tokens": 7, "style": style, "system_prompt": "Be brief."}
    data = benchmark(6)
    endpoint = FakeEndpoint(parity)
    with serving(endpoint) as url:
        spec = resolve("fake", engine="api", base_url=url, **options)
        run_judge(spec.load(), data, tmp_path / "api", BOTH)
    path = write(spec, tmp_path / "batch", n=6)
    bodies = [json.loads(line)["body"] for line in path.read_text("utf-8").splitlines()]
    assert sorted(bodies, key=str) == sorted(endpoint.bodies, key=str)
    assert bodies[0]["thinking"] == {"n": 0}


def test_decisions_equal_those_of_the_api_judge(tmp_path: Path) -> None:
    data = benchmark(20)
    with serving(FakeEndpoint(parity)) as url:
        spec = resolve("fake", engine="api", base_url=url)
        run_judge(spec.load(), data, tmp_path / "api", BOTH)
    output = service([write(spec, tmp_path / "in")], answered, tmp_path / "out.jsonl")
    judge = BatchFileJudge(spec, [output])
    outcome = run_judge(judge, data, tmp_path / "batch", BOTH)
    assert (outcome.judged, outcome.failed) == (40, [])

    def told(folder: str) -> list[dict[str, Any]]:
        rows = comparable(read_log(tmp_path / folder))
        rows = [{**row, "judge": "", "cost_usd": None} for row in rows]
        return sorted(rows, key=lambda row: (row["prompt_id"], row["item_id"], row["scoring"]))

    assert told("batch") == told("api")


def test_a_prompt_without_an_answer_is_an_error_with_its_reason(tmp_path: Path) -> None:
    def faulty(number: int, body: dict[str, Any]) -> dict[str, Any] | None:
        if number == 0:
            return None
        if number == 1:
            error = {"code": "batch_expired", "message": "This request could not be executed"}
            return {"response": None, "error": error}
        if number == 2:
            said = {"error": {"message": "Bad key sk-abcdef1234567890 given"}}
            return {"response": {"status_code": 400, "body": said}, "error": None}
        if number == 3:
            empty = {**answered(0, body)["response"]["body"], "choices": []}
            return {"response": {"status_code": 200, "body": empty}, "error": None}
        return answered(number, body)

    path = write(SPEC, tmp_path / "in")
    ids = [json.loads(line)["custom_id"][:16] for line in path.read_text("utf-8").splitlines()]
    judge = BatchFileJudge(SPEC, [service([path], faulty, tmp_path / "out.jsonl")])
    run_judge(judge, benchmark(20), tmp_path / "run", BOTH)
    log = read_log(tmp_path / "run").to_pylist()
    reasons = {row["prompt_id"]: row["error"] for row in log if row["status"] == "error"}
    assert list(map(reasons.get, ids[:2])) == [ABSENT, "This request could not be executed"]
    assert reasons[ids[2]] == "HTTP 400: Bad key *** given"
    assert "no choices" in reasons[ids[3]]
    assert set(reasons) == set(ids[:4])
    assert all(row["decision"] == "ERROR" for row in log if row["prompt_id"] in reasons)
    assert all(row["status"] == "ok" for row in log if row["prompt_id"] not in reasons)


def test_of_a_failure_and_an_answer_the_answer_counts_whatever_their_order(tmp_path: Path) -> None:
    path = write(SPEC, tmp_path / "in", scorings=("generate",))
    failed = {"response": None, "error": {"code": "batch_expired", "message": ""}}
    first = service([path], lambda n, b: failed if n < 5 else answered(n, b), tmp_path / "a.jsonl")
    again = service([path], lambda n, b: answered(n, b) if n < 5 else None, tmp_path / "b.jsonl")
    for files in ([first, again], [again, first]):
        judge = BatchFileJudge(SPEC, files)
        run = tmp_path / files[0].stem
        assert run_judge(judge, benchmark(20), run, ["generate"]).failed == []


@pytest.mark.parametrize("response", [{"status_code": 200, "body": {"choices": []}}, "x", ["x"]])
def test_a_success_that_says_nothing_is_a_failure_whatever_comes_beside_it(
    tmp_path: Path, response: object
) -> None:
    path = write(SPEC, tmp_path / "in", scorings=("generate",))
    empty = {"response": response, "error": None}
    silent = service([path], lambda n, b: empty, tmp_path / "silent.jsonl")
    answers = service([path], answered, tmp_path / "answers.jsonl")
    for files in ([silent, answers], [answers, silent]):
        judge = BatchFileJudge(SPEC, files)
        run = tmp_path / files[0].stem
        assert run_judge(judge, benchmark(20), run, ["generate"]).failed == []
    alone = run_judge(BatchFileJudge(SPEC, [silent]), benchmark(20), tmp_path / "run", ["generate"])
    assert len(alone.failed) == 40
    assert all("no choices" in line or "not an object: " in line for line in alone.failed)


def test_a_usage_that_is_no_object_costs_nothing_known(tmp_path: Path) -> None:
    def odd(number: int, body: dict[str, Any]) -> dict[str, Any]:
        reply = answered(number, body)
        reply["response"]["body"]["usage"] = "x"
        return reply

    output = service([write(SPEC, tmp_path / "in")], odd, tmp_path / "out.jsonl")
    run_judge(BatchFileJudge(SPEC, [output]), benchmark(20), tmp_path / "run", BOTH)
    log = read_log(tmp_path / "run")
    assert set(log["status"].to_pylist()) == {"ok"}
    assert log["cost_usd"].null_count == log.num_rows


def test_two_answers_to_one_prompt_are_refused(tmp_path: Path) -> None:
    output = service([write(SPEC, tmp_path / "in")], answered, tmp_path / "out.jsonl")
    with pytest.raises(JudgeSenseError, match=r"out\.jsonl, line 1: a second answer to"):
        BatchFileJudge(SPEC, [output, output])


def test_answers_to_other_settings_are_not_taken(tmp_path: Path) -> None:
    path = write(SPEC, tmp_path / "in", scorings=("generate",))
    output = service([path], answered, tmp_path / "out.jsonl")
    other = resolve("fake", engine="api", base_url="http://localhost:1/v1", max_tokens=5)
    for spec, scorings in ((other, ("generate",)), (SPEC, BOTH)):
        with pytest.raises(JudgeSenseError, match="other settings"):
            run_judge(BatchFileJudge(spec, [output]), benchmark(20), tmp_path / "run", scorings)


def test_answers_of_another_run_are_refused(tmp_path: Path) -> None:
    output = service([write(SPEC, tmp_path / "in", n=4)], answered, tmp_path / "out.jsonl")
    data = benchmark(4).select(limit=4)
    others = data.prompts.set_column(
        data.prompts.schema.get_field_index("prompt_id"),
        "prompt_id",
        [[hashlib.sha256(text.encode()).hexdigest()[:15] + "x" for text in ids_of(data)]],
    )
    with pytest.raises(JudgeSenseError, match="none of the answers is for a prompt"):
        BatchFileJudge(SPEC, [output]).plan(Requests(others), frozenset(BOTH))


def ids_of(data: Any) -> list[str]:
    ids: list[str] = data.prompts["prompt_id"].to_pylist()
    return ids


def test_cost_is_counted_at_the_given_price(tmp_path: Path) -> None:
    output = service([write(SPEC, tmp_path / "in")], answered, tmp_path / "out.jsonl")
    run_judge(BatchFileJudge(SPEC, [output]), benchmark(20), tmp_path / "run", BOTH)
    costs = {row["cost_usd"] for row in read_log(tmp_path / "run").to_pylist()}
    assert costs == {(50 * 1.0 + 2 * 2.0) / 1e6}


def test_files_are_split_at_both_limits_and_lose_nothing(tmp_path: Path) -> None:
    requests = Requests(benchmark(25).prompts)
    by_count = write_batch(SPEC, requests, BOTH, tmp_path / "count", max_requests=20)
    assert [file.requests for file in by_count] == [20, 20, 10]
    by_size = write_batch(SPEC, requests, BOTH, tmp_path / "size", max_bytes=4000)
    assert all(file.path.stat().st_size == file.size <= 4000 for file in by_size)
    assert len(by_size) > 3
    for files in (by_count, by_size):
        lines = [line for file in files for line in file.path.read_text("utf-8").splitlines()]
        ids = [json.loads(line)["custom_id"].partition(".")[0] for line in lines]
        assert ids == [request.prompt_id for request in requests]
        assert max(len(json.loads(line)["custom_id"]) for line in lines) <= 64
    with pytest.raises(JudgeSenseError, match=r"alone has [\d,]+ bytes; a batch file may have 100"):
        write_batch(SPEC, requests, BOTH, tmp_path / "small", max_bytes=100)


def test_a_batch_is_not_written_over_another(tmp_path: Path) -> None:
    write(SPEC, tmp_path)
    with pytest.raises(JudgeSenseError, match="already holds a batch"):
        write(SPEC, tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"custom_id": "a", "resp', r"line 1: not JSON .* is the file complete\?"),
        ('{"id": "a", "response": {}}', r"line 1: not a line of batch output \(no custom_id"),
        ("[1]", r"line 1: not a line of batch output"),
        ('{"custom_id": "a", "method": "POST", "body": {}}', r"an input file\?"),
    ],
)
def test_what_is_no_batch_output_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=says):
        BatchFileJudge(SPEC, [path])
    with pytest.raises(JudgeSenseError, match="cannot read"):
        BatchFileJudge(SPEC, [tmp_path / "absent.jsonl"])


def test_judges_that_no_batch_service_has_are_refused(tmp_path: Path) -> None:
    for name in ("smollm2-135m", "llama-3.1-70b-instruct"):
        with pytest.raises(JudgeSenseError, match="OpenAI-compatible endpoint"):
            write(resolve(name), tmp_path)
    with pytest.raises(JudgeSenseError, match="options scoring"):
        write(resolve("claude-haiku-4-5"), tmp_path)


@pytest.mark.parametrize("batch", [["--batch"], ["--batch-in", "answers.jsonl"]])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--set", "max_tokens=20,50"], "one token cap"),
        (["--engine", "ray"], "leave out --engine ray"),
    ],
)
def test_what_a_batch_cannot_do_is_refused_and_nothing_written(
    tmp_path: Path, batch: list[str], options: list[str], says: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(JudgeSenseError, match=says):
        CliRunner().invoke(
            app,
            ["run", "--judge", "gpt-4o-mini", "--out", str(out), *batch, *options],
            catch_exceptions=False,
        )
    assert not out.exists()


@pytest.mark.slow
def test_the_command_writes_without_a_key_and_finishes_with_a_report(tmp_path: Path) -> None:
    def command(*more: str) -> subprocess.CompletedProcess[str]:
        judged = ("--judge", "gpt-4o-mini", "--tasks", "factuality", "--limit", "3")
        return subprocess.run(
            [sys.executable, "-m", "judgesense", "run", *judged, "--out", str(tmp_path), *more],
            capture_output=True, text=True, check=False,
            env={key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"},
        )  # fmt: skip

    written = command("--batch")
    assert written.returncode == 0, written.stderr
    path = tmp_path / "batch" / "input-0000.jsonl"
    assert f"{path}: 15 requests" in written.stdout

    def yes(number: int, body: dict[str, Any]) -> dict[str, Any]:
        reply = FakeEndpoint(lambda _: "YES").reply("", True)
        return {"response": {"status_code": 200, "body": reply}, "error": None}

    output = service([path], yes, tmp_path / "out.jsonl")
    finished = command("--batch-in", str(output))
    assert finished.returncode == 0, finished.stderr
    assert "gpt-4o-mini" in finished.stdout
    assert (tmp_path / "report.json").is_file()
    other = command(
        "--batch-in", str(output), "--set", "max_tokens=5", "--out", str(tmp_path / "o")
    )
    assert other.returncode == 2
    assert "other settings" in other.stderr
    assert not (tmp_path / "o" / "run.json").exists()
    refused = command("--batch-in", str(output), "--repeats", "2")
    assert refused.returncode == 2
    assert "leave out --repeats" in refused.stderr
