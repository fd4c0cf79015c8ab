"""Cross-fitting: the accuracy of a choice, on data that had no part in it."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.crossfit import crossfit_weights


def accuracies(scores: np.ndarray, clusters: list[int]) -> tuple[float, float]:
    """The accuracy of the best alternative on the items that chose it, and cross-fitted."""
    weights = crossfit_weights(
        clusters, scores.shape[1], lambda rows: int(scores[rows].mean(axis=0).argmax())
    )
    assert weights is not None
    assert weights.sum(axis=1) == pytest.approx(1.0)
    return scores.mean(axis=0).max(), float((weights * scores).sum(axis=1).mean())


def test_the_best_of_equal_alternatives_is_flattered_unless_cross_fitted() -> None:
    rng = np.random.default_rng(0)
    found = [accuracies((rng.random((40, 8)) < 0.5).astype(float), [*range(40)]) for _ in range(60)]
    flattered, fitted = np.mean(found, axis=0)
    assert flattered > 0.58
    # The standard error of 60 runs is about 0.01.
    assert fitted == pytest.approx(0.5, abs=0.03)


def test_a_clearly_better_alternative_is_always_chosen() -> None:
    scores = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    assert accuracies(scores, [*range(30)]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_items_of_a_cluster_are_never_chosen_and_scored_together() -> None:
    clusters = [item // 3 for item in range(36)]

    def choose(rows: np.ndarray) -> int:
        held = set(range(12)) - {clusters[row] for row in rows}
        assert held.isdisjoint(clusters[row] for row in rows)
        assert len(rows) == 3 * (12 - len(held))
        return 0

    assert crossfit_weights(clusters, 1, choose) is not None


def test_few_clusters_give_no_figure() -> None:
    assert crossfit_weights([0, 1] * 50, 2, lambda rows: 0) is None
