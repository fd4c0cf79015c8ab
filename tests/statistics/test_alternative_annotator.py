"""The alternative annotator test: its level at every number of items, and what it counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from judgesense.statistics.alternative_annotator import (
    FEWEST_ITEMS,
    MOST_ENUMERATED,
    alternative_annotator,
    mean_loss_p,
)


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 29, 60])
@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_the_level_holds_at_every_probability_of_a_gain(n: int, epsilon: float) -> None:
    # The exact chance of p <= 0.05 where the judge is worse by just epsilon.
    losses, gains = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = losses + gains <= n
    for q in (0.003, 0.02, 0.1, 0.3):
        chances = [q + epsilon, q, 1 - 2 * q - epsilon]
        mass = stats.multinomial.pmf(
            np.stack([losses, gains, n - losses - gains], axis=-1)[possible], n, chances
        )
        likely = mass > 1e-7
        rejected = sum(
            m
            for m, lost, gained in zip(
                mass[likely], losses[possible][likely], gains[possible][likely], strict=True
            )
            if mean_loss_p(int(lost), int(gained), n, epsilon) <= 0.05
        )
        assert rejected <= 0.0505


def test_the_enumeration_passes_into_the_score_test() -> None:
    one, two = (
        mean_loss_p(round(0.12 * n), round(0.1 * n), n, 0.1)
        for n in (MOST_ENUMERATED, MOST_ENUMERATED + 1)
    )
    assert one == pytest.approx(two, abs=0.003)


def test_a_judge_that_never_loses_wins_and_one_that_always_does_not() -> None:
    assert mean_loss_p(0, 0, 30, 0.2) < 0.01
    assert mean_loss_p(30, 0, 30, 0.2) == pytest.approx(1.0, abs=1e-6)


def _people(n: int) -> list[list[str]]:
    truth = ["YES" if k % 2 else "NO" for k in range(n)]
    other = {"YES": "NO", "NO": "YES"}
    # Each errs on other items, so that the majority is always right.
    return [[other[t] if k % 7 == p else t for k, t in enumerate(truth)] for p in range(3)]


def test_people_with_few_items_are_left_out() -> None:
    few = _people(FEWEST_ITEMS - 1)
    assert alternative_annotator(few[0], few) is None
    enough = _people(60)
    truth = ["YES" if k % 2 else "NO" for k in range(60)]
    found = alternative_annotator(truth, enough)
    assert found is not None
    assert found.winning_rate == 1.0
    assert found.n_items == (60, 60, 60)


def test_rows_of_a_cluster_are_no_more_evidence_than_one() -> None:
    people = _people(60)
    truth = ["YES" if k % 2 else "NO" for k in range(60)]
    once = alternative_annotator(truth, people)
    thrice = alternative_annotator(
        truth * 3, [labels * 3 for labels in people], clusters=list(range(60)) * 3
    )
    assert once is not None
    assert thrice is not None
    assert thrice.p_values == pytest.approx(once.p_values)


@pytest.mark.parametrize(("found", "constant"), [(0, "YES"), (9, None)])
def test_a_constant_answer_that_passes_takes_the_yes_away(found: int, constant: str | None) -> None:
    truth = ["NO"] * 10 + ["YES"] * 190
    judge = ["NO"] * found + ["YES"] * (200 - found)
    test = alternative_annotator(judge, [truth, ["YES", *truth[1:]], [*truth[:-1], "NO"]])
    assert test is not None
    assert test.passes
    assert test.constant == constant
