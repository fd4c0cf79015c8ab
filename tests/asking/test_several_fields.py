"""A rubric that asks for several verdicts in one reply: one call, one task for each of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from production_server import Server, facts, is_supported, serving, share

import judgesense
from judgesense.errors import JudgeSenseError

RUBRIC = """Grade the answer of a bank's assistant.

{context}
{answer}

Reply with JSON only:
{"reasoning": "<one sentence>", "correctness": 0 or 1, "tone": 1-5, "brevity": 1-5}
"""
TONES = [1 + number % 5 for number in range(60)]
ROWS = [
    {
        **row,
        "answer": f"{row['answer']} ({'!' * tone})",
        "human_correctness": "correct" if right else "incorrect",
        "tone_expert": str(tone),
    }
    for (row, right), tone in zip(facts(60), TONES, strict=True)
]


def graded(prompt: str) -> str:
    """Right on correctness but for 12%, one too low on each fifth tone; mutters 5 as brevity."""
    tone = re.search(r"\((!+)\)", prompt)
    right = is_supported(prompt.replace(f" {tone[0]}", "")) != (share(prompt) < 0.12)  # type: ignore[index]
    said = len(tone[1]) - (share(prompt + "tone") < 0.2)  # type: ignore[index]
    return json.dumps({"reasoning": "3 claims.", "correctness": int(right), "tone": max(said, 1)})


def test_each_field_is_a_task_of_one_call(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"paraphrases": 0, "repeats": 1, "attacks": "none", "note": str}
    with serving(server := Server(graded)) as url:
        result = judgesense.check(RUBRIC, ROWS, "m", base_url=url, out=tmp_path / "out", **asked)
        first = len(server.bodies)
        with pytest.raises(JudgeSenseError, match="--human tone_expert"):
            judgesense.improve(RUBRIC, ROWS, "m", base_url=url, out=tmp_path / "j.yaml", note=str)
        tone = judgesense.check(
            RUBRIC, ROWS, "m", base_url=url, out=tmp_path / "tone", human="tone_expert", **asked
        )
    assert (first, len(server.bodies)) == (60, 120)
    found = {row["task"]: row for row in result.people}
    assert found.keys() == {"correctness", "tone"}
    assert 0.8 < found["correctness"]["accuracy"] < 0.96
    assert 0.7 < found["tone"]["accuracy"] < 0.95
    assert {card["task"] for card in result.trust} == {"correctness", "tone"}
    (alone,) = tone.people
    assert alone["accuracy"] == found["tone"]["accuracy"]


def test_a_reply_without_a_field_has_no_verdict_on_it(tmp_path: Path) -> None:
    def without_tone(prompt: str) -> str:
        reply = json.loads(graded(prompt))
        tone = reply.pop("tone")
        return json.dumps({**reply, "brevity": tone})

    with serving(Server(without_tone)) as url:
        result = judgesense.check(
            *(RUBRIC, ROWS, "m"),
            **{"base_url": url, "paraphrases": 0, "repeats": 1, "attacks": "none", "note": str},
            out=tmp_path / "out",
        )
    found = {row["task"]: row for row in result.people}
    assert found["tone"]["accuracy"] is None
    assert found["correctness"]["accuracy"] > 0.8
