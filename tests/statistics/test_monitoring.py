"""The sequential test of a monitor: false alarms, changes found, items that come again."""

import numpy as np
import pytest

from judgesense.statistics.monitoring import lower_bound, start_weight, watch

BETS = np.arange(1, 21) / 21
VALUES = np.array([0.3, 1, 0, 0.75, 1, 0.5, 1, 0, 1, 1, 0.25, 1] * 5)


def log_wealth(values, mean: float) -> np.ndarray:
    """Log of the mean wealth of the constant bets against a mean, after each value."""
    return np.log(np.exp(np.cumsum(np.log1p(np.outer(BETS, values / mean - 1)), 1)).mean(0))


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


def test_lower_bounds_equal_confseqs_on_its_grid() -> None:
    # confseq 0.0.11: betting_cs with the same bets, breaks=2000; it widens by one step of 0.0005.
    for end, low, high in ((12, 0.2985, 0.913), (36, 0.4395, 0.8315), (60, 0.485, 0.7985)):
        assert lower_bound(VALUES[:end], 40) == pytest.approx(low, abs=0.0005)
        assert 1 - lower_bound(1 - VALUES[:end], 40) == pytest.approx(high, abs=0.0005)
    assert log_wealth(VALUES, lower_bound(VALUES, 40))[-1] == pytest.approx(np.log(40), abs=1e-6)
    assert lower_bound(np.zeros(1), 20) == 0


def test_all_bounds_hold_at_once() -> None:
    rng, misses = np.random.default_rng(1), 0
    for _ in range(200):
        values = (rng.random(300) < 0.1).astype(float)
        # A bound misses the mean exactly if the wealth against the mean has reached 1 / alpha.
        wealth = max(log_wealth(values, 0.1).max(), log_wealth(1 - values, 0.9).max())
        misses += wealth >= np.log(40)
    assert misses <= 10


def capital(z, tuned: float = 0.2) -> float:
    """Log of what 1 grows to at one look: 0.3 on constant bets, 0.7 on the tuned one."""
    constant = log_wealth((1 + z) / 2, 0.5)[-1] + np.log(0.3)
    return np.logaddexp(constant, np.log1p(tuned * z).sum() + np.log(0.7))


def looks(rng, n_looks: int, share: float, n: int = 200) -> list[np.ndarray]:
    """Moved minus reworded; rewording moves 10%."""
    return [
        (rng.random(n) < share).astype(float) - rng.binomial(4, 0.1, n) / 4 for _ in range(n_looks)
    ]


def test_one_look_is_one_bet() -> None:
    z = np.random.default_rng(0).choice([-1.0, -0.25, 0.0, 1.0], 50)
    found = watch([z])
    assert found.log_evidence[0] == pytest.approx(capital(z) + np.log(start_weight(0)), abs=1e-12)


def test_starts_add_up_and_the_tuned_bet_knows_earlier_looks() -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.choice([-1.0, 0.0, 1.0], 50, p=[0.1, 0.7, 0.2]) for _ in range(2))
    later = 0.05 * 70 / (5 + np.sum(first**2))
    both = np.log(
        0.3 * np.mean(np.exp([np.log1p(bet * np.append(first, second)).sum() for bet in BETS]))
        + 0.7 * np.exp(np.log1p(0.2 * first).sum() + np.log1p(later * second).sum())
    )
    sums = np.logaddexp(both, capital(second, later)) + np.log(start_weight(0))
    assert watch([first, second]).log_evidence[1] == pytest.approx(sums, abs=1e-12)


def test_few_false_alarms_in_a_year_at_the_boundary() -> None:
    rng = np.random.default_rng(2)
    alarms = sum(watch(looks(rng, 52, 0.1, 30)).alarm is not None for _ in range(20))
    assert alarms <= 1


def test_a_late_change_is_found_soon() -> None:
    rng = np.random.default_rng(3)
    found = watch([*looks(rng, 30, 0.1), *looks(rng, 8, 0.2)])
    assert 30 <= found.alarm < 38
    assert 28 <= found.since <= found.alarm
    assert 0 < found.low < 0.1
    assert found.log_evidence[29] < found.log_limit


def test_an_item_counts_once_for_each_start() -> None:
    z = looks(np.random.default_rng(4), 1, 0.2)[0]
    same = [list(range(200))] * 20
    once, each = watch([z] * 20, same), watch([z] * 20)
    assert each.alarm is not None
    assert once.alarm is None
    # Each start is a block of its own, and all have the same evidence and weight.
    assert np.ptp(once.log_evidence) == pytest.approx(0, abs=1e-9)
    fresh = [list(range(200 * k, 200 * k + 200)) for k in range(20)]
    assert watch([z] * 20, fresh).alarm == each.alarm


def test_items_that_come_again_count_from_their_next_start() -> None:
    z = np.array([1.0, 0.0])
    found = watch([z, z], [["a", "b"], ["a", "c"]])
    # From the first look on, a and b, then c; from the second on, a and c.
    both = [capital(np.array([1.0, 0.0])), capital(np.array([1.0, 0.0, 0.0]))]
    assert both[0] == pytest.approx(both[1])
    assert found.log_evidence[1] == pytest.approx(max(both) + np.log(start_weight(0)), abs=1e-12)
