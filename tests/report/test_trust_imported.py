"""Cards that people once got wrong, and cards of bad input, through ``import`` and ``report``."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.measure.card import CHECKS

NOT = {"YES": "NO", "NO": "YES"}
COLUMNS = (
    "judge",
    "task",
    "scoring",
    "item_id",
    "cluster_id",
    "template_id",
    "order",
    "raw_decision",
    "gold",
    "variant",
    "variant_class",
    "raw_text",
    "status",
    "error",
    "repeat",
)
Row = dict[str, Any]


def rows(
    items: int,
    wordings: int,
    decide: Callable[[int, int, str, str], str],
    *,
    golds: Iterable[str] = ("YES", "NO"),
    orders: Iterable[str] = ("-",),
) -> list[Row]:
    """``decide(item, wording, order, gold)`` gives each answer; gold labels take turns."""
    golds = list(golds)
    found = []
    for item in range(items):
        for order in orders:
            gold = golds[item % len(golds)]
            if order == "BA" and gold:
                gold = {"A": "B", "B": "A"}[gold]
            found += [
                {
                    "judge": "m",
                    "task": "t",
                    "item_id": f"i{item}",
                    "order": order,
                    "gold": gold,
                    "template_id": f"w{w}",
                    "raw_decision": decide(item, w, order, gold),
                }
                for w in range(1, wordings + 1)
            ]
    return found


def imported(tmp_path: Path, log: list[Row], labels: str | None = "YES,NO") -> dict[str, Any]:
    with (tmp_path / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(log)
    out = str(tmp_path / "run")
    source = str(tmp_path / "log.csv")
    named = [] if labels is None else ["--labels", labels]
    for arguments in (
        ["import", source, "-f", "table", "-o", out, *named],
        ["report", out],
    ):
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    report = json.loads((Path(out) / "report.json").read_text(), parse_constant=pytest.fail)
    (card,) = report["trust"]
    # The conclusion is the same wherever it is printed.
    first, *_ = (line for line in done.output.splitlines() if line.startswith(card["trust"]))
    assert " m " in first
    assert report["findings"][0]["kind"] == card["trust"]
    assert card["text"] in report["findings"][0]["text"]
    for check in card["checks"].values():
        numbers = [check[key] for key in ("estimate", "ci_low", "ci_high")]
        assert all(value is None or math.isfinite(value) for value in numbers)
    return report


def states(report: dict[str, Any]) -> dict[str, str]:
    return {name: report["trust"][0]["checks"][name]["state"] for name in CHECKS}


def advice(report: dict[str, Any], kind: str) -> str:
    return " ".join(f["text"] for f in report["findings"] if f["kind"] == kind)


def test_a_wording_that_is_92_percent_unreadable_is_named_and_never_preferred(
    tmp_path: Path,
) -> None:
    def decide(item: int, w: int, order: str, gold: str) -> str:
        return "well, hm" if w == 3 and item % 50 >= 4 else gold

    report = imported(tmp_path, rows(100, 5, decide))
    flags = {row["template"]: row["flag"] for row in report["wordings"]}
    assert [name for name, flag in flags.items() if flag != "fine"] == ["w3"]
    assert flags["w3"] == "unreadable"
    (card,) = report["trust"]
    assert (card["trust"], card["because"]) == ("avoid", ["readable"])
    assert card["checks"]["readable"]["estimate"] == pytest.approx(1 - 0.92 / 5)
    (found,) = report["recommendation"]
    assert found["template"] != "w3"
    assert "w3" not in found["best_set"]


def test_one_wording_in_both_orders_shows_position_bias(tmp_path: Path) -> None:
    log = rows(40, 3, lambda item, w, order, gold: "A", golds="AB", orders=("AB", "BA"))
    log = [row for row in log if row["order"] == "AB" or row["template_id"] == "w1"]
    report = imported(tmp_path, log, "A,B")
    fair = report["trust"][0]["checks"]["fair"]
    assert (fair["state"], fair["estimate"], fair["n_items"]) == ("fail", 0.0, 40)
    assert fair["details"]["n_wordings"] == 1
    cells = [c for c in report["cells"] if c["judge"] == "m" and c["order"] == "both"]
    assert {cell["position_consistency"] for cell in cells} == {0.0}


@pytest.mark.parametrize("tie", ["TIE", "C"])
def test_a_tie_in_one_order_is_another_choice(tmp_path: Path, tie: str) -> None:
    def decide(item: int, w: int, order: str, gold: str) -> str:
        if item == 0 and order == "BA":
            return "hm"
        return tie if item % 2 and order == "BA" else gold

    report = imported(tmp_path, rows(60, 1, decide, golds="AB", orders=("AB", "BA")), f"A,B,{tie}")
    fair = report["trust"][0]["checks"]["fair"]
    assert fair["state"] == "fail"
    assert fair["estimate"] == pytest.approx(29 / 59)
    assert "the 59 of 60 items" in fair["text"]


@pytest.mark.parametrize(
    ("repeats", "noise", "words"),
    [(1, "together", "wording and noise together"), (3, "all", "with or without rewording")],
)
def test_noise_is_not_called_rewording(
    tmp_path: Path, repeats: int, noise: str, words: str
) -> None:
    rng = random.Random(0)
    log = []
    for repeat in range(repeats):
        for row in rows(80, 4, lambda item, w, order, gold: rng.choice(["YES", gold])):
            log.append({**row, "repeat": repeat})
    steady = imported(tmp_path, log)["trust"][0]["checks"]["steady"]
    assert steady["details"]["noise"] == noise
    assert words in steady["text"]


def test_a_remedy_does_not_excuse_a_judge_that_ignores_the_question(tmp_path: Path) -> None:
    def decide(item: int, wording: int, order: str, gold: str) -> str:
        wrong = item % 8 == 0 or (item + wording * 7) % 25 == 0
        return NOT[gold] if wrong else gold

    log = rows(100, 6, decide)
    log += [
        {**row, "variant": "stricter", "variant_class": "contrast"}
        for row in log
        if row["template_id"] == "w1"
    ]
    report = imported(tmp_path, log)
    (card,) = report["trust"]
    assert (card["trust"], card["because"], card["remedy"]) == ("avoid", ["responsive"], None)
    # A panel is right, but it follows the contrast no more than its members do.
    panel = next(row for row in report["remedies"] if row["remedy"] == "panel of 3")
    assert panel["checks"]["right"]["state"] == "pass"
    assert panel["checks"]["responsive"]["state"] == "open"


@pytest.mark.parametrize(("scoring", "state"), [("options", "pass"), ("generate", "open")])
def test_a_verdict_read_off_probabilities_is_readable_by_construction(
    tmp_path: Path, scoring: str, state: str
) -> None:
    log = [{**row, "scoring": scoring} for row in rows(25, 3, lambda item, w, o, gold: gold)]
    readable = imported(tmp_path, log)["trust"][0]["checks"]["readable"]
    assert (readable["state"], readable["estimate"], readable["ci_high"]) == (state, 1, 1)
    assert (readable["ci_low"] == 1) is (scoring == "options")


def test_options_that_an_endpoint_hid_are_counted_as_unreadable(tmp_path: Path) -> None:
    log = [{**row, "scoring": "options"} for row in rows(25, 3, lambda item, w, o, gold: gold)]
    log[0]["raw_decision"] = "UNCLEAR"
    readable = imported(tmp_path, log)["trust"][0]["checks"]["readable"]
    assert readable["estimate"] == pytest.approx(74 / 75)
    assert readable["ci_low"] < 0.95


@pytest.mark.parametrize("text", ["raw_decision", "raw_text"])
def test_gold_of_another_vocabulary_is_not_the_decision_space(tmp_path: Path, text: str) -> None:
    log = rows(40, 3, lambda item, w, order, gold: gold)
    for row in log:
        row[text] = row.pop("raw_decision")
        row["gold"] = {"YES": "correct", "NO": "incorrect"}[row["gold"]]
    report = imported(tmp_path, log, None)
    assert report["trust"][0]["trust"] == "care"
    assert states(report)["readable"] == "pass"
    assert states(report)["right"] == "unmeasured"
    # Nothing else rests on gold labels that match no verdict.
    assert {row["accuracy"] for row in report["wordings"]} == {None}
    assert {row["accuracy"] for row in report["remedies"]} == {None}
    assert report["recommendation"][0]["measure"] == "consensus"


def test_wordings_on_disjoint_items_are_not_compared(tmp_path: Path) -> None:
    log = [
        row
        for row in rows(60, 3, lambda item, w, order, gold: gold)
        if int(row["item_id"][1:]) % 3 == int(row["template_id"][1:]) - 1
    ]
    report = imported(tmp_path, log)
    assert {row["flag"] for row in report["wordings"]} == {"fine"}
    recommended = report["recommendation"][0]
    assert recommended["template"] is None
    assert "flagged" not in recommended["text"]


@pytest.mark.parametrize("failed", [0.5, 1.0])
def test_failed_requests_are_not_unreadable_answers(tmp_path: Path, failed: float) -> None:
    log = rows(60, 5, lambda item, w, order, gold: gold)
    for row in log[: int(failed * len(log))]:
        row.update(raw_decision="", status="error", error="HTTP 500")
    report = imported(tmp_path, log)
    trust = "care" if failed < 1 else "unknown"
    assert report["trust"][0]["trust"] == trust
    assert [row["trust"] for row in report["remedies"] if row["remedy"] == "as asked"] == (
        [trust] if failed < 1 else []
    )
    assert report["recommendation"][0]["template"] is None
    assert "flagged" not in report["recommendation"][0]["text"]


def test_two_camps_of_wordings_are_not_all_called_inverted(tmp_path: Path) -> None:
    def decide(item: int, wording: int, order: str, gold: str) -> str:
        said = ("YES", "NO")[item % 2]
        return NOT[said] if wording > 2 else said

    report = imported(tmp_path, rows(60, 4, decide, golds=[""]))
    assert {row["flag"] for row in report["wordings"]} == {"inverted"}
    assert report["trust"][0]["trust"] == "unknown"
    assert "gold labels" in advice(report, "wording")
