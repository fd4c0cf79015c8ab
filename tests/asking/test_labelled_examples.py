"""Labelled examples in the prompt come from the search half, and are not tried on."""

from __future__ import annotations

from pathlib import Path

from production_server import facts, is_supported, share

import judgesense
from judgesense.ask.plan import ImproveOptions, Plan
from judgesense.ask.search import halves
from local_judges.improved_judge import read_improved

RUBRIC = "Is the answer fine? Answer YES or NO.\n\nContext: {context}\nAnswer: {answer}"
ROWS = [
    {**row, "human": "YES" if right else "NO", "cluster_id": f"c{n // 2}"}
    for n, (row, right) in enumerate(facts(140))
]


def learns(prompts: list[str]) -> list[str]:
    """Guesses, unless examples show what is meant."""
    answers = []
    for prompt in prompts:
        case = prompt.rpartition("Now judge this case:")
        knows = share(prompt) < (0.95 if case[1] else 0.3)
        answers.append("YES" if is_supported(case[2]) or not knows else "NO")
    return answers


def test_examples_are_of_the_search_half_alone(tmp_path: Path) -> None:
    plan = Plan.of(RUBRIC, ROWS, learns, ImproveOptions(out=tmp_path / "j.yaml"), {})
    wording, taken = plan.examples
    assert wording is not None
    search, held = halves(plan.gold, plan.clusters, 0)
    text = wording.template.text
    shown = [n for n, item in enumerate(plan.items) if item.fields["context"] in text]
    assert len(shown) == 4
    assert {ROWS[n]["human"] for n in shown} == {"YES", "NO"}
    # Whole clusters leave the race, and none of them is promised on.
    assert {*plan.clusters[shown]} == {*plan.clusters[taken]}
    assert not {*plan.clusters[held]} & {*plan.clusters[shown]}
    assert {*shown} <= {*taken.tolist()} <= {*search.tolist()}


def test_examples_that_help_are_written(tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    best = judgesense.improve(RUBRIC, ROWS, learns, budget=16, out=out, note=str)
    assert best.way == "rubric+examples"
    assert best.better is True
    assert "Examples with their right verdicts" in read_improved(out).base.text
    with judgesense.load_judge(out, judge=learns) as judge:
        verdicts = judge(ROWS)
    right = sum(v.verdict == row["human"] for v, row in zip(verdicts, ROWS, strict=True))
    assert right / len(ROWS) > 0.9
