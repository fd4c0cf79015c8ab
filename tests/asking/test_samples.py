"""A judge that draws its answers: the majority of several is tried, measured and priced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from production_server import Server, facts, is_supported, serving, share

import judgesense
from judgesense.serve.served_judge import load_served
from local_judges.improved_judge import read_improved

from test_one_file_everywhere import RUBRIC, chat, running  # isort: skip

ROWS = [{**row, "human": "YES" if right else "NO"} for row, right in facts(60)]


class Drawn(Server):
    """Wrong in one of three samples, another one for each prompt."""

    def respond(self, body: dict[str, Any]) -> tuple[int, str]:
        status, text = super().respond(body)
        prompt, reply = body["messages"][-1]["content"], json.loads(text)
        is_wrong = (int(1000 * share(prompt)) + body["seed"]) % 3 == 0
        word = "YES" if is_supported(prompt) != is_wrong else "NO"
        reply["choices"][0]["message"]["content"] = word
        return status, json.dumps(reply)


@pytest.mark.slow
def test_the_majority_of_three_samples_is_a_recipe(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    asked: dict[str, Any] = {"temperature": 0.7, "price": (0.1, 0.1), "note": str}
    with serving(server := Drawn(lambda _: "YES")) as url:
        best = judgesense.improve(RUBRIC, ROWS, "m", base_url=url, budget="$0.2", out=out, **asked)
        sent = len(server.bodies)
        with judgesense.load_judge(out) as loaded:
            verdicts = [each.verdict for each in loaded(ROWS)]
        asked_again = len(server.bodies) - sent
        with (
            running(load_served(out)) as own,
            openai.OpenAI(base_url=f"{own}/v1", api_key="any") as client,
        ):
            items = [{k: v for k, v in row.items() if k != "human"} for row in ROWS]
            replies = [chat(client, RUBRIC.strip().format(**item)) for item in items]
    (row,) = [row for row in best.rows if row["way"] == "majority of 3 answers"]
    (yours,) = [row for row in best.rows if row["way"] == "as asked"]
    assert row["prompts_per_item"] == 3
    assert row["usd_per_item"] > 2 * yours["usd_per_item"] > 0
    assert (row["right"], row["written"]) == (1.0, True)
    assert 0.4 < yours["right"] < 0.85
    assert read_improved(out).recipe.read == "vote"
    # Three samples of each prompt, which differ by their seeds.
    assert asked_again == 3 * len(ROWS)
    assert verdicts == [row["human"] for row in ROWS]
    assert [reply.choices[0].message.content for reply in replies] == verdicts


def test_a_judge_that_draws_nothing_is_not_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    with serving(Drawn(lambda _: "YES")) as url:
        best = judgesense.improve(RUBRIC, ROWS, "m", base_url=url, budget=6, out=out, note=str)
    assert not [row for row in best.rows if "majority" in row["way"]]
