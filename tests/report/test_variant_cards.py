"""The cards of four judges by rule when every variant is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reports import report_of

import judgesense
from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import SCORES_IN_FORM, read_log
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.settings import Settings
from judgesense.reporting.sentences import sentence_effects
from judgesense.reporting.side_tables import side_tables
from local_judges.callable_judge import CallableJudge
from local_judges.runner import run_judge

Row = dict[str, Any]
Rule = Callable[[Row], str]
TASKS = ("factuality", "coherence", "relevance")


@cache
def benchmark() -> Benchmark:
    settings = Settings.of("generate", tasks=TASKS, limit=36)
    return data_reference(None, None, None, ["all"]).selected(settings)


@cache
def base_gold() -> dict[tuple[str, str], str]:
    """The gold label of each item and order."""
    rows = benchmark().prompts.to_pylist()
    return {(r["item_id"], r["order"]): r["gold"] for r in rows if r["variant"] is None}


def options(row: Row) -> tuple[str, str]:
    """The two options of a relevance prompt, as shown."""
    names = r"(?:A|1|I)", r"(?:B|2|II)"
    parts = re.split(
        rf"(?m)^(?:- )?{names[0]}\W+|^(?:- )?{names[1]}\W+|;\s+(?:- )?B\W+", row["text"]
    )
    return parts[-2], parts[-1]


def said(row: Row, label: str) -> str:
    """The raw answer that means a label."""
    return next(r for r, means in json.loads(row["label_map"]).items() if means == label)


def is_right(row: Row) -> str:
    """Follows every question; beyond the gold labels, it knows what each criterion asks for."""
    if row["gold"] is not None:
        return said(row, row["gold"])
    text, (low, high) = row["text"], {"factuality": ("NO", "YES")}.get(row["task"], ("1", "5"))
    if "more words" in text:
        return max(zip(options(row), "AB", strict=True), key=lambda one: len(one[0].split()))[1]
    if "length of this" in text:
        return "2"
    return low if "published source" in text or "professional editor" in text else high


def ignores_the_criterion(row: Row) -> str:
    """Knows what is right about the item, and answers whatever the question is."""
    if row["variant"] == "opposite-item":
        return said(row, row["gold"])
    gold, labels = base_gold()[row["item_id"], row["order"]], json.loads(row["label_map"])
    return gold if gold in labels else said(row, gold)


def reads_only_length(row: Row) -> str:
    if row["task"] == "relevance":
        first, second = options(row)
        place = 0 if len(first) >= len(second) else 1
        return sorted(json.loads(row["label_map"]))[place]
    shown = row["text"].rpartition(": ")[2]
    if row["task"] == "coherence":
        return str(1 + min(4, len(shown) // 100))
    return "YES" if len(shown) > 80 else "NO"


def always_the_first(row: Row) -> str:
    return sorted(json.loads(row["label_map"]), key=lambda raw: (raw == "NO", raw))[0]


@cache
def report(rule: Rule, folder: Path) -> dict[str, Any]:
    known = {row["text"]: row for row in benchmark().prompts.to_pylist()}
    for row in benchmark().prompts.to_pylist():
        if row["variant"] != "opposite-item":
            known[row["text"]] = row  # An opposite item is another item's base prompt.
    judge = CallableJudge(lambda texts: [rule(known[text]) for text in texts], name=rule.__name__)
    run_judge(judge, benchmark(), folder, ["generate"])
    tasks = {
        name: {"labels": [*t.labels], "ordinal": t.ordinal, "comparative": t.comparative}
        for name, t in benchmark().tasks.items()
    }
    return report_of(read_log(folder), benchmark().pairs, run={"run_id": "r", "tasks": tasks})


def states(rule: Rule, folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    cards = report(rule, folder)["trust"]
    return {
        card["task"]: (card["trust"], {name: c["state"] for name, c in card["checks"].items()})
        for card in cards
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("variants")


def test_a_judge_that_is_right_can_be_used(place: Path) -> None:
    for task, (trust, checks) in states(is_right, place / "right").items():
        # With few items nothing can be shown to be readable for sure.
        wanted = "use" if checks.pop("readable") == "pass" else "care"
        assert (task, trust) == (task, wanted)
        if task != "relevance":
            assert checks.pop("fair") == "unmeasured"
        assert checks.pop("resistant") == checks.pop("notices") == "unmeasured"
        assert set(checks.values()) == {"pass"}


def test_a_judge_that_ignores_the_criterion_is_to_be_avoided_for_that_alone(place: Path) -> None:
    for task, (trust, checks) in states(ignores_the_criterion, place / "ignores").items():
        assert (task, trust, checks["responsive"]) == (task, "avoid", "fail")
        assert [name for name, state in checks.items() if state == "fail"] == ["responsive"]


@pytest.mark.slow
def test_a_judge_that_reads_length_or_nothing_is_to_be_avoided(place: Path) -> None:
    length = states(reads_only_length, place / "length")
    assert {trust for trust, _ in length.values()} == {"avoid"}
    assert length["relevance"][1]["fair"] == "pass"
    assert {checks["responsive"] for _, checks in length.values()} == {"fail"}
    first = states(always_the_first, place / "first")
    assert {trust for trust, _ in first.values()} == {"avoid"}
    assert first["relevance"][1]["fair"] == "fail"
    assert {checks["responsive"] for _, checks in first.values()} == {"fail"}


def test_the_rows_of_the_variants_tell_the_four_judges_apart(place: Path) -> None:
    def rows(rule: Rule, name: str) -> dict[tuple[str, Any], dict[str, Any]]:
        found = report(rule, place / name)["variants"]
        return {(row["task"], row["variant"]): row for row in found}

    right, ignores = rows(is_right, "right"), rows(ignores_the_criterion, "ignores")
    first, length = rows(always_the_first, "first"), rows(reads_only_length, "length")
    for task in TASKS:
        assert right[task, "inverted"]["follows"] == right[task, "opposite-item"]["follows"] == 1
        assert ignores[task, "inverted"]["follows"] == 0
        assert ignores[task, "opposite-item"]["follows"] == 1
        assert first[task, "opposite-item"]["follows"] == 0
        assert right[task, None]["jss"] == right[task, "json"]["jss"] == 1
        assert right[task, "few-shot"]["shift_rate"] == 0
        assert right[task, "few-shot"]["jss"] is right[task, "json"]["shift_rate"] is None
        assert {row["unreadable"] for row in right.values()} == {0}
        questions = {
            name
            for (of, name), row in right.items()
            if of == task and row["variant_class"] == "contrast" and name != "opposite-item"
        }
        assert len(questions) == (2 if task == "relevance" else 4)
        for name in questions:
            assert right[task, name]["follows"] > 0
            assert ignores[task, name]["follows"] == first[task, name]["follows"] == 0
    moved = length["relevance", "longer"]
    assert moved["shift_rate"] > 0
    assert moved["net_shift"]["B"] == pytest.approx(moved["shift_rate"])
    assert moved["net_shift"]["A"] == pytest.approx(-moved["shift_rate"])
    assert length["coherence", "longer"]["score_shift"] > 0
    shown = report(reads_only_length, place / "length")
    (table,) = (
        t
        for t in side_tables(shown.contents)
        if t.heading == "Variants compared with the base wording"
    )
    assert len(table.rows) == len(shown["variants"])


def test_json_is_equivalent_where_options_are_scored_inside_the_object_alone(place: Path) -> None:
    """Elsewhere the label is scored where the object would begin, which says nothing of JSON."""
    plain = report(is_right, place / "right")
    log = read_log(place / "right")
    scored = pa.array(["options"] * len(log), pa.string())
    log = log.set_column(log.column_names.index("scoring"), "scoring", scored)
    found = report_of(log, benchmark().pairs, run={"run_id": "r", "tasks": {}})
    inside = {"name": plain["cells"][0]["judge"], "describe": {SCORES_IN_FORM: True}}
    run = {"run_id": "r", "tasks": {}, "judges": [inside]}
    again = report_of(log, benchmark().pairs, run=run)
    rows = {(row["task"], row["variant"]): row for row in found["variants"]}
    for task in TASKS:
        json_row = rows[task, "json"]
        assert (json_row["variant_class"], json_row["shift_rate"]) == ("intervention", 0)
        assert json_row["jss"] is None
        counts = [
            next(c for c in made["cells"] if (c["judge"], c["task"]) == (json_row["judge"], task))
            for made in (plain, found)
        ]
        items = len(set(log.filter(pc.field("task") == task)["item_id"].to_pylist()))
        assert counts[0]["order"] == counts[1]["order"]
        assert counts[0]["n_pairs"] - counts[1]["n_pairs"] == items
        (row,) = [r for r in again["variants"] if (r["task"], r["variant"]) == (task, "json")]
        assert (row["variant_class"], row["jss"]) == ("equivalent", 1)
        assert counts[1]["coverage"] == 1


STRICT = (
    "Judge the reply strictly. Fail every message whose number ends in 5. Be fair.\n"
    "Answer PASS or FAIL.\n\nMessage: {message}"
)


def test_each_sentence_of_a_rubric_is_left_out_in_turn(tmp_path) -> None:
    """One sentence of three moves verdicts, away from people's labels."""
    rows = [
        {"message": f"Message {k} on an order.", "gold": "PASS" if k % 3 else "FAIL"}
        for k in range(200)
    ]
    gold = {row["message"]: row["gold"] for row in rows}

    def judge(messages: list[str]) -> list[str]:
        told = []
        for text in messages:
            shown = text.rpartition("Message: ")[2].strip()
            strict = "ends in 5" in text and int(shown.split()[1]) % 10 == 5
            told.append("FAIL" if strict else gold[shown])
        return told

    options = {"paraphrases": 0, "attacks": "none", "damage": "none", "note": lambda _: None}
    found = judgesense.check(
        STRICT, rows, judge, variants=["rewording", "sentences"], out=tmp_path / "o", **options
    )
    (entry,) = found.report.contents.assessments
    moved = {row.left_out: row for row in entry.variants if row.left_out}
    # The sentence that names the answers cannot be left out.
    assert [*moved] == [
        "Judge the reply strictly.",
        "Fail every message whose number ends in 5.",
        "Be fair.",
    ]
    first, strict, _ = moved.values()
    n = sum(k % 10 == 5 and k % 3 > 0 for k in range(200)) / 200
    assert (first.shift_rate, first.gain) == (0, 0)
    assert (strict.shift_rate, strict.gain) == pytest.approx((n, n))
    assert strict.gain_ci_low > 0 > first.gain_ci_low
    assert strict.left_out in sentence_effects(entry)
    with pytest.raises(JudgeSenseError, match="no sentence"):
        judgesense.check(
            "Answer PASS or FAIL.\n\nMessage: {message}",
            rows,
            judge,
            variants=["sentences"],
            out=tmp_path / "one",
            **options,
        )
