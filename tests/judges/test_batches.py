"""Batch APIs: the same decisions for half the price, over interruptions, each prompt paid once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_batches import FakeBatches
from fake_endpoint import FakeEndpoint, serving
from test_api_judge import parity
from test_runner import benchmark
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from judgesense.pipeline import failed_prompts
from local_judges.api import batches
from local_judges.api.judge import ApiJudge, most_cost
from local_judges.protocol import Request
from local_judges.runner import run_judge

KINDS = ("openai", "anthropic")
PRICE = (10.0, 20.0)
EACH = (50 * PRICE[0] + 2 * PRICE[1]) / 1e6
"""What the fake's answers cost directly."""


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST_WAIT_S", 0.01)


def judge(url: str, **options: Any) -> ApiJudge:
    return ApiJudge("fake", base_url=url, **{"price": PRICE, "batch": True, **options})


def longer(message: str) -> str:
    return "YES" if len(message) % 2 else "NO"


def verdicts(folder: Path) -> dict[tuple[str, str, int], str]:
    rows = read_log(folder).to_pylist()
    return {(r["prompt_id"], r["scoring"], r["repeat"]): r["decision"] for r in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_verdicts_of_direct_requests_for_half_the_price(
    tmp_path: Path, kind: str
) -> None:
    data, notes = benchmark(40), list[str]()
    scorings = ["generate", "options"] if kind == "openai" else ["generate"]
    endpoint, direct = FakeBatches(parity, kind), FakeEndpoint(parity)
    with serving(endpoint) as url, serving(direct) as other:
        asked = judge(url)
        outcome = run_judge(asked, data, tmp_path / "batch", scorings, repeats=2, note=notes.append)
        run_judge(judge(other, batch=False), data, tmp_path / "direct", scorings, repeats=2)
    assert verdicts(tmp_path / "batch") == verdicts(tmp_path / "direct")
    # Both repeats are in one batch, although their messages are the same.
    assert (outcome.judged, len(endpoint.batches), endpoint.bodies) == (160, 1, [])
    assert asked.spent == pytest.approx(160 * EACH / 2)
    rows = read_log(tmp_path / "batch")
    assert rows["cost_usd"].to_pylist() == pytest.approx([EACH / 2] * len(rows))
    most = most_cost([Request("", "x" * 300, ())], {"price": PRICE, "batch": True})
    assert most == most_cost([Request("", "x" * 300, ())], {"price": PRICE}) / 2  # type: ignore[operator]
    assert any("at most $" in note and "half the price" in note for note in notes)


def test_a_run_looks_at_three_prompts_directly_and_is_the_same_run_without_the_flag(
    tmp_path: Path,
) -> None:
    endpoint = FakeBatches(longer)
    asked = {"tasks": ["factuality"], "limit": 5, "scoring": "generate", "out": tmp_path / "run"}
    with serving(endpoint) as url:
        options = {"engine": "api", "base_url": url, "price": PRICE}
        report = judgesense.run("fake", **asked, **options, batch=True)
        n_prompts = len({row["prompt_id"] for row in read_log(tmp_path / "run").to_pylist()})
        assert len(endpoint.bodies) == 3
        assert [len(each) for each in endpoint.prompts.values()] == [n_prompts - 3]
        again = judgesense.run("fake", **asked, **options)
    assert len(endpoint.bodies) == 3
    assert report.cells == again.cells
    cost = sum(read_log(tmp_path / "run")["cost_usd"].to_pylist())
    assert cost == pytest.approx((3 + (n_prompts - 3) / 2) * EACH)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_killed_while_it_waits_leaves_its_batch_to_the_next(
    tmp_path: Path, kind: str
) -> None:
    endpoint = FakeBatches(longer, kind)
    endpoint.held = True
    command = [sys.executable, "-c", "from judgesense.cli import main; main()", "run"]
    command += ["--judge", "fake", "--out"]
    with serving(endpoint) as url:
        command += [str(tmp_path / "run"), "--engine", "api", "--set", f"base_url={url}", "--batch"]
        command += ["--tasks", "factuality", "--limit", "5", "--scoring", "generate"]
        process = subprocess.Popen(command)
        _until(lambda: sum(endpoint.looks.values()) > 1)
        process.kill()
        process.wait()
        endpoint.held = False
        subprocess.run(command, check=True)
    assert len(endpoint.batches) == 1
    assert set(endpoint.paid.values()) == {1}
    assert len(endpoint.bodies) == 3
    assert len(verdicts(tmp_path / "run")) == len(endpoint.paid) + 3


def _until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_whose_confirmation_was_lost_is_found_again(tmp_path: Path, kind: str) -> None:
    data, endpoint = benchmark(20), FakeBatches(parity, kind, drops_reply=True)
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError, match="not confirmed"):
            run_judge(judge(url), data, tmp_path, ["generate"])
        assert len(endpoint.batches) == 1
        run_judge(judge(url), data, tmp_path, ["generate"])
    assert len(endpoint.batches) == 1
    assert len(verdicts(tmp_path)) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_never_arrived_is_sent_again(tmp_path: Path, kind: str) -> None:
    data, endpoint = benchmark(20), FakeBatches(parity, kind, drops_reply=True)
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError, match="not confirmed"):
            run_judge(judge(url), data, tmp_path, ["generate"])
        endpoint.batches.clear()
        if kind == "anthropic":
            # Another batch of the same size: the ids in its results tell that it is not ours.
            run_judge(judge(url, seed=1), data, tmp_path / "other", ["generate"])
        run_judge(judge(url), data, tmp_path, ["generate"])
    assert len(endpoint.batches) == (2 if kind == "anthropic" else 1)
    assert len(verdicts(tmp_path)) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_batch_keeps_what_is_done_and_the_same_command_asks_the_rest(
    tmp_path: Path, kind: str
) -> None:
    data, endpoint = benchmark(20), FakeBatches(parity, kind, expires_at=25)
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError, match="15 of 40 prompts were not asked"):
            run_judge(judge(url), data, tmp_path, ["generate"])
        endpoint.expires_at = None
        asked = judge(url)
        run_judge(asked, data, tmp_path, ["generate"])
    assert [len(each) for each in endpoint.prompts.values()] == [40, 15]
    assert set(endpoint.paid.values()) == {1}
    assert len(verdicts(tmp_path)) == 40
    assert asked.spent == pytest.approx(40 * EACH / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_fails_is_asked_again_by_a_rerun_alone(tmp_path: Path, kind: str) -> None:
    data = benchmark(20)
    endpoint = FakeBatches(parity, kind, breaks=lambda text: "Number 7 " in text)
    with serving(endpoint) as url:
        first = run_judge(judge(url), data, tmp_path, ["generate"])
        assert len(first.failed) == 2
        assert all("overloaded" in line for line in first.failed)
        endpoint.breaks = lambda _: False
        again = run_judge(judge(url), data, tmp_path, ["generate"])
    assert (again.failed, again.retried) == ([], 2)
    assert [len(each) for each in endpoint.prompts.values()] == [40, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_an_overloaded_server_and_a_cut_download_are_outlasted(tmp_path: Path, kind: str) -> None:
    data, endpoint = benchmark(20), FakeBatches(parity, kind, fails_looks=3, cuts_results=True)
    notes: list[str] = []
    with serving(endpoint) as url:
        asked = judge(url)
        run_judge(asked, data, tmp_path, ["generate"], note=notes.append)
    assert len(verdicts(tmp_path)) == 40
    assert asked.spent == pytest.approx(40 * EACH / 2)
    assert [note for note in notes if "keeps trying" in note]
    assert not endpoint.cuts_results


@pytest.mark.parametrize(("kind", "field"), [("openai", "status"), ("anthropic", "request_counts")])
def test_a_reply_that_is_not_the_protocols_is_an_error(
    tmp_path: Path, kind: str, field: str
) -> None:
    data, endpoint = benchmark(5), FakeBatches(parity, kind, forgets=field)
    with serving(endpoint) as url, pytest.raises(JudgeSenseError, match=field):
        run_judge(judge(url), data, tmp_path, ["generate"])


def test_a_parameter_that_the_model_refuses_is_left_out_of_a_second_batch(tmp_path: Path) -> None:
    data, endpoint = benchmark(10), FakeBatches(parity, refused="temperature")
    with serving(endpoint) as url:
        outcome = run_judge(judge(url), data, tmp_path, ["generate"])
    assert outcome.failed == []
    assert ["temperature" in each[0] for each in endpoint.prompts.values()] == [True, False]
    assert set(endpoint.paid.values()) == {1}


def test_a_batch_that_fails_validation_costs_nothing_and_says_why(tmp_path: Path) -> None:
    data, endpoint = benchmark(10), FakeBatches(parity, invalid="Enqueued token limit reached")
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError, match="Enqueued token limit reached"):
            run_judge(judge(url), data, tmp_path, ["generate"])
        endpoint.invalid = ""
        run_judge(judge(url), data, tmp_path, ["generate"])
    assert len(endpoint.batches) == 2
    assert set(endpoint.paid.values()) == {1}


def test_ctrl_c_while_waiting_says_how_to_come_back(tmp_path: Path) -> None:
    data, endpoint = benchmark(10), FakeBatches(parity)
    endpoint.held = True

    def interrupt() -> None:
        _until(lambda: sum(endpoint.looks.values()) > 1)
        os.kill(os.getpid(), signal.SIGINT)

    with serving(endpoint) as url:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(JudgeSenseError, match=r"20 prompts .*batch_0; rerun the same"):
            run_judge(judge(url), data, tmp_path, ["generate"])
        thread.join()
        endpoint.held = False
        run_judge(judge(url), data, tmp_path, ["generate"])
    assert len(endpoint.batches) == 1
    assert len(verdicts(tmp_path)) == 20


def test_a_budget_counts_half_the_price(tmp_path: Path) -> None:
    data, endpoint = benchmark(20), FakeBatches(parity)
    with serving(endpoint) as url:
        needed = judge(url, batch=False).estimate([Request("", "x" * 30, ())] * 40)
        assert needed is not None
        run_judge(judge(url, max_cost=0.7 * needed), data, tmp_path, ["generate"])
    assert len(verdicts(tmp_path)) == 40


def test_an_endpoint_without_a_batch_api_is_named_before_a_prompt_is_sent(tmp_path: Path) -> None:
    endpoint = FakeEndpoint(parity)
    command = ["run", "--judge", "fake", "--out", str(tmp_path / "run"), "--engine", "api"]
    with serving(endpoint) as url:
        found = CliRunner().invoke(app, [*command, "--set", f"base_url={url}", "--batch"])
    assert re.search("--batch.*HTTP 404", str(found.exception))
    assert not endpoint.bodies


def test_a_local_judge_or_a_file_of_verdicts_takes_no_batch(tmp_path: Path) -> None:
    (tmp_path / "verdicts.csv").write_text("verdict,gold\nA,B\n")
    local = ["run", "--judge", "smollm2-135m", "--out", str(tmp_path / "run"), "--batch"]
    for command in (local, ["check", str(tmp_path / "verdicts.csv"), "--batch"]):
        found = CliRunner().invoke(app, command)
        assert isinstance(found.exception, JudgeSenseError)
        assert "--batch" in str(found.exception)


def test_a_damaged_record_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    data, endpoint = benchmark(10), FakeBatches(parity, expires_at=5)
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError):
            run_judge(judge(url), data, tmp_path, ["generate"])
        (record,) = (tmp_path / "decisions").glob(".batches-*.json")
        record.write_text(record.read_text()[:50])
        with pytest.raises(JudgeSenseError, match=record.name):
            run_judge(judge(url), data, tmp_path, ["generate"])
    assert len(endpoint.batches) == 1


