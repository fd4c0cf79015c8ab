"""Position bias and the sources of flips: known judges get the figures they deserve."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judgesense.statistics.bias import both_orders, position_bias
from judgesense.statistics.flips import flip_sources


def test_a_judge_that_always_says_a_follows_the_place():
    result = position_bias(["A"] * 20, ["A"] * 20)
    assert result.position_consistency == 0.0
    assert result.first_position_rate == 1.0
    assert (result.consistent_first, result.preference_fairness) == (1.0, -1.0)
    assert result.position_consistency_ci_high < 0.25
    assert result.first_position_rate_ci_low > 0.75


def test_labels_by_item_turn_the_same_words_round():
    by_place = position_bias(["B", "A", "A"], ["A", "A", "B"])
    by_item = position_bias(["A", "B", "B"], ["A", "A", "B"], labels="item")
    assert by_place == by_item
    assert by_place.position_consistency == pytest.approx(2 / 3)


def test_shares_add_up_and_the_rate_counts_every_choice():
    rng = np.random.default_rng(0)
    for _ in range(200):
        first, swapped = rng.choice(["A", "B"], (2, int(rng.integers(2, 40))))
        result = position_bias(swapped, first)
        total = result.position_consistency + result.consistent_first + result.consistent_second
        assert total == pytest.approx(1.0)
        assert result.position_consistency == np.mean(first != swapped)
        assert result.first_position_rate == pytest.approx(
            np.mean(np.concatenate([first, swapped]) == "A")
        )
        for name in ("position_consistency", "first_position_rate", "preference_fairness"):
            value = getattr(result, name)
            assert getattr(result, f"{name}_ci_low") <= value <= getattr(result, f"{name}_ci_high")


def test_ties_and_missing_decisions_are_counted_out():
    result = position_bias(["A", "TIE", "UNCLEAR", "A", "C"], ["B", "A", "A", "REFUSED", "B"])
    assert (result.n, result.n_excluded) == (1, 4)
    assert result.position_consistency == 1.0


def test_nothing_decided_is_none_with_a_reason():
    result = position_bias(["UNCLEAR", "TIE"], ["A", "B"])
    assert (result.position_consistency, result.first_position_rate) == (None, None)
    assert (result.n, result.n_excluded) == (0, 2)
    assert result.degenerate == "no pair has a choice in both orders"


@pytest.mark.parametrize(
    ("swapped", "first", "options", "told"),
    [
        (["A", "X"], ["A", "B"], {}, r"predictions\[1\] is 'X'"),
        (["A", "B"], ["yes", "B"], {}, r"references\[0\] is 'yes'"),
        (["A", float("nan")], ["A", "B"], {}, r"predictions\[1\] is nan"),
        (["A"], ["A", "B"], {}, "rows"),
        ([], [], {}, "empty"),
        (["A"], ["A"], {"labels": "place"}, "labels is 'place'"),
        (["A"], ["A"], {"options": "AB"}, "options is 'AB'"),
        (["A"], ["A"], {"options": ("A", "A")}, "two different labels"),
        (["A"], ["A"], {"confidence_level": 95}, "confidence_level"),
    ],
)
def test_bad_decisions_are_refused_with_their_place(swapped, first, options, told):
    with pytest.raises(ValueError, match=told):
        position_bias(swapped, first, **options)


GRID = list(itertools.product(range(30), "12345", ("AB", "BA"), range(3)))
"""Item, template, order, repeat."""


def grid_of(judge):
    """Columns of a decision log: what `judge(item, template, order, repeat)` says, as shown."""
    items, templates, orders, _ = zip(*GRID, strict=True)
    return [judge(*cell) for cell in GRID], items, templates, orders


def shown(item_label, order):
    return item_label if order == "AB" else {"A": "B", "B": "A"}[item_label]


def test_a_judge_led_by_the_place_flips_by_position_alone():
    result = flip_sources(*grid_of(lambda item, template, order, repeat: "A"))
    assert (result.flip_rate, result.position) == (1.0, 1.0)
    assert (result.wording, result.interaction, result.rerun) == (0.0, 0.0, 0.0)


def test_a_judge_that_tosses_a_coin_flips_by_rerun_noise_alone():
    rng = np.random.default_rng(0)
    result = flip_sources(*grid_of(lambda *cell: rng.choice(["A", "B"])))
    assert result.rerun == pytest.approx(0.5, abs=0.05)
    for part in (result.wording, result.position, result.interaction):
        assert part == pytest.approx(0.0, abs=0.04)


def test_the_parts_add_up_and_recover_a_mixture():
    # A latent score with known shares for item, wording, position and noise.
    rng = np.random.default_rng(1)
    wording, position = rng.normal(size=(400, 5)), rng.normal(size=(400, 2))
    rows = list(itertools.product(range(400), range(5), range(2), range(2)))
    i, t, o, _ = np.array(rows).T
    latent = wording[i, t] + 0.5 * position[i, o] + 0.25 * rng.normal(size=len(rows))
    said = np.where((latent > 0) == (o == 0), "A", "B")
    result = flip_sources(said, i, t.astype(str), np.where(o == 0, "AB", "BA"))
    parts = (result.wording, result.position, result.interaction, result.rerun)
    assert sum(parts) == pytest.approx(result.flip_rate, abs=1e-12)
    assert result.wording > result.position > 0
    assert result.wording > result.rerun > 0
    assert result.wording_ci_low < result.wording < result.wording_ci_high


def test_the_split_equals_counting_pairs():
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = [(i, t, o) for i in range(6) for t in "123" for o in ("AB", "BA") for _ in "12"]
        said = rng.choice(["A", "B"], len(rows))
        items, templates, orders = zip(*rows, strict=True)
        rates = {key: [] for key in itertools.product((False, True), repeat=2)}
        for item in range(6):
            seen = {key: [] for key in rates}
            where = [n for n, row in enumerate(rows) if row[0] == item]
            for a, b in itertools.combinations(where, 2):
                key = (templates[a] != templates[b], orders[a] != orders[b])
                seen[key].append(shown(said[a], orders[a]) != shown(said[b], orders[b]))
            for key, flips in seen.items():
                rates[key].append(np.mean(flips))
        d = {key: np.mean(values) for key, values in rates.items()}
        result = flip_sources(said, items, templates, orders)
        assert result.rerun == pytest.approx(d[False, False])
        assert result.flip_rate == pytest.approx(d[True, True])
        assert result.wording == pytest.approx(d[True, True] - d[False, True])
        assert result.position == pytest.approx(d[True, True] - d[True, False])


def test_undecided_rows_and_items_that_lose_a_kind_are_left_out():
    rows = [(i, t, o) for i in range(4) for t in "12" for o in ("AB", "BA") for _ in "12"]
    items, templates, orders = zip(*rows, strict=True)
    said = ["A"] * len(rows)
    said[0] = "UNCLEAR"
    kept = flip_sources(said, items, templates, orders)
    assert (kept.n_items, kept.position) == (4, 1.0)
    said[:8] = ["A", "A", *["UNCLEAR"] * 6]
    lost = flip_sources(said, items, templates, orders)
    assert lost.n_items == 3


def test_items_that_share_a_question_count_once_in_the_intervals():
    rng = np.random.default_rng(3)
    said, items, templates, orders = grid_of(lambda *cell: rng.choice(["A", "B"]))
    alone = flip_sources(said, items, templates, orders)
    # Every judgement again, as that of a twin on the same question: nothing new is known.
    twice = [*items, *(item + 30 for item in items)]
    columns = (said * 2, twice, templates * 2, orders * 2)
    twins = flip_sources(*columns, cluster_ids=[str(item % 30) for item in twice])
    assert (twins.n_items, twins.wording) == (60, pytest.approx(alone.wording))
    for end in ("wording_ci_low", "position_ci_high"):
        assert getattr(twins, end) == pytest.approx(getattr(alone, end))
    assert flip_sources(*columns).wording_ci_low > alone.wording_ci_low
    single = flip_sources(*columns, cluster_ids=["q"] * len(twice))
    assert single.wording_ci_low is None


def test_a_tie_in_one_order_is_a_change_and_two_ties_are_the_same():
    pairs = [("A", "B"), ("A", "TIE"), ("TIE", "B"), ("TIE", "TIE"), ("A", "A"), ("A", "UNCLEAR")]
    verdicts = [verdict for pair in pairs for verdict in pair]
    items = np.repeat(np.arange(6), 2)
    orders = ["AB", "BA"] * 6
    result = both_orders(verdicts, items, orders, [1] * 12, cluster_ids=items)
    assert (result.same_choice, result.n_items, result.n_asked) == (0.4, 5, 6)
    assert result.first_position_rate == pytest.approx(4 / 6)
    of_c = both_orders(
        ["C", "D"] * 6, items, orders, [1] * 12, cluster_ids=items, options=("C", "D")
    )
    assert of_c.same_choice == 1.0


def test_only_ties_are_the_same_choice_of_no_position():
    items = np.repeat(np.arange(10), 2)
    result = both_orders(["TIE"] * 20, items, ["AB", "BA"] * 10, [1] * 20, cluster_ids=items)
    assert (result.same_choice, result.first_position_rate) == (1.0, None)
