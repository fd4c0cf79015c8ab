"""Panels and self-consistency on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from judgesense.statistics.classical import chi_square
from judgesense.studies.common.result import published
from judgesense.studies.paraphrase_robustness.grid import Gaps, Grid, Scores, make_plan
from judgesense.studies.paraphrase_robustness.measures import (
    contrasts,
    control,
    correlations,
    effects,
    measure,
    stability,
)
from judgesense.studies.paraphrase_robustness.mitigations import (
    BEST,
    CONSTANT,
    FUSER,
    SELF,
    SINGLE,
    aggregate,
    exact,
    lost,
    near,
    outcomes,
)
from judgesense.studies.paraphrase_robustness.tables import (
    attributes_table,
    judges_table,
    mitigations_table,
    tolerance_table,
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
    tokens: float = 100.0,
    dollars: float | None = 0.001,
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
        tokens=tokens,
        dollars=dollars,
    )


def grid(*cells: Scores) -> Grid:
    names = list(dict.fromkeys(one.attribute.name for one in cells))
    return Grid(
        make_plan(attributes=names), list(dict.fromkeys(c.judge for c in cells)), list(cells)
    )


def three_who_err_in_turn() -> Grid:
    """Each is wrong on another of three items, whatever the paraphrase."""
    human = [1, 2, 3]
    return grid(
        cell("a", [[2, 2], [2, 2], [3, 3]], human),
        cell("b", [[1, 1], [1, 1], [3, 3]], human),
        cell("c", [[1, 1], [2, 2], [1, 1]], human),
    )


def test_votes_that_tie_go_to_the_score_nearest_the_median_then_to_the_lower() -> None:
    votes = np.array([[1, 1, 3, 3, 4], [1, 1, 3, 3, 2], [5, 5, 2, 1, NAN], [NAN] * 5])
    assert aggregate(votes, "majority").tolist()[:3] == [3.0, 1.0, 5.0]
    assert aggregate(votes, "median").tolist()[:3] == [3.0, 2.0, 3.5]
    assert aggregate(votes, "mean").tolist()[:3] == pytest.approx([2.4, 2.0, 3.25])
    assert all(np.isnan(aggregate(votes, how)[3]) for how in ("majority", "mean", "median"))


def test_exact_rounds_halves_up_and_near_takes_scores_and_human_means_as_they_are() -> None:
    scores, human = np.array([2.5, 2.4, 3.0]), np.array([3.0, 3.0, 3.4])
    assert exact(scores, human.round()).tolist() == [1.0, 0.0, 1.0]
    assert near(scores, human, 0.5).tolist() == [1.0, 0.0, 1.0]
    assert near(scores, human, 0.25).tolist() == [0.0, 0.0, 0.0]


def test_a_panel_outvotes_judges_who_err_in_turn_and_self_consistency_cannot() -> None:
    found = {one.strategy: one for one in outcomes(three_who_err_in_turn(), 0.5)}
    assert found[SINGLE].exact.mean() == pytest.approx(2 / 3)
    assert found["panel, majority"].exact.tolist() == [1.0, 1.0, 1.0]
    assert found["panel, median"].exact.tolist() == [1.0, 1.0, 1.0]
    # Means are 4/3, 5/3 and 7/3: they round to 1, 2 and 2.
    assert found["panel, mean"].exact.tolist() == [1.0, 1.0, 0.0]
    assert found["panel, mean"].near.tolist() == [1.0, 1.0, 0.0]
    assert found[SELF].exact.mean() == pytest.approx(2 / 3)
    assert found[CONSTANT].exact.mean() == pytest.approx(1 / 3)


def test_self_consistency_mends_a_judge_that_errs_under_few_paraphrases() -> None:
    found = {
        one.strategy: one
        for one in outcomes(grid(cell("a", [[1, 1, 2], [2, 3, 2], [3, 3, 1]], [1, 2, 3])), 0.5)
    }
    assert found[SINGLE].exact.mean() == pytest.approx(2 / 3)
    assert found[SELF].exact.tolist() == [1.0, 1.0, 1.0]
    assert found[SELF].gap is None
    assert "panel, median" not in found


def test_what_a_strategy_costs_is_its_calls() -> None:
    found = {one.strategy: one for one in outcomes(three_who_err_in_turn(), 0.5)}
    cost = {name: (one.calls, one.tokens, one.dollars) for name, one in found.items()}
    assert cost[SINGLE] == (1, pytest.approx(100), pytest.approx(0.001))
    assert cost["panel, median"] == (3, pytest.approx(300), pytest.approx(0.003))
    assert cost[SELF] == (2, pytest.approx(200), pytest.approx(0.002))
    assert cost[CONSTANT] == (0, 0, 0)


def equal_judges(n: int = 40) -> Grid:
    """Six judges that are right half of the time, by chance."""
    rng = np.random.default_rng(4)
    human = rng.integers(1, 4, n).tolist()
    right = rng.random((6, n)) < 0.5
    cells = []
    for judge, own in zip("abcdef", right, strict=True):
        scores = [[h if ok else h % 3 + 1] * 2 for h, ok in zip(human, own, strict=True)]
        cells.append(cell(judge, scores, human, ANSWERABILITY))
    return grid(*cells)


def test_the_best_of_equal_judges_is_scored_on_texts_that_did_not_choose_it() -> None:
    equal = equal_judges()
    alone = {c.judge: float((c.scores == c.gold[:, None]).mean()) for c in equal.cells}
    found = {one.strategy: one for one in outcomes(equal, 0.5)}
    assert found[BEST].judge == max(alone, key=alone.__getitem__)
    # The judge that looks best on these texts is no better than the others.
    assert found[BEST].accuracy < max(alone.values()) - 0.02
    assert found[BEST].near.mean() == pytest.approx(found[BEST].accuracy)


def test_the_accuracy_of_the_best_strategy_is_cross_fitted() -> None:
    tried = outcomes(equal_judges(), 0.5)
    usable = [one for one in tried if one.strategy not in (SINGLE, CONSTANT)]
    flattered = max(one.accuracy for one in usable)
    (row,) = attributes_table(measure(equal_judges()), tried).rows
    assert row["best_strategy"] == max(usable, key=lambda one: one.accuracy).strategy
    assert row["best_accuracy"] < flattered
    few = outcomes(three_who_err_in_turn(), 0.5)
    (row,) = attributes_table(measure(three_who_err_in_turn()), few).rows
    assert row["best_accuracy"] is None


def test_strategies_meet_the_same_items() -> None:
    whole = cell("a", [[1, 1], [2, 2], [3, 3]], [1, 2, 3])
    part = replace(
        cell("b", [[1, 1], [3, 3]], [1, 3]), items=("i0", "i2"), clusters=("i0", "i2"), left_out=1
    )
    assert {len(one.exact) for one in outcomes(grid(whole, part), 0.5)} == {2}


def test_a_strategy_that_left_items_undecided_is_compared_on_the_others() -> None:
    found = outcomes(three_who_err_in_turn(), 0.5)
    panel = next(one for one in found if one.strategy == "panel, mean")
    fuser = replace(panel.on(["i0", "i1"]), strategy=FUSER)
    single = next(one for one in found if one.strategy == SINGLE)
    # The panel's mean errs on i2 alone.
    assert (fuser.exact.mean(), panel.exact.mean()) == (1.0, pytest.approx(2 / 3))
    assert fuser.gain(single)[0] == pytest.approx(1 - single.exact[:2].mean())
    rows = {row["strategy"]: row for row in mitigations_table([*found, fuser], 0.5).rows}
    assert (rows[FUSER]["n_items"], rows[SINGLE]["n_items"]) == (2, 3)


def test_texts_that_a_judge_left_undecided_are_named_with_the_judge() -> None:
    whole = cell("a", [[1, 1], [2, 2], [3, 3]], [1, 2, 3])
    part = replace(
        cell("b", [[1, 1], [3, 3]], [1, 3]), items=("i0", "i2"), clusters=("i0", "i2"), left_out=1
    )
    none = replace(whole, judge="c", items=(), clusters=(), scores=np.empty((0, 2)), left_out=3)
    assert lost(grid(whole)) == []
    (said,) = lost(grid(whole, part))
    assert "2 of 3 texts" in said
    assert "(undecided: b 1)" in said
    (said,) = lost(grid(whole, part, none))
    assert "question-clarity: no panel" in said
    assert "(undecided of 3: b 1, c 3)" in said


def test_the_papers_stability_test_follows_from_its_rates() -> None:
    """50% of 24, 42.5% of 40 and 35.4% of 48 configurations: chi2(2) = 1.46, p = 0.482."""
    test = chi_square([[12, 12], [17, 23], [17, 31]])
    said = published("paraphrase-robustness")
    assert test.statistic == pytest.approx(said["stable.chi2"].value, abs=0.005)
    assert test.p_value == pytest.approx(said["stable.p"].value, abs=0.0005)
    assert said["stable"].value == pytest.approx(46 / 112, abs=0.0005)


def test_measures_of_a_grid_have_the_values_worked_out_by_hand() -> None:
    human = [1.0, 2.0, 2.6, 3.0]
    moving = cell("moving", [[1, 2], [2, 2], [3, 1], [3, 3]], human)
    fixed = cell("fixed", [[3, 3]] * 4, human, ANSWERABILITY)
    found = measure(grid(moving, fixed))
    one, two = found
    assert one.found.accuracy == pytest.approx(6 / 8)
    assert one.found.win_rate_gap == pytest.approx(0.5)
    assert one.found.consistency == 0.5
    assert one.unrounded == pytest.approx(5 / 8)  # 2.6 is met by no whole score
    assert one.within[0.5] == pytest.approx(6 / 8)
    assert (one.insensitive, two.insensitive) == (False, True)
    assert (two.found.stable, two.one_score, two.constant) == (True, 1.0, 0.5)
    counts, _ = stability(found)
    assert counts == {"verifiable": (1, 1), "semi-objective": (0, 1)}
    (contrast,) = contrasts(found)
    assert contrast["difference"] == pytest.approx(0.5 - 0.75)
    sweep = {
        kind: shares for kind, *shares in (row.values() for row in tolerance_table(found).rows)
    }
    assert sweep["semi-objective"] == pytest.approx([5 / 8, 6 / 8, 5 / 8, 6 / 8, 7 / 8])


def test_an_insensitive_judge_is_named_and_not_called_robust() -> None:
    human = [1, 2, 3, 3]
    _, numb = judges_table(
        measure(
            grid(
                cell("looks", [[1, 1], [2, 2], [3, 3], [3, 2]], human),
                cell("says 3", [[3, 3]] * 4, human),
            )
        )
    )
    assert numb == ["says 3"]


def test_kinds_that_differ_are_found_over_configurations_and_items() -> None:
    human = [1, 2, 3] * 4
    right = [[h, h] for h in human]
    wrong = [[h % 3 + 1, h % 3 + 1] for h in human]
    half = [[h, h % 3 + 1] for h in human]
    cells = [cell(j, right, human, ANSWERABILITY) for j in "ab"]
    cells += [cell("a", wrong, human), cell("b", half, human)]
    found = {(e["factor"], e["over"], e["form"]): e for e in effects(measure(grid(*cells)))}
    kinds = found["verifiability", "configurations", "classic"]
    # Accuracies 1, 1 against 0, 0.5: SSB = 0.5625, SSW = 0.125.
    assert kinds["f"] == pytest.approx(0.5625 / (0.125 / 2))
    assert kinds["eta_squared"] == pytest.approx(0.5625 / 0.6875)
    assert found["task", "configurations", "classic"]["f"] is None
    assert found["verifiability", "items", "classic"]["n"] == 24


def test_a_constant_figure_has_no_correlation() -> None:
    human = [1, 2, 3]
    cells = [
        cell(j, [[1, 1], [2, 2], [s, s]], human) for j, s in zip("abc", (1, 2, 3), strict=True)
    ]
    gap = correlations(measure(grid(*cells)))[0]
    assert (gap["among"], gap["n"], gap["pearson"]) == ("all", 3, None)


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
        row = control([replace(base, scores=replace(base.scores, shares=shares))])[-1]
        return row["gap_reworded"], row["gap_same"]

    reworded, same = gaps(even)
    assert reworded == pytest.approx(same, abs=0.02)
    reworded, same = gaps(swayed)
    assert reworded > same + 0.4
    asked = control([base], {"a": {CLARITY: Gaps(0.5, 0.25, 9)}})[-1]
    assert tuple(asked[name] for name in CONTROL) == (1, 9, 0.5, 0.25)


def test_the_control_draws_both_gaps_on_items_that_the_base_wording_decided() -> None:
    shares = np.array([[[0, 1, 0]] * 3] * 3, dtype=float)
    whole = replace(cell("a", [[2, 2]] * 3, [1, 2, 3]), shares=shares)
    some = replace(whole, base=np.array([NAN, 2, 2]), shares=shares.copy())
    some.shares[0, 0] = NAN
    none = replace(whole, base=np.full(3, NAN), shares=np.where(np.arange(3)[:, None] == 0, NAN, 1))
    found = measure(grid(whole, replace(some, judge="b"), replace(none, judge="c")))
    assert [control([one])[-1]["n_items"] for one in found[:2]] == [3, 2]
    (row,) = {tuple(one[name] for name in CONTROL) for one in control(found)}
    assert row == (2, 5, 0.0, 0.0)
