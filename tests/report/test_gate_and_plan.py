"""The gate's three verdicts, and what `judgesense plan` prints."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.trust.card import gate
from judgesense.trust.plans import plan_assumed, plan_difference, plan_run


def card(state: str, low: float | None, high: float | None, kappa: float | None = 0.9, **others):
    """A trust card with a JSS of 0.85 and the states of other checks."""
    checks = {
        name: {"state": each, "estimate": 0.5, "text": f"{name} is {each}"}
        for name, each in others.items()
    }
    steady = {
        "state": state, "estimate": 0.85, "ci_low": low, "ci_high": high, "threshold": 0.8,
        "n_items": 60, "text": "JSS 0.850", "details": {"kappa": kappa},
    }  # fmt: skip
    absent = {"state": "unmeasured", "estimate": None, "text": "not measured"}
    unmeasured = dict.fromkeys(("readable", "responsive", "right", "fair"), absent)
    return {"checks": {**unmeasured, **checks, "steady": steady}}


@pytest.mark.parametrize(
    ("given", "facts", "decision", "cause"),
    [
        (card("pass", 0.81, 0.9), {}, "PASS", "steady"),
        (card("open", 0.7, 0.9), {}, "INCONCLUSIVE", "steady"),
        (card("open", None, None), {}, "INCONCLUSIVE", "steady"),
        (card("fail", 0.5, 0.7), {}, "FAIL", "steady"),
        (card("pass", 0.81, 0.9, right="fail"), {}, "FAIL", "right"),
        (card("open", 0.7, 0.9, fair="fail"), {}, "FAIL", "fair"),
        (card("pass", 0.81, 0.9), {"failed": 2}, "FAIL", "failed"),
        (card("pass", 0.81, 0.9), {"coverage": 0.49}, "FAIL", "coverage"),
        (card("pass", 0.81, 0.9), {"coverage": 0.5}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, kappa=None), {}, "INCONCLUSIVE", "one_label"),
        (card("pass", 0.81, 0.9, kappa=0.2), {}, "INCONCLUSIVE", "one_label"),
        (card("pass", 0.81, 0.9, kappa=0.21), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, kappa=0.1, right="pass"), {}, "PASS", "steady"),
        (card("pass", 0.81, 0.9, None, right="open"), {"constant": True}, "FAIL", "one_label"),
    ],
)
def test_the_gate_follows_the_card(given, facts, decision, cause) -> None:
    found = gate(given, **facts)
    assert (found.decision, found.cause) == (decision, cause)
    assert found.text.startswith(f"{decision}: ")


@pytest.fixture
def run(make, tmp_path):
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 20)
    rng = np.random.default_rng(0)

    def decide(prompt) -> str:
        return make.oracle(prompt) if rng.random() < 0.9 else "NO"

    return make.folder(tmp_path / "run", benchmark, make.log(benchmark, decide, "a@1"))


def test_a_run_is_planned_from_its_cards(run) -> None:
    found = {entry["check"]: entry for entry in plan_run(run)}
    (entry,) = judgesense.report(run)["trust"]
    steady = entry["checks"]["steady"]
    assert found["steady"]["state"] == steady["state"] == "open"
    assert found["steady"]["items"] == steady["details"]["items_needed"]
    assert found["steady"]["estimate"] == steady["estimate"]
    assert found["right"]["state"] == "pass"
    assert found["right"]["items"] is None
    assert 0 < found["right"]["smallest_difference"] < 1
    assert "fair" not in found
    low = plan_run(run, thresholds={"steady": 0.5})[0]
    assert (low["state"], low["threshold"], low["items"]) == ("pass", 0.5, None)


def test_two_runs_are_planned_for_their_difference(run) -> None:
    with pytest.raises(JudgeSenseError, match="holds one judge"):
        plan_difference(run, run)


def test_the_smallest_difference_is_the_one_that_the_interval_shows(make, tmp_path) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 3, ["YES", "NO"] * 30)
    folders = []
    for seed, name in enumerate("ab"):
        rng = np.random.default_rng(seed)
        log = make.log(
            benchmark,
            lambda p, rng=rng: make.oracle(p) if rng.random() < 0.8 else "NO",
            f"{name}@1",
        )
        folders.append(make.folder(tmp_path / name, benchmark, log))
    for entry in plan_difference(*folders):
        half = (entry["ci_high"] - entry["ci_low"]) / 2
        assert half < entry["smallest_difference"] < 1.6 * half
        assert entry["items"] is None or entry["items"] > entry["n_items"]
        assert entry["n_clusters"] == entry["n_items"] == 60


def test_kappas_variance_is_that_of_simulated_judges() -> None:
    from judgesense.statistics.kappa import cohen_kappa

    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        gold = rng.random(150) < 0.6
        # A judge with the margins of gold: right with the probability that gives kappa 0.4.
        copied = rng.random(150) < 0.4
        judge = np.where(copied, gold, rng.random(150) < 0.6)
        found.append(cohen_kappa(*(np.where(each, "A", "B").tolist() for each in (judge, gold))))
    planned = plan_assumed(kappa=0.4, commonest=0.6, items=150)["smallest_difference"]
    assert planned == pytest.approx(2.82 * np.std(np.array(found, float)), rel=0.12)


def test_assumed_figures_out_of_range_are_refused() -> None:
    with pytest.raises(JudgeSenseError, match=r"jss is 1\.5"):
        plan_assumed(jss=1.5)
    with pytest.raises(JudgeSenseError, match=r"base plus difference is 1\.05"):
        plan_assumed(difference=0.2)
    with pytest.raises(JudgeSenseError, match=r"commonest is 0\.4"):
        plan_assumed(kappa=0.4, commonest=0.4)
    with pytest.raises(JudgeSenseError, match="threshold is 1"):
        plan_assumed(jss=0.9, threshold=1)


def test_the_command_prints_lines_or_json(run) -> None:
    asked = CliRunner().invoke(app, ["plan", "--jss", "0.9", "--format", "json"])
    (entry,) = json.loads(asked.output)["plans"]
    assert entry["items"] == plan_assumed(jss=0.9)["items"]
    lines = CliRunner().invoke(app, ["plan", str(run)]).output.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("a@1 on factuality (generate), ") for line in lines)
    for words in (["plan"], ["plan", "--jss", "0.9", "--fair", "0.8"], ["plan", "x", "--jss", "1"]):
        assert isinstance(CliRunner().invoke(app, words).exception, JudgeSenseError)
