"""The search: halves of the items, the race on one of them, and recipes built from the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from answers_trial import CHOICE, no_answers, record

from judgesense.ask.answers import JudgeScoring
from judgesense.ask.candidates import combined_recipes, first_recipes
from judgesense.ask.search import halves, least_budget, race, search
from judgesense.statistics.calibration import longest_safe


def raced(right: Any, budget: float, clusters: Any = None) -> tuple[str, int]:
    """The winner of a race of wordings by text, right as in an array (ways, items), and prompts."""
    k, n = right.shape
    answers = no_answers(n, ["given"] * k, [JudgeScoring(0, "j", "generate")], clusters=clusters)

    def ask(grid: Any) -> None:
        for column, items in grid.items():
            hits = right[column[1], items]
            verdicts = np.stack([hits, ~hits], axis=1)
            answers.record(column, items, np.where(verdicts, 0.0, -np.inf))

    left, _ = race(
        answers, first_recipes(answers), np.arange(n), budget, ask, lambda *_: [], lambda _: None
    )
    return left[0].name, int(answers.spent)


def test_the_race_keeps_to_its_budget_and_finds_the_best() -> None:
    truth = np.random.default_rng(0).random((60, 200)) < np.linspace(0.5, 0.9, 60)[:, None]
    name, prompts = raced(truth, 3600)
    assert prompts <= 3600
    assert truth[int(name[1:])].mean() > 0.84


def test_many_wordings_are_first_tried_on_items_of_their_own() -> None:
    # 20 items would be tried with 200 wordings only twice; the last ones are the best.
    good = np.linspace(0.4, 0.95, 200)
    for seed, budget in ((0, 680), (1, 681), (2, 1500)):
        truth = np.random.default_rng(seed).random((200, 20)) < good[:, None]
        name, prompts = raced(truth, budget)
        assert prompts <= budget
        assert raced(truth, budget) == (name, prompts)
        assert truth[int(name[1:])].mean() >= 0.85


def test_the_race_asks_for_evidence_from_clusters() -> None:
    # The second is right on 4 more of 40 items, which are 40 clusters, or 4 of 10 items.
    right = np.repeat([[1, 0, 0, 1], [1, 1, 0, 0]], [14, 10, 10, 6], axis=1).astype(bool)
    assert raced(right, 80)[0] == "w1"
    assert raced(right, 80, np.arange(40) // 10)[0] == "as asked"


def test_halves_share_no_cluster_and_safe_levels_stop_at_the_first_failure() -> None:
    clusters = np.repeat(np.arange(30), 3)
    one, two = halves(np.arange(90) % 2, clusters, 0)
    assert not set(clusters[one]) & set(clusters[two])
    assert len(one) + len(two) == 90
    rare = (np.arange(40) > 37).astype(int)
    shares = [rare[halves(rare, np.arange(40), seed)[0]].sum() for seed in range(20)]
    assert shares == [1] * 20  # A rare label is in both halves; beyond that, chance decides:
    even = np.arange(40) % 2
    assert len({int(even[halves(even, np.arange(40), seed)[0]].sum()) for seed in range(20)}) > 2
    decided = np.tril(np.ones((200, 200), bool))
    safe = longest_safe(decided, decided & (np.arange(200) == 61))
    assert safe.step == 60
    assert longest_safe(decided[:, :40], decided[:, :40] * False).step is None


def test_first_recipes_begin_as_asked_and_fit_the_judge() -> None:
    kinds = ["given", "form", "alone", "reasoning"]
    options = no_answers(4, kinds, task=CHOICE)
    assert [recipe.name for recipe in first_recipes(options)] == [
        "as asked",
        "calibrated",
        "both orders",
        "w1",
        "w1, calibrated",
        "w2, each option alone",
        "w1, both orders",
    ]
    texts = no_answers(4, kinds, [JudgeScoring(0, "j", "generate")], task=CHOICE)
    assert [recipe.name for recipe in first_recipes(texts)] == [
        "as asked",
        "both orders",
        "w1",
        "w1, both orders",
        "w3, both orders",
        "w3",
    ]
    assert {recipe.read for recipe in first_recipes(texts)} == {"vote"}
    both = [JudgeScoring(0, "one", "options", 1.0), JudgeScoring(1, "two", "options", 3.0)]
    names = [recipe.name for recipe in first_recipes(no_answers(4, ["given"], both))]
    assert names == ["as asked", "one, calibrated", "two", "two, calibrated"]


def test_prices_count_a_prompt_once() -> None:
    both = [JudgeScoring(0, "one", "options", 1.0), JudgeScoring(1, "two", "options", 3.0)]
    answers = no_answers(4, ["given", "form"], both, task=CHOICE)
    recipes = {recipe.name: recipe for recipe in first_recipes(answers)}
    asked, orders = recipes["as asked"], recipes["one, both orders"]
    assert answers.price(asked) == 1.0
    assert answers.price(asked, orders, recipes["one, calibrated"]) == 2.0
    assert answers.price(asked, recipes["two, both orders"]) == 7.0
    assert least_budget(answers) == 4 * 2.0
    record(answers, (1, 0, 0), [1.0] * 4)
    assert answers.spent == 12.0


def test_panels_juries_and_cascades_are_built_from_the_best() -> None:
    both = [JudgeScoring(0, "weak", "options", 1.0), JudgeScoring(1, "strong", "options", 4.0)]
    rng, gold = np.random.default_rng(0), np.arange(60) % 2
    answers = no_answers(60, ["given", "form", "form"], both, gold=gold)
    sign = np.where(gold == 0, 1.0, -1.0)
    for judge, signal in enumerate((0.6, 2.0)):
        for wording in range(3):
            record(answers, (judge, wording, 0), signal * sign + rng.normal(0, 1.0, 60))
    combined = combined_recipes(answers, first_recipes(answers), np.arange(60), set())
    by_name = {recipe.name.partition(" (")[0]: recipe for recipe in combined}
    assert {"jury", "strong, panel of 2", "strong, panel of 3", "cascade"} <= by_name.keys()
    assert by_name["strong, panel of 3"].prompts_per_item == 3
    jury, cascade = by_name["jury"], by_name["cascade"]
    assert {part.judge for part in jury.leaves} == {0, 1}
    assert cascade.margins[1] is None
    items = np.arange(60)
    passed_on = ~answers.decide(cascade.members[0], items, items).is_confident(cascade.margins[0])
    prompts, price = answers.cost(cascade, items, items)
    assert prompts == pytest.approx(1 + passed_on.mean())
    assert price == pytest.approx(1 + 4 * passed_on.mean())
    known = {recipe.name for recipe in combined}
    assert combined_recipes(answers, first_recipes(answers), items, known) == []


def test_a_search_chooses_on_one_half_and_measures_on_the_other() -> None:
    rng, gold = np.random.default_rng(1), np.arange(80) % 2
    truth = np.stack([0.2 * np.ones(80), 1.5 * np.ones(80)])
    odds = truth * np.where(gold == 0, 1.0, -1.0) + rng.normal(0, 1.0, (2, 80))
    answers = no_answers(80, ["given", "form"], gold=gold)

    def ask(grid: Any) -> None:
        for column, items in grid.items():
            part = odds[column[1], items]
            logprobs = np.stack([-np.logaddexp(0, -part), -np.logaddexp(0, part)], axis=-1)
            answers.record(column, items, logprobs)

    found = search(answers, 4 * 80, ask)
    assert found.chosen.wordings == ("w1",)
    assert not set(found.fit.tolist()) & set(found.held_out.tolist())
    assert found.spent <= 4 * 80
    (written,) = [row for row in found.rows if row["written"]]
    held = found.held_out
    right = (odds[1, held] > 0) == (gold[held] == 0)
    assert found.chosen.name == "w1"
    assert written["right"] == pytest.approx(right.mean())
    assert written["n_items"] == len(held)
    assert written["gain_ci_low"] > 0
