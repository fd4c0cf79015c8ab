"""Intervals: what a cluster is, what they do at the edges, and the published ones again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesense.statistics.inputs import cluster_codes, numbers
from judgesense.statistics.intervals import (
    Interval,
    mean_t_cluster,
    wilson,
    wilson_cluster,
    wilson_from_sums,
)
from judgesense.statistics.kappa import bootstrap_kappa, kappa_of_codes, wilson_kappa
from judgesense.statistics.resampling import bootstrap_mean, resampled_sums


def width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


def simulated(k: int, pairs: int, share: float, icc: float, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    spread = (1 - icc) / icc
    p = rng.beta(share * spread, (1 - share) * spread, k)
    return rng.random(k * pairs) < np.repeat(p, pairs), np.repeat(np.arange(k), pairs)


@pytest.mark.parametrize(
    "ids",
    [
        ["b", "a", "b"],
        (7, 3, 7),
        np.array(["b", "a", "b"]),
        np.array([7, 3, 7]),
        np.array([2**62, -5, 2**62]),
        np.array(["b", 1, "b"], dtype=object),
    ],
)
def test_strings_and_integers_name_the_same_clusters(ids: object) -> None:
    codes, k = cluster_codes(ids, 3)
    assert k == 2
    assert codes[0] == codes[2] != codes[1]


def test_wilson_gives_the_textbook_interval() -> None:
    # Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3: 81 of 263.
    low, high = wilson(81 / 263, 263, 1.959964)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_repeating_every_row_within_its_item_does_not_narrow_the_interval() -> None:
    for seed in range(50):
        agree, items = simulated(25, 3, 0.85, 0.3, seed)
        once = wilson_cluster(agree, items)
        again = wilson_cluster(np.tile(agree, 4), np.tile(items, 4))
        assert width(again) >= width(once) - 1e-12
        labels = np.where(np.arange(75) % 2, 1, 0)
        other = np.where(agree, labels, 1 - labels)
        kappa_once = wilson_kappa(labels, other, items)
        kappa_again = wilson_kappa(np.tile(labels, 4), np.tile(other, 4), np.tile(items, 4))
        assert width(kappa_again) >= width(kappa_once) - 1e-12


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=2, max_size=80))
def test_the_interval_contains_the_share_and_stays_in_the_unit_interval(
    rows: list[tuple[bool, int]],
) -> None:
    agree, items = map(list, zip(*rows, strict=True))
    interval = wilson_cluster(agree, items)
    if len(set(items)) == 1:
        assert interval.low is None
        assert interval.high is None
        return
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= np.mean(agree) + 1e-12
    assert np.mean(agree) - 1e-12 <= interval.high <= 1
    assert interval.effective_n is not None
    assert interval.effective_n <= len(agree) + 1e-9


def test_the_bootstrap_of_rows_is_scipys() -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(0).random(300) < 0.8
    ours = bootstrap_mean(values, n_resamples=20_000)
    theirs = bootstrap(
        (values.astype(float),),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_the_three_ways_to_draw_agree() -> None:
    rng = np.random.default_rng(4)
    for k, distinct in ((400, False), (1_500, False), (6_000, False), (6_000, True)):
        rows = rng.integers(0, 3 if distinct else 50, size=(k, 2)).astype(float)
        sums = resampled_sums(rows, 4_000, seed=1)
        assert sums.mean(axis=0) == pytest.approx(rows.sum(axis=0), rel=0.002)
        covariance = np.cov(rows.T, ddof=0) * k
        assert np.cov(sums.T) == pytest.approx(covariance, abs=0.08 * covariance.max())


def test_the_kappa_bootstrap_is_the_loop_over_resampled_items() -> None:
    agree, items = simulated(40, 3, 0.8, 0.3, 7)
    labels = np.random.default_rng(0).integers(0, 3, len(agree))
    other = np.where(agree, labels, (labels + 1) % 3)
    ours = bootstrap_kappa(labels, other, items, n_resamples=20_000)
    rng = np.random.default_rng(9)
    rows = np.arange(120).reshape(40, 3)
    loop = []
    for _ in range(3_000):
        drawn = rows[rng.integers(0, 40, 40)].ravel()
        loop.append(kappa_of_codes(labels[drawn], other[drawn], 3))
    low, high = np.quantile(np.array(loop, dtype=float), [0.025, 0.975])
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.02)


def test_the_mean_interval_of_rows_is_students() -> None:
    from scipy.stats import t

    x = np.random.default_rng(1).normal(3, 2, 40)
    ours = mean_t_cluster(x)
    low, high = t.interval(0.95, 39, loc=x.mean(), scale=x.std(ddof=1) / np.sqrt(40))
    assert (ours.low, ours.high) == pytest.approx((low, high))


@pytest.mark.slow
def test_the_mean_interval_of_clusters_is_statsmodels() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(2)
    items = rng.integers(0, 15, 100)
    x = rng.normal(0, 1, 15)[items] + rng.normal(0, 1, 100)
    fit = sm.OLS(x, np.ones(100)).fit(cov_type="cluster", cov_kwds={"groups": items}, use_t=True)
    # statsmodels also multiplies the variance by (n - 1) / (n - 1 parameter), which is 1 here.
    low, high = fit.conf_int()[0]
    ours = mean_t_cluster(x, items)
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-6)


def test_one_cluster_has_no_interval_by_any_method() -> None:
    nothing = Interval(None, None)
    assert wilson_cluster([True, False], ["x", "x"]) == nothing
    assert bootstrap_mean([1.0, 0.0], ["x", "x"]) == nothing
    assert mean_t_cluster([1.0, 0.0], ["x", "x"]) == nothing
    assert bootstrap_kappa(np.array([0, 1]), np.array([0, 0]), ["x", "x"]) == nothing


@pytest.mark.parametrize(("k", "pairs", "icc", "share"), [(25, 2, 0.8, 0.97), (25, 10, 0.5, 0.8)])
def test_the_default_interval_covers_where_the_row_wise_one_does_not(
    k: int, pairs: int, icc: float, share: float
) -> None:
    rng = np.random.default_rng(0)
    spread = (1 - icc) / icc
    sums = rng.binomial(pairs, rng.beta(share * spread, (1 - share) * spread, (2_000, k)))
    ours = rows = 0
    for hits in sums:
        interval = wilson_from_sums(hits, np.full(k, pairs))
        ours += interval.low <= share <= interval.high  # type: ignore[operator]
        low, high = wilson(hits.sum() / (k * pairs), k * pairs, 1.959964)
        rows += low <= share <= high
    assert 0.94 <= ours / 2_000 <= 0.99
    assert rows / 2_000 < 0.9


def test_published_intervals_are_the_row_wise_bootstrap(published: Path) -> None:
    summary = json.loads((published / "metrics_summary.json").read_text())
    cells = [cell for tasks in summary.values() for cell in tasks.values()]
    assert len(cells) == 52
    for cell in cells:
        rows = np.arange(cell["n_pairs"]) >= cell["n_flips"]
        ours = bootstrap_mean(rows, n_resamples=10_000)
        assert ours.low == pytest.approx(cell["ci_lower"], abs=0.01)
        assert ours.high == pytest.approx(cell["ci_upper"], abs=0.01)


@pytest.mark.parametrize(
    ("values", "ndim", "told"),
    [
        ([1.0, 2.0, "3"], 1, r"x\[2\] is '3'"),
        ([1, None], 1, r"x\[1\] is None"),
        ([[1.0, 2.0], [3.0, "4"]], 2, r"x\[1\]\[1\] is '4'"),
        ([1.0, float("inf")], 1, r"x\[1\] is inf"),
        ([1, 10**400], 1, r"x\[1\] is 1000"),
        ([[1, 2], [3]], 2, r"x\[1\] has 1"),
        ([], 1, "x is empty"),
    ],
)
def test_what_is_no_number_is_named_by_its_own_place(values: object, ndim: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        numbers(values, "x", ndim)
