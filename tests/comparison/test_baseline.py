"""A judge compared with an earlier result on the same items."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

import judgesense
from judgesense.comparison.baseline import against_baseline
from judgesense.errors import JudgeSenseError
from judgesense.pipeline import run
from judgesense.statistics.change import item_change, smallest_loss
from local_judges.callable_judge import CallableJudge


def judged(out, answer, **options):
    judge = CallableJudge(lambda messages: [answer(text) for text in messages], name="j")
    run(judge, out=out, note=str, **options)
    return out


def bonett_price(lost, gained, n, z):
    one, two = (lost + 1) / (n + 2), (gained + 1) / (n + 2)
    half = z * np.sqrt((one + two - (two - one) ** 2) / (n + 2))
    return two - one - half, two - one + half


@pytest.mark.parametrize(("lost", "gained", "n"), [(5, 0, 50), (6, 1, 50), (12, 2, 100)])
def test_one_verdict_per_item_has_the_interval_of_bonett_and_price(lost, gained, n):
    before = [1] * lost + [0] * gained + [1] * (n - lost - gained)
    after = [0] * lost + [1] * gained + [1] * (n - lost - gained)
    change = item_change(before, after)
    low, high = bonett_price(lost, gained, n, 1.9187)
    assert change.ci_high == pytest.approx(high, abs=1e-4)
    assert change.ci_low <= low + 1e-4
    assert change.n_changed == lost + gained
    assert change.conclusion(0.05) == ("worse" if high < 0 else "cannot tell")


def test_without_a_change_the_bound_is_wilsons():
    change = item_change([1, 0] * 40, [1, 0] * 40)
    _, high = proportion_confint(0, 82, alpha=1 - change.level, method="wilson")
    assert change.ci_low == pytest.approx(-high, abs=1e-9)
    assert change.conclusion(0.05) == "no worse"
    assert item_change([1] * 50, [1] * 50).conclusion(0.05) == "cannot tell"


def test_items_of_one_cluster_are_one_piece_of_evidence():
    before, after = np.ones(60), np.ones(60)
    after[:12] = 0
    alone, shared = item_change(before, after), item_change(before, after, np.arange(60) // 12)
    assert alone.conclusion(0.05) == "worse"
    assert shared.conclusion(0.05) == "cannot tell"


def test_a_comparison_says_what_its_size_can_find():
    losses = [smallest_loss(n) for n in (50, 100, 200, 400)]
    assert losses == sorted(losses, reverse=True)
    assert smallest_loss(5) is None


def test_a_changed_judge_against_its_baseline(tmp_path):
    options = {"tasks": ["factuality"], "limit": 50}
    old = judged(tmp_path / "old", lambda text: "NO", **options)
    new = judged(tmp_path / "new", lambda text: "YES", **options)
    found = against_baseline(new, old)
    by_figure = {row["figure"]: row for row in found.conclusions}
    assert set(by_figure) == {"right", "steady", "readable"}
    assert by_figure["right"]["n_changed"] == 50
    assert by_figure["readable"]["difference"] == by_figure["steady"]["difference"] == 0
    assert {row["kind"] for row in found.moved} == {"fixed", "broken"}
    assert len(found.moved) == 50
    same = against_baseline(old, old)
    assert same.moved == []
    assert same.gate.decision == "INCONCLUSIVE"
    with pytest.raises(JudgeSenseError, match="none of the first 3 replies"):
        judged(tmp_path / "unread", lambda text: "hm", **options)
    unread = judged(tmp_path / "unread", lambda text: "hm", **options)
    gate = against_baseline(unread, old).gate
    assert (gate.decision, gate.cause) == ("FAIL", "right")
    assert against_baseline(old, unread).gate.decision == "PASS"


def test_a_choice_is_compared_in_the_orders_that_both_results_have(tmp_path):
    options = {"tasks": ["relevance"], "limit": 12}
    both = judged(tmp_path / "both", lambda text: "A", **options)
    one = judged(tmp_path / "one", lambda text: "A", orders=["AB"], **options)
    assert "fair" in {row["figure"] for row in against_baseline(both, both).conclusions}
    found = against_baseline(both, one)
    assert "fair" not in {row["figure"] for row in found.conclusions}
    assert found.moved == []


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"tasks": ["coherence", "factuality"]}, None),
        ({"tasks": ["coherence"]}, "have no item in common"),
    ],
)
def test_a_baseline_needs_common_items(tmp_path, new, message):
    old = judged(tmp_path / "old", lambda text: "YES", tasks=["factuality"], limit=3)

    def answer(text):
        return "1" if "1" in text and "5" in text else "YES"

    other = judged(tmp_path / "new", answer, limit=3, **new)
    if message is None:
        assert {row["task"] for row in against_baseline(other, old).conclusions} == {"factuality"}
    else:
        with pytest.raises(JudgeSenseError, match=message):
            against_baseline(other, old)
    with pytest.raises(JudgeSenseError, match="the margin must be between 0 and 1"):
        against_baseline(old, old, margin=0)


def test_items_with_other_labels_than_the_baseline_are_counted(tmp_path):
    rows = [{"item_id": str(n), "verdict": "AB"[n % 2], "label": "AB"[n % 2]} for n in range(20)]
    other = [{**row, "label": "B"} if n < 6 else row for n, row in enumerate(rows)]
    judgesense.check(rows, out=tmp_path / "old")
    found = judgesense.check(other, out=tmp_path / "new", baseline=tmp_path / "old")
    assert any(": 3 of 20 items have another label" in note for note in found.change.notes)


def table(verdicts, gold, task="t"):
    rows = zip(verdicts, gold, strict=True)
    return [
        {"item_id": f"i{item}", "verdict": verdict, "label": label, "judge": "j", "task": task}
        for item, (verdict, label) in enumerate(rows)
    ]


def compared(tmp_path, new, old, **options):
    options |= {"out": tmp_path / "new", "runs": tmp_path / "runs", "note": str}
    return judgesense.check(new, baseline=old, **options)


def test_a_missing_row_counts_as_an_empty_verdict(tmp_path):
    gold = ["YES", "NO"] * 60
    old = table(gold, gold)
    hard = set(range(15))
    missing = [row for item, row in enumerate(old) if item not in hard]
    empty = [{**row, "verdict": ""} if item in hard else row for item, row in enumerate(old)]
    gates = [compared(tmp_path / str(n), new, old) for n, new in enumerate((missing, empty))]
    assert [gate.decision for gate in gates] == ["FAIL", "FAIL"]
    rows = [{row["figure"]: row["after"] for row in gate.change.conclusions} for gate in gates]
    assert rows[0] == rows[1]
    assert rows[0]["right"] == pytest.approx(105 / 120)
    assert "15 verdicts of the baseline have no row" in str(gates[0].change)


def test_tasks_and_looks_share_the_error(tmp_path):
    options = {"tasks": ["factuality", "coherence"], "limit": 12}
    old = judged(tmp_path / "old", lambda text: "NO", **options)
    new = judged(tmp_path / "new", lambda text: "YES", **options)
    levels = {}
    for looks in (1, 10):
        change = against_baseline(new, old, looks=looks)
        changed = [row for row in change.conclusions if row["n_changed"]]
        (levels[looks],) = {row["level"] for row in changed}
        tail = (1 - levels[looks]) / 2
        assert tail * len(changed) * looks == pytest.approx(0.0275)
    assert levels[10] > levels[1]
    with pytest.raises(JudgeSenseError, match="looks"):
        against_baseline(new, old, looks=0)


def test_the_power_counts_what_changes_anyway():
    gold = np.ones(200)
    noisy = np.r_[np.ones(140), np.zeros(60)]
    changed = item_change(noisy, noisy[::-1])
    quiet = item_change(gold, gold)
    assert quiet.smallest_loss == smallest_loss(200)
    assert changed.n_changed == 120
    assert changed.smallest_loss > 1.8 * quiet.smallest_loss


def test_large_clusters_do_not_hide_how_much_they_vary():
    sizes = [40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    clusters = np.repeat(np.arange(12), sizes)
    before = np.ones(len(clusters))
    after = np.where(clusters == 0, 0.0, 1.0)
    assert item_change(before, after, clusters).conclusion(0.05) == "cannot tell"


def test_labels_that_were_picked_count_by_their_chance():
    doubtful = np.arange(200) < 100
    before = np.ones(200)
    after = np.where(doubtful & (np.arange(200) % 5 == 0), 0.0, 1.0)
    chances = np.where(doubtful, 0.8, 0.1)
    picked = item_change(before, after, chances=chances)
    assert item_change(before, after).difference == pytest.approx(-0.1)
    assert picked.difference == pytest.approx(-0.2 * (100 / 0.8) / (100 / 0.8 + 100 / 0.1))
    assert picked.ci_low < picked.difference < picked.ci_high


def test_whole_conversations_that_break_are_not_no_worse():
    rng, runs, passed = np.random.default_rng(2), 200, 0
    for _ in range(runs):
        sizes = np.ceil(rng.lognormal(1, 1, 150)).astype(int).clip(1, 100)
        codes = np.repeat(np.arange(150), sizes)
        before = rng.random(len(codes)) < 0.95
        after = before & ~(rng.random(150) < 0.05 / 0.95)[codes]
        passed += item_change(before, after, codes).conclusion(0.05) == "no worse"
    assert passed <= 0.06 * runs


def test_few_unchanged_conversations_may_hide_a_broken_one():
    codes = np.repeat(np.arange(60), 8)
    same = np.ones(len(codes))
    assert item_change(same, same, codes).conclusion(0.05) == "cannot tell"
    codes = np.repeat(np.arange(100), 8)
    assert item_change(*np.ones((2, 800)), codes).conclusion(0.05) == "no worse"


@pytest.mark.parametrize(("flipped", "conclusion"), [(False, "better"), (True, "cannot tell")])
def test_a_conclusion_holds_with_the_labels_of_both(tmp_path, flipped, conclusion):
    truth = ["A" if n % 2 else "B" for n in range(120)]
    other = {"A": "B", "B": "A"}
    old = [other[t] if n % 4 == 0 else t for n, t in enumerate(truth)]
    new = [other[t] if n % 4 == 1 else t for n, t in enumerate(truth)]
    gold = truth
    if flipped:  # People looked at what the newer result has wrong, and changed most labels.
        gold = [new[n] if n % 4 == 1 and n % 5 else t for n, t in enumerate(truth)]
        gold = [gold[n] if n < 100 else t for n, t in enumerate(truth)]
    else:
        new = truth
    judgesense.check(table(old, truth), out=tmp_path / "old", note=str)
    found = judgesense.check(table(new, gold), out=tmp_path / "new", baseline=tmp_path / "old")
    assert found.change.conclusions[0]["conclusion"] == conclusion
    assert bool(found.change.notes) == flipped


def test_no_rate_is_promised_where_errors_come_in_bursts(tmp_path):
    wrong = [40 <= n < 60 or n % 13 == 0 for n in range(150)]
    rows = table(["AB"[n % 2 ^ w] for n, w in enumerate(wrong)], ["AB"[n % 2] for n in range(150)])
    dated = [row | {"date": f"2026-01-{1 + n // 8:02}"} for n, row in enumerate(rows)]
    first = judgesense.check(dated, out=tmp_path / "old", note=str)
    found = judgesense.check(dated, out=tmp_path / "new", baseline=tmp_path / "old")
    assert found.change.bursts
    assert not any("at most 3%" in line for line in found.change.sentences())
    plain = judgesense.check(rows[:40], out=tmp_path / "plain", note=str)
    assert not plain.report.contents.runs[0].get("bursts")
    (row,) = first.report.people
    alone = proportion_confint(sum(wrong), 150, method="wilson")
    assert row["accuracy_ci_high"] - row["accuracy_ci_low"] > 1.3 * (alone[1] - alone[0])
