"""A run taken up again with something changed: nothing is judged twice, nothing is mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from local_judges.callable_judge import CallableJudge


class Stopped(Exception):
    pass


def _stopping(after: int):
    """A judge function that is stopped after so many calls."""
    calls = []

    def judge(prompts: list[str]) -> list[str]:
        calls.append(len(prompts))
        if len(calls) > after:
            raise Stopped
        return ["A" for _ in prompts]

    return judge


def _steady(prompts: list[str]) -> list[str]:
    return ["A" for _ in prompts]


def test_a_resumed_run_that_plans_other_batches_holds_every_row_once(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        judgesense.run(CallableJudge(_stopping(25), name="j", batch_size=8), limit=10, out=tmp_path)
    assert len(read_log(tmp_path)) > 0
    notes: list[str] = []
    judge = CallableJudge(_steady, name="j", batch_size=256)
    judgesense.run(judge, limit=10, out=tmp_path, note=notes.append)
    log = read_log(tmp_path)
    rows = log.select(["prompt_id", "item_id", "template_id", "order"]).to_pylist()
    assert len(rows) == len({tuple(row.values()) for row in rows})
    judgesense.run(CallableJudge(_steady, name="j"), limit=10, out=tmp_path / "whole")
    assert len(log) == len(read_log(tmp_path / "whole"))
    assert any("not in this run's plan" in text for text in notes)


def test_the_second_judge_of_a_stopped_run_is_not_forgotten(tmp_path: Path) -> None:
    def two(second: CallableJudge) -> list[CallableJudge]:
        return [CallableJudge(_steady, name="first"), second]

    stopping = CallableJudge(_stopping(20), name="second", batch_size=8)
    with pytest.raises(Stopped):
        judgesense.run(two(stopping), limit=10, out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    assert [judge["name"] for judge in record["judges"]] == ["first@callable", "second@callable"]

    class Loading(CallableJudge):
        def plan(self, requests, scorings):
            raise Stopped

    # Stopped again while the first judge is looked at: the second's name still stands.
    first = Loading(_steady, name="first")
    with pytest.raises(Stopped):
        judgesense.run([first, CallableJudge(_steady, name="second")], limit=10, out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    assert [judge["name"] for judge in record["judges"]] == ["first@callable", "second@callable"]

    changed = CallableJudge(_steady, name="second")

    def renamed(*arguments: object) -> list:
        changed.name = "second@otherweights"
        return []

    class First(CallableJudge):
        def close(self) -> None:
            renamed()

    with pytest.raises(JudgeSenseError, match="was begun with second@callable"):
        judgesense.run([First(_steady, name="first"), changed], limit=10, out=tmp_path)


def test_two_judges_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="'<lambda>@callable' is given twice"):
        judgesense.run(
            [lambda texts: ["YES" for _ in texts], lambda texts: ["NO" for _ in texts]],
            out=tmp_path / "out",
        )
    with pytest.raises(JudgeSenseError, match="'smollm2-135m' is given twice"):
        judgesense.run(["smollm2-135m", "smollm2-135m"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
