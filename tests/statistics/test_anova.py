"""One-way ANOVAs beside statsmodels, and the interval that a paper prints."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.oneway import anova_oneway

from judgesense.statistics.anova import eta_squared_interval, one_way_anova
from judgesense.studies.common.study import published


def test_anova_equals_statsmodels_on_random_cases() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        sizes = rng.integers(2, 30, int(rng.integers(2, 6)))
        groups = [rng.normal(rng.normal(), rng.uniform(0.5, 2), n).tolist() for n in sizes]
        ours, theirs = one_way_anova(groups), anova_oneway(groups, use_var="equal")
        assert ours.f == pytest.approx(theirs.statistic, rel=1e-9)
        assert ours.p == pytest.approx(theirs.pvalue, abs=1e-9)
        between = (theirs.df_num * theirs.statistic) / theirs.df_denom
        assert ours.eta_squared == pytest.approx(between / (1 + between))
        assert ours.eta_low is not None
        assert ours.eta_high is not None
        assert 0 <= ours.eta_low <= ours.eta_high < 1
        welch = anova_oneway(groups, use_var="unequal", welch_correction=True)
        assert ours.welch_f == pytest.approx(welch.statistic)
        assert ours.welch_df == pytest.approx(welch.df_denom)
        assert ours.welch_p == pytest.approx(welch.pvalue)


def test_what_is_undefined_is_none() -> None:
    assert one_way_anova([[1.0, 1.0], [1.0, 1.0]]).eta_squared is None
    apart = one_way_anova([[1.0, 1.0], [2.0, 2.0]])
    assert (apart.eta_squared, apart.f, apart.eta_low, apart.welch_f) == (1.0, None, None, None)
    half = one_way_anova([[1.0, 1.0], [2.0, 3.0]])
    assert half.f is not None
    assert half.welch_f is None
    assert one_way_anova([[1.0]]).n is None


def test_the_papers_interval_follows_from_its_f() -> None:
    """F(3, 353) = 143.76, η² = 0.550 [0.482, 0.601] (Bhat and Varma, Limitations)."""
    f = published("paraphrase-robustness")["anova.task.items.classic.F"].value
    assert eta_squared_interval(f, 3, 353) == pytest.approx((0.482, 0.601), abs=0.0005)
    assert eta_squared_interval(0.2, 3, 30)[0] == 0.0
