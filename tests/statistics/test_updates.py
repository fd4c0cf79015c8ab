"""What an update moves beyond rewording: its ends and their error."""

import numpy as np
import pytest

from judgesense.statistics.updates import excess_moves


def test_excess_is_the_difference_of_the_shares() -> None:
    items = np.repeat(np.arange(50), 2)
    moved = np.zeros(100, bool)
    moved[:30] = True
    found = excess_moves(moved, items, items < 5, items)
    assert (found.moved, found.other) == (0.3, 0.1)
    assert found.excess == pytest.approx(0.2)
    assert found.low is not None
    assert found.high is not None
    # The pseudo cluster pulls each end out: t at 5% on 51 clusters would give [0.106, 0.294].
    assert 0.05 < found.low < 0.106
    assert 0.294 < found.high < 0.35
    assert (found.n_clusters, found.random) == (50, False)


def test_ends_use_what_both_changes_share() -> None:
    items = np.arange(200)
    moved = items < 40
    alike = excess_moves(moved, items, moved, items)
    apart = excess_moves(moved, items, items >= 160, items)
    assert alike.excess == apart.excess == 0
    assert alike.high - alike.low < (apart.high - apart.low) / 3


def test_wrong_claims_are_rare_where_both_move_alike() -> None:
    rng, wrong = np.random.default_rng(5), np.zeros(2)
    items = np.arange(100)
    for _ in range(200):
        p = rng.beta(0.1, 1.9, 100)
        # All-or-nothing moves against three pairs of wordings each, at the same rate.
        found = excess_moves(
            rng.random(100) < p, items, rng.random(300) < np.repeat(p, 3), np.repeat(items, 3)
        )
        wrong += [found.low > 0, found.high < 0]
    assert (wrong <= 10 + 2 * np.sqrt(10)).all()


def test_a_rare_kind_of_wording_makes_no_claim() -> None:
    # Two of eight wordings turn verdicts; the update met neither kind.
    rng = np.random.default_rng(0)
    score = rng.normal(size=(400, 1))
    old = score + np.where(np.arange(8) < 2, 1.2, 0.0) > 0
    moved, (one, two) = old != (score > 0), np.triu_indices(8, 1)
    found = excess_moves(
        moved.ravel(),
        np.repeat(np.arange(400), 8),
        (old[:, one] != old[:, two]).ravel(),
        np.repeat(np.arange(400), len(one)),
        wordings=np.tile(np.arange(8), 400),
        other_wordings=(np.tile(one, 400), np.tile(two, 400)),
    )
    assert found.excess < 0 < found.high
