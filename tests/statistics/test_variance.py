"""Variance components of labels."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.variance import label_components


def test_two_factors_follow_the_textbook_mean_squares() -> None:
    scores = np.random.default_rng(1).random((7, 4)) < np.linspace(0.1, 0.9, 7)[:, None]
    rows, columns, mean = scores.mean(1), scores.mean(0), scores.mean()
    ms_item = 4 * ((rows - mean) ** 2).sum() / 6
    ms_template = 7 * ((columns - mean) ** 2).sum() / 3
    ms_rest = ((scores - rows[:, None] - columns + mean) ** 2).sum() / 18
    found = label_components(np.where(scores, "A", "B"))
    # Each of the two labels has the components of the 0/1 column.
    assert found["item"] == pytest.approx(2 * (ms_item - ms_rest) / 4)
    assert found["residual"] == pytest.approx(2 * ms_rest)
    assert found["template"] == pytest.approx(2 * max(0, (ms_template - ms_rest) / 7))


@pytest.mark.slow
def test_the_mean_squares_are_statsmodels_anova() -> None:
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(5)
    ease = rng.normal(0, 1, (6, 1, 1)) + rng.normal(0, 1, (6, 4, 1))
    scores = ease + rng.normal(0, 0.5, (6, 4, 3)) > 0
    place = np.indices(scores.shape).reshape(3, -1)
    frame = pd.DataFrame({"y": scores.ravel() * 1.0, "i": place[0], "t": place[1], "o": place[2]})
    table = anova_lm(smf.ols("y ~ (C(i) + C(t) + C(o))**2", frame).fit())
    ms = table["sum_sq"] / table["df"]
    found = label_components(np.where(scores, "YES", "NO"))
    raw = (ms["C(i):C(t)"] - ms["Residual"]) / 3
    assert found["item:template"] == pytest.approx(2 * max(0.0, raw), abs=1e-9)
    raw = (ms["C(i)"] - ms["C(i):C(t)"] - ms["C(i):C(o)"] + ms["Residual"]) / 12
    assert found["item"] == pytest.approx(2 * max(0.0, raw), rel=1e-9)


def test_a_judge_that_never_wavers_has_only_item_variance() -> None:
    labels = np.repeat(np.array(["YES", "NO", "NO", "YES", "NO"])[:, None], 4, axis=1)
    found = label_components(labels)
    assert found["item"] > 0
    assert found["template"] == found["residual"] == 0


def test_a_judge_that_follows_the_template_has_only_template_variance() -> None:
    labels = np.repeat(np.array(["4", "3", "4", "5"])[None, :], 6, axis=0)
    found = label_components(labels)
    assert found["template"] > 0
    assert found["item"] == found["residual"] == 0
