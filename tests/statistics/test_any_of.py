"""Matched k: how often k verdicts on an item are not all the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from judgesense.statistics.flips import any_of


def test_every_choice_of_k_verdicts_counts() -> None:
    table = np.random.default_rng(0).integers(0, 3, (40, 6))
    for k in (2, 4, 6):
        by_hand = [len(set(row[list(c)])) > 1 for row in table for c in combinations(range(6), k)]
        assert any_of(table, k).rate == pytest.approx(np.mean(by_hand))


def test_the_interval_is_over_clusters_and_never_empty() -> None:
    table = np.random.default_rng(1).integers(0, 2, (60, 4))
    alone, bunched = any_of(table, 3), any_of(np.repeat(table, 5, 0), 3, np.repeat(range(60), 5))
    assert bunched.rate == pytest.approx(alone.rate)
    assert (bunched.ci_low, bunched.ci_high) == pytest.approx(
        (alone.ci_low, alone.ci_high), abs=0.015
    )
    never = any_of(np.zeros((30, 5), int), 5)
    assert (never.rate, never.ci_low) == (0, 0)
    assert 0.05 < (never.ci_high or 0) < 0.2
    assert any_of([["a", "b"]], 2).ci_low is None


@pytest.mark.parametrize(("table", "k"), [([["a", "b"]], 3), ([["a", "b"]], 1), ([], 2)])
def test_what_has_no_choice_of_k_is_refused(table: list[list[str]], k: int) -> None:
    with pytest.raises(ValueError, match=r"pass"):
        any_of(table, k)
