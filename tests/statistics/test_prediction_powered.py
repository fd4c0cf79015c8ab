"""Prediction-powered means, Rogan-Gladen and label plans, beside ppi_py and judgy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judgesense.comparison.estimate import labels_needed
from judgesense.statistics.prediction_powered import (
    combined,
    influence,
    naive_influence,
)
from judgesense.statistics.rogan_gladen import rogan_gladen


def powered_mean(labels, predictions, clusters=None, **options):
    part = influence(labels, predictions, clusters=clusters, **options)
    ids = np.arange(len(labels)) if clusters is None else clusters
    codes = np.unique(ids, return_inverse=True)[1]
    return combined([(1.0, part, codes)])


@pytest.fixture
def scores():
    """Labels, predictions, and labels of which the first 20 are known."""
    rng = np.random.default_rng(7)
    y = np.round(rng.normal(0.3, 1, 60), 3)
    f = np.round(0.6 * y + rng.normal(0, 0.5, 60), 3)
    return y, f, np.where(np.arange(60) < 20, y, np.nan)


# Figures of ppi_py 0.2.3 and judgy 0.1.0 on the same arrays.
@pytest.mark.parametrize(
    ("lam", "estimate", "error"),
    [(1.0, 0.07549999999999998, 0.1535877), (None, 0.03571483777740855, 0.1303664)],
)
def test_equals_ppi_py(scores, lam, estimate, error):
    _, f, told = scores
    found = powered_mean(told, f, lam=lam)
    assert found.estimate == pytest.approx(estimate, abs=1e-9)
    # The variance over 20 labels is divided by 19 here and by 20 there, and that of a tuned weight
    # is cross-fitted here.
    assert error < found.error < error * np.sqrt(20 / 19) * (1.0 if lam else 1.05)


def test_equals_judgy(scores):
    y, f, told = scores
    good = np.where(np.isnan(told), np.nan, (y > 0).astype(float))
    found = rogan_gladen(good, (f > 0).astype(float))
    assert found.rate == pytest.approx(0.53125, abs=1e-12)


@pytest.mark.slow
def test_equals_the_peers_on_other_data():
    import judgy
    import ppi_py

    rng = np.random.default_rng(3)
    for _ in range(5):
        y = (rng.random(300) < 0.4).astype(float)
        f = np.where(rng.random(300) < 0.2, 1 - y, y)
        told = np.where(np.arange(300) < 80, y, np.nan)
        theirs = ppi_py.ppi_mean_pointestimate(y[:80], f[:80], f[80:])
        assert powered_mean(told, f).estimate == pytest.approx(float(theirs[0]), abs=1e-9)
        rate = judgy.estimate_success_rate(y[:80], f[:80], f[80:], bootstrap_iterations=1)[0]
        assert rogan_gladen(told, f).rate == pytest.approx(rate, abs=1e-9)


def test_own_clusters_change_nothing_and_shared_ones_widen(scores):
    _, f, told = scores
    plain = powered_mean(told, f)
    alone = powered_mean(told, f, clusters=np.arange(60))
    assert (alone.estimate, alone.error) == pytest.approx((plain.estimate, plain.error))
    copies = powered_mean(np.repeat(told, 3), np.repeat(f, 3), clusters=np.repeat(np.arange(60), 3))
    assert copies.error == pytest.approx(plain.error, rel=1e-3)
    assert powered_mean(np.repeat(told, 3), np.repeat(f, 3)).error < 0.7 * copies.error


def test_a_shared_item_cancels_in_a_difference():
    rng = np.random.default_rng(0)
    item = rng.normal(size=200)
    told = np.where(np.arange(200) < 60, item, np.nan)
    codes = np.arange(200)
    one = influence(told + 1, item, clusters=codes)
    two = influence(told, item, clusters=codes)
    found = combined([(1.0, one, codes), (-1.0, two, codes)])
    assert found.estimate == pytest.approx(1.0)
    assert found.error == pytest.approx(0.0, abs=1e-12)
    apart = combined([(1.0, one, codes), (-1.0, two, codes + 200)])
    assert apart.error > 0.05


def test_wordings_add_their_jackknife_variance():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(300, 1)) + rng.normal(0, 0.5, (1, 4)) + rng.normal(size=(300, 4))
    naive = combined([(1.0, naive_influence(table), np.arange(300))])
    expected = table.mean(axis=0).std(ddof=1) / 2
    assert naive.wording_error == pytest.approx(expected, rel=1e-9)
    told = np.where(np.arange(300) < 80, table.mean(axis=1), np.nan)
    found = powered_mean(told, table)
    # Labels take the wordings' level away.
    assert found.wording_error < 0.35 * naive.wording_error
    assert combined([(1.0, naive_influence(table[:, :2]), np.arange(300))]).wording_error == 0.0


def test_a_judge_without_an_error_on_few_labels_still_has_an_interval():
    f = np.tile([1.0, 1.0, 0.0], 100)
    told = np.where(np.arange(300) < 30, f, np.nan)
    assert powered_mean(told, f).label_error == pytest.approx(0.0, abs=1e-3)
    assert powered_mean(told, f, step=1.0).label_error == pytest.approx(1.8 / 33, rel=0.1)


def test_strata_with_other_rates_are_weighed():
    strata = np.repeat([0, 1], [800, 200])
    y = np.where(strata == 0, np.tile([0.0, 0.0, 0.0, 1.0], 250), 1.0)
    told = np.full(1000, np.nan)
    for rows in (np.arange(0, 40), np.arange(800, 960)):
        told[rows] = y[rows]
    f = np.zeros(1000)
    assert powered_mean(told, f, strata=strata).estimate == pytest.approx(0.4)
    assert powered_mean(told, f).estimate == pytest.approx(0.85)


def test_one_cluster_shows_no_spread(scores):
    _, f, told = scores
    found = powered_mean(told, f, clusters=["q"] * 60)
    assert (found.ci_low, found.error, found.p_value) == (None, None, None)
    part = influence(told, f, clusters=np.zeros(60, int))
    whole = influence(told, f)
    both = combined([(1.0, part, np.zeros(60, int)), (-1.0, whole, np.arange(1, 61))])
    assert both.ci_low is None


def test_rogan_gladen_says_when_it_is_undefined():
    nan = float("nan")
    worse = rogan_gladen([1, 1, 0, 0, nan], [0, 0, 1, 1, 1])
    assert worse.rate is None
    assert "chance" in worse.degenerate
    single = rogan_gladen([1, 1, nan], [1, 0, 1])
    assert single.rate is None
    assert "one class" in single.degenerate
    unclear = rogan_gladen([1, 1, 0, 0] * 2 + [nan] * 9, [1, 1, 0, 1] * 2 + [1] * 9)
    assert unclear.rate is not None
    few = rogan_gladen([1, 0, 1, 0, nan, nan], [1, 1, 1, 0, 1, 0])
    assert few.degenerate


@pytest.mark.parametrize("n_bad", [9, 10])
def test_rogan_gladen_has_an_interval_from_ten_labels_of_each_class(n_bad):
    labels = [1.0] * 50 + [0.0] * n_bad + [float("nan")] * 200
    verdicts = [1.0] * 49 + [0.0] * (n_bad - 1) + [1.0, 0.0] + [1.0, 1.0, 0.0, 1.0] * 50
    found = rogan_gladen(labels, verdicts)
    assert found.rate is not None
    assert (found.ci_low is None) == (n_bad < 10)
    assert ("10 labels of each class" in (found.degenerate or "")) == (n_bad < 10)


def test_needed_labels_fall_with_the_gap(scores):
    rng = np.random.default_rng(2)
    y = (rng.random(4000) < 0.6).astype(float)
    f = np.where(rng.random(4000) < 0.25, 1 - y, y)
    found = powered_mean(np.where(np.arange(4000) < 100, y, np.nan), f)

    def needed(gap):
        return labels_needed(replace(found, estimate=gap), 0.95)

    far, near = (needed(gap) for gap in (0.08, 0.05))
    assert 100 < far < near
    assert needed(0.01) is None


def test_predictions_weigh_less_before_they_are_dropped():
    """With few labels, no interval is over 2% wider than that of the labels alone."""
    rng, shares = np.random.default_rng(5), set()
    for _ in range(60):
        y = rng.normal(size=80)
        f = 0.5 * y + rng.normal(size=80)
        told = np.where(np.arange(80) < 8, y, np.nan)
        found, alone = powered_mean(told, f), powered_mean(told, f, lam=0.0)
        assert found.ci_high - found.ci_low <= 1.02 * (alone.ci_high - alone.ci_low) + 1e-9
        tuned = influence(told, f).tuned
        shares.add(round(found.weight / tuned, 2) if tuned else 0.0)
    assert {1.0, 0.75, 0.5} <= shares <= {1.0, 0.75, 0.5, 0.25, 0.0}
