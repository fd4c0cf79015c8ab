"""A task that no judge does better than a constant answer ranks nobody."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pyarrow as pa
import pytest

from judgesense.reporting.documents import render_markdown
from judgesense.reporting.html import render_html
from judgesense.reporting.report import measure
from judgesense.reporting.terminal import render_terminal
from judgesense.run_folder.report import merge
from judgesense.trust.discrimination import by_task, discrimination
from judgesense.trust.thresholds import DISCRIMINATING_KAPPA


def card(judge: str, kappa: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    right = {"estimate": kappa, "ci_low": low, "ci_high": high}
    return {"judge": judge, "scoring": "options", "checks": {"right": right}}


@pytest.mark.parametrize(
    ("cards", "state", "best"),
    [
        ([card("a", 0.5, 0.3, 0.7), card("b", 0.0, -0.2, 0.2)], "yes", "a"),
        # The best is the one that is surest, not the one with the highest estimate.
        ([card("a", 0.5, 0.05, 0.9), card("b", 0.4, 0.2, 0.6)], "yes", "b"),
        ([card("a", 0.2, 0.05, 0.35), card("b", 0.0, -0.1, 0.05)], "open", "a"),
        ([card("a", 0.02, -0.05, 0.09), card("b", 0.0, 0.0, 0.0)], "no", "b"),
        ([card("a", 0.6, None, None)], "open", "a"),
        ([card("a", None, None, None), card("b", None, None, None)], "unmeasured", None),
        ([], "unmeasured", None),
    ],
)
def test_the_surest_judge_decides(cards: Any, state: str, best: str | None) -> None:
    found = discrimination(cards)
    assert (found.state, found.judge) == (state, best)
    assert found.ranks is (state in ("yes", "unmeasured"))
    assert found.n_judges == sum(c["checks"]["right"]["estimate"] is not None for c in cards)


def two(make: Any, answers: Any) -> dict[str, Any]:
    data = make.benchmark(make.YESNO, [make.PLAIN, make.PLAIN], ["YES", "NO"] * 30)
    log = pa.concat_tables(make.log(data, answer, judge=name) for name, answer in answers.items())
    return measure(log, data.pairs, run=make.run(data))


def coin(prompt: Any) -> str:
    return ("YES", "NO")[hashlib.sha256(prompt["item_id"].encode()).digest()[0] % 2]


def test_a_report_of_several_judges_says_which_tasks_tell_them_apart(make: Any) -> None:
    report = two(make, {"right@1": lambda p: p["gold"], "coin@2": coin})
    ((task, found),) = by_task(report)
    assert task == make.YESNO.name
    assert (found.state, found.judge, found.kappa) == ("yes", "right@1", 1.0)
    report = two(make, {"yes@1": lambda p: "YES", "coin@2": coin})
    ((_, found),) = by_task(report)
    assert found.state in ("open", "no")
    assert found.ci_low is not None
    assert found.ci_low < DISCRIMINATING_KAPPA
    for text in (render_terminal(report), render_markdown(report), render_html(report)):
        assert "Which tasks tell judges apart" in text


def test_runs_count_together_only_on_the_same_pairs(make: Any) -> None:
    one = two(make, {"right@1": lambda p: p["gold"]})
    same = {**two(make, {"coin@2": coin})}
    same["trust"] = [{**card, "run_id": "other"} for card in same["trust"]]
    same["cells"] = [{**cell, "run_id": "other"} for cell in same["cells"]]
    ((_, found),) = by_task(merge([one, same]))
    assert found.n_judges == 2
    for cell in same["cells"]:
        cell["signature"] = re.sub(r"data:[0-9a-f]+", "data:0a0a0a0a", cell["signature"])
    assert by_task(merge([one, same])) == []
