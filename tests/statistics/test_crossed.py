"""Intervals over wordings and against repeats: what they include, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.measure.thresholds import WORDING_PRIOR
from judgesense.statistics.bias import both_orders
from judgesense.statistics.crossed import delta_jss, two_way_interval
from judgesense.statistics.intervals import Interval, wilson_cluster


def crossed(items: int, wordings: int, noisy: int, seed: int) -> tuple[np.ndarray, ...]:
    """All pairs of wordings on all items; the last `noisy` wordings answer at random."""
    rng = np.random.default_rng(seed)
    said = np.repeat(rng.random((items, 1)) < 0.5, wordings, axis=1)
    if noisy:
        said[:, -noisy:] = rng.random((items, noisy)) < 0.5
    one, two = np.triu_indices(wordings, 1)
    agree = (said[:, one] == said[:, two]).ravel()
    return agree, np.repeat(np.arange(items), len(one)), np.tile(one, items), np.tile(two, items)


def like_these(agree, items, one, two, prior=WORDING_PRIOR) -> Interval:
    return two_way_interval(agree, items, one, two, prior=prior)


def test_one_odd_wording_of_five_widens_the_interval_for_wordings_like_these() -> None:
    agree, items, one, two = crossed(200, 5, 1, 0)
    fixed, random = wilson_cluster(agree, items), like_these(agree, items, one, two)
    assert random.low < fixed.low < fixed.high < random.high
    assert random.high - random.low > 3 * (fixed.high - fixed.low)


def test_more_items_do_not_make_up_for_few_wordings() -> None:
    few, many = (like_these(*crossed(items, 5, 1, 1)) for items in (100, 1600))
    assert many.high - many.low > 0.8 * (few.high - few.low)


def test_without_a_prior_two_wordings_have_the_interval_of_these_wordings() -> None:
    agree, items, one, two = crossed(200, 2, 1, 2)
    fixed, random = wilson_cluster(agree, items), like_these(agree, items, one, two, (1e-9, 4.0))
    assert (random.low, random.high) == pytest.approx((fixed.low, fixed.high), abs=0.003)


@pytest.mark.parametrize("wordings", [2, 3, 4, 5, 10])
def test_more_equal_wordings_never_widen_the_interval(wordings: int) -> None:
    few, more = (like_these(*crossed(60, w, 0, 3)) for w in (wordings, wordings + 1))
    assert few.low < more.low < 1 == few.high == more.high


def test_a_judge_as_unsteady_when_asked_again_shows_no_difference() -> None:
    rng = np.random.default_rng(0)
    items = np.arange(200)
    found = delta_jss(rng.random(200) < 0.8, items, rng.random(200) < 0.8, items)
    assert found.ci_low < 0 < found.ci_high
    steady = delta_jss(rng.random(200) < 0.8, items, np.ones(200, bool), items)
    assert steady.jss_repeat == 1.0
    assert steady.ci_high < -0.1


def test_shared_items_sharpen_the_difference() -> None:
    rng = np.random.default_rng(1)
    hard = rng.random(100) < 0.3
    agree, again = ~hard, ~hard
    joint = delta_jss(agree, np.arange(100), again, np.arange(100))
    apart = delta_jss(agree, np.arange(100), again, np.arange(100, 200))
    assert joint.delta == apart.delta == 0
    assert joint.ci_high - joint.ci_low < 0.5 * (apart.ci_high - apart.ci_low)


@pytest.mark.parametrize("items", [10, 100, 400])
def test_a_single_miss_leaves_a_share_of_99_and_995_percent_possible(items: int) -> None:
    # Wilson's upper end for 9 of 10 is 0.985: below a share that shows 9 of 10 in 9% of runs.
    found = wilson_cluster(np.arange(items) > 0)
    assert found.high > 0.99
    assert found.low < (items - 1) / items


def orders_of(decisions, items, orders, wordings=None):
    return both_orders(
        decisions, items, orders, wordings or [0] * len(decisions), cluster_ids=items
    )


def test_one_wording_in_both_orders_suffices() -> None:
    # Wording x is asked in both orders, y in one; x follows the item on 3 of 4 items.
    decisions = ["A", "B"] * 3 + ["A", "A"] + ["A"] * 4
    items = [1, 1, 2, 2, 3, 3, 4, 4, 1, 2, 3, 4]
    found = orders_of(decisions, items, ["AB", "BA"] * 4 + ["AB"] * 4, ["x"] * 8 + ["y"] * 4)
    assert (found.n, found.n_items, found.n_templates) == (4, 4, 1)
    assert (found.same_choice, found.first_position_rate) == (0.75, 5 / 8)
    assert found.same_choice_ci_low < 0.75 < found.same_choice_ci_high


def test_always_first_with_one_exception_in_400_is_still_always_first() -> None:
    found = orders_of(["A"] * 399 + ["B"], np.repeat(np.arange(200), 2), ["AB", "BA"] * 200)
    assert found.same_choice_ci_high < 0.05
    assert found.first_position_rate == 399 / 400


def test_both_orders_without_a_choice_in_both_are_undefined() -> None:
    one_order = orders_of(["A", "B"], [1, 2], ["AB", "AB"])
    assert (one_order.n, one_order.same_choice) == (0, None)
    unread = orders_of(["UNCLEAR", "A"], [1, 1], ["AB", "BA"])
    assert (unread.n, unread.n_templates, unread.same_choice) == (0, 1, None)
    alone = orders_of(["A", "B"], [1, 1], ["AB", "BA"])
    assert (alone.same_choice, alone.same_choice_ci_low) == (1.0, None)
