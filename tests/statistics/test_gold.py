"""Agreement with gold labels: known tables, what is undecided, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.statistics.gold import gold_agreement, weighted_mean


def rows(table: list[list[int]], said: list[str], gold: list[str]) -> tuple[list[str], list[str]]:
    """Decisions and gold labels of a table of counts, gold down and decisions across."""
    cells = [
        (g, s, n)
        for g, line in zip(gold, table, strict=True)
        for s, n in zip(said, line, strict=True)
    ]
    return [s for _, s, n in cells for _ in range(n)], [g for g, _, n in cells for _ in range(n)]


def test_kappa_and_ac1_are_those_of_a_published_table():
    # Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, table 2:
    # 118 agree on +, 5 and 2 disagree, none agree on -: kappa -0.0234, AC1 0.9408.
    decision, gold = rows([[118, 5], [2, 0]], ["+", "-"], ["+", "-"])
    result = gold_agreement(decision, gold, labels=["+", "-"])
    assert result.kappa == pytest.approx(-0.0234, abs=1e-4)
    assert result.gwet_ac1 == pytest.approx(0.9408, abs=1e-4)


def test_quadratic_kappa_is_scikit_learns():
    from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

    rng = np.random.default_rng(0)
    gold = rng.choice(list("12345"), 200)
    decision = np.where(rng.random(200) < 0.6, gold, rng.choice(list("12345"), 200))
    result = gold_agreement(decision, gold, labels=list("12345"), ordinal=True)
    assert result.kappa == pytest.approx(cohen_kappa_score(decision, gold, weights="quadratic"))
    assert result.balanced_accuracy == pytest.approx(balanced_accuracy_score(gold, decision))
    assert result.kappa_ci_low < result.kappa < result.kappa_ci_high


def test_undecided_is_a_wrong_answer_everywhere():
    gold = ["A", "B"] * 20
    half = ["UNCLEAR" if at < 20 else label for at, label in enumerate(gold)]
    result = gold_agreement(half, gold, labels=["A", "B"])
    assert (result.accuracy, result.balanced_accuracy, result.undecided_share) == (0.5, 0.5, 0.5)
    assert result.constant_accuracy == 0.5
    assert result.kappa < 0.5
    # Gold 1, 1, 5; costs 16, 0, 0. Expected: two of three gold labels are 1, and a third of the
    # answers is 5 (cost 16 there), 1 (cost 16 for the gold 5) or none (cost 16 for either).
    scale = list("12345")
    far = gold_agreement(["REFUSED", "1", "5"], ["1", "1", "5"], labels=scale, ordinal=True)
    assert far.kappa == pytest.approx(1 - (16 / 3) / (16 * (2 / 9 + 1 / 9 + 1 / 3)))


def test_what_cannot_be_measured_is_none():
    labels = ["A", "B"]
    silent = gold_agreement(["UNCLEAR"] * 4, ["A", "B"] * 2, labels=labels)
    assert (silent.accuracy, silent.kappa, silent.undecided_share) == (None, None, 1.0)
    foreign = gold_agreement(["A", "B"], ["good", "bad"], labels=labels)
    assert (foreign.n, foreign.accuracy) == (0, None)
    one = gold_agreement(["A", "B", "A", "B"], ["A", "B"] * 2, [7] * 4, labels=labels)
    assert (one.accuracy, one.accuracy_ci_low, one.kappa_ci_low) == (1.0, None, None)
    same = gold_agreement(["A", "B"] * 5, ["A"] * 10, labels=labels)
    assert (same.kappa, same.balanced_accuracy, same.constant_accuracy) == (None, None, 1.0)
    assert same.accuracy == 0.5


def test_no_figure_is_ever_nan():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        words = ["A", "B", "UNCLEAR", "TIE"]
        result = gold_agreement(
            rng.choice(words, n), rng.choice(words[:2], n), rng.integers(0, 4, n), ["A", "B"]
        )
        numbers = [value for value in result.__dict__.values() if isinstance(value, float)]
        assert np.isfinite(numbers).all()
        for name in ("accuracy", "balanced_accuracy", "kappa", "gwet_ac1", "beats_constant"):
            low, high = (getattr(result, f"{name}_ci_{end}") for end in ("low", "high"))
            assert (low is None) == (high is None)
            if low is not None:
                assert low <= getattr(result, name) <= high


def test_rows_of_one_item_do_not_narrow_the_intervals():
    rng = np.random.default_rng(2)
    gold = rng.choice(["A", "B"], 60)
    said = np.where(rng.random(60) < 0.8, gold, np.where(gold == "A", "B", "A"))
    once = gold_agreement(said, gold, np.arange(60), ["A", "B"])
    again = gold_agreement(
        np.tile(said, 5), np.tile(gold, 5), np.tile(np.arange(60), 5), ["A", "B"]
    )
    for name in ("accuracy", "balanced_accuracy", "kappa", "gwet_ac1"):
        wide, same = (
            getattr(r, f"{name}_ci_high") - getattr(r, f"{name}_ci_low") for r in (once, again)
        )
        assert same == pytest.approx(wide, rel=0.05), name


def test_both_orders_of_an_item_are_one_observation() -> None:
    # The verdict on an item is right or wrong in both orders, so kappa is 2 * accuracy - 1.
    rng = np.random.default_rng(3)
    right = np.repeat(rng.random(100) < 0.8, 2)
    gold = np.tile(["A", "B"], 100)
    said = np.where(right, gold, np.where(gold == "A", "B", "A"))
    result = gold_agreement(said, gold, np.repeat(np.arange(100), 2), ["A", "B"])
    for end in ("low", "high"):
        of_kappa, of_accuracy = (getattr(result, f"{n}_ci_{end}") for n in ("kappa", "accuracy"))
        assert of_kappa == pytest.approx(2 * of_accuracy - 1, abs=0.03)
        assert getattr(result, f"balanced_accuracy_ci_{end}") == pytest.approx(
            of_accuracy, abs=0.015
        )


def test_a_rare_label_of_few_clusters_widens_its_intervals() -> None:
    gold = np.array(["A"] * 90 + ["B"] * 10)
    said = np.array(["A"] * 80 + ["B"] * 10 + ["B"] * 8 + ["A"] * 2)
    apart = gold_agreement(said, gold, np.arange(100), ["A", "B"])
    # The ten rows of the rare label in two clusters instead of ten.
    shared = gold_agreement(
        said, gold, np.minimum(np.arange(100), 90 + np.arange(100) // 95), ["A", "B"]
    )
    assert apart.balanced_accuracy == shared.balanced_accuracy
    for name in ("balanced_accuracy", "kappa"):
        widths = [
            getattr(r, f"{name}_ci_high") - getattr(r, f"{name}_ci_low") for r in (apart, shared)
        ]
        assert widths[1] > 1.2 * widths[0], name


def test_chances_of_being_picked_weigh_every_figure():
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    truth = rng.choice(["A", "B"], 300)
    is_doubtful = rng.random(300) < 0.3
    is_right = rng.random(300) < np.where(is_doubtful, 0.6, 0.95)
    verdict = np.where(is_right, truth, np.where(truth == "A", "B", "A"))
    chances = np.where(is_doubtful, 1.0, 0.25)
    result = gold_agreement(verdict, truth, labels=["A", "B"], chances=chances)
    assert result.kappa == pytest.approx(
        cohen_kappa_score(truth, verdict, sample_weight=1 / chances)
    )
    even = gold_agreement(verdict, truth, labels=["A", "B"], chances=np.full(300, 0.4))
    plain = gold_agreement(verdict, truth, labels=["A", "B"])
    assert (even.kappa, even.kappa_ci_low) == pytest.approx((plain.kappa, plain.kappa_ci_low))
    share, ends = weighted_mean(is_right, 1 / chances, None)
    assert share == pytest.approx(result.accuracy)
    assert (ends.low, ends.high) == (result.accuracy_ci_low, result.accuracy_ci_high)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "few heavy"])
def test_large_and_hard_clusters_are_within_the_intervals(kind: str) -> None:
    def drawn(k):
        if kind == "lognormal":
            sizes = np.ceil(rng.lognormal(1.2, 1, k)).astype(int).clip(1, 150)
            share = 1 / (1 + np.exp(0.7 * np.log(sizes) - 1.8))
        else:
            sizes = np.where(rng.random(k) < 0.1, 30, 3)
            share = np.where(sizes == 30, 0.55, 0.85)
        codes = np.repeat(np.arange(k), sizes)
        gold = rng.integers(0, 2, len(codes))
        return codes, gold, gold ^ (rng.random(len(codes)) >= share[codes])

    rng, words = np.random.default_rng(1), np.array(["A", "B"])
    _, gold, said = drawn(40_000)
    right, runs = float((gold == said).mean()), 60
    inside = np.zeros(2)
    for _ in range(runs):
        codes, gold, said = drawn(80)
        found = gold_agreement(words[said], words[gold], codes, ["A", "B"])
        inside += (
            found.accuracy_ci_low <= right <= found.accuracy_ci_high,
            found.kappa_ci_low <= 2 * right - 1 <= found.kappa_ci_high,
        )
    assert (inside >= 0.88 * runs).all()


@pytest.mark.slow
def test_the_labels_that_choose_the_constant_do_not_make_the_judge_worse_than_it():
    rng, names, runs, worse = np.random.default_rng(0), np.array(list("abcdef")), 100, 0
    for _ in range(runs):
        gold, said = rng.integers(0, 6, (2, 40))
        found = gold_agreement(names[said], names[gold], labels=names.tolist())
        worse += found.beats_constant_ci_high < 0
    assert worse <= 0.04 * runs


def test_picked_rows_of_unequal_clusters_count_by_row() -> None:
    rng, inside, runs = np.random.default_rng(3), 0, 100

    def drawn(k):
        sizes = np.where(rng.random(k) < 0.1, 25, 3)
        codes = np.repeat(np.arange(k), sizes)
        share = np.where(sizes == 25, 0.5, 0.9)[codes]
        chances = np.where(rng.random(len(codes)) < 0.3, 0.8, 0.2)
        return codes, rng.random(len(codes)) < share, chances

    truth = drawn(100_000)[1].mean()
    for _ in range(runs):
        codes, right, chances = drawn(60)
        kept = rng.random(len(codes)) < chances
        _, ends = weighted_mean(right[kept], 1 / chances[kept], codes[kept])
        inside += ends.low <= truth <= ends.high
    assert inside >= 0.88 * runs
