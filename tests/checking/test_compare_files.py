"""Two results without labels: whose change it was, of the mean and of each verdict."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.comparison.score_noise import _items_needed
from judgesense.errors import JudgeSenseError
from judgesense.importers.outputs import compared_text
from judgesense.statistics.attribution import FEWEST_ANCHORS, anchors_differ, attribute

JUDGE = {"model": "m-1", "prompt_hash": "aa", "scale": "1-10"}


def silent(_: str) -> None:
    """Take no notes."""


def rows(n: int = 90, share: float = 0.75) -> list[dict[str, object]]:
    """Outputs with the verdict pass for a share of them, scattered."""
    passed = [(7 * i) % n < share * n for i in range(n)]
    return [
        {"id": f"q{i}", "output": f"text {i}", "verdict": "pass" if ok else "fail"}
        for i, ok in enumerate(passed)
    ]


def changed(old, outputs=(), verdicts=(), **more):
    """Rows with other outputs, and other verdicts, at some places."""
    other = {"pass": "fail", "fail": "pass"}
    return [
        row
        | ({"output": f"{row['output']} changed"} if at in outputs else {})
        | ({"verdict": other[row["verdict"]]} if at in verdicts else {})
        | more
        for at, row in enumerate(old)
    ]


@pytest.fixture
def compare(tmp_path):
    def call(old, new, **options):
        return judgesense.compare(old, new, runs=tmp_path / "runs", note=silent, **options)

    return call


def test_a_change_on_the_same_outputs_is_the_judges(compare) -> None:
    old = rows()
    found = compare(old, changed(old, verdicts=range(30)))
    (change,) = found.changes
    before, after = (
        np.mean([r["verdict"] == "pass" for r in side])
        for side in (old, changed(old, verdicts=range(30)))
    )
    assert change.old == pytest.approx(before)
    assert found.split.judge == found.split.change == pytest.approx(after - before)
    assert found.split.system == found.split.system_ci_low == found.split.system_ci_high == 0
    assert found.split.n_anchors == found.split.n_items == 90
    assert {row["cause"] for row in change.flips} == {"judge"}
    assert change.noise.n_flipped == len(change.flips) == 30


def test_a_change_on_other_outputs_is_the_systems_if_the_judge_is_the_same(compare) -> None:
    old = rows(share=1.0)
    new = changed(old, outputs=range(45), verdicts=range(20))
    found = compare(old, new)
    assert found.changes[0].cause == "system"
    assert found.split.judge == 0
    assert found.split.judge_ci_low < 0 < found.split.judge_ci_high
    assert found.split.system == pytest.approx(-20 / 90)
    assert {row["cause"] for row in found.changes[0].flips} == {"system"}
    # A judge that the files show to be another one may have changed them, too.
    other = compare(
        [row | {"judge_model": "m-1"} for row in old], [row | {"judge_model": "m-2"} for row in new]
    )
    assert other.judge_changes == ("judge_model was m-1 and is m-2",)
    assert {row["cause"] for row in other.changes[0].flips} == {"cannot tell"}
    assert other.changes[0].noise is None


def test_verdicts_that_flip_as_often_on_the_same_output_are_not_the_systems(compare) -> None:
    random.seed(3)
    old = rows()
    flips = random.sample(range(90), 30)
    found = compare(old, changed(old, outputs=range(45), verdicts=flips))
    assert {row["cause"] for row in found.changes[0].flips} == {"judge", "cannot tell"}


def test_too_few_anchors_give_no_split_and_say_how_many_more(compare) -> None:
    old = rows()
    new = changed(old, outputs=range(1, 90), verdicts=range(20))
    found = compare(old, new)
    assert found.split is None
    assert "14 or more" in found.split_reason
    assert "--anchors" in found.split_reason
    assert {row["cause"] for row in found.changes[0].flips} == {"judge", "cannot tell"}
    # The new judge on old outputs makes anchors of them.
    again = compare(old, new, anchors=changed(old[:40], verdicts=range(20)))
    assert again.split.n_anchors == 40
    causes = {row["item_id"]: row["cause"] for row in again.changes[0].flips}
    assert causes == {f"q{i}": "judge" for i in range(20)}
    with pytest.raises(JudgeSenseError, match="none of the outputs"):
        compare(old, new, anchors=changed(old, outputs=range(90)))
    with pytest.raises(JudgeSenseError, match="not of the later judge"):
        compare(
            *([row | {"judge_model": "m"} for row in side] for side in (old, new)),
            anchors=[row | {"judge_model": "n"} for row in old],
        )


def test_without_outputs_nothing_is_invented(compare) -> None:
    old, new = (
        [{key: row[key] for key in ("id", "verdict")} for row in side]
        for side in (rows(), changed(rows(), verdicts=range(20)))
    )
    found = compare(old, new)
    assert found.split is None
    assert "--columns output=COLUMN" in found.split_reason
    assert {row["cause"] for row in found.changes[0].flips} == {"cannot tell"}
    named = [[row | {"shown": f"text {at}"} for at, row in enumerate(side)] for side in (old, new)]
    assert compare(*named, columns={"output": "shown"}).split.n_anchors == 90


@pytest.mark.parametrize("empty", ["", None])
def test_outputs_that_are_missing_are_not_the_same(empty, compare) -> None:
    old = [row | ({"output": empty} if at % 2 else {}) for at, row in enumerate(rows())]
    other = [row | {"note": at} for at, row in enumerate(old)]
    assert compare(old, other).split.n_anchors == 45


def test_failed_calls_are_no_change_of_the_mean(compare) -> None:
    old = rows()
    new = [row | ({"verdict": ""} if at % 10 == 0 else {}) for at, row in enumerate(old)]
    (change,) = compare(old, new).changes
    assert change.n_failed == 9
    assert change.n_items == 81
    assert change.old == change.new
    assert {row["cause"] for row in change.flips} == {"failed call"}


def test_results_that_cannot_be_compared_are_refused(compare) -> None:
    old = rows()
    for new, what in (
        ([row | {"id": f"z{row['id']}"} for row in old], "no item in common"),
        ([row | {"verdict": at % 10 + 1} for at, row in enumerate(old)], "one scale"),
    ):
        with pytest.raises(JudgeSenseError, match=what):
            compare(old, new)
    tone, safety = ([row | {"task": name} for row in old] for name in ("tone", "safety"))
    with pytest.raises(JudgeSenseError, match="no task in common"):
        compare(tone, safety)


def test_systems_that_both_results_have_are_compared(compare) -> None:
    old = rows()
    several = [row | {"system": name} for row in old for name in ("a", "b")]
    others = [row | {"system": name} for row in old for name in ("a", "c")]
    assert compare(several, others).split.n_items == 90
    assert compare(several, several).split.n_items == 180
    # A system that is another one throughout is what changed.
    one, two = ([row | {"system": name} for row in old] for name in ("v1", "v2"))
    assert compare(one, two).split.n_items == 90


def test_labels_without_an_order_have_no_mean(compare) -> None:
    words = ("good", "ok", "bad")
    old = [row | {"verdict": words[at % 3]} for at, row in enumerate(rows())]
    new = [row | {"verdict": words[at % 2]} for at, row in enumerate(rows())]
    found = compare(old, new)
    assert found.split is None
    assert "--positive" in found.split_reason
    assert found.changes[0].old is None
    assert {row["kind"] for row in found.changes[0].flips} == {"changed"}
    assert compare(old, new, positive="good").split.change == pytest.approx(0.5 - 1 / 3)


def test_equal_results_have_a_change_of_0(compare) -> None:
    split = compare(rows(), rows()).split
    assert (split.change, split.judge, split.system) == (0, 0, 0)
    assert split.judge_ci_low < 0 < split.judge_ci_high


def test_scores_with_fractions_have_a_mean(compare) -> None:
    old = [row | {"verdict": None, "score": (at * 37 % 100) / 113} for at, row in enumerate(rows())]
    new = [row | {"score": row["score"] + 0.1} for row in old]
    (change,) = compare(
        *([{k: v for k, v in row.items() if k != "verdict"} for row in side] for side in (old, new))
    ).changes
    assert change.unit == "score"
    assert change.old == pytest.approx(np.mean([row["score"] for row in old]), abs=0.005)
    assert change.split.judge == pytest.approx(0.1, abs=0.001)


def test_repeats_with_another_output_are_no_anchor(compare) -> None:
    def trials(last: str):
        return [
            {
                "id": i,
                "trial": t,
                "output": f"{i} {t}{last if t == 2 and i % 2 else ''}",
                "verdict": "pass" if (i + t) % 3 else "fail",
            }
            for i in range(40)
            for t in range(3)
        ]

    assert compare(trials(""), trials("!")).split.n_anchors == 20


def test_one_verdict_throughout_is_a_result(compare) -> None:
    old = rows(share=1.0)
    assert compare(old, old).changes[0].old == 1
    assert compare(old, changed(old, verdicts=range(30))).split.judge == pytest.approx(-1 / 3)


def test_the_same_inputs_give_the_noise_of_each_group(compare) -> None:
    words = ("win", "tie", "loss")
    old = [
        {"skill": f"s{i % 4}", "input_sha": f"{i:x}", "judge_model": "m", "verdict": words[i % 3]}
        for i in range(60)
    ]
    new = [row | {"verdict": words[(i + (i % 5 == 0)) % 3]} for i, row in enumerate(old)]
    (change,) = compare(old, new).changes
    assert change.unit == "win rate"
    assert change.old == pytest.approx(0.5)
    assert change.noise.flipped == pytest.approx(0.2)
    gaps = [
        (1, 0.5, 0)[words.index(b["verdict"])] - (1, 0.5, 0)[words.index(a["verdict"])]
        for a, b in zip(old, new, strict=True)
    ]
    spread = np.sqrt(np.mean(np.square(gaps)))
    gap_size = np.mean([abs(gap) for gap in gaps if gap])
    assert change.noise.moves_by == pytest.approx(1.96 * spread / np.sqrt(60))
    assert change.noise.items_needed == _items_needed(spread**2, gap_size, 0.1)
    k = change.noise.repeats_needed
    assert _items_needed(spread**2 / k, gap_size, 0.1) <= 60
    # The change itself varies too much on 15 items.
    assert {group.repeats_needed for group in change.noise.groups} == {None}
    assert change.noise.by == "skill"
    assert [group.n_items for group in change.noise.groups] == [15] * 4
    assert not any(group.decides for group in change.noise.groups)
    assert sum(group.n_flipped for group in change.noise.groups) == 12


def test_a_score_that_went_up_with_the_judge(compare) -> None:
    """As a public report has it: another judge model, a part of the outputs unchanged."""
    random.seed(5)
    old = [
        {"item_id": i, "output": f"text {i}", "score": random.choice((5, 6, 7, 8)), "judge": JUDGE}
        for i in range(150)
    ]
    new = [
        row
        | {
            "output": f"text {i}" if i < 40 else f"new {i}",
            "score": row["score"] + 1,
            "judge": JUDGE | {"model": "m-2"},
        }
        for i, row in enumerate(old)
    ]
    found = compare(old, new)
    assert found.judge_changes == ("judge.model was m-1 and is m-2",)
    assert (found.split.change, found.split.judge, found.split.n_anchors) == (1, 1, 40)
    assert found.changes[0].cause == "judge"


SCORES = st.lists(st.tuples(*[st.integers(0, 4)] * 3, st.booleans()), min_size=20, max_size=40)


@given(SCORES)
def test_swapping_the_results_turns_the_signs(values) -> None:
    old, new, clusters, anchors = (np.array(column) for column in zip(*values, strict=True))
    anchors[:18] = True
    clusters = np.arange(len(values)) // 1
    there = attribute(old, new, np.where(anchors, new, np.nan), clusters)
    back = attribute(new, old, np.where(anchors, old, np.nan), clusters)
    for name in ("change", "judge", "system"):
        one, two = getattr(there, name), getattr(back, name)
        assert one.estimate == pytest.approx(-two.estimate)
        assert one.ci_low == pytest.approx(-two.ci_high)
    parts = there.judge.estimate + there.system.estimate
    assert parts == pytest.approx(there.change.estimate)
    still = attribute(old, old, old, clusters)
    assert still.change.estimate == still.judge.estimate == still.system.estimate == 0


def test_anchors_are_compared_by_welchs_test() -> None:
    from scipy.stats import ttest_ind

    values = np.random.default_rng(2).normal(size=50) + np.repeat([0.0, 0.6], 25)
    anchors = np.repeat([True, False], 25)
    expected = ttest_ind(values[:25], values[25:], equal_var=False).pvalue
    assert anchors_differ(values, anchors) == pytest.approx(expected)
    assert anchors_differ([0.0, 0.0, 1.0, 1.0], [True, True, False, False]) == 0
    assert anchors_differ([0.0, 1.0, 1.0], [True, False, False]) is None


def test_runs_of_a_rubric(tmp_path: Path) -> None:
    """A prompt that is the same has the same output, and so has another rubric's on equal data."""

    def judge(messages):
        return ["PASS" if sum(map(ord, str(message))) % 3 else "FAIL" for message in messages]

    def check(name: str, rubric: str, data):
        options = {"answers": ["PASS", "FAIL"], "paraphrases": 0, "note": silent}
        return judgesense.check(rubric, data, judge, out=tmp_path / name, **options).out

    old = [{"item_id": f"i{i}", "reply": f"reply {i}"} for i in range(60)]
    new = [row | ({"reply": f"{row['reply']}!"} if i % 3 else {}) for i, row in enumerate(old)]
    good, fine = (f"Is {{reply}} a {word} answer? PASS or FAIL" for word in ("good", "fine"))
    first, other = check("first", good, old), check("other", good, new)
    reworded, both = check("reworded", fine, old), check("both", fine, new)
    split = judgesense.compare(first, other).split
    assert (split.n_anchors, split.judge, split.n_items) == (20, 0, 60)
    rubric = judgesense.compare(first, reworded)
    assert rubric.split.n_anchors == 60
    assert "rubric" in rubric.judge_changes[0]
    assert {row["cause"] for row in rubric.changes[0].flips} == {"judge"}
    assert judgesense.compare(first, both).split is None
    assert judgesense.compare(first, both, anchors=reworded).split.n_anchors == 60


