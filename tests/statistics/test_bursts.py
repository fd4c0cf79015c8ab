"""Errors that come in bursts are told from independent ones, also in a file sorted by label."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.bursts import NOT_INDEPENDENT, blocks, bursts_p


def simulated(kind: str, rng: np.random.Generator, n: int = 150) -> tuple[list[bool], list[int]]:
    """Which of n verdicts in a row are wrong, and their labels."""
    bad = np.zeros(n, bool)
    for at in range(1, n):
        bad[at] = rng.random() < (0.9 if bad[at - 1] else 0.03)
    labels = np.sort(rng.integers(0, 2, n))
    chance = {
        "bursts": np.where(bad, 0.6, 0.08),
        "independent": np.full(n, 0.2),
        "sorted by label": np.where(labels, 0.4, 0.05),
    }[kind]
    return (rng.random(n) < chance).tolist(), labels.tolist()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("bursts", 0.5, 1.0), ("independent", 0.0, 0.04), ("sorted by label", 0.0, 0.04)],
)
def test_bursts_are_seen_and_order_by_label_is_none(kind: str, low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    p_values = [bursts_p(*simulated(kind, rng)) for _ in range(60)]
    assert low <= np.mean([p is not None and p < NOT_INDEPENDENT for p in p_values]) <= high


def test_few_values_or_equal_ones_have_no_bursts() -> None:
    assert bursts_p([1, 0] * 10) is None
    assert bursts_p([1] * 40) is None
    assert np.bincount(blocks(150)).tolist() == [25] * 6
