"""Agreement among several raters, and where the flips of several judges lie."""

from __future__ import annotations

import csv
from pathlib import Path

import krippendorff
import numpy as np
import pytest

from judgesense.statistics.flips import flip_overlap
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


def test_alpha_is_undefined_for_one_label_and_for_single_ratings() -> None:
    assert krippendorff_alpha([["A", "A"], ["A", "A"]], "nominal", ["A"]) is None
    assert krippendorff_alpha([["A", None], [None, "A"]], "nominal", ["A"]) is None


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
    flips, judged = flip_overlap(decisions)
    assert flips.tolist() == [int(row["flip_count"]) for row in rows]
    assert set(judged.tolist()) == {len(judges)} == {13}


def test_overlap_leaves_out_what_a_judge_did_not_decide() -> None:
    flips, judged = flip_overlap(
        {"one": (["A", "A", "A"], ["B", "B", "A"]), "two": (["A", "A", "ERROR"], ["B", "A", "A"])}
    )
    assert flips.tolist() == [2, 1, 0]
    assert judged.tolist() == [2, 2, 1]
