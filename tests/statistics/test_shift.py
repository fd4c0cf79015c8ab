"""The shift of verdicts under an intervention."""

from __future__ import annotations

import pytest

from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.statistics.rates import shift


def test_rate_direction_and_score() -> None:
    base, changed = ["1", "2", "3", "3"] * 5, ["2", "2", "3", "1"] * 5
    items = [f"i{n}" for n in range(20)]
    found = shift(base, changed, ["1", "2", "3"], items, ordinal=True)
    assert found.shift_rate == 0.5
    assert found.net_shift == pytest.approx({"1": 0.0, "2": 0.25, "3": -0.25})
    assert sum(found.net_shift.values()) == pytest.approx(0)
    assert found.score_shift == pytest.approx((1 - 2) / 4)
    rate = wilson_cluster([a != b for a, b in zip(base, changed, strict=True)], items)
    assert (found.shift_ci_low, found.shift_ci_high) == (rate.low, rate.high)
    level = mean_t_cluster([1.0, 0.0, 0.0, -2.0] * 5, items)
    assert (found.score_shift_ci_low, found.score_shift_ci_high) == (level.low, level.high)


def test_nominal_labels_have_no_score_and_no_rows_no_figures() -> None:
    assert shift(["YES"], ["NO"], ["YES", "NO"]).score_shift is None
    nothing = shift([], [], ["YES", "NO"])
    assert (nothing.shift_rate, nothing.net_shift, nothing.n_pairs) == (None, {}, 0)
