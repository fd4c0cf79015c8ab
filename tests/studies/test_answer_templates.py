"""How far accuracy and rankings spread over templates, against what chance would give."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.sensitivity import (
    rank_agreement_interval,
    template_means,
    template_spread,
)


def test_templates_that_do_not_matter_spread_as_chance_does() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random((1, 200))
    scores = (rng.random((12, 200)) < hard).astype(float)
    spread = template_spread(scores)
    assert spread["p"] > 0.05
    assert spread["std"] == pytest.approx(spread["std_by_chance"], rel=0.5)
    # The binomial spread of 200 items would be larger: items, not templates, are what differs.
    assert spread["std_by_chance"] < np.sqrt(spread["accuracy"] * (1 - spread["accuracy"]) / 200)


def test_a_template_that_breaks_the_matcher_is_more_than_chance() -> None:
    scores = np.ones((12, 30))
    scores[3] = 0.0
    spread = template_spread(scores)
    assert (spread["accuracy_low"], spread["accuracy_high"]) == (0.0, 1.0)
    assert spread["p"] < 0.01
    assert spread["std"] > 5 * spread["std_by_chance"]


def test_answers_without_a_verdict_are_left_out_and_never_count_as_wrong() -> None:
    scores = np.array([[1.0, np.nan, 1.0], [1.0, 0.0, np.nan]])
    assert template_means(scores) == pytest.approx([1.0, 0.5])
    unknown = template_spread(np.array([[np.nan, np.nan], [1.0, 0.0]]))
    assert set(unknown.values()) == {None}


def test_a_ranking_that_no_template_changes_is_certain_and_two_models_have_none() -> None:
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.5, 0.9])[:, None, None]
    scores = (rng.random((3, 6, 100)) < levels).astype(float)
    interval = rank_agreement_interval(scores)
    assert interval.low is not None
    assert interval.low > 0.95
    assert rank_agreement_interval(scores[:2]).low is None
