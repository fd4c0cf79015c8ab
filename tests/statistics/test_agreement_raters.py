"""Agreement among several raters, and where the flips of several judges lie."""

from __future__ import annotations

import csv
from pathlib import Path

import krippendorff
import numpy as np
import pytest

from judgesense.statistics.agreement import jss
from judgesense.statistics.flips import consensus, flip_overlap
from judgesense.statistics.kappa import krippendorff_alpha


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alpha_equals_the_krippendorff_package_on_a_thousand_random_cases(level: str) -> None:
    rng = np.random.default_rng(5)
    scale = ["1", "2", "3", "4", "5"]
    compared = 0
    for _ in range(1000):
        raters, units = int(rng.integers(2, 5)), int(rng.integers(2, 15))
        truth = rng.integers(0, 5, units)
        noise = rng.integers(0, 5, (raters, units))
        codes = np.where(rng.random((raters, units)) < 0.5, truth, noise)
        missing = rng.random((raters, units)) < 0.2
        ratings = [
            [None if gone else scale[code] for code, gone in zip(row, out, strict=True)]
            for row, out in zip(codes, missing, strict=True)
        ]
        ours = krippendorff_alpha(ratings, level, scale)
        data = np.where(missing, np.nan, codes)
        pairable = (~missing).sum(axis=0) >= 2
        if len(np.unique(data[:, pairable][~missing[:, pairable]])) < 2:
            assert ours is None
            continue
        theirs = krippendorff.alpha(
            reliability_data=data, level_of_measurement=level, value_domain=list(range(5))
        )
        assert ours == pytest.approx(theirs, abs=1e-9)
        compared += 1
    assert compared > 950


def test_alpha_takes_undecided_labels_for_missing_and_is_undefined_for_one_label() -> None:
    with_gap = [["A", "B", "UNCLEAR", "B"], ["A", "B", "A", "A"]]
    without = [["A", "B", None, "B"], ["A", "B", "A", "A"]]
    assert krippendorff_alpha(with_gap) == krippendorff_alpha(without)
    assert krippendorff_alpha([["A", "A"], ["A", "A"]]) is None
    assert krippendorff_alpha([["A", None], [None, "A"]]) is None


def test_alpha_refuses_ragged_ratings_and_numbers() -> None:
    with pytest.raises(ValueError, match=r"ratings\[1\] has 1 units and ratings\[0\] 2"):
        krippendorff_alpha([["A", "B"], ["A"]])
    with pytest.raises(ValueError, match=r"ratings\[0\]\[0\] is 1"):
        krippendorff_alpha([[1, 2], [1, 2]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="'nominal' or 'ordinal'"):
        krippendorff_alpha([["A"], ["B"]], "ratio")


def test_flip_overlap_gives_back_the_published_table(published: Path) -> None:
    with (published / "factuality_pair_flip_overlap.csv").open() as file:
        rows = list(csv.DictReader(file))
    judges = sorted({name for row in rows for name in row["flipping_models"].split(",") if name})
    decisions = {
        judge: (
            ["YES"] * len(rows),
            ["NO" if judge in row["flipping_models"].split(",") else "YES" for row in rows],
        )
        for judge in judges
    }
    overlap = flip_overlap(decisions, [row["pair_id"] for row in rows])
    assert overlap.flip_count == [int(row["flip_count"]) for row in rows]
    assert [set(names) for names in overlap.flipping_judges] == [
        set(filter(None, row["flipping_models"].split(","))) for row in rows
    ]
    assert len(judges) == 13
    assert overlap.all_flip == sum(int(row["flip_count"]) == 13 for row in rows) > 30
    sonnet, haiku = judges.index("claude-sonnet"), judges.index("claude-haiku")
    assert overlap.jaccard[sonnet][haiku] == 1.0


def test_overlap_leaves_out_what_a_judge_did_not_decide() -> None:
    overlap = flip_overlap(
        {"one": (["A", "A", "A"], ["B", "B", "A"]), "two": (["A", "A", "ERROR"], ["B", "A", "A"])},
        ["p", "q", "r"],
    )
    assert overlap.flip_count == [2, 1, 0]
    assert overlap.judged_count == [2, 2, 1]
    assert overlap.jaccard == [[1.0, 0.5], [0.5, 1.0]]
    assert (overlap.all_flip, overlap.none_flip) == (1, 1)


def test_consensus_of_two_judges_is_their_agreement() -> None:
    rng = np.random.default_rng(8)
    one = rng.choice(["A", "B", "UNCLEAR"], 60).tolist()
    two = rng.choice(["A", "B"], 60).tolist()
    items = [row // 3 for row in range(60)]
    result = consensus({"one": one, "two": two}, items)
    pair = jss(one, two, items)
    assert result.agreement == pytest.approx(pair.jss)
    assert result.pairwise[0][1] == pytest.approx(pair.jss)
    assert result.n_prompts == pair.n_pairs
    assert result.alpha == pytest.approx(krippendorff_alpha([one, two]))


def test_consensus_of_three_judges_averages_their_pairs() -> None:
    result = consensus({"a": ["A", "A"], "b": ["A", "B"], "c": ["A", "B"]})
    assert result.agreement == pytest.approx((1 + 1 / 3) / 2)
    assert result.pairwise == [[1.0, 0.5, 0.5], [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]
    with pytest.raises(ValueError, match="at least two"):
        consensus({"a": ["A"]})
    with pytest.raises(ValueError, match="decisions of 'b' has 1 rows"):
        consensus({"a": ["A", "B"], "b": ["A"]})


@pytest.mark.parametrize(
    "measure",
    [
        lambda labels: consensus({"x": ["A", "A"], "y": ["A", "B"]}, undecided=labels),
        lambda labels: flip_overlap({"x": (["A"], ["B"])}, ["p"], undecided=labels),
        lambda labels: krippendorff_alpha([["A", "B"], ["A", "A"]], missing=labels),
    ],
)
def test_one_word_for_the_undecided_is_refused_since_it_contains_other_labels(measure) -> None:
    with pytest.raises(ValueError, match="is 'UNCLEAR': pass a list"):
        measure("UNCLEAR")
    measure(["UNCLEAR"])
