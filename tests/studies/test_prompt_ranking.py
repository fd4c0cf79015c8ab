"""`judgesense study prompt-ranking`: its statistics on known populations, and its runs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from judgesense.answers.matching.numbers import match_number, read_number
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.statistics.ranking import (
    held_out,
    pair_flips,
    ranking_stability,
    redrawn_scores,
    seed_scores,
    selection_gain,
)
from judgesense.studies.common.study import published
from judgesense.studies.prompt_ranking import RankingPlan, prompt_ranking, rank_scores
from judgesense.studies.prompt_ranking.grid import SHOTS

SMALL = RankingPlan(sizes=(10, 20), tasks=("mmlu",), limit=30)


def population(means: Iterable[float], sds: Iterable[float], draws: int = 4000) -> np.ndarray:
    """Scores of prompts with known means under five seeds, many times: (draws, 5, prompts)."""
    rng = np.random.default_rng(7)
    center, spread = np.array(list(means)), np.array(list(sds))
    return center + spread * rng.standard_normal((draws, 5, len(center)))


def test_lcb_beats_the_mean_where_noise_differs_and_merit_does_not_come_with_it() -> None:
    # Ten steady prompts, ten erratic ones that are worse and now and then look best.
    means = [0.60] * 10 + [0.56] * 10
    gain = selection_gain(population(means, [0.01] * 10 + [0.12] * 10), z=1.0)
    assert gain["gain"] > 0.01
    assert gain["lcb_better"] > 1.5 * gain["lcb_worse"]


def test_lcb_ties_with_the_mean_where_noise_is_the_same_for_all() -> None:
    means = np.linspace(0.5, 0.6, 20)
    gain = selection_gain(population(means, [0.03] * 20), z=1.0)
    assert abs(gain["gain"]) < 0.004
    assert gain["mean_redrawn"] == pytest.approx(gain["lcb_redrawn"], abs=0.004)


def test_lcb_loses_where_the_best_prompt_is_the_erratic_one() -> None:
    gain = selection_gain(population([0.60, 0.66], [0.0, 0.12]), z=2.0)
    assert gain["gain"] < -0.005


def test_a_known_ranking_is_found_the_better_the_less_noise_there_is() -> None:
    means = np.linspace(0.4, 0.6, 20)
    rho = [
        ranking_stability(population(means, [sd] * 20, draws=1)[0]).spearman_mean
        for sd in (0.2, 0.05, 0.0)
    ]
    assert rho[0] is not None
    assert rho[1] is not None
    assert rho[0] < rho[1] < 1.0
    assert rho[2] == pytest.approx(1.0)
    steady = ranking_stability(population(means, [0.0] * 20, draws=1)[0])
    assert (steady.selected_mean, steady.selected_lcb, steady.unique_top1) == (19, 19, 1)


@pytest.mark.parametrize("z", [0.0, 1.0])
def test_many_sets_at_once_give_what_each_gives_alone(z: float) -> None:
    scores = np.round(population(np.linspace(0.4, 0.6, 8), [0.05] * 8, draws=40), 2)
    found = held_out(scores, z)
    for one, table in zip(found, scores, strict=True):
        alone = ranking_stability(table, z=z)
        expected = alone.loso_lcb_mean if z else alone.loso_mean_mean
        assert one.mean() == pytest.approx(expected)


def test_a_seed_shows_all_prompts_the_same_items_and_its_sizes_are_nested() -> None:
    items = np.arange(40.0)
    grid = np.stack([items, items])
    small, large = (seed_scores(grid, size, [(0, n) for n in range(5)]) for size in (10, 20))
    assert (small[:, 0] == small[:, 1]).all()
    assert len(set(small[:, 0].tolist())) == 5
    one = np.eye(40)[:, :]
    inside = seed_scores(one, 10, [(0, 1)])[0] > 0
    outside = seed_scores(one, 20, [(0, 1)])[0] > 0
    assert inside.sum() == 10
    assert (outside & inside).sum() == 10
    assert large.shape == (5, 2)


def test_redrawn_subsets_have_their_size_and_repeat_no_item() -> None:
    means = redrawn_scores(np.eye(30), 12, k=4, draws=3, seed=0)
    assert means.shape == (3, 4, 30)
    assert ((means > 0).sum(axis=-1) == 12).all()
    assert np.allclose(means.sum(axis=-1), 1.0)


def test_prompts_that_are_equal_never_flip_and_close_ones_flip_more_than_distant_ones() -> None:
    n = np.arange(400)
    base = (n % 2 == 0).astype(float)
    # As good as base but for eight items, and on other items; and far better than both.
    close, far = ((n + (n < 204)) % 2 == 0).astype(float), (n % 10 > 0).astype(float)
    grid = np.stack([base, base, close, far])
    flips = pair_flips(grid, redrawn_scores(grid, 50, k=5, draws=200, seed=0))
    pairs = list(combinations(range(4), 2))
    by_pair = dict(zip(pairs, flips.flips.tolist(), strict=True))
    near = dict(zip(pairs, flips.near_tied.tolist(), strict=True))
    assert by_pair[0, 1] == 0
    assert by_pair[0, 2] > 0.2 > 0.01 > by_pair[0, 3]
    assert (near[0, 2], near[0, 3]) == (True, False)
    assert flips.share_of_flips(flips.near_tied) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("She has 3 and 4, so 7 in total.", "7"),
        ("... 12\n#### 1,234", "1234"),
        (r"So $x = \boxed{42}$, not 17", "42"),
        ("The answer is 3 + 4 = 7 apples", "7"),
        ("The answer is $18 for 2 days", "18"),
        ("-3.5", "-3.5"),
        ("To answer the question, we add 3 and 10 to get 13", "13"),
        ("To answer the question: we add 3 and 10 to get 13.", "13"),
        ("The answer to the question is found by adding 3 and 10, which is 13.", "13"),
        ("Answer: Janet sells 16 - 3 - 4 = 9 eggs, for $2 each, she makes $18.", "18"),
        ("Answer: 3 eggs are eaten, so 16 - 3 = 13", "13"),
        ("Answer: She needs 4 cups. The answer is 12 cups.", "12"),
        ("**Final Answer:** $18 per day\nNote: 5 eggs stay.", "18"),
        ("Answer:\n13\nfor 3 people", "13"),
        ('{"answer": 13, "steps": 2}', "13"),
        ("So 13 is the answer, since 10 + 3.", "13"),
        ("The answer is not 12 but 13", "13"),
        ("I will answer in 2 steps: first 4, then 9", "9"),
        ("#### <number>\nThe answer is 5. There are 3 left.", "5"),
        ("I cannot tell", None),
        ("", None),
    ],
)
def test_the_number_that_an_answer_gives_is_read(text: str, number: str | None) -> None:
    assert read_number(text).value == number


@pytest.mark.parametrize("text", ["answer ", "1 is the ", "answer: =", "1,", "the answer is 1 "])
def test_a_megabyte_without_an_end_is_read(text: str) -> None:
    expected = {"answer ": None, "answer: =": None}.get(text, "1")
    found = read_number(text * (1_000_000 // len(text))).value
    assert (found and found[:1]) == expected


def test_numbers_match_by_value_and_not_by_their_writing() -> None:
    result = match_number(["18.00", "1,000", "17"], ["18", "1000", "18"])
    assert result.per_example == [1.0, 1.0, 0.0]


def test_a_reference_that_is_no_number_is_named_with_its_row() -> None:
    with pytest.raises(JudgeSenseError, match="row 1: '1/2'"):
        match_number(["18", "0.5"], ["18", "1/2"])


def write_scores(path: Path, rows: Iterable[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "item", "score"])
        writer.writerows(rows)
    return path


@pytest.mark.slow
def test_a_score_table_of_ones_own_needs_no_model(
    tmp_path: Path, golden: Callable[[Result, str], None]
) -> None:
    rng = np.random.default_rng(0)
    means = np.linspace(0.2, 0.8, 6)
    rows = [(f"p{p}", i, int(rng.random() < m)) for p, m in enumerate(means) for i in range(60)]
    scores = write_scores(tmp_path / "mine.csv", rows)
    result = rank_scores(scores, plan=RankingPlan(sizes=(20, 40)))
    golden(result, "prompt-ranking")
    assert all(row["spearman_mean"] > 0.6 for row in result.table("stability").rows)
    assert result.table("prompts").rows[0]["prompt"] == "p5"
    result.write(tmp_path / "out")
    pictures = {path.stem for path in (tmp_path / "out" / "figures").glob("*.png")}
    assert pictures == {"flips-by-gap", "stability-by-size"}
    # Without a task or a model, the file is named.
    assert {row["task"] for row in result.table("stability").rows} == {"mine.csv"}
    assert result.settings["items"] == ["mine.csv: 60"]
    assert all(picture.caption.startswith("mine.csv: ") for picture in result.pictures)


def test_the_choice_is_compared_over_several_z(tmp_path: Path, command_line: Any) -> None:
    rng = np.random.default_rng(1)
    rows = [(f"p{p}", i, round(rng.normal(0.5, p / 9), 6)) for p in range(5) for i in range(60)]
    scores, out = write_scores(tmp_path / "mine.csv", rows), tmp_path / "out"
    command = ["study", "prompt-ranking", "--scores", str(scores), "--sizes", "20", "--out", out]
    done = command_line(*command, "--z", "1,0,3")
    assert done.returncode == 0, done.stderr
    tables = json.loads((out / "study.json").read_text("utf-8"))["tables"]
    found = {row["z"]: row for row in tables["selection"]["rows"]}
    assert list(found) == [0, 1, 3]
    assert (found[0]["gain"], found[0]["loso_lcb_mean"]) == (0, found[1]["loso_mean_mean"])
    assert found[1]["gain"] != found[3]["gain"]
    # What is chosen on four seeds by hand.
    table = np.array([float(row[2]) for row in rows]).reshape(5, 60)
    seeds = seed_scores(table, 20, [(0, number) for number in range(5)])
    held = []
    for left_out in range(5):
        rest = np.delete(seeds, left_out, axis=0)
        bound = rest.mean(axis=0) - 3 * rest.std(axis=0, ddof=1) / 2
        held.append(seeds[left_out, bound.argmax()])
    assert found[3]["loso_lcb_mean"] == pytest.approx(np.mean(held))
    refused = command_line(*command, "--z", "one")
    assert "0.5,1,2" in refused.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 1, 1), ("b", 1, "good")], "row 2, score: .* found 'good'"),
        ([("a", 1, 1), ("b", 1, "nan")], "row 2, score: .*finite"),
        ([("a", 1, 1), ("a", 1, 0)], "row 2: prompt 'a' on item '1' appears twice"),
        ([("a", 1, 1), ("b", 2, 0)], "no score of prompt 'a' on item '2'"),
        ([("a", 1, ""), ("b", 1, 0)], "row 1, score: "),
        ([("a", 1, 1), ("a", 2, 0)], "one prompt only"),
    ],
)
def test_a_damaged_score_table_is_refused_with_its_place(
    tmp_path: Path, rows: list[tuple[object, ...]], said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        rank_scores(write_scores(tmp_path / "mine.csv", rows), plan=SMALL)


def test_subsets_that_would_be_the_whole_set_are_refused(tmp_path: Path) -> None:
    rows = [(p, i, (p + i) % 2) for p in range(3) for i in range(20)]
    with pytest.raises(JudgeSenseError, match="subsets of 20 of 20 items"):
        rank_scores(write_scores(tmp_path / "mine.csv", rows), plan=SMALL)
    with pytest.raises(JudgeSenseError, match="seeds must be at least 3"):
        RankingPlan(seeds=2)


@pytest.mark.parametrize(
    ("responders", "said"),
    [
        ([], "no responder given"),
        (["no-such-model"], "unknown judge 'no-such-model'"),
        (["smollm2-135m", "smollm2-135m"], "given twice"),
    ],
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    tmp_path: Path, responders: list[str], said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        prompt_ranking(responders, tmp_path / "out", plan=SMALL)
    assert not (tmp_path / "out" / "answers").exists()


@pytest.mark.slow
def test_a_mirror_without_the_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="lacks the set cais/mmlu"):
        prompt_ranking(["smollm2-135m"], tmp_path / "out", plan=SMALL, mirror=tmp_path)


def knows_every_second(messages: list[str]) -> list[str]:
    """Answers by the length of the message: another answer under every prompt."""
    return [f"The answer is {'ABCD'[len(message) % 4]}." for message in messages]


@pytest.mark.slow
def test_a_function_can_answer_and_a_finished_study_is_measured_without_asking(
    tmp_path: Path, mirror: Path
) -> None:
    plan = RankingPlan(tasks=("mmlu",), limit=24, sizes=(8, 16))
    asked: list[str] = []

    def answers(messages: list[str]) -> list[str]:
        asked.extend(messages)
        return knows_every_second(messages)

    first = prompt_ranking([answers], tmp_path, plan=plan, mirror=mirror, note=lambda _: None)
    assert len(asked) == 20 * 24
    # Neither the mirror nor the function is needed again; other sizes are subsets of the grid.
    again = prompt_ranking([answers], tmp_path, plan=plan, note=lambda _: None)
    other = prompt_ranking(
        [answers], tmp_path, plan=RankingPlan(("mmlu",), 24, (4, 12), seeds=6), note=lambda _: None
    )
    assert len(asked) == 20 * 24
    assert again.as_json() == first.as_json()
    assert {row["size"] for row in other.table("stability").rows} == {4, 12}


def test_examples_shift_the_answers_of_a_model_that_copies_them(
    tmp_path: Path, mirror: Path
) -> None:
    def copies(messages: list[str]) -> list[str]:
        """The letter below the last solved question, else A."""
        letters = [re.findall(r"(?m)^([ABCD])$", message) for message in messages]
        assert {len(found) for found in letters} <= {0, SHOTS}
        return [f"The answer is {found[-1] if found else 'A'}." for found in letters]

    plan = RankingPlan(("arc-challenge", "arc-challenge+few-shot"), 12, (4,))
    result = prompt_ranking([copies], tmp_path, plan=plan, mirror=mirror, note=lambda _: None)
    items, more = (
        json.loads((tmp_path / folder / "arc-challenge.json").read_text("utf-8"))["items"]
        for folder in ("items", "few-shot/items")
    )
    assert more[:12] == items
    right = ["ABCD"[item["correct"]] for item in more]
    (row,) = result.table("few_shot").rows
    assert row["zero_shot"] == pytest.approx(right[:12].count("A") / 12)
    assert row["few_shot"] == pytest.approx(right[:12].count(right[-1]) / 12)
    assert row["shift"] == pytest.approx(row["few_shot"] - row["zero_shot"])
    assert (row["n_prompts"], row["n_items"], row["spearman"]) == (20, 12, None)


@pytest.mark.slow
def test_items_drawn_otherwise_are_not_mixed_into_a_folder(tmp_path: Path, mirror: Path) -> None:
    plan = RankingPlan(tasks=("gsm8k",), limit=8, sizes=(4,))
    prompt_ranking([knows_every_second], tmp_path, plan=plan, mirror=mirror, note=lambda _: None)
    with pytest.raises(JudgeSenseError, match="was drawn with seed 0, not 1"):
        prompt_ranking(
            [knows_every_second],
            tmp_path,
            plan=RankingPlan(("gsm8k",), 8, (4,), seed=1),
            mirror=mirror,
        )


@pytest.mark.slow
def test_a_real_model_from_the_command_line(tmp_path: Path, mirror: Path) -> None:
    command = [
        "study",
        "prompt-ranking",
        "--limit",
        "3",
        "--sizes",
        "2",
        "--tasks",
        "mmlu",
        "--scoring",
        "both",
        "--set",
        "max_tokens=2",
        "--responder",
        "smollm2-135m",
        "--mirror",
        str(mirror),
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    tables = json.loads((tmp_path / "study.json").read_text())["tables"]
    names = {row["task"] for row in tables["stability"]["rows"]}
    assert names == {"mmlu, generate", "mmlu, options"}
    assert len(tables["prompts"]["rows"]) == 40
    paper = {row["paper"] for row in tables["published"]["rows"]}
    assert paper == {figure.value for figure in published("prompt-ranking").values()}
