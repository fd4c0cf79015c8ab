"""A run's folder: one reader, one writer, and folders of other versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_runner import benchmark, tells_parity

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_record, read_run
from judgesense.log.responses import read_responses
from judgesense.log.run_folder import RunFolder
from judgesense.pipeline.execution import run
from local_judges.callable_judge import CallableJudge
from local_judges.runner import run_judge

ASKED = {"judges": [{"judge": "m"}], "settings": {"repeats": 1}}


def opened(folder: Path) -> RunFolder:
    return RunFolder(folder, ASKED)


@pytest.mark.parametrize("read", [opened, read_record, read_run, read_responses])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"schema": 2, "finished": "now"}', "has schema 2, written by a newer JudgeSense"),
        ("{", "is damaged"),
        ("[]", r".*\(in the record"),
        (b"\xff\xfe", "is damaged"),
        ('{"asked": {"settings": {"repeats": {}}}}', r"repeats: .*\(in the record"),
        ('{"epsilon": {}}', r"epsilon: .*\(in the record"),
        ('{"attacks": {"praise": {"kind": []}}}', r"kind: .*\(in the record"),
    ],
)
def test_a_record_that_is_damaged_or_newer_is_refused_by_name(
    tmp_path: Path, read: Callable[[Path], object], written: str | bytes, said: str
) -> None:
    run_judge(CallableJudge(tells_parity), benchmark(2), tmp_path, ["generate"])
    path = tmp_path / "run.json"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(JudgeSenseError, match=rf"run\.json.*{said}"):
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
        "name": "first@1",
        "seconds": 1.75,
        "counters": {"judged": 0},
        "failed": ["p1: too long"],
    }
    with pytest.raises(JudgeSenseError, match="begun with second@1, which is now second@2"):
        again.enter("second@2")


def test_a_folder_without_a_record_is_named_by_itself(tmp_path: Path) -> None:
    run_judge(CallableJudge(tells_parity), benchmark(2), tmp_path, ["generate"])
    run = read_run(tmp_path)
    assert run.record == {"run_id": tmp_path.name}
    assert (run.log.num_rows, run.pairs, run.prompts) == (4, None, None)
    with pytest.raises(JudgeSenseError, match="holds no decision log"):
        read_run(tmp_path / "decisions")
    with pytest.raises(JudgeSenseError, match="no folder"):
        read_run(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a function that answers by rule."""
    out = tmp_path_factory.mktemp("finished") / "run"
    run(by_length, tasks=["factuality"], scoring="generate", limit=5, out=out)
    return out


def by_length(messages: list[str]) -> list[str]:
    return ["YES" if len(message) % 3 else "NO" for message in messages]


def _again(folder: Path) -> pa.Table:
    run(by_length, tasks=["factuality"], scoring="generate", limit=5, out=folder)
    return read_run(folder).log.drop_columns(["latency_s"])


def _doubled(folder: Path) -> None:
    part = next((folder / "decisions").iterdir())
    shutil.copy(part, part.with_name("part-77-00000.parquet"))


def _edited(folder: Path) -> None:
    part = next((folder / "decisions").iterdir())
    table = pq.read_table(part)
    other = pa.array(["YES"] * table.num_rows)
    place = table.schema.get_field_index("decision")
    pq.write_table(table.set_column(place, "decision", other), part)


def _deleted(folder: Path) -> None:
    next((folder / "decisions").iterdir()).unlink()


def _emptied(folder: Path) -> None:
    next((folder / "decisions").iterdir()).write_bytes(b"")


def _halved(folder: Path) -> None:
    pairs = pq.read_table(folder / "pairs.parquet")
    pq.write_table(pairs.slice(0, pairs.num_rows // 2), folder / "pairs.parquet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_doubled, r"part-77-00000\.parquet is not part of the run"),
        (_edited, r"part-\S+ has been changed"),
        (_deleted, "no decision log"),
        (_emptied, r"part-\S+ has been changed"),
        (_halved, r"pairs\.parquet has been changed"),
    ],
)
def test_a_finished_run_that_was_changed_is_refused_and_repaired_by_a_rerun(
    finished: Path, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    whole = read_run(finished).log.drop_columns(["latency_s"])
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    change(folder)
    with pytest.raises(JudgeSenseError, match=said):
        read_run(folder)
    assert _again(folder) == whole
    assert read_run(folder).pairs == read_run(finished).pairs


def test_no_flipped_bit_of_a_part_goes_unnoticed(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    (part,) = (folder / "decisions").iterdir()
    content = part.read_bytes()
    random = np.random.default_rng(0)
    for place, bit in zip(
        random.integers(0, len(content), 200), random.integers(0, 8, 200), strict=True
    ):
        flipped = bytearray(content)
        flipped[place] ^= 1 << bit
        part.write_bytes(flipped)
        with pytest.raises(JudgeSenseError, match="has been changed"):
            read_run(folder)


def test_a_folder_that_another_process_writes_to_is_refused_until_it_is_killed(
    tmp_path: Path,
) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from judgesense.log.folder import folder_lock\n"
        "with folder_lock(Path(sys.argv[1])):\n"
        "    print('locked', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(JudgeSenseError, match="another process is writing"):
            run(by_length, tasks=["factuality"], scoring="generate", limit=5, out=tmp_path)
        other.kill()
    assert _again(tmp_path).num_rows > 0
