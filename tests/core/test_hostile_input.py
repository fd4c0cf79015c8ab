"""Wrong input for every reader: the cases that once failed, then random ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import harness

TESTS = Path(__file__).parents[1]
CASES = 250
"""Random cases, besides those that once failed."""


@pytest.mark.slow
def test_the_good_files_are_read_before_they_are_spoilt(tmp_path: Path) -> None:
    harness.good_files(tmp_path)
    outcomes = {}
    for at, reader in enumerate(harness.READERS):
        for pattern in reader.changed:
            (path,) = (tmp_path / reader.folder).glob(pattern)
            file = str(path.relative_to(tmp_path / reader.folder))
            case = harness.Case(at, file, "unchanged", path.read_bytes())
            outcomes[reader.name, file] = harness.judged(case, tmp_path, {}).kind
    # The study names a judge that is absent, so that none is loaded after the file is read.
    assert outcomes.pop(("study", "study.yaml")) == "refused"
    assert len(outcomes) > 60
    assert {place: kind for place, kind in outcomes.items() if kind != "read"} == {}


@pytest.mark.slow
def test_no_reader_ends_in_a_traceback_a_hang_or_a_crash() -> None:
    seed = os.environ.get("JUDGESENSE_SEED", "0")
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    done = subprocess.run(
        [sys.executable, harness.__file__, "--cases", str(CASES), "--seed", seed],
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["read"] + counts["refused"] == counts["cases"] > CASES
