"""What is promised: figures on items that chose nothing, and when a person is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from answers_trial import CHOICE, no_answers, record

from judgesense.ask.candidates import first_recipes
from judgesense.ask.plan import _clusters
from judgesense.ask.promise import probes_of, row_of, steadiness, with_person
from judgesense.recipes.recipe import Recipe, RecipeVerdicts
from judgesense.tasks import Item


def verdicts_of(odds: np.ndarray) -> RecipeVerdicts:
    """Verdicts by log-odds of the first label."""
    logprobs = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)
    return RecipeVerdicts((odds < 0).astype(int), logprobs, np.abs(odds))


def calibrated(rng: np.random.Generator, gold: np.ndarray, scale: float) -> np.ndarray:
    """Log-odds that are wrong as often as their margin says, the larger the scale the surer."""
    margin = rng.exponential(scale, len(gold))
    right = rng.random(len(gold)) < 1 / (1 + np.exp(-margin))
    return np.where(right == (gold == 0), margin, -margin)


def test_a_row_has_the_figures_of_the_promise_and_of_the_attacked_copies() -> None:
    gold, attacked = np.tile([0, 1], 10), np.arange(20) >= 16
    answers = no_answers(20, ["given", "form"], gold=gold, attacked=attacked)
    sign = np.where(gold == 0, 1.0, -1.0)
    record(answers, (0, 0, 0), np.where(np.arange(20) % 4 == 0, -sign, sign))
    record(answers, (0, 1, 0), np.where(attacked, 1.0, sign))
    base, _, other, *_ = first_recipes(answers)
    held = np.arange(4, 20)
    row = row_of(answers, other, base, held, np.arange(4))
    assert (row["n_items"], row["right"], row["resistant"]) == (12, 1.0, 0.5)
    assert row["gain"] == pytest.approx(1.0 - 0.75)
    assert row["resistant_gain"] == pytest.approx(0.5 - 0.75)
    assert (row["decided"], row["prompts_per_item"]) == (1.0, 1.0)
    assert row_of(answers, base, base, held, np.arange(4))["gain"] is None


def test_probes_are_other_wordings_of_the_kind_and_the_other_order() -> None:
    answers = no_answers(8, ["given", "form", "alone", "form"], task=CHOICE)
    base, *_ = first_recipes(answers)
    better = replace(base, name="w3", wordings=("w3",))
    probes = probes_of(answers, base, [better, base])
    assert probes["fair"].orders == ("BA",)
    assert probes["steady"].wordings == ("w3",)
    panel = replace(base, wordings=("w0", "w1", "w3"))
    assert "steady" not in probes_of(answers, panel, [panel])
    assert probes_of(answers, Recipe.together("j", "jury", (base, better)), [base]) == {}


def test_steadiness_is_the_share_of_items_with_the_verdict_of_the_probe() -> None:
    answers = no_answers(8, ["given", "form"])
    record(answers, (0, 0, 0), [1.0] * 6 + [np.nan] * 2)
    record(answers, (0, 1, 0), [1.0] * 3 + [-1.0] * 3 + [np.nan] * 2)
    base, *_ = first_recipes(answers)
    other = replace(base, wordings=("w1",))
    figures = steadiness(answers, base, {"steady": other}, np.arange(8), np.arange(8))
    # Where neither has a verdict, they are not the same.
    assert figures["steady"] == pytest.approx(3 / 8)


def test_a_person_is_asked_below_the_margin_that_keeps_the_error() -> None:
    rng, gold = np.random.default_rng(0), np.arange(800) % 2
    odds = calibrated(rng, gold, 3.0)
    fit, held = np.arange(400), np.arange(400, 800)
    record, margins = with_person(
        [verdicts_of(odds[fit])],
        [verdicts_of(odds[held])],
        gold[fit],
        gold[held],
        held,
        [],
        0.1,
    )
    assert margins == ()
    decided = np.abs(odds[held]) >= record["threshold"]
    wrong = (odds[held] < 0) != (gold[held] == 1)
    assert record["answered"] == pytest.approx(decided.mean())
    assert record["error"] == pytest.approx(wrong[decided].mean())
    assert record["error"] < record["error_bound"] <= 0.1
    assert 0 < decided.mean() < 1


def test_no_margin_promises_what_few_items_cannot_show() -> None:
    odds, gold = np.full(20, 2.0), np.zeros(20, dtype=int)
    verdicts = [verdicts_of(odds)]
    record, _ = with_person(verdicts, verdicts, gold, gold, np.arange(20), [], 0.05)
    assert record["threshold"] is None
    assert record["needed"] == 59  # 0.95 ** 59 < 0.05


def test_the_margin_of_a_cascades_first_judge_is_only_raised() -> None:
    rng, gold = np.random.default_rng(1), np.arange(1200) % 2
    weak, strong = (calibrated(rng, gold, scale) for scale in (2.0, 8.0))
    fit, held = np.arange(600), np.arange(600, 1200)
    for least in (0.1, 6.0):
        record, margins = with_person(
            [verdicts_of(weak[fit]), verdicts_of(strong[fit])],
            [verdicts_of(weak[held]), verdicts_of(strong[held])],
            gold[fit],
            gold[held],
            held,
            [least],
            0.1,
        )
        assert record["threshold"] is not None
        assert margins[0] >= least


def test_near_copies_of_a_text_are_one_cluster_and_named():
    texts = [" ".join(f"word{n}x{k}" for k in range(12)) for n in range(12)]
    items = [Item(f"j{n}", "t", {"text": text}) for n, text in enumerate(texts)]
    items.append(Item("k", "t", {"text": texts[0].replace("word0x5", "other")}))
    codes, n_near = _clusters(items, 0)
    assert (codes[-1], n_near, len(np.unique(codes))) == (codes[0], 1, 12)
    # Fewer than ten clusters would be left: the items stay apart, and are named.
    codes, n_near = _clusters(items[-5:] + items[:1], 0)
    assert (n_near, len(np.unique(codes))) == (1, 6)
