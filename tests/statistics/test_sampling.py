"""JSS over draws: what rewording flips beyond what asking again flips."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from judgesense.statistics.agreement import sampled_jss


def couples(a: list[str], b: list[str], same_prompt: bool) -> float:
    """The share of couples of draws that agree, counted one by one."""
    pairs = [
        (x, y)
        for (i, x), (j, y) in product(enumerate(a), enumerate(b))
        if not same_prompt or i != j
    ]
    return sum(x == y for x, y in pairs) / len(pairs)


def counts(draws: list[list[str]]) -> list[list[int]]:
    return [[row.count(label) for label in "ABC"] for row in draws]


def test_every_couple_of_draws_is_counted() -> None:
    rng = np.random.default_rng(0)
    a = [list(rng.choice(list("ABC"), 4)) for _ in range(30)]
    b = [list(rng.choice(list("AAB"), 5)) for _ in range(30)]
    found = sampled_jss(counts(a), counts(b), [i // 3 for i in range(30)])
    across = [couples(x, y, False) for x, y in zip(a, b, strict=True)]
    within = [(couples(x, x, True) + couples(y, y, True)) / 2 for x, y in zip(a, b, strict=True)]
    assert found["jss"] == pytest.approx(np.mean(across))
    assert found["noise_floor"] == pytest.approx(1 - np.mean(within))
    assert found["net_flip_rate"] == pytest.approx(np.mean(within) - np.mean(across))
    assert (found["n_pairs"], found["n_items"]) == (30, 10)
    assert found["ci_low"] is not None
    assert found["ci_low"] < found["jss"] < found["ci_high"]


def test_pairs_without_a_decided_draw_are_left_out_and_single_draws_have_no_noise() -> None:
    found = sampled_jss([[1, 0], [0, 0], [1, 0]], [[1, 0], [2, 0], [0, 1]])
    assert (found["jss"], found["n_pairs"]) == (0.5, 2)
    assert found["noise_floor"] is None
    assert found["net_flip_rate"] is None
    assert sampled_jss([[0, 0]], [[1, 0]])["jss"] is None
