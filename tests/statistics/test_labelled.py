"""Whether labels are a random part of what was judged."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact

from judgesense.statistics.labelled import NOT_RANDOM, labelled_p


def test_two_verdicts_are_fishers_table() -> None:
    verdicts = np.r_[np.ones(70), np.zeros(30)]
    labelled = np.r_[np.ones(10), np.zeros(60), np.ones(15), np.zeros(15)].astype(bool)
    expected = fisher_exact([[10, 60], [15, 15]])[1]
    assert labelled_p(verdicts, labelled) == pytest.approx(expected)


def test_rows_of_a_cluster_are_one_piece_of_evidence() -> None:
    clusters = np.repeat(np.arange(20), 15)
    verdicts = (clusters % 5 > 0).astype(float)
    labelled = np.isin(clusters, [0, 5, 6])
    alone, shared = labelled_p(verdicts, labelled), labelled_p(verdicts, labelled, clusters)
    assert alone is not None
    assert shared is not None
    assert alone < 1e-6 < 0.05 < shared


@pytest.mark.parametrize("labelled", [[True] * 4, [False] * 4])
def test_without_a_comparison_there_is_no_p(labelled: list[bool]) -> None:
    assert labelled_p([1.0, 0.0, 1.0, np.nan], labelled) is None
    assert labelled_p([1.0] * 4, [True, True, False, False]) is None


def test_a_nearly_constant_judge_does_not_make_random_labels_look_picked():
    rng, low = np.random.default_rng(0), 0
    for _ in range(150):
        verdicts = rng.choice([5.0, 4.0, 1.0], 300, p=[0.96, 0.03, 0.01])
        labelled = np.isin(np.arange(300), rng.choice(300, 40, replace=False))
        low += (labelled_p(verdicts, labelled) or 1.0) < NOT_RANDOM
    assert low <= 4
    assert labelled_p(np.repeat([5.0, 4, 1], [280, 10, 10]), np.arange(300) >= 270) < NOT_RANDOM