def test_folding_keeps_what_may_be_judged() -> None:
    assert compared_text("a \r\nb\n") == compared_text("a\nb")
    assert compared_text("  a") != compared_text("a")
    assert compared_text("A") != compared_text("a")
    assert compared_text("10²") != compared_text("102")


HOSTILE = "</script><img src=x onerror=alert(1)>\u202e{{7*7}}"


def test_the_page_shows_both_texts_and_is_inert(tmp_path: Path, browser) -> None:
    old = [row | {"reason": f"{HOSTILE} old {row['id']}"} for row in rows()]
    new = [
        row | {"output": f"{row['output']}{HOSTILE}", "reason": f"new {row['id']}"}
        for row in changed(old, verdicts=range(30))
    ]
    page = tmp_path / "change.html"
    found = judgesense.compare(old, new, runs=tmp_path / "runs", note=silent, out=page)
    assert found.page == str(page)
    opened = browser.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("dialog", lambda dialog: errors.append(dialog.message))
    opened.on(
        "request",
        lambda request: errors.append(request.url) if not request.url.startswith("file:") else None,
    )
    opened.goto(page.as_uri())
    kinds = [row["kind"] for row in found.changes[0].flips]
    for kind in ("broken", "fixed"):
        opened.get_by_role("button", name=kind).click()
        shown = f"{kinds.count(kind)} of 30 items"
        assert opened.get_by_role("status").inner_text() == shown
    detail = opened.get_by_role("region", name="The chosen item").inner_text()
    assert "<img src=x onerror=alert(1)>" in detail
    assert "before" in detail
    assert "after" in detail
    assert opened.locator("img").count() == 0
    assert errors == []


