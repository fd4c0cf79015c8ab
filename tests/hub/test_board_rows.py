"""The rows of the leaderboard: shared ranks, what is never ranked and why, and what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rule_run import make_run

from hub_scripts.leaderboard.rows import ALONE, Entry, answer, entries, judge_page, ranked_rows
from hub_scripts.leaderboard.runs import EMBEDDED, report_of
from judgesense.run_folder.report import CELL_KEYS

CHANGE = {"remedy": "both orders", "trust": "use", "prompts_per_item": 2, "accuracy": 0.9}


def entry(name, low, high, *, pairs="0a0a0a0a", scoring="options", run="", card=None, **cell):
    values = dict.fromkeys(CELL_KEYS)
    values.update(jss=(low + high) / 2, ci_low=low, ci_high=high, task="coherence")
    values.update(n_pairs=125, n_items=25, n_clusters=25, n_unclear=0, n_refused=0, n_error=0)
    values.update(coverage=1.0, signature="JSS|…")
    values.update(cell)
    task = values["task"]
    return Entry(run or name, name, task, scoring, pairs, "data", values, values, card)


def card(trust="use", because=(), *, beats=0.2, fair="pass", right=0.8, jss=(0.85, 0.95)):
    checks = {
        name: {"state": "pass", "estimate": 0.9, "ci_low": 0.85, "ci_high": 0.95, "applies": True,
               "details": {}}
        for name in ("readable", "steady", "responsive", "right", "fair")
    }  # fmt: skip
    checks["steady"] |= {"estimate": sum(jss) / 2, "ci_low": jss[0], "ci_high": jss[1]}
    for name in because:
        checks[name]["state"] = "fail" if trust == "avoid" else "open"
    checks["fair"]["state"] = fair
    over = None if beats is None else beats + 0.1
    ends = {"beats_constant_ci_low": beats, "beats_constant_ci_high": 0.5}
    checks["right"] |= {"estimate": right, "details": {"beats_constant": over, **ends}}
    return {"trust": trust, "because": list(because), "text": f"{trust}: ...", "checks": checks}


def ranks(*board):
    return {row["judge"]: row["rank"] for row in ranked_rows(board)}


def reasons(*board):
    return {row["judge"]: row["no_rank"] for row in ranked_rows(board)}


@pytest.mark.parametrize(
    ("intervals", "ranked", "last"),
    [
        ({"a": (0.8, 0.95), "b": (0.75, 0.9), "c": (0.5, 0.7)}, [1, 1, 3], [2, 2, 3]),
        # Only judges that lie wholly above count.
        ({"a": (0.8, 0.9), "b": (0.7, 0.85), "c": (0.6, 0.75)}, [1, 1, 2], [2, 3, 3]),
        # Intervals that touch overlap.
        ({"a": (0.8, 0.9), "b": (0.6, 0.8)}, [1, 1], [2, 2]),
    ],
)
def test_a_rank_is_a_range_of_what_the_intervals_allow(intervals, ranked, last):
    rows = ranked_rows(entry(name, *ends) for name, ends in intervals.items())
    assert [row["judge"] for row in rows] == list(intervals)
    assert [row["rank"] for row in rows] == ranked
    assert [row["rank_last"] for row in rows] == last


def test_a_judge_of_two_runs_counts_once_and_not_against_itself():
    twice = [entry("a", 0.9, 0.95, run="one"), entry("a", 0.8, 0.85, run="two")]
    rows = ranked_rows([*twice, entry("b", 0.1, 0.2)])
    assert [(row["judge"], row["run"], row["rank"]) for row in rows] == [
        ("a", "one", 1),
        ("a", "two", 1),
        ("b", "b", 2),
    ]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ({"degenerate": "every decision is 'A'"}, "says nothing about rewording: every"),
        ({"ci_low": None, "ci_high": None}, "no interval"),
        ({"coverage": 0.02}, "fewer than half"),
        ({"jss": None}, "no pair is decided"),
    ],
)
def test_a_figure_that_tells_nothing_is_never_ranked_and_says_why(cell, why):
    board = [entry("bad", 0.99, 1.0, **cell), entry("good", 0.5, 0.6), entry("fair", 0.5, 0.6)]
    assert ranks(*board) == {"fair": 1, "good": 1, "bad": None}
    assert reasons(*board)["bad"].startswith(why)


def test_judges_of_other_pairs_scorings_or_tasks_are_not_ranked_together():
    apart = (
        entry("a", 0.9, 1.0),
        entry("b", 0.1, 0.2, pairs="0b0b0b0b"),
        entry("c", 0.1, 0.2, scoring="generate"),
        entry("d", 0.1, 0.2, task="relevance"),
    )
    assert set(reasons(*apart).values()) == {ALONE}
    assert set(ranks(*apart, entry("e", 0.4, 0.5)).values()) == {1, 2, None}


def test_a_judge_to_avoid_is_ranked_only_if_its_one_fault_is_its_steadiness():
    first = entry("first", 0.97, 1.0, card=card("avoid", ["fair", "right"]))
    shaky = entry("shaky", 0.3, 0.5, card=card("avoid", ["steady"], jss=(0.3, 0.5)))
    good = entry("good", 0.8, 0.9)
    assert ranks(first, shaky, good) == {"good": 1, "shaky": 2, "first": None}
    assert "agrees too little with people" in reasons(first, shaky, good)["first"]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"beats": -0.01}, "more right than a constant"),
        ({"beats": None, "right": None}, "no gold labels"),
        ({"fair": "open"}, "same in both orders"),
        ({"fair": "unmeasured"}, "same in both orders"),
        ({"trust": "unknown", "because": ["steady"], "jss": (0.7, 1)}, "steadiness uncertain"),
    ],
)
def test_no_rank_without_beating_the_constant_answer_fair_order_and_a_settled_jss(facts, why):
    judge = entry("judge", 0.97, 1.0, card=card(**{"trust": "care", "because": ["right"], **facts}))
    others = [entry(name, 0.8, 0.9, card=card()) for name in ("one", "two")]
    assert ranks(judge, *others) == {"one": 1, "two": 1, "judge": None}
    assert why in reasons(judge, *others)["judge"]


def test_a_task_whose_best_judge_is_hardly_better_than_a_constant_ranks_nobody():
    able = card(right=0.15)
    able["checks"]["right"] |= {"ci_low": 0.03, "ci_high": 0.27}
    weak = [entry(name, 0.8, 0.9, card=able) for name in ("one", "two")]
    assert ranks(*weak) == {"one": None, "two": None}
    assert "not shown to tell judges apart" in reasons(*weak)["one"]
    # Better judges of the same pairs, read otherwise, show that the task can be done.
    good = [entry(name, 0.8, 0.9, scoring="generate", card=card()) for name in ("three", "four")]
    assert set(ranks(*weak, *good).values()) == {1}
    elsewhere = [replace(each, pairs="0b0b0b0b") for each in good]
    assert ranks(*weak, *elsewhere)["one"] is None


def test_without_a_rank_the_more_usable_judge_comes_first():
    constant = entry("constant", 0.97, 1.0, card=card("avoid", ["right"], beats=0.3))
    able = entry("able", 0.7, 0.9, card=card("unknown", ["steady"], jss=(0.7, 0.9)))
    cured = replace(entry("cured", 0.5, 0.7, card=card("avoid", ["fair"])), change=CHANGE)
    assert [row["judge"] for row in ranked_rows([constant, able, cured])] == [
        "able",
        "cured",
        "constant",
    ]


def test_the_figure_and_its_interval_are_those_of_the_trust_card():
    judge = entry("judge", 0.9, 1.0, card=card("unknown", ["steady"], jss=(0.7, 0.98)))
    (row,) = ranked_rows([judge])
    assert (row["jss"], row["ci_low"], row["ci_high"]) == (0.84, 0.7, 0.98)
    assert row["raw_jss"] == 0.95


def test_baselines_stand_last_in_every_group_of_their_pairs_and_once():
    board = [
        entry("oracle", 1.0, 1.0, scoring="-", run="a"),
        entry("oracle", 1.0, 1.0, scoring="-", run="b"),
        entry("a", 0.8, 0.9),
        entry("b", 0.8, 0.9, scoring="generate"),
    ]
    rows = ranked_rows(board)
    assert [(row["judge"], row["scoring"], row["page"] is None) for row in rows] == [
        ("b", "generate", False),
        ("oracle", "generate", True),
        ("a", "options", False),
        ("oracle", "options", True),
    ]


def test_the_first_line_says_which_judges_can_be_used():
    judges = [
        entry("plain", 0.9, 1.0, card=card()),
        replace(entry("curable", 0.9, 1.0, card=card("avoid", ["fair"])), change=CHANGE),
        entry("curable", 0.9, 1.0, scoring="generate", card=card("avoid", ["right"])),
        *(entry(f"bad-{n}", 0.9, 1.0, card=card("avoid", ["right"])) for n in range(2)),
    ]
    assert answer(ranked_rows(judges)) == [
        ("Use", ["plain"]),
        ("Use after a change", ["curable (both orders)"]),
        ("Avoid", ["bad-0", "bad-1"]),
    ]
    assert answer(ranked_rows([entry("bare", 0.9, 1.0)])) == []


def test_two_judges_never_share_a_page():
    names = ["a/b", "a b", "..", "n" * 10_000, '"><script>', "a/b@1", "a/b@2"]
    pages = {judge_page("run", name) for name in names} | {judge_page("other", "a/b")}
    assert len(pages) == len(names) + 1
    assert all(page.isascii() and len(page) < 100 and ".." not in page for page in pages)


PACKAGED = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


@pytest.mark.parametrize(
    ("judge", "describe", "weights", "model"),
    [
        ("mine@1", {"engine": "transformers", "origin": "Hub org/model"}, "open", "org/model"),
        ("mine@1", {"engine": "vllm", "origin": "Hub ../../x?y"}, "open", None),
        ("mine@1", {"engine": "api", "endpoint": "https://x"}, "api", None),
        ("mine@1", {"engine": "callable"}, None, None),
        ("mine@1", None, None, None),
        ("smollm2-135m@1", {"engine": "transformers", "origin": "package x"}, "open",
         "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("qwen2.5-coder-1.5b@1", {"engine": "vllm", "weights": PACKAGED}, "open",
         "Qwen/Qwen2.5-Coder-1.5B-Instruct"),
    ],
)  # fmt: skip
def test_weights_and_model_are_what_the_record_says(judge, describe, weights, model, tmp_path):
    record = {"judges": [{"name": judge, "describe": describe}], "started": "soon"}
    report = report_of(make_run(tmp_path, judge, record))
    (found,) = (each for each in entries(report, "run") if not each.is_baseline)
    assert (found.weights, found.model, found.data) == (weights, model, "own pairs")


@pytest.mark.parametrize(
    ("record", "data"),
    [
        ({"dataset": {"name": "org/pairs", "version": "2.0"}}, "org/pairs 2.0"),
        ({"dataset": {"name": ["odd"]}}, "['odd']"),
        ({"imported": {"format": "table"}}, "imported log"),
    ],
)
def test_the_data_is_what_the_record_says(record, data, tmp_path):
    report = report_of(make_run(tmp_path, record=record))
    assert {each.data for each in entries(report, "run")} == {data}


def test_the_embedded_runs_are_two_judges_on_the_same_pairs():
    board = [
        each
        for folder in sorted(EMBEDDED.iterdir())
        for each in entries(report_of(folder), folder.name)
    ]
    rows = {
        row["judge"].partition("@")[0]: row
        for row in ranked_rows(board)
        if row["task"] == "relevance" and row["page"]
    }
    assert list(rows) == ["qwen2.5-coder-1.5b", "smollm2-135m"]
    qwen, smollm = rows.values()
    assert qwen["pairs"] == smollm["pairs"] == "6d6785af"
    assert {(row["trust"], row["weights"], row["rank"]) for row in rows.values()} == {
        ("avoid", "open", None)
    }
    assert (qwen["model"], qwen["change"]["trust"], qwen["change"]["prompts_per_item"]) == (
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "use",
        4,
    )
    assert qwen["jss"] == pytest.approx(0.868)
    assert qwen["position_consistency"] == pytest.approx(0.132)
    assert smollm["accuracy"] == pytest.approx(0.49, abs=0.005)


@pytest.mark.parametrize(
    ("kappas", "why"),
    [
        ([(0.5, 0.3, 0.7), (0.0, -0.2, 0.2)], None),
        # The best is the one that is surest, not the one with the highest estimate.
        ([(0.5, 0.05, 0.9), (0.4, 0.2, 0.6)], None),
        ([(0.2, 0.05, 0.35), (0.0, -0.1, 0.05)], "add items"),
        ([(0.02, -0.05, 0.09), (0.0, 0.0, 0.0)], "non-discriminating"),
        ([(0.6, None, None), (0.5, None, None)], "add items"),
    ],
)
def test_a_task_that_no_judge_can_do_ranks_nobody(kappas, why) -> None:
    found = []
    for name, (kappa, low, high) in zip("ab", kappas, strict=True):
        own = card()
        own["checks"]["right"] |= {"estimate": kappa, "ci_low": low, "ci_high": high}
        found.append(entry(name, 0.85, 0.95, card=own))
    rows = ranked_rows(found)
    assert all((row["rank"] is None) == (why is not None) for row in rows)
    assert why is None or all(why in str(row) for row in rows)


def test_judges_of_the_same_items_are_ranked_by_paired_tests():
    rng = np.random.default_rng(0)
    item, board = rng.beta(4, 1, 400), []
    for name, worse in (("a", 0.0), ("b", 0.0), ("c", 0.1)):
        same = rng.binomial(3, np.clip(item - worse, 0, 1)).tolist()
        counts = {str(at): (each, 3) for at, each in enumerate(same)}
        board.append(replace(entry(name, 0.6, 0.9), by_cluster=counts))
    assert ranks(*board) == {"a": 1, "b": 1, "c": 3}
    # Without decisions only intervals tell.
    board[2] = replace(board[2], by_cluster=None)
    assert ranks(*board) == {"a": 1, "b": 1, "c": 1}
