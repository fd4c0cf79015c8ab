"""A run's folder: one reader, one writer, and folders of other versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_runner import benchmark, tells_parity

from judgesense.decisions import PARTS
from judgesense.errors import JudgeSenseError
from judgesense.responses import read_responses
from judgesense.run_folder import RunFolder, read_record, read_run
from judgesense.storage import Place
from local_judges.callable_judge import CallableJudge
from local_judges.runner import run_judge

ASKED = {"judges": [{"judge": "m"}], "settings": {"repeats": 1}}


def opened(folder: Path) -> RunFolder:
    return RunFolder(Place(folder, PARTS), ASKED)


@pytest.mark.parametrize("read", [opened, read_record, read_run, read_responses])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"schema": 2, "finished": "now"}', "has schema 2, written by a newer JudgeSense"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (b"\xff\xfe", "is damaged"),
    ],
)
def test_a_record_that_is_damaged_or_newer_is_refused_by_name(
    tmp_path: Path, read: Callable[[Path], object], written: str | bytes, said: str
) -> None:
    run_judge(CallableJudge(tells_parity), benchmark(2), tmp_path, ["generate"])
    path = tmp_path / "run.json"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(JudgeSenseError, match=rf"run\.json {said}"):
        read(tmp_path)


def test_an_interrupted_run_is_resumed_with_its_seconds_and_its_later_models(
    tmp_path: Path,
) -> None:
    run = opened(tmp_path)
    run.enter("first@1")
    run.begin()
    run.leave(1.5, {"judged": 3}, [])
    run.enter("second@1")
    run.begin()

    again = opened(tmp_path)
    assert not again.is_finished()
    first = again.enter("first@1")
    again.begin()
    kept = json.loads((tmp_path / "run.json").read_text("utf-8"))["judges"]
    assert [entry["name"] for entry in kept] == ["first@1", "second@1"]
    again.leave(0.25, {"judged": 0}, ["p1: too long"])
    assert first == {
        "name": "first@1", "seconds": 1.75, "counters": {"judged": 0}, "failed": ["p1: too long"],
    }  # fmt: skip
    with pytest.raises(JudgeSenseError, match="begun with second@1, which is now second@2"):
        again.enter("second@2")


def test_other_settings_are_refused_each_with_both_values(tmp_path: Path) -> None:
    opened(tmp_path).begin()
    asked = {"judges": [{"judge": "n"}], "settings": {"repeats": 2}}
    said = "judges 1 judge was 'm' and is now 'n'; settings repeats was 1 and is now 2"
    with pytest.raises(JudgeSenseError, match=said):
        RunFolder(Place(tmp_path, PARTS), asked)


def test_a_folder_without_a_record_is_named_by_itself(tmp_path: Path) -> None:
    run_judge(CallableJudge(tells_parity), benchmark(2), tmp_path, ["generate"])
    run = read_run(tmp_path)
    assert run.record == {"run_id": tmp_path.name}
    assert (run.log.num_rows, run.pairs, run.prompts) == (4, None, None)
    with pytest.raises(JudgeSenseError, match="holds no decision log"):
        read_run(tmp_path / "decisions")
    with pytest.raises(JudgeSenseError, match="no folder"):
        read_run(tmp_path / "nowhere")