RUBRIC = "Is this number even? Answer YES or NO.\n\n{number}"


def even(message: str) -> str:
    """Right on most numbers; on others only if it may give its reasons."""
    number = int(message.split()[-1])
    is_even = number % 2 == 0 if number % 5 or "reason" in message.casefold() else number % 4 == 0
    return "YES" if is_even else "NO"


@pytest.fixture
def rubric(tmp_path: Path) -> tuple[str, str]:
    rows = [{"number": str(n), "gold": "NO" if n % 2 else "YES"} for n in range(60)]
    (tmp_path / "even.txt").write_text(RUBRIC)
    (tmp_path / "even.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(tmp_path / "even.txt"), str(tmp_path / "even.jsonl")


def test_a_check_and_its_rerun_send_one_batch(rubric: tuple[str, str], tmp_path: Path) -> None:
    endpoint = FakeBatches(even)
    with serving(endpoint) as url:
        command = ["check", rubric[0], "--data", rubric[1], "--judge", "fake", "--batch"]
        command += ["--set", f"base_url={url}", "--paraphrases", "0", "--out", str(tmp_path / "c")]
        found = [CliRunner().invoke(app, command) for _ in range(2)]
    assert found[0].exit_code == found[1].exit_code in (0, 1, 3)
    assert len(endpoint.batches) == 1
    assert len(endpoint.bodies) == 3
    assert not failed_prompts(tmp_path / "c")


@pytest.mark.slow
def test_improve_sends_a_batch_a_stage_and_its_file_is_asked_in_batches(
    rubric: tuple[str, str], tmp_path: Path
) -> None:
    found = {}
    endpoint, direct = FakeBatches(even), FakeEndpoint(even)
    with serving(endpoint) as url, serving(direct) as other:
        for name, place, batch in (("batch", url, True), ("direct", other, False)):
            options = {"base_url": place, "batch": batch, "note": str, "budget": 8}
            out = tmp_path / f"{name}.yaml"
            found[name] = judgesense.improve(*rubric, "fake", out=out, **options)
        n_search, n_direct = len(endpoint.batches), len(endpoint.bodies)
        assert n_search <= 4
        assert n_direct == 3
        written = {name: each.written for name, each in found.items()}
        assert written["batch"] == written["direct"]
        run = {"templates": tmp_path / "even.yaml", "items": rubric[1], "batch": True}
        (tmp_path / "even.yaml").write_text(
            "tasks:\n  rubric:\n    labels: [YES, NO]\n    layout: '{instruction}'\n"
            f"    templates:\n      - {{id: ask, text: {json.dumps(RUBRIC)}}}\n"
        )
        judgesense.run(tmp_path / "batch.yaml", **run, out=tmp_path / "run", note=str)
    assert len(endpoint.batches) == n_search + 1
    assert len(endpoint.bodies) == n_direct
