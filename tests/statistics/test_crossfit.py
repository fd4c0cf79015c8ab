"""Cross-fitting: the accuracy of a choice, on data that had no part in it."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.selection import choice_error, crossfit_weights, folds_of, largest


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


def test_items_of_a_cluster_are_never_chosen_and_scored_together() -> None:
    clusters = [item // 3 for item in range(36)]

    def choose(rows: np.ndarray) -> int:
        held = set(range(12)) - {clusters[row] for row in rows}
        assert held.isdisjoint(clusters[row] for row in rows)
        assert len(rows) == 3 * (12 - len(held))
        return 0

    assert crossfit_weights(clusters, 1, choose) is not None


@pytest.mark.parametrize(("per_cluster", "n"), [(1, 60), (3, 90)])
def test_the_error_of_a_choice_is_the_spread_of_gain_minus_truth(per_cluster: int, n: int) -> None:
    """Wordings of known accuracy; the truth of a draw is that of the wording it chooses."""
    rng = np.random.default_rng(1)
    true = np.array([0.55, 0.6, 0.6, 0.65])
    clusters = np.arange(n) // per_cluster
    missed, errors = [], []
    for _ in range(80):
        easy = rng.random(n // per_cluster)[clusters]
        scores = (0.5 * rng.random((n, 4)) + 0.5 * easy[:, None] < true - 0.01).astype(float)
        folds = folds_of(clusters, seed=2)
        gain = (
            np.mean(
                [
                    scores[folds == f][:, scores[folds != f].mean(axis=0).argmax()].sum()
                    for f in range(10)
                ]
            )
            * 10
            / n
            - scores.mean()
        )
        chosen = true[scores.mean(axis=0).argmax()]
        missed.append(gain - (chosen - true.mean()))
        error = choice_error([scores], folds, clusters, n_resamples=60)
        assert error is not None
        errors.append(error)
    spread = float(np.sqrt(np.mean(np.square(missed))))
    assert 0.9 * spread < np.mean(errors) < 1.8 * spread


def test_the_largest_of_equal_estimates_is_corrected():
    rng, alike = np.random.default_rng(0), np.full((4, 4), 0.3) + 0.7 * np.eye(4)
    draws = rng.multivariate_normal(np.zeros(4), alike, 400)
    found = [largest(drawn, drawn - 1.96, drawn + 1.96, alike) for drawn in draws]
    assert np.mean([each.ci_low <= 0 <= each.ci_high for each in found]) >= 0.95
    assert abs(np.mean([each.estimate for each in found])) < 0.4 * draws.max(axis=1).mean()
