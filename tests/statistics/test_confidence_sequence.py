"""Bounds that hold at every look: against confseq's numbers, and by how often they miss."""

import numpy as np
import pytest

from judgesense.statistics.confidence_sequence import betting_sequence, log_wealth, lower_bound

VALUES = np.array([0.3, 1, 0, 0.75, 1, 0.5, 1, 0, 1, 1, 0.25, 1] * 5)


def test_wealth_equals_confseqs() -> None:
    # confseq 0.0.11: log(diversified_betting_mart(x, 0.4, 20 constant bets, theta=1,
    # trunc_scale=1)) after 1, 6, 12, 36 and 60 values.
    theirs = [
        -0.13353139262452302,
        0.514841323942026,
        1.643899424811916,
        5.49640769736512,
        9.580796933845258,
    ]
    assert log_wealth(VALUES, 0.4)[[0, 5, 11, 35, 59]] == pytest.approx(theirs, abs=1e-12)


def test_bounds_equal_confseqs_on_its_grid() -> None:
    # confseq 0.0.11: betting_cs with the same bets, breaks=2000; it widens by one step of 0.0005.
    low, high = betting_sequence(VALUES, looks=[12, 36, 60])
    for ours, theirs in ((low, [0.2985, 0.4395, 0.485]), (high, [0.913, 0.8315, 0.7985])):
        assert np.abs(ours - theirs).max() <= 0.0005


def test_order_within_the_looks_does_not_matter() -> None:
    shuffled = np.random.default_rng(0).permutation(VALUES)
    ours, other = (betting_sequence(x, looks=[60]) for x in (VALUES, shuffled))
    assert ours.low == pytest.approx(other.low, abs=1e-9)
    assert ours.high == pytest.approx(other.high, abs=1e-9)


def test_all_bounds_hold_at_once() -> None:
    rng, misses = np.random.default_rng(1), 0
    for _ in range(200):
        values = (rng.random(300) < 0.1).astype(float)
        # A bound misses the mean exactly if the wealth against the mean has reached 1 / alpha.
        wealth = max(log_wealth(values, 0.1).max(), log_wealth(1 - values, 0.9).max())
        misses += wealth >= np.log(40)
    assert misses <= 10


def test_bound_is_where_the_wealth_reaches_the_evidence() -> None:
    low, high = betting_sequence(VALUES, looks=[60])
    assert log_wealth(VALUES, low[0])[-1] == pytest.approx(np.log(40), abs=1e-6)
    assert log_wealth(1 - VALUES, 1 - high[0])[-1] == pytest.approx(np.log(40), abs=1e-6)


def test_constant_values() -> None:
    none = betting_sequence(np.zeros(100), looks=[100])
    assert none.low[0] == 0
    assert 0.03 < none.high[0] < 0.06
    assert lower_bound(np.ones(100), 40) == pytest.approx(1 - none.high[0], abs=1e-9)
    assert lower_bound([0.0], 20) == 0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: betting_sequence([0.5, 1.5]), r"values\[1\]"),
        (lambda: betting_sequence([0.5], looks=[2]), "looks"),
        (lambda: betting_sequence([0.5, 0.5], looks=[2, 1]), "looks"),
        (lambda: betting_sequence([0.5], confidence_level=1), "confidence_level"),
        (lambda: log_wealth([0.5], 2), "mean"),
        (lambda: log_wealth([0.5], 0.5, n_bets=0), "n_bets"),
        (lambda: lower_bound([0.5], 1), "evidence"),
    ],
)
def test_bad_input_is_named(call, named) -> None:
    with pytest.raises(ValueError, match=named):
        call()
