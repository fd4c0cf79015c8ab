"""Variance components, generalisability and planning."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.statistics.planning import items_for_width, plan
from judgesense.statistics.planning import items_needed as items_needed_for
from judgesense.statistics.variance import components, generalisability, label_components

items_needed = partial(items_needed_for, threshold=0.8)


def grid(shape: tuple[int, ...], deviations: dict[str, float], seed: int = 0) -> np.ndarray:
    """Scores with normal effects of known standard deviation on the named axes."""
    axes = ("item", "template", "order", "rerun")
    rng = np.random.default_rng(seed)
    scores = np.zeros(shape)
    for source, deviation in deviations.items():
        parts = source.split(":")
        own = tuple(n if axis in parts else 1 for axis, n in zip(axes, shape, strict=False))
        scores = scores + rng.normal(0, deviation, own)
    return scores


def test_known_components_are_found_again_on_average() -> None:
    truth = {"item": 1.0, "template": 0.6, "order": 0.5, "item:template": 0.4, "item:order": 0.3,
             "template:order": 0.3, "item:template:order": 0.3}  # fmt: skip
    rerun = {"item:template:order:rerun": 0.5}
    mean: dict[str, float] = {}
    for seed in range(60):
        found = components(grid((30, 12, 8, 3), truth | rerun, seed)).variances
        for name, value in found.items():
            assert value is not None
            mean[name] = mean.get(name, 0) + value / 60
    for name, deviation in truth.items():
        key = "residual" if name == "item:template:order" else name
        assert mean[key] == pytest.approx(deviation**2, rel=0.2, abs=0.005), name
    assert mean["rerun"] == pytest.approx(0.25, rel=0.02)


def test_two_factors_follow_the_textbook_mean_squares() -> None:
    scores = np.random.default_rng(1).normal(size=(7, 4)) + np.arange(7)[:, None]
    rows, columns, all_ = scores.mean(1), scores.mean(0), scores.mean()
    ms_item = 4 * ((rows - all_) ** 2).sum() / 6
    ms_template = 7 * ((columns - all_) ** 2).sum() / 3
    rest = scores - rows[:, None] - columns + all_
    ms_rest = (rest**2).sum() / 18
    found = components(scores)
    assert found.variances["item"] == pytest.approx((ms_item - ms_rest) / 4)
    assert found.variances["residual"] == pytest.approx(ms_rest)
    assert found.variances["template"] == pytest.approx(max(0, (ms_template - ms_rest) / 7))
    assert found.variances["rerun"] is None
    assert found.levels == {"item": 7, "template": 4, "order": 1, "rerun": 1}


@pytest.mark.slow
def test_the_mean_squares_are_statsmodels_anova() -> None:
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    scores = grid((6, 4, 3, 1), {"item": 1.0, "template": 0.5, "item:template:order": 0.7}, 5)
    place = np.indices(scores.shape[:3]).reshape(3, -1)
    frame = pd.DataFrame({"y": scores.ravel(), "i": place[0], "t": place[1], "o": place[2]})
    fit = smf.ols("y ~ (C(i) + C(t) + C(o))**2", frame).fit()
    table = anova_lm(fit)
    ms = table["sum_sq"] / table["df"]
    found = components(scores[..., 0])
    raw = (ms["C(i):C(t)"] - ms["Residual"]) / 3
    assert found.variances["item:template"] == pytest.approx(max(0.0, raw), abs=1e-9)
    raw = (ms["C(i)"] - ms["C(i):C(t)"] - ms["C(i):C(o)"] + ms["Residual"]) / 12
    assert found.variances["item"] == pytest.approx(raw, rel=1e-9)


def test_a_judge_that_never_wavers_has_only_item_variance() -> None:
    labels = np.repeat(np.array(["YES", "NO", "NO", "YES", "NO"])[:, None], 4, axis=1)
    found = label_components(labels)
    assert found.shares["item"] == pytest.approx(1.0)
    assert found.shares["template"] == found.shares["residual"] == 0
    assert generalisability(found.variances, 1) == pytest.approx(1.0)


def test_a_judge_that_follows_the_template_has_only_template_variance() -> None:
    labels = np.repeat(np.array(["4", "3", "4", "5"])[None, :], 6, axis=0)
    found = label_components(labels)
    assert found.shares["template"] == pytest.approx(1.0)
    assert generalisability(found.variances, 4) is None  # items do not differ at all
    assert generalisability(found.variances, 4, absolute=True) == 0.0


def test_two_labels_have_twice_the_components_of_one_indicator() -> None:
    decisions = np.random.default_rng(2).random((12, 5, 2)) < 0.6
    labels = np.where(decisions, "A", "B")
    by_label, indicator = label_components(labels), components(decisions.astype(float))
    for name, value in indicator.variances.items():
        assert by_label.variances[name] == (value if value is None else pytest.approx(2 * value))


def test_a_grid_where_nothing_varies_has_no_shares() -> None:
    found = components(np.ones((3, 3)))
    assert set(found.shares.values()) == {None}
    assert generalisability(found.variances, 3) is None


def test_negative_estimates_are_named() -> None:
    checkerboard = np.indices((4, 4)).sum(axis=0) % 2
    found = components(checkerboard)
    assert found.variances["item"] == 0
    assert set(found.negative) == {"item", "template"}


def test_generalisability_is_the_textbook_ratio() -> None:
    variances = {"item": 0.5, "template": 0.2, "residual": 0.3, "rerun": None}
    assert generalisability(variances, 3) == pytest.approx(0.5 / (0.5 + 0.1))
    assert generalisability(variances, 3, absolute=True) == pytest.approx(
        0.5 / (0.5 + 0.1 + 0.2 / 3)
    )


def test_cronbachs_alpha_is_the_generalisability_of_all_templates() -> None:
    scores = grid((40, 6), {"item": 1.0, "template": 0.4, "item:template": 0.8}, 3)
    alpha = 6 / 5 * (1 - scores.var(axis=0, ddof=1).sum() / scores.sum(axis=1).var(ddof=1))
    assert generalisability(components(scores).variances, 6) == pytest.approx(alpha)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], "has 1 dimensions"),
        ([[1.0, float("nan")], [1.0, 2.0]], r"scores\[0\]\[1\] is nan"),
        ([[1.0, 2.0]], "1 item"),
        ([[1.0], [2.0]], "1 template"),
        ([[1.0, 2.0], [1.0]], "scores is ragged"),
    ],
)
def test_bad_grids_are_refused(scores: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        components(scores)  # type: ignore[arg-type]


def test_a_label_grid_wants_labels() -> None:
    with pytest.raises(ValueError, match=r"labels\[1\]\[0\] is None"):
        label_components([["A", "B"], [None, "A"]])  # type: ignore[list-item]


def test_a_planned_width_is_the_width_found() -> None:
    truth = {"item": 0.6, "template": 0.3, "item:template": 0.5}
    found = components(grid((400, 5), truth, 1)).variances
    (design,) = plan(found, 0.2, templates=[5])
    assert design.items is not None
    assert design.prompts == 5 * design.items
    widths = []
    for seed in range(40):
        scores = grid((design.items, 5), truth, 100 + seed)
        interval = mean_t_cluster(scores.mean(axis=1))
        widths.append(interval.high - interval.low)  # type: ignore[operator]
    assert np.mean(widths) == pytest.approx(0.2, rel=0.1)


def test_more_templates_need_fewer_items_and_wording_at_random_needs_enough_templates() -> None:
    variances = {"item": 0.1, "template": 0.2, "residual": 0.4, "rerun": None}
    fixed = [design.items for design in plan(variances, 0.2, templates=[1, 5, 20])]
    assert fixed == sorted(fixed, reverse=True)  # type: ignore[type-var]
    free = plan(variances, 0.5, templates=[1, 100], fixed_templates=False)
    assert free[0].items is None
    assert free[1].items is not None


def test_items_needed_is_the_first_number_that_settles_it() -> None:
    needed = items_needed(0.85, pairs_per_item=5, icc=0.3)
    assert needed is not None

    def low(k: int) -> float:
        from judgesense.statistics.planning import _planned_interval

        return _planned_interval(0.85, 5, 0.3, 0.95)(k)[0]

    assert low(needed) > 0.8 >= low(needed - 1)


def test_items_needed_grows_towards_the_threshold_and_ends_at_none() -> None:
    assert items_needed(0.95) < items_needed(0.9) < items_needed(0.82)  # type: ignore[operator]
    assert items_needed(0.8) is None
    assert items_needed(0.5) is not None
    assert items_needed(0.85, 5, 0.5) < items_needed(0.85, 1)  # type: ignore[operator]


def test_items_for_a_width_agree_with_the_interval() -> None:
    k = items_for_width(0.9, 0.1)
    assert k is not None
    agree = np.arange(10 * (k // 10)) >= k // 10
    interval = wilson_cluster(agree)
    assert interval.high - interval.low == pytest.approx(0.1, abs=0.005)  # type: ignore[operator]


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match=r"share is 1\.2"):
        items_needed(1.2)
    with pytest.raises(ValueError, match="icc is nan"):
        items_needed(0.9, 5, float("nan"))
    with pytest.raises(ValueError, match="pairs_per_item is '5'"):
        items_needed(0.9, "5")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width is 0"):
        items_for_width(0.9, 0)
    with pytest.raises(ValueError, match="n_templates is 0"):
        plan({"item": 1.0, "residual": 1.0}, 0.1, templates=[0])
    with pytest.raises(ValueError, match="no 'item'"):
        generalisability({"template": 1.0}, 2)


def test_an_undecided_cell_is_no_label() -> None:
    with pytest.raises(ValueError, match=r"labels\[1\]\[0\] is 'UNCLEAR'"):
        label_components([["A", "B"], ["UNCLEAR", "B"]])
