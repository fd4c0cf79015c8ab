"""JSS, kappa and their relatives: what they say, and that independent tools say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesense.statistics.agreement import jss
from judgesense.statistics.kappa import (
    cohen_kappa,
    disagreement_weights,
    kappa_from_table,
)

LABELS = ["YES", "NO", "1", "UNCLEAR", "REFUSED", "ERROR"]
streams = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS), st.integers(0, 6)),
    min_size=1,
    max_size=60,
)


def test_jss_is_the_share_of_equal_decisions() -> None:
    result = jss(["A", "A", "B", "B"], ["A", "B", "B", "B"])
    assert (result.jss, result.flip_rate, result.kappa) == (0.75, 0.25, 0.5)
    assert (result.n_pairs, result.n_items, result.degenerate) == (4, 4, None)


def test_pairs_without_two_decisions_are_left_out_counted_and_bounded() -> None:
    first = ["A", "A", "UNCLEAR", "REFUSED", "ERROR", "B"]
    second = ["A", "B", "A", "UNCLEAR", "REFUSED", "B"]
    result = jss(first, second)
    assert (result.n_pairs, result.n_unclear, result.n_refused, result.n_error) == (3, 1, 1, 1)
    assert result.jss == pytest.approx(2 / 3)
    assert (result.jss_low, result.jss_high) == (pytest.approx(2 / 6), pytest.approx(5 / 6))


def test_one_label_throughout_has_no_kappa_but_a_reason() -> None:
    result = jss(["A"] * 9, ["A"] * 9)
    assert (result.jss, result.kappa, result.kappa_ci_low) == (1.0, None, None)
    assert result.degenerate == "every decision is 'A': kappa is undefined"
    assert result.ci_low is not None
    assert 0 < result.ci_low < 1


def test_nothing_decided_is_undefined_and_bounded_by_everything() -> None:
    result = jss(["UNCLEAR", "A"], ["A", "ERROR"])
    assert (result.jss, result.flip_rate, result.kappa, result.ci_low) == (None, None, None, None)
    assert (result.jss_low, result.jss_high, result.n_pairs) == (0.0, 1.0, 0)
    assert result.degenerate == "no pair has a decision on both sides"


@settings(deadline=None)
@given(streams)
def test_jss_lies_in_the_unit_interval_with_its_bounds_and_interval_around_it(
    rows: list[tuple[str, str, int]],
) -> None:
    first, second, items = map(list, zip(*rows, strict=True))
    result = jss(first, second, items)
    assert 0 <= result.jss_low <= result.jss_high <= 1
    if result.jss is not None:
        assert result.jss_low <= result.jss <= result.jss_high
        assert result.flip_rate == pytest.approx(1 - result.jss)
        if result.ci_low is not None and result.ci_high is not None:
            assert 0 <= result.ci_low <= result.jss <= result.ci_high <= 1
    for value in result.to_dict().values():
        assert not (isinstance(value, float) and np.isnan(value))


@settings(max_examples=50, deadline=None)
@given(streams, st.randoms(use_true_random=False))
def test_swapping_sides_shuffling_rows_and_renaming_labels_change_nothing(
    rows: list[tuple[str, str, int]], random: object
) -> None:
    first, second, items = map(list, zip(*rows, strict=True))
    result = jss(first, second, items)
    skip = {"degenerate"}

    def same(other: dict[str, object]) -> None:
        for name, value in result.to_dict().items():
            if name not in skip:
                assert other[name] == (value if value is None else pytest.approx(value)), name

    same(jss(second, first, items).to_dict())
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    same(jss(*map(list, zip(*shuffled, strict=True))).to_dict())
    names = {"YES": "good", "NO": "bad", "1": "Z"}
    renamed = [[names.get(label, label) for label in side] for side in (first, second)]
    same(jss(*renamed, [f"item {item}" for item in items]).to_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"references": ["A", None], "predictions": ["A", "B"]}, r"references\[1\] is None"),
        ({"references": ["A", float("nan")], "predictions": ["A", "B"]}, r"references\[1\] is nan"),
        (
            {"references": ["A", "B"], "predictions": ["A", 4.5]},
            r"predictions\[1\] is 4.5",
        ),
        ({"references": [["A"], "B"], "predictions": ["A", "B"]}, r"references\[0\] is \['A'\]"),
        ({"references": "AB", "predictions": "AB"}, "references is a str"),
        ({"references": [], "predictions": []}, "are empty"),
        ({"references": ["A"], "predictions": ["A", "B"]}, "1 rows and predictions has 2"),
        ({"references": np.array([["A"]]), "predictions": ["A"]}, "one label per row"),
        ({"item_ids": ["x"]}, "are not 2 ids"),
        ({"item_ids": ["x", None]}, "row 1 is None"),
        ({"item_ids": [1.0, float("nan")]}, "row 0 is 1.0"),
        ({"item_ids": "xy"}, "are not 2 ids"),
        ({"item_ids": {"x", "y"}}, "are not 2 ids"),
        ({"confidence_level": 95}, "confidence_level is 95"),
        ({"confidence_level": float("nan")}, "confidence_level is nan"),
        ({"interval": "normal"}, "pass 'wilson' or 'bootstrap'"),
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"undecided": "UNCLEAR"}, "undecided is 'UNCLEAR'"),
        ({"undecided": None}, "undecided is None"),
        ({"undecided": ["A", None]}, "a label of undecided is None"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"seed": None}, "seed is None"),
        ({"seed": -1, "interval": "bootstrap"}, "seed is -1"),
    ],
)
def test_bad_input_is_refused_with_its_place(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jss(**{"references": ["A", "B"], "predictions": ["A", "A"], **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 1, 1],
        [1.0, 0.0, 1.0, 1.0],
        [True, False, True, True],
        np.array([1, 0, 1, 1], dtype=bool),
        np.array([1.0, 0, 1, 1]),
        torch.tensor([1, 0, 1, 1]),
        torch.tensor([True, False, True, True]),
        pandas.Series([1, 0, 1, 1], index=[7, 8, 9, 3]),
    ],
    ids=["int", "float", "bool", "numpy bool", "numpy float", "torch int", "torch bool", "pandas"],
)
def test_labels_may_be_of_any_kind_that_people_have(labels: Any) -> None:
    first, second, third, _ = list(labels)
    assert jss(labels, [first, second, third, second]).jss == 0.75


@pytest.mark.slow
def test_kappa_equals_scikit_learn_on_a_thousand_random_cases() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(11)
    scale = ["1", "2", "3", "4", "5"]
    for case in range(1000):
        n, used = int(rng.integers(2, 40)), int(rng.integers(2, 6))
        a = rng.integers(used, size=n)
        b = np.where(rng.random(n) < 0.6, a, rng.integers(used, size=n))
        words = [[scale[code] for code in codes] for codes in (a, b)]
        weights = disagreement_weights(5, ordinal=True)
        table = np.zeros((5, 5))
        np.add.at(table, (a, b), 1)
        quadratic = kappa_from_table(table, weights)
        if len({*a, *b}) == 1:
            assert cohen_kappa(*words) is quadratic is None
            continue
        for ours, theirs in ((cohen_kappa(*words), None), (quadratic, "quadratic")):
            expected = cohen_kappa_score(*words, weights=theirs, labels=scale)
            assert ours == pytest.approx(expected, abs=1e-9), case
