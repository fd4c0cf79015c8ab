"""The studies' table of wordings: the report's figures, and the wording that it recommends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from judgesense.decisions.log import SCHEMA
from judgesense.decisions.view import view
from judgesense.reporting.measure import conclusions
from judgesense.reporting.run_tables import wordings_table
from judgesense.trust.thresholds import DEFAULTS
from judgesense.trust.wordings import Wordings

N = 50
GOLD = ["YES", "NO"] * (N // 2)


def _report(answers: Mapping[str, Mapping[str, list[str]]], gold: bool = True) -> dict[str, Any]:
    """The conclusions of a report on judges' answers under each wording."""
    rows: list[dict[str, Any]] = [
        {
            "judge": judge, "task": "fact", "scoring": "generate", "item_id": f"i{n}",
            "cluster_id": f"i{n}", "template_id": template, "order": "-", "repeat": 0,
            "prompt_id": f"{template} {n}", "raw_decision": word, "decision": word,
            "status": word.lower() if word == "UNCLEAR" else "ok",
            "gold": GOLD[n] if gold else None, "truncated": False,
        }
        for judge, said in answers.items()
        for template, words in said.items()
        for n, word in enumerate(words)
    ]  # fmt: skip
    report: dict[str, Any] = {"wordings": [], "recommendation": []}
    for stream in view(pa.Table.from_pylist(rows, schema=SCHEMA)).judged:
        ids = {"run_id": "r", "judge": stream.judge, "task": "fact", "scoring": "generate"}
        for name, found in conclusions(stream, Wordings.of(stream), DEFAULTS).items():
            if name in report:
                report[name] += [{**ids, **row} for row in found]
    return report


def _swap(words: list[str], every: int) -> list[str]:
    return [
        {"YES": "NO", "NO": "YES"}[word] if n % every == 0 else word for n, word in enumerate(words)
    ]


SELDOM = [word if n % 5 == 0 else "UNCLEAR" for n, word in enumerate(GOLD)]


def test_each_judge_has_the_wording_that_its_report_recommends() -> None:
    good, bad = _swap(GOLD, 25), _swap(GOLD, 3)
    report = _report({"a@1": {"one": good, "two": bad}, "b@1": {"one": bad, "two": good}})
    rows = wordings_table(report).rows
    assert [(row["judge"], row["template"]) for row in rows if row["use"]] == [
        ("a", "one"),
        ("b", "two"),
    ]
    scores = {(row["judge"], row["template"]): row["score"] for row in rows}
    assert scores["a", "one"] == scores["b", "two"] == pytest.approx(48 / N)
    assert {row["score_type"] for row in rows} == {"accuracy"}


def test_equal_wordings_and_unreadable_ones_are_not_recommended() -> None:
    equal = _report({"a@1": {"one": GOLD, "two": GOLD, "three": GOLD}})
    assert not any(row["use"] for row in wordings_table(equal).rows)
    mute = _report({"a@1": {"seldom": SELDOM, "mute": ["UNCLEAR"] * N}})
    rows = wordings_table(mute).rows
    assert {row["template"]: row["flag"] for row in rows} == {
        "seldom": "unreadable",
        "mute": "unreadable",
    }
    assert not any(row["use"] for row in rows)


def test_without_gold_the_score_is_agreement_with_the_consensus() -> None:
    report = _report({"a@1": {"one": GOLD, "two": GOLD, "off": _swap(GOLD, 5)}}, gold=False)
    rows = {row["template"]: row for row in wordings_table(report).rows}
    assert {row["score_type"] for row in rows.values()} == {"agreement"}
    assert rows["off"]["score"] == pytest.approx(40 / N)
    assert rows["off"]["jss_without"] == 1.0
