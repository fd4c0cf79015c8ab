"""Planned numbers of items, against the intervals that they are planned for."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.intervals import wilson_from_sums
from judgesense.statistics.planning import (
    Needed,
    ShareDesign,
    error_of,
    items_for_estimate,
    items_for_share,
    share_chances,
    smallest_difference,
)


def settled(design: ShareDesign, clusters: int, runs: int = 400) -> float:
    """Share of simulated runs whose interval excludes 0.8."""
    rng = np.random.default_rng(clusters)
    p = np.full((runs, clusters), design.share)
    if design.icc:
        spread = (1 - design.icc) / design.icc
        p = rng.beta(design.share * spread, (1 - design.share) * spread, p.shape)
    sizes = np.full(clusters, int(design.pairs))
    ends = [wilson_from_sums(hits, sizes) for hits in rng.binomial(int(design.pairs), p)]
    return float(np.mean([end.low > 0.8 or end.high < 0.8 for end in ends]))  # type: ignore[operator]


@pytest.mark.parametrize(
    "design",
    [ShareDesign(0.9), ShareDesign(0.7), ShareDesign(0.9, 10, 0.3), ShareDesign(0.65, 3, 0.8)],
)
def test_the_planned_number_settles_it_in_four_of_five_runs(design: ShareDesign) -> None:
    needed = items_for_share(design, threshold=0.8).clusters
    assert needed is not None
    assert 0.74 <= settled(design, needed) <= 0.86
    assert settled(design, needed // 3) < 0.6


def test_one_row_per_cluster_has_the_exact_binomial_probability() -> None:
    from scipy.stats import binom

    hits = np.arange(101)
    ends = [wilson_from_sums(np.arange(100) < h, np.ones(100)) for h in hits]
    out = np.array([end.low > 0.8 or end.high < 0.8 for end in ends])  # type: ignore[operator]
    exact = binom.pmf(hits, 100, 0.9)[out].sum()
    assert share_chances(ShareDesign(0.9), 100, threshold=0.8) == pytest.approx(exact, abs=1e-9)


def test_the_plan_grows_towards_the_threshold_and_ends_at_none() -> None:
    numbers = [items_for_share(ShareDesign(p), threshold=0.8).clusters for p in (0.95, 0.9, 0.83)]
    assert numbers == sorted(numbers)  # type: ignore[type-var]
    assert items_for_share(ShareDesign(0.8), threshold=0.8) == Needed(None, None, None)


def test_no_number_of_items_makes_up_for_wordings_that_differ() -> None:
    few = ShareDesign(0.85, 10, 0.3, wordings=5, wording_variance=0.02)
    assert items_for_share(few, threshold=0.8).clusters is None
    many = ShareDesign(0.85, 10, 0.3, wordings=200, wording_variance=0.02)
    assert items_for_share(many, threshold=0.8).clusters is not None


def test_the_range_narrows_with_the_run_that_it_comes_from() -> None:
    small = items_for_share(ShareDesign(0.9, 3, 0.3), threshold=0.8, seen=40)
    large = items_for_share(ShareDesign(0.9, 3, 0.3), threshold=0.8, seen=2_000)
    for found in (small, large):
        assert found.low is not None
        assert found.clusters is not None
        assert found.low < found.clusters
    assert large.high is not None
    assert large.high < 2 * large.low  # type: ignore[operator]
    assert small.high is None or small.high > large.high
    assert small.low < large.low  # type: ignore[operator]


def test_a_difference_is_planned_as_textbooks_do() -> None:
    # Cohen (1988): n = ((1.96 + 0.84) * sd / d)^2 for a mean of sd 1.
    found = items_for_estimate(0.2, np.sqrt(0.5), 2)
    assert found == pytest.approx((2.8016 / 0.2) ** 2, abs=4)
    assert smallest_difference(float(1 / np.sqrt(found)), found) == pytest.approx(0.2, abs=0.001)
    assert error_of(0.1, 0.5, 10_000) == pytest.approx(0.4 / 2 / 1.96, abs=1e-4)


def test_the_range_includes_the_number_of_few_clusters() -> None:
    # With three clusters, most draws of the share are further from 0.8 than 0.78 is.
    needed = items_for_share(ShareDesign(0.78, 3, 0.3, wordings=3), threshold=0.8, seen=3)
    assert needed.low < needed.clusters <= needed.high
