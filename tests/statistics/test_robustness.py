"""Robustness of scores over paraphrases: the paper's formulas, and what noise alone would show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judgesense.statistics.robustness import (
    coefficients_of_variation,
    paraphrase_robustness,
    tolerance_accuracies,
)


def test_the_papers_example_follows_its_formula_not_its_printed_value():
    # Section "Robustness Metrics": scores 0.8, 0.3, 0.7. Its text says 0.23; std/mean is 0.36.
    value = coefficients_of_variation(np.array([[0.8, 0.3, 0.7]]))[0]
    assert value == pytest.approx(math.sqrt(0.14 / 3) / 0.6, abs=1e-12)
    assert round(value, 2) == 0.36


def test_every_figure_equals_a_plain_reading_of_its_formula():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, k = rng.integers(2, 30), rng.integers(2, 8)
        scores = rng.integers(1, 6, (n, k))
        human = rng.integers(1, 6, n)
        result = paraphrase_robustness(scores, human, tolerance=1.0, n_resamples=50)
        per = [sum(scores[i, j] == human[i] for i in range(n)) / n for j in range(k)]
        assert result.accuracy_per_paraphrase == pytest.approx(per, abs=1e-12)
        assert result.accuracy == pytest.approx(sum(per) / k, abs=1e-12)
        assert result.win_rate_gap == pytest.approx(max(per) - min(per), abs=1e-12)
        near = np.mean([abs(scores[i, j] - human[i]) <= 1 for i in range(n) for j in range(k)])
        assert result.accuracy_tolerance == pytest.approx(near, abs=1e-12)
        cv = [np.std(row) / np.mean(row) for row in scores]
        assert result.sensitivity == pytest.approx(np.mean(cv), abs=1e-12)
        assert result.consistency == np.mean([len(set(row.tolist())) == 1 for row in scores])
        for name in ("accuracy", "accuracy_tolerance", "consistency"):
            value = getattr(result, name)
            assert getattr(result, f"{name}_ci_low") <= value <= getattr(result, f"{name}_ci_high")


def test_tolerances_compare_as_a_reader_would():
    assert 4.4 - 3.9 > 0.5  # As floats.
    assert tolerance_accuracies([[4.4], [4.0], [5.0]], [3.9, 3.75, 4.0]) == {
        0.25: 1 / 3,
        0.5: 2 / 3,
        1.0: 1.0,
    }


def test_a_gap_of_exactly_the_threshold_is_not_below_it():
    assert 0.7 - 0.55 < 0.15  # As floats.
    scores = np.full((20, 2), 101)
    scores[:14, 0], scores[:11, 1] = 100, 100
    result = paraphrase_robustness(scores, np.full(20, 100))
    assert result.win_rate_gap == pytest.approx(0.15)
    assert result.sensitivity < 0.01
    assert result.stable is False
    scores[0, 0] = 101
    assert paraphrase_robustness(scores, np.full(20, 100)).stable is True


def test_human_means_are_rounded_half_up_when_asked():
    scores, human = [[3, 3], [3, 4], [4, 4]], [2.5, 3.49, 3.5]
    assert paraphrase_robustness(scores, human).accuracy == 0.0
    assert paraphrase_robustness(scores, human, round_references=True).accuracy == 5 / 6


def test_constant_rows_do_not_vary_and_rows_around_nothing_are_counted():
    scores = [[0, 0, 0], [-2, -2, -2], [-1, 0, 1], [-3, -1, -2], [1, 2, 3]]
    result = paraphrase_robustness(scores, [0, 0, 0, 0, 0])
    assert result.n_sensitivity_undefined == 2
    assert result.sensitivity == pytest.approx((0 + 0 + np.std([1, 2, 3]) / 2) / 3)


def test_no_defined_sensitivity_is_none_with_a_reason_and_stability_unknown():
    result = paraphrase_robustness([[-1, 1], [-2, 2]], [5, 5])
    assert (result.sensitivity, result.sensitivity_ci_low, result.stable) == (None, None, None)
    assert result.n_sensitivity_undefined == 2
    assert "mean of 0 or less" in result.degenerate
    wide = paraphrase_robustness([[-1, 1], [-1, 1]], [1, 1])
    assert wide.win_rate_gap == 1.0
    assert wide.stable is False


def test_repeating_every_row_does_not_narrow_the_interval():
    rng = np.random.default_rng(3)
    scores, human = rng.integers(1, 4, (40, 5)), rng.integers(1, 4, 40)
    ids = list(range(40))
    once = paraphrase_robustness(scores, human, item_ids=ids)
    twice = paraphrase_robustness(np.tile(scores, (2, 1)), np.tile(human, 2), item_ids=ids * 2)
    for name in ("accuracy", "sensitivity", "win_rate_gap", "consistency"):
        width_once, width_twice = (
            getattr(r, f"{name}_ci_high") - getattr(r, f"{name}_ci_low") for r in (once, twice)
        )
        assert width_twice == pytest.approx(width_once, rel=0.02), name


@pytest.mark.parametrize(("n", "k"), [(50, 2), (100, 5), (400, 10)])
def test_the_chance_gap_is_what_dealing_scores_at_random_gives(n, k):
    rng = np.random.default_rng(n)
    right = (rng.random((n, k)) < rng.beta(1, 1, (n, 1))).astype(float)
    dealt = [np.ptp(rng.permuted(right, axis=1).mean(axis=0)) for _ in range(1500)]
    told = paraphrase_robustness(right, np.ones(n), n_resamples=10).win_rate_gap_chance
    assert told == pytest.approx(np.mean(dealt), rel=0.05)


@pytest.mark.parametrize(
    ("scores", "references", "told"),
    [
        ([[1, 2], [3]], [1, 2], r"predictions\[1\] has 1 numbers and predictions\[0\] has 2"),
        ([[1, 2], [3, float("nan")]], [1, 2], r"predictions\[1\]\[1\] is nan"),
        ([[1, 2], [3, float("inf")]], [1, 2], r"predictions\[1\]\[1\].*inf"),
        ([[1, 2], [3, "4"]], [1, 2], r"predictions\[1\]\[1\].*'4'"),
        ([[1, 2], [3, None]], [1, 2], r"predictions\[1\]\[1\].*None"),
        ([[1, 2], [3, 4]], [1, float("nan")], r"references\[1\]"),
        ([[1, 2], [3, 4]], [1], "2 rows and references 1"),
        ([[1, 2], [3, 4]], [1, "x"], r"references\[1\]"),
        ([], [], "predictions is empty"),
        ([[]], [1], "predictions is empty"),
        ("12", [1, 2], "predictions is a str"),
        ([1, 2], [1, 2], "predictions has 1 dimensions"),
        ([[1, 1e308]], [1], r"predictions\[0\]\[1\]"),
        (np.array([[1.0, np.nan]]), [1], r"predictions\[0\]\[1\]"),
    ],
)
def test_bad_scores_are_refused_with_their_place(scores, references, told):
    with pytest.raises(ValueError, match=told):
        paraphrase_robustness(scores, references)


@pytest.mark.parametrize("tolerance", [-0.5, float("nan"), "0.5", None, True])
def test_a_tolerance_is_a_finite_number_of_at_least_zero(tolerance):
    with pytest.raises(ValueError, match="tolerance"):
        paraphrase_robustness([[1, 2]], [1], tolerance=tolerance)
