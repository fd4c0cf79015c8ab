"""Answer-matching and prompt-ranking: seeds, answer folders and template files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.studies.answer_matching import answer_matching
from judgesense.studies.common.question_sets import check_models, folder_names
from judgesense.studies.prompt_ranking import RankingPlan, prompt_ranking


def quiet(_: str) -> None:
    """Hear nothing."""


def says_a(messages: list[str]) -> list[str]:
    return ["The answer is A." for _ in messages]


def stored_items(out: Path, benchmark: str, n: int, seed: int) -> Path:
    """A study's folder with its items drawn already, so that no set is needed."""
    items = [
        {
            "item_id": f"i{at}",
            "question": f"Question {at}?",
            "answers": [f"right {at}"],
            "options": [f"right {at}", "b", "c", "d"],
            "correct": 0,
            "context": "",
        }
        for at in range(n)
    ]
    asked = {"benchmark": benchmark, "items": n, "seed": seed}
    source = {"set": benchmark, "revision": "none", "license": "none", "items": n, "of": n}
    (out / "items").mkdir(parents=True)
    (out / "items" / f"{benchmark}.json").write_text(
        json.dumps({"asked": asked, "source": source, "items": items})
    )
    return out


def seeds_in(out: Path) -> set[int]:
    records = [json.loads(path.read_text()) for path in out.glob("*/*/run.json")]
    return {record["asked"]["settings"]["seed"] for record in records}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7])
def test_answers_and_verdicts_are_drawn_by_the_seed_of_the_study(tmp_path: Path, seed: int) -> None:
    out = stored_items(tmp_path, "arc-challenge", 2, seed)
    plan: dict[str, Any] = {
        "benchmarks": ("arc-challenge",),
        "limit": 2,
        "n_templates": 2,
        "seed": seed,
    }
    answer_matching([says_a], out, grader=says_a, **plan, note=quiet)
    assert len(list(out.glob("*/*/run.json"))) == 2
    assert seeds_in(out) == {seed}


@pytest.mark.slow
def test_prompts_are_answered_by_the_seed_of_the_study(tmp_path: Path) -> None:
    out = stored_items(tmp_path, "mmlu", 6, 7)
    plan = RankingPlan(("mmlu",), limit=6, sizes=(2,), seed=7)
    prompt_ranking([says_a], out, plan=plan, note=quiet)
    assert seeds_in(out) == {7}


def test_models_that_end_the_same_get_folders_of_their_own() -> None:
    assert folder_names(["org/x", "team/x", "org/y", says_a]) == [
        "org--x",
        "team--x",
        "y",
        "says_a",
    ]
    check_models(["unsloth/SmolLM2", "HuggingFaceTB/SmolLM2"])
    with pytest.raises(JudgeSenseError, match="org--x is given twice"):
        check_models(["org/x", "org/x"])