def test_the_command_prints_a_sentence_and_writes_the_contract(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, side in (("a", rows()), ("b", changed(rows(), verdicts=range(30)))):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, side)))
    words = CliRunner().invoke(app, ["compare", "a.jsonl", "b.jsonl"])
    assert words.exit_code == 0, words.output
    assert "of which judge" in words.stdout
    assert Path("runs/compare/a-b.html").is_file()
    printed = CliRunner().invoke(app, ["compare", "a.jsonl", "b.jsonl", "--format", "json"])
    split = json.loads(printed.stdout)["split"]
    ends = [f"{part}{end}" for part in ("judge", "system") for end in ("", "_ci_low", "_ci_high")]
    assert [*split] == ["change", *ends, "n_anchors", "n_items"]


def test_a_baseline_has_the_same_page(tmp_path: Path) -> None:
    old = [row | {"label": "pass"} for row in rows()]
    new = [row | {"label": "pass"} for row in changed(rows(), verdicts=range(30))]
    first = judgesense.check(old, out=tmp_path / "first", note=silent)
    judgesense.check(new, out=tmp_path / "second", baseline=first.out, note=silent)
    page = (tmp_path / "second" / "change.html").read_text("utf-8")
    data = json.loads(page.partition('id="listed">')[2].partition("</script>")[0])
    assert len(data["rows"]) == 30
    assert {data["kinds"][0], data["kinds"][1]} == {"broken", "fixed"}
    assert data["items"][0][2]["output"].startswith("text ")


