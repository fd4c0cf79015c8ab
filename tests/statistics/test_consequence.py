"""Does the ranking of judged systems survive the wording? Known judges, counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judgesense.statistics.consequence import consequence


def columns(score, items=20, systems="xyz", templates="1234"):
    """Long columns of `score(item, system, template)`."""
    rows = list(itertools.product(range(items), systems, templates))
    i, s, t = zip(*rows, strict=True)
    return [score(*row) for row in rows], s, t, i


def test_a_wording_that_crowns_another_system_changes_half_of_the_pairs():
    # Template 4 prefers z: 3 of the 6 pairs of templates have another winner.
    result = consequence(*columns(lambda i, s, t: float(s == ("z" if t == "4" else "x"))))
    assert result.winner_change_rate == 0.5
    assert result.winners == [["x"], ["x"], ["x"], ["z"]]
    assert result.modal_winner == ["x"]


def test_rates_equal_counting_over_pairs_of_templates():
    rng = np.random.default_rng(0)
    for _ in range(30):
        grid = rng.integers(1, 4, (6, 4, 5)).astype(float)
        result = consequence(
            *columns(lambda i, s, t, g=grid: g[i, "wxyz".index(s), int(t)], 6, "wxyz", "01234"),
        )
        means = grid.mean(axis=0).T
        top = [set(np.flatnonzero(np.isclose(row, row.max()))) for row in means]
        winners = [a != b for a, b in itertools.combinations(top, 2)]
        assert result.winner_change_rate == pytest.approx(np.mean(winners))
        assert result.winner_change_rate <= result.ranking_change_rate
        assert np.allclose(result.scores, means)


def test_an_output_undecided_under_one_wording_is_left_out_under_all():
    def score(item, system, template):
        if (item, system, template) == (0, "x", "1"):
            return None
        return {"x": 2.0, "y": 1.0, "z": 0.0}[system] + (100.0 if item == 0 else 0.0)

    result = consequence(*columns(score))
    assert result.ranking_change_rate == 0.0  # Kept, item 0 would lift x under three templates.
    assert result.degenerate.startswith("1 of 60 outputs lack a score")


def test_systems_that_tie_win_together():
    result = consequence(*columns(lambda i, s, t: float(s != "z" or t == "4")))
    assert result.winners == [["x", "y"]] * 3 + [["x", "y", "z"]]
    assert result.winner_change_rate == 0.5


def test_a_wording_that_favours_a_system_is_told_from_chance():
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1, (40, 2, 4))
    chance = consequence(
        *columns(lambda i, s, t: noise[i, "xy".index(s), int(t)], 40, "xy", "0123")
    )
    assert chance.ranking_change_rate > 0
    assert chance.p_value > 0.05
    favoured = noise.copy()
    favoured[:, 0, 3] += 1.5
    favoured[:, 1] += 0.5
    found = consequence(
        *columns(lambda i, s, t: favoured[i, "xy".index(s), int(t)], 40, "xy", "0123")
    )
    assert found.winner_change_rate == 0.5
    assert found.p_value <= 0.01


def test_a_wording_that_is_stricter_with_all_systems_favours_none():
    rng = np.random.default_rng(4)
    said = 0
    for _ in range(60):
        noise = rng.normal(0, 1, (30, 2, 3)) + np.array([0.0, 2.0, 4.0])
        found = consequence(
            *columns(lambda i, s, t, g=noise: g[i, "xy".index(s), int(t)], 30, "xy", "012"),
            n_permutations=99,
        )
        said += found.p_value is not None and found.p_value <= 0.05
    assert said <= 8  # 60 runs at 5%: 9 or more in 0.2% of cases


def test_repeats_show_what_asking_again_does():
    score, system, template, item = map(np.array, columns(lambda i, s, t: float(s == "x"), 10))
    rows = [np.concatenate([each, each]) for each in (system, template, item)]
    repeat = np.repeat([0, 1], len(score))
    same = consequence(np.concatenate([score, score]), *rows, repeat_ids=repeat)
    assert same.repeat_change_rate == 0.0
    other = consequence(np.concatenate([score, 1 - score]), *rows, repeat_ids=repeat)
    assert other.repeat_change_rate == 1.0
    assert consequence(score, system, template, item).repeat_change_rate is None


def test_a_system_never_decided_is_named():
    result = consequence(*columns(lambda i, s, t: None if s == "y" else 1.0))
    assert (result.winner_change_rate, result.winners) == (None, [])
    assert result.degenerate.endswith("for: y")
