"""The pairs layout, and how stray answers are kept out of the labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgesense.answers import parse
from judgesense.decisions.log import read_log
from judgesense.decisions.view import view
from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log

JUDGES = ("gpt-4o", "gpt-4o-mini", "claude-sonnet", "claude-haiku", "gemini-flash", "llama-8b")


def pair(pair_id: str, item: str, a: str, b: str, **more: Any) -> dict[str, Any]:
    return {
        "pair_id": pair_id, "item_id": item, "prompt_pair_id": f"{item}#T1-T2",
        "task_type": "preference", "model": "m", "ab_order": "original",
        "ground_truth_label": "candidate_2", "ground_truth_position": "B",
        "prompt_a_raw": a, "decision_a": a, "prompt_b_raw": b, "decision_b": b,
        "budget_policy": "native", "error": None,
        "usage_a": {"input_tokens": 9, "output_tokens": 4, "latency_ms": 636}, **more,
    }  # fmt: skip


def rows_of(tmp_path: Path, *pairs: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    source = tmp_path / "m_preference.jsonl"
    source.write_text("\n".join(map(json.dumps, pairs)), "utf-8")
    import_log(source, "pairs", tmp_path / "out", parse=parse, **more)
    return read_log(tmp_path / "out").to_pylist()


def told(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_row_of_pairs_is_two_decisions_and_its_repeats(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        pair("p1_original", "q1", "B", "A", decision_a_repeat="A", prompt_a_repeat_raw="A"),
        pair("p1_swapped", "q1", "A", "A", ab_order="swapped", ground_truth_position="A"),
    )
    assert told(rows, "template_id", "order", "repeat", "decision", "gold") == [
        ("T1", "AB", 0, "B", "B"), ("T2", "AB", 0, "A", "B"), ("T1", "AB", 1, "A", "B"),
        ("T1", "BA", 0, "A", "A"), ("T2", "BA", 0, "A", "A"),
    ]  # fmt: skip
    assert told(rows[:1], "judge", "task", "item_id", "input_tokens", "latency_s") == [
        ("m", "preference", "q1", 9, 0.636)
    ]
    (stream,) = view(read_log(tmp_path / "out")).judged
    assert stream.agreement("mapped").jss == 0.5
    assert stream.reruns is not None
    assert stream.log.raw[stream.reruns[0]] != stream.log.raw[stream.reruns[1]]


def test_an_arm_that_failed_or_was_unclear_is_told_apart(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        pair("p1", "q1", "B", "A", prompt_a_raw="ERROR: rate limit", decision_a="UNCLEAR",
             error=" rate limit"),
        pair("p2", "q2", "UNCLEAR", "B", prompt_a_raw="Response B is better."),
        pair("p3", "q3", "UNCLEAR", "B", prompt_a_raw="Hm."),
        pair("p4", "q4", "C", "B"),
    )  # fmt: skip
    assert told(rows, "decision", "status")[::2] == [
        ("ERROR", "error"), ("B", "ok"), ("UNCLEAR", "unclear"), ("UNCLEAR", "unclear"),
    ]  # fmt: skip
    assert told(rows[:2], "error") == [("rate limit",), (None,)]


def test_a_csv_of_pairs_names_its_templates_in_columns(tmp_path: Path) -> None:
    source = tmp_path / "pairs.csv"
    source.write_text(
        "pair_id,item_id,task_type,model,template_a,template_b,decision_a,decision_b\n"
        "p1,1,tone,m,plain,polite,kind,rude\np2,2,tone,m,plain,polite,rude,rude\n"
    )
    import_log(source, "pairs", tmp_path / "out")
    rows = read_log(tmp_path / "out").to_pylist()
    assert told(rows, "item_id", "template_id", "decision") == [
        ("1", "plain", "kind"), ("1", "polite", "rude"), ("2", "plain", "rude"),
        ("2", "polite", "rude"),
    ]  # fmt: skip


def test_a_retried_pair_replaces_the_first_and_a_shared_wording_is_a_repeat(
    tmp_path: Path,
) -> None:
    rows = rows_of(
        tmp_path,
        pair("p1", "q1", "A", "A", error="timeout"),
        pair("p1", "q1", "B", "B"),
        pair("p2", "q1", "A", "B", prompt_pair_id="q1#T1-T3"),
    )
    assert told(rows, "template_id", "repeat", "decision") == [
        ("T1", 0, "B"), ("T2", 0, "B"), ("T1", 1, "A"), ("T3", 0, "B"),
    ]  # fmt: skip


def test_the_published_gold_labels_are_read(tmp_path: Path) -> None:
    known = {"task_type": "factuality", "ab_order": None, "ground_truth_position": None}
    rows = rows_of(
        tmp_path,
        pair("p1", "q1", "YES", "NO", ground_truth_label="accurate", **known),
        pair("p2", "q2", "NO", "NO", ground_truth_label="inaccurate", **known),
        pair("p3", "q3", "4", "5", **known | {"task_type": "coherence"},
             ground_truth_label="score_2"),
    )  # fmt: skip
    assert told(rows, "task", "gold", "order")[::2] == [
        ("factuality", "YES", "-"), ("factuality", "NO", "-"), ("coherence", "2", "-"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"decision_b": None, "prompt_b_raw": None}, "line 1: neither decision_b nor prompt_b_raw"),
        ({"ab_order": "reversed"}, "line 1, ab_order: .*'reversed'"),
        ({"prompt_pair_id": "q1"}, "line 1, prompt_pair_id: 'q1'.*template_a"),
        ({"decision_a": ["A"]}, r"line 1, decision: .*wording a: .*\['A'\]"),
        ({"item_id": None}, "line 1, item_id: .*missing"),
        ({"ground_truth_position": "C"}, "line 1, gold: 'C' is not one of the labels A, B"),
    ],
)
def test_a_pair_of_another_shape_is_named(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        rows_of(tmp_path, pair("p1", "q1", "A", "B") | change)


def answers(tmp_path: Path, *said: str, gold: str = "") -> dict[str, Any]:
    lines = [f"m,t,{n},a,{answer},{gold}" for n, answer in enumerate(said)]
    source = tmp_path / "log.csv"
    source.write_text("\n".join(["judge,task,item_id,template_id,raw_decision,gold", *lines]))
    return import_log(source, "table", tmp_path / "out")


@pytest.mark.parametrize(
    ("said", "labels", "stray"),
    [
        (["YES", "NO", "YES", "maybe"], ["YES", "NO"], "maybe"),
        (["1", "5", "4", "N/A"], ["1", "2", "3", "4", "5"], "N/A"),
        (["A", "B", "A", "tie then"], ["A", "B"], "tie then"),
        (["good"] * 60 + ["bad"] * 60 + ["god"], ["good", "bad"], "god"),
        (["YES", "NO", "7"], ["YES", "NO"], "7"),
    ],
)
def test_a_stray_answer_is_unclear_and_no_label(
    said: list[str], labels: list[str], stray: str, tmp_path: Path
) -> None:
    record = answers(tmp_path, *said)
    assert record["tasks"]["t"]["labels"] == labels
    assert record["not_labels"]["t"] == {stray: 1}


def test_a_rating_outside_the_scale_of_gold_is_a_label_only_if_it_is_frequent(
    tmp_path: Path,
) -> None:
    (tmp_path / "rare").mkdir()
    (tmp_path / "often").mkdir()
    rare = answers(tmp_path / "rare", *["3"] * 60, *["4"] * 60, "70", gold="3")
    assert rare["tasks"]["t"]["labels"] == ["3", "4"]
    often = answers(tmp_path / "often", *["3"] * 9, "4", gold="3")
    assert often["tasks"]["t"]["labels"] == ["3", "4"]


def test_letters_of_several_options_are_all_labels(tmp_path: Path) -> None:
    assert answers(tmp_path, *"ABCDABCA")["tasks"]["t"]["labels"] == ["A", "B", "C", "D"]