@pytest.mark.parametrize("noise", [0.01, 0.08, 0.2])
def test_the_change_that_is_promised_shows_in_80_percent(noise: float) -> None:
    rng = np.random.default_rng(int(100 * noise))
    n, shown = _items_needed(noise * (1 - noise / 2), 1.0, 0.1), 0
    for _ in range(300):
        passes = rng.random(n) < 0.75
        old, new = (passes ^ (rng.random(n) < noise / 2) for _ in range(2))
        new &= rng.random(n) >= 0.1 / 0.75
        found = attribute(old.astype(float), new.astype(float), new.astype(float))
        assert found is not None
        shown += not found.judge.is_zero_inside
    assert n >= FEWEST_ANCHORS
    assert 0.75 <= shown / 300 <= 0.95


@pytest.mark.parametrize("worse", [0, 1])
def test_a_retry_of_what_failed_is_not_the_judge(compare, worse: int) -> None:
    old = rows()
    failed = [n for n, row in enumerate(old) if row["verdict"] == "fail"]
    passed = [n for n, row in enumerate(old) if row["verdict"] == "pass"]
    new = changed(old, verdicts=[*failed[:20], *passed[:worse]])
    result = compare(old, new)
    (change,) = result.changes
    assert change.cause == ("judge" if worse else "cannot tell")
    assert ("asked again only what OLD failed" in str(result)) == (not worse)
    (named,) = compare(
        [r | JUDGE for r in old], [r | JUDGE | {"prompt_hash": "bb"} for r in new]
    ).changes
    assert named.cause == "judge"


