"""Planned chances, against the intervals that they are planned for."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.intervals import wilson_from_sums
from judgesense.statistics.planning import Pilot, smallest_difference


def states(seen: int, size: int) -> tuple[float, float]:
    """How often open pilots settle on a larger run, as planned and as then drawn."""
    rng = np.random.default_rng(seen)
    planned, drawn = [], []
    for _ in range(1500):
        true = rng.uniform(0.6, 1)
        rows = rng.random(size) < true
        ends = wilson_from_sums(rows[:seen], np.ones(seen))
        if ends.low > 0.8 or ends.high < 0.8:
            continue
        pilot = Pilot(float(rows[:seen].mean()), ends.low, ends.high, seen, "share")
        planned.append(float((pilot.drawn(0.8, [size], rng) != 0).mean()))
        whole = wilson_from_sums(rows, np.ones(size))
        drawn.append(whole.low > 0.8 or whole.high < 0.8)
    return float(np.mean(planned)), float(np.mean(drawn))


@pytest.mark.parametrize(("seen", "size"), [(50, 200), (50, 100), (100, 800)])
def test_the_planned_chance_is_what_then_happens(seen: int, size: int) -> None:
    planned, drawn = states(seen, size)
    assert planned == pytest.approx(drawn, abs=0.08)


def test_what_differs_between_wordings_does_not_shrink_with_items() -> None:
    ends = Pilot(0.87, 0.74, 0.95, 100, "share", fixed=(0.83, 0.9))
    few = (ends.drawn(0.8, [100_000], np.random.default_rng(0)) != 0).mean()
    assert few < 0.1
    assert (
        Pilot(0.87, 0.74, 0.95, 100, "share").drawn(0.8, [100_000], np.random.default_rng(0)) != 0
    ).mean() > 0.95


def test_a_difference_is_planned_from_its_interval() -> None:
    # Cohen (1988): a sample shows (1.96 + 0.84) standard errors with a probability of 80%.
    expected = 0.4 / 2 / 1.96 * 2.8016
    assert smallest_difference(0.1, 0.5, 10_000) == pytest.approx(expected, abs=0.001)
    wide, near = Pilot(0.2, -0.1, 0.5, 40), Pilot(0.02, -0.28, 0.32, 40)
    assert wide.needed(0.0) < near.needed(0.0)
    assert near.needed(0.0, 60) is None
