"""Wrong input for every reader: the cases that once failed, then random ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUDGET_S = 25


_GOOD = """
import contextlib, io, pathlib, sys, tempfile
import hostile_input as harness
base = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    harness.build(base)
for at, reader in enumerate(harness.READERS):
    for pattern in reader.changed:
        (path,) = (base / reader.folder).glob(pattern)
        file = str(path.relative_to(base / reader.folder))
        case = harness.Case(at, file, "unchanged", path.read_bytes())
        print(reader.name, file, harness.judged(case, base, {}).kind, sep=": ")
"""


@pytest.mark.slow
def test_the_good_files_are_read_before_they_are_spoilt(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    told = subprocess.run(
        [sys.executable, "-c", _GOOD, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = told.stdout.splitlines()
    # The study names a judge that is absent, so that none is loaded after the file is read.
    assert [line for line in lines if not line.endswith(": read")] == ["study: study.yaml: refused"]
    assert len(lines) > 60


@pytest.mark.slow
def test_no_reader_ends_in_a_traceback_a_hang_or_a_crash() -> None:
    seed = os.environ.get("JUDGESENSE_SEED", "0")
    command = [sys.executable, "benchmarks/hostile_input.py", "--seconds", str(BUDGET_S)]
    told = subprocess.run(
        [*command, "--seed", seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"seed {seed}")
    counts = json.loads(told.stdout.splitlines()[-1])[0]
    assert counts["n"] > 20, told.stdout + told.stderr
    assert counts["refused"] > 0
    assert counts["read"] > 0
    assert counts["ours"] == 0, told.stdout
