"""Where a judge is wrong: the rows, their kinds, the file, and groups that fare worse."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from reports import report_of
from scipy.stats import fisher_exact

import judgesense
from judgesense.checking.labelling import open_labelling
from judgesense.measure.disagreements import KINDS, SPLIT, read_rows
from judgesense.measure.disputes import RATER, WORD, disputes_of
from judgesense.measure.raters import Raters
from judgesense.measure.words import ItemWords
from judgesense.reporting.html import render_html
from judgesense.reporting.report import report_runs
from judgesense.reporting.terminal import render_brief
from judgesense.statistics.groups import compare_groups


def listed_of(make, log, benchmark, **more):
    rows: list = []
    report = report_of(
        log,
        benchmark.pairs,
        run=make.run(benchmark),
        prompts=benchmark.prompts,
        disagreements=rows,
        **more,
    )
    return report, {(row.item_id, row.order): row for row in rows if row.kinds}


def test_every_kind_is_counted_by_hand(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 3, ["A"] * 6, orders=("AB", "BA"))

    def decide(prompt):
        item, order, right = prompt["item_id"], prompt["order"], prompt["gold"]
        other = "B" if right == "A" else "A"
        if item == "item-001":  # always the first option: wrong in BA, flipped by order
            return "A"
        if item == "item-002":  # one wording of three differs
            return other if prompt["template_id"] == "w2" else right
        if item == "item-003" and order == "AB":
            return "UNCLEAR" if prompt["template_id"] == "w1" else right
        if item == "item-004":
            return other
        return right

    def logprobs(prompt):
        close = prompt["item_id"] == "item-005"
        best = decide(prompt)
        first = 0.55 if close else 0.9
        shares = {"A": first, "B": 1 - first} if best != "B" else {"A": 1 - first, "B": first}
        return {label: math.log(share) for label, share in shares.items()}

    log = make.log(benchmark, decide, scoring="options", logprobs=logprobs)
    report, rows = listed_of(make, log, benchmark)
    wrong, by_wording, by_order, unreadable, near, doubted = KINDS
    kinds = {key: list(row.kinds) for key, row in rows.items()}
    assert kinds == {
        ("item-001", "AB"): [by_order],
        ("item-001", "BA"): [wrong, by_order],
        ("item-002", "AB"): [by_wording],
        ("item-002", "BA"): [by_wording],
        ("item-003", "AB"): [unreadable],
        ("item-004", "AB"): [wrong],
        ("item-004", "BA"): [wrong],
        ("item-005", "AB"): [near],
        ("item-005", "BA"): [near],
    }
    assert rows["item-005", "AB"].margin == pytest.approx(0.1)
    assert rows["item-004", "AB"].margin == pytest.approx(0.8)
    assert rows["item-002", "AB"].verdicts == {"w1": "A", "w2": "B", "w3": "A"}
    assert rows["item-001", "BA"].label == "B"
    assert rows["item-003", "AB"].verdict == "A"
    assert rows["item-002", "AB"].shares == pytest.approx({"w1": 0.9, "w2": 0.9, "w3": 0.9})
    assert "Text 4" in rows["item-004", "AB"].text
    (entry,) = report["where_wrong"]
    assert entry["n_listed"] == 9
    assert entry["n_judged"] == 12
    assert entry["kinds"] == {
        wrong: 3,
        by_wording: 2,
        by_order: 2,
        unreadable: 1,
        near: 2,
        doubted: 0,
    }


def test_a_label_that_nobody_gave_is_still_the_other_one(make) -> None:
    """An imported judge that always takes the first option, and no gold label: each one flips."""
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 2, ["A"] * 12, orders=("AB", "BA"))
    log = make.log(benchmark, lambda prompt: "A")
    at, rows = log.column_names.index("gold"), []
    log = log.set_column(at, "gold", pa.nulls(len(log), pa.string()))
    report = report_of(log, None, run=make.run(benchmark), disagreements=rows)
    assert {row.kinds for row in rows} == {(KINDS[2],)}
    assert report["trust"][0]["checks"]["fair"]["estimate"] == 0.0


def test_a_tie_between_wordings_is_split_and_wrong(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN, make.INVERTED], ["YES", "NO"])
    log = make.log(benchmark, lambda prompt: "YES")
    _, rows = listed_of(make, log, benchmark)
    assert {row.verdict for row in rows.values()} == {SPLIT}
    assert all(row.kinds == KINDS[:2] for row in rows.values())


def test_the_file_the_page_and_the_frame_have_the_same_rows(make, tmp_path) -> None:
    source = tmp_path / "mine.csv"
    lines = ["id,verdict,label,reason,channel,text"]
    for n in range(60):
        bad = n % 3 == 0
        channel = "chat" if bad else ("mail" if n % 2 else "phone")
        text = 'He said "no",\nthen <script>left</script>' if n == 3 else f"Text {n}"
        cell = text.replace('"', '""')
        lines.append(f'{n},{"NO" if bad else "YES"},YES,because {n},{channel},"{cell}"')
    lines.append("60,NO,NO,fine,chat,Text")
    source.write_text("\n".join(lines), "utf-8")
    found = judgesense.check(source, out=tmp_path / "out", note=str)
    report, folder = found.report, found.out
    (entry,) = report.where_wrong
    assert entry["n_listed"] == 20
    (worst,) = [group for group in entry["groups"] if group["by"] == "channel"]
    assert (worst["name"], worst["n"], worst["estimate"], worst["rest"]) == ("chat", 21, 1 / 21, 1)
    assert worst["ci_high"] < 0
    with (folder / "disagreements.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["item_id"] for row in cells] == [str(n) for n in range(0, 60, 3)]
    assert cells[1]["text (item)"].endswith("<script>left</script>")
    assert json.loads(cells[0]["answers"]) == {"as judged": "because 0"}
    assert [row["channel"] for row in read_rows(folder)] == ["chat"] * 20
    frame = report.disagreements()
    assert list(frame["item_id"]) == [row["item_id"] for row in cells]
    assert list(frame["channel"]) == ["chat"] * 20
    assert "<script>left" not in (folder / "report.html").read_text("utf-8")
    assert len(json.dumps(report.to_dict())) < 60_000


def test_a_report_without_its_folder_refuses_and_says_what_to_run(make, tmp_path) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 3)
    log = make.log(benchmark, lambda prompt: "YES")
    report = report_of(log, benchmark.pairs, run={})
    with pytest.raises(ValueError, match="judgesense report"):
        report.disagreements()
    assert "judgesense report DIR" in render_html(report.contents)
    folder = make.folder(tmp_path / "run", benchmark, log)
    assert len(report_runs(folder).disagreements()) == 3


def test_groups_match_a_test_of_two_shares() -> None:
    right = np.repeat([1.0, 0.0, 1.0, 0.0], [70, 10, 20, 20])
    (found,) = compare_groups(right, {"g": np.repeat(["a", "b"], [80, 40]).astype(object)})
    assert found["p_value"] == pytest.approx(fisher_exact([[70, 10], [20, 20]])[1], abs=1e-3)
    assert found["ci_low"] < found["difference"] < found["ci_high"] < 0


WORDS = ["please", "order", "late", "parcel", "thanks", "cancel", "account", "broken", "screen"]


def disputed(world: str, people=("ann", "ben"), ordinal: bool = False, seed: int = 0):
    """Labels of messages by a judge and people who err on 8%; a sixth has the word refund."""
    rng = np.random.default_rng(seed)
    n = 600 if world in ("rounds", "raters") else 300
    has_word = rng.random(n) < 1 / 6
    texts = {}
    for at in range(n):
        texts[f"m{at}"] = " ".join(rng.choice(WORDS, 6)) + (" refund" if has_word[at] else "")
    if world == "unspaced":
        texts = dict.fromkeys(texts, "返金は後で届きます")
    size = 4 if ordinal else 2
    gold = rng.integers(0, size, n)

    def noisy(share):
        return np.where(rng.random(n) < share, (gold + 1) % size, gold)

    hard = np.where(has_word, 0.4, 0.03) if world == "hard" else 0.08
    given = {name: noisy(hard) for name in people}
    last = given[people[-1]]
    rounds = np.where(rng.random(n) < 0.5, "1", "2").astype(object)
    if world in ("policy", "unspaced"):
        given[people[-1]] = np.where(has_word & (rng.random(n) < 0.95), 0, last)
    gold_labels = given[people[0]]
    if world == "rounds":
        gold_labels = np.where(has_word & (rounds == "2"), 0, gold_labels)
        given = {people[0]: gold_labels}
    if world == "raters":
        gold_labels = np.where(has_word & (rounds == "2"), 0, gold_labels)
        given = {
            "ann": np.where(rounds == "1", gold_labels, -1),
            "ben": np.where(rounds == "2", gold_labels, -1),
        }
    if world == "equal":
        given = dict.fromkeys(people, np.zeros(n, dtype=int))
        gold_labels = np.zeros(n, dtype=int)
    labels = ("1", "2", "3", "4") if ordinal else ("fail", "pass")
    own = np.arange(n)
    raters = Raters(own, own, labels, ordinal, "j", {"j": noisy(0.1)}, given, gold_labels)
    groups = {"round": rounds} if world == "rounds" else {"topic": rounds}
    return disputes_of(raters, list(texts), groups, ItemWords.of(texts))


@pytest.mark.parametrize(
    ("world", "ordinal", "between"),
    [
        ("policy", False, ("ann", "ben", None)),
        ("policy", True, ("ann", "ben", None)),
        ("rounds", False, ("j", "2", "round")),
        ("raters", False, ("j", "ben", RATER)),
    ],
)
def test_labels_by_different_policies_are_found_by_their_word(world, ordinal, between) -> None:
    first = disputed(world, ordinal=ordinal)["policies"][0]
    assert (first.one, first.two, first.source) == between
    assert (first.by, first.name) == (WORD, "refund")
    assert first.share > 0.8
    assert first.rest < 0.25
    assert 2 <= len(first.examples) <= 3


@pytest.mark.parametrize("world", ["noise", "hard", "equal", "unspaced"])
@pytest.mark.parametrize("seed", range(5))
def test_noise_hard_items_and_equal_labels_are_no_policy(world, seed) -> None:
    found = disputed(world, seed=seed)
    assert found["policies"] == ()
    assert (found["no_words"] is None) == (world != "unspaced")
    assert disputed(world, people=("ann",), seed=seed)["policies"] == ()


def test_what_the_judge_lets_pass_is_named_by_its_word(make) -> None:
    """Where the judge misses what people know of refunds; the list is exploratory."""
    found = disputed("policy", people=("ann",))["shared"]
    assert [(row.by, row.name, row.label, row.other) for row in found] == [
        (WORD, "refund", "fail", "pass")
    ]


def test_a_label_against_all_others_is_offered_again(tmp_path) -> None:
    """Items 1 and 4: one person against judges and people. Item 7: two people are enough not to."""
    lines = ["id,text,judge,second,human_ann,human_ben"]
    for n in range(40):
        says = "pass" if n % 2 else "fail"
        other = "fail" if n % 2 else "pass"
        ann = other if n in (1, 4, 7) else says
        ben = other if n == 7 else says
        lines.append(f"i{n},The reply number {n} is kind,{says},{says},{ann},{ben}")
    source = tmp_path / "mine.csv"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    check = judgesense.check(
        source,
        verdict=["judge", "second"],
        human=["human_ann", "human_ben"],
        out=tmp_path / "out",
        note=lambda _: None,
    )
    doubted = {row["item_id"] for row in read_rows(check.out) if KINDS[5] in row["kinds"]}
    assert doubted == {"i1", "i4"}
    assert check.report.where_wrong[0]["kinds"][KINDS[5]] == 2
    # Never counted as right: the judge's accuracy is that of people's labels as they are.
    assert check.people[0]["confusion"]["pass"] == {"fail": 1, "pass": 18}
    again, _ = open_labelling(check.out / "second_look.csv", answers=["fail", "pass"])
    assert again.total == 2
    assert set(again.state("cat", 0)["item"]) == {"text"}


def test_two_policies_are_said_first_and_are_the_next_step(tmp_path) -> None:
    """Of messages about refunds, one person passes what another fails."""
    rows = []
    for n in range(200):
        is_refund, good = n % 5 == 0, n % 3 > 0
        says = "pass" if good else "fail"
        text = f"{WORDS[n % 9]} {WORDS[n % 7]} {'refund' if is_refund else 'thanks'}"
        ben = "fail" if is_refund else says
        rows.append({"text": text, "judge": says, "human_ann": says, "human_ben": ben})
    check = judgesense.check(
        rows, human=["human_ann", "human_ben"], out=tmp_path / "out", note=lambda _: None
    )
    (row,) = check.report.where_wrong[0]["policies"]
    assert (row["one"], row["two"], row["name"]) == ("human_ann", "human_ben", "refund")
    assert (row["share"], row["rest"]) == (1.0, 0.0)
    assert check.next[0]["kind"] == "decide_policy"
    assert "Decide the policy first" in render_brief(check.report.contents)


@pytest.mark.parametrize("seed", range(5))
def test_what_goes_with_a_level_of_a_scale_is_no_reason_for_errors(seed) -> None:
    """Items of one kind are all a 4, and the judge errs by a level: 3 is no sign of the kind."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(400) < 0.4, "4", "other").astype(object)
    gold = np.where(kind == "4", 3, rng.integers(0, 3, 400))
    verdict = np.clip(gold + np.where(rng.random(400) < 0.3, rng.choice([-1, 1], 400), 0), 0, 3)
    own = np.arange(400)
    raters = Raters(own, own, tuple("1234"), True, "j", {"j": verdict}, {"ann": gold}, gold)
    names = [str(n) for n in own]
    assert disputes_of(raters, names, {"kind": kind}, ItemWords.none())["shared"] == ()
