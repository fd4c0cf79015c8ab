"""A recipe: from answers to verdicts, by one judge and by several."""

from __future__ import annotations

import numpy as np
import pytest
from answers_trial import CHOICE, no_answers, record

from judgesense.ask.answers import JudgeScoring
from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED
from judgesense.recipes.recipe import AS_ASKED, Recipe, voted

ITEMS = np.arange(3)
PLAIN = Recipe(AS_ASKED, ("w0",), ("AB",), ("A", "B"))
BOTH = Recipe("both orders", ("w0",), ("AB", "BA"), ("A", "B"))


def test_both_orders_cancel_a_preference_for_the_first_option() -> None:
    answers = no_answers(3, ["given"], task=CHOICE)
    # It prefers A by 3 nats and is right by 2, 1 and 0.
    for order, sign in ((0, 1), (1, -1)):
        record(answers, (0, 0, order), 3 + sign * np.array([2.0, -1.0, 0.0]))
    assert answers.decide(PLAIN, ITEMS, ITEMS).codes.tolist() == [0, 0, 0]
    verdicts = answers.decide(BOTH, ITEMS, ITEMS)
    assert verdicts.codes.tolist() == [0, 1, 0]
    assert verdicts.margin.tolist() == pytest.approx([2.0, 1.0, 0.0])
    assert verdicts.is_confident(1.5).tolist() == [True, False, False]


def test_what_was_not_asked_has_no_verdict() -> None:
    answers = no_answers(3, ["given"], task=CHOICE)
    record(answers, (0, 0, 0), [1.0, -1.0, np.nan])
    (array,) = answers.arrays
    assert PLAIN.decide(array).codes.tolist() == [0, 1, -1]
    assert BOTH.decide(array).codes.tolist() == [NOT_ASKED] * 3
    assert BOTH.decide(array, items=np.array([1])).codes.tolist() == [NOT_ASKED]


def test_calibration_is_learned_from_some_items_and_applied_to_others() -> None:
    answers = no_answers(6, ["given"], attacked=np.arange(6) == 3)
    record(answers, (0, 0, 0), [3.0, 1.0, 2.0, -40.0, 1.5, 2.5])
    recipe = Recipe("calibrated", ("w0",), ("-",), ("YES", "NO"), calibrated=True)
    # An attacked copy teaches nothing.
    fitted = answers.fitted(recipe, np.arange(4))
    share = np.mean([1 / (1 + np.exp(-odds)) for odds in (3.0, 1.0, 2.0)])
    prior = np.log(share / (1 - share)) / 2
    assert fitted.offsets["w0"] == {
        "YES": pytest.approx(prior, abs=1e-6),
        "NO": pytest.approx(-prior, abs=1e-6),
    }
    verdicts = answers.decide(recipe, np.array([4, 5]), np.arange(4))
    assert verdicts.codes.tolist() == [1, 0]
    margins = [abs(odds - 2 * prior) for odds in (1.5, 2.5)]
    assert verdicts.margin.tolist() == pytest.approx(margins, abs=1e-5)


def test_a_scale_is_read_by_its_expected_score() -> None:
    recipe = Recipe("expected score", ("w0",), ("-",), ("1", "2", "3"), "expected score")
    verdicts = recipe.verdicts(np.log([[[[0.45, 0.1, 0.45]]], [[[0.1, 0.2, 0.7]]]]))
    assert verdicts.codes.tolist() == [1, 2]


def test_a_cascade_asks_the_next_judge_where_the_first_is_unsure_and_a_jury_asks_all() -> None:
    judges = [JudgeScoring(0, "one", "options"), JudgeScoring(1, "two", "options")]
    answers = no_answers(3, ["given"], judges)
    record(answers, (0, 0, 0), [3.0, 0.5, -0.5])
    record(answers, (1, 0, 0), [-1.0, -2.0, np.nan])
    first = Recipe("one", ("w0",), ("-",), ("YES", "NO"))
    second = Recipe("two", ("w0",), ("-",), ("YES", "NO"), judge=1)
    cascade = Recipe.together("c", "cascade", (first, second), (1.0, None))
    assert answers.decide(cascade, ITEMS, ITEMS).codes.tolist() == [0, 1, -1]
    jury = Recipe.together("j", "jury", (first, second))
    verdicts = answers.decide(jury, ITEMS, ITEMS)
    assert verdicts.codes.tolist() == [0, 1, -1]
    assert verdicts.margin[:2].tolist() == pytest.approx([1.0, 0.75])


def test_votes_count_readable_verdicts_and_a_tie_decides_nothing() -> None:
    verdicts = voted(np.array([[0, 0, 1], [0, 1, -1], [-1, -1, -1]]), 2)
    assert verdicts.codes.tolist() == [0, -1, -1]
    assert verdicts.margin.tolist() == pytest.approx([1 / 3, 0.0, 0.0])


def test_a_name_says_what_a_recipe_changes() -> None:
    assert PLAIN.named().name == AS_ASKED
    panel = Recipe("", ("a", "b"), ("AB", "BA"), ("A", "B"), calibrated=True)
    assert panel.named("gpt", panel="panel of 2").name == "gpt, calibrated, panel of 2, both orders"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": ("A",)}, "two different"),
        ({"wordings": ()}, "at least one"),
        ({"wordings": ("w0", "w0")}, "must be different"),
        ({"orders": ("AB", "XX")}, "orders must be"),
        ({"read": "expected score"}, "whole numbers"),
        ({"offsets": {"w1": {"A": 0.0, "B": 0.0}}}, "each wording needs offsets"),
        ({"offsets": {"w0": {"A": 0.0, "C": 0.0}}}, "for the labels"),
        ({"read": "vote", "offsets": {"w0": {"A": 0.0, "B": 0.0}}}, "a vote has no offsets"),
    ],
)
def test_a_recipe_that_is_not_consistent_is_refused(changes: dict[str, object], says: str) -> None:
    stated = {"wordings": ("w0",), "orders": ("AB",), "labels": ("A", "B"), **changes}
    with pytest.raises(JudgeSenseError, match=says):
        Recipe("x", **stated)  # type: ignore[arg-type]
