"""Agreement with gold labels: known tables, what is undecided, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.gold import gold_agreement


def rows(table: list[list[int]], said: list[str], gold: list[str]) -> tuple[list[str], list[str]]:
    """Decisions and gold labels of a table of counts, gold down and decisions across."""
    cells = [
        (g, s, n)
        for g, line in zip(gold, table, strict=True)
        for s, n in zip(said, line, strict=True)
    ]
    return [s for _, s, n in cells for _ in range(n)], [g for g, _, n in cells for _ in range(n)]


def test_kappa_and_ac1_are_those_of_a_published_table():
    # Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, table 2:
    # 118 agree on +, 5 and 2 disagree, none agree on -: kappa -0.0234, AC1 0.9408.
    decision, gold = rows([[118, 5], [2, 0]], ["+", "-"], ["+", "-"])
    result = gold_agreement(decision, gold, labels=["+", "-"])
    assert result.kappa == pytest.approx(-0.0234, abs=1e-4)
    assert result.gwet_ac1 == pytest.approx(0.9408, abs=1e-4)


def test_quadratic_kappa_is_scikit_learns():
    from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

    rng = np.random.default_rng(0)
    gold = rng.choice(list("12345"), 200)
    decision = np.where(rng.random(200) < 0.6, gold, rng.choice(list("12345"), 200))
    result = gold_agreement(decision, gold, labels=list("12345"), ordinal=True)
    assert result.kappa == pytest.approx(cohen_kappa_score(decision, gold, weights="quadratic"))
    assert result.balanced_accuracy == pytest.approx(balanced_accuracy_score(gold, decision))
    assert result.kappa_ci_low < result.kappa < result.kappa_ci_high


def test_undecided_is_a_wrong_answer_everywhere():
    gold = ["A", "B"] * 20
    half = ["UNCLEAR" if at < 20 else label for at, label in enumerate(gold)]
    result = gold_agreement(half, gold, labels=["A", "B"])
    assert (result.accuracy, result.balanced_accuracy, result.undecided_share) == (0.5, 0.5, 0.5)
    assert result.constant_accuracy == 0.5
    assert result.kappa < 0.5
    # Gold 1, 1, 5; costs 16, 0, 0. Expected: two of three gold labels are 1, and a third of the
    # answers is 5 (cost 16 there), 1 (cost 16 for the gold 5) or none (cost 16 for either).
    scale = list("12345")
    far = gold_agreement(["REFUSED", "1", "5"], ["1", "1", "5"], labels=scale, ordinal=True)
    assert far.kappa == pytest.approx(1 - (16 / 3) / (16 * (2 / 9 + 1 / 9 + 1 / 3)))
