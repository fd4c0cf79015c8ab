"""What may be spent: budgets hold over judges and commands, and prices are numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, serving
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from local_judges.api.judge import ApiJudge
from local_judges.llm_matcher import judge_matches
from local_judges.parts import Interrupted
from local_judges.registry import resolve

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = {"templates": EXAMPLES / "politeness.yaml", "items": EXAMPLES / "politeness.jsonl"}
N_PROMPTS = 18


@pytest.mark.slow
def test_the_judges_of_a_run_share_its_budget_and_their_price_is_recorded(tmp_path: Path) -> None:
    endpoint = FakeEndpoint(lambda _: "RUDE")
    out = tmp_path / "run"
    with serving(endpoint) as url:
        asked = {**OWN, "engine": "api", "base_url": url, "scoring": "generate", "out": out}
        asked["max_tokens"] = 64
        # Enough for one judge's answers at their full length, but not for another's on top.
        stopped = r"stopped at 0 of 18 prompts: the next 18 .*\$0\.0094 is spent"
        with pytest.raises(Interrupted, match=stopped):
            judgesense.run(["a", "b"], **asked, price=(10, 10), max_cost=0.0247)
        assert len(endpoint.bodies) == N_PROMPTS
        # Taken up again, what the first judge spent before counts; another price is the same run.
        with pytest.raises(Interrupted, match=stopped):
            judgesense.run(["a", "b"], **asked, price=(11, 12), max_cost=0.0247)
    assert len(endpoint.bodies) == N_PROMPTS
    record = json.loads((out / "run.json").read_text("utf-8"))
    assert record["judges"][1]["price"] == {"input": 11, "output": 12}
    assert "price" not in json.dumps(record["asked"])


def test_a_matching_that_could_exceed_the_budget_asks_nothing() -> None:
    endpoint = FakeEndpoint(lambda _: "{'match': true, 'reason': 'x'}")
    questions = [f"q{n}" for n in range(30)]
    with serving(endpoint) as url:
        judge = ApiJudge("m", base_url=url, price=(10.0, 10.0), max_cost=0.001, max_tokens=256)
        with pytest.raises(JudgeSenseError, match=r"30 prompts .*--max-cost 0\.001 would be"):
            judge_matches(judge, questions, ["a"] * 30, ["b"] * 30)
        assert not endpoint.bodies
        judge = ApiJudge("m", base_url=url, price=(10.0, 10.0), max_cost=1.0, max_tokens=256)
        assert judge_matches(judge, questions, ["a"] * 30, ["b"] * 30).score == 1.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, True, "1"])
def test_a_price_or_budget_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(JudgeSenseError, match="price: must be two numbers from 0"):
        resolve("gpt-4o", price=(value, 1.0))
    with pytest.raises(JudgeSenseError, match="max_cost: must be"):
        resolve("gpt-4o", price=(1.0, 1.0), max_cost=value)


def test_a_check_takes_a_price_and_holds_its_budget(tmp_path: Path) -> None:
    for name in ("tone.txt", "tone.jsonl", "tone.wordings.txt"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text("utf-8"), "utf-8")
    endpoint = FakeEndpoint(lambda _: "POLITE")
    with serving(endpoint) as url:
        command = [
            "check",
            str(tmp_path / "tone.txt"),
            "--data",
            str(tmp_path / "tone.jsonl"),
            "--judge",
            "m",
            "--set",
            f"base_url={url}",
            "--set",
            "price=10,10",
            "--max-cost",
            "0",
            "--out",
            str(tmp_path / "out"),
        ]
        proposing = CliRunner().invoke(app, command)
        judging = CliRunner().invoke(
            app, [*command, "--wordings", str(tmp_path / "tone.wordings.txt")]
        )
    assert "--max-cost 0 would be exceeded" in str(proposing.exception)
    assert isinstance(judging.exception, Interrupted)
    assert not endpoint.bodies
