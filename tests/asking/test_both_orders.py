"""A judge that answers in text and prefers the first option is asked in both orders, or told of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from production_server import share

import judgesense
from local_judges.improved_judge import read_improved

RUBRIC = """Which reply helps more, A or B? Answer with one letter.

Customer: {message}

Reply A:
{reply_a}

Reply B:
{reply_b}
"""
POLITE = ("We value your letter.", "Our offices are bright.", "Thank you for writing.")
ROWS = [
    {
        "message": f"How do I return parcel {n}?",
        "reply_a": f"Use the blue form {n}." if n * 7 % 5 % 2 else POLITE[n % 3],
        "reply_b": POLITE[n % 3] if n * 7 % 5 % 2 else f"Use the blue form {n}.",
        "human": "A" if n * 7 % 5 % 2 else "B",
    }
    for n in range(120)
]
ASKED: dict[str, Any] = {"options": {"A": "reply_a", "B": "reply_b"}, "note": str}


def first(prompt: str, preference: float) -> str:
    """The first option with this preference, else the reply that helps, wrong on 3%."""
    helps = prompt.find("blue form") < min(x for p in POLITE if (x := prompt.find(p)) >= 0)
    chance = share(prompt)
    is_first = chance < preference or (helps if chance < 0.97 else not helps)
    words = ("1", "2") if " 1 or 2" in prompt else ("A", "B")
    word = words[0] if is_first else words[1]
    return json.dumps({"verdict": word}) if "JSON" in prompt else word


def judge_of(preference: float) -> Callable[[list[str]], list[str]]:
    def judge(prompts: list[str]) -> list[str]:
        return [first(prompt, preference) for prompt in prompts]

    return judge


def test_a_judge_that_prefers_the_first_reply_is_made_fair(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    best = judgesense.improve(RUBRIC, ROWS, judge_of(0.55), budget=40, out=out, **ASKED)
    recipe = read_improved(out).recipe
    with judgesense.load_judge(out, judge=judge_of(0.55)) as judge:
        one = judge(ROWS)
        turned = [{**r, "reply_a": r["reply_b"], "reply_b": r["reply_a"]} for r in ROWS]
        other = judge(turned)
    assert recipe.orders == ("AB", "BA")
    assert best.written["fair"] >= 0.9
    assert best.written["right"] > 0.75 > best.rows[0]["right"]
    swapped = {"A": "B", "B": "A"}
    same = [a.verdict == swapped.get(b.verdict, b.verdict) for a, b in zip(one, other, strict=True)]
    assert sum(same) / len(same) >= 0.9
    assert all(v.ask_person for v in one if v.verdict not in swapped)


def test_where_no_fair_way_is_found_that_is_said(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    best = judgesense.improve(RUBRIC, ROWS, judge_of(0.9), budget=12, out=out, **ASKED)
    assert len(read_improved(out).recipe.orders) == 1
    (told,) = [note for note in best.notes if "in the other order" in note]
    assert "gives a verdict on" in told


def test_a_fair_judge_is_asked_in_one_order(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    best = judgesense.improve(RUBRIC, ROWS, judge_of(0.0), budget=12, out=out, **ASKED)
    assert best.written["prompts_per_item"] == 1
    assert not any("in the other order" in note for note in best.notes)
