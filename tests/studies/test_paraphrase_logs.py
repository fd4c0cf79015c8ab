"""Paraphrase robustness and panels on decision logs written by hand, and on real ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from recipes import import_llmbar, import_rag_eval
from study_logs import decision, write_log
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.studies.paraphrase_robustness.logs import measure_log


def test_a_log_of_two_tasks_with_gaps_has_the_recorded_figures(
    tmp_path: Path, golden: Callable[[Result, str], None]
) -> None:
    """Nine judges of unequal skill; some prompts were not asked, some answers not readable."""
    rng = np.random.default_rng(3)
    rows = []
    labels = {"grade": "12345", "mood": ("bad", "good", "so-so")}
    for task, item, judge, template in product(labels, range(24), range(9), "123"):
        gold = labels[task][item % len(labels[task])]
        said = gold if rng.random() < 0.3 + judge / 15 else str(rng.choice(list(labels[task])))
        said = "UNCLEAR" if rng.random() < 0.02 else said
        if rng.random() > (0.5 if (judge, template) in ((0, "2"), (1, "3")) else 0.03):
            status = {"status": "unclear"} if said == "UNCLEAR" else {}
            cluster = f"{task} {item // 2}"
            rows.append(
                decision(
                    f"j{judge}",
                    f"{task}{item}",
                    template,
                    said,
                    gold=gold,
                    task=task,
                    cluster_id=cluster,
                    **status,
                )
            )
    golden(measure_log(write_log(tmp_path / "log", rows)), "paraphrase-log")


def test_a_judge_of_few_items_is_no_best_judge(tmp_path: Path) -> None:
    # Seven judges answer three of every seven items each, and none answers half.
    rows = [
        decision(
            f"j{(item + place) % 7}",
            f"i{item}",
            "1",
            "4" if (item + place) % 7 == 3 else "3",
            gold="4",
        )
        for item, place in product(range(21), range(3))
    ]
    rows += [decision("a", f"k{item}", "1", "4", gold="4") for item in range(3)]
    result = measure_log(write_log(tmp_path / "log", rows))
    strategies = [str(one["strategy"]) for one in result.table("panels").rows]
    assert "mean single judge" in strategies
    assert not [name for name in strategies if name.startswith("best judge")]


def test_a_panel_gains_over_judges_that_count_alike_each_on_its_own_items(tmp_path: Path) -> None:
    # On 20 items, a and b are right on the even ones, c on all; d answers four even ones, wrongly.
    said = {
        "a": {n: n % 2 == 0 for n in range(20)},
        "b": {n: n % 2 == 0 for n in range(20)},
        "c": dict.fromkeys(range(20), True),
        "d": dict.fromkeys((0, 2, 4, 6), False),
    }
    rows = [
        decision(judge, f"i{n}", "t", "YES" if right else "NO")
        for judge, own in said.items()
        for n, right in own.items()
    ]
    found = measure_log(write_log(tmp_path / "log", rows))
    panels = {str(one["strategy"]).split(":")[0]: one for one in found.table("panels").rows}
    assert panels["mean single judge"]["accuracy"] == pytest.approx((0.5 + 0.5 + 1 + 0) / 4)
    assert panels["mean single judge"]["gain"] is None
    # The majority is right on the ten even items.
    assert panels["panel, majority"]["accuracy"] == 0.5
    assert panels["panel, majority"]["gain"] == pytest.approx((0 + 0 - 0.5 + 1) / 4)
    assert panels["best judge"]["accuracy"] == 1.0
    assert panels["best judge"]["gain"] == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)


def test_a_log_that_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    rows = [decision(judge, item, "1", "YES") for judge, item in product("pqr", "xyz")]
    log = write_log(tmp_path / "log", rows)
    with pytest.raises(JudgeSenseError, match="no prompt was decided by 3 judges"):
        measure_log(write_log(tmp_path / "two", rows[:6]))
    with pytest.raises(JudgeSenseError, match="no gold label"):
        measure_log(
            write_log(tmp_path / "no", [decision("p", "x", t, "YES", gold="") for t in "12"])
        )
    study = ["study", "paraphrase-robustness", "--out", str(tmp_path / "out")]
    for given in (["--log", str(log), "--judge", "gpt-4o"], ["--by", "task"]):
        refused = CliRunner().invoke(app, [*study, *given])
        assert isinstance(refused.exception, JudgeSenseError)
        assert "not both" in str(refused.exception)
    assert not (tmp_path / "out").exists()
    measured = ["--log", str(log), "--tolerance", "1", "--by", "task"]
    done = CliRunner().invoke(app, [*study, *measured], catch_exceptions=False)
    assert (done.exit_code, "Panels of the judges" in done.output) == (0, True)


@pytest.mark.slow
def test_panels_are_measured_on_foreign_logs(tmp_path: Path, shared: Path) -> None:
    import_llmbar(shared / "logs" / "llmbar" / "judgments.csv", tmp_path / "llmbar")
    rows = measure_log(tmp_path / "llmbar", by="set").table("panels").rows
    right = {r["set"]: r["accuracy"] for r in rows if r["strategy"] == "panel, majority"}
    assert np.mean([*right.values()]) == pytest.approx(0.583, abs=0.0005)
    rag = shared / "logs" / "rag_eval_9judges" / "trec-rag-2024_wide.csv"
    import_rag_eval(rag, tmp_path / "rag")
    panels = {
        r["strategy"]: r["accuracy"] for r in measure_log(tmp_path / "rag").table("panels").rows
    }
    assert panels["panel, median"] == pytest.approx(0.434, abs=0.0005)
