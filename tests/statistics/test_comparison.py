"""Paired comparison of two judges, and the correction for many."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.comparison import holm, paired_test


def two_judges(
    k: int, pairs: int, first: float, second: float, seed: int
) -> tuple[np.ndarray, ...]:
    """Agreements of two judges that share the items' difficulty."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1, k).repeat(pairs)
    streams = []
    for share in (first, second):
        noise = rng.normal(0, 1, k * pairs)
        edge = -np.sqrt(2) * _quantile(share)
        streams.append(ease + noise > edge)
    return streams[0], streams[1], np.arange(k).repeat(pairs)


def _quantile(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))


def test_a_clear_difference_is_found_and_signed() -> None:
    first, second, items = two_judges(60, 5, 0.6, 0.9, 0)
    result, back = paired_test(first, second, items), paired_test(second, first, items)
    assert result.difference == pytest.approx(second.mean() - first.mean())
    assert result.p_value is not None
    assert result.p_value < 0.001
    assert result.ci_low is not None
    assert result.ci_high is not None
    assert 0 < result.ci_low < result.difference < result.ci_high
    assert back.difference == pytest.approx(-result.difference)
    assert back.p_value == pytest.approx(result.p_value, abs=0.02)


def test_drawn_sign_flips_meet_the_exact_binomial() -> None:
    from scipy.stats import binomtest

    first = np.zeros(40, dtype=bool)
    second = np.arange(40) < 26
    first[26:37] = True  # 26 items for the second, 11 for the first, 3 equal
    result = paired_test(first, second, n_resamples=50_000)
    assert result.p_value == pytest.approx(binomtest(26, 37).pvalue, abs=0.004)


def test_the_permutation_test_keeps_its_level_under_clustering() -> None:
    clustered = rows = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        # Each judge has its own lasting opinion of each item, so rows of an item repeat it.
        first = (rng.random(25) < 0.8).repeat(6)
        second = (rng.random(25) < 0.8).repeat(6)
        items = np.arange(25).repeat(6)
        clustered += paired_test(first, second, items, n_resamples=400).p_value < 0.05  # type: ignore[operator]
        rows += paired_test(first, second, n_resamples=400).p_value < 0.05  # type: ignore[operator]
    assert clustered / 300 < 0.09
    assert rows / 300 > 0.3


def test_the_test_keeps_its_level_where_clusters_differ_in_size_and_direction() -> None:
    alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        # The second judge gains in large clusters what it loses in small ones.
        sizes = np.where(rng.random(40) < 0.2, 20, 5)
        gap = np.where(sizes == 20, 0.1, -0.1)
        rows = np.repeat(np.arange(40), sizes)
        first, second = (rng.random(len(rows)) < (0.8 + side * gap)[rows] for side in (-1, 1))
        alarms += paired_test(first, second, rows, n_resamples=400).p_value < 0.05  # type: ignore[operator]
    assert 0.01 < alarms / 300 < 0.09


def test_holm_steps_down_over_the_tests_that_were_made() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
