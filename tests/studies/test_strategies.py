"""Panels, self-consistency and the paper's measures on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from judgesense.log.folder import Run
from judgesense.studies.common.study import published
from judgesense.studies.paraphrase_robustness.grid import Grid, Scores, make_plan
from judgesense.studies.paraphrase_robustness.measures import (
    Record,
    configuration,
    contrasts,
    control,
    drawn_gaps,
    stability,
    weights_of,
)
from judgesense.studies.paraphrase_robustness.strategies import (
    BEST,
    CONSTANT,
    SELF,
    SINGLE,
    Outcome,
    crossfit_accuracy,
)
from judgesense_dataset.embedded import load_attributes

NAN = float("nan")
ATTRIBUTES = load_attributes()
CLARITY, ANSWERABILITY = "question-clarity", "question-answerability"
CONTROL = ("n_configurations", "n_items", "gap_reworded", "gap_same")


def cell(
    judge: str,
    scores: Sequence[Sequence[float]],
    human: Sequence[float],
    attribute: str = CLARITY,
) -> Scores:
    n = len(human)
    return Scores(
        judge=judge,
        attribute=ATTRIBUTES[attribute],
        items=tuple(f"i{row}" for row in range(n)),
        clusters=tuple(f"i{row}" for row in range(n)),
        scores=np.array(scores, dtype=float),
        human=np.array(human, dtype=float),
        gold=np.floor(np.array(human) + 0.5),
        base=np.array(scores, dtype=float)[:, 0],
        shares=None,
        left_out=0,
        cost=np.array([100.0, 0.001]),
    )


def measure(one: Grid) -> list[Record]:
    return [configuration(cell) for cell in one.cells]


def outcomes(one: Grid) -> dict[str, Outcome]:
    """The outcomes of the first attribute by strategy."""
    ballot = one.ballot(one.cells[0].attribute.name, 0.5)
    return {} if ballot is None else {o.strategy: o for o in ballot.outcomes()}


def grid(*cells: Scores) -> Grid:
    names = list(dict.fromkeys(one.attribute.name for one in cells))
    return Grid(make_plan(attributes=names), list(cells), [], {})


def three_who_err_in_turn() -> Grid:
    """Each is wrong on another of three items, whatever the paraphrase."""
    human = [1, 2, 3]
    return grid(
        cell("a", [[2, 2], [2, 2], [3, 3]], human),
        cell("b", [[1, 1], [1, 1], [3, 3]], human),
        cell("c", [[1, 1], [2, 2], [1, 1]], human),
    )


def test_a_panel_outvotes_judges_who_err_in_turn_and_self_consistency_cannot() -> None:
    found = outcomes(three_who_err_in_turn())
    assert found[SINGLE].mean("exact") == pytest.approx(2 / 3)
    assert found["panel, majority"].exact.tolist() == [1.0, 1.0, 1.0]
    # Means are 4/3, 5/3 and 7/3: they round to 1, 2 and 2.
    assert found["panel, mean"].exact.tolist() == [1.0, 1.0, 0.0]
    assert found["panel, mean"].near.tolist() == [1.0, 1.0, 0.0]
    assert found["panel, mean"].mean("gain") == pytest.approx(0, abs=1e-12)
    assert found[SELF].mean("exact") == pytest.approx(2 / 3)
    assert found[CONSTANT].mean("exact") == pytest.approx(1 / 3)
    cost = {name: (one.calls, *one.cost.tolist()) for name, one in found.items()}
    assert cost[SINGLE] == (1, pytest.approx(100), pytest.approx(0.001))
    assert cost["panel, median"] == (3, pytest.approx(300), pytest.approx(0.003))
    assert cost[SELF] == (2, pytest.approx(200), pytest.approx(0.002))
    assert cost[CONSTANT] == (0, 0, 0)


def test_the_best_of_equal_judges_and_strategies_is_scored_on_texts_that_did_not_choose_it() -> (
    None
):
    rng = np.random.default_rng(4)
    human = rng.integers(1, 4, 40).tolist()
    right = rng.random((6, 40)) < 0.5
    cells = [
        cell(
            judge,
            [[h if ok else h % 3 + 1] * 2 for h, ok in zip(human, own, strict=True)],
            human,
            ANSWERABILITY,
        )
        for judge, own in zip("abcdef", right, strict=True)
    ]
    alone = {c.judge: float((c.scores == c.gold[:, None]).mean()) for c in cells}
    found = outcomes(grid(*cells))
    assert found[BEST].judge == max(alone, key=alone.__getitem__)
    # The judge that looks best on these texts is no better than the others.
    assert found[BEST].mean("exact") < max(alone.values()) - 0.02
    assert found[BEST].mean("near") == pytest.approx(found[BEST].mean("exact"))
    tried = [one for name, one in found.items() if name not in (SINGLE, CONSTANT)]
    fitted = crossfit_accuracy(tried)
    assert fitted is not None
    assert fitted < max(one.mean("exact") for one in tried)
    assert crossfit_accuracy([*outcomes(three_who_err_in_turn()).values()]) is None


def test_the_papers_stability_test_follows_from_its_rates() -> None:
    """50% of 24, 42.5% of 40 and 35.4% of 48 configurations: chi2(2) = 1.46, p = 0.482."""
    test = chi2_contingency([[12, 12], [17, 23], [17, 31]], correction=False)
    said = published("paraphrase-robustness")
    assert test.statistic == pytest.approx(said["stable.chi2"].value, abs=0.005)
    assert test.pvalue == pytest.approx(said["stable.p"].value, abs=0.0005)
    assert said["stable"].value == pytest.approx(46 / 112, abs=0.0005)


def test_measures_of_a_grid_have_the_values_worked_out_by_hand() -> None:
    human = [1.0, 2.0, 2.6, 3.0]
    moving = cell("moving", [[1, 2], [2, 2], [3, 1], [3, 3]], human)
    fixed = cell("fixed", [[3, 3]] * 4, human, ANSWERABILITY)
    found = measure(grid(moving, fixed))
    one, two = found
    assert (one["accuracy"], one["gap"], one["consistency"]) == pytest.approx((6 / 8, 0.5, 0.5))
    assert one["unrounded"] == pytest.approx(5 / 8)  # 2.6 is met by no whole score
    assert (one["near"], one["within"][0.25]) == pytest.approx((6 / 8, 5 / 8))
    assert (one["insensitive"], two["insensitive"]) == (False, True)
    assert (two["stable"], two["top_score"], two["constant_accuracy"]) == (True, 1.0, 0.5)
    counts, _ = stability(found)
    assert counts == {"verifiable": (1, 1), "semi-objective": (0, 1)}
    (contrast,) = contrasts(found)
    assert contrast["difference"] == pytest.approx(0.5 - 0.75)


@pytest.mark.slow
def test_the_control_tells_wordings_from_chance() -> None:
    n, k = 40, 4
    human = [1 + row % 3 for row in range(n)]
    even = np.full((n, k + 1, 3), 1 / 3)
    swayed = even.copy()
    for row, h in enumerate(human):
        for wording in (1, 2):  # two of four paraphrases give the right answer away
            swayed[row, wording] = 0.02
            swayed[row, wording, h - 1] = 0.96
    table = [[1] * k] * n
    base = measure(grid(cell("a", table, human)))[0]

    def gaps(shares: np.ndarray) -> tuple[float, float]:
        own = drawn_gaps(replace(base["cell"], shares=shares), 0)
        assert own is not None
        return own[:2]

    reworded, same = gaps(even)
    assert reworded == pytest.approx(same, abs=0.02)
    reworded, same = gaps(swayed)
    assert reworded > same + 0.4
    *_, drawn = control([base | {"gaps": (0.5, 0.25, 9)}])
    assert tuple(drawn[name] for name in CONTROL) == (1, 9, 0.5, 0.25)


def test_the_control_draws_both_gaps_on_items_that_the_base_wording_decided() -> None:
    shares = np.array([[[0, 1, 0]] * 3] * 3, dtype=float)
    whole = replace(cell("a", [[2, 2]] * 3, [1, 2, 3]), shares=shares)
    some = replace(whole, base=np.array([NAN, 2, 2]), shares=shares.copy())
    some.shares[0, 0] = NAN
    none = replace(whole, base=np.full(3, NAN), shares=np.where(np.arange(3)[:, None] == 0, NAN, 1))
    found = measure(grid(whole, replace(some, judge="b"), replace(none, judge="c")))
    assert [row["gaps"] and row["gaps"][2] for row in found] == [3, 2, None]
    *_, row = control(found)
    assert tuple(row[name] for name in CONTROL) == (2, 5, 0.0, 0.0)


def test_the_control_takes_answers_to_the_same_prompt_before_probabilities() -> None:
    asked = replace(
        cell("a", [[2, 1], [2, 2], [2, 1], [1, 1]], [2, 2, 2, 2]),
        again=np.array([[2, 2], [2, 1], [2, NAN], [1, 2]]),
        shares=np.full((4, 3, 3), 1 / 3),
    )
    (row,) = measure(grid(asked))
    # On the three items decided each time: right 2/3 and 1/3 reworded, 2/3 both times asked again.
    assert row["gaps"] == (pytest.approx(1 / 3), 0.0, 3)


def test_weights_are_open_where_they_are_run_or_only_open_ones_are_served() -> None:
    known = {
        "one@1": {"engine": "transformers"},
        "two@1": {"engine": "api", "endpoint": "https://api.openai.com/v1"},
        "three@1": {"engine": "api", "endpoint": "https://api.groq.com/openai/v1"},
        "four@1": {"engine": "api", "endpoint": "http://localhost:8000/v1"},
        "five@1": {"engine": "callable"},
    }
    record = {"judges": [{"name": name, "describe": about} for name, about in known.items()]}
    found = weights_of(Run(Path(), record))
    assert found == {"one": "open", "two": "proprietary", "three": "open"}