def test_scores_that_were_asked_again_by_their_value_are_no_change_of_the_judge(compare) -> None:
    rng = np.random.default_rng(0)
    texts = [f"text {n}" for n in range(150)]
    score = rng.choice([1, 2, 3, 4, 5], 150, p=[0.1, 0.25, 0.3, 0.2, 0.15])
    again = np.where(score <= 3, np.clip(score + rng.choice([-1, 0, 1, 1], 150), 1, 5), score)
    old, new = (
        [
            {"id": n, "output": t, "score": int(s)}
            for n, (t, s) in enumerate(zip(texts, side, strict=True))
        ]
        for side in (score, again)
    )
    (change,) = compare(old, new, verdict="score").changes
    assert (change.cause, change.chosen) == ("cannot tell", "unchanged")
    kept = [row for row, s in zip(new, score, strict=True) if s <= 3]
    (change,) = compare(old, kept, verdict="score").changes
    assert (change.cause, change.chosen) == ("cannot tell", "missing")


def test_short_outputs_tell_nothing_of_the_judge_on_long_ones(compare) -> None:
    rng = np.random.default_rng(0)
    is_long = rng.random(120) < 0.6
    score = rng.integers(3, 9, 120)
    old = [
        {"id": n, "output": f"{n} " + "word " * (40 if is_long[n] else 3), "score": int(score[n])}
        for n in range(120)
    ]
    new = [
        row | ({"output": f"new {row['output']}", "score": row["score"] - 2} if is_long[n] else {})
        for n, row in enumerate(old)
    ]
    (change,) = compare(old, new, verdict="score").changes
    assert change.cause == "cannot tell"
    assert change.split is None
    assert "the length of 'output'" in str(change.split_reason)
