"""Wordings beside the consensus: inverted, outliers, unreadable, and none of these."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judgesense.statistics.selection import choose, gaps_between, lower_than_rest
from judgesense.statistics.wordings import association, screen


def answers(n: int, wordings: int, flips: float = 0.1, share: float = 0.5, seed: int = 0):
    """Decisions of equal wordings: each departs from a common verdict on `flips` of the cells."""
    rng = np.random.default_rng(seed)
    verdict = (rng.random(n) < share).astype(int)
    return np.where(rng.random((wordings, n)) < flips, 1 - verdict, verdict)


def flags(decisions, **options):
    options.setdefault("n_labels", 2)
    return [row.flag for row in screen(decisions, **options)[0]]


@pytest.mark.parametrize(("wordings", "turned"), [(6, [2]), (26, [0, 7]), (3, [1])])
def test_inverted_wordings_are_found(wordings: int, turned: list[int]) -> None:
    decisions = answers(80, wordings)
    decisions[turned] = 1 - decisions[turned]
    found = flags(decisions)
    assert [j for j, flag in enumerate(found) if flag == "inverted"] == turned
    assert found.count("fine") == wordings - len(turned)


def test_an_inverted_wording_is_found_though_one_label_dominates() -> None:
    decisions = answers(80, 6, flips=0.02, share=0.95)
    decisions[3] = 1 - decisions[3]
    assert flags(decisions) == ["fine"] * 3 + ["inverted"] + ["fine"] * 2


def test_a_coin_among_ten_is_an_outlier() -> None:
    decisions = answers(80, 10)
    decisions[4] = np.random.default_rng(1).integers(0, 2, 80)
    found, _ = screen(decisions, n_labels=2)
    assert [row.flag for row in found] == ["fine"] * 4 + ["outlier"] + ["fine"] * 5
    assert found[4].agreement == pytest.approx(0.5, abs=0.15)
    assert found[4].p_adjusted is not None
    assert found[4].p_adjusted < 0.05


def test_a_judge_that_answers_at_random_has_no_bad_wording() -> None:
    noise = np.random.default_rng(3).integers(0, 2, (8, 200))
    assert flags(noise) == ["fine"] * 8


def test_an_ordinal_scale_turned_round_is_inverted() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 5, 60)
    decisions = np.clip(base + rng.integers(-1, 2, (5, 60)), 0, 4)
    decisions[2] = 4 - decisions[2]
    found, _ = screen(decisions, n_labels=5, ordinal=True)
    assert [row.flag for row in found] == ["fine", "fine", "inverted", "fine", "fine"]
    assert found[2].kappa is not None
    assert -1 <= found[2].kappa < -0.5


def test_two_wordings_that_contradict_each_other() -> None:
    one = answers(40, 1)[0]
    assert flags([one, 1 - one]) == ["inverted", "inverted"]
    assert flags([one, 1 - one], gold=one) == ["fine", "inverted"]
    assert flags([1 - one, one], gold=one) == ["inverted", "fine"]


def test_permutation_p_values_of_equal_columns_are_even() -> None:
    rng = np.random.default_rng(0)
    tables = (rng.random((200, 40, 4)) < 0.7).astype(float)
    p_any = [gaps_between(table, rng, 199)[0] for table in tables]
    p_low = [lower_than_rest(table, rng, 199).min() for table in tables]
    for p in (p_any, p_low):
        assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09
        assert 0.4 < np.mean(np.array(p) <= 0.5) < 0.6


def test_many_clusters_flip_signs_as_drawn() -> None:
    table = (np.random.default_rng(0).random((2000, 3)) < [0.70, 0.70, 0.66]).astype(float)
    told = table[np.ptp(table, axis=1) > 0]
    gaps = told - told.mean(axis=1, keepdims=True)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(499, len(told)))
    assert len(told) > 1000
    error = np.sqrt((gaps**2).sum(axis=0))
    least = (signs @ gaps / error).min(axis=1)
    expected = [(1 + (least <= own + 1e-9).sum()) / 500 for own in gaps.sum(axis=0) / error]
    found = lower_than_rest(table, np.random.default_rng(1), 499)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert found[2] == min(found) < 0.2
    pairs = signs @ gaps
    wide = [np.sqrt(((gaps[:, a] - gaps[:, b]) ** 2).sum()) for a, b in ((0, 1), (0, 2), (1, 2))]
    apart = np.abs(
        np.stack([pairs[:, a] - pairs[:, b] for a, b in ((0, 1), (0, 2), (1, 2))], axis=1) / wide
    )
    total = gaps.sum(axis=0)
    seen = np.abs([total[0] - total[1], total[0] - total[2], total[1] - total[2]]) / wide
    top = np.maximum(apart.max(axis=1), np.abs(pairs / error).max(axis=1))
    largest = max(seen.max(), np.abs(total / error).max())
    p_any, _ = gaps_between(table, np.random.default_rng(1), 499)
    assert p_any == pytest.approx((0.5 + (top > largest).sum()) / 500, abs=1e-12)


def test_the_set_of_the_best_and_the_held_out_score() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random((4, 300)) < [[0.6], [0.9], [0.6], [0.9]]).astype(float)
    found = choose(right)
    assert found.best == (1, 3)
    assert found.p_any_difference == 0.0005
    assert found.score == pytest.approx(0.9, abs=0.03)
    equal = choose((rng.random((4, 300)) < 0.8).astype(float))
    assert equal.best == (0, 1, 2, 3)


def test_association_is_kappa_as_a_share_of_what_the_margins_allow() -> None:
    # 15 of 100 yes under one wording, 30 under the other: all 15 agree, 12 or none do.
    assert association([[70, 15], [0, 15]]) == pytest.approx(1.0)
    assert association([[67, 18], [3, 12]]) == pytest.approx((12 / 4.5 - 1) / (15 / 4.5 - 1))
    assert association([[55, 30], [15, 0]]) == pytest.approx(-1.0)
    assert association([[85, 15], [0, 0]]) == 0.0
    # A scale: one label lower throughout; turned round; three labels without an order.
    shifted = np.diag([20, 20, 20, 20], k=1)
    assert association(shifted, ordinal=True) == pytest.approx(1.0)
    assert association(shifted[::-1], ordinal=True) == pytest.approx(-1.0)
    assert association(np.ones((3, 3)) - np.eye(3)) == pytest.approx(-1.0)


def graded(n: int, groups: list[int], seed: int = 0):
    """Camps of wordings on a scale of four: each camp has a view of its own."""
    rng = np.random.default_rng(seed)
    views = rng.integers(0, 4, (len(groups), n))
    each = np.repeat(views, groups, axis=0)
    return np.where(rng.random(each.shape) < 0.1, rng.integers(0, 4, each.shape), each)


@pytest.mark.parametrize("groups", [[3, 3], [6, 2], [4, 3, 2]])
def test_camps_are_told_and_nothing_is_thrown_out(groups: list[int]) -> None:
    ends = np.cumsum([0, *groups]).tolist()
    wanted = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    decisions = graded(100, groups)
    found, camps = screen(decisions, n_labels=4, ordinal=True)
    assert camps == wanted
    assert {row.flag for row in found} == {"fine"}


def test_gold_decides_which_of_two_camps_is_right() -> None:
    decisions = graded(100, [6, 2])
    for right, flagged in ((7, []), (0, [6, 7])):
        found, camps = screen(decisions, n_labels=4, ordinal=True, gold=decisions[right])
        assert [j for j, row in enumerate(found) if row.flag == "outlier"] == flagged
        assert camps == []
    # A third would be outliers: none is.
    decisions = graded(100, [4, 2])
    found, camps = screen(decisions, n_labels=4, ordinal=True, gold=decisions[0])
    assert ({row.flag for row in found}, camps) == ({"fine"}, [[0, 1, 2, 3], [4, 5]])


def test_a_stricter_wording_is_an_outlier_only_if_gold_says_so() -> None:
    decisions = answers(300, 6, flips=0.05)
    decisions[0] &= np.random.default_rng(9).random(300) < 0.5
    assert flags(decisions) == ["fine"] * 6
    assert flags(decisions, gold=decisions[1]) == ["outlier"] + ["fine"] * 5
    assert flags(decisions, gold=decisions[0]) == ["fine"] * 6


def test_gold_tells_which_wordings_are_inverted_against_the_majority() -> None:
    decisions = answers(100, 7)
    decisions[:4] = 1 - decisions[:4]
    assert flags(decisions) == ["fine"] * 4 + ["inverted"] * 3
    assert flags(decisions, gold=decisions[0]) == ["fine"] * 4 + ["inverted"] * 3
    assert flags(decisions, gold=decisions[6]) == ["inverted"] * 4 + ["fine"] * 3


def test_an_inverted_wording_is_found_in_few_large_clusters_of_skewed_labels() -> None:
    decisions = answers(600, 8, share=0.15)
    decisions[5] = 1 - decisions[5]
    found = flags(decisions, clusters=np.arange(600) % 30)
    assert found == ["fine"] * 5 + ["inverted"] + ["fine"] * 2
