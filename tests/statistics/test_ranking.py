"""Rankings over prompts: equal to scipy, to the papers' definitions, and honest about ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from judgesense.statistics.ranking import ranking_stability
from judgesense.statistics.ranks import kendall_matrix, paired_above, ranks_of, spearman_matrix
from judgesense.statistics.sensitivity import prompt_sensitivity


def random_tables(count, seed):
    """Tables with many ties (few distinct values) and without, from 2 to 30 columns."""
    rng = np.random.default_rng(seed)
    for case in range(count):
        shape = (2, int(rng.integers(2, 31)))
        table = rng.integers(0, 4, shape) / 4 if case % 2 else rng.random(shape)
        yield table.astype(float)


def test_spearman_and_kendall_equal_scipy_on_many_cases():
    constant = 0
    for table in random_tables(300, seed=0):
        rho, tau = spearman_matrix(table)[0, 1], kendall_matrix(table)[0, 1]
        if (np.ptp(table, axis=1) == 0).any():
            constant += 1
            assert np.isnan([rho, tau]).all()
            continue
        assert rho == pytest.approx(spearmanr(*table).statistic, abs=1e-9)
        assert tau == pytest.approx(kendalltau(*table, variant="b").statistic, abs=1e-9)
    assert constant > 0


def test_prompt_sensitivity_reads_models_as_rows_and_prompts_as_columns():
    table = [[0.50, 0.52, 0.47], [0.61, 0.58, 0.60], [0.70, 0.55, 0.71]]
    result = prompt_sensitivity(table)
    assert result.std == pytest.approx([np.std(row) for row in table], abs=1e-12)
    assert result.range == pytest.approx([0.05, 0.03, 0.16])
    columns = np.array(table).T
    expected = [spearmanr(a, b).statistic for a, b in itertools.combinations(columns, 2)]
    assert result.spearman_pairs == pytest.approx(expected, abs=1e-12)
    assert result.mean_spearman == pytest.approx(np.mean(expected), abs=1e-12)
    assert (result.n_models, result.n_prompts, result.degenerate) == (3, 3, None)


def test_a_prompt_under_which_all_models_tie_is_left_out_of_the_mean_and_said():
    result = prompt_sensitivity([[0.1, 0.5, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2]])
    assert result.spearman_pairs[0] is None
    assert result.spearman_pairs[2] is None
    assert result.mean_spearman == pytest.approx(0.5)
    assert result.degenerate.startswith("2 of 3 pairs")


def test_one_prompt_is_refused():
    with pytest.raises(ValueError, match="at least two prompts"):
        prompt_sensitivity([[0.1], [0.2]])


def by_hand(scores, k, z):
    """The paper's section 3, one condition and one prompt at a time."""
    K, M = scores.shape
    tops = [sorted(range(M), key=lambda i, row=row: (-row[i], i))[:k] for row in scores]
    pairs = list(itertools.combinations(range(K), 2))
    winners = [top[0] for top in tops]
    frequency = {s: [set(t) for t in tops].count(set(s)) for s in map(frozenset, tops)}
    mean = scores.mean(axis=0)
    modal = max(frequency, key=lambda s: (frequency[s], round(mean[list(s)].mean(), 9)))
    lcb = mean - z * scores.std(axis=0, ddof=1) / np.sqrt(K)
    held = {"mean": [], "lcb": []}
    for c in range(K):
        rest = np.delete(scores, c, axis=0)
        bound = rest.mean(axis=0) - z * rest.std(axis=0, ddof=1) / np.sqrt(K - 1)
        held["mean"].append(scores[c, np.argmax(np.round(rest.mean(axis=0), 9))])
        held["lcb"].append(scores[c, np.argmax(np.round(bound, 9))])
    return {
        "top1_pairwise_mean": np.mean([winners[a] == winners[b] for a, b in pairs]),
        "top1_pairwise_std": np.std([winners[a] == winners[b] for a, b in pairs]),
        "topk_pairwise_mean": np.mean([len({*tops[a]} & {*tops[b]}) / k for a, b in pairs]),
        "topk_pairwise_std": np.std([len({*tops[a]} & {*tops[b]}) / k for a, b in pairs]),
        "top1_global": max(winners.count(w) for w in winners) / K,
        "topk_global": np.mean([len({*top} & modal) / k for top in tops]),
        "unique_top1": len(set(winners)),
        "selected_mean": int(np.argmax(np.round(mean, 9))),
        "selected_lcb": int(np.argmax(np.round(lcb, 9))),
        "lcb": lcb,
        "loso_mean_mean": np.mean(held["mean"]),
        "loso_mean_std": np.std(held["mean"]),
        "loso_lcb_mean": np.mean(held["lcb"]),
        "loso_lcb_std": np.std(held["lcb"]),
    }


