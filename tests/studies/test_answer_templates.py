"""The templates of `judgesense study answer-matching`: the paper's and yours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from judgesense.matching.maths import last_boxed
from judgesense.statistics.sensitivity import (
    rank_agreement_interval,
    template_means,
    template_spread,
)
from judgesense.studies.answer_matching.answers import (
    CHOICE,
    SET_OF,
    paper_templates,
)
from judgesense.studies.common.question_sets import BenchmarkItem

HOME = Path(__file__).resolve().parents[2] / "judgesense" / "studies" / "answer_matching"


ITEM = BenchmarkItem("i", "Which {context} flies?", ("bird",), ("cat", "bird", "dog", "cow"), 1)


def test_every_set_has_the_papers_twelve_templates() -> None:
    for kind in dict.fromkeys(SET_OF.values()):
        templates = paper_templates(kind)
        assert len(templates) == 12
        assert all("{question}" in template.text for template in templates)
    styles = [template.style for template in paper_templates(CHOICE)]
    # Templates 6, 9, 10 and 12 of Appendix A number their options.
    assert [at for at, style in enumerate(styles, 1) if style == "numbers"] == [6, 9, 10, 12]


def test_a_rendered_template_is_the_papers_wording_with_the_item_in_it() -> None:
    assert paper_templates(CHOICE)[9].render(ITEM) == (
        "Consider the following question and determine the right response.\nWhich {context} "
        "flies?\nWhich of the following answers do you prefer?\nOption 1: cat\nOption 2: bird\n"
        "Option 3: dog\nOption 4: cow\nI select:"
    )


def test_each_maths_template_has_four_examples_of_its_own_that_end_in_a_box() -> None:
    content = yaml.safe_load((HOME / "templates.yaml").read_text())
    examples = [tuple(pair) for entry in content["sets"]["math"] for pair in entry["examples"]]
    assert len(examples) == 48
    assert len(set(examples)) == 48
    assert all(last_boxed(solution) for _, solution in examples)
    shown = paper_templates("math")[1].render(ITEM)
    assert shown.count("Problem::\n") == 5
    assert shown.endswith("Problem::\nWhich {context} flies?\nAnswer:\n")


def test_templates_that_do_not_matter_spread_as_chance_does() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random((1, 200))
    scores = (rng.random((12, 200)) < hard).astype(float)
    spread = template_spread(scores)
    assert spread is not None
    assert spread.p > 0.05
    assert spread.std == pytest.approx(spread.by_chance, rel=0.5)
    # The binomial spread of 200 items would be larger: items, not templates, are what differs.
    assert spread.by_chance < np.sqrt(spread.mean * (1 - spread.mean) / 200)


def test_a_template_that_breaks_the_matcher_is_more_than_chance() -> None:
    scores = np.ones((12, 30))
    scores[3] = 0.0
    spread = template_spread(scores)
    assert spread is not None
    assert (spread.low, spread.high) == (0.0, 1.0)
    assert spread.p < 0.01
    assert spread.std > 5 * spread.by_chance


def test_answers_without_a_verdict_are_left_out_and_never_count_as_wrong() -> None:
    scores = np.array([[1.0, np.nan, 1.0], [1.0, 0.0, np.nan]])
    assert template_means(scores) == pytest.approx([1.0, 0.5])
    assert template_spread(np.array([[np.nan, np.nan], [1.0, 0.0]])) is None


def test_a_ranking_that_no_template_changes_is_certain_and_two_models_have_none() -> None:
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.5, 0.9])[:, None, None]
    scores = (rng.random((3, 6, 100)) < levels).astype(float)
    interval = rank_agreement_interval(scores)
    assert interval.low is not None
    assert interval.low > 0.95
    assert rank_agreement_interval(scores[:2]).low is None
