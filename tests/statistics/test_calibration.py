"""Remedies on arrays, against short independent versions and against a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics import calibration as c
from judgesense.statistics.calibration import ask_threshold, error_bound, longest_safe
from judgesense.statistics.comparison import paired_gain

RNG = np.random.default_rng(7)
TOLD = np.log(RNG.dirichlet([2.0, 1.0, 0.5], size=60))


def batch_calibration(probabilities: np.ndarray) -> np.ndarray:
    """Zhou et al. (2024) as written: divide by the batch's mean, take the largest."""
    prior = np.zeros(probabilities.shape[1])
    for row in probabilities:
        prior += row / len(probabilities)
    corrected = np.array([row / prior for row in probabilities])
    return np.array([row / row.sum() for row in corrected])


def test_batch_calibration_equals_the_paper_s_recipe():
    ours = np.exp(c.calibrated(TOLD, c.batch_offsets(TOLD)))
    assert np.allclose(ours, batch_calibration(np.exp(TOLD)), atol=1e-12)


def test_both_orders_cancel_a_bias_for_the_first_option():
    content, bias = RNG.normal(size=200), 2.5
    first = np.stack([content + bias, np.zeros(200)], axis=1)
    second = np.stack([np.zeros(200) + bias, content], axis=1)[:, ::-1]
    mean = c.mean_log_odds(np.stack([first, second], axis=1))
    assert (c.most_probable(first) == 0).mean() > 0.95
    assert np.array_equal(c.most_probable(mean) == 0, content > 0)


def test_the_gain_s_interval_covers_the_true_gain():
    rng, covered = np.random.default_rng(1), 0
    for _ in range(1000):
        before = rng.random((40, 2)) < 0.6
        after = before | (rng.random((40, 2)) < 0.25)
        clusters = np.repeat(np.arange(40), 2)
        found = paired_gain(before.ravel(), after.ravel(), clusters)
        covered += found.ci_low <= 0.1 <= found.ci_high
    assert covered >= 930


def test_the_threshold_keeps_its_error_in_95_of_100_runs():
    rng, broken, answered = np.random.default_rng(3), 0, []
    for _ in range(300):
        margin = np.abs(rng.normal(0, 2, 300))
        wrong = rng.random(300) < 1 / (1 + np.exp(1.5 * margin))
        found = ask_threshold(margin, wrong, max_error=0.1)
        if found.threshold is not None:
            new = np.abs(rng.normal(0, 2, 4000))
            given = new[new >= found.threshold]
            broken += (1 / (1 + np.exp(1.5 * given))).mean() > 0.1
            answered.append(found.answered)
    assert broken <= 0.05 * 300
    assert np.mean(answered) > 0.5


def test_too_few_verdicts_hold_no_bound_and_the_result_says_how_many_would():
    found = ask_threshold(np.ones(30), np.zeros(30, bool), max_error=0.05)
    assert found.threshold is None
    assert found.needed == 72


def test_clusters_weaken_the_bound():
    margin, wrong = np.ones(400), np.zeros(400, bool)
    wrong[:8] = True
    alone = ask_threshold(margin, wrong)
    together = ask_threshold(margin, wrong, np.repeat(np.arange(50), 8))
    assert alone.threshold == 0.0
    assert alone.answered == 1.0
    assert together.threshold is None


def test_a_guarantee_counts_clusters_that_may_be_wrong_together() -> None:
    codes = np.repeat(np.arange(20), 10)
    none = np.zeros(200, bool)
    everything = np.ones(200, bool)
    alone = error_bound(everything, none, np.arange(200), 0.95)
    shared = error_bound(everything, none, codes, 0.95)
    assert alone == pytest.approx(1 - 0.05 ** (1 / 200))
    assert shared == pytest.approx(1 - 0.05 ** (1 / 20))
    assert longest_safe(everything[None], none[None], codes, max_error=0.03).step is None
    assert longest_safe(everything[None], none[None], codes, max_error=0.03).needed == 984
    assert longest_safe(everything[None], none[None], max_error=0.03).step == 0
    assert error_bound(everything, everything, codes, 0.95) == 1.0


def test_many_clusters_with_an_error_show_how_errors_cluster() -> None:
    codes = np.repeat(np.arange(150), 10)
    scattered = np.arange(1500) % 100 == 0
    together = codes < 2
    bounds = [
        error_bound(np.ones(1500, bool), wrong, codes, 0.95) for wrong in (scattered, together)
    ]
    assert bounds[0] < 0.02 < bounds[1]