def test_every_figure_equals_a_plain_reading_of_the_paper():
    rng = np.random.default_rng(2)
    for case in range(120):
        K, M = int(rng.integers(3, 8)), int(rng.integers(3, 15))
        scores = rng.random((K, M))
        if case % 2:
            scores = np.round(scores, 1)
        k, z = int(rng.integers(1, M + 1)), float(rng.choice([0.0, 0.5, 1.0, 2.0]))
        result = ranking_stability(scores, k=k, z=z)
        for name, expected in by_hand(scores, k, z).items():
            if name == "topk_global" and case % 2:
                continue  # Ties between frequent sets of equal worth: see the test below.
            assert getattr(result, name) == pytest.approx(expected, abs=1e-9), (case, name)


def test_ties_go_to_the_lower_prompt_index():
    result = ranking_stability([[0.5, 0.5, 0.5], [0.5, 0.5, 0.1], [0.5, 0.5, 0.2]], k=2)
    assert (result.selected_mean, result.selected_lcb, result.unique_top1) == (0, 0, 1)
    assert result.topk_global == 1.0


def test_scores_with_equal_sums_tie_whatever_order_they_are_added_in():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit.
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    scores = np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.3]])
    assert ranking_stability(scores, k=1).selected_mean == 0
    assert ranking_stability(scores[::-1], k=1).selected_mean == 0


def test_between_equally_frequent_top_k_sets_the_better_mean_decides():
    # {0, 1} and {2, 3} each lead twice; {2, 3} has the better mean. Then all four share it by half.
    scores = [[5, 4, 3, 2], [5, 4, 3, 2], [1, 2, 9, 8], [1, 2, 9, 8]]
    result = ranking_stability(scores, k=2)
    assert result.topk_global == 0.5
    # One more condition leads with {2, 0}: it overlaps half with either.
    result = ranking_stability([*scores, [7, 0, 8, 1]], k=2)
    assert result.topk_global == pytest.approx((0 + 0 + 1 + 1 + 0.5) / 5)


def test_one_condition_selects_by_mean_and_says_what_it_cannot():
    result = ranking_stability([[0.1, 0.9, 0.3]])
    assert (result.selected_mean, result.unique_top1) == (1, 1)
    for name in (
        "spearman_mean",
        "kendall_std",
        "top1_global",
        "topk_global",
        "selected_lcb",
        "lcb",
        "loso_mean_mean",
        "loso_lcb_mean",
        "top1_pairwise_mean",
    ):
        assert getattr(result, name) is None, name
    assert "one condition" in result.degenerate


def test_conditions_in_which_everything_ties_are_counted_not_hidden():
    result = ranking_stability([[0.5, 0.5, 0.5], [0.1, 0.2, 0.3], [0.1, 0.3, 0.2]], k=1)
    assert result.spearman_mean == pytest.approx(0.5)
    assert result.degenerate.startswith("2 of 3 pairs of conditions")


@pytest.mark.parametrize(
    ("scores", "options", "told"),
    [
        ([[1, 2, 3], [1, 2]], {}, r"predictions\[1\] has 2 numbers"),
        ([[1, 2, 3], [1, float("nan"), 3]], {}, r"predictions\[1\]\[1\] is nan"),
        ([[1, 2, float("-inf")]], {}, r"predictions\[0\]\[2\]"),
        ([[1, 2]], {"k": 3}, "k is 3: pass a whole number from 1 to 2"),
        ([[1, 2]], {"k": 0}, "k is 0"),
        ([[1, 2]], {"k": 1.5}, "k is 1.5"),
        ([[1, 2, 3]], {"z": float("nan")}, "z is nan"),
        ([[1, 2, 3]], {"z": -1}, "z is -1"),
        ([], {}, "predictions is empty"),
    ],
)
def test_bad_rankings_are_refused_with_their_place(scores, options, told):
    with pytest.raises(ValueError, match=told):
        ranking_stability(scores, **options)


def test_paired_ranks_separate_what_intervals_cannot():
    rng = np.random.default_rng(0)
    item = rng.beta(4, 1, 200)
    same = np.array([rng.binomial(3, np.clip(item - worse, 0, 1)) for worse in (0.0, 0.0, 0.1)])
    shares = same.mean(axis=1) / 3
    above = paired_above(shares, (same - same.mean(axis=1, keepdims=True)) / 600)
    assert above.tolist() == [[False, False, True], [False, False, True], [False, False, False]]
    first, last = ranks_of(above, ["a", "b", "c"])
    assert (first.tolist(), last.tolist()) == ([1, 1, 3], [2, 2, 3])


def test_equal_shares_are_told_apart_as_rarely_as_promised():
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(300):
        item = rng.beta(4, 1, 60)
        same = rng.binomial(1, item, (5, 60))
        wrong += paired_above(same.mean(axis=1), (same - same.mean(axis=1)[:, None]) / 60).any()
    assert wrong / 300 <= 0.07
