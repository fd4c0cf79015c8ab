"""The rows of the leaderboard: shared ranks, what is never ranked and why, and what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rule_run import make_run

from hub_scripts.leaderboard.rows import (
    ALONE,
    Entry,
    Tables,
    answer,
    entries,
    figure_rows,
    in_order,
    judge_page,
    ranked_rows,
)
from hub_scripts.leaderboard.runs import EMBEDDED, gold_tables, report_of
from judgesense.run_folder.report import CELL_KEYS

CHANGE = {"remedy": "both orders", "trust": "use", "prompts_per_item": 2, "accuracy": 0.9,
          "gain": 0.1, "jss": 0.9, "jss_before": 0.8}  # fmt: skip


def answers(right, n=100, *, first=0, answered=1.0, ordinal=False):
    """Tables of n items, one prompt each, of which a judge answers the last ``right`` rightly."""
    tables = {}
    for at in range(first, first + n):
        table = np.zeros((2, 3))
        table[at % 2, at % 2 if at >= first + n - right else 1 - at % 2] = 1
        tables[str(at)] = table
    return Tables(tables, ordinal, answered)


def entry(
    name, low, high, *, pairs="0a0a0a0a", scoring="options", run="", card=None, gold=None, **cell
):
    values = dict.fromkeys(CELL_KEYS)
    values.update(jss=(low + high) / 2, ci_low=low, ci_high=high, task="coherence")
    values.update(n_pairs=125, n_items=25, n_clusters=25, n_unclear=0, n_refused=0, n_error=0)
    values.update(coverage=1.0, signature="JSS|…")
    values.update(cell)
    task = values["task"]
    return Entry(
        run or name, name, task, scoring, pairs, "data", values, values, card, gold=gold
    )  # fmt: skip


def judge(name, right, **more):
    """A judge of 100 items, ``right`` of them rightly judged."""
    own = card(right=right / 50 - 1)
    return entry(name, 0.8, 0.9, card=own, gold=answers(right), **more)


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


def test_a_rank_is_a_range_of_what_paired_tests_on_the_shared_items_allow():
    rows = ranked_rows([judge("a", 90), judge("b", 88), judge("c", 50)])
    assert [(row["judge"], row["rank"], row["rank_last"]) for row in rows] == [
        ("a", 1, 2), ("b", 1, 2), ("c", 3, 3),
    ]  # fmt: skip
    # An item that one judge did not see tells nothing of the others.
    elsewhere = replace(judge("d", 99), gold=answers(99, first=1000))
    assert set(ranks(judge("a", 90), judge("c", 50), elsewhere).values()) == {1}


def test_ranks_follow_kappa_and_not_how_often_the_commonest_label_is_right():
    always, able = answers(0), answers(0)
    for at in range(100):
        gold = int(at < 10)
        for tables, said in ((always, 0), (able, gold if at % 5 else 1 - gold)):
            tables.by_cluster[str(at)][:] = 0
            tables.by_cluster[str(at)][gold, said] = 1
    board = [entry("always", 0.9, 1.0, gold=always), entry("able", 0.9, 1.0, gold=able)]
    assert ranks(*board) == {"able": 1, "always": 2}


def test_a_judge_of_two_runs_counts_once_and_not_against_itself():
    rows = ranked_rows([judge("a", 95, run="one"), judge("a", 90, run="two"), judge("b", 50)])
    assert [(row["judge"], row["run"], row["rank"]) for row in rows] == [
        ("a", "one", 1),
        ("a", "two", 1),
        ("b", "b", 2),
    ]


def test_who_cannot_be_ranked_is_told_why():
    few = replace(judge("few", 90), gold=answers(90, answered=0.4))
    board = [few, entry("bare", 0.9, 1.0), judge("a", 90), judge("b", 50)]
    assert ranks(*board) == {"a": 1, "b": 2, "few": None, "bare": None}
    assert reasons(*board)["few"] == "answered only 40% of its prompts"
    assert reasons(*board)["bare"] == "no gold labels"


def test_judges_of_other_pairs_scorings_or_tasks_are_not_ranked_together():
    apart = (
        judge("a", 90),
        judge("b", 50, pairs="0b0b0b0b"),
        judge("c", 50, scoring="generate"),
        judge("d", 50, task="relevance"),
    )
    assert set(reasons(*apart).values()) == {ALONE}
    assert set(ranks(*apart, judge("e", 50)).values()) == {1, 2, None}


def test_published_figures_are_quoted_unranked_and_last():
    quoted = list(figure_rows())
    assert len({row["judge"] for row in quoted}) == 25
    assert {(row["rank"], row["trust"], row["kind"]) for row in quoted} == {
        (None, None, "published figure")
    }
    rows = in_order([*quoted, *ranked_rows([judge("a", 90), judge("b", 50)])])
    assert [row["judge"] for row in rows[:2]] == ["a", "b"]
    told = answer([row for row in rows if row["task"] == "coherence"])
    assert [(one["name"], one["beaten"], one["alike"]) for one in told] == [("a", 1, 0)]
    (only,) = answer([row for row in rows if row["task"] == "factuality"])
    assert only["leader"]["kind"] == "published figure"


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
    (found,) = entries(report, "run")
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
        for each in entries(report_of(folder), folder.name, gold_tables(folder))
    ]
    rows = {
        row["judge"].partition("@")[0]: row
        for row in ranked_rows(board)
        if row["task"] == "relevance"
    }
    assert list(rows) == ["qwen2.5-coder-1.5b", "smollm2-135m"]
    qwen, smollm = rows.values()
    assert qwen["pairs"] == smollm["pairs"] == "6d6785af"
    assert {(row["trust"], row["weights"], row["rank"]) for row in rows.values()} == {
        ("avoid", "open", rank) for rank in (1, 2)
    }
    assert (qwen["model"], qwen["change"]["trust"], qwen["change"]["prompts_per_item"]) == (
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "use",
        4,
    )
    assert qwen["jss"] == pytest.approx(0.868)
    assert qwen["position_consistency"] == pytest.approx(0.132)
    assert smollm["accuracy"] == pytest.approx(0.49, abs=0.005)
