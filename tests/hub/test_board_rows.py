"""The rows of the leaderboard: shared ranks, what is never ranked and why, and what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hub_scripts.leaderboard.records import Tables
from hub_scripts.leaderboard.rows import (
    ALONE,
    entries,
    figure_rows,
    ranked_rows,
    recommendations,
    row_of,
    sorted_rows,
)
from hub_scripts.leaderboard.runs import EMBEDDED, gold_tables, report_of
from judgesense.measure.assessment import Assessment, Cell
from judgesense.measure.card import CHECKS, Check, TrustCard


def answers(right, n=100, *, first=0, answered=1.0, ordinal=False):
    """Tables of n items, one prompt each, of which a judge answers the last ``right`` rightly."""
    tables = {}
    for at in range(first, first + n):
        table = np.zeros((2, 3))
        table[at % 2, at % 2 if at >= first + n - right else 1 - at % 2] = 1
        tables[str(at)] = table
    return Tables(tables, ordinal, answered)


def entry(
    name, low, high, *, pairs="0a0a0a0a", scoring="options", run="", card=None, gold=None, **more
):
    """A row with its JSS, and its judge's answers beside the gold labels."""
    cell = Cell("-", "mapped", (low + high) / 2, low, high, n_pairs=125, n_items=25)
    assessment = Assessment(
        run or name, name, more.get("task", "coherence"), scoring, (cell,), card or trusted()
    )
    return replace(row_of(assessment, run or name, "data", gold), pairs=pairs), gold


def judge(name, right, **more):
    """A judge of 100 items, ``right`` of them rightly judged."""
    card = trusted(right=right / 50 - 1)
    return entry(name, 0.8, 0.9, card=card, gold=answers(right), **more)


def trusted(right=0.8):
    checks = dict.fromkeys(CHECKS, Check("pass", 0.9, 0.85, 0.95, 0.8, 100, "passes"))
    beats = {"beats_constant": 0.3, "beats_constant_ci_low": 0.2, "beats_constant_ci_high": 0.5}
    checks["right"] = replace(checks["right"], estimate=right, details=beats)
    return TrustCard("use", (), "use: ...", checks)


def ranks(*board):
    return {row.judge: row.rank for row in ranked_rows(board)}


def reasons(*board):
    return {row.judge: row.no_rank for row in ranked_rows(board)}


def test_a_rank_is_a_range_of_what_paired_tests_on_the_shared_items_allow():
    rows = ranked_rows([judge("a", 90), judge("b", 88), judge("c", 50)])
    assert [(row.judge, row.rank, row.rank_last) for row in rows] == [
        ("a", 1, 2),
        ("b", 1, 2),
        ("c", 3, 3),
    ]
    # An item that one judge did not see tells nothing of the others.
    elsewhere = (judge("d", 99)[0], answers(99, first=1000))
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
    assert [(row.judge, row.run, row.rank) for row in rows] == [
        ("a", "one", 1),
        ("a", "two", 1),
        ("b", "b", 2),
    ]


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
    assert len({row.judge for row in quoted}) == 25
    assert {(row.rank, row.trust, row.kind) for row in quoted} == {(None, None, "published figure")}
    rows = sorted_rows([*quoted, *ranked_rows([judge("a", 90), judge("b", 50)])])
    assert [row.judge for row in rows[:2]] == ["a", "b"]
    told = recommendations([row for row in rows if row.task == "coherence"])
    assert [(one.name, one.beaten, one.alike) for one in told] == [("a", 1, 0)]
    (only,) = recommendations([row for row in rows if row.task == "factuality"])
    assert only.leader.kind == "published figure"


def test_the_embedded_runs_are_two_judges_on_the_same_pairs():
    board = [
        each
        for folder in sorted(EMBEDDED.iterdir())
        for each in entries(report_of(folder), folder.name, gold_tables(folder), True)
    ]
    rows = {
        row.judge.partition("@")[0]: row for row in ranked_rows(board) if row.task == "relevance"
    }
    assert list(rows) == ["qwen2.5-coder-1.5b", "smollm2-135m"]
    qwen, smollm = rows.values()
    assert qwen.pairs == smollm.pairs == "6d6785af"
    assert {(row.trust, row.weights, row.rank) for row in rows.values()} == {
        ("avoid", "open", rank) for rank in (1, 2)
    }
    assert (qwen.model, qwen.change.trust, qwen.change.prompts_per_item) == (
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "use",
        4,
    )
    assert qwen.jss == pytest.approx(0.868)
    assert qwen.position_consistency == pytest.approx(0.132)
    assert smollm.accuracy == pytest.approx(0.49, abs=0.005)
